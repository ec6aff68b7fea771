"""Try what the commands need: is each place still written as they write it, is each lock free, is each helper at work?

Belongs here: what each file and directory is for, and so what fails without it. ``obstacles`` tries, and adds no
line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.attachments import DIRECTORY
from ...core.findings import Problem
from ...core.text import neutral, typed
from ...errors import MailboxError, StorageFailed
from ...space import space as spaces
from ...space.relay.relayed_order import SOCKET
from ...store.archive.archive import LOCK
from ...store.files import paths, system
from ...store.files.edits import EDITS
from ...store.files.paths import BOUND
from ...store.files.small_files import list_names
from ...store.locks.existing_lock import ReadLock
from ...store.locks.holder import STOPPED, holder_at
from ...store.locks.lock import Patience, is_held
from ...store.log import keys
from ...store.log.custody import Kept
from ...store.projection import index_keys
from ...store.user_state import own_files
from . import obstacles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...mailbox.mailbox import Mailbox
    from .obstacles import Obstacle

    Try = Callable[[str], Obstacle | None]

PATIENCE = 1.0
"""Seconds in which a lock must be free that a writer keeps for some 0.1 ms."""
DERIVED = "each look at mail takes longer"
SEALED = "what is written now may count as unproven"
_ANOTHER = "`agent-mailbox init` makes another, and old seals prove nothing"


def check_uses(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield what cannot be written, what a process keeps locked, and a replicator that does not run."""
    yield from _find_unwritable(mailbox)
    yield from _check_locks(mailbox)
    yield from _check_replicator(mailbox)


# -- written ----------------------------------------------------------------------------------------------------------


def _find_unwritable(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield what is in the way of writers, once for each repair."""
    first: dict[str, Obstacle] = {}
    failing: dict[str, dict[str, None]] = {}
    for path, attempt, fails in _written_paths(mailbox):
        if (found := attempt(path)) is not None:
            first.setdefault(found.repair, found)
            failing.setdefault(found.repair, {})[fails] = None
    for repair, found in first.items():
        yield Problem(found.path, None, f"{found.why}, so {', and '.join(failing[repair])}; {repair}")


def own_directories(mailbox: Mailbox) -> list[str]:
    """Return the mailbox's directories in which the steward removes files."""
    cache = mailbox.logs.derived
    below = (mailbox.logs.path(paths.HEARTBEATS), mailbox.logs.path(DIRECTORY), mailbox.archive.directory, cache)
    return [*below, *(system.join(cache, name) for name in list_names(cache) if own_files.is_derived(name))]


def replaced_files(mailbox: Mailbox) -> list[str]:
    """Return the logs, and what is kept of each among the user's own records: archiving replaces them."""
    logs, custody = mailbox.logs, mailbox.logs.custody
    places = [log.path for log in (logs.messages, logs.reads, logs.roster)]
    return places if custody is None else [*places, *(Kept(custody, path).path for path in places)]


def _written_paths(mailbox: Mailbox) -> Iterator[tuple[str, Try, str]]:
    """Yield each path that commands write, how to try that, and what fails without it."""
    logs, here = mailbox.logs, mailbox.logs.path
    sent, shown = "no mail can be sent", "no mail can be shown or acknowledged"
    for log, fails in ((logs.messages, sent), (logs.reads, shown), (logs.roster, "no session can join or leave")):
        yield log.path, obstacles.to_append, fails
        if obstacles.to_append(log.path) is None:
            yield log.path, obstacles.to_replace, "the steward cannot archive"
    yield mailbox.directory, obstacles.to_create, "nothing new can be made here"
    for path in own_directories(mailbox):
        yield path, obstacles.to_own, "the steward does nothing"
    yield here(paths.EVENTS), obstacles.to_append, "telemetry is lost"
    yield here(paths.HEARTBEATS), obstacles.to_create, "no new session can join or be shown mail"
    for name in list_names(here(paths.HEARTBEATS)):
        yield logs.path(paths.HEARTBEATS, name), obstacles.to_write, "that session is shown no mail"
    archive = mailbox.archive.directory
    for name in ("", *list_names(archive)):
        attempt = obstacles.to_append if name else obstacles.to_create
        yield system.join(archive, name) if name else archive, attempt, "the steward cannot archive"
    yield here(DIRECTORY), obstacles.to_create, "no file can be attached"
    yield from _written_below(logs.derived, DERIVED, is_ours=own_files.is_derived)
    yield from _own_records(mailbox)


def _own_records(mailbox: Mailbox) -> Iterator[tuple[str, Try, str]]:
    """Yield the places among the user's own records that concern this mailbox."""
    state = mailbox.logs.stamp_files.kept()
    yield state, obstacles.to_create, "no mailbox can be made"
    for name, fails in ((BOUND, "no session can be bound"), ("unbound", DERIVED), ("sessions", DERIVED)):
        yield system.join(state, name), obstacles.to_create, fails
    if (custody := mailbox.logs.custody) is not None:
        yield system.join(state, keys.FILE), _without_key, SEALED
        answers = custody.path(spaces.PLACE, SOCKET)  # there the replicator answers commands
        written = _written_below(custody.directory, SEALED, but=(spaces.PLACE,))
        yield from (one for one in written if one[0] != answers)


def _without_key(path: str) -> Obstacle | None:
    """Return why the user's key seals nothing: it is gone, or is none."""
    try:
        found = keys.load(system.dirname(path))
    except StorageFailed as error:
        why = error.what.removeprefix(path).removeprefix(" ").replace("holds no key", "no key that can be read")
        return obstacles.Obstacle(path, why, f"run `mv {typed(path)} {typed(path + '.away')}`; then {_ANOTHER}")
    return None if found else obstacles.Obstacle(path, "missing", f"look for it in your backups; else {_ANOTHER}")


def _written_below(
    directory: str, fails: str, *, but: Sequence[str] | None = None, is_ours: Callable[[str], bool] = bool
) -> Iterator[tuple[str, Try, str]]:
    """Yield a directory and all in it that is the mailbox's. Directories there are right, or those alone that ``but``
    names, and each session's among the edits."""
    yield directory, obstacles.to_create, fails
    for below, found in system.tree(directory):
        top = below[len(directory) :].split("/")[1:2]
        if not all(map(is_ours, top)):
            continue
        names = found if top else [name for name in found if is_ours(name)]
        if below != directory:
            above, name = system.dirname(below), system.basename(below)
            is_right = above == system.join(directory, EDITS) or (above == directory and (but is None or name in but))
            yield below, obstacles.to_create if is_right else obstacles.to_write, fails
        yield from ((system.join(below, name), obstacles.to_write, fails) for name in names)


# -- locked -----------------------------------------------------------------------------------------------------------


def _check_locks(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield the locks that a process keeps. Those that are kept for long by right count only if it is stopped."""
    logs, custody = mailbox.logs, mailbox.logs.custody
    for path in replaced_files(mailbox):
        yield from _check_busy(path)
    hearts = [logs.path(paths.HEARTBEATS, name) for name in list_names(logs.path(paths.HEARTBEATS))]
    derived = [logs.cache(index_keys.LOCK)]
    derived += [custody.path(index_keys.LOCK)] if custody is not None else []
    for path in (*hearts, system.join(mailbox.archive.directory, LOCK), *derived):
        if (told := _stopped_holder(path)) is not None:
            yield told


def _check_busy(path: str) -> Iterator[Problem]:
    try:
        with Patience(PATIENCE), ReadLock(path):
            return
    except FileNotFoundError:
        return
    except MailboxError as error:
        if error.code == "busy":
            yield Problem(path, None, f"{error.what.removeprefix(f'{path} is ')}: end that process, or let it go on")


def _stopped_holder(path: str) -> Problem | None:
    """Return the problem of a lock whose holder is stopped."""
    try:
        told = holder_at(path) if is_held(path) else ""
    except MailboxError:
        return None
    return Problem(path, None, f"locked{told}") if STOPPED in told else None


# -- helpers ----------------------------------------------------------------------------------------------------------


def _check_replicator(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield the problem of a shared mailbox that nobody keeps up with the other machines."""
    logs = mailbox.logs
    if not logs.is_shared or logs.custody is None:
        return
    serving = logs.custody.path(spaces.PLACE, spaces.SERVING)
    command = f"agent-mailbox engine serve --install --dir {typed(mailbox.directory)}"
    if not is_held(serving) and not spaces.is_displaced(logs):
        what = "its replicator does not run: mail of other machines does not come here, and ours may not leave"
        yield Problem(mailbox.directory, None, f"{what}; run `{command}`")
    elif (told := _stopped_holder(serving)) is not None:
        yield told.replace(what=f"its replicator is stuck: {neutral(told.what)}")
    yield from (
        Problem(mailbox.directory, None, neutral(told))
        for told in spaces.standing_troubles(logs, waiting=True)
        if "replicator does not run" not in told
    )
