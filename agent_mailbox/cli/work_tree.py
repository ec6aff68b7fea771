"""The work tree in which a command runs, in lines for whoever takes it over: its branch, and its changed files.

Belongs here: running git for that. A session's own command runs it, where the session may run it itself; no program of
a repository is started by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.text import clipped, neutral
from ..store.files import programs
from ..store.user_state import work_trees

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 40
"""Changed files that are named."""
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_STATUS = ("status", "--porcelain", "--no-renames", "--ignore-submodules=dirty", "-z")
_PATIENCE = 10
"""Seconds for git to look through a large tree."""


def describe_tree(directory: str) -> list[str]:
    """Return the lines; empty outside a work tree of git."""
    top = work_trees.top(directory)
    if top is None:
        return []
    branch = work_trees.branch(top)
    lines = [f"tree: {clipped(neutral(top), 500)}" + (f", on branch {neutral(branch)}" if branch else "")]
    try:
        done = programs.ask([*_GIT, "-C", top, *_STATUS], _PATIENCE)
    except OSError:
        done = None
    if done is None or done.code:
        return [*lines, "changed files: git does not tell them"]
    return [*lines, *_changed([name for name in done.out.decode("utf-8", "replace").split("\0") if name])]


def _changed(names: Sequence[str]) -> list[str]:
    if not names:
        return ["changed files: none"]
    more = [f"  {len(names) - MOST} more"] if len(names) > MOST else []
    return ["changed files:", *(f"  {clipped(neutral(name), 300)}" for name in names[:MOST]), *more]
