"""Names inside a mailbox directory, and how the directory is found.

Belongs here: where things are and whom they belong to. A directory is a mailbox if it holds ``agent-mailbox.jsonl``;
only ``create`` makes one. Since a cloned repository may ship such a directory, ``create`` also records it in the
user's state directory, and hooks read only what is recorded there or named outright (``recorded``).
"""

from __future__ import annotations

import os
import stat

from ..errors import NoMailbox, Refused, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGES = "agent-mailbox.jsonl"
READS = "agent-mailbox-reads.jsonl"
ROSTER = "agent-roster.jsonl"
HEARTBEATS = "agent-heartbeats"
ARCHIVE = "agent-mailbox-archive"
CONFIG = "config.toml"
CACHE = ".cache"
DATA = "data"


def storage_failed(action: str, path: str, error: OSError) -> StorageFailed:
    """The error for a failed system call on a mailbox file."""
    reason = error.strerror or str(error)
    hints = {
        "ELOOP": "it is a symbolic link; mailbox files must be regular files: move the target here",
        "EISDIR": "a directory stands where a file should be: move it away",
        "EACCES": "check the owner and mode of the mailbox (directories 0700, files 0600)",
        "EROFS": "the file system is read-only",
        "ENOSPC": "free some space, then repeat the command",
        "EDQUOT": "free some space, then repeat the command",
    }
    import errno  # only for the name of a failure

    return StorageFailed(f"cannot {action} {path}: {reason}", hints.get(errno.errorcode.get(error.errno or 0, ""), ""))


def is_mailbox(directory: str) -> bool:
    """Does the directory hold a messages log (whatever kind of file stands there)?"""
    return os.path.lexists(os.path.join(directory, MESSAGES))


def find(start: str) -> str | None:
    """The nearest mailbox from ``start`` upwards: a directory itself, or its ``data/``.

    At the root of a linked git worktree the main worktree's root stands in for it, so that every worktree of a
    repository finds the same mailbox (git's ``gitrepository-layout``: ``gitdir`` and ``commondir``).
    """
    here = os.path.realpath(start)
    while True:
        for root in dict.fromkeys([main_worktree(here) or here, here]):
            for candidate in (root, os.path.join(root, DATA)):
                if is_mailbox(candidate):
                    return candidate
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def main_worktree(directory: str) -> str | None:
    """The root of the main worktree if ``directory`` is the root of a linked one; else None."""
    gitdir = _one_line(os.path.join(directory, ".git"))
    if gitdir is None or not gitdir.startswith("gitdir:"):
        return None
    gitdir = os.path.join(directory, gitdir.removeprefix("gitdir:").strip())
    common = _one_line(os.path.join(gitdir, "commondir"))
    if common is None:
        return None
    common = os.path.realpath(os.path.join(gitdir, common))
    return os.path.dirname(common) if os.path.basename(common) == ".git" else None


def repository(directory: str) -> str | None:
    """The name of the git repository a directory is in (its main worktree's), or None outside one."""
    here = os.path.realpath(directory)
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return os.path.basename(main_worktree(here) or here)
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def _one_line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline(4096).strip()
    except (OSError, ValueError):
        return None


def create(directory: str, environ: Mapping[str, str]) -> str:
    """Make ``directory`` a mailbox (idempotent), record it as the user's own, and return its real path."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        directory = os.path.realpath(directory)
        for name in (HEARTBEATS, ARCHIVE):
            os.makedirs(os.path.join(directory, name), mode=0o700, exist_ok=True)
        path = os.path.join(directory, MESSAGES)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise storage_failed("make a mailbox at", directory, error) from None
    check_owner(directory)
    _record(directory, environ)
    return directory


def check(directory: str) -> str:
    """The real path of a mailbox that may be used; raises ``NoMailbox``, or ``Refused`` if it is someone else's."""
    real = os.path.realpath(directory)
    if not is_mailbox(real):
        raise NoMailbox(f"no mailbox at {directory}", f"`agent-mailbox init {directory}` makes one")
    check_owner(real)
    return real


def check_owner(directory: str) -> None:
    """Refuse a mailbox whose directory or messages log belongs to another user."""
    for path in (directory, os.path.join(directory, MESSAGES)):
        try:
            owner = os.stat(path, follow_symlinks=False).st_uid
        except OSError as error:
            raise storage_failed("look at", path, error) from None
        if owner != os.geteuid():
            raise Refused(
                f"the mailbox {directory} belongs to another user (uid {owner})",
                "mail there is not yours to read; `agent-mailbox init` makes your own",
            )


def _state_file(environ: Mapping[str, str]) -> str:
    state = environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(state):
        state = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "agent-mailbox", "mailboxes")


def recorded(directory: str, environ: Mapping[str, str]) -> bool:
    """Did this user's ``init`` record the mailbox? (XDG_STATE_HOME/agent-mailbox/mailboxes, a real path a line)"""
    try:
        with open(_state_file(environ), encoding="utf-8", errors="surrogateescape") as file:
            return directory in file.read().split("\n")
    except OSError:
        return False


def _record(directory: str, environ: Mapping[str, str]) -> None:
    if recorded(directory, environ):
        return
    path = _state_file(environ)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, os.fsencode(directory) + b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_failed("record the mailbox in", path, error) from None


def open_file(path: str, flags: int) -> int:
    """A descriptor of a regular mailbox file, made 0600 where ``flags`` say so; never through a link, never a FIFO.

    Raises ``FileNotFoundError`` as it is, everything else as ``StorageFailed``.
    """
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_failed("open", path, error) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StorageFailed(f"{path} is not a regular file", "move away what stands there")
    return fd
