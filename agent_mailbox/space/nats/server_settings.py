"""The settings of a space's servers, and of its two streams: how they are made, and what is wrong with others.

Belongs here: the settings with which ``engine join`` makes the streams, and which others are refused. A stream may
write in any name what it takes from elsewhere, and elsewhere what it has. One that a machine made so would pass its
records off as another's. Then judging what servers say of themselves to a user of the system's account.
"""

from __future__ import annotations

from time import time

from ...core.text import neutral
from ...errors import Refused
from .connection import Publication
from .server_words import number_at, object_at, objects_at, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .connection import NatsConnection

LEAST = (2, 12)
"""The first version of the server with everything that is used here."""
REPLICAS = 3
"""Copies of a space in a cluster: two of them answer for it."""
LIMITS = ("max_msgs", "max_bytes", "max_age", "max_msgs_per_subject")
"""The settings that would have the server remove records, or refuse them."""
_RIGHTS = {"allow_direct", "allow_atomic", "deny_delete", "deny_purge"}
_KEEPING = {"retention", "discard", "storage", "num_replicas", "duplicate_window", "compression", "placement"}
_NAMES = {"name", "description", "metadata", "subjects", "max_consumers", "max_msg_size", "consumer_limits"}
HARMLESS = {*_NAMES, *LIMITS, *_RIGHTS, *_KEEPING}
"""The settings by which no record comes from elsewhere, goes elsewhere, or is replaced by its publisher."""
_LASTING: dict[str, Any] = {"storage": "file", "retention": "limits", "discard": "new"}
WANTED: dict[str, Any] = {**_LASTING, "allow_atomic": True}
"""The settings of a stream of records that loses nothing by itself."""
FULL = 0.9
"""The part of a server's room for mail from which on it is told."""
APART = 2.0
"""Seconds that two clocks may differ: mail of two machines is sorted by their times."""


def is_old(version: str) -> bool:
    return tuple(int(word[:9]) for word in version.split("-")[0].split(".") if word.isdecimal()) < LEAST


def of_new(name: str, subjects: str, info: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with which a stream is made; ``info`` is what the server says of itself."""
    replicas = REPLICAS if info.get("cluster") else 1
    return {"name": name, "subjects": [subjects], **_LASTING, "num_replicas": replicas, "duplicate_window": 0}


def refuse_strange(found: dict[str, Any], subject: str) -> None:
    """Raise ``Refused`` for a stream, as the server describes it, that has other subjects or does more."""
    config = object_at(found, "config")
    strange = sorted(key for key, value in config.items() if value and key not in HARMLESS)
    if config.get("subjects") != [subject]:
        strange.append("subjects")
    if strange:
        raise Refused(
            f"stream of the space was not made by agent-mailbox: {', '.join(map(neutral, strange))}",
            "who runs the servers deletes it; then `agent-mailbox engine join` makes it from the machines' files",
        )


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
        now = time()
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
    from datetime import datetime  # what a command that connects is spared

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
