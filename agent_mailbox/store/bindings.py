"""The sessions that a lead or a policy binds, from the user's own records.

Belongs here: reading them. ``stamps`` writes them.
"""

from __future__ import annotations

from . import system
from .custody import content
from .paths import storage_failed
from .stamps import BOUND


def here(state: str, directory: str) -> list[str]:
    """Return the sessions that are bound in the mailbox; raise ``StorageFailed`` if that cannot be told."""
    bound = system.join(state, BOUND)
    try:
        names = sorted(system.listdir(bound))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_failed("look through", bound, error) from None
    place = system.encoded(directory)
    return [name for name in names if place in (content(system.join(bound, name)) or b"").split(b"\n")]
