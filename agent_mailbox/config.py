"""Configuration: read once, frozen. Everything in it is optional, and so is the file (``config_file`` reads it).

Belongs here: what there is to configure, and its defaults.
"""

from __future__ import annotations

from .core.address import NAMESPACES
from .core.expiry import DEFAULT_TTL
from .core.records import Record
from .store import system
from .store.paths import CONFIG, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Config(Record):
    """What a mailbox may set. TTLs in hours (None: no expiry); sizes in bytes; budgets in tokens of four characters;
    waiting in seconds.

    ``swarm`` is the gateway's (``swarm.swarm_settings``): what of it is set. ``misplaced`` are keys that count in the
    person's own configuration alone (``own_config``), and that this file holds for nothing.
    ``stamp`` identifies the file this was read from, for whoever derives something from it.
    """

    ttls: Mapping[str, float | None] = DEFAULT_TTL
    namespaces: tuple[str, ...] = NAMESPACES
    max_live: int = 1000
    max_content: int = 64 * 1024
    long_words: int = 500
    max_per_minute: int | None = None
    freeze_after_hours: float = 24
    retire_after_days: float = 7
    session_role: str | None = None
    session_tags: tuple[str, ...] = ()
    hook_tokens: int = 1000
    doorbell: bool = True
    control_timeout: float = 300
    swarm: Mapping[str, Any] = {}
    misplaced: tuple[str, ...] = ()
    stamp: tuple[int, ...] = ()


def load(directory: str) -> Config:
    """The mailbox's configuration; raises ``BadData`` naming the file and key that is wrong."""
    path = system.join(directory, CONFIG)
    try:
        fd = open_file(path, system.O_RDONLY)
    except FileNotFoundError:
        return Config()
    from . import config_file  # 17 ms, paid only by a mailbox that has one

    return Config(**config_file.read(fd, path))
