"""Making a mailbox's record outside the project, and removing one. Its form and its questions are in ``custody``.

Belongs here: steps done once in a mailbox's life.
"""

from __future__ import annotations

from ...errors import Refused, StorageFailed
from ..files import paths, system
from ..files.small_files import OpenFile, Storing, read_file, replace_file, storage_failed
from ..locks.holder import holder_at
from ..locks.lock import is_held
from . import custody, keys
from .custody import left

SPACE = "engine"
"""The place in a record of what a machine keeps of its space (``space.space``)."""
SERVED = SPACE, "serving"
"""The file in a record whose lock the replicator holds, as long as it brings mail of other machines."""
KEPT = ("space", "key", "trust", "queue", "unsent")
"""The files there that are the machine's own. The others are about its mailbox's files."""
OWNER = "owner"
"""The file there with the id under which the machine took its name, if that was an earlier mailbox of its path."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .custody import Custody


def ensure(directory: str, environ: Mapping[str, str]) -> Custody | None:
    """Return the record of the user's own mailbox (its real path), made if there is none yet.

    None if it cannot be made: then nothing is proven, and mail goes on.
    """
    found = custody.find(directory, paths.state_directory(environ))
    if found is not None:
        return found
    try:
        return _make(directory, environ)
    except (OSError, StorageFailed):
        return None


def _make(directory: str, environ: Mapping[str, str]) -> Custody:
    """Make the record of a mailbox (its real path) whose logs are there; their content is ``BEFORE``.

    If two processes do so at once, one record is made.
    """
    state = paths.state_directory(environ)
    keys.make(state)
    system.make_directory(system.join(state, custody.BOXES))
    for record, mailbox_id in custody.records(directory, state):
        if mailbox_id == b"":
            continue
        if mailbox_id is None:
            _begin(record, directory)
        found = custody.find(directory, state)
        if found is not None:
            return found
    raise storage_failed("make the record of", directory, OSError(0, "its place is taken"))


def _begin(record: str, directory: str) -> None:
    """Make a record aside and rename it into its place, so that a record is always complete."""
    aside = f"{record}.{system.getpid()}"
    with Storing("make the record", record):
        system.make_directory(aside)
        for name in (paths.MESSAGES, paths.READS, paths.ROSTER):
            path = system.join(directory, name)
            entry = left(path)
            _sync(path)  # another program may have written it: a power failure would take the lines, not their record
            replace_file(system.join(aside, name.removesuffix(".jsonl")), entry.replace(before=entry.size).text())
        replace_file(
            system.join(aside, "place"), b"%s\n%s\n" % (system.encoded(directory), system.urandom(16).hex().encode())
        )
        _take_along(f"{record}.old", aside)
        try:
            system.rename(aside, record)
        except OSError:  # another was first
            remove(aside)
        boxes = system.dirname(record)
        for place in (boxes, system.dirname(boxes)):  # the mailbox would begin a new record, with another id
            system.sync_directory(place)


def _sync(path: str) -> None:
    """Make what a log holds durable; nothing if there is no log yet."""
    try:
        with OpenFile(system.open(path, system.O_RDONLY | system.O_CLOEXEC | system.O_NOFOLLOW)) as fd:
            system.fdatasync(fd)
    except FileNotFoundError:
        pass


def refuse_served(directory: str, environ: Mapping[str, str]) -> None:
    """Raise ``Refused`` while a replicator serves the mailbox that was at a real path: it would fill the next one."""
    known = custody.find(directory, paths.state_directory(environ))
    if known is None or not is_held(path := known.path(*SERVED)):
        return

    what = f"the mailbox that was at {directory} is still served{holder_at(path)}"
    raise Refused(f"{what}: its replicator would fill another one there", "end that process, then repeat this command")


def begin_again(directory: str, environ: Mapping[str, str]) -> None:
    """Begin a new record for a mailbox that took the place of an earlier one, with all that was kept beside that.

    If that was a machine of a space, the new one is that machine. Mail that waits for the engine goes on waiting."""
    known = custody.find(directory, paths.state_directory(environ))
    if known is None:
        return
    old = f"{known.directory}.old"
    remove(old)  # a process that did this was killed
    system.rename(known.directory, old)
    if ensure(directory, environ) is not None:
        remove(old)


def _take_along(old: str, record: str) -> None:
    """Have a new record keep what an earlier one of the same path had as a machine of a space.

    If the process that began it is killed, the next one does so."""
    found = {name: text for name in KEPT if (text := read_file(system.join(old, SPACE, name))) is not None}
    if not found:
        return
    _, _, earlier = (read_file(system.join(old, "place")) or b"").rstrip(b"\n").rpartition(b"\n")
    found[OWNER] = read_file(system.join(old, SPACE, OWNER)) or earlier
    system.make_directory(system.join(record, SPACE))
    for name, text in found.items():
        replace_file(system.join(record, SPACE, name), text)
    system.sync_directory(record)


def remove(directory: str) -> None:
    """Remove a record, or the rest of one."""
    try:
        system.empty(directory)
        system.rmdir(directory)
    except FileNotFoundError:
        pass
