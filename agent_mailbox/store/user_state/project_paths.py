"""The place of a file in its project: the repository, and the path from the top of its worktree.

Belongs here: finding it. It is the same from each worktree of a repository, and by whatever links and ``..`` a path is
written. Files in no repository have the root as their project.
"""

from __future__ import annotations

import re

from ...core.control import lease_paths
from ...core.control.lease_paths import OUTSIDE
from ...core.records import Record
from ..files import system
from ..files.paths import common_directory, worktree_of
from . import work_trees

_MOST = 20
"""Paths of one text that are looked up."""
_WORD = re.compile(r"(?<![\w/.:@-])(?:\./)?[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*/?(?![\w/]|:/)")


class ProjectPath(Record):
    """A file, or a pattern of files, of a project. ``real`` is its path here, without links."""

    project: str
    path: str
    real: str


def of(written: str, base: str) -> ProjectPath:
    """Return the place of a path that need not exist. Links are followed up to its first wildcard. ``base`` is the
    directory that a relative path starts from."""
    names = system.join(base, written).split("/")
    wild = next((at for at, name in enumerate(names) if lease_paths.is_wild(name)), len(names))
    real = system.real_path("/".join(names[:wild]) or "/")
    rest = [name for name in names[wild:] if name]
    here = work_trees.top(real if rest or system.is_directory(real) else system.dirname(real))
    common = None if here is None else common_directory(here)
    project, top = (OUTSIDE, "/") if here is None else (worktree_of(common) or common or here, here)
    inside = real.removeprefix(top.rstrip("/")).strip("/")
    return ProjectPath(project, "/".join([*([inside] if inside else []), *rest]), "/".join([real.rstrip("/"), *rest]))


def named_in(text: str, top: str) -> list[str]:
    """Return the files and directories of a work tree, by its top, that a text names, as paths from there."""

    def is_there(name: str) -> bool:
        path = system.join(top, name)
        return system.exists(path) and ("/" in name or not system.is_directory(path))

    return [name for name in _find_paths(text) if is_there(name)]


def _find_paths(text: str) -> list[str]:
    """Return the words of a text that may be the path of a file or directory within a project, each once."""
    found = (match.group().rstrip(".") for match in _WORD.finditer(text))
    likely = (word.removeprefix("./") for word in found if "/" in word or "." in word.strip("."))
    return list(dict.fromkeys(word for word in likely if ".." not in word.split("/")))[:_MOST]


def is_blind(path: str) -> bool:
    """Return whether the file system at a real path takes names that differ by case as one, as on macOS."""
    while not system.exists(path) or not any(map(str.isalpha, system.basename(path))):
        if path == system.dirname(path):
            return False
        path = system.dirname(path)
    other = system.join(system.dirname(path), system.basename(path).swapcase())
    try:
        return system.is_same(system.lstat(other), system.lstat(path))
    except (OSError, ValueError):
        return False
