"""What the projection tells of asks, offers and mail that nobody took: the same as the whole logs do."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mailbox.core import codec, dead_letters, instant, obligations
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.instant import DAY, HOUR
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.mailbox.delivery import Offer, recall_offers
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.log.logs import Logs
from agent_mailbox.store.projection import index_keys, intake, open_ends, projection_file
from agent_mailbox.store.projection.open_ends import read_asks
from agent_mailbox.store.projection.untaken_mail import find_untaken
from tests.helpers import MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agent_mailbox.core.inbox import InboxState
    from agent_mailbox.core.records import Message

    Records = Sequence[dict[str, Any]]

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


def records(chance: random.Random, twins: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Messages, some with an id that stands twice, and reads, as several programs write them."""
    messages = [
        {"id": message_id, "sender": chance.choice(WHO), "recipient": chance.choice(ADDRESSES)}
        | {"timestamp": chance.choice(DATES[:3]), "content": chance.choice(("x", '"ann"', '","event":"read"'))}
        | some(chance, thread=IDS, ack=(True,), ttl_hours=(1, 9999), read_by=(["bob"],), metadata=({"thread": None},))
        | some(chance, bare=(["anna"], ["ann"]))
        for message_id in (*IDS, *chance.choices(IDS, k=twins))
    ]
    reads = [
        {
            "message_id": chance.choice(("m1", *IDS)),
            "reader_session_id": chance.choice(WHO[:3]),
            "timestamp": chance.choice(DATES),
        }
        | {"event": chance.choice(("read", "read", "read", "ack", "release", "seen", "claim"))}
        | some(chance, **{"as": ("role:dev", "ann"), "nonce": ("a1", "b2"), "title": (True,)})
        for _ in range(chance.randint(0, 9))
    ]
    return messages, reads


def ours(record: dict[str, Any]) -> bytes:
    """The record as our writers spell it, where they would write such a one."""
    keys = {"id", "sender", "recipient", "timestamp", "content", "thread", "ttl_hours", "ack"}
    if not isinstance(record.get("recipient"), str) or not keys.issuperset(record):
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"
    more = {"thread": None, "ttl_hours": None, "read_by": [], **record}
    order = ("id", "sender", "recipient", "timestamp", "content", "thread", "ttl_hours", "read_by", "ack")
    text = json.dumps({key: more[key] for key in order if key in more}, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def logs_of(
    box: Path, mail: Records, reads: Records = (), events: Records = (), spell: Callable[[Any], bytes] = ours
) -> Logs:
    """A mailbox of these lines alone."""
    for name, records in ((MESSAGES, mail), (READS, reads), (ROSTER, events)):
        (box / name).write_bytes(b"".join(map(spell, records)))
    return Logs(str(box))


def write(box: Path, chance: random.Random, twins: int) -> Iterator[None]:
    """Write the logs, a part at a time; a line may be looked at before its newline is there."""
    logs_of(box, (), events=[{"timestamp": DATES[1], **event} for event in ROSTER_LINES])
    todo = [(name, one) for name, some in zip((MESSAGES, READS), records(chance, twins), strict=True) for one in some]
    if chance.random() < 0.5:  # else all messages come before all reads
        chance.shuffle(todo)
    is_ours = chance.random()
    for name, one in todo:
        line = ours(one) if chance.random() < is_ours else spelt(one, chance)
        for part in (line[:-1], b"\n"):
            with (box / name).open("ab") as file:
                file.write(part)
            if chance.random() < 0.1:
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


def asks_agree(who: str, narrow: InboxState, whole: InboxState) -> None:
    for question in (obligations.obligations, obligations.unanswered):
        assert question(who, narrow) == question(who, whole)
        for message in question(who, whole):
            assert obligations.staleness(message, narrow, 0) == obligations.staleness(message, whole, 0)


@given(seed=st.integers(0, 1 << 32))
def test_what_is_owed_and_asked_is_the_same(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """However the lines are spelt, and whatever their texts hold."""
    chance = random.Random(seed)
    logs = logs_of(tmp_path_factory.mktemp("box"), *records(chance, 0), spell=lambda one: spelt(one, chance))
    for who in WHO:
        asks_agree(who, logs.asking(DEFAULT_TTL), logs.state(DEFAULT_TTL))


def recalled_plainly(logs: Logs, who: str) -> list[Offer]:
    """The session's open offers, by all its reads."""
    mine = [read for read in logs.read_records() if read.session_id == who]
    found: dict[str, Offer] = {}
    for message_id in dict.fromkeys(read.message_id for read in mine if read.nonce):
        for read in Reads(mine).unseen(message_id):
            nonce = read.nonce or ""
            before = found.get(nonce) or Offer(nonce, read.timestamp, 0, ())
            found[nonce] = before.replace(messages=(*before.messages, message_id))
    return list(found.values())


def moved(log: Path) -> None:
    """The steward moves the first half of the mail and puts a fresh log in its place."""
    kept = log.read_bytes().splitlines(keepends=True)
    fresh = log.with_suffix(".new")
    fresh.write_bytes(b"".join(kept[len(kept) // 2 :]))
    fresh.replace(log)


DAMAGES = (*["none"] * 9, "move", "lose", "flip", "older")


@given(seed=st.integers(0, 1 << 32))
def test_the_projection_answers_as_the_whole_logs_do(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """However the lines are spelt, whoever asks, however much of them is taken in at once, whatever becomes of the
    projection's file, and when the steward moves mail."""
    box, chance = tmp_path_factory.mktemp("box"), random.Random(seed)
    table = box / ".cache" / index_keys.FILE
    older, at, twins = b"", 0, chance.choice((0, 0, 1, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "SLICE", chance.choice((100, intake.SLICE)))
        patch.setattr(intake, "MANY", chance.choice((-1, intake.MANY)))
        patch.setattr(projection_file, "PAUSE", 0)
        for _ in write(box, chance, twins):
            damage = chance.choice(DAMAGES)
            if damage == "move":
                moved(box / MESSAGES)
            elif damage == "flip" and table.exists():
                data = table.read_bytes()
                place = chance.randrange(len(data))
                table.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            elif damage == "lose" and table.exists():
                older, at = table.read_bytes(), table.stat().st_mtime_ns
                table.unlink()
            elif damage == "older" and older:
                table.write_bytes(older)
                os.utime(table, ns=(at, at))
            logs = Logs(str(box))
            for who in chance.sample((*WHO, None), 3):
                agrees(logs, who)
                if who and not twins:
                    asks_agree(who, read_asks(logs, who, DEFAULT_TTL), logs.state(DEFAULT_TTL))
                    assert recall_offers(logs, who) == recalled_plainly(logs, who)
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
    logs = logs_of(box, mail, events=events)
    for at in (-30, 0):
        agrees(logs, "ann", NOW + at * HOUR)


def test_mail_that_was_given_back_or_told_by_title_is_not_passed_by(tmp_path: Path) -> None:
    """A read that was taken back, or of the title alone, or that is no record, is nobody's taking."""
    line = {"sender": "bob", "recipient": "ann", "timestamp": DATES[1], "content": "x", "ack": True, "ttl_hours": 1}
    read = {"reader_session_id": "ann", "timestamp": DATES[0], "event": "read"}
    reads = [
        {"message_id": "m0", **read},
        {"message_id": "m0", **read, "event": "release"},
        {"message_id": "m1", **read, "nonce": "a1", "title": True},
        {"message_id": "m1", **read, "event": "seen", "nonce": "a1"},
        {"message_id": "m2", **read, "timestamp": DATES[3]},
        {"message_id": "m3", **read},
    ]
    logs = logs_of(tmp_path, [{"id": f"m{n}", **line} for n in range(4)], reads)
    assert [message.id for message, _ in agrees(logs, "bob")] == ["m0", "m1", "m2"]


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
    logs, decoded, message = logs_of(tmp_path, mail, reads), [], codec.message
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
    logs = logs_of(tmp_path, mail, events=events)
    for asked, wanted in ((True, waiting.split()), (False, [])):
        assert [*find_untaken(logs, who, DEFAULT_TTL, NOW, newest=0, waiting=asked).messages] == wanted
    queries = MailQueries(Mailbox(str(tmp_path), clock=lambda: NOW))
    assert [one.id for one in queries.waiting(who)[0]] == (["m1"] if who in ("bob", None) else [])
    assert [one.id for one in queries.status(who or "bob").waiting] == (["m1"] if who in ("bob", None) else [])


def test_a_title_and_an_id_that_stands_twice_are_judged_decoded(tmp_path: Path) -> None:
    """The title of role mail takes what asks for no ack; of one id the first message counts."""
    line = {"recipient": "role:x", "timestamp": DATES[1], "content": "x", "ttl_hours": 1}
    mail = [{"id": one, "sender": who, **line} for one, who in (("m1", "bob"), ("m2", "bob"), ("m2", "eve"))]
    read = {"message_id": "m1", "reader_session_id": "ann", "timestamp": DATES[0], "event": "read", "as": "role:x"}
    logs = logs_of(tmp_path, mail, [{**read, "title": True}])
    assert [len(agrees(logs, who)) for who in ("bob", "eve", None)] == [1, 0, 1]


def test_a_second_line_of_what_was_given_back_hides_no_first_one(tmp_path: Path) -> None:
    """The first message of an id counts, even if the table passed it by as read. A second one that comes with the
    release changes nothing."""
    line = {"id": "m1", "sender": "bob", "recipient": "ann", "timestamp": DATES[0], "content": "x"}
    read = {"message_id": "m1", "reader_session_id": "ann", "timestamp": DATES[0]}
    assert agrees(logs_of(tmp_path, [{**line, "ttl_hours": 9}], [{**read, "event": "read"}]), "ann") == []
    with (tmp_path / MESSAGES).open("ab") as messages, (tmp_path / READS).open("ab") as reads:
        messages.write(ours({**line, "timestamp": DATES[1], "ttl_hours": 1}))
        reads.write(ours({**read, "event": "release"}))
    assert agrees(Logs(str(tmp_path)), "ann") == []


def test_what_a_killed_steward_left_in_both_logs_is_counted_once(tmp_path: Path) -> None:
    """The archive's messages are told, so those of them that are still live are decoded, and merge with them."""
    line = {"sender": "bob", "recipient": "ann", "timestamp": DATES[1], "content": "x", "ttl_hours": 1}
    logs = logs_of(tmp_path, [{"id": f"m{n}", **line} for n in range(3)])
    lonely = find_untaken(logs, "bob", DEFAULT_TTL, NOW, about=lambda: ["m0", "x"], newest=0)
    assert (lonely.surely, list(lonely.messages)) == (2, ["m0"])


def test_rows_of_other_logs_are_made_again(tmp_path: Path) -> None:
    """Rows of a log that was replaced name no lines of the new one."""
    line = {"sender": "bob", "recipient": "ann", "timestamp": DATES[1], "content": "x", "ttl_hours": 1}
    for ids in ("m1", "m2", "m3"), ("n4",):
        (tmp_path / MESSAGES).unlink(missing_ok=True)
        logs = logs_of(tmp_path, [{"id": one, **line} for one in ids])
        assert [message.id for message, _ in agrees(logs, "bob")] == [*ids]
