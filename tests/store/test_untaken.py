"""Dead letters among the lines that are not passed by: the same as everything gives."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import codec, dead_letters, instant
from agent_mailbox.core.claims import Reads
from agent_mailbox.core.expiry import DEFAULT_TTL
from agent_mailbox.store import prefilter, untaken
from agent_mailbox.store.logs import Logs
from tests.helpers import MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from agent_mailbox.core.records import Message

NOW = instant.parse("2026-03-16T12:00:00Z")
WHO = ("ann", "bob", "cat", "zed")
IDS = ("m1", 'm"2', "m\\3", "m4", "é5", "m6", "m7")
ROSTER_LINES = (
    {"event": "register", "session_id": "ann", "tags": ["role:dev", "project:x"], "name": "anna"},
    {"event": "register", "session_id": "bob", "tags": ["project:x"]},
    {"event": "register", "session_id": "cat", "continues": "bob"},
    {"event": "retire", "session_id": "bob"},
    {"event": "register", "session_id": "zed"},
    {"event": "retire", "session_id": "zed"},
)
ADDRESSES = ("ann", "anna", "bob", "zed", "all", "project:x", "role:dev", "dev", ["zed", "bob"])
DATES = ("2026-03-16T11:00:00.000Z", "2026-01-16T11:00:00.000Z", "2024-02-29T00:00:00.000Z", "2026-02-30T00:00:00.000Z")


def spelt(record: dict[str, Any], chance: random.Random) -> bytes:
    separators = chance.choice([(",", ":"), (",", ":"), (", ", ": ")])
    text = json.dumps(record, separators=separators, ensure_ascii=chance.choice((False, True)))
    return text.encode() + chance.choice((b"\n", b"\n", b"\n\n", b'\n{"torn":"\n'))


def some(chance: random.Random, **options: Sequence[Any]) -> dict[str, Any]:
    return {key: chance.choice(values) for key, values in options.items() if chance.random() < 0.4}


def write(box: Path, chance: random.Random) -> None:
    """Messages of different ids, and reads, as several programs write them."""
    messages = [
        {"id": message_id, "sender": chance.choice(WHO), "recipient": chance.choice(ADDRESSES)}
        | {"timestamp": chance.choice(DATES[:3]), "content": chance.choice(("x", '"ann"', '","event":"read"'))}
        | some(chance, thread=IDS, ack=(True,), ttl_hours=(1, 9999), read_by=(["bob"],), metadata=({"thread": None},))
        for message_id in IDS
    ]
    reads = [
        {
            "message_id": chance.choice(("m1", *IDS)),
            "reader_session_id": chance.choice(("ann", "bob")),
            "timestamp": chance.choice(DATES),
        }
        | {"event": chance.choice(("read", "read", "read", "ack", "release", "seen"))}
        | some(chance, **{"as": ("role:dev", "ann"), "nonce": ("a1", "b2"), "title": (True,)})
        for _ in range(chance.randint(0, 9))
    ]
    for name, records in ((MESSAGES, messages), (READS, reads)):
        (box / name).write_bytes(b"".join(spelt(record, chance) for record in records))
    events = (json.dumps({"timestamp": DATES[1], **event}).encode() + b"\n" for event in ROSTER_LINES)
    (box / ROSTER).write_bytes(b"".join(events))


def agrees(logs: Logs, who: str | None) -> list[tuple[Message, str]]:
    whole = logs.state(DEFAULT_TTL)
    words = None if who is None else prefilter.addresses(whole.roster.reader(who))
    messages, reads = untaken.found(logs, words)
    narrow = whole.replace(messages=messages, reads=Reads(reads))
    found = dead_letters.dead_letters(narrow, NOW, who)
    assert found == dead_letters.dead_letters(whole, NOW, who)
    return found


@given(seed=st.integers(0, 1 << 32))
def test_nothing_is_held_back(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """However the lines are spelt, and whoever asks."""
    box = tmp_path_factory.mktemp("box")
    write(box, random.Random(seed))
    for who in (*WHO, None):
        agrees(Logs(str(box)), who)


def test_mail_that_was_given_back_or_told_by_title_is_not_passed_by(tmp_path: Path) -> None:
    """A read that was taken back, or of the title alone, or that is no record, is nobody's taking."""
    mail = [
        {
            "id": f"m{n}",
            "sender": "bob",
            "recipient": "ann",
            "timestamp": DATES[1],
            "content": "x",
            "ack": True,
            "ttl_hours": 1,
        }
        for n in range(4)
    ]
    read = {"reader_session_id": "ann", "timestamp": DATES[0], "event": "read"}
    reads = [
        {"message_id": "m0", **read},
        {"message_id": "m0", **read, "event": "release"},
        {"message_id": "m1", **read, "nonce": "a1", "title": True},
        {"message_id": "m1", **read, "event": "seen", "nonce": "a1"},
        {"message_id": "m2", **read, "timestamp": DATES[3]},
        {"message_id": "m3", **read},
    ]
    for name, records in ((MESSAGES, mail), (READS, reads), (ROSTER, ())):
        lines = (json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
        (tmp_path / name).write_bytes(b"".join(lines))
    assert [message.id for message, _ in agrees(Logs(str(tmp_path)), "bob")] == ["m0", "m1", "m2"]


def test_what_was_read_or_is_none_of_the_asker_s_is_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of forty expired messages of which one is the asker's and unread, one line is decoded."""
    line = {"recipient": "ann", "timestamp": DATES[1], "content": "x", "thread": None}
    mail = [{"id": f"m{n}", "sender": "bob" if n % 2 else "eve", **line} for n in range(40)]
    reads = [
        {"message_id": f"m{n}", "reader_session_id": "ann", "timestamp": DATES[0], "event": "read"}
        for n in range(1, 39)
    ]
    for name, records in ((MESSAGES, mail), (READS, reads), (ROSTER, ())):
        lines = (json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
        (tmp_path / name).write_bytes(b"".join(lines))
    logs, decoded, message = Logs(str(tmp_path)), [], codec.message
    monkeypatch.setattr(codec, "message", lambda line: decoded.append(line) or message(line))
    messages, reads_found = untaken.found(logs, [b'"bob"'])
    assert ([*messages], reads_found, len(decoded)) == (["m39"], [], 1)
