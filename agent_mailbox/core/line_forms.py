"""The spelling of a line as bytes: what one of its keys says, without decoding it, which takes fifty times as long.

Belongs here: filters that may let too much through but must never hold back. They know how our writers spell a key
(``codec``); any other spelling passes, and is decoded. No module outside the core names a key as bytes.
``exact_lines`` knows whole lines, ``line_search`` looks through whole logs.
"""

from __future__ import annotations

from .address import ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from .address import Reader

    P = TypeVar("P", int, int | None)

_ABOUT = b'{"message_id":"'
_OUR_READ, _OUR_READER = [b"{", b"message_id", b":"], [b",", b"reader_session_id", b":"]
_ID = b'{"id":"'
CONTROL = b'"type":"control"'
"""The bytes in each control message that one of our writers wrote."""


MANY = 16
"""Words above which a line is taken apart once, and not looked through for each: a name's bearers may be hundreds."""


def may_be_about(line: bytes, ids: set[bytes]) -> bool:
    """Return whether the read record is about one of these messages, or spelt differently from ours."""
    begin = len(_ABOUT)
    is_ours = line.startswith(_ABOUT) and b"\\" not in line and line.count(_ABOUT[1:-2]) == 1
    return not is_ours or line[begin : line.find(b'"', begin)] in ids


def reader_of(line: bytes) -> bytes | None:
    """Return the session of a read record in our spelling; None for any other line."""
    words = line.split(b'"', 8)
    is_whole = len(words) == 9  # else it is torn
    is_ours = is_whole and words[:3] == _OUR_READ and words[4:7] == _OUR_READER and line.count(b'session_id"') == 1
    return words[7] if is_ours and b"\\" not in line else None


def may_release(line: bytes) -> bool:
    """Return whether the read record may give mail back, or is spelt differently from ours."""
    return b"release" in line or b"\\" in line


def may_be_read_by(line: bytes, sessions: Iterable[bytes]) -> bool:
    """Return whether the read record may be of one of these sessions: an escape can spell any."""
    return b"\\" in line or any(session in line for session in sessions)


def lines_read_by(chunks: Iterable[tuple[int, bytes]], sessions: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (position, line) of the read records that may be of one of these sessions. The ``chunks`` end with a line's
    end (``lines.line_chunks``), and most are passed by whole."""
    known = {*sessions}

    def is_theirs(part: bytes) -> bool:
        if b"\n" in part[:-1]:
            return True
        reader = reader_of(part)
        return reader is None or reader in known

    yield from lines_with(chunks, is_theirs if len(known) > MANY else lambda part: may_be_read_by(part, sessions))


def may_be_message(line: bytes, ids: set[bytes]) -> bool:
    """Return whether the line is a message with one of these ids, or spelt differently from ours. One look a line."""
    found = message_id_of(line)
    return found is None or found in ids


def may_begin_with(line: bytes, wanted: bytes) -> bool:
    """Return whether the line is a message whose id begins with the lower-case ``wanted``, in any case, or may be."""
    found = message_id_of(line)
    return found is None or not found.isascii() or found.lower().startswith(wanted)


def may_ask_or_answer(line: bytes) -> bool:
    """Return whether the message may ask for an ack or answer another, or is spelt differently from ours."""
    return b'"ack"' in line or may_answer(line)


def may_answer(line: bytes) -> bool:
    """Return whether the message may answer another, or is spelt differently from ours."""
    return b"\\u" in line or line.count(b'"thread"') != line.count(b'"thread":null')


def pass_by(
    lines: Iterable[tuple[P, bytes]], wanted: Callable[[bytes], bool], passed: set[bytes]
) -> Iterator[tuple[P, bytes]]:
    """Yield the lines that are ``wanted``, and those that are not spelt as ours. The ids of the others are ``passed``:
    of two lines with one id only one counts."""
    for at in lines:
        found = None if wanted(at[1]) else message_id_of(at[1])
        if found is None:
            yield at
        else:
            passed.add(found)


def may_settle(line: bytes) -> bool:
    """Return whether the message may settle or decide something: it answers another, or is control, or may be."""
    return may_answer(line) or may_have(line, b'control"')


def control_lines(lines: Iterable[tuple[P, bytes]]) -> Iterator[tuple[P, bytes]]:
    """Return those of the lines, with their positions, that may be control: in the text of other mail the quotation
    marks are escaped."""
    return ((at, line) for at, line in lines if b'"control"' in line or b"\\u" in line)


def may_be_note(line: bytes) -> bool:
    """Return whether the message may be a note."""
    return b'"note"' in line or b"\\u" in line


def lines_with(chunks: Iterable[tuple[int, bytes]], wanted: Callable[[bytes], bool]) -> Iterator[tuple[int, bytes]]:
    """Yield (position, line) of the lines that are ``wanted``, as a chunk is that has such a line. The ``chunks`` end
    with a line's end (``lines.line_chunks``), and most are passed by whole."""
    for place, chunk in chunks:
        if wanted(chunk):
            for line in chunk.split(b"\n"):
                if line and wanted(line):
                    yield place, line
                place += len(line) + 1


def may_have(line: bytes, beginning: bytes) -> bool:
    """Return whether a key or a word in the record may begin so: an escape can spell any."""
    return b'"' + beginning in line or b"\\u" in line


def has_word(line: bytes, word: str) -> bool:
    """Return whether a text of the record is this word, unless escapes spell it."""
    return f'"{word}"'.encode() in line


def id_for_others(line: bytes, addresses: frozenset[bytes]) -> bytes | None:
    """Return the id of a message to none of the ``addresses``; None if it may be to one, or is spelt differently from
    ours."""
    if b"\\u" in line or b"\\/" in line:
        return None
    if len(addresses) > MANY:
        names_any = not addresses.isdisjoint([b'"%b"' % word for word in line.split(b'"')])
    else:
        names_any = any(address in line for address in addresses)
    if names_any:
        return None
    return message_id_of(line)


def addresses(reader: Reader) -> frozenset[bytes]:
    """Return everything by which mail reaches the reader, as a line spells it."""
    return frozenset(f'"{word}"'.encode() for word in words_of(reader))


def words_of(reader: Reader) -> set[str]:
    """Return everything by which mail reaches the reader (``address.route``), and perhaps more."""
    roles = [tag.removeprefix("role:") for tag in reader.tags if tag.startswith("role:")]
    names = (*reader.lineage, reader.name) if reader.name else reader.lineage
    return {ALL, *names, *reader.tags, *roles, *(f"role:{name}" for name in names)}


def message_id_of(line: bytes) -> bytes | None:
    """Return the id of a message in our spelling; None for any other line, and for one that may have two ids."""
    begin = len(_ID)
    found = line[begin : line.find(b'"', begin)]
    return found if line.startswith(_ID) and b"\\" not in found and line.count(_ID[1:-2]) == 1 else None
