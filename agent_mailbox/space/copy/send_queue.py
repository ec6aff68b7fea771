"""Mail that waits for an engine that is out of reach: kept durably here, in the order once, later.

Belongs here: the queue's file, in the user's own record of the mailbox. The machine's lock is around delivering, the
file's own around each change of it.
"""

from __future__ import annotations

from ...core import codec, proofs
from ...core.records import Message, Record
from ...errors import BadData, Unavailable
from ...store.files import system
from ...store.files.small_files import replace_file
from ...store.log.log import Log
from ...store.log.logs import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...core.records import Proof
    from ...store.log.logs import End

QUEUE, UNSENT = "queue", "unsent"
MOST = 32 << 20
"""Bytes of a queue; further mail is refused, as it is without a queue."""


class Entry(Record):
    """One send: the lines of its messages, what is proven of the writer of each, and why it was not taken."""

    lines: tuple[bytes, ...]
    proofs: tuple[Proof | None, ...]
    why: str

    def about(self) -> Iterator[tuple[bytes, Proof | None]]:
        return zip(self.lines, self.proofs, strict=True)


class SendQueue:
    """The queue in a directory of the user's own."""

    def __init__(self, directory: str, wait: float) -> None:
        self._directory = directory
        self._log = Log(system.join(directory, QUEUE), wait)

    def put_entry(self, lines: Sequence[bytes], proofs: Sequence[Proof | None], why: str = "") -> None:
        """Keep one send durably, with why it waits; raise ``Unavailable`` if the queue is full."""
        system.make_directory(self._directory)
        texts = [line.decode() for line in lines]
        with self._log.held() as log:
            if system.fstat(log.fd).st_size > MOST:
                raise Unavailable("engine is out of reach, and the queue is full", "try again later")
            log.append([codec.dumps({"lines": texts, "proofs": list(proofs), "why": why}).encode() + b"\n"])

    def end(self) -> End:
        return end_of(self._log.path)

    def read_entries(self) -> list[Entry]:
        """Return what waits, oldest first. A torn line was never acknowledged."""
        return [entry for _, line in self._log.lines() if (entry := _parse_entry(line)) is not None]

    def read_messages(self) -> list[Message]:
        """Return the messages that wait, oldest first, with what is proven of their writers."""
        found = ((codec.message(line), proof) for one in self.read_entries() for line, proof in one.about())
        return [message.replace(proof=proof) for message, proof in found if isinstance(message, Message)]

    def drop_oldest(self, done: Entry) -> None:
        """Remove the oldest entry, which is ``done``."""
        with self._log.held() as log:
            lines = [line for _, line in log.lines() if _parse_entry(line) is not None]
            if not lines or _parse_entry(lines[0]) != done:
                raise BadData(f"queue was changed by another program: {self._log.path}", "look at the file")
            replace_file(self._log.path, b"".join(line + b"\n" for line in lines[1:]))

    def set_aside(self, entry: Entry) -> None:
        """Keep an entry that can never be sent, since one of its ids is another message's."""
        Log(system.join(self._directory, UNSENT)).append([line + b"\n" for line in entry.lines])

    def count_unsent(self) -> int:
        return sum(1 for _ in Log(system.join(self._directory, UNSENT)).lines())


def _parse_entry(line: bytes) -> Entry | None:
    found = codec.parse(line, MOST)
    if not isinstance(found, dict):
        return None
    said = (None if word is None else proofs.parse(word.encode()) for word in found["proofs"])
    return Entry(tuple(text.encode() for text in found["lines"]), tuple(said), str(found.get("why", "")))
