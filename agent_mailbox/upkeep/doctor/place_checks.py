"""Looking at where the mailbox is: whose it is, who else may reach it, what kind of place it stands in.

Belongs here: modes, owners, file systems, git, the configuration. Not what the files say.
"""

from __future__ import annotations

import os
import stat

from ... import config, own_config
from ...errors import MailboxError
from ...store import mounts, paths
from ...store.git_index import tracked
from .findings import CHMOD, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...mailbox.facade import Mailbox


def examine(mailbox: Mailbox, environ: Mapping[str, str] | None) -> Iterator[Problem]:
    """Everything wrong with the place; without ``environ`` nobody asks who made the mailbox."""
    yield from _reach(mailbox)
    try:
        said = config.load(mailbox.directory)
        for key in said.misplaced:
            yield Problem(mailbox.logs.path(paths.CONFIG), None, own_config.misplaced(key))
    except MailboxError as error:
        file = mailbox.logs.path(paths.CONFIG)
        yield Problem(file, None, f"{error.what.removeprefix(f'{file}: ')}; {error.hint}".removesuffix("; "))
    try:
        own_config.load(mailbox.directory)
    except MailboxError as error:
        file = own_config.place()
        yield Problem(file, None, f"{error.what.removeprefix(f'{file}: ')}; {error.hint}".removesuffix("; "))
    doubt = mounts.doubt(mailbox.directory)
    if doubt is not None:
        yield Problem(mailbox.directory, None, doubt, note=True)
    logs = (paths.MESSAGES, paths.READS, paths.ROSTER)
    for name in tracked(mailbox.directory, logs):
        what = "git tracks it: your mail would go where the repository goes, and what a clone brings is a stranger's"
        yield Problem(mailbox.logs.path(name), None, f"{what}; `git rm --cached` it and ignore the mailbox")
    if environ is not None and not paths.recorded(mailbox.directory, environ):
        what = (
            "your `agent-mailbox init` did not make it, so hooks pass it by; if it is yours, run `agent-mailbox init`"
        )
        yield Problem(mailbox.directory, None, f"{what} on it", note=True)


def _reach(mailbox: Mailbox) -> Iterator[Problem]:
    """Files and directories of others, or that others may reach; the mailbox directory itself may be one that was
    there before."""
    me = os.geteuid()
    for directory, _, files in os.walk(mailbox.directory):
        closed = 0o022 if directory == mailbox.directory else 0o077
        names = (os.path.join(directory, name) for name in files if not name.startswith(".git"))
        for path, forbidden in [(directory, closed), *((name, 0o077) for name in names)]:
            try:
                there = os.lstat(path)
            except OSError:
                continue
            mode = stat.S_IMODE(there.st_mode)
            if there.st_uid != me:
                what = f"belongs to another user (uid {there.st_uid}): have it given to you, or move it away"
                yield Problem(path, None, what)
            elif mode & forbidden and not stat.S_ISLNK(there.st_mode):
                yield Problem(path, None, f"others may reach it (mode {mode:04o})", CHMOD)
