"""Starting a cursor in a large log without decoding it: which lines can matter to one reader, found as bytes.

Belongs here: a filter that may let too much through and must hold nothing back. It knows how our writers spell a line;
a stretch of the log that is spelt otherwise is passed on whole. One thing it does not look for: an id that a foreign
program wrote twice, the first time for somebody else.
"""

from __future__ import annotations

from ..core import instant
from ..core.address import ALL, BROADCAST, DIRECT, TAG
from ..core.codec import MAX_LINE, dumps
from ..core.instant import HOUR
from . import system
from .log import CHUNK, lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.address import Reader
    from ..core.roster import Roster

_MARKER = b'","recipient":'
_ID = slice(15, 51)  # of a read line: {"message_id":"…


class Wanted:
    """What a line must begin with, after ``"recipient":``, to matter to a reader at ``now``, and when it expired."""

    def __init__(self, reader: Reader, roster: Roster, now: int, ttls: Mapping[str, float | None]) -> None:
        roles = [tag for tag in reader.tags if tag.startswith("role:")]
        modes = {word: _direct(word, roster) for word in (*reader.lineage, reader.name) if word}
        modes.update(dict.fromkeys((*roles, *(role[5:] for role in roles))))
        modes.update({tag: TAG for tag in reader.tags if tag not in roles})
        modes[ALL] = BROADCAST
        self._cutoffs: dict[bytes, bytes] = {}
        for word, mode in modes.items():
            hours = ttls[mode] if mode else None
            cutoff = b"" if hours is None else instant.text(max(now - int(hours * HOUR), 0)).encode()
            for spelt in _spellings(word):
                self._cutoffs[spelt + b","] = cutoff
        self.starts = (*self._cutoffs, b"[")

    def expired(self, rest: bytes, line_end: bytes) -> bool:
        """Is this a message for one address, in our spelling, that expired by its mode's own time to live?"""
        key, comma, after = rest.partition(b",")
        cutoff = self._cutoffs.get(key + comma)
        if not cutoff or not after.startswith(b'"timestamp":"') or after[36:38] != b'Z"':
            return False
        own_ttl_unset = b'"ttl_hours":null,"read_by":[]' in line_end and line_end.count(b"}") == 1
        return own_ttl_unset and after[13:37] <= cutoff


def _direct(word: str, roster: Roster) -> str | None:
    """The mode of a word for the reader itself; None where a clock that stood still makes expiry a longer story."""
    agent = roster.meant(word)
    return DIRECT if agent is not None and not agent.frozen else None


def _spellings(word: str) -> set[bytes]:
    """How JSON writers may spell an address: as it is, in ASCII, with slashes escaped."""
    plain = dumps(word)
    ascii_only = "".join(c if c < "\x80" else "".join(f"\\u{u:04x}" for u in _utf16(c)) for c in plain)
    upper = "".join(c if c < "\x80" else "".join(f"\\u{u:04X}" for u in _utf16(c)) for c in plain)
    spelt = {plain, ascii_only, upper}
    return {s.encode() for s in spelt | {s.replace("/", "\\/") for s in spelt}}


def _utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be")
    return [data[i] << 8 | data[i + 1] for i in range(0, len(data), 2)]


def messages(fd: int, end: int, wanted: Wanted) -> Iterator[tuple[int, bytes]]:
    """(position, line) of every message line that may be unread by the reader."""
    for start, chunk in _chunks(fd, end):
        pieces = chunk.split(_MARKER)
        if len(pieces) - 1 != chunk.count(b"\n"):
            yield from _lines(start, chunk)  # not the spelling of our writers, or keys that look like it
            continue
        starts = wanted.starts
        hits = [k for k, piece in enumerate(pieces) if piece.startswith(starts)]
        place, k = start, 0
        for hit in hits:
            while k < hit:
                place += len(pieces[k]) + len(_MARKER)
                k += 1
            rest = pieces[hit]
            if not wanted.expired(rest, rest[: rest.find(b"\n")][-400:]):
                line_start = chunk.rfind(b"\n", 0, place - start) + 1
                yield start + line_start, chunk[line_start : chunk.index(b"\n", line_start)]


def reads(fd: int, end: int, ids: set[str]) -> Iterator[tuple[int, bytes]]:
    """(position, line) of every read line that may be about one of the messages."""
    usual = {i.encode() for i in ids if len(i) == 36 and i.isascii()}
    if len(usual) < len(ids):
        yield from lines_of(fd, 0, end)
        return
    if not ids:
        return
    for start, chunk in _chunks(fd, end):
        place = start
        for line in chunk.split(b"\n"):
            if line[_ID] in usual or not line.startswith(b'{"message_id":"'):
                yield place, line
            place += len(line) + 1


def _chunks(fd: int, end: int) -> Iterator[tuple[int, bytes]]:
    """(position, bytes) that end with a line's end, the last line's excepted. A line far beyond ``MAX_LINE``, which no
    decoder takes, is passed over: memory stays bounded whatever stands in the file."""
    start, carry, offset, endless = 0, b"", 0, False
    while offset < end and (data := system.pread(fd, min(CHUNK // 2, end - offset), offset)):
        offset += len(data)
        if endless:
            rest = data.find(b"\n") + 1 or len(data)
            endless = data[rest - 1 : rest] != b"\n"
            start, data = start + rest, data[rest:]
        cut = data.rfind(b"\n") + 1
        if cut == 0 and offset < end:
            carry += data
            if len(carry) > MAX_LINE:
                start, carry, endless = start + len(carry), b"", True
            continue
        chunk = carry + (data[:cut] if offset < end else data)
        yield start, chunk
        start += len(chunk)
        carry = data[cut:] if offset < end else b""


def _lines(start: int, chunk: bytes) -> Iterator[tuple[int, bytes]]:
    place = start
    for line in chunk.split(b"\n"):
        if line:
            yield place, line
        place += len(line) + 1
