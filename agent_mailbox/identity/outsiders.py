"""The caller with no recorded client above it: the person, or a program.

Belongs here: what speaks against the person. ``identity.callers`` asks it, off the path of a session's mail.
"""

from __future__ import annotations

from ..core.records import Record
from ..store import processes, system
from . import client_variables
from .client_processes import NAMES, marks, started_by_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..store.hosts import Host, HostRecords
    from ..store.processes import Process


class Outsider(Record):
    """A caller below no visible client. ``why``: what keeps it from being the person; empty if it is. ``believed``: the
    session that a client's variables name, if nothing better is known."""

    why: str = ""
    believed: str | None = None


def elsewhere(environ: Mapping[str, str], hosts: HostRecords) -> Outsider | tuple[Process, Host | None]:
    """Return the caller on a system without ``/proc``: by ``ps`` (perhaps a client's process, with its record), else by
    the environment."""
    from . import terminals  # starts a program

    above = terminals.by_ps(system.getpid())
    if above is None:
        return Outsider("its ancestors cannot be read", client_variables.session(environ))
    for process in above[1:]:
        host = hosts.of(process)
        if host is not None or process.name in NAMES:
            return process, host
    found = " ".join(marks(environ)) if above else ""
    marked = f"the environment has a client's {found}; if this terminal is yours: `unset {found}`" if found else ""
    return Outsider(marked or ("" if above and above[0].terminal else "it has no terminal"))


def below_no_client(line: Sequence[Process], hosts: HostRecords, environ: Mapping[str, str]) -> Outsider:
    """Return the caller, by its ancestors, none of which is a client."""
    hidden = [one for host in hosts.all() if _is_hidden(host, hosts) for one in host.sessions]
    if hidden:
        named = client_variables.session(environ)
        why = "a client of this user runs where its processes cannot be seen from here"
        return Outsider(why, named if named in hidden else None)
    if not processes.is_whole(line[-1]) and not processes.is_anothers(line[-1].parent):
        return Outsider("its ancestors cannot be read")
    why = "" if line[0].terminal else "it has no terminal"
    why = why or next(filter(None, map(started_by_client, line)), "")
    if not why:
        from . import terminals  # a person types, and can wait a few milliseconds

        why = terminals.doubt(line)
    return Outsider(why)


def _is_hidden(host: Host, hosts: HostRecords) -> bool:
    """Return whether the client runs in this boot, in another namespace: it may be above this process, unseen."""
    return host.here != hosts.here and hosts.is_living(host)
