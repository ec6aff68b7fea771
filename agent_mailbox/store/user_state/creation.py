"""Making a mailbox, and forgetting one that is gone.

Belongs here: steps done once for a mailbox.
"""

from __future__ import annotations

from ...errors import NotFound, Refused
from ..files import paths, system
from ..files.paths import ARCHIVE, HEARTBEATS, MESSAGES, is_there, trusted, trusted_file
from ..files.small_files import Storing, replace_file
from ..locks.lock import FileLock
from ..log import custody, custody_setup, keys
from . import bindings, own_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CAME_ALONG = "there already, and not known as yours: if it came with a clone, your agents are shown a stranger's mail"
"""It is told of a mailbox that becomes the user's own with its mail. It may be theirs, moved or copied."""


def create(directory: str, environ: Mapping[str, str]) -> str:
    """Make ``directory`` a mailbox (idempotent), record it as the user's own, and return its real path.

    Raises ``Refused`` while a replicator serves the mailbox that was there."""
    if "\n" in directory:
        raise Refused(f"the path of a mailbox holds a line break: {directory!r}", "choose a directory without one")
    with Storing("make a mailbox at", directory):
        given, real = system.absolute(directory), system.real_path(directory)
        if not is_there(system.join(real, MESSAGES)):
            custody_setup.refuse_served(real, environ)
        system.make_directory(directory, parents=0o755)
        directory = system.real_path(directory)
        for name in (HEARTBEATS, ARCHIVE):
            system.make_directory(system.join(directory, name))
        path = system.join(directory, MESSAGES)
        is_new = not is_there(path)
        if is_new:
            own_files.hide_from_git(directory)
        system.close(system.open(path, system.O_RDWR | system.O_CREAT | system.O_NOFOLLOW | system.O_CLOEXEC, 0o600))
    paths.check(directory)
    for path in dict.fromkeys((directory, given)):  # by a link, too, if the person names one
        _record(path, environ)
    if is_new:
        _forget(directory, environ)
    custody_setup.ensure(directory, environ)
    state = paths.state_directory(environ)
    keys.make(state)  # a lost key too: its old seals prove nothing until adopted
    boxes = system.join(state, custody.BOXES)
    # the record may be there, and not durable: its maker was killed, or its sync failed
    for place in (directory, boxes if system.exists(boxes) else state):
        with Storing("sync", place):
            system.sync_way(place)
    return directory


def _forget(directory: str, environ: Mapping[str, str]) -> None:
    """Begin a new record for a mailbox made in another's place, unless that one bound a session."""
    if not bindings.here(paths.state_directory(environ), directory):
        custody_setup.begin_again(directory, environ)


def _record(directory: str, environ: Mapping[str, str]) -> None:
    if directory in trusted(environ):
        return
    path = trusted_file(environ)
    with Storing("record the mailbox in", path):
        system.make_directory(system.dirname(path), parents=0o755)
        with FileLock(path) as file:
            system.write_whole(file.fd, system.encoded(directory) + b"\n")
            system.fsync(file.fd)


def forget(directory: str, environ: Mapping[str, str]) -> None:
    """Take a mailbox that is gone out of the user's own ones: commands find the next one above. Its proofs stay.
    Raises ``Refused`` while it is there, ``NotFound`` if ``init`` did not record it."""
    if is_there(system.join(directory, MESSAGES)):
        raise Refused(f"{directory} is there, with its mail", "only a mailbox that is gone is forgotten")
    path, real = trusted_file(environ), system.real_path(directory)
    with FileLock(path):
        known = trusted(environ)
        left = [line for line in known if real not in (line, system.real_path(line))]
        if left == known:
            raise NotFound(f"your `agent-mailbox init` recorded no mailbox at {directory}", "name the one that is gone")
        replace_file(path, b"".join(system.encoded(line) + b"\n" for line in left))
