"""Processes and their ancestors, the sessions that each client's process hosts, and where each session works.

Belongs here: reading ``/proc`` (proc(5)), the records of hosts, the notes of places. ``identity.callers`` says who may
be recorded, and what follows. The tick that a process started at, in this boot, tells it from a later one with its
number.

The user's own records have a small file for each client's process, named by its number and, in a container, by its
namespace. Its first line holds the form's version, the process's start, boot and namespace, how its hooks are called,
and whether it has ended. Its sessions follow, the latest first, a line each. It is replaced as a whole. A lost file
costs little: the client's next hook writes it again.

They also have a note for each session, whose first line, the mailbox, the shell guard reads. A session notes what its
client told it, so nothing else follows from a note than where to look.
"""

from __future__ import annotations

from ...core.records import Record
from ...errors import StorageFailed
from ..files import system
from ..files.small_files import list_names, read_file, read_if_possible, remove_if_possible, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DEPTH = 64
"""Ancestors looked at: a longer chain was made on purpose, and counts as unreadable."""

FORM = "1"
DIRECTORY, NOTES = "clients", "sessions"
SESSIONS = 32
"""Sessions remembered for one process: each clearing makes a new one, and old ones are not resumed."""
MANY = 64
"""Files above which the files of ended clients are removed."""
FEW = 4
"""Sessions up to which each one's own record is read first: reading all records takes a tenth of a millisecond and
more."""
_MOST = 1 << 14
_OUTERMOST = "pid:[4026531836]"
"""The namespace of process numbers in which each process of the machine can be seen (``PROC_PID_INIT_INO`` in Linux's
``include/linux/proc_ns.h``)."""
_ENDED = "ended"
SOCKET, PIPE, SERVED = "socket", "pipe", "served"
"""The ways in which a client calls its hooks. A socket pair of its own proves the call; another way does not. *Served*
is by a socket pair as well. There a background service brought a known session back, and nobody knows for whom."""


class Process(Record):
    """A process: number, parent's number, the tick it started at, its controlling terminal (0: none), its name.

    ``is_over``: it has ended, and its parent did not ask yet how (a zombie).
    """

    pid: int
    parent: int
    start: str
    terminal: int
    name: str
    is_over: bool = False


def read(pid: int) -> Process | None:
    """Return the process with that number, by its line ``/proc/PID/stat``; None if there is none, or it cannot be read.

    A name may hold anything."""
    head, _, tail = (read_if_possible(f"/proc/{pid}/stat", 1) or b"").rpartition(b") ")  # one read returns all of it
    words = tail.split()
    if len(words) < 20:
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    is_over = words[0] in (b"Z", b"X") and words[17] in (b"0", b"1")  # else other threads of it still run
    return Process(pid, int(words[1]), words[19].decode("ascii"), int(words[4]), name, is_over)


def line(pid: int) -> Iterator[Process]:
    """Yield the process and its ancestors, nearest first, as far as they can be read.

    A parent that started after its child is another process that got the number: there the line ends.
    """
    child: Process | None = None
    for _ in range(DEPTH):
        process = read(pid) if pid > 0 else None
        if process is None or (child is not None and int(process.start) > int(child.start)):
            return
        yield process
        child, pid = process, process.parent


def is_whole(process: Process) -> bool:
    """Return whether no process is above this one: it is the first, or the first of its namespace."""
    return process.parent == 0


def lives(pid: int, start: str) -> bool | None:
    """Return whether the process that started at that tick lives; None if it may live, and is invisible."""
    process = read(pid)
    if process is not None:
        return process.start == start and not process.is_over
    try:
        system.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return None


def are_shown() -> bool:
    """Return whether ``/proc`` is that of this process's own namespace; another's numbers mean other processes."""
    return link_target("/proc/self") == str(system.getpid())


def _inner_numbers(pid: int) -> list[str]:
    """Return a process's numbers in the namespaces below this one, the innermost last."""
    status = read_if_possible(f"/proc/{pid}/status") or b""
    found = next((row for row in status.decode("utf-8", "replace").split("\n") if row.startswith("NSpid:")), "")
    return found.split()[2:]


def is_anothers(pid: int) -> bool:
    """Return whether the process is there and another user's: some systems hide it from everybody else."""
    try:
        system.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def executable(pid: int) -> str:
    """Return the path of a process's program; empty if it cannot be read."""
    return link_target(f"/proc/{pid}/exe").removesuffix(" (deleted)")


def link_target(path: str) -> str:
    """Return where a link leads; empty if it cannot be read."""
    try:
        return system.readlink(path)
    except OSError:
        return ""


def words(pid: int) -> list[str]:
    """Return the words a process was started with; none if they cannot be read."""
    data = read_if_possible(f"/proc/{pid}/cmdline") or b""
    return [word.decode("utf-8", "replace") for word in data.split(b"\0")[:-1]]


def variables(pid: int) -> dict[str, str] | None:
    """Return the environment a process was started with; None if it cannot be read."""
    if (data := read_if_possible(f"/proc/{pid}/environ")) is None:
        return None
    pairs = (pair.decode("utf-8", "surrogateescape").partition("=") for pair in data.split(b"\0"))
    return {name: value for name, is_one, value in pairs if is_one}


def is_ours(pid: int) -> bool:
    """Return whether this user may read the process: it is this user's and did not close itself."""
    try:
        return system.stat(f"/proc/{pid}").st_uid == system.geteuid()
    except OSError:
        return False


def all_of_them() -> list[Process]:
    """Return every process that can be read."""
    numbers = [int(name) for name in list_names("/proc") if name.isdigit()]
    return [process for process in map(read, numbers) if process is not None]


class Host(Record):
    """A client's process: its number and start, where these count (``ProcessRecords.here``), how it calls us, its
    sessions. ``has_ended``: it said that it ends, or was found to have ended by whoever could see it."""

    pid: int
    start: str
    here: str
    how: str
    sessions: tuple[str, ...]
    has_ended: bool = False


class ProcessRecords:
    """The records of one user, in ``state``.

    ``here`` has the words for this boot and this namespace of process numbers: a number says nothing in another."""

    def __init__(self, state: str) -> None:
        self.state = state
        self._directory = f"{state}/{DIRECTORY}"
        boot = (read_if_possible("/proc/sys/kernel/random/boot_id", 64) or b"").strip().decode("ascii", "replace")
        try:
            namespace = system.readlink("/proc/self/ns/pid")
        except OSError:
            namespace = ""
        self.here = f"{boot or '-'} {namespace or '-'}"
        self._suffix = "" if namespace == _OUTERMOST else _suffix(namespace)

    def of(self, process: Process) -> Host | None:
        """Return its record, in a container an earlier version's, too; None if it is of another with that number."""
        found = self._load(f"{process.pid}{self._suffix}") or (self._load(str(process.pid)) if self._suffix else None)
        return found if found and found.start == process.start and found.here == self.here else None

    def sees_all(self) -> bool:
        """Return whether each process of this machine can be seen from here, those in containers included."""
        return self.here.endswith(f" {_OUTERMOST}") and are_shown() and read(1) is not None

    def find_client(
        self, pid: int, is_client: Callable[[Process], bool]
    ) -> tuple[list[Process], Process | None, Host | None]:
        """Return the line from the process up to the nearest client above it, that client, and its record, if it has
        one. ``is_client`` tells of a process without a record whether it is one."""
        passed: list[Process] = []
        for process in line(pid):
            host = self.of(process) if passed else None
            if host is not None or (passed and is_client(process)):
                return passed, process, host
            passed.append(process)
        return passed, None, None

    def is_living(self, host: Host) -> bool:
        """Return whether the process is there. One of another namespace, in this boot, counts as living until it said
        its end, or is not found among all processes of the machine."""
        if host.here != self.here:
            if host.has_ended or not self._is_of_this_boot(host):
                return False
            return not self.sees_all() or any(_may_be(process, host) for process in all_of_them())
        process = read(host.pid)
        return process is not None and process.start == host.start and not process.is_over

    def judge(self, clients: Mapping[str, str | None]) -> tuple[set[str], set[str]]:
        """Return those sessions whose client's process is certainly gone, and those whose client certainly runs.

        A session without a record is neither. Not gone is one with a record that may be of a living process. Its latest
        record must be of this boot and namespace: a process elsewhere is not judged from here. A record that cannot
        be read may be of a living process, so nobody is gone then. ``clients`` has the number under which each
        session's record may be found: it spares reading all of them, and proves nothing. The end of a process in a
        container is noted: from another container nobody can see it.
        """
        few = len(clients) <= FEW
        recorded: dict[str, list[tuple[Host, bool | None]]] = {}
        for session_id in sorted(clients) if few else ():  # in the same order each time: it can be replayed
            pid = clients[session_id] or ""
            is_number = pid.isascii() and pid.isdigit() and len(pid) < 10
            host = self._load(f"{int(pid)}{self._suffix}") if is_number else None
            if host is not None and session_id in host.sessions and (lives := self._lives(host)) is not False:
                recorded[session_id] = [(host, lives)]
        running = {session_id for session_id, ((_, lives),) in recorded.items() if lives}
        judged = clients.keys() - recorded.keys()
        try:
            for host in self.all(strictly=True) if judged else ():
                if hosted := sorted(judged & {*host.sessions}):
                    lives = self._lives(host)
                    if lives is None and host.here != self.here and not self.is_living(host):
                        self.note_end(host)
                    for session_id in hosted:
                        recorded.setdefault(session_id, []).append((host, lives))
        except OSError:
            return set(), running
        running |= {session_id for session_id, hosts in recorded.items() if any(lives for _, lives in hosts)}
        known = {who for who, hosts in recorded.items() if who not in running and self._are_over(hosts)}
        return known if known and are_shown() else set(), running

    def _are_over(self, hosts: list[tuple[Host, bool | None]]) -> bool:
        are_over = "-" not in self.here.split(" ") and all(lives is False for _, lives in hosts)
        last = [host for host, _ in hosts if host.here == self.here or not host.has_ended]  # else it went on since
        return are_over and bool(last) and max(last, key=self._written).here == self.here

    def _is_of_this_boot(self, host: Host) -> bool:
        return host.here.partition(" ")[0] == self.here.partition(" ")[0]

    def _lives(self, host: Host) -> bool | None:
        """Return whether the process lives; None if it may, and that is not to be seen from here."""
        if host.here == self.here:
            return lives(host.pid, host.start)
        return None if self._is_of_this_boot(host) and not host.has_ended else False

    def _written(self, host: Host) -> int:
        """Return when the record was written, in nanoseconds; 0 if it was removed since."""
        try:
            return system.stat(self.path_of(host)).st_mtime_ns
        except OSError:
            return 0

    def all(self, *, strictly: bool = False) -> Iterator[Host]:
        """Yield every record, those of ended clients included. ``strictly``: raise ``OSError`` if one is unreadable."""
        for name in list_names(self._directory):
            if (found := self._load(name, strictly=strictly)) is not None:
                yield found

    def ended(self) -> set[str]:
        """Return the sessions with a record of a process that ended; another process may host them by now."""
        return {session_id for host in self.all() if self._lives(host) is False for session_id in host.sessions}

    def hosting(self, session_id: str) -> list[Host]:
        """Return the processes that are recorded for the session."""
        return [host for host in self.all() if session_id in host.sessions]

    def record(self, process: Process, session_id: str, how: str, *, first: bool = False) -> None:
        """Record that the process hosts the session; ``first``: as its latest. An unchanged record is not written."""
        known = self.of(process)
        before = known.sessions if known else ()
        is_same = known is not None and known.how == how and not known.has_ended
        if is_same and session_id in before and (not first or before[0] == session_id):
            return
        after = (session_id, *(one for one in before if one != session_id))[:SESSIONS]
        self._save(Host(process.pid, process.start, self.here, how, after))

    def note_end(self, host: Host) -> None:
        """Record that the process has ended, for those who cannot see it; if that fails, they just do not know."""
        if not host.has_ended:
            try:
                self._save(host.replace(has_ended=True))
            except (OSError, StorageFailed):
                pass

    def path_of(self, host: Host) -> str:
        """Return the file of a record."""
        return f"{self._directory}/{host.pid}{_suffix(host.here.partition(' ')[2])}"

    def _load(self, name: str, *, strictly: bool = False) -> Host | None:
        pid, _, namespace = name.partition("-")
        if not (pid + namespace).isdigit():
            return None
        path = f"{self._directory}/{name}"
        if (data := read_if_possible(path, _MOST)) is None and strictly and system.exists(path):
            raise OSError(f"cannot read {path}")
        if not data or not data.endswith(b"\n"):
            return None
        first, *sessions = data.decode("utf-8", "replace").splitlines()
        words = first.split(" ")
        if words[0] != FORM or words[5:] not in ([], [_ENDED]) or len(words) < 5:
            return None
        here, has_ended = f"{words[2]} {words[3]}", len(words) > 5
        return Host(int(pid), words[1], here, words[4], tuple(sessions), has_ended)

    def _save(self, host: Host) -> None:
        system.make_directory(self._directory)
        ended = f" {_ENDED}" if host.has_ended else ""
        lines = (f"{FORM} {host.start} {host.here} {host.how}{ended}", *host.sessions)
        replace_file(self.path_of(host), "".join(f"{line}\n" for line in lines).encode(), durable=False)
        self._sweep()

    def _sweep(self) -> None:
        """Remove the records of ended clients, once there are many files."""
        if len(system.listdir(self._directory)) <= MANY:
            return
        for host in [*self.all()]:
            if not self.is_living(host):
                remove_if_possible(self.path_of(host))


def _may_be(process: Process, host: Host) -> bool:
    """Return whether a process, seen from outside, is that of a client in a container."""
    if process.start != host.start or process.is_over or str(host.pid) not in _inner_numbers(process.pid):
        return False
    return link_target(f"/proc/{process.pid}/ns/pid") in ("", host.here.partition(" ")[2])  # "": it may not be read


def _suffix(namespace: str) -> str:
    """Return what a file's name has behind the process's number: two containers may have the same numbers."""
    inode = namespace.removeprefix("pid:[").removesuffix("]")
    return f"-{inode}" if namespace != _OUTERMOST and inode.isdigit() else ""


class Whereabouts(Record):
    """A session's places, each empty if unknown. ``mailbox`` is also empty if ``AGENT_MAILBOX_DIR`` names it, since
    that may name another for the session's next start."""

    mailbox: str = ""
    directory: str = ""
    client: str = ""
    conversation: str = ""


def note_whereabouts(session_id: str, where: Whereabouts, state: str) -> None:
    """Note where a session works; if that fails, the shell guard just says "maybe". ``state``: the user's records."""
    path = f"{state}/{NOTES}/{session_id}"
    mailbox = where.mailbox and system.real_directory(where.mailbox)  # as stamps name it (``stamps``)
    lines = [line.replace("\n", " ") for line in (mailbox, where.directory, where.client, where.conversation)]
    data = b"".join(system.encoded(line) + b"\n" for line in lines)
    if read_if_possible(path) == data:
        return
    try:
        system.make_directory(system.dirname(path), parents=0o755)
        replace_file(path, data, durable=False)
    except (OSError, StorageFailed):
        pass


def find_whereabouts(session_id: str, state: str) -> Whereabouts | None:
    """Return where a session works, as its last start told; None if none did."""
    if "/" in session_id:
        return None
    try:
        lines = (read_file(f"{state}/{NOTES}/{session_id}") or b"").decode("utf-8").split("\n")
    except (StorageFailed, ValueError):
        return None
    return Whereabouts(*lines[:-1][:4])
