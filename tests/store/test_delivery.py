"""Delivering: what was shown is recorded and never shown again, whatever goes wrong around it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Busy, Draft, Mailbox
from agent_mailbox.core import codec, inbox, obligations
from agent_mailbox.core.inbox import Item
from agent_mailbox.core.records import Message
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.store.lock import FileLock
from agent_mailbox.store.stamps import Trail
from agent_mailbox.upkeep import steward as stewards
from tests.helpers import Post

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def holder(post: Post) -> Mailbox:
    """A mailbox whose ``bob`` has a role message and a direct one unread; locks are not waited for long."""
    mailbox = Mailbox(str(post.box), wait=0.05)
    mailbox.register(Registration(session_id="bob", roles=("ops",)), "user")
    for to in ("role:ops", "bob"):
        mailbox.send(Draft(sender="ann", to=(to,), content=to))
    return mailbox


def test_a_blocked_reader_is_shown_nothing_twice_in_one_delivery(holder: Mailbox) -> None:
    """Output that blocks while role mail is shown is the end of the delivery, not a reason to begin it anew."""
    calls: list[int] = []

    def show(items: list[Item]) -> list[Item]:
        calls.append(len(items))
        raise Busy("the reader does not read", code="output_blocked")

    with pytest.raises(Busy, match="does not read"):
        holder.deliver("bob", show, role_wait=0.01)
    assert calls == [2]
    assert len(holder.peek("bob")) == 2


@pytest.mark.parametrize("log", ["messages", "roster"])
def test_what_is_recorded_is_delivered_even_if_the_stamp_cannot_be_made(holder: Mailbox, log: str) -> None:
    """Another holds a log's lock when the quiet stamp would be made: no error, nothing shown again, no stamp."""
    shown: list[str] = []
    locks: list[FileLock] = []

    def show(items: list[Item]) -> list[Item]:
        shown.extend(item.message.content for item in items)
        locks.append(FileLock(getattr(holder.logs, log).path).take())
        return items

    holder.logs.wait = 0.05
    assert holder.deliver("bob", show, role_wait=0.01) == 2
    with locks[0]:
        assert shown == ["role:ops", "bob"]
        assert holder.peek("bob") == []
        assert not holder.logs.trail.is_quiet("bob")


def test_role_mail_waits_while_another_is_shown_some_and_the_rest_does_not(holder: Mailbox) -> None:
    """A hook that cannot get the role lock in its time delivers what is the session's own."""
    shown: list[str] = []

    def show(items: list[Item]) -> list[Item]:
        shown.extend(item.message.content for item in items)
        return items

    with holder.logs.role_delivery():
        assert holder.deliver("bob", show, role_wait=0.01) == 1
        with pytest.raises(Busy):
            holder.deliver("bob", show, role_wait=None)
    assert shown == ["bob"]
    assert [item.message.content for item in holder.peek("bob")] == ["role:ops"]


@pytest.mark.parametrize("what", ["sent", "foreign", "given back", "role taken"])
def test_what_happens_while_mail_is_shown_is_not_taken_for_read(holder: Mailbox, what: str) -> None:
    """Mail that comes, returns, or is come into by then is unread afterwards, and no stamp stands in front of it."""
    other = Mailbox(holder.directory)
    held = other.send(Draft(sender="ann", to=("bob",), content="held")).message
    other.deliver("bob", lambda items: items)
    kept = other.send(Draft(sender="ann", to=("role:dev",), content="kept")).message
    other.send(Draft(sender="ann", to=("bob",), content="shown"))
    late = codec.message_line(
        Message(id="late", sender="ann", recipients=("bob",), timestamp=holder.now(), content="x")
    )

    def meanwhile(items: list[inbox.Item]) -> list[inbox.Item]:
        if what == "sent":
            other.send(Draft(sender="ann", to=("bob",), content="new"))
        elif what == "foreign":
            with open(holder.logs.messages.path, "ab") as log:
                log.write(late)
        elif what == "given back":
            other.release(held.id, "bob")
        else:
            other.register(Registration(session_id="bob", roles=("dev",)), "user")
        return items

    assert holder.deliver("bob", meanwhile) == 1
    assert not holder.logs.trail.is_quiet("bob")
    left = [item.message.id for item in Mailbox(holder.directory).peek("bob")]
    assert left == [{"given back": held.id, "role taken": kept.id, "foreign": "late"}.get(what, left[0])]


def test_a_reply_that_is_sent_is_no_failure_though_its_ack_cannot_be_noted(holder: Mailbox) -> None:
    """Told to try again, the replier would send it twice; and the reply settles by itself what was asked for."""
    asked = holder.send(Draft(sender="ann", to=("bob",), content="?", ack=True)).message
    holder.deliver("bob", lambda items: items)
    with holder.logs.reads.held():
        sent = holder.reply(asked.id, Draft(sender="bob", to=(), content="yes"))
    assert [item.message.id for item in holder.peek("ann")] == [sent.message.id]
    assert obligations.obligations("bob", holder.state()) == []


def test_a_death_that_is_recorded_is_no_failure_though_nothing_can_be_given_back_yet(holder: Mailbox) -> None:
    """The steward gives back what the dead still owed."""
    asked = holder.send(Draft(sender="ann", to=("role:ops",), content="?", ack=True)).message
    holder.register(Registration(session_id="cat", roles=("ops",)), "user")
    holder.deliver("bob", lambda items: items)
    with holder.logs.reads.held():
        assert holder.end("bob", "retire", "user").state == "dead"
    assert holder.peek("cat") == []
    stewards.run(holder)
    assert [item.message.id for item in holder.peek("cat")] == [asked.id]


class Meanwhile(Trail):
    """A trail by which something happens once, after the logs were opened and before what is derived is looked at."""

    def __init__(self, mailbox: Mailbox, happens: list[Callable[[], object]]) -> None:
        super().__init__(mailbox.logs.cache())
        self._happens = happens

    def epoch(self, path: str, fd: int, end: int) -> int | None:
        while self._happens:
            self._happens.pop()()
        return super().epoch(path, fd, end)


def test_a_look_beside_a_check_of_the_same_session_is_no_error(holder: Mailbox, post: Post) -> None:
    """The cursor it finds may be ahead of the logs as it opened them: what that says was read is not shown."""
    now = holder.now()
    other, holder.now = Mailbox(str(post.box), clock=lambda: now), lambda: now
    other.deliver("bob", lambda items: items[:1])

    def happens() -> None:
        other.register(Registration(session_id="bob", event="update", add_tags=("project:p",)), "user")
        other.send(Draft(sender="ann", to=("bob",), content="later"))
        other.deliver("bob", lambda items: items)

    holder.logs.trail = Meanwhile(holder, [happens])
    assert holder.peek("bob") == []


def test_a_roster_written_down_since_its_log_was_opened_is_taken(holder: Mailbox, post: Post) -> None:
    """Another registers, and its rollbook is found by one that looked at the log's end before that."""
    fd = holder.logs.roster.open()
    assert fd is not None
    end = os.fstat(fd).st_size
    Mailbox(str(post.box)).register(Registration(session_id="cat", name="kit"), "user")
    assert Mailbox(str(post.box)).logs.read_roster().get("cat") is not None
    assert {"bob", "cat"} <= holder.logs._folded_roster(fd, end, holder.logs.roster.view()).agents.keys()
    os.close(fd)
