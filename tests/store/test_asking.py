"""What asks and answers, by the projection: when it is taken in, read again and made again."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.core import codec, obligations, proofs
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.records import USER
from agent_mailbox.store.log.logs import Logs
from agent_mailbox.store.projection import line_facts, open_ends, projection_file
from agent_mailbox.store.projection.open_ends import read_asks
from agent_mailbox.store.user_state import creation
from tests.helpers import MESSAGES, READS, ROSTER, stamp

if TYPE_CHECKING:
    from pathlib import Path

NOW = stamp().encode()


@pytest.fixture(autouse=True)
def _counts_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_ends, "SHORT", -1)


def test_nothing_is_saved_of_a_log_that_changed_while_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program takes back, in place, that a message asks for an ack, while the projection takes in the next one."""
    log, logs = tmp_path / MESSAGES, Logs(str(tmp_path))
    line = b'{"id":"%b","sender":"ann","recipient":"bob","timestamp":"%b","content":"%b","ack":true}\n'
    (tmp_path / ROSTER).touch()

    def asked() -> list[str]:
        return [*read_asks(logs, "ann", DEFAULT_TTL).messages]

    log.write_bytes(line % (b"m1", NOW, b"x"))
    assert asked() == ["m1"]
    log.write_bytes(log.read_bytes() + line % (b"m2", NOW, b"x" * 600))
    facts_of = line_facts.facts_of

    def facts_beside_a_writer(line: bytes) -> line_facts.Facts | None:
        log.write_bytes(log.read_bytes().replace(b'"ack":true}', b'"ack":null}', 1))
        monkeypatch.setattr(line_facts, "facts_of", facts_of)
        return facts_of(line)

    monkeypatch.setattr(line_facts, "facts_of", facts_beside_a_writer)
    assert [asked(), asked()] == [["m2"], ["m2"]]


def test_what_is_proven_of_an_ask_and_of_its_answer_is_the_same(tmp_path: Path) -> None:
    """The person's ask is settled by the session that it reached, by whose proof."""

    def prove(who: str) -> str:
        return proofs.TERMINAL if who == USER else proofs.of_session(who)

    box = Mailbox(creation.create(str(tmp_path / "box"), os.environ), prove=prove)
    box.check_in("bob")
    asked = box.send(Draft(sender=USER, to=("bob",), content="done?", ack=True)).message.id
    box.deliver("bob", list)
    box.send(Draft(sender="bob", to=(USER,), content="yes", thread=asked))
    found, plainly = read_asks(box.logs, "bob", DEFAULT_TTL), box.logs.asking(DEFAULT_TTL)
    assert found.messages == plainly.messages
    assert [proofs.proves(one.proof) for one in found.messages.values()] == [True, True]


def append(box: Path, name: str, **record: Any) -> None:
    with (box / name).open("ab") as file:
        file.write(json.dumps({"timestamp": stamp(), **record}).encode() + b"\n")


def ask(box: Path, message_id: str) -> None:
    append(box, MESSAGES, id=message_id, sender="ann", recipient="bob", content="x", ack=True)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """An empty mailbox."""
    for name in (MESSAGES, READS, ROSTER):
        (tmp_path / name).touch()
    return tmp_path


def test_what_came_bit_by_bit_is_all_there(box: Path) -> None:
    """Messages and reads in any order, each taken in by itself."""
    logs = Logs(str(box))
    for n in range(4):
        append(box, READS, message_id=f"early {n}", reader_session_id="bob")
        ask(box, f"late {n}")
        read_asks(logs, "cat", DEFAULT_TTL)
        ask(box, f"early {n}")
        append(box, READS, message_id=f"late {n}", reader_session_id="bob")
        read_asks(logs, "cat", DEFAULT_TTL)
    owed = obligations.obligations("bob", read_asks(logs, "bob", DEFAULT_TTL))
    assert sorted(message.id for message in owed) == [f"{when} {n}" for when in ("early", "late") for n in range(4)]


def test_a_torn_record_is_none(box: Path) -> None:
    """Wherever the line of another program, or of a killed writer, ends."""
    ask(box, "a")
    line = b'{"message_id":"a","reader_session_id":"bob","timestamp":"2026-01-01T00:00:00Z"}\n'
    for end in range(len(line) - 1):
        (box / READS).write_bytes(line[:end] + b"\n")
        assert obligations.obligations("bob", read_asks(Logs(str(box)), "bob", DEFAULT_TTL)) == []


def test_lines_that_were_taken_in_are_not_read_again(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that owes nothing reads nothing of a long log, and one that owes reads only what it owes."""
    for n in range(300):
        append(box, MESSAGES, id=f"m{n}", sender="ann", recipient="bob", content="x", thread=None, ack=n == 7)
    append(box, READS, message_id="m7", reader_session_id="bob")
    read_asks(Logs(str(box)), "bob", DEFAULT_TTL)
    decoded = []
    message = codec.message
    monkeypatch.setattr(codec, "message", lambda line: decoded.append(line) or message(line))
    assert not read_asks(Logs(str(box)), "cat", DEFAULT_TTL).messages
    assert not decoded
    assert [*read_asks(Logs(str(box)), "bob", DEFAULT_TTL).messages] == ["m7"]
    assert len(decoded) == 1


def test_a_defect_of_ours_is_not_taken_for_a_damaged_projection(tmp_path: Path) -> None:
    """An error that a fresh one meets, too, is told. No scan hides it."""
    asked: list[bool] = []

    def fail(opened: projection_file.OpenProjection) -> None:
        asked.append(opened.is_fresh)
        raise ValueError("our defect")

    for _ in range(2):
        with pytest.raises(ValueError, match="our defect"):
            projection_file.use(str(tmp_path), fail, 1)
    assert asked[-1]


@pytest.mark.parametrize("builds", [True, False])
def test_a_projection_that_makes_no_sense_is_made_again_by_whoever_may(tmp_path: Path, builds: bool) -> None:
    """A damaged file may raise anything. Who does not build one leaves it to the next."""
    was_fresh: list[bool] = []

    def make(opened: projection_file.OpenProjection) -> tuple[str]:
        opened.db.execute("BEGIN IMMEDIATE")
        opened.save(is_sound=True)
        return ("made",)

    def make_sense(opened: projection_file.OpenProjection) -> tuple[str]:
        was_fresh.append(opened.is_fresh)
        if not opened.is_fresh:
            raise ValueError("no number")
        return make(opened)

    assert projection_file.use(str(tmp_path), make, 1) == "made"
    assert projection_file.use(str(tmp_path), make_sense, 1, builds=builds) == ("made" if builds else None)
    assert was_fresh == ([False, True] if builds else [False])


PLAIN = {
    "ours": b'{"id":"twice","sender":"cat","recipient":"ann","timestamp":"%b","content":"x","thread":null}\n' % NOW,
    "another's": b'{"sender":"cat", "recipient":"ann", "timestamp":"%b", "content":"x", "id":"twice"}\n' % NOW,
}
"""The first line of an id, which answers nothing, by its spelling."""


@pytest.mark.parametrize("is_long", [True, False])
@pytest.mark.parametrize("spelling", PLAIN)
def test_the_second_line_of_an_id_answers_nothing(
    box: Path, spelling: str, is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line counts alone, however it is spelt, by the projection and by a scan. The ask is still owed."""
    monkeypatch.setattr(open_ends, "SHORT", -1 if is_long else 1 << 30)
    ask(box, "asked")
    append(box, READS, message_id="asked", reader_session_id="bob")
    with (box / MESSAGES).open("ab") as file:
        file.write(PLAIN[spelling] + PLAIN["ours"].replace(b"null", b'"asked"').replace(b"cat", b"bob"))
    logs = Logs(str(box))
    assert [one.id for one in obligations.obligations("bob", read_asks(logs, "bob", DEFAULT_TTL))] == ["asked"]
    assert obligations.repliers(logs.state_of(["asked"], DEFAULT_TTL)) == {}


@pytest.mark.parametrize("is_long", [True, False])
def test_the_second_line_of_an_id_asks_for_nothing(box: Path, is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first line is plain mail, which was read: nobody owes an ack."""
    monkeypatch.setattr(open_ends, "SHORT", -1 if is_long else 1 << 30)
    with (box / MESSAGES).open("ab") as file:
        file.write(PLAIN["ours"].replace(b'"ann"', b'"bob"'))
        file.write(PLAIN["ours"].replace(b'"ann"', b'"bob"').replace(b"null}", b'null,"ack":true}'))
    append(box, READS, message_id="twice", reader_session_id="bob")
    assert obligations.obligations("bob", read_asks(Logs(str(box)), "bob", DEFAULT_TTL)) == []
