"""The three logs of a mailbox, read together so that they agree.

Belongs here: the content of each log, folding them into a ``InboxState``, heartbeats. The codec tells records from
foreign lines; the core knows their meaning.
"""

from __future__ import annotations

from ...core import codec, proofs, roster_cache
from ...core.address import check_id
from ...core.line_forms import may_answer, may_ask_or_answer, may_be_about, may_be_message, pass_by
from ...core.proofs import SEALED
from ...core.records import BadLine, Message, Read, RosterEvent
from ...core.roster import Roster
from ...core.roster_cache import RosterCache
from ...errors import Busy, Malformed, StorageFailed
from ..files import paths, small_files, system
from ..files.lines import boundary, lines_of
from ..files.small_files import open_file, storage_failed
from ..locks.lock import WAIT, FileLock, is_held
from . import custody
from .log import Log
from .proof_view import weigh_message, weigh_read
from .stamps import StampFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Self

    from ...core.inbox import InboxState
    from .proof_view import ProofView

    End = tuple[int, int]
    Ends = tuple[End, End, End]

ROLLBOOK = "roster"
_HEAD = b"%d %d %d %d %d %s\n"
"""The first line of a rollbook: the mark at which it was made (``read_head``), and what was counted on the way."""
NOWHERE = (0, 0)
"""The end of a missing file."""
SHORT, NEWS = 1 << 18, 1 << 11
"""Bytes of a rollbook that is written again for every change; bytes of changes for which a longer one is. Readers fold
the changes since."""


class Logs:
    """The mailbox directory as logs. ``wait`` is how many seconds to wait for any lock in it, ``state`` where the
    user's own records are (default: those of this process's user)."""

    def __init__(
        self, directory: str, wait: float = WAIT, record: custody.Custody | None = None, state: str | None = None
    ) -> None:
        self.directory = directory
        self.wait = wait
        self.custody = record
        self.derived = f"{directory}/{paths.CACHE}"
        self.rollbook = f"{self.derived}/{ROLLBOOK}" if record is None else f"{record.directory}/rollbook"
        """It names leads, so with a record it is outside the project."""
        self.derives = True  # see ``read_only``
        self.shared: bool | None = None  # see ``is_shared``
        self.stamp_files = StampFiles(self.derived, state if record is None else record.state)
        self._roster: Roster | None = None
        self._roster_at = (0, 0)
        self._trusted = True
        self.polls: dict[str, int] = {}  # by session, for a process that stays (``Poll.unread``)
        self.quiet: dict[str, Any] = {}
        self._book = "", b""
        self.messages, self.reads, self.roster = (
            Log(f"{directory}/{name}", wait, self.stamp_files, None if record is None else custody.Kept(record, name))
            for name in (paths.MESSAGES, paths.READS, paths.ROSTER)
        )

    def read_only(self) -> Logs:
        """Return the same logs for a reader who writes not even a derived file."""
        twin = Logs.__new__(Logs)
        twin.__dict__ = {**self.__dict__, "derives": False}
        return twin

    @property
    def is_shared(self) -> bool:
        """Return whether several machines share the mailbox: the user's record of it names their space."""
        if self.shared is None:
            return self.custody is not None and paths.is_there(f"{self.custody.directory}/engine/space")
        return self.shared

    @property
    def has_kept_mail(self) -> bool:
        """Return whether the mailbox left a space, and has mail that nobody else of it got (``space.kept_ids``)."""
        return self.custody is not None and paths.is_there(f"{self.custody.directory}/engine/kept")

    def path(self, *names: str) -> str:
        """Return a path inside the mailbox."""
        return "/".join((self.directory, *names))

    def cache(self, *names: str) -> str:
        """Return a path among the derived files."""
        return "/".join((self.derived, *names))

    def state(self, ttls: Mapping[str, float | None]) -> InboxState:
        """Return everything live, folded."""
        return self._folded_mail(ttls)

    def asking(self, ttls: Mapping[str, float | None]) -> InboxState:
        """Return the same, reduced to mail that asks for an ack and mail that answers it: most mail is skipped
        undecoded."""
        return self._folded_mail(ttls, may_ask_or_answer)

    def state_of(self, ids: Iterable[str], ttls: Mapping[str, float | None]) -> InboxState:
        """Return the same, reduced to these messages with their reads, and to answers."""
        about = {message_id.encode() for message_id in ids}
        return self._folded_mail(ttls, lambda line: may_answer(line) or may_be_message(line, about), about)

    def _folded_mail(
        self,
        ttls: Mapping[str, float | None],
        wanted: Callable[[bytes], bool] | None = None,
        about: set[bytes] | None = None,
    ) -> InboxState:
        """Return the mail that is ``wanted``, with the reads of the messages ``about`` (None: of all that mail)."""
        from ...core.inbox import InboxState
        from ...core.message_reads import Reads  # whoever sends folds no mail

        with OpenLogs(self) as logs:
            lines, passed = lines_of(logs.messages, 0, logs.messages_end), set[bytes]()
            kept = lines if wanted is None else pass_by(lines, wanted, passed)
            messages = parse_messages(kept, self.messages.view())
            twice = {word for message_id in messages if (word := message_id.encode()) in passed}
            if wanted is not None and twice:  # another line of its id was passed by, and may be the one that counts
                return self._folded_mail(ttls, lambda line: wanted(line) or may_be_message(line, twice), about)
            reads = lines_of(logs.reads, 0, logs.reads_end)
            if wanted is not None:
                those = {message_id.encode() for message_id in messages} if about is None else about
                reads = (at for at in reads if may_be_about(at[1], those))
            return InboxState(
                messages=messages,
                reads=Reads(parse_reads(reads, self.reads.view())),
                roster=self.read_roster(),
                ttls=ttls,
                sign=self.sign,
            )

    def ends(self) -> Ends:
        """Return (inode, size) of the messages, the reads and the roster; zeros for a missing log."""
        return end_of(self.messages.path), end_of(self.reads.path), end_of(self.roster.path)

    def read_records(self) -> Iterator[Read]:
        """Return the live read records, in log order."""
        return parse_reads(self.reads.lines(), self.reads.view())

    def read_roster(self) -> Roster:
        """Return the folded roster: the last one if the log is unchanged, else the rollbook's if current, else a new
        fold."""
        known = self._roster
        if (
            known is not None
            and self._roster_at == end_of(self.roster.path)
            and self._trusted == (self.custody is None or end_of(self.custody.breach) == NOWHERE)
        ):
            return known
        noticed, kept = None, self.roster.kept
        if kept is not None:
            noticed, kept.noticed = kept.noticed, None
        known = None if noticed is None else self._kept_roster(*noticed)
        return known or self.roster.attentively(self._folded, noticed=noticed) or Roster()

    def broken(self) -> str | None:
        """Return why the logs do not continue where our writers left them, by a look at the end of each; else None.

        Every door asks it, so nobody is told of no news who missed what a log lost."""
        if self.custody is None:
            return None
        why = self.custody.find_break((self.messages, self.reads, self.roster))
        if why is not None and self.roster.kept is not None:
            self.roster.kept.noticed = None
        return why

    def _kept_roster(self, inode: int, size: int, entry: custody.LogEnd) -> Roster | None:
        """Return the rollbook's roster if it is of the log as ``broken`` has found its end, unasked again."""
        at = inode, size
        if entry.size != size or at != end_of(self.roster.path):
            return None
        self._book = self.rollbook, small_files.load_derived(self.rollbook) or b""
        head = _HEAD % (*at, entry.checksum, entry.generation, entry.count, entry.digest)
        if not self._book[1].startswith(head):
            return None
        self._roster, self._roster_at, self._trusted = RosterCache(self._book[1], len(head)), at, True
        return self._roster

    def _folded(self, fd: int, view: ProofView | None) -> Roster:
        at = end_of(fd)
        self._roster, self._roster_at = self._folded_roster(fd, at[1], view), at
        self._trusted = view is None or view.trusted
        return self._roster

    def _folded_roster(self, fd: int, end: int, view: ProofView | None) -> Roster:
        kept = self._text(fd, end)
        start = kept.find(b"\n") + 1
        at, counted = read_head(kept[:start])
        if not start or not small_files.holds_mark(fd, at) or (view is not None and not view.resume(*counted)):
            start, at = 0, small_files.NOWHERE
        if start and at[1] >= end:  # another process wrote an event and saved the rollbook since our look at ``end``
            return RosterCache(kept, start)
        roster = RosterCache(kept, start) if start else Roster()
        for event in parse_roster(lines_of(fd, at[1], end), view):
            roster.apply(event)
        is_sound = boundary(fd, end) == end and (view is None or (view.trusted and view.is_whole()))
        if self.derives and is_sound and (len(kept) <= SHORT or end - at[1] >= NEWS or not start):
            told = (0, 0, b"-") if view is None else (view.entry.generation, view.count, view.digest)
            head = _HEAD % (*small_files.mark_log(fd, end), *told)
            self._book = self.rollbook, head + roster_cache.written(roster)
            small_files.save_derived(*self._book)
        return roster

    def _text(self, fd: int, end: int) -> bytes:
        """Return the rollbook's text; empty if there is none.

        One that this process read before will do while the log continues it by little: a long one takes a millisecond.
        """
        path, (known, text) = self.rollbook, self._book
        at, _ = read_head(text[: text.find(b"\n") + 1])
        if known != path or not text or not small_files.holds_mark(fd, at) or not 0 <= end - at[1] < NEWS:
            self._book = path, small_files.load_derived(path) or b""
        return self._book[1]

    def heart(self, session_id: str) -> str:
        """Return the heartbeat file of a session, which is also the file of its delivery lock."""
        return f"{self.directory}/{paths.HEARTBEATS}/{check_id(session_id)}"

    def delivery(self, session_id: str) -> FileLock:
        """Return the session's delivery lock: one process at a time chooses, shows and records its mail."""
        return FileLock(self._made_heart(session_id), self.wait)

    def beat(self, session_id: str, now: int) -> None:
        """Note that the session lives (``now`` in ms)."""
        path = self._made_heart(session_id)
        try:
            fd = open_file(path, system.O_WRONLY | system.O_CREAT)
            try:
                system.utime(fd, ns=(now * 1_000_000, now * 1_000_000))  # the steward may remove the name meanwhile
            finally:
                system.close(fd)
        except OSError as error:
            raise storage_failed("touch", path, error) from None

    def sign(self, session_id: str) -> int:
        """Return the ms of a session's last heartbeat, or ``DELIVERING`` while it is shown mail; 0 if it left none.

        One without any on a shared mailbox is another machine's, which alone judges it: it counts as alive."""
        from ...core.message_reads import DELIVERING  # likewise

        try:
            path = self.heart(session_id)
            return DELIVERING if is_held(path) else system.stat(path).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return system.time_ns() // 1_000_000 if self.is_shared else 0
        except Malformed:  # no id at all: any program may write a claim
            return 0
        except (OSError, StorageFailed):  # nobody can tell: it may be alive, and another would be shown the same mail
            return system.time_ns() // 1_000_000

    def last_seen(self, sessions: Iterable[str] | None = None) -> dict[str, int]:
        """Return the ms of the last heartbeat of these sessions, or of all, as far as they left one."""
        directory = self.path(paths.HEARTBEATS)
        found: dict[str, int] = {}
        try:
            for who in system.listdir(directory) if sessions is None else sessions:
                try:
                    path = f"{directory}/{who}" if sessions is None else self.heart(who)
                    found[who] = system.lstat(path).st_mtime_ns // 1_000_000
                except (FileNotFoundError, Malformed):
                    pass  # it left none, or the steward removed it meanwhile
        except FileNotFoundError:
            pass
        except OSError as error:  # who cannot be looked at is not silent
            raise storage_failed("look through", directory, error) from None
        return found

    def _made_heart(self, session_id: str) -> str:
        """Return the heartbeat file of a session, in a directory that is there."""
        path = self.heart(session_id)
        try:
            system.mkdir(f"{self.directory}/{paths.HEARTBEATS}", 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise storage_failed("make", f"{self.directory}/{paths.HEARTBEATS}", error) from None
        return path


def of_mailbox(directory: str, wait: float, environ: Mapping[str, str], state: str | None = None) -> Logs:
    """Return the logs of a mailbox with the user's record of it, if the user's ``init`` made that mailbox. ``state``:
    where the user's records are, if the caller knows it."""
    real = system.real_directory(directory)
    record = custody.find(real, state or paths.state_directory(environ))
    if record is None and paths.recorded(real, environ):
        from .custody_setup import ensure  # once in a mailbox's life

        record = ensure(real, environ)
    return Logs(directory, wait, record)


def parse_messages(lines: Iterable[tuple[int | None, bytes]], view: ProofView | None = None) -> dict[str, Message]:
    """Return messages by id in log order, from lines with their positions (archived ones have none).

    A proven message counts before others of its id, then the first. ``view`` tells what is proven of their writers."""
    found: dict[str, Message] = {}
    for position, line in lines:
        message = codec.message(line)
        if not isinstance(message, BadLine):
            message = weigh_message(message, view, line, position)
            first = found.setdefault(message.id, message)
            if proofs.proves(message.proof) and not proofs.proves(first.proof):
                found[message.id] = message
    return found


def parse_reads(lines: Iterable[tuple[int | None, bytes]], view: ProofView | None = None) -> Iterator[Read]:
    """Yield the read records, in log order, from lines with their positions."""
    for position, line in lines:
        record = codec.read(line)
        if not isinstance(record, BadLine):
            yield weigh_read(record, view, line, position)


def parse_roster(lines: Iterable[tuple[int, bytes]], view: ProofView | None = None) -> Iterator[RosterEvent]:
    """Yield the roster events, in log order, from lines with their positions; ``view`` counts the deciding ones."""
    for position, line in lines:
        proof = view.read(line, position) if view is not None else None
        if proof is None and view is not None and SEALED in line:
            proof = view.bare_word(line, position)
        event = codec.roster_event(line)
        if not isinstance(event, BadLine):
            yield event if proof is None else event.replace(proof=proof)


class OpenLogs:
    """The three logs, opened so that they agree, for a ``with`` block. Their ends are fixed when they are opened.

    The steward replaces the messages log before the reads log. So the reads are opened after the messages, which must
    still be at their path then: only so are the reads complete. The ends are fixed in the other order: every read
    before ``reads_end`` is of a message before ``messages_end``.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self.messages: int | None = None
        self.reads: int | None = None
        self.roster: int | None = None

    def views(self) -> tuple[ProofView | None, ProofView | None]:
        """Return what is proven of the writers of messages, and of reads."""
        return self._logs.messages.view(), self._logs.reads.view()

    def __enter__(self) -> Self:
        try:
            for _ in range(100):
                self.messages = self._logs.messages.open()
                self.reads = self._logs.reads.open()
                reads, messages = end_of(self.reads), end_of(self.messages)
                if messages[0] == end_of(self._logs.messages.path)[0]:
                    break
                self.__exit__()
            else:
                raise Busy(f"{self._logs.messages.path} is replaced faster than it can be read", "try again")
            self.roster = self._logs.roster.open()
            self.ends: Ends = messages, reads, end_of(self.roster)
        except BaseException:
            self.__exit__()
            raise
        (_, self.messages_end), (_, self.reads_end), (_, self.roster_end) = self.ends
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self.messages, self.reads, self.roster):
            if fd is not None:
                system.close(fd)
        self.messages = self.reads = self.roster = None


def read_head(head: bytes) -> tuple[small_files.Mark, tuple[int, int, bytes]]:
    """Return the mark that a rollbook was made at, and what was counted on the way."""
    words = head.split()
    if len(words) != 6:
        return small_files.NOWHERE, (0, 0, b"-")
    inode, position, checksum, generation, count = map(int, words[:5])
    return (inode, position, checksum), (generation, count, words[5])


def end_of(log: int | str | None) -> End:
    """Return (inode, size) of a log, open or by its path; zeros for a missing one."""
    try:
        at = None if log is None else system.stat(log)
    except FileNotFoundError:
        at = None
    return NOWHERE if at is None else (at.st_ino, at.st_size)
