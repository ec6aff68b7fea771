"""The troubles of a space: its server, its stream, its records, and this machine's copy.

Belongs here: the checks of ``engine doctor``. Records that the engine lost come back from this machine's files.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from ..core import space_seals
from ..core.text import neutral, term
from ..errors import MailboxError, Refused
from . import joining_space, replicator, space_words
from . import space as spaces
from .copy import bundled_lines, space_troubles
from .nats.connection import Publication, is_old
from .nats.nats_order import LASTING, LIMITS, REPLICAS, NatsOrder
from .nats.server_words import number_at, object_at, objects_at, parse_object
from .order.order import JOINED
from .postgres.postgres_connection import TEXT, value_of
from .postgres.postgres_order import PostgresOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..store.log.logs import Logs
    from .joining_space import SpaceStanding
    from .nats.connection import NatsConnection
    from .order.order import TotalOrder
    from .space import Space

WANTED: dict[str, Any] = {**LASTING, "allow_atomic": True}
"""The settings of a stream of records that loses nothing by itself."""
SETTINGS = {"fsync": "on", "full_page_writes": "on"}
"""The settings of a database without which a power failure takes what was acknowledged."""
FULL = 0.9
"""The part of a server's room for mail from which on it is told."""
APART = 2.0
"""Seconds that two clocks may differ: mail of two machines is sorted by their times."""


def space_problems(logs: Logs, found: SpaceStanding, system: str | None = None) -> Iterator[str]:
    """Yield the troubles, each as a sentence without a full stop; ``found`` is what ``read_standing`` says.

    ``system`` is the credential of a user who may ask each server for its settings."""
    space = spaces.require_space(logs)
    copy, mine = spaces.open_replica(logs, space), spaces.owner_of(logs)
    if not found.trouble:
        yield from space_troubles.standing_troubles(copy.directory, logs.messages)
    if ended := found.trouble or space_troubles.noted_trouble(copy.directory, space_troubles.TAKEN):
        yield ended  # nobody answers what follows, or it does not concern a machine that has no name
        yield from space_troubles.waiting_sends(copy.directory)
        return
    try:
        order = spaces.order_in(copy)
        yield from _of_engine(order, space, system)
        if order.take_name(mine) != mine:  # an engine that lost its records lost the names, too
            yield replicator.name_warning(space.machine)
        with copy.machine_lock():
            copy.catch_up()
            if copy.look_closer(at_all=True):
                copy.catch_up()
            strange = bundled_lines.compare_with_order(copy)
        yield from _of_others(strange)
    except MailboxError as error:
        yield error.what
    yield from space_troubles.waiting_sends(copy.directory)
    if copy.restored:
        yield replicator.lost_warning(copy.restored)
    if found.unsent:
        yield f"messages were never sent, since their ids are other messages': {found.unsent}"
    yield from space_words.describe_wrong_seals(joining_space.read_standing(logs))
    if not found.serving:
        yield "replicator does not run: `agent-mailbox engine serve --install` keeps this machine's copy up"


def space_notes(logs: Logs, command: Callable[[str], str], system: str | None = None) -> Iterator[str]:
    """Yield what is in order, and yet for the person to know: whose lines count for nothing, and who may do all."""
    yield from space_words.describe_unheard(joining_space.read_standing(logs), command)
    yield from _ignored_lines(logs, command)
    space = spaces.require_space(logs)
    if space.is_postgres:  # which tells everybody how it syncs
        return
    order = cast(NatsOrder, spaces.order_of(space))
    if order.connection.is_open():
        yield (
            "any machine may write as another here, and remove mail:"
            " `agent-mailbox engine config` writes servers with a credential for each"
        )
    elif system is None:  # a server without accounts has no such user
        yield "not looked at: syncing, room and clock of the servers (--system FILE)"
    order.close()


def _ignored_lines(logs: Logs, command: Callable[[str], str]) -> Iterator[str]:
    """Yield how many lines of each machine tell of sessions that are not its own."""
    lines = (line for log in (logs.roster, logs.reads) for _, line in log.lines() if space_seals.is_ignored(line))
    for machine, count in sorted(Counter(term(space_seals.ignored_of(line), 40) for line in lines).items()):
        more = f"if one moved there: {command(f'engine join --speaks {machine}=all,ID')}"
        tell, are = ("line of {} tells", "is") if count == 1 else ("lines of {} tell", "are")
        yield f"{count} {tell.format(machine)} of sessions that are not its own, and {are} ignored; {more}"


def _of_others(passed: Mapping[str, int]) -> Iterator[str]:
    """Yield what the copy passed over; nothing of it is lost in the space."""
    if strange := passed.get(""):
        yield f"messages of other programs are among the space's records, and were passed over: {strange}"
    if damaged := passed.get(bundled_lines.DAMAGED):
        yield f"records of the engine are damaged: {damaged}; `engine purge` removes them"
    if later := sum(many for log, many in passed.items() if log not in ("", JOINED, bundled_lines.DAMAGED)):
        yield f"records of a later version were passed over: {later}; bring agent-mailbox up, leave, and join again"


def _of_engine(order: TotalOrder, space: Space, system: str | None) -> Iterator[str]:
    if space.is_postgres:
        yield from of_database(cast(PostgresOrder, order))
        return
    info = cast(NatsOrder, order).stream_info()
    yield from of_stream(info)
    yield from of_copies(info)
    if system is not None:
        asked = cast(NatsOrder, spaces.order_of(space.replace(credential=system)))
        yield from of_servers(asked.connection, info)


def of_database(order: PostgresOrder) -> Iterator[str]:
    """Yield the troubles that the server tells every role of itself."""
    ask = order.connection.query_rows
    for name, value in SETTINGS.items():
        found = value_of(ask("SELECT current_setting(%s)", (name,)), TEXT)
        if found != value:
            yield f"server acknowledges what a power failure loses; set {name} to {value}, it is {found}"
    apart = float(value_of(ask("SELECT extract(epoch FROM clock_timestamp())::float8"), (float,))) - time.time()
    if abs(apart) > APART:
        yield f"server's clock differs by {apart:.0f} s"
    if not order.connection.is_private:
        yield "connection is not encrypted: add `?sslmode=verify-full` to the URL, or `--authority`"
    if not ask(f'SELECT 1 FROM "{order.schema}".speaker LIMIT 1'):
        yield "any machine may speak as another: `engine config --postgresql` writes a role for each"


def of_stream(info: dict[str, Any]) -> Iterator[str]:
    """Yield the settings of the stream with the records by which it would lose some."""
    config = object_at(info, "config")
    for key, value in WANTED.items():
        if config.get(key) != value:
            yield f"stream's {key} is {config.get(key)!r}, not {value!r}"
    for key in LIMITS:
        if (limit := number_at(config, key, -1, -1)) > 0:
            yield f"stream has a limit, {key}: {limit}"


def of_copies(info: dict[str, Any]) -> Iterator[str]:
    cluster = object_at(info, "cluster")
    if cluster.get("name") and number_at(object_at(info, "config"), "num_replicas", 0, 1) < REPLICAS:
        yield "space is kept by one server of the cluster alone: it was made before the others were there"
    if cluster.get("name") and not cluster.get("leader"):
        yield "no server leads the space, so it takes nothing: if that stays, docs/engine.md says how to make it again"
    for copy in objects_at(cluster, "replicas"):
        name = neutral(str(copy.get("name")))
        if copy.get("offline"):
            yield f"server is away: {name}"
        elif not copy.get("current"):
            yield f"server is behind: {name} by {number_at(copy, 'lag', 0, 0)} records"


def of_servers(connection: NatsConnection, info: dict[str, Any]) -> Iterator[str]:
    """Yield the troubles of each server that answers, and the names of those that do not."""
    cluster = object_at(info, "cluster")
    copies = objects_at(cluster, "replicas")
    wanted = {str(copy.get("name")) for copy in copies} | {str(cluster.get("leader"))}
    try:
        now = time.time()
        answers = connection.gather_answers(Publication("$SYS.REQ.SERVER.PING.VARZ", b"{}"), max(1, len(copies) + 1))
    finally:
        connection.close()
    if not answers:
        raise Refused("servers tell their settings to the system's user alone", "name its credential: --system FILE")
    heard = set[str]()
    for answer in answers:
        told = parse_object(answer.data)
        name = str(object_at(told, "server").get("name"))
        heard.add(name)
        yield from (f"{said}: {neutral(name)}" for said in _of_one(object_at(told, "data"), now))
    for name in sorted(wanted - heard) if copies else []:
        yield f"server does not answer: {neutral(name)}"


def _of_one(found: dict[str, Any], now: float) -> Iterator[str]:
    if is_old(str(found.get("version", ""))):
        yield f"server is too old, {found.get('version')}"
    engine = object_at(found, "jetstream")
    config, stats = object_at(engine, "config"), object_at(engine, "stats")
    if config.get("sync_always") is not True:
        yield "server acknowledges what a power failure loses; write `sync_interval: always` in its configuration"
    room, taken = number_at(config, "max_storage", -1, 0), number_at(stats, "storage", 0, 0)
    if 0 < room * FULL < taken:
        yield f"server has little room left, {taken} of {room} bytes are taken"
    try:
        apart = datetime.fromisoformat(str(found.get("now"))[:19] + "+00:00").timestamp() - now
    except ValueError:
        return
    if not -APART - 1 < apart < APART:  # its seconds are cut
        yield f"server's clock differs by {apart:.0f} s"
