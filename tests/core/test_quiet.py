"""Quiet: when mail is shown, which idle notice is, and how often mail wakes a session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_mailbox.core import brake, codec, compose, dead_letters, inbox, reach
from agent_mailbox.core.brake import BrakeVerdict, Call, Limits, Wake
from agent_mailbox.core.instant import HOUR, MINUTE
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.records import WHENS, Message
from agent_mailbox.errors import MailboxError

from .build import T0, message, read, register, roster, state

IDLE = '{"type": "idle_notification", "reason": "available"}'
PEOPLE = [register("ann-1"), register("bob-1", "role:dev", "project:p", lead="ann-1")]


def timing(to: str | tuple[str, ...] = "bob-1", **more: Any) -> str:
    """When bob is shown a message."""
    (item,) = inbox.unread("bob-1", state([message(to=to, **more)], events=PEOPLE), T0)
    return inbox.timing(item)


@pytest.mark.parametrize(
    ("to", "more", "when"),
    [
        ("bob-1", {}, "now"),
        ("role:dev", {}, "now"),
        ("project:p", {}, "turn"),
        ("all", {}, "turn"),
        (("all", "bob-1"), {}, "now"),
        ("all", {"ack": True}, "now"),
        ("all", {"priority": "high"}, "now"),
        ("bob-1", {"priority": "low"}, "turn"),
        ("bob-1", {"when": "idle"}, "idle"),
        ("all", {"when": "now"}, "now"),
        ("bob-1", {"when": "turn", "ack": True}, "turn"),
        ("all", {"type": "control"}, "now"),
        ("bob-1", {"type": "control", "when": "turn", "priority": "low"}, "now"),
        ("bob-1", {"type": "control", "content": IDLE}, "along"),
        ("bob-1", {"type": "control", "content": '{"type": "idle_notification_2"}'}, "now"),
        ("project:p", {"type": "control", "content": '{"type": "task_assignment_2"}'}, "now"),
        ("bob-1", {"type": "control", "content": IDLE, "when": "turn"}, "along"),
        ("bob-1", {"type": "control", "content": IDLE, "when": "now"}, "now"),
        ("bob-1", {"content": IDLE}, "now"),
    ],
)
def test_a_message_is_shown_when_its_sender_or_its_kind_says(to: str, more: dict[str, Any], when: str) -> None:
    """Control is for now, whatever it says of itself; an idle notice comes along; else the key, else the mode."""
    assert timing(to, **more) == when


def test_the_key_survives_a_round_trip_and_a_wrong_one_counts_as_absent() -> None:
    """A line keeps ``when`` behind its type. Another value, or another shape, is no key: the default counts."""
    for when in WHENS:
        line = codec.spell_message(message(when=when, type="control", proof=None))
        assert list(json.loads(line))[-2:] == ["type", "when"]
        found = codec.message(line)
        assert isinstance(found, Message)
        assert found.when == when
    for wrong in ("soon", 1, None, ["now"]):
        obj = {**codec.message_object(message(proof=None)), "when": wrong}
        assert codec.message_from(obj).when is None


def test_a_sender_is_told_when_mail_wakes_nobody() -> None:
    """Mail for a turn, and mail that a brake holds up, come *at its next turn*, although a doorbell waits."""
    people = roster(*PEOPLE)

    def place(why: str = "", **more: Any) -> str:
        mail, braked = message(**more), {"bob-1": (why, "so it is")} if why else {}
        found = reach.sort_arrival(mail, reach.find_reach(mail, people), people, waking=["bob-1"], braked=braked)
        return ": ".join(reach.list_arrival(found, people, lambda who, _: who)[0])

    assert place() == place(when="idle") == "will see it now: bob-1"
    assert place(to="all", ack=True) == "will see it now: bob-1"
    assert place(to="project:p") == place("too often", when="turn") == "will see it at its next turn: bob-1"
    assert place("too often") == "will see it at its next turn: bob-1 (so it is)"


def notice(number: int, **more: Any) -> Message:
    """An idle notice of bob's for ann."""
    return message(f"i{number}", "ann-1", "bob-1", type="control", content=IDLE, when="turn", **more)


def test_one_idle_notice_of_a_worker_is_unread_and_the_last_one_stands() -> None:
    """Each replaces the one before, also if the last one was read. Others' notices, and mail, stay; a later one to
    another agent replaces none."""
    other = message("o", "ann-1", "eve-1", type="control", content=IDLE)
    elsewhere = message("e", "eve-1", "bob-1", type="control", content=IDLE)
    mails = [notice(1), message("m", "ann-1", "bob-1"), other, notice(2), notice(3), elsewhere]

    def unread(*reads: Any) -> list[str]:
        return [item.message.id for item in inbox.unread("ann-1", state(mails, [*reads], PEOPLE), T0)]

    assert unread() == ["o", "i3", "m"]
    assert unread(read("i3", "ann-1")) == ["o", "m"]
    mails.append(notice(30))
    assert unread() == ["o", "i30", "m"]


def test_an_idle_notice_alone_is_not_due_and_comes_along() -> None:
    """A hook shows it with other mail; what is due at a turn brings nothing of what waits for the turn to be over."""
    people = [*PEOPLE, register("eve-1")]

    def due(mails: list[Message], *times: str) -> list[str]:
        return [item.message.id for item in inbox.due(inbox.unread("ann-1", state(mails, [], people), T0), *times)]

    assert due([notice(1)], "now", "turn", "idle") == []
    mails = [notice(1), *(message(when, "ann-1", "eve-1", when=when) for when in ("turn", "idle"))]
    assert due(mails, "now") == []
    assert sorted(due(mails, "turn")) == ["i1", "turn"]
    assert sorted(due(mails, "idle")) == ["i1", "idle"]


def test_a_replaced_notice_is_finished_and_none_is_a_dead_letter() -> None:
    """The steward moves it with the one that replaced it, so it never comes back; expired, it is nobody's loss."""
    now = state([notice(1), notice(2)], [read("i2", "ann-1")], PEOPLE)
    assert retention.plan(now, T0 + MINUTE, 1).move == {"i1", "i2"}
    assert dead_letters.dead_letters(now, T0 + 99 * HOUR) == []


# -- the brake --------------------------------------------------------------------------------------------------------


def rings(calls: list[tuple[int, Call]], limits: Limits | None = None) -> list[int]:
    """At which of the instants (seconds) a session is woken, if the mail of each is asked about alone."""
    wakes: list[Wake] = []
    rung = []
    for at, call in calls:
        now = T0 + at * 1000
        if brake.judge([call], wakes, limits or Limits(), now).wakes:
            wakes = brake.note([call], wakes, now)
            rung.append(at)
    return rung


def call(thread: str = "t", kind: str = brake.PROVEN, **more: Any) -> Call:
    """A message that would wake."""
    return Call(f"{thread}-{kind}", thread, kind, **more)


def test_a_session_is_woken_once_in_thirty_seconds_six_times_by_a_thread_sixty_times_a_day() -> None:
    """Each limit at its boundary; the person's own numbers take their place; a day later all is forgotten."""
    assert rings([(at, call(str(at))) for at in (0, 29, 30, 59, 60)]) == [0, 30, 60]
    assert rings([(at, call()) for at in range(0, 3700, 60)]) == [0, 60, 120, 180, 240, 300, 3600, 3660]
    others = [(at, call("t0")) for at in range(0, 360, 60)]
    assert rings([*others, (360, call())]) == [*range(0, 361, 60)], "a thread whose id begins with another's"
    many = [(at, call(str(at))) for at in range(0, 86400, 600)]
    assert rings(many) == [*range(0, 36000, 600)]
    assert rings([*many, (86400, call("new"))])[-1] == 86400
    own = Limits(gap=0, per_thread=2, per_day=3)
    assert rings([(0, call("a")), (0, call("a")), (0, call("a")), (0, call("b")), (0, call("c"))], own) == [0, 0, 0]


def test_what_passes_is_never_held_up_and_holds_up_nothing() -> None:
    """Control, urgent proven mail and the person ring at any time, and no other mail waits for their sake."""
    urgent = [(at, call("u", passes=True)) for at in range(100)]
    assert rings(urgent) == [*range(100)]
    assert rings([*urgent, (100, call())])[-1] == 100


@pytest.mark.parametrize("flood", [brake.UNPROVEN, brake.CONTROL, brake.TASK])
def test_a_flood_of_which_nothing_is_proven_makes_no_session_deaf(flood: str) -> None:
    """Whatever unproven lines rang, in that very thread too, proven mail and control ring after thirty seconds."""
    noise = [(at, call(str(at % 3), flood)) for at in range(0, 80_000, 30)]
    for mail in (call("0"), call("0", brake.CONTROL) if flood != brake.CONTROL else call("1")):
        assert rings([*noise, (80_030, mail)])[-1] == 80_030


def test_an_echo_wakes_nobody_and_ends_the_talk() -> None:
    """A reply with the very words that it answers is held, its thread is over; other mail rings all the same."""
    echo = call("loop", is_echo=True)
    assert brake.judge([echo], [], Limits(), T0) == BrakeVerdict(
        False, None, "it repeats what it answers", (echo.id,), ("loop",)
    )
    both = brake.judge([echo, call("other")], [], Limits(), T0)
    assert (both.wakes, both.held) == (True, (echo.id,))


ASKED = message("q", ack=True)
ANSWER = message("a", "ann-1", "bob-1", thread="q")
LAST = message("l", content="then do it so", thread="a")


def test_a_last_word_is_told_by_the_structure_of_its_talk_alone() -> None:
    """The asker answers the answer, and nobody of the two asks again. Anything else may be what somebody waits for: an
    answer to a question, a second question that asks for an ack, a file, another topic, mail for others too."""
    assert brake.is_last_word(LAST, ANSWER, ASKED)
    others: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
        *(({key: value}, {}, {}) for key, value in (
            ("ack", True), ("priority", "high"), ("when", "now"), ("when", "idle"), ("type", "notification"),
            ("attachments", ["x"]), ("references", ["x"]), ("subject", "news"), ("to", ("bob-1", "eve-1")),
            ("to", "role:dev"), ("sender", "eve-1"),
        )),
        *(({}, {key: value}, {}) for key, value in (
            ("ack", True), ("priority", "high"), ("when", "now"), ("type", "control"), ("sender", "ann-1"),
        )),
        *(({}, {}, {key: value}) for key, value in (("ack", False), ("type", "control"), ("sender", "eve-1"))),
    ]  # fmt: skip
    for last, answer, asked in others:
        three = [replaced(*pair) for pair in ((LAST, last), (ANSWER, answer), (ASKED, asked))]
        assert not brake.is_last_word(three[0], three[1], three[2]), (last, answer, asked)


def replaced(mail: Message, more: dict[str, Any]) -> Message:
    """The message with other fields; ``to`` is whom it is for."""
    to = more.get("to")
    more = {key: value for key, value in more.items() if key != "to"}
    return mail.replace(**more, **({} if to is None else {"recipients": (to,) if isinstance(to, str) else to}))


def test_a_last_word_waits_for_a_turn_and_wakes_in_the_end() -> None:
    """It stops no thread and holds up no other mail. After a quarter of an hour without a turn it wakes."""
    last = call("talk", waits_until=T0 + brake.PATIENCE)
    found = brake.judge([last], [], Limits(), T0)
    assert (found.wakes, found.again, found.over) == (False, T0 + 15 * MINUTE, ())
    assert brake.judge([last, call("other")], [], Limits(), T0).wakes
    assert brake.judge([last], [], Limits(), T0 + brake.PATIENCE).wakes


def test_it_is_told_when_to_ask_again() -> None:
    """After the gap; or once the thread's first wake is an hour ago. A clock that was set back holds nothing up."""
    wakes = brake.note([call()], [], T0)
    held = brake.judge([call()], wakes, Limits(), T0 + 1)
    assert (held.again, held.why) == (T0 + 30_000, "at most one wake in 30 seconds")
    assert brake.judge([call()], wakes, Limits(gap=0, per_thread=1), T0 + 1).again == T0 + HOUR
    assert brake.judge([call()], wakes, Limits(), T0 - 1).wakes


def test_the_memory_is_bounded() -> None:
    """However many messages and threads wake a session, a fixed number of wakes with a few causes each is kept."""
    wakes: list[Wake] = []
    for at in range(1000):
        wakes = brake.note([call(f"{at}-{number}") for number in range(50)], wakes, T0 + at)
    assert len(wakes) == brake.KEPT
    assert max(len(wake.causes) for wake in wakes) == brake.CAUSES


def test_an_unknown_time_is_refused() -> None:
    """A sender's wrong word is an error that names the right ones."""
    with pytest.raises(MailboxError, match="soon"):
        compose.checked(compose.Draft("ann-1", ("bob-1",), "x", when="soon"), 100)
