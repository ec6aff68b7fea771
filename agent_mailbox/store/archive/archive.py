"""The archive: what the steward moved, by month of the message. Read here, written by ``rotation``.

Searched by ``thread``, ``search``, ``show`` and ``history``; never by polling.
"""

from __future__ import annotations

from ...core import codec, instant
from ...core.line_forms import may_be_about, may_be_message
from ...core.records import BadLine, Message, Read
from ..files import system
from ..files.paths import MESSAGES, READS
from ..files.small_files import names_in
from ..log.custody import Kept
from ..log.log import Log
from ..log.logs import parse_messages, parse_reads
from ..log.proof_view import ProofView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..log.custody import Custody

LOCK = ".lock"
"""The file that every writer of the archive locks, by portalocker."""
ROSTER = "roster.jsonl"


class Archive:
    """The months of an archive directory, which need not exist."""

    def __init__(self, directory: str, custody: Custody | None = None) -> None:
        self.directory = directory
        self._custody = custody

    def view(self, name: str) -> ProofView | None:
        """Return what is proven of the writers of lines that were in the live log of that name; None if nothing is."""
        return None if self._custody is None else ProofView(Kept(self._custody, name))

    def kept(self, path: str) -> Kept | None:
        """Return the record's part about the file at a path; None if the mailbox has no record."""
        return None if self._custody is None else Kept(self._custody, path)

    def months(self) -> list[str]:
        """Return the months there are, oldest first: ``2026-03``."""
        return [name[:7] for name in self.files() if len(name) == len("2026-03.jsonl")]

    def files(self) -> list[str]:
        """Return the names of the archived logs: messages and reads by month, and the roster's."""
        names = filter(str.isprintable, names_in(self.directory))  # ours are, and lines of a manifest or of sums
        return [n for n in names if n == ROSTER or (n.endswith(".jsonl") and n[:4].isdigit() and n[4:5] == "-")]

    def file(self, name: str) -> Log:
        """Return the log of a file's name."""
        return Log(system.join(self.directory, name))

    def log(self, month: str) -> Log:
        """Return the log of a month's messages."""
        return self.file(f"{month}.jsonl")

    def reads_log(self, month: str) -> Log:
        """Return the log of the reads of a month's messages."""
        return self.file(f"{month}-reads.jsonl")

    def roster_log(self) -> Log:
        """Return the log of the roster events that compaction replaced."""
        return self.file(ROSTER)

    def _months_since(self, since: int | None) -> list[str]:
        return [month for month in self.months() if since is None or month >= instant.month(since)]

    def reaches_before(self, at: int) -> bool:
        """Return whether there is a message of before an instant (ms)."""
        first, month = next(iter(self.months()), "9999-99"), instant.month(at)
        if first != month:
            return first < month
        messages = (codec.message(line) for _, line in self.log(month).lines())
        return any(isinstance(message, Message) and message.timestamp < at for message in messages)

    def lines(self, since: int | None = None) -> Iterator[bytes]:
        """Yield the archived message lines, oldest month first, from the month of ``since`` (ms) on."""
        for month in self._months_since(since):
            for _, line in self.log(month).lines():
                yield line

    def messages(self, since: int | None = None) -> dict[str, Message]:
        """Return the archived messages by id, from the month of ``since`` (ms) on."""
        return parse_messages(((None, line) for line in self.lines(since)), self.view(MESSAGES))

    def reads(self, since: int | None = None) -> Iterator[Read]:
        """Yield the archived read records, from the month of ``since`` (ms) on."""
        view = self.view(READS)
        for month in self._months_since(since):
            yield from parse_reads(((None, line) for _, line in self.reads_log(month).lines()), view)

    def reads_of(self, message: Message) -> Iterator[Read]:
        """Return the archived read records that may be about the message: those of its month."""
        about = {message.id.encode()}
        lines = (line for _, line in self.reads_log(instant.month(message.timestamp)).lines())
        return parse_reads(((None, line) for line in lines if may_be_about(line, about)), self.view(READS))

    def mentioning(self, ids: set[str]) -> Iterator[bytes]:
        """Return the archived message lines that may have one of the ids."""
        wanted = {i.encode() for i in ids}
        return (line for line in self.lines() if may_be_message(line, wanted))

    def month_of(self, ids: set[str]) -> dict[str, str]:
        """Return the month that each archived id of these is in."""
        found: dict[str, str] = {}
        for month in self.months() if ids else ():
            for _, line in self.log(month).lines():
                message = codec.message(line)
                if not isinstance(message, BadLine) and message.id in ids:
                    found.setdefault(message.id, month)
        return found
