"""A mailbox written by hand: every kind of mail in every state, spelt with the plain ``json`` module.

Belongs here: what is in the logs before a fault, and who has still to be shown what. None of the program's own
code writes it, so a defect of the codec cannot hide itself.
"""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.helpers import ARCHIVE, HEARTBEATS, MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOUR, DAY = 3600, 86_400
READERS = ("ann", "bob", "cat", "dee", "gil")
LONG_ROSTER = 61
"""Events of one agent that make the steward retell the roster, whose threshold is one less here (``switches``)."""


def message_id(number: int) -> str:
    """The id of a message of the world."""
    return f"{number:08x}-0000-4000-8000-000000000000"


OLD_DIRECT, OWED, CLAIM, OLD_CLAIM, OLD_ALL, ROLE, EMPTY_ROLE, DIRECT, TAG, ALL, ANSWER, FOREIGN = map(
    message_id, range(1, 13)
)
UNREAD = {
    "ann": {ANSWER},
    "bob": {DIRECT, TAG, ALL},
    "cat": {TAG, ALL},
    "dee": {ALL, FOREIGN},
    "gil": set(),
}
"""What each reader has not been shown, but for role mail."""
UNCLAIMED = {ROLE: {"bob", "cat"}}
"""Role mail, and of whom exactly one is to be shown it."""
WAITING = {ROLE, EMPTY_ROLE}
"""Role mail that nobody has: it must stay live however old it is."""
FOREIGN_LINE = b"a line that is no record\n"


def stamp(seconds_ago: float) -> str:
    """An instant as the logs write it."""
    at = datetime.fromtimestamp(time.time() - seconds_ago, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def line(record: Mapping[str, Any]) -> bytes:
    """A record as a line."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def message(number: str, sender: str, recipient: str, ago: float, **more: Any) -> bytes:
    """A message as our writers spell it."""
    head = {"id": number, "sender": sender, "recipient": recipient, "timestamp": stamp(ago)}
    return line({**head, "content": body(number), "thread": None, "ttl_hours": None, "read_by": [], **more})


def body(number: str) -> str:
    """The text of a message of the world: long enough to be cut in many places, and not all ASCII."""
    return f"this is number {number[:8]}, “whole” and ünharmed €"


def read(number: str, reader: str, ago: float, via: str | None = None) -> bytes:
    """A read record."""
    head = {"message_id": number, "reader_session_id": reader, "timestamp": stamp(ago), "event": "read"}
    return line({**head, **({"as": via} if via else {})})


def agent(session_id: str, *tags: str, ago: float = 100 * DAY) -> bytes:
    """A registration."""
    return line({"event": "register", "session_id": session_id, "timestamp": stamp(ago), "tags": list(tags)})


def build(box: Path, *, long_roster: bool = False) -> None:
    """Write the mailbox. ``eli`` has been silent for so long that a steward freezes him; ``gil`` has read
    everything."""
    for directory in (box, box / ARCHIVE, box / HEARTBEATS):
        directory.mkdir(mode=0o700)
    builder = ("role:builder", "project:x")
    roster = [agent("ann"), agent("bob", *builder), agent("cat", *builder), agent("dee"), agent("eli"), agent("gil")]
    if long_roster:
        dee = {"event": "update", "session_id": "dee"}
        changes = ({**dee, "timestamp": stamp(50 * DAY - n), "tags": [f"domain:d{n}"]} for n in range(LONG_ROSTER))
        roster += [line(change) for change in changes]
    older = {"id": FOREIGN, "from": "ann", "to": "dee", "body": body(FOREIGN), "timestamp": stamp(HOUR)}
    _write(
        box / MESSAGES,
        message(OLD_DIRECT, "ann", "bob", 95 * DAY),
        message(ROLE, "ann", "role:builder", 95 * DAY),
        FOREIGN_LINE,
        message(OLD_CLAIM, "ann", "role:builder", 60 * DAY),
        message(EMPTY_ROLE, "ann", "role:nobody", 60 * DAY),
        message(OLD_ALL, "ann", "all", 60 * DAY),
        message(OWED, "ann", "bob", 2 * HOUR, ack=True),
        message(CLAIM, "ann", "role:builder", 2 * HOUR, ack=True),
        message(DIRECT, "ann", "bob", HOUR),
        message(TAG, "ann", "project:x", HOUR),
        message(ALL, "ann", "all", HOUR),
        message(ANSWER, "bob", "ann", HOUR),
        line(older),
    )
    _write(
        box / READS,
        read(OLD_DIRECT, "bob", 94 * DAY),
        read(OLD_CLAIM, "bob", 59 * DAY, "role:builder"),
        read(OWED, "bob", HOUR, "bob"),
        read(CLAIM, "cat", HOUR, "role:builder"),
        read(ALL, "gil", 60, "all"),
    )
    _write(box / ROSTER, *roster)
    for name in READERS:
        (box / HEARTBEATS / name).touch(mode=0o600)
    silent = box / HEARTBEATS / "eli"
    silent.touch(mode=0o600)
    os.utime(silent, (time.time() - 3 * DAY,) * 2)


def _write(path: Path, *lines: bytes) -> None:
    path.write_bytes(b"".join(lines))
    path.chmod(0o600)
