"""The gateway's view of its inbox: one remembered fold, which always says what a new one says."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import codec
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.records import Message, Read
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.archive import rotation
from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.statuses import ARCHIVED, DELETED, READ, UNREAD, Statuses
from tests.swarm.wirework import beside

if TYPE_CHECKING:
    from tests.helpers import Post
    from tests.swarm.conftest import Make

SWARMS = (str(uuid.UUID(int=1)), str(uuid.UUID(int=2)))


class Inbox:
    """A mailbox that swarms write to, and the fold of somebody who asks again and again."""

    def __init__(self, post: Post, home: Path) -> None:
        home.mkdir(mode=0o700)
        self.box = Mailbox(str(post.box))
        self.home = Home(str(home))
        self.statuses = Statuses(self.home, self.box)

    def comes(self, count: int, swarm: int = 0) -> list[str]:
        """Take in remote mail, and a local message between."""
        ids = [str(uuid.uuid4()) for _ in range(count)]
        about = {"swarm_id": SWARMS[swarm], "agent_id": "bob"}
        extra = [{"swarm": {**about, "message_id": i}} for i in ids]
        now = self.box.now()
        sent = [Message(i, "swarm:demo/bob", ("ann",), now, "text", extra=e) for i, e in zip(ids, extra, strict=True)]
        self.box.take_in([*sent, Message(str(uuid.uuid4()), "zoe", ("ann",), now, 'about "swarm:demo"')])
        return ids

    def archives(self, *ids: str) -> None:
        """Let the steward move these, and what is recorded about them."""
        plan = retention.RetentionPlan(move=frozenset(ids), pending=0)
        with rotation.alone(self.box.archive, 1):
            rotation.rotate(self.box.logs, self.box.archive, self.box.config.ttls, lambda _: plan)
        assert sum(any(i.encode() in line for i in ids) for _, line in self.box.logs.messages.lines()) == 0

    def agrees(self) -> dict[str, str]:
        """The status of each message, and every answer of the fold is that of a new one."""
        new = Statuses(self.home, self.box)
        for status in ("all", UNREAD, READ, ARCHIVED, DELETED):
            for swarm in (None, *SWARMS):
                assert self.statuses.choose_rows(status, swarm) == new.choose_rows(status, swarm)
                assert self.statuses.choose_rows(status, swarm, "bob", 2) == new.choose_rows(status, swarm)[:2]
        assert [self.statuses.count_statuses(swarm) for swarm in (None, *SWARMS)] == [
            new.count_statuses(swarm) for swarm in (None, *SWARMS)
        ]
        rows = [row for status in (UNREAD, READ, ARCHIVED, DELETED) for row in new.choose_rows(status)]
        assert new.count_statuses()["total"] == len(rows)
        return {message.id: status for message, status, _ in rows}


def test_the_fold_follows_mail_reading_marks_and_the_steward(post: Post, tmp_path: Path) -> None:
    """Mail that was archived meanwhile stays, and stays read."""
    post.register("ann")
    inbox = Inbox(post, tmp_path / "swarm")
    assert inbox.agrees() == {}
    first, second, third = inbox.comes(3)
    assert inbox.agrees() == dict.fromkeys((first, second, third), UNREAD)
    (other,) = inbox.comes(1, swarm=1)
    assert inbox.statuses.list_ids(UNREAD, SWARMS[1]) == [other]
    inbox.box.logs.reads.append([codec.spell_read(Read(message_id=first, session_id="ann", timestamp=inbox.box.now()))])
    marked = inbox.statuses.set_status([second, str(uuid.uuid4()), second], DELETED)
    assert [(message.id, status) for message, status, _ in marked] == [(second, DELETED)]
    assert inbox.agrees() == {first: READ, second: DELETED, third: UNREAD, other: UNREAD}
    inbox.box.release(first, "ann")
    assert inbox.agrees()[first] == UNREAD
    inbox.box.logs.reads.append([codec.spell_read(Read(message_id=first, session_id="ann", timestamp=inbox.box.now()))])
    inbox.statuses.set_status([third], ARCHIVED)
    assert inbox.statuses.set_status([third], READ, only_forward=True)[0][1] == ARCHIVED
    inbox.archives(first, second, other)
    (last,) = inbox.comes(1)
    assert inbox.agrees() == {first: READ, second: DELETED, third: ARCHIVED, other: UNREAD, last: UNREAD}
    assert [message.content for message, *_ in inbox.statuses.choose_rows()] == ["text"] * 4
    post.file("agent-mailbox.jsonl").unlink()  # as the person may, or a restored backup does
    inbox.comes(1)
    assert last not in inbox.agrees()


def test_a_status_question_reads_only_new_lines(post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the lines that came, and those of its answer."""
    inbox = Inbox(post, tmp_path / "swarm")
    inbox.comes(300)
    inbox.statuses.count_statuses()
    parsed: list[bytes] = []
    whole = codec.message
    monkeypatch.setattr(codec, "message", lambda text: (parsed.append(text), whole(text))[1])
    (newest,) = inbox.comes(1)
    before = len(parsed)
    assert inbox.statuses.count_statuses()["total"] == 301
    assert inbox.statuses.choose_rows(UNREAD, limit=1)[0][0].id == newest
    assert len(parsed) - before <= 4


def test_a_foreign_line_without_a_swarm_breaks_no_listing(post: Post, tmp_path: Path) -> None:
    """Another program may write that into the mailbox; the rest is listed all the same."""
    inbox = Inbox(post, tmp_path / "swarm")
    (mine,) = inbox.comes(1)
    message = Message(str(uuid.uuid4()), "swarm:demo/eve", ("ann",), inbox.box.now(), "text")
    inbox.box.take_in([message.replace(extra={"swarm": {}}), message.replace(id=str(uuid.uuid4()), extra={"swarm": 7})])
    assert [m.id for m, *_ in inbox.statuses.choose_rows()] == [message.id, mine]
    assert [m.id for m, *_ in inbox.statuses.choose_rows(swarm_id=SWARMS[0])] == [mine]


QUESTIONS = (
    ("inbox",),
    ("inbox", "--status", "unread", "--swarm", "demo", "--limit", "2"),
    ("inbox", "--status", "deleted"),
    ("status",),
    ("context", "demo", "--limit", "3"),
)


def test_commands_answer_the_same_beside_a_serving_gateway(machine: Make) -> None:
    """A serving gateway changes no answer of a command, nor do calls of its local API."""
    a = machine("alpha")
    a.register("ann")
    swarm_id = a.ok("swarm", "create", "demo")["swarm"]["swarm_id"]
    box = Mailbox(str(a.box))
    about = {"swarm": {"swarm_id": swarm_id, "agent_id": "bob"}}
    ids = [str(uuid.uuid4()) for _ in range(5)]
    texts = [(i, f"text {n} \x1b[2J \u202e é") for n, i in enumerate(ids)]
    box.take_in([Message(i, "swarm:demo/bob", ("ann",), box.now(), text, extra=about) for i, text in texts])
    a.ok("swarm", "inbox", "--mark", "delete", ids[1])
    a.ok("check", "--session", "ann", "--limit", "1")

    def asked() -> list[object]:
        found = [a.ok("swarm", *words) for words in QUESTIONS]
        return [{key: value for key, value in one.items() if key != "serving"} for one in found]

    alone = asked()
    a.serve()
    assert beside(a, "/api/inbox/count").json()["total"] == 5
    assert asked() == alone


def test_a_gateway_answers_for_its_own_mailbox_alone(machine: Make, tmp_path: Path) -> None:
    """A command that means another one gets no line of this one."""
    a = machine("alpha").serve()
    (tmp_path / "other").mkdir()
    assert beside(a, f"/api/inbox/count?mailbox={a.box}").status_code == 200
    assert beside(a, f"/api/inbox/count?mailbox={tmp_path / 'other'}").status_code == 404
