"""The person's own configuration: settings that name a program, a network or a permission. No mailbox may set these.

Belongs here: the settings and their defaults (``config_file`` reads them). A mailbox's own file comes with a checkout,
and anybody who works there can write it; this file is outside every project. It is read only when a setting of it
counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.records import Record
from ..errors import StorageFailed
from ..store.files import paths, system
from ..store.files.paths import CONFIG
from ..store.files.small_files import open_file
from . import config_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .config_file import Fault


class OwnConfig(Record):
    """The person's settings for all mailboxes, or for one. ``swarm`` is the gateway's (``swarm.swarm_settings``),
    ``notify``, ``wake`` and ``up`` have the keys of these tables that are set (``upkeep.notify``, ``upkeep.waker``,
    ``commands.up_command``). ``faults``
    are what of the file does not count."""

    control_default: str = "deny"
    cleanup: tuple[str, ...] = ()
    bridge: bool = False
    lease_enforce: bool = False
    notify: Mapping[str, Any] = {}
    wake: Mapping[str, Any] = {}
    up: Mapping[str, Any] = {}
    swarm: Mapping[str, Any] = {}
    faults: tuple[Fault, ...] = ()


def own_config_path() -> str:
    """Return the path of the person's configuration."""
    return system.join(paths.configuration_directory(system.environment()), CONFIG)


def load_own_config(mailbox: str) -> OwnConfig:
    """Return the person's settings for this mailbox. Whatever is wrong does not count, and is among the faults; what
    decides is closed then."""
    try:
        table, faults = config_file.read_table(open_file(own_config_path(), system.O_RDONLY))
    except FileNotFoundError:
        return OwnConfig()
    except StorageFailed as error:
        table, faults = {}, config_file.fault_of_opening(error)
    return OwnConfig(**config_file.parse_own(table, mailbox, faults))


def misplaced_warning(key: str) -> str:
    """Return the warning about a key of this configuration that is in a mailbox's."""
    return f"{key} has no effect in a mailbox's file: take it out, and set it in {own_config_path()}"
