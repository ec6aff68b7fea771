"""Loading ahead what a process that runs long will need.

Belongs here: importing whole rooms at once. The program imports much only when it needs it. Behind an upgrade it would
find parts of another version, or none: an act would fail after it has written.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

ROOMS = ("config", "core", "store", "mailbox", "identity", "control_plane", "control", "permissions", "upkeep", "cli")
"""The rooms that every door uses."""


def load_rooms(*doors: str) -> None:
    """Import every module of ``ROOMS`` and of these doors. One that lacks an extra is left out, as it is later."""
    package = __name__.partition(".")[0]
    for room in (*ROOMS, *doors):
        name = f"{package}.{room}"
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            try:
                import_module(module.name)
            except ImportError:
                continue
