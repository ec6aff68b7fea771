"""The mailbox's own files in its directory, which may hold those of a project, too.

Belongs here: their names, and what git is to pass by.
"""

from __future__ import annotations

from ...core import attachments
from ..files import system
from ..files.paths import CACHE, CONFIG, GITIGNORE, HEARTBEATS
from ..files.small_files import make_file

_NAMES = (CACHE, CONFIG, attachments.DIRECTORY)
_BEGINNINGS = ("agent-mailbox", "agent-roster.", HEARTBEATS)


def is_own_file(name: str) -> bool:
    """Return whether a name in a mailbox's directory is of the mailbox."""
    return name in _NAMES or name.startswith(_BEGINNINGS)


def hide_from_git(directory: str) -> None:
    """Have git pass by a new mailbox: all of its directory, or only its own files beside those of a project. A
    ``.gitignore`` that is there stays as it is."""
    rules = ["*\n"]
    if not all(map(is_own_file, system.listdir(directory))):
        rules = [f"/{name}\n" for name in (*(f"{name}*" for name in _BEGINNINGS), *_NAMES, GITIGNORE)]
    make_file(system.join(directory, GITIGNORE), "".join(rules).encode())
