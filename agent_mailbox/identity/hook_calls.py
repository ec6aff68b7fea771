"""The owner of a hook call: the client whose process made it, for a session that it hosts.

Belongs here: telling a client's call from an agent's command, and recording which process hosts which session. For the
answers see ``clients.hooks.hook_events``. Seen with Claude Code 2.1.329: a hook's standard input is one end of a socket
pair that the client made, and nobody else wrote into. A tool's shell has ``/dev/null``.
"""

from __future__ import annotations

import sys

from ..core import proofs
from ..core.text import shell_quoted
from ..errors import NOT_YOU, Refused, StorageFailed
from ..store.files import paths, system
from ..store.user_state import processes
from ..store.user_state.processes import PIPE, SERVED, SOCKET, ProcessRecords
from . import client_variables
from .client_processes import is_client, is_launcher, is_service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.records import Proof
    from ..store.user_state.processes import Host, Process

INPUT = 0
"""The file descriptor of the client's JSON."""
_STREAM, _UNIX, _SOCKET, _PEERCRED = 1, 1, 1, 17
"""``SOCK_STREAM``, ``AF_UNIX``, ``SOL_SOCKET``, ``SO_PEERCRED`` (unix(7))."""


def prove_call(
    session_id: str, environ: Mapping[str, str], *, begins: bool, told: bool, is_fork: bool = False
) -> Proof | None:
    """Record that the calling client hosts the session, and return what that proves.

    ``begins``: the client runs this session from now on. ``told``: the JSON itself names the session. ``is_fork``: it
    goes on with another one's talk. Raises ``Refused`` for a call that is not the client's.
    """
    hosts = ProcessRecords(paths.state_directory(environ))
    line, process, host = hosts.find_client(system.getpid(), is_client)
    if not line:
        return _by_environment(session_id, environ)
    maker = maker_of(INPUT) if told else None
    if process is None:
        return _of_a_stranger(session_id, line[1:], maker, hosts)
    is_its = maker == process.pid
    if not is_its and host and host.how != PIPE:
        raise Refused(
            "`hook` is the client's to call, and this call comes from a command that runs below it",
            "run `agent-mailbox check`, which shows your own mail",
            code=NOT_YOU,
        )
    if host and session_id in host.sessions and not begins and not host.has_ended:
        return proofs.of_session(session_id)
    above, started = [*processes.line(process.pid)][1:], process
    while above and hosts.of(above[0]) is None and is_launcher(above[0], started):
        started = above.pop(0)  # it and the client are one
    services = _services(above) if is_its else 0
    is_nested = any(hosts.of(outer) is not None or is_client(outer) for outer in above[services:])
    is_nested = is_nested or (services > 0 and _is_asked_by_agent(session_id, environ))
    if not _may_host(session_id, process, hosts, environ, is_nested=is_nested):
        return None
    how = SOCKET if is_its else PIPE
    was_served = host is not None and host.how == SERVED
    if services and (was_served or is_fork or _is_noted(session_id, environ) or hosts.hosting(session_id)):
        how = SERVED
    return _record_host(hosts, process, session_id, how, begins=begins)


def note_end(environ: Mapping[str, str]) -> None:
    """Record that the calling client ends now. From another container nobody could see that, and the session could not
    go on there."""
    hosts = ProcessRecords(paths.state_directory(environ))
    if host := _host_above(hosts):
        hosts.note_end(host)


def root_session(session_id: str, environ: Mapping[str, str]) -> str:
    """Return the session to which a subagent belongs, from the one that started it: that one, if the calling client
    hosts it. Else it is a subagent itself, and the client's latest session is meant."""
    found = _host_above(ProcessRecords(paths.state_directory(environ)))
    return session_id if found is None or session_id in found.sessions else found.sessions[0]


def _host_above(hosts: ProcessRecords) -> Host | None:
    return next(filter(None, map(hosts.of, processes.line(system.getpid()))), None)


def prove_shared(session_id: str, proven_id: str, environ: Mapping[str, str]) -> Proof | None:
    """Return what a hook call, which proves one session, proves of another: that the same process hosts it, as after
    ``/clear``."""
    hosts = ProcessRecords(paths.state_directory(environ))
    are_one = any(session_id in host.sessions and hosts.is_living(host) for host in hosts.hosting(proven_id))
    return proofs.of_session(session_id) if are_one else None


def is_started_with(name: str, environ: Mapping[str, str]) -> bool:
    """Return whether the client's process was started with the variable as this hook has it, below no other client.

    Then the person said so. A client's settings, and an agent's command, change the hook's environment alone.
    """
    hosts = ProcessRecords(paths.state_directory(environ))
    above = [*processes.line(system.getpid())][1:]
    clients = [process for process in above if hosts.of(process) is not None or is_client(process)]
    if len(clients) != 1:
        return False
    return (processes.variables(clients[0].pid) or {}).get(name) == environ.get(name)


def _of_a_stranger(session_id: str, above: list[Process], maker: int | None, hosts: ProcessRecords) -> Proof | None:
    """Return what a call from an unknown program proves. It is a client if it made the socket; it gets only sessions
    without a host on record."""
    known = hosts.hosting(session_id)
    process = next((process for process in above if process.pid == maker), None)
    if any(hosts.is_living(host) for host in known):
        raise _hosted_error(session_id, known[0], hosts)
    return None if process is None or known else _record_host(hosts, process, session_id, SOCKET, begins=True)


def _services(above: list[Process]) -> int:
    """Return how many of the processes above a client are those of its background service, which hosts no session."""
    return next((count for count, process in enumerate(above) if not is_service(process)), len(above))


def _is_asked_by_agent(session_id: str, environ: Mapping[str, str]) -> bool:
    from . import session_registry  # as a session begins in the background

    job = session_registry.job_of(session_id, environ)
    return job is not None and bool(job.askers)


def _may_host(
    session_id: str, process: Process, hosts: ProcessRecords, environ: Mapping[str, str], *, is_nested: bool
) -> bool:
    """Return whether the client may come to host the session. A nested client may have new ones alone: else an agent
    that starts one could be any session. Raises ``Refused`` if a living client hosts it."""
    its = process.pid, process.start, hosts.here
    others = [host for host in hosts.hosting(session_id) if (host.pid, host.start, host.here) != its]
    if living := [host for host in others if hosts.is_living(host)]:
        raise _hosted_error(session_id, living[0], hosts)
    return not (is_nested and (others or _is_noted(session_id, environ)))


def _is_noted(session_id: str, environ: Mapping[str, str]) -> bool:
    return system.exists(system.join(paths.state_directory(environ), processes.NOTES, session_id))


def _record_host(hosts: ProcessRecords, process: Process, session_id: str, how: str, *, begins: bool) -> Proof | None:
    """Record it; on failure nothing is proven, and the hook goes on."""
    try:
        hosts.record(process, session_id, how, first=begins)
    except (OSError, StorageFailed):
        return None
    return proofs.of_session(session_id)


def _by_environment(session_id: str, environ: Mapping[str, str]) -> Proof | None:
    """Return what the client's variables tell on macOS, whose hooks read no ancestors (not run live).

    Elsewhere ``/proc`` is missing: a command may have hidden it, to name another session by a variable. Raises
    ``Refused``."""
    if sys.platform != "darwin":
        raise Refused(
            "the processes above this hook cannot be read, so nothing tells whose it is",
            "start the client where /proc shows them",
            code=NOT_YOU,
        )
    named = next((value for name in client_variables.SESSIONS if (value := environ.get(name))), None)
    return proofs.of_session(session_id) if named in (None, "", session_id) else None


def _hosted_error(session_id: str, host: Host, hosts: ProcessRecords) -> Refused:
    if host.here != hosts.here:
        return Refused(
            f"session {session_id} runs in another container, as far as can be seen from here (process {host.pid})",
            "if that one has ended: run `agent-mailbox roster list` outside containers, or "
            f"`rm {shell_quoted(hosts.path_of(host))}` here",
            code=NOT_YOU,
        )
    return Refused(
        f"session {session_id} runs in another client (process {host.pid})",
        "end it there first, or begin another session here",
        code=NOT_YOU,
    )


def maker_of(fd: int) -> int | None:
    """Return the process that made the socket pair of which this file is one end; None for any other file.

    The kernel keeps the caller of ``socketpair``, and no other process can change that. An end that is bound, or whose
    peer is, was connected instead: the client's own listening socket has the same credentials.
    """
    try:
        if system.fstat(fd).st_mode & system.S_IFMT != system.S_IFSOCK:
            return None
        from _socket import SocketType as Socket  # only if a client calls a hook through one

        end = Socket(fileno=system.dup(fd))
    except (OSError, ImportError):
        return None
    try:
        if end.family != _UNIX or end.type != _STREAM or end.getsockname() or end.getpeername():
            return None
        pid = int.from_bytes(end.getsockopt(_SOCKET, _PEERCRED, 4), "little")
        return pid or None
    except OSError:
        return None
    finally:
        end.close()
