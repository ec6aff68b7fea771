"""The paths that git tracks, read from the repository's index: git itself may run a stranger's commands.

Belongs here: finding a path in that index (git's ``index-format``, versions 2 and 3). Version 4 compresses paths: none
is found there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...store.files import system
from ...store.user_state import work_trees

if TYPE_CHECKING:
    from collections.abc import Iterable


def tracked_names(directory: str, names: Iterable[str]) -> list[str]:
    """Return the names in the directory that its git repository tracks; none if there is no repository."""
    directory = system.real_path(directory)
    root = work_trees.top(directory)
    if root is None:
        return []
    try:
        with system.stream(system.join(work_trees.git_directory(root), "index"), "rb") as file:
            index = file.read()
    except OSError:
        return []
    inside = directory[len(root) :].lstrip("/")
    return [name for name in names if _has_entry(index, system.encoded(system.join(inside, name)))]


def _has_entry(index: bytes, path: bytes) -> bool:
    """Return whether the index has an entry of that path: its length precedes it, in the lower twelve bits of two
    bytes."""
    place = index.find(path + b"\0")
    while place >= 2:
        if int.from_bytes(index[place - 2 : place], "big") & 0xFFF in (min(len(path), 0xFFF), 0):
            return True
        place = index.find(path + b"\0", place + 1)
    return False
