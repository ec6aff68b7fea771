"""The version of a client on this machine, and which of our hooks it knows.

Belongs here: asking the program itself. A client that cannot be asked counts as new, as those that tests run.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from ...store.files import programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...known_clients.known_client import KnownClient, Wanted

_PATIENCE = 10.0
"""Seconds that a client may take to say its version."""


def fitting_hooks(client: KnownClient, environ: Mapping[str, str]) -> Sequence[Wanted]:
    """Return the hooks, each on the event that the client's version on the ``PATH`` has for it, or on none.

    An older version may take no settings at all that name an event which it does not know."""
    hooks = client.hooks()
    if not any(wanted.since for wanted in hooks):
        return hooks
    if (version := _read_version(client.program, environ)) is None:
        return hooks
    return [one.replace(on=one.other, event=one.other, other=one.on) if version < one.since else one for one in hooks]


def _read_version(program: str, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    path = shutil.which(program, path=environ.get("PATH", ""))
    if path is None:
        return None
    try:
        told = programs.ask([path, "--version"], _PATIENCE, environ=environ)
    except OSError:
        return None
    found = re.search(rb"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", told.out)
    return tuple(int(part) for part in found.groups()) if found else None
