"""The person's own configuration: settings that name a program, a network or a permission. No mailbox may say these.

Belongs here: what there is to set, and its defaults (``config_file`` reads it). A mailbox's own file comes with a
checkout and can be written by whoever works there; this one is outside every project. It is read only where a setting
of it counts.
"""

from __future__ import annotations

from .core.records import Record
from .store import system, user_state
from .store.paths import CONFIG, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class OwnConfig(Record):
    """The person's settings for all mailboxes, or for one. ``swarm`` is the gateway's (``swarm.swarm_settings``)."""

    control_default: str = "deny"
    cleanup: tuple[str, ...] = ()
    bridge: bool = False
    swarm: Mapping[str, Any] = {}


def place() -> str:
    """Return where the person's configuration is."""
    return system.join(user_state.configuration_of_process(), CONFIG)


def load(mailbox: str) -> OwnConfig:
    """Return what the person says for this mailbox; raises ``BadData`` that names the file and the key."""
    path = place()
    try:
        fd = open_file(path, system.O_RDONLY)
    except FileNotFoundError:
        return OwnConfig()
    from . import config_file  # as for a mailbox's own

    return OwnConfig(**config_file.read_own(fd, path, mailbox))


def misplaced(key: str) -> str:
    """Return what is told of a key of this configuration that is in a mailbox's."""
    return f"{key} does not count in a mailbox's file: take it out, and set it in {place()}"
