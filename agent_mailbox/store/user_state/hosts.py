"""The sessions that each client's process hosts: a small file for each process, among the user's own records.

Belongs here: writing and reading these files. ``identity.callers`` says who may be recorded, and what follows.

A file is named by the process's number. Its first line holds the form's version, the process's start, boot and
namespace, and how its hooks are called. Its sessions follow, the latest first, a line each. It is replaced as a whole.
A lost file costs little: the client's next hook writes it again.
"""

from __future__ import annotations

from ...core.records import Record
from ..files import system
from ..files.small_files import list_names, read_if_possible, remove_if_possible, replace_file
from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .processes import Process

FORM = "1"
DIRECTORY = "clients"
SESSIONS = 32
"""Sessions remembered for one process: each clearing makes a new one, and old ones are not resumed."""
MANY = 64
"""Files above which the files of ended clients are removed."""
FEW = 4
"""Sessions up to which each one's own record is read first: reading all records takes a tenth of a millisecond and
more."""
_MOST = 1 << 14
SOCKET, PIPE, SERVED = "socket", "pipe", "served"
"""The ways in which a client calls its hooks. A socket pair of its own proves the call; another way does not. *Served*
is by a socket pair as well. There a background service brought a known session back, and nobody knows for whom."""


class Host(Record):
    """A client's process: its number and start, where these count (``processes.here``), how it calls, its sessions."""

    pid: int
    start: str
    here: str
    how: str
    sessions: tuple[str, ...]


class HostRecords:
    """The records of one user, in ``state``."""

    def __init__(self, state: str) -> None:
        self._directory = f"{state}/{DIRECTORY}"
        self.here = processes.here()

    def of(self, process: Process) -> Host | None:
        """Return the record of the process; None if the record is of another process with the same number."""
        found = self._load(process.pid)
        return found if found and found.start == process.start and found.here == self.here else None

    def is_living(self, host: Host) -> bool:
        """Return whether the process is there; one of another namespace, in this boot, counts as living."""
        if host.here != self.here:
            return host.here.partition(" ")[0] == self.here.partition(" ")[0]
        process = processes.read(host.pid)
        return process is not None and process.start == host.start and not process.is_over

    def judge(self, clients: Mapping[str, str | None]) -> tuple[set[str], set[str]]:
        """Return those sessions whose client's process is certainly gone, and those whose client certainly runs.

        A session without a record is neither. Not gone is one with a record that may be of a living process. Its latest
        record must be of this boot and namespace: a process elsewhere cannot be judged from here. A record that cannot
        be read may be of a living process, so nobody is gone then. ``clients`` has the number under which each
        session's record may be found: it spares reading all of them, and proves nothing.
        """
        few = len(clients) <= FEW
        recorded: dict[str, list[tuple[Host, bool | None]]] = {}
        for session_id in sorted(clients) if few else ():  # in the same order each time: it can be replayed
            pid = clients[session_id] or ""
            host = self._load(int(pid)) if pid.isascii() and pid.isdigit() and len(pid) < 10 else None
            if host is not None and session_id in host.sessions and (lives := self._lives(host)) is not False:
                recorded[session_id] = [(host, lives)]
        running = {session_id for session_id, ((_, lives),) in recorded.items() if lives}
        judged = clients.keys() - recorded.keys()
        recorded.clear()
        try:
            for host in self.all(strictly=True) if judged else ():
                if hosted := sorted(judged & {*host.sessions}):
                    lives = self._lives(host)
                    for session_id in hosted:
                        recorded.setdefault(session_id, []).append((host, lives))
        except OSError:
            return set(), running
        running |= {session_id for session_id, hosts in recorded.items() if any(lives for _, lives in hosts)}
        known = {session_id for session_id, hosts in recorded.items() if self._are_over(hosts)}
        return known if known and processes.are_shown() else set(), running

    def _are_over(self, hosts: list[tuple[Host, bool | None]]) -> bool:
        if "-" in self.here.split(" ") or any(lives is not False for _, lives in hosts):
            return False
        return max((host for host, _ in hosts), key=self._written).here == self.here

    def _lives(self, host: Host) -> bool | None:
        """Return whether the process lives; None if it may, and that is not to be seen from here."""
        if host.here == self.here:
            return processes.lives(host.pid, host.start)
        return None if self.is_living(host) else False

    def _may_live(self, host: Host) -> bool:
        return self._lives(host) is not False

    def _written(self, host: Host) -> int:
        """Return when the record was written, in nanoseconds; 0 if it was removed since."""
        try:
            return system.stat(f"{self._directory}/{host.pid}").st_mtime_ns
        except OSError:
            return 0

    def all(self, *, strictly: bool = False) -> Iterator[Host]:
        """Yield every record, those of ended clients included. ``strictly``: raise ``OSError`` if one is unreadable."""
        for name in list_names(self._directory):
            if not name.isdigit():
                continue
            if (found := self._load(int(name), strictly=strictly)) is not None:
                yield found

    def ended(self) -> set[str]:
        """Return the sessions with a record of a process that ended; another process may host them by now."""
        return {session_id for host in self.all() if not self._may_live(host) for session_id in host.sessions}

    def hosting(self, session_id: str) -> list[Host]:
        """Return the processes that are recorded for the session."""
        return [host for host in self.all() if session_id in host.sessions]

    def record(self, process: Process, session_id: str, how: str, *, first: bool = False) -> None:
        """Record that the process hosts the session; ``first``: as its latest. An unchanged record is not written."""
        known = self.of(process)
        before = known.sessions if known else ()
        if known and known.how == how and session_id in before and (not first or before[0] == session_id):
            return
        after = (session_id, *(one for one in before if one != session_id))[:SESSIONS]
        self._save(Host(process.pid, process.start, self.here, how, after))

    def _load(self, pid: int, *, strictly: bool = False) -> Host | None:
        path = f"{self._directory}/{pid}"
        data = read_if_possible(path, _MOST)
        if data is None and strictly and system.exists(path):
            raise OSError(f"cannot read {path}")
        if not data or not data.endswith(b"\n"):
            return None
        first, *sessions = data.decode("utf-8", "replace").splitlines()
        words = first.split(" ")
        if len(words) != 5 or words[0] != FORM:
            return None
        return Host(pid, words[1], f"{words[2]} {words[3]}", words[4], tuple(sessions))

    def _save(self, host: Host) -> None:
        system.make_directory(self._directory)
        lines = (f"{FORM} {host.start} {host.here} {host.how}", *host.sessions)
        replace_file(f"{self._directory}/{host.pid}", "".join(f"{line}\n" for line in lines).encode(), durable=False)
        self._sweep()

    def _sweep(self) -> None:
        """Remove the records of ended clients, once there are many files."""
        if len(system.listdir(self._directory)) <= MANY:
            return
        for host in [*self.all()]:
            if not self.is_living(host):
                remove_if_possible(f"{self._directory}/{host.pid}")
