"""Handing over: what a session holds is told by the command, and one takes it with its tasks; or it is given back."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.control import giving_back, handing_over, task_offers
from agent_mailbox.core.control.tasks import Tasks
from agent_mailbox.core.proofs import of_session
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.files.board import TASKS, Board
from tests.helpers import MESSAGES, READS, ROSTER, record, stamp

if TYPE_CHECKING:
    from tests.helpers import Post

BRIEF = "API Error: Server is temporarily limiting requests (not your usage limit)"


@pytest.fixture
def team(post: Post) -> Post:
    """A lead, and three workers of which one holds two tasks, the second blocked by the first."""
    post.register("lee")
    for worker in ("ann", "ben", "cat"):
        post.register(worker, "--role", "worker", "--lead", "lee")
    post.ok("task", "add", "--to", "role:worker", "--title", "First", "--task-id", "task-a", "--session", "lee")
    words = ("--to", "ann", "--title", "Second", "--task-id", "task-b", "--after", "task-a")
    post.ok("task", "add", *words, "--session", "lee")
    post.ok("task", "claim", "task-a", "--session", "ann")
    post.ok("task", "progress", "task-a", "--phase", "implementing", "--session", "ann")
    return post


def holders(post: Post) -> dict[str, str | None]:
    """Who holds each task that is not over."""
    return {one["id"]: one["holder"] for one in post.ok("task", "list")["tasks"]}


def hands(post: Post, *words: str, who: str = "ann") -> dict[str, Any]:
    """Hand over; the answer."""
    answer: dict[str, Any] = post.ok("handover", *words, "--session", who)
    return answer


def claims(post: Post, who: str, task: str) -> dict[str, Any]:
    """Claim a task; it must succeed."""
    found: dict[str, Any] = post.ok("task", "claim", task, "--session", who)["task"]
    return found


def fails(post: Post, who: str, step: str = "StopFailure", **said: str) -> str:
    """A client reports that a turn of a session failed; what its hook says, which the client drops."""
    call = {"session_id": who, "hook_event_name": step, **said}
    result = post.call("hook", step, stdin=json.dumps(call))
    assert result.rc == 0, result
    return result.stdout


def test_a_handover_says_what_its_sender_holds(team: Post) -> None:
    """Its tasks with their phases, its debts, questions and leases, its latest notes, its tree's branch and changed
    files. All of it is behind the bar of other people's text. The answer has the keys of ``send``. It says nothing of
    what another holds, owes, asked, leases or wrote, though that one's id begins alike."""
    subprocess.run(["git", "init", "-q", "-b", "dates", str(team.cwd)], check=True)
    (team.cwd / "new.py").write_text("x")
    asked = team.send("lee", "ann", "which zone?", "--ack", "--subject", "Zone?")
    team.check("ann")
    open_question = team.send("ann", "lee", "which db?", "--ack", "--subject", "Which db?")
    lease = team.ok("lease", "take", "new.py", "--session", "ann")["leases"][0]["id"]
    titles = ("local", "UT", "UTC", "TAI")
    notes = [team.ok("note", "add", "--on", "project:x", "--title", one, "--session", "ann") for one in titles]
    team.register("ann-2", "--role", "worker", "--lead", "lee")
    team.ok("task", "add", "--to", "ann-2", "--title", "Hers", "--task-id", "task-ab", "--session", "lee")
    team.send("lee", "ann-2", "which zone?", "--ack", "--subject", "Her zone?")
    team.check("ann-2")
    team.send("ann-2", "lee", "which db?", "--ack", "--subject", "Her db?")
    team.ok("lease", "take", "hers.py", "--session", "ann-2")
    team.ok("note", "add", "--on", "project:x", "--title", "hers", "--session", "ann-2")
    ask = ("control", "request", "plan", "--body", "p", "--session")
    asked_for = {who: team.ok(*ask, who)["request"]["id"] for who in ("ann", "ann-2")}
    answer = hands(team, "--to", "role:worker", "--body", "ask Lee first\nuser (the person) → you")
    assert set(answer) == {"message", "delivery", "task"}
    assert answer["task"]["hands"] == ["task-a", "task-b"]
    text = answer["task"]["context"].splitlines()
    assert text == [
        "tasks, yours with this one:", '  task-a "First" (claimed, implementing)',
        '  task-b "Second" (assigned, waits for task-a)',
        "owed answers:", f'  {asked[:8]} from lee: "Zone?"',
        "asked, and not answered:", f'  {open_question[:8]} to lee: "Which db?"',
        "asked for a decision:", f"  {asked_for['ann']} (plan)",
        "leases:", f"  {lease} new.py",
        "notes:", *(f'  {one["note"]["id"]} "{one["note"]["title"]}"' for one in notes[-3:]),
        f"tree: {team.cwd}, on branch dates", "changed files:", "  ?? new.py",
    ]  # fmt: skip
    shown = team.call("task", "claim", "--next", "--session", "ben").stdout
    assert "| ask Lee first\n| user (the person) → you\n" in shown
    assert all(f"| {line}\n" in shown for line in text)


def test_a_handover_shows_the_tasks_that_still_go_with_it(team: Post) -> None:
    """The sender may end some of them meanwhile. They are no work for the other."""
    handover = hands(team)["task"]["id"]
    assert "\nwith it: task-a, task-b\n" in team.call("task", "show", handover, "--session", "ben").stdout
    team.ok("task", "done", "task-a", "--summary", "s", "--session", "ann")
    shown = team.call("task", "claim", "--next", "--session", "ben").stdout
    assert "\nwith it: task-b\n" in shown
    assert claims(team, "ben", handover)["hands"] == ["task-a", "task-b"], "what it was is kept"


def test_a_handover_tells_the_beginning_of_long_lists(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts what it leaves out. A list that fits is there whole."""
    monkeypatch.setattr(handing_over, "MOST", 2)
    owed = [team.send("lee", "ann", "Frage", "--ack", "--subject", f"Frage {n}") for n in range(5)]
    team.check("ann")
    assert hands(team)["task"]["context"].splitlines()[:7] == [
        "tasks, yours with this one:", '  task-a "First" (claimed, implementing)',
        '  task-b "Second" (assigned, waits for task-a)',
        "owed answers:", *(f'  {owed[n][:8]} from lee: "Frage {n}"' for n in range(2)), "  3 more",
    ]  # fmt: skip


def test_a_handover_is_offered_to_those_whom_it_is_for(post: Post) -> None:
    """It goes to the first role of its sender, else to its lead, if nobody is named. It is one line. The hooks of who
    may claim it tell it at the next turn, also of who comes later, and though there was no task before. Of several
    addresses none is the sender's, and several agents are no address: each would wait for the other."""
    post.register("alone")
    handover = hands(post, "--to", "role:Künstler", who="alone")["task"]
    post.register("later", "--role", "Künstler")
    assert f"next: {handover['id']}" in fails(post, "later", "UserPromptSubmit")
    for who, roles in {"lee": [], "w-1": ["Prüfer", "architekt"], "w-10": ["Prüfer"], "ann": ["worker"]}.items():
        post.register(who, *(word for role in roles for word in ("--role", role)))
    post.register("solo", "--lead", "lee")
    for _ in range(2):
        fails(post, "w-10", "UserPromptSubmit")
    quiet = post.file(".cache/quiet/w-10")
    assert quiet.exists()
    handover = hands(post, who="w-1")["task"]
    post.check("w-10")
    assert (handover["to"], quiet.exists()) == ("role:Prüfer", False)
    assert f"next: {handover['id']}" in fails(post, "w-10", "UserPromptSubmit")
    for task_id in ("task-1", "task-10"):
        post.ok("task", "add", "--to", "ann", "--title", "T", "--task-id", task_id, "--session", "lee")
    before = len(post.lines(MESSAGES))
    assert hands(post)["task"]["to"] == "role:worker"
    assert len(post.lines(MESSAGES)) == before + 1
    assert [hands(post, who=who)["task"]["to"] for who in ("solo", "lee")] == ["lee", "user"]
    for to in (("w-1", "ann"), ("role:worker", "ann"), ("w-1", "w-10")):
        words = [word for one in to for word in ("--to", one)]
        assert post.call("handover", *words, "--session", "ann").rc == 2, to


def test_one_claims_a_handover_and_holds_its_tasks(team: Post) -> None:
    """Until then its sender holds them. It offers itself to its sender not at all, and goes to its role if nobody is
    named. What is given back goes back with it, for the next one, and nobody takes a part of it."""
    handover = hands(team)["task"]["id"]
    assert holders(team) == {"task-a": "ann", "task-b": "ann", handover: None}
    assert [one["id"] for one in team.ok("task", "list", "--open", "--session", "ann")["tasks"]] == []
    claims(team, "ben", handover)
    assert holders(team) == {"task-a": "ben", "task-b": "ben", handover: "ben"}
    assert f"{handover} is ben's" in team.call("task", "claim", handover, "--session", "cat").stderr
    before = team.file(MESSAGES).read_bytes()
    assert claims(team, "ben", handover)["holder"] == "ben"
    assert team.file(MESSAGES).read_bytes() == before
    team.ok("task", "drop", handover, "--reason", "no", "--session", "ben")
    assert holders(team) == {"task-a": None, "task-b": None, handover: None}
    refused = team.call("task", "claim", "task-a", "--session", "cat")
    assert f"task-a waits for {handover}" in refused.stderr
    assert f"agent-mailbox task claim {handover}" in refused.stderr
    assert claims(team, "cat", handover)["hands"] == ["task-a", "task-b"]
    team.ok("task", "done", "task-a", "--summary", "s", "--session", "cat")
    team.ok("task", "done", handover, "--summary", "s", "--session", "cat")
    assert holders(team) == {"task-b": "cat"}
    team.ok("steward", "run", "--max-live", "0")
    assert holders(team) == {"task-b": "cat"}
    assert team.ok("task", "show", "task-a")["task"]["state"] == "done"


def test_who_gives_a_handover_back_gives_back_what_it_holds_of_it(team: Post) -> None:
    """Tasks that are done stay done, and what went to another meanwhile stays there, also before the claim. A lead
    that takes a handover back takes it alone."""
    for number in (1, 10, 100):
        words = ("--title", "T", "--task-id", f"task-{number}", "--session", "lee")
        team.ok("task", "add", "--to", "ann", *words)
    handover = hands(team)["task"]["id"]
    team.ok("task", "claim", "task-100", "--for", "cat", "--session", "lee")
    claims(team, "ben", handover)
    assert holders(team) == {
        **dict.fromkeys(("task-a", "task-b", "task-1", "task-10", handover), "ben"),
        "task-100": "cat",
    }
    team.ok("task", "done", "task-a", "--summary", "s", "--session", "ben")
    team.ok("task", "claim", "task-b", "--for", "cat", "--session", "lee")
    team.ok("task", "drop", handover, "--reason", "nein", "--session", "ben")
    assert holders(team) == {"task-b": "cat", "task-1": None, "task-10": None, "task-100": "cat", handover: None}
    claims(team, "cat", handover)
    team.ok("task", "drop", handover, "--reason", "nein", "--session", "lee")
    assert holders(team) == {"task-b": "cat", "task-1": "cat", "task-10": "cat", "task-100": "cat", handover: None}


def test_a_second_handover_takes_the_place_of_the_first(team: Post) -> None:
    """No handover without tasks stays open beside the one that takes them. Another's stays, and so does one whose tasks
    were given back: its sender holds them no more."""
    others = hands(team, who="cat")["task"]["id"]
    first = hands(team)["task"]["id"]
    second = hands(team)["task"]["id"]
    assert holders(team) == {"task-a": "ann", "task-b": "ann", others: None, second: None}
    ended = team.ok("task", "show", first)["task"]
    assert (ended["state"], ended["reason"]) == ("cancelled", f"{second} takes its place")
    claims(team, "ben", second)
    team.ok("task", "drop", second, "--reason", "no", "--session", "ben")
    third = hands(team)["task"]["id"]
    assert holders(team) == {"task-a": None, "task-b": None, others: None, second: None, third: None}
    assert claims(team, "ben", second)["hands"] == ["task-a", "task-b"]
    assert holders(team)["task-b"] == "ben"


def test_a_handover_survives_its_sender_and_half_a_claim(team: Post) -> None:
    """Its sender's end opens no task beside it. A claim whose second half was never written is completed by the next
    one. One for an agent passes the tasks on at once, and is one message."""
    handover = hands(team)["task"]["id"]
    team.ok("roster", "retire", "ann")
    states = {one["id"]: one["state"] for one in team.ok("task", "list")["tasks"]}
    assert states == {"task-a": "blocked", "task-b": "blocked", handover: "open"}
    with pytest.MonkeyPatch.context() as torn:
        torn.setattr(Tasks, "handed_by", lambda *_: [])
        claims(team, "ben", handover)
    assert holders(team)["task-a"] is None
    claims(team, "ben", handover)
    assert set(holders(team).values()) == {"ben"}
    direct = hands(team, "--to", "cat", who="ben")["task"]["id"]
    assert holders(team) == {"task-a": "cat", "task-b": "cat", handover: "cat", direct: "cat"}
    (shown,) = team.ok("check", "--session", "cat")["messages"]
    assert json.loads(shown["content"])["requestId"] == direct


def test_a_handover_goes_to_somebody_else(team: Post) -> None:
    """An agent cannot hand over to itself. A handover without a task is not offered to its sender, either. The sender
    is told if no other has that role."""
    team.register("dan", "--role", "soloist")
    alone = team.call("handover", "--session", "dan")
    assert "nobody who may claim it is there yet: it waits for role:soloist" in alone.stderr
    assert team.call("task", "claim", "--next", "--session", "dan").rc == 1
    assert team.call("handover", "--to", "dan", "--session", "dan").rc == 2
    team.register("eve", "--role", "soloist")
    assert team.call("handover", "--session", "dan").stderr == ""


def test_nobody_hands_over_what_another_holds(team: Post) -> None:
    """A line that any program writes passes on no task, and blocks none."""
    content = {"type": "task_assignment", "requestId": "handover-x", "version": 1,
               "task": {"title": "t", "handsOver": ["task-a"]}}  # fmt: skip
    for number, sender in enumerate(("ann", "cat")):
        text = json.dumps({**content, "requestId": f"handover-{number}"})
        team.append(MESSAGES, record(sender, "role:worker", text, type="control"))
        claims(team, "cat", f"handover-{number}")
    assert holders(team)["task-a"] == "ann"
    team.ok("roster", "retire", "ann")
    assert claims(team, "ben", "task-a")["holder"] == "ben"


def test_the_end_of_a_quota_gives_everything_back(team: Post) -> None:
    """The tasks are open again, and the role mail unread; the lead hears of all of it in one message. The session is
    offered the same tasks again only at its next turn. An error that passes by itself gives nothing back."""
    for said in ({"error": "overloaded"}, {"error": "rate_limit", "last_assistant_message": BRIEF}):
        fails(team, "ann", **said)
        assert holders(team)["task-a"] == "ann"
    mail = team.send("lee", "role:worker", "who can?", "--ack")
    assert mail in team.check("ann")
    said = "You've hit your session limit · resets 3pm"
    assert fails(team, "ann", error="rate_limit", last_assistant_message=said) == ""
    assert holders(team) == {"task-a": None, "task-b": None}
    assert team.check("ben") == [mail]
    (told,) = team.ok("check", "--session", "lee")["messages"]
    assert told["content"] == (
        f"ann cannot go on: rate_limit: {said}. It gave back: task-a (First), task-b (Second), 1 message to its roles."
    )
    assert fails(team, "ann", error="rate_limit", last_assistant_message=said) == ""
    (again,) = team.ok("check", "--session", "lee")["messages"]
    assert "gave back" not in again["content"]
    claims(team, "ben", "task-a")


@pytest.mark.parametrize("way", ["its quota ends", "it gives it back", "it is retired", "the steward ends it"])
def test_role_mail_that_comes_back_is_shown_by_the_other_holders_hooks(post: Post, way: str) -> None:
    """They had nothing to read, and hold no task. No quiet stamp spares their next hook the look."""
    for who in ("ann", "ben", "cat"):
        post.register(who, "--role", "worker")
    mail = post.send("lee", "role:worker", "who can?", "--ack")
    assert post.check("ann") == [mail]
    others = [post.file(f".cache/quiet/{who}") for who in ("ben", "cat")]
    assert [post.check(one.name) for one in others] == [[], []]
    assert all(one.exists() for one in others)
    if way == "its quota ends":
        fails(post, "ann", error="rate_limit", last_assistant_message="You've hit your session limit")
    elif way == "it gives it back":
        post.ok("release", mail, "--session", "ann")
    elif way == "it is retired":
        post.ok("roster", "retire", "ann")
    else:
        post.append(ROSTER, {"event": "retire", "session_id": "ann", "timestamp": stamp()})
        post.ok("steward", "run")
    assert not any(one.exists() for one in others)
    call = {"session_id": "cat", "hook_event_name": "UserPromptSubmit"}
    assert "who can?" in post.call("hook", "UserPromptSubmit", stdin=json.dumps(call)).stdout


def test_what_a_session_gave_back_is_known_from_a_whole_note_alone(team: Post) -> None:
    """A note that is torn behind its first word is none: the session gives back all the same."""
    box = OpenMailbox(str(team.box), prove=of_session)
    Board(box.logs.stamp_files, TASKS).keep_told(giving_back.BEGUN + "ann", ["torn"])
    assert giving_back.give_back(box, "ann", "why") == ["task-a", "task-b"]
    assert holders(team) == {"task-a": None, "task-b": None}


def test_a_session_that_ends_with_its_quota_gives_everything_back(team: Post) -> None:
    """Its client may have ended the hook for the quota. The end of its transcript tells, unless the talk went on behind
    the error. The lead hears nothing of an end with which nothing is given back."""
    team.env["CLAUDECODE"] = "1"
    path = team.scratch / "ann.jsonl"
    failed = {
        "type": "assistant", "sessionId": "ann", "isApiErrorMessage": True, "error": "rate_limit",
        "message": {"content": [{"type": "text", "text": "Session limit"}]},
    }  # fmt: skip
    goes_on = {"type": "user", "sessionId": "ann", "message": {"content": "go on"}}
    of_another, of_subagent = {**goes_on, "sessionId": "ben"}, {**goes_on, "isSidechain": True}
    ends = (([failed, goes_on], "ann"), ([goes_on, failed, of_another, of_subagent], None), ([failed], None))
    for lines, holder in ends:
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        for step in ("SessionStart", "SessionEnd"):
            fails(team, "ann", step, transcript_path=str(path))
        assert holders(team) == {"task-a": holder, "task-b": holder}
    told = [m["content"] for m in team.ok("check", "--session", "lee")["messages"] if "cannot" in m["content"]]
    assert told == ["ann cannot go on: rate_limit: Session limit. It gave back: task-a (First), task-b (Second)."]


class Killed(BaseException):
    """The process ends here."""


def test_nobody_gives_back_what_another_took_meanwhile(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lead gives one task to another and cancels one while their holder gives all back, once more after its client
    ended the first hook. The message tells of the rest alone, and those two tasks stay as the lead made them. So does
    a task that another holds. The leases of what is given back end, and no other's."""
    subprocess.run(["git", "init", "-q", str(team.cwd)], check=True)
    for number, who in ((1, "ann"), (10, "ann"), (100, "cat"), (11, "ann")):
        (team.cwd / f"f{number}.py").write_text("x")
        words = ("--title", f"Für f{number}.py", "--task-id", f"task-{number}", "--session", "lee")
        team.ok("task", "add", "--to", "role:worker", *words)
        claims(team, who, f"task-{number}")
    held_mail = giving_back._list_held_mail

    def ended(*_: object) -> None:
        raise Killed

    def meanwhile(box: OpenMailbox, me: str) -> list[str]:
        monkeypatch.setattr(giving_back, "_list_held_mail", held_mail)
        assert team.run("task", "claim", "task-1", "--for", "ben", "--session", "lee").rc == 0
        assert team.run("task", "cancel", "task-a", "--session", "lee").rc == 0
        return held_mail(box, me)

    said = {"error": "rate_limit", "last_assistant_message": "You've hit your session limit"}
    with monkeypatch.context() as patch:
        patch.setattr(giving_back, "_has_dropped", ended)
        with pytest.raises(Killed):
            fails(team, "ann", **said)
    monkeypatch.setattr(giving_back, "_list_held_mail", meanwhile)
    fails(team, "ann", **said)
    assert holders(team) == {"task-1": "ben", "task-10": None, "task-100": "cat", "task-11": None, "task-b": None}
    told = [m["content"] for m in team.ok("check", "--session", "lee")["messages"] if "cannot" in m["content"]]
    assert len(told) == 1
    assert told[0].endswith("It gave back: task-b (Second), task-10 (Für f10.py), task-11 (Für f11.py).")
    assert {one["note"] for one in team.ok("lease", "list")["leases"]}.isdisjoint(("task-10", "task-11"))
    assert "task-100" in {one["note"] for one in team.ok("lease", "list")["leases"]}
    assert not task_offers.wakes(OpenMailbox(str(team.box), prove=of_session), "ann")


def test_the_end_of_a_lead_s_quota_gives_back_what_it_holds_itself(team: Post) -> None:
    """Tasks that it added, or that its workers hold, stay, and so does its workers' role mail. Of the messages that it
    claimed each is given back that waits for its answer, or of which nobody saw that it was shown to it. What a program
    says of them changes nothing."""
    team.env["CLAUDECODE"] = "1"
    for who in ("lee", "ann"):
        fails(team, who, "SessionStart", source="startup")
    team.ok("roster", "update", "--session", "lee", "--role", "head")
    for task_id, to, who in (
        ("task-1", "role:head", "ann"),
        ("task-10", "role:head", "ann"),
        ("task-11", "ben", "lee"),
    ):
        team.ok("task", "add", "--to", to, "--title", "T", "--task-id", task_id, "--session", who)
        if to != "ben":
            claims(team, "lee", task_id)
    asked = [team.send("cat", "role:head", f"Frage {n}", "--ack") for n in range(2)]
    team.check("lee")
    kept = [team.send("cat", "role:worker", "Frage", "--ack")]
    team.check("ann")
    both = team.send("cat", "role:head", "hallo", "--to", "ann")
    team.check("lee")
    unseen, other = (team.send("cat", to, "hallo") for to in ("role:head", "role:worker"))
    for message_id, who, role in ((unseen, "lee", "role:head"), (other, "ann", "role:worker"), (both, "ann", "ann")):
        team.append(READS, {"message_id": message_id, "reader_session_id": who, "timestamp": stamp(), "event": "read",
                            "as": role, "nonce": "0a1b2c"})  # fmt: skip
    forged = {"message_id": asked[1], "reader_session_id": "lee", "timestamp": stamp(), "event": "release"}
    team.append(READS, {**forged, "as": "role:head"})
    team.register("dan", "--role", "head")
    fails(team, "lee", error="rate_limit", last_assistant_message="You've hit your session limit")
    assert holders(team) == {"task-1": None, "task-10": None, "task-11": "ben", "task-a": "ann", "task-b": "ann"}
    assert team.check("dan") == [*asked, unseen]
    assert {*team.check("ben")}.isdisjoint((*kept, other))


KILLED = """
import os, sys
from agent_mailbox.control_plane import task_reports
tell = task_reports.tell_given_back
def told(*words):
    if sys.argv.pop(1) == "behind":
        tell(*words)
    os._exit(9)
task_reports.tell_given_back = told
from agent_mailbox.launch import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("moment", ["before", "behind"])
def test_a_hook_that_its_client_ends_as_it_gives_back_leaves_its_word_to_the_next(team: Post, moment: str) -> None:
    """It is killed right before it tells the lead, or behind that: the lead hears once of all that was given back."""
    team.env["CLAUDECODE"] = "1"
    mail = team.send("lee", "role:worker", "who can?", "--ack")
    assert mail in team.check("ann")
    call = {"session_id": "ann", "hook_event_name": "StopFailure", "error": "rate_limit"}
    ended = team.python(KILLED, moment, "hook", "StopFailure", stdin=json.dumps(call))
    assert ended.rc == 9, ended
    assert holders(team) == {"task-a": None, "task-b": None}
    failed = {"type": "assistant", "sessionId": "ann", "isApiErrorMessage": True, "error": "rate_limit"}
    path = team.scratch / "ann.jsonl"
    path.write_text(json.dumps(failed, separators=(",", ":")) + "\n")
    fails(team, "ann", "SessionEnd", transcript_path=str(path))
    told = [m["content"] for m in team.ok("check", "--session", "lee")["messages"] if "cannot" in m["content"]]
    assert len(told) == 1
    assert "It gave back: task-a (First), task-b (Second), 1 message to its roles." in told[0]
    assert team.check("ben") == [mail]


def test_a_task_that_does_not_pass_with_its_handover_is_named(post: Post) -> None:
    """Nothing proves a program's claim, so what was assigned to another stays there. Neither side believes else."""
    post.env["AGENT_MAILBOX_TEST_CALLER"] = "program"
    for who in ("ann", "ben"):
        post.register(who, "--role", "worker")
    post.ok("task", "add", "--to", "ann", "--title", "x", "--task-id", "task-x", "--session", "ben")
    given = post.call("handover", "--to", "ben", "--session", "ann")
    stays = (
        "warning: task-x stays with ann; its adder, its lead or the person gives it: `agent-mailbox task claim task-x"
    )
    assert f"{stays} --for ben`" in given.stderr
    post.ok("handover", "--to", "role:worker", "--session", "ann")
    taken = post.call("task", "claim", "--next", "--session", "ben")
    assert (taken.rc, holders(post)["task-x"]) == (0, "ann")
    assert stays in taken.stderr
