"""Every roster command, each option, in text and as JSON, and what the rest of the mailbox makes of it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.cli.context import Context
from agent_mailbox.core.records import USER
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.registry import Registry
from tests.helpers import ARCHIVE, MESSAGES, ROSTER, hinted_commands, record, refused, refused_both, stamp

if TYPE_CHECKING:
    from agent_mailbox.core.roster import Roster
    from tests.helpers import Post


def agent(post: Post, word: str) -> dict[str, Any]:
    """The roster's answer about an agent."""
    return dict(post.ok("roster", "show", word)["agent"])


def test_an_empty_word_is_not_the_caller(post: Post) -> None:
    """A script's variable may be unset. Nobody is retired or frozen for that, least of all the session that runs it."""
    post.register("me")
    for what in ("freeze", "retire", "heartbeat"):
        refused(post.call("roster", what, "", env={"AGENT_MAILBOX_SESSION": "me"}), 2, "ID is empty")
    assert post.ok("roster", "show", "me")["agent"]["state"] == "alive"


def test_register_prints_the_agent(post: Post) -> None:
    """Name, roles and tags in order, alive, seen now; a lead; again changes nothing and writes nothing."""
    words = (
        *(
            "roster",
            "register",
            "--session-id",
            "s-1",
            "--name",
            "Ann",
            "--role",
            "architect",
            "--role",
            "role:builder",
        ),
        *("--tags", "project:x, concern:y", "--lead", "user"),
    )
    made = post.ok(*words)["agent"]
    assert (made["session_id"], made["name"], made["state"], made["lead"]) == ("s-1", "Ann", "alive", "user")
    assert made["tags"] == ["role:architect", "role:builder", "project:x", "concern:y"]
    assert made["last_seen"].endswith("Z")
    before = post.lines(ROSTER)
    assert post.ok(*words)["agent"]["tags"] == made["tags"]
    assert post.lines(ROSTER) == before
    text = post.call(*words)
    assert "role:architect role:builder project:x concern:y" in text.stdout
    assert "Ann" in text.stdout


def test_update_replaces_adds_and_removes_tags(post: Post) -> None:
    """``--tags`` replaces all but roles; roles change by ``--role`` and role tags; an unknown session is registered."""
    said = ("roster", "update", "--session-id", "s-1")
    first = post.call(*said, "--tags", "project:inscription,concern:governance", "--json")
    assert first.json["agent"]["tags"] == ["project:inscription", "concern:governance"]
    assert first.stderr.startswith("warning: no agent s-1 was known, and this update registered it: ")
    assert post.call(*said).stderr == ""
    for words, tags in (
        (("--role", "architect"), ["role:architect", "project:inscription", "concern:governance"]),
        (("--tags", "domain:z"), ["role:architect", "domain:z"]),
        (("--add-tags", "project:x,domain:z"), ["role:architect", "domain:z", "project:x"]),
        (("--remove-tags", "domain:z,concern:never"), ["role:architect", "project:x"]),
        (("--tags", "role:builder"), ["role:builder"]),
        (("--add-tags", "role:architect"), ["role:builder", "role:architect"]),
        (("--remove-tags", "role:builder"), ["role:architect"]),
        (("--tags", ""), ["role:architect"]),
    ):
        assert post.ok(*said, *words)["agent"]["tags"] == tags, words
    assert post.ok(*said, "--name", "Ann")["agent"]["name"] == "Ann"
    assert post.ok(*said, "--name", "Zoe")["agent"]["name"] == "Zoe"
    assert agent(post, "Zoe")["session_id"] == "s-1"
    refused(post.call("roster", "show", "Ann"), 1, "no agent 'Ann'")


def test_who_is_meant_may_come_from_the_environment(post: Post) -> None:
    """register, update, heartbeat, freeze, show and retire without an id mean the session that asks."""
    env = {"CLAUDE_CODE_SESSION_ID": "me-myself"}
    assert post.ok("roster", "register", env=env)["agent"]["session_id"] == "me-myself"
    assert post.ok("roster", "update", "--role", "r", env=env)["agent"]["tags"] == ["role:r"]
    for verb, state in (("freeze", "frozen"), ("heartbeat", "alive"), ("show", "alive"), ("retire", "dead")):
        assert post.ok("roster", verb, env=env)["agent"]["state"] == state
    refused(post.call("roster", "register"), 2, "--session")


@pytest.mark.parametrize("how", ["id", "option", "name", "prefix"])
def test_an_agent_is_named_in_any_of_its_ways(post: Post, how: str) -> None:
    """Each roster command takes an agent's id, ``--session-id``, name or unique prefix."""
    post.register("session-0001", "--name", "Ann")
    words = {
        "id": ("session-0001",),
        "option": ("--session-id", "session-0001"),
        "name": ("Ann",),
        "prefix": ("sessio",),
    }[how]
    for verb, state in (
        *(("freeze", "frozen"), ("freeze", "frozen"), ("heartbeat", "alive"), ("show", "alive")),
        *(("retire", "dead"), ("retire", "dead"), ("show", "dead")),
    ):
        answer = post.ok("roster", verb, *words)
        assert answer["agent"]["state"] == state, verb
        assert state in post.call("roster", "show", "session-0001").stdout
    refused_both(post.call, 1, "roster", "freeze", *words, said=["dead", "register"])
    refused_both(post.call, 1, "roster", "heartbeat", *words, said=["dead", "register"])
    refused_both(post.call, 1, "roster", "update", "--session-id", "session-0001", said=["dead", "register"])
    post.register("session-0001")
    assert agent(post, "session-0001")["state"] == "alive"


def test_list_shows_all_or_those_in_a_state(post: Post) -> None:
    """``roster list`` shows all agents, or those in one state, in the order in which they registered. A table of all
    counts the dead, who in a year are thousands, and says how to list them."""
    assert post.call("roster", "list").stdout == "no agents\n"
    assert post.call("roster", "list", "--state", "dead").stdout == "no dead agents\n"
    for name in ("alive-1", "frozen-1", "dead-1"):
        post.register(name)
    post.ok("roster", "freeze", "frozen-1")
    post.ok("roster", "retire", "dead-1")

    def listed(*words: str) -> list[str]:
        return [a["session_id"] for a in post.ok("roster", "list", *words)["agents"]]

    assert listed() == ["alive-1", "frozen-1", "dead-1"]
    for state in ("alive", "frozen", "dead"):
        assert listed("--state", state) == [f"{state}-1"]
    *lines, last = post.call("roster", "list").stdout.splitlines()
    assert last == "and 1 dead: agent-mailbox roster list --state dead"
    assert lines[0].split() == ["state", "name", "session", "last", "seen", "lead", "sees", "mail", "task", "tags"]
    assert [line.split()[0] for line in lines[1:]] == ["alive", "frozen"]
    assert len({line.index(line.split()[2]) for line in lines[1:]}) == 1
    assert "dead-1" in post.call("roster", "list", "--state", "dead").stdout
    refused(post.call("roster", "list", "--state", "asleep"), 2, "alive")


def test_a_heartbeat_writes_no_log(post: Post) -> None:
    """It touches the heartbeat file, whose time is what ``last_seen`` says; a poll must not write to a log."""
    from agent_mailbox.core import instant

    post.register("a")
    before = post.lines(ROSTER)
    seen = post.ok("roster", "heartbeat", "a")["agent"]["last_seen"]
    assert post.lines(ROSTER) == before
    assert post.file("agent-heartbeats", "a").stat().st_mtime_ns // 1_000_000 == instant.parse(seen)
    assert post.file("agent-heartbeats", "a").read_bytes() == b""
    refused(post.call("roster", "heartbeat", "never-registered"), 1, "no agent")


def test_another_s_word_about_an_agent_is_no_sign_of_its_life(post: Post) -> None:
    """An agent that was silent for a day would look as if it had been seen just now."""
    post.register("ann")
    beat, box = post.file("agent-heartbeats", "ann"), Mailbox(str(post.box))
    for number, (actor, is_seen) in enumerate(((USER, False), ("ben", False), ("ann", True))):
        os.utime(beat, (1, 1))
        box.register(Registration(session_id="ann", event="update", add_tags=(f"project:p{number}",)), actor)
        assert (beat.stat().st_mtime > 1) == is_seen, actor


def test_names_ids_and_roles_do_not_collide(post: Post) -> None:
    """A living name is taken; a name is no role in use and a role no living agent; reserved words stay reserved."""
    post.register("a", "--name", "Ann", "--role", "architect")
    post.register("b")
    for words, said in (
        (("--session-id", "c", "--name", "Ann"), "taken"),
        (("--session-id", "c", "--name", "b"), "taken"),
        (("--session-id", "Ann"), "taken"),
        (("--session-id", "c", "--name", "architect"), "role in use"),
        (("--session-id", "architect"), "role in use"),
        (("--session-id", "c", "--role", "Ann"), "is an agent's id or name"),
        (("--session-id", "c", "--tags", "role:b"), "is an agent's id or name"),
    ):
        told = refused_both(post.call, 1, "roster", "register", *words, said=[said])
        assert told.json["error"]["code"] == "name_taken"
    for words in (
        ("--session-id", "all"),
        ("--session-id", "user"),
        ("--session-id", "User"),
        ("--session-id", "you"),
        ("--session-id", "c", "--name", "all"),
        ("--session-id", "c", "--name", "user"),
        ("--session-id", "c", "--role", "all"),
        ("--session-id", "c", "--tags", "role:user"),
    ):
        refused_both(post.call, 2, "roster", "register", *words)
    assert [a["session_id"] for a in post.ok("roster", "list")["agents"]] == ["a", "b"]


def test_a_shared_role_is_reported(post: Post) -> None:
    """Several living holders are allowed; whoever joins is told."""
    post.register("a", "--role", "builder")
    answer = post.call("roster", "register", "--session-id", "b", "--role", "builder", "--json")
    assert answer.rc == 0
    assert answer.json["warnings"] == [w.removeprefix("warning: ") for w in answer.warnings]
    assert "also held by a;" in answer.json["warnings"][0]
    for other in ("c", "d"):
        post.register(other, "--role", "builder")
    told = post.call("roster", "register", "--session-id", "e", "--role", "builder", "--json").json["warnings"]
    assert told == ["role:builder is also held by a, b, c and others; each message goes to one holder"]


def test_mail_to_a_project_reaches_who_takes_its_bearers_name(post: Post) -> None:
    """An agent that takes a dead agent's name also takes its tags and the mail that it had not read."""
    post.register("ana-1", "--name", "Ana", "--tags", "project:toy", "--role", "dev")
    read = post.send("x", "project:toy", "read")
    assert post.check("ana-1") == [read]
    unread = post.send("x", "project:toy", "unread")
    post.ok("roster", "retire", "ana-1")
    later = post.send("x", "role:dev", "between the two")
    post.register("ana-2", "--name", "Ana")
    assert post.check("ana-2") == [unread, later]
    assert post.ok("roster", "show", "ana-2")["agent"]["tags"] == ["role:dev", "project:toy"]


def test_a_circle_of_leads_is_refused(post: Post) -> None:
    """The hint's command takes one out of it."""
    post.register("ana")
    post.register("ben", "--lead", "ana")
    post.register("cat", "--lead", "ben")
    words = ("roster", "update", "--session-id", "ana", "--lead", "cat")
    told = refused(post.call(*words), 1, "cat cannot lead ana", "ana → ben → cat → ana")
    post.call(*told.stderr.partition("`agent-mailbox ")[2].partition("`")[0].split())
    assert post.ok(*words)["agent"]["lead"] == "cat"


def test_registering_under_the_name_of_one_that_is_gone_continues_it(post: Post) -> None:
    """Its unread direct mail and its obligations pass over; what it read counts as read; mail to the old id follows."""
    post.register("old-session", "--name", "Ann")
    read = post.send("x", "Ann", "read already")
    owed = post.send("x", "Ann", "please", "--ack")
    post.check("old-session")
    unread = post.send("x", "old-session", "not yet")
    post.ok("roster", "freeze", "Ann")
    answer = post.ok("roster", "register", "--session-id", "new-session", "--name", "Ann")["agent"]
    assert answer["continues"] == ["old-session"]
    assert agent(post, "old-session")["state"] == "dead"
    late = post.send("x", "old-session", "to the old id")
    assert post.unread("new-session") == [unread, late]
    status = post.ok("status", "--session", "new-session")
    assert [m["id"] for m in status["obligations"]] == [owed]
    assert read in [m["id"] for m in post.ok("history", "--session", "new-session")["messages"]]
    assert post.check("new-session") == [unread, late]


def test_who_takes_a_lead_s_name_and_not_its_place_is_told_who_decides_now(post: Post) -> None:
    """The person does, for each that is not dead, until it says otherwise by the command that is told."""
    post.register("old", "--name", "Lee")
    for worker in ("ann", "ben", "cat"):
        post.register(worker, "--lead", "old")
    post.ok("roster", "retire", "cat")
    post.ok("roster", "retire", "old")
    for name, led in (("new", "old led ann and 1 more"), ("newer", "new led ann")):
        told = post.ok(
            "roster", "register", "--session-id", name, "--name", "Lee", env={"AGENT_MAILBOX_TEST_CALLER": "program"}
        )
        (said,) = (warning for warning in told["warnings"] if "the person decides" in warning)
        assert said.startswith(f"{led}, for whom the person decides now; `agent-mailbox "), said
        (words,) = hinted_commands(said)
        assert post.ok(*words, env={"AGENT_MAILBOX_SESSION": "user"})["agent"]["lead"] == name
        post.ok("roster", "retire", name)


def test_a_lead_that_nobody_registered_is_worth_a_warning(post: Post) -> None:
    """It may be on its way: until then only the person hears of what its worker asks. A misspelt one is refused."""
    post.register("boss")
    for lead, said in (("later", 1), ("boss", 0), ("user", 0)):
        post.register(f"worker-of-{lead}")
        result = post.ok("roster", "update", "--session-id", f"worker-of-{lead}", "--lead", lead)
        assert (result["agent"]["lead"], len(result["warnings"])) == (lead, said)
    for verb, who in (("register", "worker-x"), ("update", "worker-of-user")):
        change = ("roster", verb, "--session-id", who, "--lead", "bos")
        refused_both(post.call, 1, *change, said=["no agent 'bos' is known", "did you mean boss?"])
    assert post.ok("roster", "show", "worker-of-user")["agent"]["lead"] == "user"
    program = {"AGENT_MAILBOX_TEST_CALLER": "program"}
    again = ("roster", "update", "--session-id", "worker-of-later", "--lead", "boss")
    said = refused(post.call(*again, env=program), 1, "the lead of worker-of-later is later").stderr
    assert "ask the person to change it" in said  # the present lead is nobody


def test_the_person_is_asked_which_session_to_register(post: Post) -> None:
    """Without one the caller is meant, and that is no session."""
    person = {"AGENT_MAILBOX_SESSION": "user"}
    refused_both(post.call, 2, "roster", "register", "--name", "Boss", env=person, said=["--session-id ID"])


def test_the_lead_is_set_once_and_changed_only_by_the_person_or_the_lead(post: Post) -> None:
    """An agent may not promote itself, nor may a third one; the present lead and the person may."""
    for name in ("boss", "other"):
        post.register(name)
    post.register("me", "--lead", "boss")
    change = ("roster", "update", "--session-id", "me", "--lead", "other")
    for actor in ("me", "other"):
        refused_both(post.call, 1, *change, env={"CLAUDE_CODE_SESSION_ID": actor}, said=["boss"])
    assert post.ok(*change, env={"CLAUDE_CODE_SESSION_ID": "boss"})["agent"]["lead"] == "other"
    assert post.ok(*change[:-1], "user")["agent"]["lead"] == "user"
    refused(post.call("roster", "update", "--session-id", "me", "--lead", "me"), 1, "own lead")


def test_a_dead_holders_unanswered_role_mail_returns_to_the_role(post: Post) -> None:
    """Role mail that a dead holder did not acknowledge is free again for the role. Other role mail stays with the
    dead."""
    post.register("a", "--role", "builder")
    owed = post.send("x", "builder", "1", "--ack")
    acked = post.send("x", "builder", "2", "--ack")
    post.send("x", "builder", "3")
    post.check("a")
    post.ok("ack", acked, "--session", "a")
    post.ok("roster", "freeze", "a")
    post.register("b", "--role", "builder")
    assert post.unread("b") == []
    post.ok("roster", "retire", "a")
    assert post.check("b") == [owed]


def test_mail_to_the_dead_is_refused_naming_their_roles(post: Post) -> None:
    """``send`` refuses mail to a dead agent and names its roles. Mail to a frozen agent waits."""
    post.register("a-session", "--name", "Ann", "--role", "builder")
    post.ok("roster", "freeze", "Ann")
    answer = post.ok("send", "--from", "x", "--to", "Ann", "--body", "hi")["delivery"]
    assert (answer["agents"], answer["waiting_for"], answer["warnings"]) == ([], ["a-session"], [])
    post.ok("roster", "retire", "Ann")
    for word in ("Ann", "a-session", "a-sess"):
        told = refused_both(
            post.call, 1, "send", "--from", "x", "--to", word, "--body", "hi", said=["dead", "role:builder"]
        )
        assert told.json["error"]["code"] == "dead_recipient"
    refused(post.call("send", "--from", "x", "--to", "all,Ann", "--body", "hi"), 1, "dead")


def test_an_agent_that_joins_during_a_look_is_not_taken_for_a_mistake(post: Post) -> None:
    """Between two looks at the roster it may be there: its own name is then no other one."""
    mailbox = Mailbox(str(post.box))
    looks: list[Roster] = []
    read = mailbox.logs.read_roster

    def joined_behind() -> Roster:
        roster = read()
        if not looks:
            looks.append(roster)
            post.register("warden")
        return roster

    mailbox.logs.read_roster = joined_behind  # type: ignore[method-assign]
    app = Context(str(post.box))
    app.named = "warden"
    app.environ = post.environ()
    assert app.reading_session(mailbox) == "warden"
    assert looks


def test_list_tells_each_agent_s_lead_when_it_sees_mail_and_its_task(post: Post) -> None:
    """A shell sees mail when it looks; one that is not alive sees none."""
    post.register("boss", "--name", "Boss")
    post.register("worker", "--lead", "boss", "--role", "tester")
    task = post.ok("task", "add", "--session", "boss", "--to", "role:tester", "--title", "Try it")["task"]["id"]
    post.ok("task", "claim", task, "--session", "worker")
    post.ok("roster", "freeze", "boss")
    rows = post.call("roster", "list").stdout.splitlines()
    boss, worker = (re.split(r"  +", row) for row in rows[1:])
    assert boss[4:7] == ["-", "-", "-"]
    assert worker[4:] == ["Boss", "when it looks", f"{task} claimed", "role:tester"]


def test_an_id_is_shown_by_its_beginning_and_means_its_agent_wherever_it_is_written(post: Post) -> None:
    """Neither an update nor a lead by a short id makes or names another agent. Two that begin alike are shown whole."""
    ann, bob = "0b93ef8d-87f0-4314-8bfb-511de6cb0de7", "1a93ef8d-87f0-4314-8bfb-511de6cb0de8"
    post.register(ann)
    post.register(bob, "--lead", ann[:8])
    agent = post.ok("roster", "update", "--session-id", bob[:8], "--add-tags", "project:y")["agent"]
    assert (agent["session_id"], agent["lead"], agent["tags"]) == (bob, ann, ["project:y"])
    assert {one["session_id"] for one in post.ok("roster", "list")["agents"]} == {ann, bob}
    sent = post.send(ann[:8], bob[:8], "hello", "--ack")
    answer = post.call("reply", sent[:8], "--from", bob, "--body", "x", "--json").json["message"]["id"]
    shown = [
        *(post.call("send", "--from", ann, "--to", bob, "--body", "x"), post.call("check", "--session", bob)),
        *(post.call("ack", sent[:8], "--session", bob), post.call("ack", answer[:8], "--session", ann)),
        *(post.call("status", "--session", bob), post.call("roster", "list"), post.call("history", "--session", bob)),
    ]
    for one in shown:
        rows = [row for row in one.stdout.splitlines() if "agent-mailbox " not in row]
        assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", "\n".join(rows)), one
    post.register(twin := f"{bob[:8]}-0000-4000-8000-000000000000")
    assert bob in (listed := post.call("roster", "list").stdout)
    assert twin in listed
    refused(post.call("roster", "update", "--session-id", bob[:8], "--add-tags", "project:z"), 1, bob, twin)


LONG, SECOND = "b1134fc7-6f1e-4997-83ed-699c6c8ae683", "c2245fc7-6f1e-4997-83ed-699c6c8ae684"


def test_what_people_read_has_short_ids_and_json_has_whole_ones(post: Post) -> None:
    """Answers, errors, hints, warnings and receipts have the ids as a command takes them. Ids that begin alike stay
    whole."""
    post.register(LONG, "--name", "Ann")
    post.register(SECOND, "--name", "Ben", "--lead", LONG)
    sent = post.send(SECOND, "Ann", "hello")
    post.check(LONG)
    told = [
        *(post.call("roster", "show", "Ben"), post.call("show", sent), post.call("thread", sent)),
        *(post.call("ack", sent, "--session", SECOND), post.call("roster", "register", "--session-id", "Ann")),
        post.call("roster", "register", "--session-id", "ann"),
    ]
    shown = "".join(one.stdout + one.stderr for one in told)
    assert not [whole for whole in (LONG, SECOND, sent) if whole in shown], shown
    assert f"{SECOND[:8]} has not read {sent[:8]}" in shown
    assert re.search(r"lead +Ann\n", shown)
    assert f"agent-mailbox roster retire {LONG[:8]}" in shown
    assert LONG in post.call("roster", "register", "--session-id", "Ann", "--json").stdout
    post.register(f"{LONG[:-1]}4")
    assert f"{LONG} (alive)" in post.call("roster", "register", "--session-id", "Ann").stderr


def test_an_update_takes_an_agent_s_name(post: Post) -> None:
    """The agent of that name is changed, and none is made."""
    post.register(LONG, "--name", "Ann")
    changed = post.ok("roster", "update", "--session-id", "Ann", "--lead", "user")["agent"]
    assert (changed["session_id"], changed["lead"]) == (LONG, "user")
    assert len(post.ok("roster", "list")["agents"]) == 1


@pytest.mark.parametrize("actor", ["new", "user"])
def test_whoever_continues_a_session_by_its_client_s_word_has_its_place(post: Post, actor: str) -> None:
    """The event has the proof of the older session, or of the person. That of the younger one proves nothing."""
    mailbox = Mailbox(str(post.box))
    mailbox.register(Registration(session_id="old"), "old")
    mailbox.register(Registration(session_id="new", continues="old"), actor)
    assert mailbox.logs.read_roster().agents["new"].inherits == ("old",)
    assert mailbox.logs.read_roster().agents["old"].inherits == ()


@pytest.mark.parametrize("place", [ROSTER, f"{ARCHIVE}/roster.jsonl", MESSAGES])
def test_a_name_that_was_ever_used_is_given_to_nobody(post: Post, place: str) -> None:
    """Its bearer may have given it up before the steward retold the roster, or mail waits for who takes it."""
    post.file(ARCHIVE).mkdir(exist_ok=True)
    named = {"event": "register", "session_id": "ann", "name": "Otter", "timestamp": stamp()}
    post.append(place, record("ann", "role:Otter") if place == MESSAGES else named)
    found = [Registry(Mailbox(str(post.box))).is_unused(name) for name in ("Otter", "Heron")]
    assert found == [False, True]
