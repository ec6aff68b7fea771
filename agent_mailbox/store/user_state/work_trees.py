"""Work trees of git, and which sessions of this machine work in one.

Belongs here: a tree's top and branch, read from its files without git; the trees in which living sessions started, as
their clients told it.
"""

from __future__ import annotations

from ..files import system
from ..files.paths import main_worktree
from ..files.small_files import read_if_possible
from . import processes

BESIDE = "beside"
"""Among the user's own records: a file for each session beside which others work."""
_HEAD = "ref: refs/heads/"
_SHORT = 10
"""Characters of a commit that are shown where no branch is."""


def top(directory: str) -> str | None:
    """Return the top of the work tree that holds a directory, without links; None outside one, and for no directory."""
    here, above = "", system.real_directory(directory) if directory else ""
    while here != above:
        here, above = above, system.dirname(above)
        if system.exists(system.join(here, ".git")):
            return here
    return None


def repository(directory: str) -> str | None:
    """Return the name of the repository that holds a directory (its main work tree's), or None outside one."""
    here = top(directory or ".")
    return None if here is None else system.basename(main_worktree(here) or here)


def branch(tree: str) -> str:
    """Return the branch of a tree by its top, or the commit that it is on; empty if its files do not tell."""
    head = _line(system.join(git_directory(tree), "HEAD"))
    return head.removeprefix(_HEAD) if head.startswith(_HEAD) else head[:_SHORT] if head.isalnum() else ""


def git_directory(tree: str) -> str:
    """Return where git keeps what is a tree's own, by its top: ``.git``, or what the file of that name points to."""
    place = system.join(tree, ".git")
    pointer = _line(place, "surrogateescape") if not system.is_directory(place) else ""
    return system.join(tree, pointer.removeprefix("gitdir:").strip()) if pointer.startswith("gitdir:") else place


def _line(path: str, errors: str = "replace") -> str:
    return (read_if_possible(path) or b"").decode("utf-8", errors).partition("\n")[0].strip()


def mark_of(session_id: str, state: str) -> str:
    """Return the path of the mark beside which the shim asks us before a command of git: other sessions work, too."""
    return f"{state}/{BESIDE}/{session_id}"


def tree_of(session_id: str, state: str) -> str | None:
    """Return the tree in which a session works, as its start told; None if it told none."""
    where = processes.find_whereabouts(session_id, state)
    return None if where is None else top(where.directory)
