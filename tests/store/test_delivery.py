"""Delivering: what was shown is recorded and never shown again, whatever goes wrong around it."""

from __future__ import annotations

import os
import resource
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Busy, Draft, Mailbox, NotFound, Refused, StorageFailed
from agent_mailbox.core import codec, inbox, obligations, proofs
from agent_mailbox.core.control.messages import TaskAssignment
from agent_mailbox.core.inbox import Item
from agent_mailbox.core.instant import HOUR
from agent_mailbox.core.records import Message
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox import absence
from agent_mailbox.mailbox.delivery import Delivery, Offering
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.mailbox.registry import Registry
from agent_mailbox.store.files import small_files
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.log.stamps import StampFiles
from agent_mailbox.upkeep import steward as stewards
from tests.control_desk import ControlDesk
from tests.helpers import PATIENCE, Post

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def holder(post: Post) -> Mailbox:
    """A mailbox whose ``bob`` has a role message and a direct one unread; locks are not waited for long."""
    mailbox = Mailbox(str(post.box), wait=0.05)
    mailbox.register(Registration(session_id="bob", roles=("ops",)), "user")
    for to in ("role:ops", "bob"):
        mailbox.send(Draft(sender="ann", to=(to,), content=to))
    return mailbox


def test_a_blocked_reader_is_shown_nothing_twice_in_one_delivery(holder: Mailbox) -> None:
    """Output that blocks while role mail is shown is the end of the delivery, not a reason to begin it again."""
    calls: list[int] = []

    def show(items: list[Item]) -> list[Item]:
        calls.append(len(items))
        raise Busy("the reader does not read", "", code="output_blocked")

    with pytest.raises(Busy, match="does not read"):
        holder.deliver("bob", show)
    assert calls == [2]
    assert len(holder.peek("bob")) == 2


def test_nothing_is_shown_while_another_process_holds_the_reads(holder: Mailbox) -> None:
    """The delivery is refused whole on one machine, and shown whole the next time: role mail is not left out."""
    shown: list[Item] = []

    def show(items: list[Item]) -> list[Item]:
        shown.extend(items)
        return items

    with FileLock(holder.logs.reads.path, 0), pytest.raises(Busy, match="is locked"):
        holder.deliver("bob", show)
    assert shown == []
    assert holder.deliver("bob", list) == 2


def test_a_session_that_looks_is_registered_once(holder: Mailbox) -> None:
    """The command says so that time alone, and not as a frozen one comes back."""
    for is_first in (True, False, False):
        delivery = Delivery(holder)
        delivery.check_in("zoe")
        assert delivery.registered is is_first
        assert holder.logs.read_roster().state("zoe") == "alive"
    assert not Registry(holder).admit("zoe"), "another process was first"
    holder.end("zoe", "freeze", "zoe")
    delivery = Delivery(holder)
    delivery.check_in("zoe")
    assert (delivery.registered, holder.logs.read_roster().state("zoe")) == (False, "alive")


def test_a_held_task_is_given_to_another_and_taken_by_nobody(holder: Mailbox) -> None:
    """Its adder may give it to Cat, though Bob holds it, and may not take it for itself; the view is the asker's."""
    holder.prove = proofs.of_session
    for who in ("ann", "cat"):
        holder.register(Registration(session_id=who), who)
    desk = ControlDesk(holder)
    assert desk.add_task("ann", ("all",), TaskAssignment(title="open")).is_open_to_me
    added = desk.add_task("ann", ("bob",), TaskAssignment(title="held"))
    desk.claim_task("bob", added.task.id)
    with pytest.raises(Refused):
        desk.claim_task("ann", added.task.id)
    with pytest.raises(Refused):
        desk.claim_task("cat", added.task.id)
    assert desk.tasking.views.task(added.task.id).holder == "bob"
    assert desk.claim_task("ann", added.task.id, "cat").holder == "cat"


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
    assert holder.deliver("bob", show) == 2
    with locks[0]:
        assert shown == ["role:ops", "bob"]
        assert holder.peek("bob") == []
        assert not holder.logs.stamp_files.is_quiet("bob")


@pytest.mark.parametrize("what", ["sent", "foreign", "given back", "role taken"])
def test_what_happens_while_mail_is_shown_is_not_taken_for_read(holder: Mailbox, what: str) -> None:
    """Mail that comes, returns, or is come into by then is unread afterwards, and no stamp is in front of it."""
    other = Mailbox(holder.directory)
    held = other.send(Draft(sender="ann", to=("bob",), content="held")).message
    other.deliver("bob", lambda items: items)
    kept = other.send(Draft(sender="ann", to=("role:dev",), content="kept")).message
    other.send(Draft(sender="ann", to=("bob",), content="shown"))
    late = codec.spell_message(
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
    assert not holder.logs.stamp_files.is_quiet("bob")
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


def test_a_reply_whose_ack_the_disk_has_no_room_for_says_under_which_id_it_was_sent(holder: Mailbox) -> None:
    """A retry under that id sends nothing twice."""
    asked = holder.send(Draft(sender="ann", to=("bob",), content="?", ack=True)).message
    holder.deliver("bob", lambda items: items)
    with open(holder.logs.reads.path, "a", encoding="utf-8") as file:
        file.write("\n" * 10_000)  # longer than the mail
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(holder.logs.reads.path).st_size, hard[1]))
    try:
        with pytest.raises(StorageFailed) as caught:
            holder.reply(asked.id, Draft(sender="bob", to=(), content="yes"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, hard)
    (sent,) = holder.peek("ann")
    assert f"repeat it with --id {sent.message.id}" in caught.value.hint


@pytest.mark.parametrize("again", [False, True], ids=["steward", "retired again"])
def test_a_death_that_is_recorded_is_no_failure_though_nothing_can_be_given_back_yet(
    holder: Mailbox, again: bool
) -> None:
    """The steward gives back what the dead still owed, and so does who retires it once more."""
    asked = holder.send(Draft(sender="ann", to=("role:ops",), content="?", ack=True)).message
    holder.register(Registration(session_id="cat", roles=("ops",)), "user")
    holder.deliver("bob", lambda items: items)
    with holder.logs.reads.held():
        assert holder.end("bob", "retire", "user").state == "dead"
    assert holder.peek("cat") == []
    if again:
        holder.end("bob", "retire", "user")
    else:
        stewards.run_upkeep(Mailbox(holder.directory, prove=lambda _: proofs.STEWARD))
    assert [item.message.id for item in holder.peek("cat")] == [asked.id]


class Meanwhile(StampFiles):
    """Stamps by which something happens once, after the logs were opened and before what is derived is looked at."""

    def __init__(self, mailbox: Mailbox, happens: list[Callable[[], object]]) -> None:
        super().__init__(mailbox.logs.derived)
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

    holder.logs.stamp_files = Meanwhile(holder, [happens])
    assert holder.peek("bob") == []


def test_a_roster_written_down_since_its_log_was_opened_is_taken(holder: Mailbox, post: Post) -> None:
    """Another registers, and its rollbook is found by one that looked at the log's end before that."""
    logs = Mailbox(holder.directory).logs  # which has read nothing yet
    fd = logs.roster.open()
    assert fd is not None
    end = os.fstat(fd).st_size
    Mailbox(str(post.box)).register(Registration(session_id="cat", name="kit"), "user")
    assert Mailbox(str(post.box)).logs.read_roster().get("cat") is not None
    assert {"bob", "cat"} <= logs._folded_roster(fd, end, logs.roster.view()).agents.keys()
    os.close(fd)


# -- claims before showing --------------------------------------------------------------------------------------------


class Clock:
    """A clock that a test sets, shared by the mailboxes of several holders."""

    def __init__(self) -> None:
        self.now = 1_773_662_400_000

    def __call__(self) -> int:
        return self.now

    def passes(self, minutes: float) -> None:
        """So many minutes pass."""
        self.now += round(minutes * 60_000)


@pytest.fixture
def clock(holder: Mailbox) -> Clock:
    """The clock by which ``bob`` and ``cat`` hold the role; only the role message is unread."""
    found = holder.now = Clock()
    found.now = max(m.timestamp for m in holder.state().messages.values()) + 1
    holder.register(Registration(session_id="cat", roles=("ops",)), "user")
    holder.deliver("bob", lambda items: [item for item in items if not item.claims], choose=lambda _: ())
    return found


def at_once(holder: Mailbox, clock: Clock, who: str) -> list[str]:
    """What the session is shown by a process of its own."""
    shown: list[str] = []
    Mailbox(holder.directory, clock=clock, wait=0.05).deliver(who, lambda items: _noted(shown, items))
    return shown


def _noted(shown: list[str], items: list[Item]) -> list[Item]:
    shown.extend(item.message.content for item in items)
    return items


def events(holder: Mailbox) -> list[tuple[str, str]]:
    """What happened to the role message."""
    role = next(m.id for m in holder.state().messages.values() if m.content == "role:ops")
    return [(r.session_id, r.event) for r in holder.logs.read_records() if r.message_id == role]


def fails(_: list[Item]) -> list[Item]:
    """End a delivery behind the claim, as a kill does."""
    raise Busy("the reader does not read", "", code="output_blocked")


def test_role_mail_is_claimed_then_shown_then_read(holder: Mailbox, clock: Clock) -> None:
    """While one holder is shown it no lock is held: the other is shown what else it has, and sends."""
    found: list[object] = []

    def show(items: list[Item]) -> list[Item]:
        found.append(events(holder))
        holder.send(Draft(sender="ann", to=("cat",), content="for cat"))
        found.append(at_once(holder, clock, "cat"))
        return items

    assert holder.deliver("bob", show) == 1
    assert found == [[("bob", "claim")], ["for cat"]]
    assert events(holder) == [("bob", "claim"), ("bob", "read")]


def test_what_is_claimed_and_not_read_goes_back_after_ten_minutes(holder: Mailbox, clock: Clock) -> None:
    """Its claimer is shown it again until then; afterwards it finds the other's claim."""
    with pytest.raises(Busy):
        holder.deliver("bob", fails)
    clock.passes(9)
    assert at_once(holder, clock, "cat") == []
    assert [item.message.content for item in holder.peek("bob")] == ["role:ops"]
    assert holder.state().reads.claim(next(iter(holder.state().messages))) is not None
    clock.passes(1)
    assert at_once(holder, clock, "cat") == ["role:ops"]
    assert at_once(holder, clock, "bob") == []
    assert events(holder) == [("bob", "claim"), ("cat", "claim"), ("cat", "read")]


def test_who_checks_keeps_its_claim(holder: Mailbox, clock: Clock) -> None:
    """Ten minutes count from the last check."""
    for _ in range(3):
        with pytest.raises(Busy):
            holder.deliver("bob", fails)
        clock.passes(9)
        assert at_once(holder, clock, "cat") == []
    assert events(holder) == [("bob", "claim")]
    assert at_once(holder, clock, "bob") == ["role:ops"]


def test_a_holder_is_not_left_quiet_while_another_may_give_back(holder: Mailbox, clock: Clock) -> None:
    """A stamp would keep its hooks from looking, and time alone frees the mail. One that waits looks again."""
    with pytest.raises(Busy):
        holder.deliver("bob", fails)
    cat = Mailbox(holder.directory, clock=clock)
    cat.deliver("cat", lambda items: items)
    assert not cat.logs.stamp_files.is_quiet("cat")
    assert cat.peek("cat") == []
    assert cat.part(Delivery).withheld
    assert at_once(holder, clock, "bob") == ["role:ops"]
    cat.deliver("cat", lambda items: items)
    assert cat.logs.stamp_files.is_quiet("cat")
    assert cat.peek("cat") == []
    assert not cat.part(Delivery).withheld


def test_a_check_that_goes_on_keeps_its_claim_however_long(holder: Mailbox, clock: Clock) -> None:
    """Its output blocks for an hour: another holder neither waits for it nor is shown the mail a second time."""

    def show(items: list[Item]) -> list[Item]:
        clock.passes(60)
        assert at_once(holder, clock, "cat") == []
        return items

    assert holder.deliver("bob", show) == 1
    assert events(holder) == [("bob", "claim"), ("bob", "read")]


def test_a_claimer_that_comes_back_between_the_other_s_look_and_claim_keeps_it(holder: Mailbox, clock: Clock) -> None:
    """It writes nothing, because its claim still is; so the other looks again under the lock."""
    with pytest.raises(Busy):
        holder.deliver("bob", fails)
    clock.passes(11)
    is_shown, may_go_on = Event(), Event()

    def show(items: list[Item]) -> list[Item]:
        is_shown.set()
        may_go_on.wait(PATIENCE)
        return items

    back = Thread(target=lambda: Mailbox(holder.directory, clock=clock).deliver("bob", show))

    def choose(items: list[Item]) -> list[Item]:
        assert [item.message.content for item in items] == ["role:ops"]
        back.start()
        assert is_shown.wait(PATIENCE)
        return items

    shown: list[str] = []
    Mailbox(holder.directory, clock=clock).deliver("cat", lambda items: _noted(shown, items), choose=choose)
    may_go_on.set()
    back.join()
    assert shown == []
    assert events(holder) == [("bob", "claim"), ("bob", "read")]


def test_what_another_read_between_look_and_claim_is_shown_to_it_alone(holder: Mailbox, clock: Clock) -> None:
    """A session that claims mail looks again under the lock if anything was written. Mail that another session read
    meanwhile is not shown to it."""
    shown: list[str] = []

    def choose(items: list[Item]) -> list[Item]:
        assert at_once(holder, clock, "cat") == ["role:ops"]
        return items

    holder.deliver("bob", lambda items: _noted(shown, items), choose=choose)
    assert shown == []
    assert events(holder) == [("cat", "claim"), ("cat", "read")]


def test_only_role_mail_that_there_is_room_for_is_claimed(holder: Mailbox, clock: Clock) -> None:
    """The rest is for another holder."""
    holder.send(Draft(sender="ann", to=("role:ops",), content="second"))
    assert holder.deliver("bob", lambda items: items, choose=lambda items: items[:1]) == 1
    assert holder.part(Delivery).left == 1
    assert at_once(holder, clock, "cat") == ["second"]


def test_what_was_claimed_and_found_no_room_is_shown_next_by_the_same_claim(holder: Mailbox, clock: Clock) -> None:
    """The session's next look knows its claim: another program's could else come before a second one."""
    holder.send(Draft(sender="ann", to=("role:ops",), content="second"))
    assert holder.deliver("bob", lambda items: items[1:]) == 1
    assert at_once(holder, clock, "bob") == ["role:ops"]
    assert events(holder) == [("bob", "claim"), ("bob", "read")]


def test_a_disk_that_fills_up_while_role_mail_is_shown_gives_it_to_no_other(holder: Mailbox, clock: Clock) -> None:
    """It was written out and cannot be recorded: its claimer is shown it again, another holder is not."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def show(items: list[Item]) -> list[Item]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(holder.logs.reads.path).st_size, hard[1]))
        return items

    try:
        with pytest.raises(StorageFailed):
            holder.deliver("bob", show)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, hard)
    assert at_once(holder, clock, "cat") == []
    assert at_once(holder, clock, "bob") == ["role:ops"]


def test_who_claimed_may_give_back_or_ack_what_it_was_shown(holder: Mailbox, clock: Clock) -> None:
    """It was killed before the read was recorded; nobody else may."""
    with pytest.raises(Busy):
        holder.deliver("bob", fails)
    role = next(m.id for m in holder.state().messages.values() if m.content == "role:ops")
    with pytest.raises(Refused, match="bob holds it"):
        holder.release(role, "cat")
    holder.release(role, "bob")
    assert [item.message.id for item in holder.peek("cat")] == [role]
    clock.passes(1)
    with pytest.raises(Busy):
        holder.deliver("bob", fails)
    holder.ack(role, "bob")
    clock.passes(60)
    assert holder.peek("cat") == holder.peek("bob") == []


def test_a_strict_send_refuses_a_name_that_nobody_has(holder: Mailbox) -> None:
    """The console sends so: a person chose from a list. Else it is kept for a role of that name."""
    draft = Draft(sender="ann", to=("nobody",), content="x")
    with pytest.raises(NotFound):
        holder.send(draft, strict=True)
    assert holder.send(draft).message.recipients == ("role:nobody",)


def test_a_file_that_cannot_be_made_is_no_success(tmp_path: Path) -> None:
    """A caller tells others that the file is there, so it hears of a failed write."""
    (tmp_path / "there").write_bytes(b"")
    assert not small_files.make_file(str(tmp_path / "there"), b"x")
    with pytest.raises(StorageFailed):
        small_files.make_file(str(tmp_path / "absent" / "file"), b"x")
    assert small_files.make_file(str(tmp_path / "new"), b"x")


def test_who_was_away_before_has_its_ten_minutes_again(post: Post) -> None:
    """Ann was away once, an hour ago. She ends right behind a hook that showed her role mail: it waits ten minutes for
    her, counted from this end, and then goes to another holder."""
    ahead = 0
    box = Mailbox(str(post.box), clock=lambda: wall_clock() + ahead)

    def shown(who: str) -> list[str]:
        found: list[Item] = []
        box.deliver(who, lambda items: (found.extend(items), items)[1])
        return [item.message.content for item in found]

    for who in ("ann", "ben"):
        box.register(Registration(session_id=who, roles=("dev",)), who)
    box.end("ann", "freeze", "ann")
    ahead = HOUR
    assert shown("ann") == []
    box.send(Draft(sender="user", to=("role:dev",), content="to one of you"))
    assert box.deliver("ann", lambda items: items, offering=Offering("abcdef", 0, "", {}, set())) == 1
    box.end("ann", "freeze", "ann")
    for minutes, whose in ((0, []), (11, ["to one of you"])):
        ahead = HOUR + minutes * HOUR // 60
        absence.hand_back(box, ["ann"], "ben")
        assert shown("ben") == whose
