"""The caller of a command: whose process this is, not what it says.

Belongs here: the four cases. *A session*: a client's process is above this one, and the client's hooks recorded it
(``store.hosts``). *The person*: a terminal of its own, and nothing of a client above it. *A program*: anything else;
it writes mail, and decides nothing. (The console makes its own proof.) Which command asks for what: ``cli``.
"""

from __future__ import annotations

from . import clients
from .core import proofs
from .core.records import USER, Record
from .errors import Refused
from .store import processes, system, user_state
from .store.hosts import Hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .store.hosts import Host
    from .store.processes import Process

SESSION, PERSON, PROGRAM, AS_SAID = "session", "person", "program", "as-said"
SWITCH = "AGENT_MAILBOX_TEST_CALLER"
"""The variable by which tests have everyone be whom they say; it counts only beside ``user_state.SWITCH``."""
MARKS = (*(clients.CLAUDE, clients.CODEX, clients.GEMINI), "CLAUDECODE", "CLAUDE_PID", "GEMINI_SESSION_ID")
"""Variables that clients set for all they start: where one is, a client was."""
NAMES = ("claude", "codex", "gemini")
_RUNTIMES = ("node", "nodejs", "bun", "deno")
_SCRIPTS = ("/@anthropic-ai/claude-code/", "/@openai/codex/", "/@google/gemini-cli/")
_VERSIONS = "/claude/versions/"
"""Where the client's own installer puts it: there the program is called by its version."""
NOT_YOU, NOT_THE_PERSON = "not_you", "not_the_person"
UNKNOWN = "no hook of this client was seen yet"


class Caller(Record):
    """The process that calls. ``sessions``: those that the client's process hosts, the one meant first. ``client``: its
    number, 0 where there is none. ``why``: what keeps a program from being the person. ``proves``: whether all this was
    seen."""

    kind: str
    sessions: tuple[str, ...] = ()
    client: int = 0
    why: str = ""
    proves: bool = True

    @property
    def is_person(self) -> bool:
        """Return whether the person calls."""
        return self.kind == PERSON

    def says(self, environ: Mapping[str, str]) -> str | None:
        """Return who calls where the command names nobody; None where that cannot be told."""
        if self.kind == SESSION:
            return self.sessions[0]
        if self.is_person:
            return environ.get(clients.OURS) or USER
        return clients.session(environ) or environ.get(clients.OURS)

    def proof(self, session_id: str) -> str | None:
        """Return what is proven when a record is written in the name of that session."""
        if self.kind == AS_SAID:
            return proofs.TERMINAL if session_id == USER else proofs.of_session(session_id)
        if self.is_person:
            return proofs.TERMINAL
        return proofs.of_session(session_id) if self.proves and session_id in self.sessions else None

    def refuse_as(self, who: str) -> None:
        """Raise ``Refused``: the caller is not that one."""
        if self.kind == SESSION:
            what = f"this is a process of session {self.sessions[0]}, and {who!r} is another"
            raise Refused(what, "leave the id out: the command knows who you are", code=NOT_YOU)
        if who == USER:
            raise Refused(
                f"only the person is {USER!r}, and this is a program: {self.why}",
                "run it at a terminal of your own, or pass another id",
                code=NOT_YOU,
            )
        raise Refused(
            f"{who!r} is the session of a client, and this program is no process of that client",
            "pass an id of the program's own",
            code=NOT_YOU,
        )

    def refuse_deciding(self, what: str) -> None:
        """Raise ``Refused`` where a program decides: it proves nothing, so nothing would be in force."""
        if self.kind == PROGRAM:
            raise Refused(
                f"a program decides nothing, and {what} is a decision: {self.why}",
                "run it at a terminal of your own, or have a session of a client decide",
                code=NOT_THE_PERSON,
            )


def of(environ: Mapping[str, str]) -> Caller:
    """Return who calls, by this process's ancestors."""
    if is_as_said(environ):
        return Caller(AS_SAID)
    hosts = Hosts(user_state.directory(environ))
    line: list[Process] = []
    for process in processes.line(system.getpid()):
        if line:
            host = hosts.of(process)
            if host is not None or is_client(process):
                return _within(process, host, environ)
        line.append(process)
    if not line:
        return _elsewhere(environ)
    return _without(line, hosts, environ)


def is_as_said(environ: Mapping[str, str]) -> bool:
    """Return whether everyone is whom they say: only in a test, whose records prove nothing anywhere else."""
    return environ.get(SWITCH) == AS_SAID and user_state.is_switched(environ)


def is_hosted(session_id: str, environ: Mapping[str, str]) -> bool:
    """Return whether a client's process is recorded as the session's."""
    return bool(Hosts(user_state.directory(environ)).hosting(session_id))


def is_client(process: Process) -> bool:
    """Return whether the process runs a client we know, by its name, its program, or the script it runs."""
    if process.name in NAMES:
        return True
    path = processes.executable(process.pid)
    base = system.basename(path).removesuffix(".exe")
    if base in NAMES or _VERSIONS in path:
        return True
    if base not in _RUNTIMES:
        return False
    script = next((word for word in processes.words(process.pid)[1:] if not word.startswith("-")), "")
    return system.basename(script) in NAMES or any(part in script for part in _SCRIPTS)


def _within(process: Process, host: Host | None, environ: Mapping[str, str]) -> Caller:
    """Return the caller below a client: a session of it. Below one that no hook recorded nobody is proven, and never
    the session of a client further up."""
    if host is None or not host.sessions:
        return Caller(PROGRAM, client=process.pid, why=f"{UNKNOWN} (process {process.pid})")
    return Caller(SESSION, meant(host.sessions, environ), process.pid)


def meant(sessions: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sessions of one process, the one that the environment picks first; it picks among those alone."""
    named = next((value for name in (clients.CLAUDE, clients.CODEX) if (value := environ.get(name)) in sessions), None)
    named = named or sessions[0]
    return (named, *(one for one in sessions if one != named))


def _elsewhere(environ: Mapping[str, str]) -> Caller:
    """Return the caller where ancestors cannot be read as here: by ``ps``, else by what the environment says."""
    from . import terminals  # off the hot path

    above = terminals.by_ps(system.getpid())
    if above is None:
        return _by_environment(environ, "its ancestors cannot be read")
    hosts = Hosts(user_state.directory(environ))
    for process in above[1:]:
        host = hosts.of(process)
        if host is not None or process.name in NAMES:
            return _within(process, host, environ)
    marked = _marks(environ) if above else ""
    why = marked or ("" if above and above[0].terminal else "it has no terminal")
    return Caller(PROGRAM, why=why) if why else Caller(PERSON)


def _without(line: Sequence[Process], hosts: Hosts, environ: Mapping[str, str]) -> Caller:
    """Return the caller with no client above it: the person, or a program."""
    hidden = [one for host in hosts.all() if _is_hidden(host, hosts) for one in host.sessions]
    if hidden:
        why = "a client of this user runs where its processes cannot be seen from here"
        return _by_environment(environ, why, among=hidden)
    if not processes.is_whole(line[-1]) and not processes.is_anothers(line[-1].parent):
        return Caller(PROGRAM, why="its ancestors cannot be read")
    why = "" if line[0].terminal else "it has no terminal"
    why = why or next(filter(None, map(started_by_client, line)), "")
    if not why:
        from . import terminals  # a person types, and can wait a few milliseconds

        why = terminals.doubt(line)
    return Caller(PROGRAM, why=why) if why else Caller(PERSON)


def _is_hidden(host: Host, hosts: Hosts) -> bool:
    """Return whether the client runs in this boot, in another namespace: then it may be above this process, unseen."""
    return host.here != hosts.here and hosts.is_living(host)


def _by_environment(environ: Mapping[str, str], why: str, among: Sequence[str] | None = None) -> Caller:
    """Return the caller that a client's variables tell of, where nothing better is to be had. Nothing is proven."""
    named = clients.session(environ)
    believed = named if among is None or named in among else None
    return Caller(SESSION, (believed,), proves=False) if believed else Caller(PROGRAM, why=why)


def _marks(environ: Mapping[str, str]) -> str:
    """Return what the environment has of a client; empty for nothing."""
    found = next((name for name in MARKS if environ.get(name)), None)
    return f"the environment has a client's {found}" if found else ""


def started_by_client(process: Process) -> str:
    """Return why an ancestor may be a client's child, though its client is gone; empty where it is none. The
    environment of another user's process (``login``, ``sshd``) is not to be read, and says nothing; nor does the first
    process's, which in a container has more rights than anybody below it."""
    started = processes.variables(process.pid)
    if started is None:
        if processes.is_whole(process):
            return ""
        return f"process {process.pid} above it cannot be read" if processes.is_ours(process.pid) else ""
    return _marks(started) and f"process {process.pid} above it ({process.name}) was started by a client"
