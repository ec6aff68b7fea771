"""The place of the user's own records, outside every project: the key, the list of mailboxes, the bound sessions.

Belongs here: that one place. These records decide, so a false environment must not move them: the place follows from
the password database, not from ``HOME`` or ``XDG_STATE_HOME``. Tests name another by ``SWITCH``; seals made there bear
another key, whatever the directory holds (``store.keys``).
"""

from __future__ import annotations

from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "AGENT_MAILBOX_TEST_STATE"
"""The variable by which tests keep the records of a run apart: an absolute path."""
AS_SAID = "as-said"
CALLER = "AGENT_MAILBOX_TEST_CALLER"
"""The variable by which tests make every caller the one it claims to be; it counts only beside ``SWITCH``."""
_READ = (SWITCH, "HOME")

BOUND = "bound"


def is_switched(environ: Mapping[str, str]) -> bool:
    """Return whether the records are a test's."""
    return environ.get(SWITCH, "").startswith("/")


def is_as_said(environ: Mapping[str, str]) -> bool:
    """Return whether every caller is the one it claims to be: only in a test, whose records prove nothing elsewhere."""
    return environ.get(CALLER) == AS_SAID and is_switched(environ)


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the user's records; it need not exist."""
    return _place(environ, ".local", "state")


def configuration(environ: Mapping[str, str]) -> str:
    """Return the directory of the person's own configuration; it need not exist."""
    return _place(environ, ".config")


def _place(environ: Mapping[str, str], *below: str) -> str:
    if is_switched(environ):
        return environ[SWITCH].rstrip("/") or "/"
    home = system.home() or environ.get("HOME") or "/"
    return system.join(home, *below, "agent-mailbox")


def of_process() -> str:
    """Return the directory of the user's records as this process's own environment has it."""
    return directory(_environment())


def configuration_of_process() -> str:
    """Return the directory of the person's configuration, likewise."""
    return configuration(_environment())


def _environment() -> dict[str, str]:
    return {name: system.environ.get(name.encode(), b"").decode("utf-8", "surrogateescape") for name in _READ}


def bound_somewhere(state: str) -> bool:
    """Return whether any session of this user is bound, in any mailbox: it has a file in ``bound/``."""
    try:
        return bool(system.listdir(system.join(state, BOUND)))
    except FileNotFoundError:
        return False
    except OSError:
        return True  # nobody can tell, and what binds holds


def is_bound(state: str, session_id: str) -> bool:
    """Return whether that session is bound, as far as anybody can tell."""
    try:
        system.lstat(system.join(state, BOUND, session_id))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        pass  # what binds holds
    return True
