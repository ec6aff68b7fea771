"""The place of a new mailbox, and what speaks against making one there.

Belongs here: where ``init`` and ``restore`` make it, which mailbox covers that place already, who may make one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.text import typed
from ..errors import Malformed, NotFound, Refused
from ..identity import callers
from ..mailbox.open_mailbox import working_directory
from ..store.files import paths, system

if TYPE_CHECKING:
    from .context import Context


def in_git(start: str) -> str:
    """Return the mailbox path in the repository around a directory; raises ``NotFound`` if there is none."""
    here = os.path.realpath(start)
    while (common := paths.common_directory(here)) is None:
        if here == os.path.dirname(here):
            raise NotFound(f"not in a git repository: {start}", "run `git init` first, or leave --git out")
        here = os.path.dirname(here)
    return os.path.join(common, paths.IN_GIT)


def wanted_place(app: Context) -> str:
    """Return where to make a mailbox: the place named, else ``data/`` of the repository's main worktree, which all its
    worktrees share, else ``data/`` here.

    If the repository's own directory has one, that is it: commands find no other there. Raises ``Malformed`` for an
    empty name.
    """
    if app.directory == "":
        raise Malformed("--dir is empty", "name the directory for the mailbox, or leave it out")
    named = app.directory or app.environ.get("AGENT_MAILBOX_DIR")
    if named:
        return named
    here = working_directory()
    common = paths.common_directory(here)
    if common is not None and paths.is_mailbox(inside := os.path.join(common, paths.IN_GIT)):
        return inside
    return os.path.join(paths.main_worktree(here) or here, paths.DATA)


def meant_place(app: Context, where: str | None, in_git_of: bool) -> str:
    """Return the place that ``init`` is about: ``where`` (default: see ``wanted_place``), or the repository around
    it."""
    return in_git(where or working_directory()) if in_git_of else where or wanted_place(app)


def covering_mailbox(place: str) -> str | None:
    """Return the mailbox that the sessions use which would find a new one at ``place``; None if they have none.

    Another user's is none: its mail is not theirs to read. Nor is one above a place where the person made one before.
    """
    real = os.path.realpath(place)
    if paths.recorded(real, system.environment()):
        return None
    found = paths.find(paths.project_of(real))
    if found is None or found == real or paths.strays(found, system.environment()) is not None:
        return None
    return found if system.stat(found).st_uid == system.geteuid() else None


def refuse_second(place: str, again: str) -> None:
    """Raise ``Refused`` if a mailbox covers the place: the mail of one project would go to two. ``again``: the command
    that makes another all the same."""
    real = os.path.realpath(place)
    if real in (os.sep, f"{os.sep}{paths.DATA}"):
        raise Refused(
            f"a mailbox at {real} is that of every directory on this machine",
            f"name a project's: `agent-mailbox init ~/project/data`; `{again}` makes it all the same",
            code="covered",
        )
    found = covering_mailbox(place)
    if found is not None:
        raise Refused(
            f"the mailbox {found} covers this place already",
            f"use it: every command finds it from here. A second one splits the mail: `{again}` makes it",
            code="covered",
        )


def refuse_session(app: Context, place: str) -> None:
    """Raise ``Refused`` if an agent makes a mailbox: whether a project has one is the person's to decide."""
    if app.is_session:
        raise Refused(
            "only the person makes a mailbox, and this is a process of an agent's client",
            for_the_person(place),
            code=callers.NOT_THE_PERSON,
        )


def for_the_person(place: str, options: str = "") -> str:
    """Return the hint of a refused ``init``: the person's command."""
    real = os.path.realpath(place)
    return (
        f"nothing to do here without one; the person runs `agent-mailbox init {options}{typed(real)}`"
        f" at a terminal of their own, if the sessions in {os.path.dirname(real)} are to have mail"
    )
