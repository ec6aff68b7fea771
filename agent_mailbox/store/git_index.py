"""The paths that git tracks, read from the repository's index: git itself may run a stranger's commands.

Belongs here: finding that index, and a path in it (git's ``index-format``, versions 2 and 3). Version 4 compresses
paths: none is found there.
"""

from __future__ import annotations

import os

from .paths import main_worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def tracked(directory: str, names: Iterable[str]) -> list[str]:
    """Return the names in the directory that its git repository tracks; none if there is no repository."""
    directory = os.path.realpath(directory)
    root = directory
    while not os.path.lexists(os.path.join(root, ".git")):
        if root == os.path.dirname(root):
            return []
        root = os.path.dirname(root)
    try:
        with open(os.path.join(_gitdir(root), "index"), "rb") as file:
            index = file.read()
    except OSError:
        return []
    inside = os.path.relpath(directory, root)
    return [name for name in names if _holds(index, os.fsencode(os.path.normpath(os.path.join(inside, name))))]


def _gitdir(root: str) -> str:
    """Return the repository's own directory: ``.git``, or the target of a linked worktree's ``.git`` file."""
    path = os.path.join(root, ".git")
    if main_worktree(root) is None or os.path.isdir(path):
        return path
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return os.path.join(root, file.readline().strip().removeprefix("gitdir:").strip())


def _holds(index: bytes, path: bytes) -> bool:
    """Return whether the index has an entry of that path: its length precedes it, in the lower twelve bits of two
    bytes."""
    place = index.find(path + b"\0")
    while place >= 2:
        if int.from_bytes(index[place - 2 : place], "big") & 0xFFF in (min(len(path), 0xFFF), 0):
            return True
        place = index.find(path + b"\0", place + 1)
    return False
