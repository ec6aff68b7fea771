"""Dead letters among the lines that are not passed by: the same as everything gives."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mailbox.core import codec, dead_letters, instant
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.instant import DAY, HOUR
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.store.log.logs import Logs
from agent_mailbox.store.projection import intake, open_ends, projection_file
from agent_mailbox.store.projection.untaken_mail import find_untaken
from tests.helpers import MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

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
ADDRESSES = ("ann", "anna", "bob", "zed", "all", "project:x", "role:dev", "dev", ["zed", "bob"], "role:anna")
DATES = ("2026-03-16T11:00:00.000Z", "2026-01-16T11:00:00.000Z", "2024-02-29T00:00:00.000Z", "2026-02-30T00:00:00.000Z")


@pytest.fixture(autouse=True)
def _counts_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_ends, "SHORT", -1)


def spelt(record: dict[str, Any], chance: random.Random) -> bytes:
    separators = chance.choice([(",", ":"), (",", ":"), (", ", ": ")])
    text = json.dumps(record, separators=separators, ensure_ascii=chance.choice((False, True)))
    return text.encode() + chance.choice((b"\n", b"\n", b"\n\n", b'\n{"torn":"\n'))


def some(chance: random.Random, **options: Sequence[Any]) -> dict[str, Any]:
    return {key: chance.choice(values) for key, values in options.items() if chance.random() < 0.4}


def records(chance: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Messages of different ids, and reads, as several programs write them."""
    messages = [
        {"id": message_id, "sender": chance.choice(WHO), "recipient": chance.choice(ADDRESSES)}
        | {"timestamp": chance.choice(DATES[:3]), "content": chance.choice(("x", '"ann"', '","event":"read"'))}
        | some(chance, thread=IDS, ack=(True,), ttl_hours=(1, 9999), read_by=(["bob"],), metadata=({"thread": None},))
        | some(chance, bare=(["anna"], ["ann"]))
        for message_id in (*IDS, *chance.choices(IDS, k=chance.randint(0, 2)))
    ]
    reads = [
        {
            "message_id": chance.choice(("m1", *IDS)),
            "reader_session_id": chance.choice(("ann", "bob")),
            "timestamp": chance.choice(DATES),
        }
        | {"event": chance.choice(("read", "read", "read", "ack", "release", "seen", "claim"))}
        | some(chance, **{"as": ("role:dev", "ann"), "nonce": ("a1", "b2"), "title": (True,)})
        for _ in range(chance.randint(0, 9))
    ]
    return messages, reads


def ours(record: dict[str, Any]) -> bytes:
    """The record as our writers spell it, where they would write such a one."""
    if "message_id" in record:
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"
    keys = {"id", "sender", "recipient", "timestamp", "content", "thread", "ttl_hours", "ack"}
    if isinstance(record["recipient"], list) or not keys.issuperset(record):
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"
    more = {"thread": None, "ttl_hours": None, "read_by": [], **record}
    order = ("id", "sender", "recipient", "timestamp", "content", "thread", "ttl_hours", "read_by", "ack")
    text = json.dumps({key: more[key] for key in order if key in more}, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def write(box: Path, chance: random.Random) -> Iterator[None]:
    """Write the logs, a part at a time."""
    events = (json.dumps({"timestamp": DATES[1], **event}).encode() + b"\n" for event in ROSTER_LINES)
    (box / ROSTER).write_bytes(b"".join(events))
    todo = [(name, one) for name, some in zip((MESSAGES, READS), records(chance), strict=True) for one in some]
    if chance.random() < 0.5:  # else all messages come before all reads
        chance.shuffle(todo)
    is_ours = chance.random()
    for name, one in todo:
        with (box / name).open("ab") as file:
            file.write(ours(one) if chance.random() < is_ours else spelt(one, chance))
        if chance.random() < 0.2:
            yield
    yield


def agrees(logs: Logs, who: str | None, now: int = NOW) -> list[tuple[Message, str]]:
    whole = logs.state(DEFAULT_TTL)
    every = dead_letters.dead_letters(whole, now, who)
    lonely = find_untaken(logs, who, DEFAULT_TTL, now)
    assert (
        dead_letters.dead_letters(whole.replace(messages=lonely.messages, reads=Reads(lonely.reads)), now, who) == every
    )
    lonely = find_untaken(logs, who, DEFAULT_TTL, now, newest=0)
    found = dead_letters.dead_letters(whole.replace(messages=lonely.messages, reads=Reads(lonely.reads)), now, who)
    assert lonely.surely + len(found) == len(every)
    for since, newest in ((0, 2), (instant.parse(DATES[1]) + 1, None)):
        lonely = find_untaken(logs, who, DEFAULT_TTL, now, since=since, newest=newest)
        judged = whole.replace(messages=lonely.messages, reads=Reads(lonely.reads))
        found, wanted = (
            sorted((message.timestamp, message.id) for message, _ in letters if message.timestamp >= since)
            for letters in (dead_letters.dead_letters(judged, now, who), every)
        )
        assert lonely.surely + len(found) == len(wanted)
        assert [when for when, _ in found[-2:]] == [when for when, _ in wanted[-2:]]
    return every


@settings(max_examples=settings().max_examples * 2 // 3)
@given(seed=st.integers(0, 1 << 32))
def test_nothing_is_held_back(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """However the lines are spelt, whoever asks, and however much of them is taken in at once."""
    box, chance = tmp_path_factory.mktemp("box"), random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "SLICE", chance.choice((100, intake.SLICE)))
        patch.setattr(intake, "MANY", chance.choice((-1, intake.MANY)))
        patch.setattr(projection_file, "PAUSE", 0)
        for _ in write(box, chance):
            for who in chance.choices((*WHO, None), k=2):
                agrees(Logs(str(box)), who)
    for who in (*WHO, None):
        agrees(Logs(str(box)), who)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(seed=st.integers(0, 1 << 32))
def test_a_stopped_clock_spares_what_was_not_expired(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whenever mail is written to an agent that is frozen now and then, and whenever one asks."""
    box, chance = tmp_path_factory.mktemp("box"), random.Random(seed)
    events = [{"event": "register", "session_id": "ann", "timestamp": instant.text(NOW - 9 * DAY)}]
    for at in sorted(chance.choices(range(-200, 0), k=chance.randint(0, 5))):
        event = chance.choice(("freeze", "thaw", "retire", "register"))
        events.append({"event": event, "session_id": "ann", "timestamp": instant.text(NOW + at * HOUR)})
    hours = sorted(chance.choices(range(-200, 1), k=20))
    mail = [
        {"id": f"m{n}", "sender": "bob", "recipient": chance.choice(("ann", "all")), "content": "x"}
        | {"timestamp": instant.text(NOW + at * HOUR)}
        | some(chance, ttl_hours=(1, 100))
        for n, at in enumerate(hours)
    ]
    for name, lines in ((MESSAGES, [*map(ours, mail)]), (ROSTER, [json.dumps(e).encode() + b"\n" for e in events])):
        (box / name).write_bytes(b"".join(lines))
    for at in (-30, 0):
        agrees(Logs(str(box)), "ann", NOW + at * HOUR)


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


def test_what_nobody_has_a_record_of_is_counted_undecoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail without a record is read from the log once, and counted by the table from then on: as many of the newest
    as are asked for are read again, and the rest is counted. A release brings back mail that was read."""
    line = {"timestamp": DATES[1], "content": "ä", "ttl_hours": 1}
    mail = [
        {"id": f"m{n}", "sender": "bob" if n % 2 else "eve", "recipient": "x" if n % 4 < 2 else "y", **line}
        for n in range(40)
    ]
    read = {"reader_session_id": "ann", "timestamp": DATES[0], "event": "read"}
    reads = [{"message_id": f"m{n}", **read} for n in range(1, 31)]
    for name, lines in ((MESSAGES, mail), (READS, reads), (ROSTER, ())):
        (tmp_path / name).write_bytes(b"".join(map(ours, lines)))
    logs, decoded, message = Logs(str(tmp_path)), [], codec.message
    assert find_untaken(logs, "bob", DEFAULT_TTL, NOW, newest=0).surely == 5
    monkeypatch.setattr(codec, "message", lambda line: decoded.append(line) or message(line))
    assert find_untaken(logs, "bob", DEFAULT_TTL, NOW, newest=0).surely == 5
    assert not decoded
    left = [f"m{n}" for n in range(31, 40, 2)]  # of one instant, to two addresses
    for newest, shown in ((1, left[4:]), (2, left[3:]), (3, left[2:]), (5, left), (6, left), (None, left)):
        lonely = find_untaken(logs, "bob", DEFAULT_TTL, NOW, newest=newest)
        assert ([*lonely.messages], lonely.surely) == (shown, 5 - len(shown)), newest
    assert len(decoded) == 1 + 2 + 3 + 5 + 5 + 5
    with (tmp_path / READS).open("ab") as file:
        file.write(ours({"message_id": "m3", **read, "event": "release"}))
    assert [message.id for message, _ in agrees(logs, "bob")] == ["m3", *(f"m{n}" for n in range(31, 40, 2))]


@pytest.mark.parametrize(("who", "waiting"), [("bob", "m0 m1"), ("eve", "m4"), ("ann", ""), (None, "m0 m1 m4")])
def test_what_may_wait_for_nobody_is_there_if_asked_for(tmp_path: Path, who: str | None, waiting: str) -> None:
    """Mail to a role or a tag may, if it has fewer than two bearers: the one may be its sender."""
    line = {"timestamp": DATES[0], "content": "x", "ttl_hours": 9}
    to = ("role:dev", "role:none", "role:ops", "ann", "role:dev")
    mail = [{"id": f"m{n}", "sender": "eve" if n == 4 else "bob", "recipient": one, **line} for n, one in enumerate(to)]
    more = [{"event": "register", "session_id": who, "tags": ["role:ops"]} for who in ("o1", "o2")]
    events = [{"timestamp": DATES[1], **event} for event in (ROSTER_LINES[0], *more)]
    for name, lines in ((MESSAGES, mail), (READS, ()), (ROSTER, events)):
        (tmp_path / name).write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    logs = Logs(str(tmp_path))
    for asked, wanted in ((True, waiting.split()), (False, [])):
        assert [*find_untaken(logs, who, DEFAULT_TTL, NOW, newest=0, waiting=asked).messages] == wanted


def test_a_title_and_an_id_that_stands_twice_are_judged_decoded(tmp_path: Path) -> None:
    """The title of role mail takes what asks for no ack; of one id the first message counts."""
    line = {"recipient": "role:x", "timestamp": DATES[1], "content": "x", "ttl_hours": 1}
    mail = [
        {"id": "m1", "sender": "bob", **line},
        {"id": "m2", "sender": "bob", **line},
        {"id": "m2", "sender": "eve", **line},
    ]
    read = {"message_id": "m1", "reader_session_id": "ann", "timestamp": DATES[0], "event": "read", "as": "role:x"}
    for name, lines in ((MESSAGES, mail), (READS, [{**read, "title": True}]), (ROSTER, ())):
        (tmp_path / name).write_bytes(b"".join(map(ours, lines)))
    assert [len(agrees(Logs(str(tmp_path)), who)) for who in ("bob", "eve", None)] == [1, 0, 1]


def test_a_second_line_of_what_was_given_back_hides_no_first_one(tmp_path: Path) -> None:
    """The first message of an id counts, even if the table passed it by as read. A second one that comes with the
    release changes nothing."""
    line = {"id": "m1", "sender": "bob", "recipient": "ann", "timestamp": DATES[0], "content": "x"}
    read = {"message_id": "m1", "reader_session_id": "ann", "timestamp": DATES[0]}
    (tmp_path / MESSAGES).write_bytes(ours({**line, "ttl_hours": 9}))
    (tmp_path / READS).write_bytes(ours({**read, "event": "read"}))
    (tmp_path / ROSTER).write_bytes(b"")
    assert agrees(Logs(str(tmp_path)), "ann") == []
    with (tmp_path / MESSAGES).open("ab") as messages, (tmp_path / READS).open("ab") as reads:
        messages.write(ours({**line, "timestamp": DATES[1], "ttl_hours": 1}))
        reads.write(ours({**read, "event": "release"}))
    assert agrees(Logs(str(tmp_path)), "ann") == []


def test_what_a_killed_steward_left_in_both_logs_is_counted_once(tmp_path: Path) -> None:
    """The archive's messages are told, so those of them that are still live are decoded, and merge with them."""
    line = {"sender": "bob", "recipient": "ann", "timestamp": DATES[1], "content": "x", "ttl_hours": 1}
    (tmp_path / MESSAGES).write_bytes(b"".join(ours({"id": f"m{n}", **line}) for n in range(3)))
    for name in (READS, ROSTER):
        (tmp_path / name).write_bytes(b"")
    lonely = find_untaken(Logs(str(tmp_path)), "bob", DEFAULT_TTL, NOW, about=lambda: ["m0", "x"], newest=0)
    assert (lonely.surely, list(lonely.messages)) == (2, ["m0"])


def test_rows_of_other_logs_are_made_again(tmp_path: Path) -> None:
    """Rows of a log that was replaced name no lines of the new one."""
    line = {"sender": "bob", "recipient": "ann", "timestamp": DATES[1], "content": "x", "ttl_hours": 1}
    for ids in ("m1", "m2", "m3"), ("n4",):
        (tmp_path / MESSAGES).unlink(missing_ok=True)
        (tmp_path / MESSAGES).write_bytes(b"".join(ours({"id": one, **line}) for one in ids))
        assert [message.id for message, _ in agrees(Logs(str(tmp_path)), "bob")] == [*ids]
