"""The space that a mailbox shares with other machines: how it is reached, kept in the user's own record.

Belongs here: that file, and opening the copy by it. The file decides where mail goes, so it is outside every project,
and only the person's commands write it.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import Record
from ..core.text import typed
from ..errors import BadData, Refused
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
    from collections.abc import Iterable

    from ..store.log.custody import Custody
    from ..store.log.logs import Logs
    from .order.order import SpaceOrder, TotalOrder

PLACE, FILE, SERVING, OWNER, LEFT, KEPT = "engine", "space", "serving", "owner", "left", "kept"
"""Within the user's record: a directory, the space, the file whose lock the replicator holds; see ``owner_of``,
``last_name`` and ``kept_ids``."""
LATE = 60.0
"""Seconds from which on a copy is called old, though a replicator runs."""


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


def owner_of(logs: Logs) -> str:
    """Return whose a machine's name is in a space: this mailbox's, or an earlier one's that was at the same path."""
    record = record_of(logs)
    return (read_file(record.path(PLACE, OWNER)) or record.id).decode()


def keep_owner(logs: Logs, owner: str) -> None:
    """Keep whose this machine's name is by the engine: that of the mailbox from which this one took it over."""
    replace_file(record_of(logs).path(PLACE, OWNER), owner.encode())


def space_of(logs: Logs) -> Space | None:
    """Return the space that the mailbox is in; None if it is in none."""
    return None if logs.custody is None else space_in(logs.custody)


def space_in(record: Custody) -> Space | None:
    """Return the space of the mailbox of which the record is; None if it is in none."""
    text = read_file(record.path(PLACE, FILE))
    if text is None:
        return None
    found = codec.parse(text)
    try:
        if isinstance(found, dict):
            return Space(**found)
    except TypeError:
        pass
    path = record.path(PLACE, FILE)
    aside = typed(path)
    raise BadData(
        f"record of the space has another form: {path}",
        f"run `mv {aside} {aside}.away`, then `agent-mailbox engine join URL --space NAME`",
    )


def save_space(logs: Logs, space: Space) -> None:
    """Keep the space; the mailbox is shared from now on."""
    record = record_of(logs)
    system.make_directory(record.path(PLACE))
    system.sync_directory(system.dirname(record.path(PLACE)))  # a lost name would make the mailbox one machine's again
    replace_file(record.path(PLACE, FILE), codec.dumps(space.__dict__).encode())


def forget_space(logs: Logs, space: Space) -> None:
    """Make the mailbox one machine's again; its files stay as they are. Nothing that was known of the space does."""
    from .order import elsewhere  # a machine seldom leaves

    record = record_of(logs)
    keep_last_name(logs, space.machine)
    for name in (FILE, known_copy.STATE, elsewhere.FILE, elsewhere.JOINED, *space_troubles.FILES):
        remove_file(record.path(PLACE, name))
    system.sync_directory(record.path(PLACE))


def keep_last_name(logs: Logs, machine: str) -> None:
    """Keep whose name goes with the key that is here."""
    replace_file(record_of(logs).path(PLACE, LEFT), machine.encode())


def last_name(logs: Logs) -> str:
    """Return this machine's name in the space that it left last; empty if it left none."""
    return (read_file(record_of(logs).path(PLACE, LEFT)) or b"").decode()


def keep_ids(logs: Logs, ids: Iterable[str]) -> None:
    """Keep which mail no other machine has got as this one leaves its space; none: it goes to them now."""
    path, text = record_of(logs).path(PLACE, KEPT), "".join(f"{one}\n" for one in ids)
    if text:
        replace_file(path, text.encode())
    else:
        remove_file(path)


def kept_ids(logs: Logs) -> list[str]:
    """Return the ids of the mail that no other machine has got, of a mailbox that left its space."""
    return (read_file(record_of(logs).path(PLACE, KEPT)) or b"").decode().splitlines()


def is_serving(logs: Logs) -> bool:
    """Return whether this machine's replicator runs."""
    return is_held(record_of(logs).path(PLACE, SERVING))


def is_displaced(logs: Logs) -> bool:
    """Return whether another mailbox has this machine's name, as far as it heard."""
    return bool(space_troubles.noted_trouble(record_of(logs).path(PLACE), space_troubles.TAKEN))


def why_late(logs: Logs) -> str:
    """Return how old the copy is, and why mail of other machines may not be here; empty if it is kept up.

    Ahead of that: that another mailbox has this machine's name."""
    if (space := space_of(logs)) is None:
        return ""
    place = record_of(logs).path(PLACE)
    if displaced := space_troubles.noted_trouble(place, space_troubles.TAKEN):
        return displaced
    age, serves = known_copy.copy_age(place), is_serving(logs)
    noted = (space_troubles.noted_trouble(place, kind) for kind in space_troubles.UNREACHED)
    away = next(filter(None, noted), "") if serves else ""
    if serves and not away and (age is None or age < LATE):
        return ""
    old = "of unknown age" if age is None else f"{age / 60:.0f} minutes old" if age > 90 else "a minute old or less"
    why = "engine is out of reach" if serves else "the replicator does not run"
    mend = START if serves else "`agent-mailbox engine serve --install` has it run"
    if away:
        return f"this machine's copy of space {space.space} is {old}: {away}"
    return f"this machine's copy of space {space.space} is {old}: {why}; {mend}"


def standing_troubles(logs: Logs) -> list[str]:
    """Return what this machine noticed of its space and is not mended, each as a sentence without a full stop."""
    if space_of(logs) is None:
        return []
    found = space_troubles.standing_troubles(record_of(logs).path(PLACE), logs.messages)
    return [*filter(None, [why_late(logs)]), *found]


def all_troubles(logs: Logs) -> list[str]:
    """Return the same behind how many sends wait here for the engine, since when, and why the newest does."""
    if space_of(logs) is None:
        return []
    return [*space_troubles.waiting_sends(record_of(logs).path(PLACE)), *standing_troubles(logs)]


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
    where = space.url, space.space, space.machine, space.credential, space.authority
    if space.is_postgres:  # a command that asks the replicator imports neither
        from .postgres import postgres_order

        return postgres_order.open_order(*where, patience)
    from .nats import nats_order

    return nats_order.open_order(*where, patience)
