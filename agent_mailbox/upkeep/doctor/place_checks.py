"""Check the mailbox's place: its owner and modes, its file system, git, its configuration.

Belongs here: everything about the files except their content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import config, own_config
from ...core.findings import CHMOD, Problem
from ...core.text import typed
from ...space import space_words
from ...store.files import mounts, paths, system
from ...store.user_state import own_files, work_trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ...mailbox.mailbox import Mailbox


def check_place(mailbox: Mailbox, environ: Mapping[str, str] | None) -> Iterator[Problem]:
    """Yield the problems of the place; without ``environ``, do not check which user made the mailbox."""
    yield from _check_reach(mailbox)
    said, file = config.load_config(mailbox.directory), mailbox.logs.path(paths.CONFIG)
    for key in said.misplaced:
        yield Problem(file, None, own_config.misplaced_warning(key))
    for fault in said.faults:
        yield Problem(file, None, fault.text, note=fault.note)
    for fault in own_config.load_own_config(mailbox.directory).faults:
        yield Problem(own_config.own_config_path(), None, fault.text, note=fault.note)
    doubt = mounts.doubt(mailbox.directory)
    if doubt is not None:
        yield Problem(mailbox.directory, None, doubt, note=True)
    logs = (paths.MESSAGES, paths.READS, paths.ROSTER)
    for name in _tracked_names(mailbox.directory, logs):
        what = "git tracks it: your mail leaves with the repository, and a clone brings a stranger's"
        yield Problem(
            mailbox.logs.path(name), None, f"{what}; run `git rm --cached` on it, and add the mailbox to .gitignore"
        )
    if environ is not None and not paths.recorded(mailbox.directory, environ):
        what = "your records name no init of it, so hooks ignore it; if you trust it, run"
        yield Problem(mailbox.directory, None, f"{what} `agent-mailbox init {typed(mailbox.directory)}`", note=True)
    if environ is not None and (moved := space_words.describe_move(mailbox.logs, environ)):
        yield Problem(mailbox.directory, None, moved, note=True)


def _check_reach(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield the mailbox's files and directories that belong to others, or that others may reach.

    Its directory may be readable: it may be a project's, whose own files are nothing of the mailbox's. Others cannot
    reach what is below a directory that they cannot enter.
    """
    me, closed_off = system.geteuid(), set[str]()
    for directory, files in _own_tree(mailbox.directory):
        if system.dirname(directory) in closed_off or not system.lstat(directory).st_mode & 0o011:
            closed_off.add(directory)
        closed = 0o022 if directory == mailbox.directory else 0o077
        names = (system.join(directory, name) for name in files)
        for path, forbidden in [(directory, closed), *((name, 0o077) for name in names)]:
            try:
                there = system.lstat(path)
            except OSError:
                continue
            mode, is_closed = there.st_mode & 0o7777, system.dirname(path) in closed_off
            if there.st_uid != me:
                what = f"belongs to another user (uid {there.st_uid}): run `sudo chown {me} {typed(path)}`"
                yield Problem(path, None, f"{what}, or move it away")
            elif mode & forbidden and not is_closed and there.st_mode & system.S_IFMT != system.S_IFLNK:
                yield Problem(path, None, f"open to other users: mode {mode:04o}", CHMOD)


def _own_tree(directory: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the mailbox's directory with the files of the mailbox in it, and those below it."""
    ours, settings = own_files.sure_paths(directory), system.join(directory, paths.CONFIG)
    if paths.is_there(settings) and (system.lstat(settings).st_mode & 0o022 or not own_files.is_shared(directory)):
        ours.append(settings)  # one that others only read may be the project's
    below = [path for path in ours if system.is_own_directory(path)]
    yield directory, [path for path in ours if path not in below]
    for path in below:
        yield from system.tree(path)


def _tracked_names(directory: str, names: Iterable[str]) -> list[str]:
    """Return the names in the directory that its git repository tracks; none if there is no repository.

    Git itself may run a stranger's commands, so its index is read (``index-format``, versions 2 and 3). Version 4
    compresses paths: none is found there."""
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
