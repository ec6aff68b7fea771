"""The troubles of a space's servers: their settings, their clocks, and the copies that they keep.

Belongs here: judging what servers say of themselves. They say it to a user of the system's account alone
(``$SYS.REQ.SERVER.PING.VARZ``); the copies of a stream, to everybody who may read it.
"""

from __future__ import annotations

from datetime import datetime
from time import time
from typing import TYPE_CHECKING

from ...core.text import neutral
from ...errors import Refused
from .answers import number_at, object_at, objects_at, parse_object
from .connection import Publication
from .nats_order import is_old

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .connection import NatsConnection

MOST = 16
"""Servers that are asked."""
FULL = 0.9
"""The part of a server's room for mail from which on it is told."""
APART = 2.0
"""Seconds that two clocks may differ: mail of two machines is sorted by their times."""


def of_copies(info: dict[str, Any]) -> Iterator[str]:
    """Yield the troubles of a stream's copies, as its leader knows them."""
    cluster = object_at(info, "cluster")
    if cluster.get("name") and number_at(object_at(info, "config"), "num_replicas", 0, 1) < 3:
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
        now = time()
        answers = connection.gather_answers(Publication("$SYS.REQ.SERVER.PING.VARZ", b"{}"), max(1, len(copies) + 1))
    finally:
        connection.close()
    if not answers:
        raise Refused("servers tell their settings to the system's user alone", "name its credential: --system FILE")
    heard = set[str]()
    for answer in answers[:MOST]:
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
