"""Watches: what they are for, who ends them, and which reports count."""

from __future__ import annotations

import pytest

from agent_mailbox.core.control import message_text
from agent_mailbox.core.control.messages import (
    Payload,
    TaskAssignment,
    TaskCancelled,
    TaskClaim,
    TaskCompleted,
    TaskDropped,
    WatchAgent,
    WatchEnd,
    WatchReport,
)
from agent_mailbox.core.control.state import ControlState
from agent_mailbox.core.control.verdicts import APPLIED, REFUSED, REPEATED
from agent_mailbox.core.control.watches import LONGEST, MOST_HELD, MOST_UNPROVEN
from agent_mailbox.core.proofs import of_session
from agent_mailbox.core.records import Message, RosterEvent
from agent_mailbox.core.roster import Roster

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


class Log:
    """Ada, Bob and Cat, and the fold of what they write; each message a minute after the one before."""

    def __init__(self) -> None:
        self.events = [RosterEvent("register", who, 0, proof=of_session(who)) for who in ("ada", "bob", "cat")]
        self.messages: list[Message] = []

    def says(self, who: str, payload: Payload, to: str, *, proven: bool = True) -> str:
        """The outcome of one more message."""
        number = len(self.messages) + 1
        self.messages.append(
            Message(
                id=f"m{number}", sender=who, recipients=(to,), timestamp=number * MINUTE, type="control",
                content=message_text.written(payload), proof=of_session(who) if proven else None,
            )
        )  # fmt: skip
        return self.plane.verdicts[f"m{number}"].outcome

    def watches(self, *until: str, task: str = "", who: str = "ada", watch_id: str = "w1", expires: int = DAY) -> str:
        """Watch Bob."""
        payload = WatchAgent(request_id=watch_id, agent="bob", until=until, task=task, expires=expires)
        return self.says(who, payload, who)

    def tells(self, event: str, who: str = "bob", task: str = "", *, proven: bool = True, watch_id: str = "w1") -> str:
        """Report an event to Ada."""
        payload = WatchReport(request_id=watch_id, agent="bob", event=event, task=task)
        return self.says(who, payload, "ada", proven=proven)

    @property
    def plane(self) -> ControlState:
        """The fold."""
        return ControlState(Roster(self.events), self.messages)

    def live(self, now: int = 100 * MINUTE) -> list[str]:
        """The ids of the watches that hold."""
        return [one.id for one in self.plane.watches.live(now)]


def test_the_agent_s_own_word_ends_a_watch_once() -> None:
    """A second report is a repetition; the message of a watch that holds still counts, and then no more."""
    log = Log()
    assert log.watches("idle") == APPLIED
    assert log.plane.standing(5 * MINUTE) == {"m1"}
    assert log.tells("idle") == APPLIED
    assert log.live() == []
    assert log.plane.is_decided("w1", 0)
    assert log.tells("idle") == REPEATED
    assert log.plane.standing(5 * MINUTE) == frozenset()


@pytest.mark.parametrize(("who", "stays"), [("ada", False), ("user", True), ("nobody-registered", True)])
def test_a_watch_ends_with_its_watcher_s_session_alone(who: str, *, stays: bool) -> None:
    """Nothing tells that one ended which the roster does not know."""
    log = Log()
    assert log.watches("idle", who=who) == APPLIED
    log.events += [RosterEvent("retire", one, 5 * MINUTE, proof=of_session(one)) for one in ("ada", "cat")]
    assert log.live() == (["w1"] if stays else [])


@pytest.mark.parametrize(("who", "proven"), [("bob", False), ("cat", True), ("cat", False), ("ada", True)])
@pytest.mark.parametrize("event", ["idle", "dead", "task"])
def test_a_false_report_ends_no_watch(who: str, event: str, *, proven: bool) -> None:
    """Idle is Bob's own to say. That he ended, or his task is done, the log must show."""
    log = Log()
    log.says("ada", TaskAssignment(request_id="t1", title="x"), "bob")
    assert log.watches("idle", "task", task="t1") == APPLIED
    assert log.tells(event, who, "t1" if event == "task" else "", proven=proven) == REFUSED
    assert log.live() == ["w1"]


def test_a_report_to_another_than_the_watcher_ends_no_watch() -> None:
    """The watcher would never read it."""
    log = Log()
    log.watches("idle")
    told = WatchReport(request_id="w1", agent="bob", event="idle")
    assert [log.says("bob", told, "cat"), log.live()] == [REFUSED, ["w1"]]


def test_whoever_notes_an_end_may_tell_of_it() -> None:
    """Unproven, too: the roster shows it. A watch for idleness hears of it, and it stays told when Bob is back."""
    log = Log()
    log.watches("idle")
    log.events.append(RosterEvent("freeze", "bob", MINUTE + 1, by="steward", proof=of_session("cat")))
    assert log.tells("dead", "steward", proven=False) == APPLIED
    log.events.append(RosterEvent("thaw", "bob", 2 * MINUTE + 1, proof=of_session("bob")))
    assert log.live() == []
    log.watches("dead", watch_id="w2")
    assert log.tells("dead", "cat", watch_id="w2") == REFUSED  # that end was before this watch


def test_a_task_is_done_when_the_log_says_so() -> None:
    """A watch on a task reports that it is done only when the log says so of that very task."""
    log = Log()
    for task in ("t1", "t2", "t10"):
        log.says("ada", TaskAssignment(request_id=task, title="x"), "bob")
    log.watches("task", task="t1")
    for other in ("t2", "t10"):
        log.says("bob", TaskCompleted(request_id=other), "ada")
        assert [log.tells("task", who, other) for who in ("cat", "bob")] == [REFUSED] * 2
    assert log.tells("task", "cat", "t1") == REFUSED
    log.says("bob", TaskCompleted(request_id="t1"), "ada")
    assert log.tells("task", "cat", "t1") == APPLIED


def test_a_task_that_was_cancelled_or_that_another_did_is_not_told_as_done_by_the_agent() -> None:
    """The report says that this very agent finished it."""
    for steps in (
        [("ada", TaskCancelled(request_id="t1"))],
        [
            ("bob", TaskDropped(request_id="t1")),
            ("cat", TaskClaim(request_id="t1")),
            ("cat", TaskCompleted(request_id="t1")),
        ],
    ):
        log = Log()
        log.says("ada", TaskAssignment(request_id="t1", title="x"), "project:p")
        log.says("bob", TaskClaim(request_id="t1"), "bob")
        log.watches("task", task="t1")
        assert [log.says(who, payload, "ada") for who, payload in steps] == [APPLIED] * len(steps)
        assert log.tells("task", "cat", "t1") == REFUSED
        assert log.live() == ["w1"]


def test_only_its_watcher_or_who_commands_it_cancels() -> None:
    """An unproven word ends no proven watch."""
    log = Log()
    log.watches("idle")
    assert log.says("bob", WatchEnd(request_id="w1"), "ada") == REFUSED
    assert log.says("ada", WatchEnd(request_id="w1"), "ada", proven=False) == REFUSED
    assert log.says("user", WatchEnd(request_id="nothing"), "ada") == REFUSED
    assert log.says("ada", WatchEnd(request_id="w1"), "ada") == APPLIED
    assert log.live() == []


@pytest.mark.parametrize(
    ("until", "task"), [((), ""), (("asleep",), ""), (("task",), ""), (("idle",), "t1"), (("idle", "x"), "")]
)
def test_a_watch_for_nothing_we_know_is_refused(until: tuple[str, ...], task: str) -> None:
    """A task needs an id, and nothing else has one."""
    assert Log().watches(*until, task=task) == REFUSED


def test_watches_are_bounded_in_time_and_number() -> None:
    """A watch lasts at most seven days. The number of a session's watches and of all unproven ones is limited."""
    log = Log()
    assert log.watches("idle", expires=MINUTE) == REFUSED
    log.watches("idle", expires=365 * DAY)
    assert log.plane.watches.live(LONGEST + 3 * MINUTE) == []
    for number in range(MOST_HELD + 1):
        last = log.watches("idle", who="cat", watch_id=f"c{number}")
    assert last == REFUSED
    for number in range(MOST_UNPROVEN + 1):
        payload = WatchAgent(request_id=f"u{number}", agent="bob", until=("idle",), expires=DAY)
        last = log.says(f"name-{number}", payload, f"name-{number}", proven=False)
    assert last == REFUSED
    log.events.append(RosterEvent("retire", "cat", 200 * MINUTE, proof=of_session("cat")))
    assert not any(one.startswith("c") for one in log.live(200 * MINUTE))
