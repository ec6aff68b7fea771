"""The live mail that perhaps nobody took, with its reads and answers: dead letters are among it.

Belongs here: which lines that is, told from their bytes. Most mail of a large log was read, or is none of the asker's
business; it is passed by undecoded. ``core.dead_letters`` judges the rest as it would judge everything. So this may let
too much through but must never hold back.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import BadLine
from .lines import lines_of
from .logs import parse_messages, parse_reads
from .prefilter import id_for_others, may_be_about, may_be_message
from .scan import PLAIN_READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..core.records import Message, Read
    from .logs import Logs, OpenLogs

_ID, _THREAD = b'{"id":"', b'"thread":"'


def found(
    logs: Logs, words: list[bytes] | None, about: Callable[[], Iterable[str]] = tuple
) -> tuple[dict[str, Message], list[Read]]:
    """Return the live mail that perhaps nobody took and that holds one of the words (None: any), and its reads.

    The answers to it are there, too, and what concerns the ids that ``about`` gives. It is asked once the logs are
    open: whatever the steward moves later is still in them.
    """
    with logs.open() as live:
        ids = {message_id.encode() for message_id in about()}
        ids.update(_ids(live, _taken(live), words))
        lines = (at for at in _messages(live) if may_be_message(at[1], ids) or _may_answer(at[1], ids))
        views = live.views()
        messages = parse_messages(lines, views[0])
        ids.update(message_id.encode() for message_id in messages)
        reads = (at for at in _reads(live) if may_be_about(at[1], ids))
        return messages, list(parse_reads(reads, views[1]))


def _messages(live: OpenLogs) -> Iterator[tuple[int, bytes]]:
    return iter(()) if live.messages is None else lines_of(live.messages, 0, live.messages_end)


def _reads(live: OpenLogs) -> Iterator[tuple[int, bytes]]:
    return iter(()) if live.reads is None else lines_of(live.reads, 0, live.reads_end)


def _taken(live: OpenLogs) -> set[bytes]:
    """Return the ids of messages that somebody surely took: each was read, with its text, and never given back."""
    read: set[bytes] = set()
    doubtful: set[bytes] = set()
    for _, line in _reads(live):
        plain = PLAIN_READ.fullmatch(line)
        if plain is None:
            record = codec.read(line)
            if not isinstance(record, BadLine):
                doubtful.add(record.message_id.encode())
        elif plain[2] != b"seen":
            read.add(plain[1])
    return read - doubtful


def _ids(live: OpenLogs, taken: set[bytes], words: list[bytes] | None) -> Iterator[bytes]:
    """Yield the ids of the messages that nobody surely took and that hold one of the words."""
    begin = len(_ID)
    for _, line in _messages(live):
        message_id = line[begin : line.find(b'"', begin)]
        is_ours = line.startswith(_ID) and b"\\" not in message_id
        if is_ours and (message_id in taken or (words is not None and id_for_others(line, words) is not None)):
            continue
        if is_ours:
            yield message_id
        elif not isinstance(message := codec.message(line), BadLine):
            yield message.id.encode()


def _may_answer(line: bytes, ids: set[bytes]) -> bool:
    """Return whether the message may answer one of these, or is spelt differently from ours."""
    threads = line.count(b'"thread"')
    if threads == 1 and b"\\u" not in line and (begin := line.find(_THREAD) + len(_THREAD)) >= len(_THREAD):
        word = line[begin : line.find(b'"', begin)]
        return b"\\" in word or word in ids
    return b"\\u" in line or threads != line.count(b'"thread":null')
