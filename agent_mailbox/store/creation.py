"""Making a mailbox, and the names of places.

Belongs here: steps done once for a mailbox or a session, with all of ``os`` at hand.
"""

from __future__ import annotations

import os

from ..errors import Refused
from . import bindings, custody, custody_setup, keys, system, user_state
from .paths import ARCHIVE, HEARTBEATS, MESSAGES, check_owner, main_worktree, recorded, storage_failed, trusted_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def repository(directory: str) -> str | None:
    """Return the name of the git repository that holds a directory (its main worktree's), or None outside one."""
    here = root(directory)
    return None if here is None else os.path.basename(main_worktree(here) or here)


def root(directory: str) -> str | None:
    """Return the top of the git worktree that holds a directory, or None outside one."""
    here = os.path.realpath(directory)
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def create(directory: str, environ: Mapping[str, str]) -> str:
    """Make ``directory`` a mailbox (idempotent), record it as the user's own, and return its real path."""
    if "\n" in directory:
        raise Refused(f"the path of a mailbox holds a line break: {directory!r}", "choose a directory without one")
    try:
        system.make_directory(directory, parents=0o755)
        directory = os.path.realpath(directory)
        for name in (HEARTBEATS, ARCHIVE):
            system.make_directory(os.path.join(directory, name))
        path = os.path.join(directory, MESSAGES)
        is_new = not os.path.lexists(path)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise storage_failed("make a mailbox at", directory, error) from None
    check_owner(directory)
    _record(directory, environ)
    if is_new:
        _forget(directory, environ)
    custody_setup.ensure(directory, environ)
    keys.make(user_state.directory(environ))  # a lost key too: its old seals prove nothing until adopted
    return directory


def _forget(directory: str, environ: Mapping[str, str]) -> None:
    """Begin a new record for a mailbox made in another's place, unless that one bound a session."""
    known = custody.find(directory, environ)
    if known is not None and not bindings.here(user_state.directory(environ), directory):
        custody_setup.remove(known.directory)


def _record(directory: str, environ: Mapping[str, str]) -> None:
    if recorded(directory, environ):
        return
    path = trusted_file(environ)
    try:
        system.make_directory(os.path.dirname(path), parents=0o755)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, os.fsencode(directory) + b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_failed("record the mailbox in", path, error) from None


def point(session_id: str, directory: str, environ: Mapping[str, str]) -> None:
    """Tell the shell guard which mailbox a session uses; if that fails, the guard just says "maybe"."""
    path = os.path.join(os.path.dirname(trusted_file(environ)), "sessions", session_id)
    try:
        system.make_directory(os.path.dirname(path), parents=0o755)
        aside = f"{path}.{os.getpid()}"
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(os.fsencode(os.path.realpath(directory)) + b"\n")  # as stamps name it (``stamps``)
        os.replace(aside, path)
    except OSError:
        pass
