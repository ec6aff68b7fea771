"""The place of the user's own records, outside every project: the key, the list of mailboxes, the bound sessions.

Belongs here: that one place. These records decide, so a false environment must not move them: the place follows from
the password database. No variable moves it; ``HOME`` counts only where that database lacks the user, as in some
containers.
"""

from __future__ import annotations

from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

BOUND = "bound"


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the user's records; it need not exist."""
    return _place(environ, ".local", "state")


def configuration(environ: Mapping[str, str]) -> str:
    """Return the directory of the person's own configuration; it need not exist."""
    return _place(environ, ".config")


def _place(environ: Mapping[str, str], *below: str) -> str:
    home = system.home() or environ.get("HOME") or "/"
    return system.join(home, *below, "agent-mailbox")


def of_process() -> str:
    """Return the directory of the user's records as this process's own environment has it."""
    return directory(_environment())


def configuration_of_process() -> str:
    """Return the directory of the person's configuration, likewise."""
    return configuration(_environment())


def _environment() -> dict[str, str]:
    return {"HOME": system.environ.get(b"HOME", b"").decode("utf-8", "surrogateescape")}


def bound_somewhere(state: str) -> bool:
    """Return whether any session of this user is bound, in any mailbox: it has a file in ``bound/``."""
    return bool(bound_sessions(state))


def bound_sessions(state: str) -> list[str]:
    """Return the sessions of this user that are bound in any mailbox; one of no name if nobody can tell."""
    try:
        return sorted(system.listdir(system.join(state, BOUND)))
    except FileNotFoundError:
        return []
    except OSError:
        return [""]  # what binds holds


def is_bound(state: str, session_id: str) -> bool:
    """Return whether that session is bound, as far as anybody can tell."""
    bound = system.join(state, BOUND)
    try:
        system.lstat(system.join(bound, session_id))
    except (FileNotFoundError, ValueError):
        # A link to nowhere in the place of a directory tells of nobody that it is free.
        return any(system.exists(path) and not system.is_directory(path) for path in (bound, state))
    except OSError:
        pass  # what binds holds
    return True
