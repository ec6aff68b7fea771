"""Quiet by the real hooks: what is shown when, the brake at a turn's end, and what the session hears of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import inbox
from agent_mailbox.core.records import Message
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.mailbox.session_brake import SessionBrake
from agent_mailbox.store.locks.doorbell_lock import DoorbellLock
from agent_mailbox.upkeep import leftovers
from tests.claude.shim import Shim
from tests.claude.test_hooks import ME, Client
from tests.helpers import MESSAGES, Post

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_mailbox.core.compose import Draft


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A session of a client, which started, and two others to write to it."""
    post = Post(tmp_path)
    client = Client(post)
    for who in ("ann", "ben"):
        post.register(who, "--name", who.title())
    client.hook("SessionStart")
    return client


def stamp(client: Client) -> bytes | None:
    """The word of the session's quiet stamp; None if it has none."""
    path = client.post.file(".cache", "quiet", ME)
    return path.read_bytes() if path.exists() else None


def test_mail_for_a_turn_comes_with_a_prompt_or_as_the_turn_ends(client: Client) -> None:
    """It does not come between two tools. The stamp lets the hooks of a prompt and of a turn's end through."""
    for event in ("UserPromptSubmit", "Stop"):
        client.post.send("ann", "all", f"for all {event}")
        assert client.context("PostToolBatch") == ""
        assert stamp(client) == (b"turn\n" if event == "UserPromptSubmit" else None)  # an offer is open then
        assert f"for all {event}" in client.context(event)
    client.post.send("ann", "all", "urgent", "--when", "now")
    assert "urgent" in client.context("PostToolBatch")
    client.post.send("ann", ME, "later", "--when", "turn")
    client.post.send("ann", ME, "at once")
    assert "later" not in client.context("PostToolBatch")
    assert "later" in client.context("Stop")


def test_the_guard_starts_nothing_between_two_tools_for_mail_of_a_turn(post: Post) -> None:
    """The shell answers; a prompt and a turn's end reach the program."""
    shim = Shim(post)
    shim.hook("SessionStart")
    started = {}
    for event in ("UserPromptSubmit", "Stop"):
        post.send("x", "all", "hello")
        Delivery(OpenMailbox(str(post.box))).look(ME)
        assert post.file(".cache", "quiet", ME).read_bytes() == b"turn\n"
        shim.starts()
        assert shim.hook("PostToolUse").raw == b""
        started["PostToolUse"] = shim.starts()
        assert "hello" in shim.hook(event).stdout
        started[event] = shim.starts()
    assert started == {"PostToolUse": 0, "UserPromptSubmit": 1, "Stop": 1}


def test_mail_for_when_the_turn_is_over_waits_for_the_doorbell(client: Client) -> None:
    """A turn's end leaves it where a doorbell waits. Else nobody would wake the session, and it comes then."""
    client.post.send("ann", ME, "when you are done", "--when", "idle")
    assert client.context("PostToolBatch") == ""
    assert stamp(client) is None
    with DoorbellLock(str(client.post.file(".cache")), ME, os.getpid()) as bell:
        assert bell.take()
        assert client.context("Stop") == ""
        assert rings(client.post)
    assert "when you are done" in client.context("Stop")


def test_idle_notices_come_along_and_status_names_the_last(client: Client) -> None:
    """Three turns of a worker leave its lead one state: shown with its next mail, never for itself alone."""
    post = client.post
    for who in ("ann", "ben"):
        post.ok("roster", "update", "--session-id", who, "--lead", ME)
    for _ in range(3):
        post.ok("check", "--session", "ann")
        hook(post, "ann", "Stop")
    hook(post, "ben", "Stop")
    assert [client.context(event) for event in ("PostToolBatch", "Stop", "UserPromptSubmit")] == ["", "", ""]
    assert [one["agent"] for one in post.ok("status", "--session", ME)["idle"]] == ["ann", "ben"]
    assert "Ann" in post.call("status", "--session", ME).stdout
    post.send("ann", ME, "done")
    shown = client.context("PostToolBatch")
    assert shown.count("idle_notification") == 2
    assert "done" in shown
    assert post.ok("status", "--session", ME)["idle"] == []
    assert sum(b"idle_notification" in line for line in post.lines(MESSAGES)) == 4


def test_an_idle_notice_of_who_holds_a_task_or_is_watched_is_for_now(client: Client) -> None:
    """It wakes the lead; once the task is done it does not. A blocked task is none to work on."""
    post = client.post
    for who in ("ann", "ben"):
        post.ok("roster", "update", "--session-id", who, "--lead", ME)

    def last() -> str:
        return str(json.loads(post.lines(MESSAGES)[-1])["when"])

    for task, after in (("task-a", ()), ("task-b", ("--after", "task-a"))):
        post.ok("task", "add", "--to", "ben", "--title", task, "--task-id", task, "--session", ME, *after)
    hook(post, "ben", "Stop", stop_hook_active=True)
    hook(post, "ben", "Stop", stop_hook_active=True)
    assert last() == "now"
    assert "idle_notification" in client.context("Stop")
    post.ok("task", "cancel", "task-a", "--session", ME)
    hook(post, "ann", "Stop")
    assert last() == "turn"
    post.ok("watch", "Ann", "--idle", "--session", ME)
    hook(post, "ann", "Stop")
    assert last() == "now"


def hook(post: Post, who: str, event: str, **said: object) -> str:
    """A hook of another session; returns its answer."""
    result = post.call("hook", event, stdin=json.dumps({"session_id": who, "hook_event_name": event, **said}))
    assert result.rc == 0, result
    return result.stdout


# -- the brake --------------------------------------------------------------------------------------------------------


def rings(post: Post, send: Callable[[Draft], object] = lambda _: None) -> bool:
    """Whether the doorbell would ring for what is unread."""
    desk = OpenMailbox(str(post.box))
    desk.weigh_mail()
    items = [item for item in inbox.due(Delivery(desk).look(ME), "now", "idle") if inbox.timing(item) != inbox.ALONG]
    return bool(items) and SessionBrake(desk, ME, send).may_ring(items).wakes


def test_a_loop_of_thanks_ends_and_the_person_hears_once(client: Client) -> None:
    """Each answers the other's thanks by the same words: the second one wakes nobody, at a turn's end neither. What
    waited comes with the next turn, and a line says why. A look that is killed as it tells the person has told
    nobody."""
    post = client.post

    def die(_: object) -> None:
        raise KeyboardInterrupt  # nothing that stands behind it runs, as after a kill

    first = post.send("ann", ME, "thanks!")
    assert "thanks!" in client.context("Stop")
    answer = post.ok("reply", first, "--from", ME, "--body", "thanks!")["message"]["id"]
    post.ok("reply", answer, "--from", "ann", "--body", "thanks!")
    with pytest.raises(KeyboardInterrupt):
        rings(post, die)
    assert client.context("Stop") == ""
    assert not rings(post)
    shown = client.context("UserPromptSubmit")
    assert "agent-mailbox: 1 message did not wake you: it repeats what it answers" in shown
    assert "| thanks!" in shown
    last = post.ok("history", "--with", "ann", "--all")["messages"][-1]["id"]
    for _ in range(2):
        post.ok("reply", last, "--from", "ann", "--body", "thanks!")
        client.hook("Stop")
    told = [m for m in post.ok("history", "--all")["messages"] if m["recipient"] == "user"]
    assert len(told) == 1
    assert "wakes nobody for now" in told[0]["content"]


def test_the_last_word_after_a_question_waits_for_a_turn(client: Client) -> None:
    """An answer wakes, also one to a question without ``--ack``. The asker's word on the answer comes with the next
    turn, and its sender is told how to wake. A lead's wakes. It stops no thread, so the person is not told."""
    post = client.post
    post.configure("[wake]\ngap_seconds = 0\n")

    def answer(to: str, who: str, *more: str) -> str:
        sent = post.ok("reply", to, "--from", who, "--body", f"by {who} {more}", *more)
        return str(sent["message"]["id"])

    asked = post.send("ann", ME, "Which branch?", "--ack")
    post.ok("check", "--session", ME)
    said = first = answer(asked, ME)
    with DoorbellLock(str(post.file(".cache")), ME, os.getpid()) as bell:
        assert bell.take()
        told = post.call("reply", said, "--from", "ann", "--body", "fine").stdout
    assert "will see it at its next turn:" in told
    assert "--ack wakes it" in told
    assert not rings(post)
    assert client.context("Stop") == ""
    assert "did not wake you" not in (shown := client.context("UserPromptSubmit"))
    assert "| fine" in shown
    for more in (("--ack",), ("--when", "now"), ("--subject", "Tests")):
        answer(said, "ann", *more)
        assert rings(post), more
        post.ok("check", "--session", ME)
    plain = post.send("ann", ME, "And tests?")
    post.ok("check", "--session", ME)
    answer(answer(plain, ME), "ann")
    assert rings(post)
    post.ok("check", "--session", ME)
    line = json.loads(next(line for line in post.lines(MESSAGES) if json.loads(line)["id"] == asked))
    forged = {**{key: line[key] for key in line if key != "seal"}, "id": "0bc9f3d7-e55d-4419-baa3-000000000001"}
    with post.file(MESSAGES).open("a") as log:
        log.write(json.dumps(forged) + "\n")
    post.ok("check", "--session", ME)
    said = answer(forged["id"], ME)
    with DoorbellLock(str(post.file(".cache")), ME, os.getpid()) as bell:
        assert bell.take()
        told = post.call("reply", said, "--from", "ann", "--body", "so it is").stdout
    assert "will see it now:" in told
    assert rings(post)  # nothing proves that she had asked
    post.ok("check", "--session", ME)
    answer(first, "ann")
    assert not rings(post)
    post.ok("roster", "update", "--session-id", ME, "--lead", "ann")
    assert rings(post)
    assert not [m for m in post.ok("history", "--all")["messages"] if m["recipient"] == "user"]


@pytest.mark.parametrize(("answer", "wakes"), [("Thanks!", False), ("Thanks, too!", True)])
def test_an_answer_by_the_very_words_that_it_answers_wakes_nobody(client: Client, answer: str, wakes: bool) -> None:
    """The first answer of a thread may do so already."""
    said = client.post.send(ME, "ann", "Thanks!")
    client.post.ok("reply", said, "--from", "ann", "--body", answer)
    assert rings(client.post) == wakes


def test_who_was_just_woken_would_see_the_persons_mail_now(client: Client) -> None:
    """``roster show`` tells when the person's own mail would come: no brake holds that up, whoever asks."""
    post = client.post
    post.send("ann", ME, "first")
    assert rings(post)
    post.ok("check", "--session", ME)
    with DoorbellLock(str(post.file(".cache")), ME, os.getpid()) as bell:
        assert bell.take()
        told = post.ok("roster", "show", ME, env={"AGENT_MAILBOX_TEST_CALLER": None})  # a program
    assert told["agent"]["mail"]["seen"] == "now"


@pytest.mark.parametrize("is_here", [True, False])
def test_a_thread_keeps_a_session_going_six_times_an_hour(client: Client, is_here: bool) -> None:
    """The seventh answer in one thread waits, though its first message is nowhere. Mail of another thread, an urgent
    one and the person's come through."""
    post = client.post
    post.configure("[wake]\nper_thread = 2\n")
    topic = post.send(ME, "ann", "How is it?") if is_here else "0bc9f3d7-e55d-4419-baa3-000000000000"
    for number in range(2):
        post.send("ann", ME, f"part {number}", "--thread", topic)
        assert f"part {number}" in client.context("Stop")
    post.send("ann", ME, "part 2", "--thread", topic)
    assert client.context("Stop") == ""
    assert not rings(post)
    post.send("ann", ME, "part 3", "--thread", topic, "--priority", "high")
    shown = client.context("Stop")
    assert "part 2" in shown
    assert "part 3" in shown
    post.send("user", ME, "stop that")
    post.send("ben", ME, "something else")
    assert rings(post)


def test_a_task_takes_its_wake_from_others_only_where_the_session_may_be_woken(client: Client) -> None:
    """One that may is asked whether it is the first; the wake of the first counts, and holds up the next."""
    desk, first = OpenMailbox(str(client.post.box)), iter((False, True))
    woken = [SessionBrake(desk, ME).may_ring_for_task(lambda: next(first)).wakes for _ in range(3)]
    assert woken == [False, True, False]
    assert next(first, None) is None


def test_no_flood_makes_a_session_deaf(client: Client) -> None:
    """A program's unproven lines use up their own wakes, in a thread of others too. Proven mail and control ring. The
    session's file does not grow without end, and goes once it is dead."""
    post = client.post
    post.configure("[wake]\ngap_seconds = 0\nper_day = 3\n")
    topic = post.send(ME, "ann", "How is it?")
    for number in range(120):
        line = {
            "id": f"0bc9f3d7-e55d-4419-baa3-{number:012}", "sender": "ann", "recipient": ME, "thread": topic,
            "timestamp": "2026-11-27T05:00:00.000Z", "content": f"noise {number}", "ttl_hours": 1000, "read_by": [],
        }  # fmt: skip
        with post.file(MESSAGES).open("a") as log:
            log.write(json.dumps(line) + "\n")
        if number < 4 or number == 119:
            assert rings(post) == (number < 3)
            post.ok("check", "--session", ME, "--limit", "0")
    kept = next((post.user_state / "wakes").glob(f"*/{ME}"))
    assert kept.stat().st_size < 1 << 15
    post.ok("reply", topic, "--from", "ann", "--body", "it is done")
    assert rings(post)
    for number in range(3):
        post.send("ben", ME, f"more {number}")
        rings(post)
    post.ok("check", "--session", ME, "--limit", "0")
    assert not rings(post)
    post.ok("control", "request", "shutdown", ME, "--session", "user")
    assert rings(post)
    post.ok("roster", "retire", "--session-id", ME)
    leftovers.sweep_leftovers(OpenMailbox(str(post.box)))
    assert not kept.exists()


def test_a_damaged_memory_costs_a_wake_too_many(client: Client) -> None:
    """Whatever is in the file, mail rings; it is written again whole."""
    post = client.post
    post.send("ann", ME, "hello")
    assert rings(post)
    kept = next((post.user_state / "wakes").glob(f"*/{ME}"))
    for damage in (b"", b"[]", b'{"wakes": 1}', b'{"wakes": [["x", 0, []]]}', b"\xff" * 99):
        kept.write_bytes(damage)
        assert rings(post)
    assert not rings(post)


def test_mail_of_the_same_words_is_one_thread_only_under_one_subject(client: Client) -> None:
    """Mail that answers nothing has a thread by its sender, its subject and its words."""
    brake = SessionBrake(OpenMailbox(str(client.post.box)), ME, lambda _: None)
    mail = Message("m1", "ann", (ME,), 0, "done")
    others = (mail, mail.replace(subject="a"), mail.replace(subject="b"), mail.replace(sender="ben"))
    assert len({brake._thread(one, ()) for one in others}) == len(others)
    assert brake._thread(mail.replace(id="m2"), ()) == brake._thread(mail, ())
