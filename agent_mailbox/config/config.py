"""Configuration: read once, frozen. Each setting is optional, and so is the file, which ``config_file`` reads.

Belongs here: the settings and their defaults.
"""

from __future__ import annotations

from ..core.address import DEFAULT_TTL, NAMESPACES
from ..core.records import Record
from ..errors import StorageFailed
from ..store.files import system
from ..store.files.paths import CONFIG
from ..store.files.small_files import open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .config_file import Fault


class Config(Record):
    """The settings of a mailbox. TTLs are in hours (None: no expiry), sizes in bytes, budgets in tokens of four
    characters, waiting in seconds.

    ``swarm`` has the gateway's settings that the file sets (``swarm.swarm_settings``). ``misplaced`` are keys of the
    file that have no effect: they count in the person's own configuration alone (``own_config``). ``faults`` are what
    else of the file does not count. ``stamp`` identifies the file, for programs that derive something from it.
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
    task_silent: float = 15
    swarm: Mapping[str, Any] = {}
    misplaced: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    stamp: tuple[int, ...] = ()


_DEFAULTS = Config()
"""The configuration of a mailbox without a file."""


def load_config(directory: str) -> Config:
    """Return the mailbox's configuration. Whatever is wrong in it does not count, and is among its faults."""
    path = f"{directory}/{CONFIG}"
    try:
        fd = open_file(path, system.O_RDONLY)
    except FileNotFoundError:
        return _DEFAULTS
    except StorageFailed as error:
        from . import config_file

        return Config(faults=config_file.fault_of_opening(error))
    from . import config_file  # 17 ms, for a mailbox that has one

    return Config(**config_file.read_config(fd))
