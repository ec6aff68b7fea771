"""Agents, tasks, messages and clients whose ids begin with each other: each is taken for itself by every command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox, Refused
from agent_mailbox.control import orders
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.core.message_reads import LAPSES
from agent_mailbox.core.proofs import of_session
from agent_mailbox.core.records import NOW, TURN
from agent_mailbox.core.team_file import parse_team
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.open_mailbox import OpenMailbox, wall_clock
from agent_mailbox.store.files.board import TASKS, Board
from agent_mailbox.store.projection import open_ends
from agent_mailbox.store.user_state import processes
from tests.helpers import ARCHIVE, MESSAGES, READS, record, refused, stamp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_mailbox.core.records import Proof
    from tests.helpers import Post

LEADS = {"lee-1": "lee", "ann": "lee", "ann-1": "lee-1", "bob": "ann", "bob-1": "ann-1"}


@pytest.fixture
def team(post: Post) -> Post:
    """Leads and workers, whose ids, names, roles and tasks begin with each other; ``ann-1`` holds ``task-1``."""
    post.register("lee", "--name", "Lee")
    for who, lead in LEADS.items():
        end = "-1" * who.endswith("-1")
        post.register(who, "--name", who.capitalize(), "--lead", lead, "--role", f"worker{end}")
    added(post, "task")
    added(post, "task-1")
    does(post, "ann-1", "claim", "task-1")
    return post


def added(post: Post, task: str, to: str = "role:worker-1", by: str = "bob", *more: str) -> dict[str, Any]:
    """Add a task."""
    words = ("task", "add", "--to", to, "--title", task, "--task-id", task, "--session", by)
    found: dict[str, Any] = post.ok(*words, *more)["task"]
    return found


def does(post: Post, who: str, *words: str) -> dict[str, Any]:
    """Take a step with a task."""
    found: dict[str, Any] = post.ok("task", *words, "--session", who)["task"]
    return found


def test_a_task_that_an_agent_of_a_longer_id_holds_is_given_to_another(team: Post) -> None:
    """The giver may be its adder, or the lead of the new holder, whose id begins with the giver's."""
    assert does(team, "bob", "claim", "task-1", "--for", "ann")["holder"] == "ann"
    assert does(team, "lee", "claim", "task", "--for", "lee-1")["holder"] == "lee-1"


def test_an_act_on_a_task_that_one_of_a_longer_id_holds_by_now_is_refused(team: Post) -> None:
    """The giver saw it as another's."""
    with pytest.raises(Refused, match="has changed: Ann-1 holds it now"):
        Tasking(OpenMailbox(str(team.box), prove=of_session)).claim_task("lee", "task-1", "bob", seen="ann")


def test_a_task_waits_for_one_whose_id_begins_with_its_own(team: Post) -> None:
    """Only a task that waits for itself is refused."""
    assert added(team, "tas", "bob", "lee", "--after", "task-1")["waits_for"] == ["task-1"]


def test_a_step_with_a_task_tells_nobody_again_of_another(team: Post) -> None:
    """Only those are told to whom this very task is open now."""
    added(team, "job-1", "role:worker")
    board = Board(OpenMailbox(str(team.box)).logs.stamp_files, TASKS)

    for words in (("claim", "job"), ("drop", "job", "--reason", "x")):
        for who in ("ann", "lee-1"):
            board.keep_told(who, ["job-1"])
        if words[0] == "claim":
            added(team, "job")
        does(team, "ann-1", *words)
        assert [board.read_told(who) for who in ("ann", "lee-1")] == [["job-1"], []]


def test_a_handover_goes_to_an_agent_whose_id_begins_with_the_sender_s_and_back(team: Post) -> None:
    """Only the sender takes none of its own, and hands over nothing to itself."""
    first = team.ok("handover", "--to", "role:worker", "--body", "It is yours", "--session", "ann-1")["task"]["id"]
    assert does(team, "ann", "claim", "--next")["id"] == first
    assert does(team, "ann", "show", "task-1")["holder"] == "ann"
    team.ok("handover", "--to", "ann-1", "--body", "And back", "--session", "ann")
    assert does(team, "ann-1", "show", "task-1")["holder"] == "ann-1"


def test_a_later_handover_ends_none_of_an_agent_whose_id_begins_with_the_sender_s(team: Post) -> None:
    """Its lead hands over the task that both had: only an earlier one of the lead's own would be over."""
    does(team, "bob", "claim", "task", "--for", "lee-1")
    first = team.ok("handover", "--to", "role:worker", "--body", "x", "--session", "lee-1")["task"]["id"]
    does(team, "bob", "claim", "task", "--for", "lee")
    team.ok("handover", "--to", "role:worker", "--body", "x", "--session", "lee")
    assert does(team, "lee", "show", first)["state"] == "open"


def test_a_lead_watches_and_orders_its_own_alone(team: Post) -> None:
    """An agent may watch one whose id begins with its own. An order to all reaches no agent of another lead, and the
    refusal of one says whose it is to give."""
    (watch,) = team.ok("watch", "set", "lee-1", "--dead", "--session", "lee")["watches"]
    assert (watch["agent"], watch["watcher"]) == ("lee-1", "lee")
    team.ok("control", "mode", "all", "plan", "--session", "lee")
    shown = team.ok("control", "mode", "all", "--session", "lee")["agents"]
    assert sorted(one["session"] for one in shown) == ["ann", "lee-1"]
    modes = {who: team.ok("control", "mode", "--session", who)["agents"][0]["mode"] for who in LEADS}
    assert {who for who, mode in modes.items() if mode == "plan"} == {"ann", "lee-1"}
    refused(team.call("control", "mode", "ann", "plan", "--session", "ann-1"), 1, "ann-1 is not the lead of ann")
    asked = team.ok("control", "request", "permission", "--tool", "Bash", "--session", "ann")["request"]["id"]
    refused(team.call("control", "approve", asked, "--session", "ann-1"), 1, "ann-1 is not its lead")


def test_an_idle_agent_wakes_its_lead_for_a_task_of_its_own_alone(team: Post) -> None:
    """A task of an agent whose id begins with its own is none of its."""
    box = OpenMailbox(str(team.box), prove=of_session)
    sent = {who: orders.report_idle(box, who) for who in ("ann", "ann-1")}
    assert {who: one and one.message.when for who, one in sent.items()} == {"ann": TURN, "ann-1": NOW}


def test_the_mail_of_an_agent_counts_against_no_other(team: Post) -> None:
    """Each has its own limit of messages in a minute."""
    team.file("config.toml").write_text("[limits]\nmessages_per_minute = 1\n")
    team.send("ann", "lee")
    refused(team.call("send", "--from", "ann", "--to", "lee", "--body", "hi"), 1, "a minute")


def test_role_mail_that_a_session_of_a_longer_id_claimed_is_taken_with_a_proof_alone(team: Post) -> None:
    """The claimer was gone before it was shown the mail, and its claim lapsed."""
    for who in ("ann", "ann-1"):
        team.ok("roster", "update", "--session-id", who, "--role", "both")
    now, sent = [wall_clock()], team.send("bob", "role:both")

    def delivered(who: str, prove: Callable[[str], Proof | None], room: int = 9) -> list[str]:
        """Deliver to a session as many as there is room for; the ids shown."""
        shown: list[str] = []
        box = OpenMailbox(str(team.box), clock=lambda: now[0], prove=prove)
        Delivery(box).deliver(who, lambda items: (shown.extend(i.message.id for i in items[:room]), items[:room])[1])
        return shown

    assert delivered("ann-1", of_session, 0) == []
    now[0] += LAPSES + 1
    assert delivered("ann", lambda _: None) == []
    assert delivered("ann", of_session) == [sent]


def test_a_message_has_its_own_text_receipts_and_place(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs may give messages ids that begin with each other, and be read as sessions whose ids do. What is
    archived of one is not where the other is."""
    now, names = stamp(), ("note-12", "note-1", "note-")
    for name in names:
        line = record("stray", "all", f"text of {name}", id=name, timestamp=now)
        team.append(MESSAGES, {key: line[key] for key in sorted(line)})  # no line of ours has its id behind its text
        read = {"message_id": name, "reader_session_id": f"by-{name}", "timestamp": now, "event": "read"}
        team.append(READS, read)
    team.append(f"{ARCHIVE}/2026-11.jsonl", record("stray", "ann", "old", id="note", timestamp=now))
    box = Mailbox(str(team.box))
    pages, newest = MailPages(box), MailPages(box)
    newest.newest_alone = True
    monkeypatch.setattr(MailPages, "_ask", lambda *_: None)
    for name in names:
        found = team.ok("show", name)
        assert found["message"]["content"] == f"text of {name}"
        assert [one["session_id"] for one in found["receipts"]] == [f"by-{name}"]
        assert f'"text of {name}"'.encode() in pages.stored_line(name)
        assert [one.session_id for one in newest.found(name).receipts] == [f"by-{name}"]
        assert [one.message_id for one in open_ends.read_records(box.logs, f"by-{name}", names)] == [name]
    team.append(READS, {"message_id": "note", "reader_session_id": "ann", "timestamp": now, "event": "read"})
    before = box.find("note").replace(position=0)
    monkeypatch.setattr(box, "find", lambda _: before)
    with pytest.raises(Refused, match="is archived"):  # since it was looked up
        box.release("note", "ann")


def test_a_client_s_latest_session_is_told_by_its_whole_id(tmp_path: Path) -> None:
    """It goes back to a session, behind one whose id begins with that one's."""
    hosts, mine = processes.ProcessRecords(str(tmp_path)), processes.read(os.getpid())
    assert mine is not None
    for session, first in (("a", False), ("a-1", False), ("a", True)):
        hosts.record(mine, session, processes.PIPE, first=first)
    assert [host.sessions for host in hosts.all()] == [("a", "a-1")]


def test_processes_of_an_outer_namespace_are_not_taken_for_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may be given the host's ``/proc``, in which this process has a longer number."""
    assert processes.are_shown()
    monkeypatch.setattr(processes, "link_target", lambda _: f"{os.getpid()}0")
    assert not processes.are_shown()


def test_a_member_may_be_led_by_one_whose_name_begins_with_its_own() -> None:
    """Only itself is no other member."""
    table = {"member": {"Ann": {"client": "claude", "lead": "Anna"}, "Anna": {"client": "claude"}}}
    assert [one.lead for one in parse_team(table, ["claude"], ()).members] == ["Anna", ""]
