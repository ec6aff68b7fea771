"""The caller of a command: the session whose process this is, whatever the command says.

Belongs here: the four cases. A *session*: a client's process is above this one, and its hooks recorded it
(``ProcessRecords``). The *person*: a terminal of its own, no client above it. A *program*: anything else; it writes
mail, and decides nothing. The console makes its own proof.

``cli`` says which command asks for what.
"""

from __future__ import annotations

from ..core import proofs
from ..core.records import USER, Record
from ..errors import NOT_YOU, Refused
from ..known_clients.every_client import USUAL
from ..store.files import paths, system
from ..store.user_state import processes
from ..store.user_state.processes import SERVED, ProcessRecords
from . import client_variables
from .client_processes import is_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.records import Proof
    from ..store.user_state.processes import Host, Process

SESSION, PERSON, PROGRAM = "session", "person", "program"
NOT_THE_PERSON = "not_the_person"
UNKNOWN = "no hook of this client was seen yet"


class Caller(Record):
    """The process that calls. ``sessions``: of those that the client's process hosts the one that is
    meant, or all, the latest first, if nothing names one. ``client``: its
    number, or 0. ``why``: what keeps a program from being the person. ``is_served``: a background service brought the
    session back, and nobody knows for whom."""

    kind: str
    sessions: tuple[str, ...] = ()
    client: int = 0
    why: str = ""
    is_served: bool = False

    @property
    def is_person(self) -> bool:
        """Return whether the person calls."""
        return self.kind == PERSON

    def said_id(self, environ: Mapping[str, str]) -> str | None:
        """Return the caller's id if the command names none; None if that is unknown."""
        if self.kind == SESSION:
            return self.sessions[0]
        if self.is_person:
            return environ.get(client_variables.OURS) or USER
        ours = client_variables.OURS if environ.keys().isdisjoint(client_variables.SERVICES) else ""
        return client_variables.session_of(environ) or environ.get(ours)

    def proof_for(self, session_id: str) -> Proof | None:
        """Return the proof for a record in the name of that session; None if there is none."""
        if session_id in self.sessions:
            return proofs.of_session(session_id)
        return proofs.TERMINAL if self.is_person else None

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
        """Raise ``Refused`` if a program decides: it proves nothing, so its word would have no effect. Raise it as well
        for a session that came back in the background: any agent may ask the service for any session."""
        if self.is_served:
            raise Refused(
                f"this session came back in the background, where an agent may have asked for it: {what} needs proof",
                f"end it and resume it at a terminal: `{USUAL.program} --resume {self.sessions[0]}`",
                code=NOT_THE_PERSON,
            )
        if self.kind == PROGRAM:
            raise Refused(
                f"{what} needs proof of who decides, and a program has none: {self.why}",
                "run it at a terminal of your own, or have a session of a client decide",
                code=NOT_THE_PERSON,
            )


def caller_of(environ: Mapping[str, str], hosts: ProcessRecords | None = None, *, latest: bool = False) -> Caller:
    """Return the caller, by this process's ancestors. ``hosts``: the user's records of clients, if they are read.

    ``latest``: of a client's sessions the latest counts, whatever an environment names: this process began before it.
    """
    hosts = hosts or ProcessRecords(paths.state_directory(environ))
    line, client, host = hosts.find_client(system.getpid(), is_client)
    if client is not None:
        return _caller_below(client, host, {} if latest else _picking_environment(line[-1], host, environ))
    from . import outsiders  # off the path of a session's mail

    found = outsiders.below_no_client(line, hosts) if line else outsiders.why_elsewhere(environ, hosts)
    if isinstance(found, tuple):
        return _caller_below(*found, environ)
    return Caller(PROGRAM, why=found) if found else Caller(PERSON)


def _picking_environment(child: Process, host: Host | None, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment that picks among a client's sessions: the one which the client gave to its own child. A
    script that runs below that may change the command's."""
    if host is None or len(host.sessions) == 1:
        return environ
    given = processes.variables(child.pid) or {}
    return given if any(given.get(name) in host.sessions for name in client_variables.SESSIONS) else environ


def _caller_below(process: Process, host: Host | None, environ: Mapping[str, str]) -> Caller:
    """Return the caller below a client: one of its sessions. Below a client that no hook recorded it is a program,
    whatever client is further up."""
    if host is None or not host.sessions:
        return Caller(PROGRAM, client=process.pid, why=f"{UNKNOWN} (process {process.pid})")
    sessions = host.sessions
    # The one that the environment names; if it names none, all of them, the latest first. It picks among those alone.
    named = tuple(one for one in map(environ.get, client_variables.SESSIONS) if one is not None and one in sessions)
    return Caller(SESSION, named[:1] or sessions, process.pid, is_served=host.how == SERVED)
