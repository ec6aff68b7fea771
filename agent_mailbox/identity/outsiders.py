"""The caller with no recorded client above it: the person, or a program.

Belongs here: what speaks against the person. ``identity.callers`` asks it, off the path of a session's mail.
"""

from __future__ import annotations

from ..store.files import system
from ..store.user_state import processes
from .client_processes import NAMES, client_marks, started_by_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..store.user_state.processes import Host, Process, ProcessRecords


UNSEEN = "its ancestors cannot be read"


def why_elsewhere(environ: Mapping[str, str], hosts: ProcessRecords) -> str | tuple[Process, Host | None]:
    """Return what keeps the caller from being the person where there is no ``/proc``, or the client's process above it.

    ``ps`` tells the ancestors. If it does not either, no variable does: each caller chooses its own.
    """
    from . import terminals  # starts a program

    above = terminals.by_ps(system.getpid())
    if above is None:
        return UNSEEN
    for process in above[1:]:
        host = hosts.of(process)
        if host is not None or process.name in NAMES:
            return process, host
    found = " ".join(client_marks(environ)) if above else ""
    marked = f"the environment has a client's {found}; if this terminal is yours: `unset {found}`" if found else ""
    return marked or ("" if above and above[0].terminal else "it has no terminal")


def below_no_client(line: Sequence[Process], hosts: ProcessRecords) -> str:
    """Return what keeps the caller from being the person, by its ancestors, none of which is a client."""
    if any(_is_hidden(host, hosts) for host in hosts.all()):
        return "a client of this user runs where its processes cannot be seen from here"
    if not processes.is_whole(line[-1]) and not processes.is_anothers(line[-1].parent):
        return UNSEEN
    why = "" if line[0].terminal else "it has no terminal"
    why = why or next(filter(None, map(started_by_client, line)), "")
    if not why:
        from . import terminals  # a person types, and can wait a few milliseconds

        why = terminals.doubt_about(line)
    return why


def _is_hidden(host: Host, hosts: ProcessRecords) -> bool:
    """Return whether the client runs in this boot, in another namespace: it may be above this process, unseen."""
    return host.here != hosts.here and not hosts.sees_all() and hosts.is_living(host)
