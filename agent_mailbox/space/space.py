"""The space that a mailbox shares with other machines: how it is reached, kept in the user's own record.

Belongs here: that file, and opening the copy by it. The file decides where mail goes, so it is outside every project,
and only the person's commands write it.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import Record
from ..core.text import typed
from ..errors import BadData, NotFound, Refused
from ..store.files import system
from ..store.files.small_files import read_file, remove_file, replace_file
from ..store.locks.lock import is_held
from .copy import known_copy, space_troubles
from .copy.replica import Replica
from .order.order import START
from .relay.relayed_order import RelayedOrder
from .trust.space_judge import SpaceJudge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..store.log.custody import Custody
    from ..store.log.logs import Logs
    from .order.order import SpaceOrder, TotalOrder

PLACE, FILE, SERVING = "engine", "space", "serving"
"""Within the user's record: a directory, the space, the file whose lock the replicator holds."""
OWNER, LEFT, KEPT = "owner", "left", "kept"
"""Notes: whose this machine's name is by the engine, if it is an earlier mailbox's. The name that goes with the key
here, as it left a space. The ids of mail that no other machine had got then."""
LATE = 60_000
"""Milliseconds from which on a copy is called old, though a replicator runs."""


class Space(Record):
    """A space, and this machine's name in it. ``credential`` and ``authority`` are paths; None: there is none."""

    url: str
    space: str
    machine: str
    credential: str | None = None
    authority: str | None = None

    @property
    def is_postgres(self) -> bool:
        return self.url.partition("://")[0] in ("postgresql", "postgres")


def record_of(logs: Logs) -> Custody:
    """Return the user's record of the mailbox; raise ``Refused`` if there is none."""
    if logs.custody is None:
        raise Refused(
            f"mailbox has no record of the user's: {logs.directory}",
            f"run `agent-mailbox init {typed(logs.directory)}`",
        )
    return logs.custody


def read_note(logs: Logs, name: str) -> str:
    """Return what was noted under one of the names above; empty if nothing was."""
    return (read_file(record_of(logs).path(PLACE, name)) or b"").decode()


def keep_note(logs: Logs, name: str, text: str) -> None:
    path = record_of(logs).path(PLACE, name)
    if text:
        replace_file(path, text.encode())
    else:
        remove_file(path)


def owner_of(logs: Logs) -> str:
    """Return whose a machine's name is in a space: this mailbox's, or an earlier one's that was at the same path."""
    return read_note(logs, OWNER) or record_of(logs).id.decode()


def space_of(logs: Logs) -> Space | None:
    """Return the space that the mailbox is in; None if it is in none."""
    return None if logs.custody is None else space_in(logs.custody)


def require_space(logs: Logs) -> Space:
    """Return the space of the mailbox; raise ``NotFound`` if it is in none."""
    space = space_of(logs)
    if space is None:
        raise NotFound(f"mailbox is in no space: {logs.directory}", "`agent-mailbox engine join URL --space NAME`")
    return space


def space_in(record: Custody) -> Space | None:
    """Return the space of the mailbox of which the record is; None if it is in none."""
    path = record.path(PLACE, FILE)
    text = read_file(path)
    if text is None:
        return None
    found: Any = codec.parse(text)
    try:
        return Space(**found)
    except TypeError:
        aside = typed(path)
        raise BadData(
            f"record of the space has another form: {path}",
            f"run `mv {aside} {aside}.away`, then `agent-mailbox engine join URL --space NAME`",
        ) from None


def save_space(logs: Logs, space: Space) -> None:
    record = record_of(logs)
    system.make_directory(record.path(PLACE))
    system.sync_directory(system.dirname(record.path(PLACE)))  # a lost name would make the mailbox one machine's again
    replace_file(record.path(PLACE, FILE), codec.dumps(space.__dict__).encode())


def forget_space(logs: Logs, space: Space) -> None:
    """Make the mailbox one machine's again; its files stay as they are. Nothing that was known of the space does."""
    record = record_of(logs)
    keep_note(logs, LEFT, space.machine)
    for name in (FILE, known_copy.STATE, space_troubles.FILE, space_troubles.JOINED, *space_troubles.FILES):
        remove_file(record.path(PLACE, name))
    system.sync_directory(record.path(PLACE))


def is_serving(logs: Logs) -> bool:
    return is_held(record_of(logs).path(PLACE, SERVING))


def is_displaced(logs: Logs) -> bool:
    return bool(space_troubles.noted_trouble(record_of(logs).path(PLACE), space_troubles.TAKEN))


def why_late(logs: Logs) -> str:
    """Return how old the copy is, and why mail of other machines may not be here; empty if it is kept up."""
    if (space := space_of(logs)) is None:
        return ""
    place = record_of(logs).path(PLACE)
    if displaced := space_troubles.noted_trouble(place, space_troubles.TAKEN):
        return displaced
    age = known_copy.copy_age(place, system.time_ns() // 1_000_000)
    why = "the replicator does not run; `agent-mailbox engine serve --install` has it run"
    if is_serving(logs):
        noted = (space_troubles.noted_trouble(place, kind) for kind in (space_troubles.GONE, space_troubles.AWAY))
        why = next(filter(None, noted), "")
        if not why and (age is None or age < LATE):
            return ""
        why = why or f"engine is out of reach; {START}"
    minutes = 0 if age is None else round(age / 60_000)
    old = "of unknown age" if age is None else f"{minutes} minutes old" if minutes > 1 else "a minute old or less"
    return f"this machine's copy of space {space.space} is {old}: {why}"


def standing_troubles(logs: Logs, *, waiting: bool = False) -> list[str]:
    """Return what this machine noticed of its space and is not mended, each as a sentence without a full stop.

    ``waiting``: ahead of that, how many sends wait here for the engine, since when, and why the newest does."""
    if space_of(logs) is None:
        return []
    place = record_of(logs).path(PLACE)
    sends = space_troubles.waiting_sends(place) if waiting else ()
    found = space_troubles.standing_troubles(place, logs.messages)
    return [*sends, *filter(None, [why_late(logs)]), *found]


def open_replica(logs: Logs, space: Space, *, relayed: bool = False, patience: float = 5.0) -> Replica:
    """Return the mailbox's copy in the space; connects at the first call.

    ``relayed``: by way of the replicator, if it runs. ``patience``: seconds for which it waits for the engine."""
    patience = min(logs.wait, patience)
    directory = record_of(logs).path(PLACE)
    order: TotalOrder
    if relayed:
        order = RelayedOrder(space.machine, directory, patience, lambda: order_of(space, patience))
    else:
        order = order_of(space, patience)
    return Replica(logs, order, directory, SpaceJudge(space.space, space.machine, directory))


def order_in(copy: Replica) -> SpaceOrder:
    """Return the order of a copy that ``open_replica`` made: an engine keeps it."""
    return copy.order.engine  # type: ignore[return-value] # a copy needs less of its order


def order_of(space: Space, patience: float = 5.0) -> SpaceOrder:
    """Return the way to a space; connects at the first call."""
    way = space.url, space.credential, space.authority, patience
    if space.is_postgres:  # a command that asks the replicator imports neither
        from .postgres.postgres_connection import PostgresConnection
        from .postgres.postgres_order import PostgresOrder

        return PostgresOrder(PostgresConnection(*way), space.space, space.machine)
    from .nats.connection import NatsConnection
    from .nats.nats_order import NatsOrder

    return NatsOrder(NatsConnection(*way), space.space, space.machine)
