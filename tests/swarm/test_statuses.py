"""The gateway's view of its inbox: one remembered fold, which always says what a new one says."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from agent_mailbox.core import codec, retention
from agent_mailbox.core.records import Message, Read
from agent_mailbox.mailbox.facade import Mailbox
from agent_mailbox.store import rotation
from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.statuses import ARCHIVED, DELETED, READ, UNREAD, Statuses

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.helpers import Post

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
        with rotation.exclusively(self.box.archive, 1):
            rotation.rotate(self.box.logs, self.box.archive, self.box.config.ttls, lambda _: plan)
        assert sum(any(i.encode() in line for i in ids) for _, line in self.box.logs.messages.lines()) == 0

    def agrees(self) -> dict[str, str]:
        """The status of each message, and every answer of the fold is that of a new one."""
        new = Statuses(self.home, self.box)
        for status in ("all", UNREAD, READ, ARCHIVED, DELETED):
            for swarm in (None, *SWARMS):
                assert self.statuses.chosen(status, swarm) == new.chosen(status, swarm)
                assert self.statuses.chosen(status, swarm, "bob", 2) == new.chosen(status, swarm)[:2]
        assert [self.statuses.counts(swarm) for swarm in (None, *SWARMS)] == [
            new.counts(swarm) for swarm in (None, *SWARMS)
        ]
        rows = [row for status in (UNREAD, READ, ARCHIVED, DELETED) for row in new.chosen(status)]
        assert new.counts()["total"] == len(rows)
        return {message.id: status for message, status, _ in rows}


def test_the_fold_follows_mail_reading_marks_and_the_steward(post: Post, tmp_path: Path) -> None:
    """Mail that was archived meanwhile stays, and stays read."""
    post.register("ann")
    inbox = Inbox(post, tmp_path / "swarm")
    assert inbox.agrees() == {}
    first, second, third = inbox.comes(3)
    assert inbox.agrees() == dict.fromkeys((first, second, third), UNREAD)
    (other,) = inbox.comes(1, swarm=1)
    assert inbox.statuses.ids(UNREAD, SWARMS[1]) == [other]
    inbox.box.logs.reads.append([codec.read_line(Read(message_id=first, session_id="ann", timestamp=inbox.box.now()))])
    marked = inbox.statuses.mark([second, str(uuid.uuid4()), second], DELETED)
    assert [(message.id, status) for message, status, _ in marked] == [(second, DELETED)]
    assert inbox.agrees() == {first: READ, second: DELETED, third: UNREAD, other: UNREAD}
    inbox.box.release(first, "ann")
    assert inbox.agrees()[first] == UNREAD
    inbox.box.logs.reads.append([codec.read_line(Read(message_id=first, session_id="ann", timestamp=inbox.box.now()))])
    inbox.statuses.mark([third], ARCHIVED)
    assert inbox.statuses.mark([third], READ, only_forward=True)[0][1] == ARCHIVED
    inbox.archives(first, second, other)
    (last,) = inbox.comes(1)
    assert inbox.agrees() == {first: READ, second: DELETED, third: ARCHIVED, other: UNREAD, last: UNREAD}
    assert [message.content for message, *_ in inbox.statuses.chosen()] == ["text"] * 4
    post.file("agent-mailbox.jsonl").unlink()  # as the person may, or a restored backup does
    inbox.comes(1)
    assert last not in inbox.agrees()


def test_a_question_reads_no_history(post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the lines that came, and those of its answer."""
    inbox = Inbox(post, tmp_path / "swarm")
    inbox.comes(300)
    inbox.statuses.counts()
    parsed: list[bytes] = []
    whole = codec.message
    monkeypatch.setattr(codec, "message", lambda text: (parsed.append(text), whole(text))[1])
    (newest,) = inbox.comes(1)
    before = len(parsed)
    assert inbox.statuses.counts()["total"] == 301
    assert inbox.statuses.chosen(UNREAD, limit=1)[0][0].id == newest
    assert len(parsed) - before <= 4


def test_a_foreign_line_without_a_swarm_breaks_no_listing(post: Post, tmp_path: Path) -> None:
    """Another program may write that into the mailbox; the rest is listed all the same."""
    inbox = Inbox(post, tmp_path / "swarm")
    (mine,) = inbox.comes(1)
    message = Message(str(uuid.uuid4()), "swarm:demo/eve", ("ann",), inbox.box.now(), "text")
    inbox.box.take_in([message.replace(extra={"swarm": {}}), message.replace(id=str(uuid.uuid4()), extra={"swarm": 7})])
    assert [m.id for m, *_ in inbox.statuses.chosen()] == [message.id, mine]
    assert [m.id for m, *_ in inbox.statuses.chosen(swarm_id=SWARMS[0])] == [mine]
