"""The environment variables by which clients tell their agents' commands whose terminal this is.

Belongs here: what follows from two. Each client's own are in its module (``known_clients``). For what a hook is told
see ``clients.hooks.hook_events``.
"""

from __future__ import annotations

from ..core.address import is_shown
from ..errors import Malformed
from ..known_clients.every_client import CLIENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SESSIONS = tuple([client.session_variable for client in CLIENTS if client.session_variable])
"""The variables that name a session."""
MARKS = tuple([mark for client in CLIENTS for mark in client.marks])
"""The variables of an agent's terminal that name no session."""
HOOKS = tuple([client.hook_variable for client in CLIENTS if client.hook_variable])
"""The variables that name a session to hooks alone: its commands are told none."""
NAMELESS = tuple([mark for client in CLIENTS if not client.session_variable for mark in client.marks])
"""The marks of clients that name no session to commands."""
PROCESSES = tuple([client.process_variable for client in CLIENTS if client.process_variable])
"""The variables that name a client's process."""
SERVICES = tuple([client.service_variable for client in CLIENTS if client.service_variable])
"""The variables of sessions that a client's background service runs."""
OURS = "AGENT_MAILBOX_SESSION"
WISHES = (
    *("AGENT_MAILBOX_DIR", "AGENT_MAILBOX_ROLE", "AGENT_MAILBOX_NAME", "AGENT_MAILBOX_TAGS", "AGENT_MAILBOX_LEAD"),
    OURS,
)
"""Our variables by which a person says something of a session."""
ELSE = "pass --session ID (to send and reply: --from ID)"


def left_out(environ: Mapping[str, str]) -> list[str]:
    """Return our variables that do not count, below a client's background service. It has the environment of the
    terminal that started it, whichever terminal's session this is."""
    return [] if environ.keys().isdisjoint(SERVICES) else [name for name in WISHES if environ.get(name)]


def session_of(environ: Mapping[str, str]) -> str | None:
    """Return the session whose agent's terminal this is; None if no client names one.

    Raises ``Malformed`` for a reserved id, for two sessions, and for one beside a client that names none. A client that
    another one's agent started has the variables of both, in no order; it must not consume its parent's mail.
    """
    named = {value for name in SESSIONS if (value := environ.get(name))}
    if len(named) > 1 or (named and any(environ.get(name) for name in NAMELESS)):
        what = f"session unclear: a client within a client, and {' and '.join(sorted(named))} may be the outer one's"
        raise Malformed(what, ELSE, code="no_session")
    found = next(iter(named), None)
    if found and is_shown(found):
        raise Malformed(f"a client's variable names a reserved session id: {found!r}", ELSE, code="no_session")
    return found


def are_told(session_id: str, environ: Mapping[str, str]) -> bool:
    """Return whether a session's commands will know their session, by the environment of its hook."""
    if any(environ.get(name) == session_id for name in HOOKS):
        return False
    return all(environ.get(name) in (None, "", session_id) for name in (*SESSIONS, *NAMELESS))
