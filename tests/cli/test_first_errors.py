"""The refusals that a newcomer meets: each says what is wanted, and how to get it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from agent_mailbox.core.address import EXAMPLE_ID
from tests.helpers import MESSAGES, ROOT, Post, record, refused
from tests.surroundings import at_terminal, line

ME = "b1134fc7-6f1e-4997-83ed-699c6c8ae683"
NOBODY = {"AGENT_MAILBOX_SESSION": None, "CLAUDE_CODE_SESSION_ID": None, "CODEX_SESSION_ID": None}


def test_the_person_has_no_time_of_last_sight(post: Post) -> None:
    """A heartbeat is an agent's: no year 1970 for the person, in text and in JSON."""
    assert "the person, not an agent" in post.call("roster", "show", "user").stdout
    told = post.call("roster", "show", "user", "--json").json["agent"]
    assert (told["last_seen"], told["registered"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "option", "hint"),
    [
        (("check",), "--session", "pass --session ID"),
        (("send", "--to", "all", "--body", "x"), "--from", "pass --from ID"),
        (("reply", EXAMPLE_ID, "--body", "x"), "--from", "pass --from ID"),
        (("history",), "--session", "pass --all"),
        (("dead-letters",), "--session", "pass --all"),
    ],
)
def test_an_unknown_session_is_told_by_the_command_s_own_option(
    post: Post, words: tuple[str, ...], option: str, hint: str
) -> None:
    """Sending has --from; what can also show everyone's mail names --all."""
    result = post.call(*words, env=NOBODY)
    assert result.rc == 2
    assert f"no {option}, and neither a client nor" in result.stderr
    assert hint in result.stderr


def test_an_id_s_beginning_that_is_too_short_says_how_much_is_wanted(post: Post) -> None:
    """An error says that an agent's id needs at least six characters, and a message's id at least four."""
    post.register(ME)
    wanted = "write at least 6 characters of a session id"
    assert wanted in post.call("roster", "show", ME[:5]).stderr
    assert wanted in post.call("send", "--from", "a", "--to", ME[:5], "--body", "x").stderr
    assert wanted in post.call("send", "--from", "a", "--to", ME[:5], "--body", "x", "--strict").stderr
    assert wanted not in post.call("roster", "show", "c1134").stderr
    assert post.call("roster", "show", ME[:6]).rc == 0
    for verb in ("show", "thread", "ack"):
        told = post.call(verb, "xyz", *(["--session", ME] if verb == "ack" else [])).stderr
        assert "at least 4 characters" in told
        assert f"such as {EXAMPLE_ID[:8]};" in told
        assert "at least" not in post.call(verb, "0000", *(["--session", ME] if verb == "ack" else [])).stderr
        assert re.search(r"`agent-mailbox history (--session \S+ )?--all` lists ids", told)
    assert EXAMPLE_ID in post.call("send", "--from", "a", "--to", "b", "--body", "x", "--id", "xyz").stderr


def test_a_task_s_id_in_place_of_a_message_s_is_told_the_way(post: Post) -> None:
    """A control message shows the id of its task. Who shows that is told the command for tasks."""
    post.register("ann")
    post.ok("task", "add", "--session", "ann", "--title", "t", "--to", "ann")
    (task,) = post.ok("task", "list")["tasks"]
    for verb in ("show", "thread"):
        told = post.call(verb, task["id"])
        assert (told.rc, f"hint: `agent-mailbox task show {task['id']}` shows a task\n" in told.stderr) == (1, True), (
            told
        )
    assert post.call("task", "show", task["id"]).rc == 0
    assert "`agent-mailbox lease list` lists them" in post.call("show", "lease-1").stderr


@pytest.mark.parametrize("version", "012345678f")
def test_a_message_id_may_be_a_uuid_of_any_version(post: Post, version: str) -> None:
    """Each command takes a UUID of any version as a message's id. The ids that we make are of version 4."""
    post.register("b")
    wanted = f"{EXAMPLE_ID[:14]}{version}{EXAMPLE_ID[15:]}"
    assert post.call("send", "--from", "a", "--to", "b", "--body", "alpha", "--id", wanted).rc == 0
    assert post.call("search", "alpha", "--json").json["messages"][0]["id"] == wanted
    assert post.call("thread", wanted[:15], "--json").json["messages"][0]["id"] == wanted
    assert post.check("b") == [wanted]
    assert post.call("ack", wanted, "--session", "b").rc == 0
    sent = post.call("send", "--from", "a", "--to", "b", "--body", "x", "--json").json["message"]["id"]
    assert sent[14] == "4"


def test_a_second_init_says_that_nothing_changed(post: Post) -> None:
    """The first, elsewhere, says only where the mailbox is."""
    assert post.call("init", post.scratch / "other").stdout == f"mailbox at {post.scratch / 'other'}\n"
    assert post.call("init", post.box).stdout == f"mailbox at {post.box} exists already; nothing changed\n"


def test_after_init_in_git_a_plain_init_makes_no_second_mailbox_behind_it(post: Post) -> None:
    """The one in git comes first: the other was found by nobody."""
    (post.scratch / "repository/.git").mkdir(parents=True)
    here = {"cwd": post.scratch / "repository", "env": {"AGENT_MAILBOX_DIR": None}}
    made = post.call("init", "--git", "--json", **here).json["dir"]
    assert post.call("init", **here).stdout == f"mailbox at {made} exists already; nothing changed\n"


def test_init_says_that_the_working_directory_is_gone(post: Post) -> None:
    """``init`` in a directory that is gone says so, and so does each command that needs one."""
    gone = "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
    gone += "os.execv(sys.executable, [sys.executable, '-m', 'agent_mailbox', *sys.argv[1:]])"
    env = {"AGENT_MAILBOX_DIR": None, "PYTHONPATH": str(ROOT)}
    for words in (("init",), ("init", "--git"), ("up", "--status"), ("install", "--list"), ("setup", "--dry-run")):
        refused(post.python(gone, *words, cwd=post.scratch, env=env), 1, "the working directory is gone")


def test_mail_to_oneself_is_said_to_reach_nobody(post: Post) -> None:
    """It is no unread mail of its sender's, now or later."""
    post.register("a")
    sent = post.call("send", "--from", "a", "--to", "a", "--body", "x").stdout
    assert "no agent sees its own message" in sent
    assert "any that matches" not in sent


def test_the_doctor_says_what_an_unproven_line_means_for_the_person(post: Post) -> None:
    """The doctor says of an unproven line in the person's name whom it is for and how it is shown."""
    post.append(MESSAGES, record(sender="user", recipient="b"))
    told = post.call("doctor").stdout
    assert "nothing proves that this mail to b is the person's, so it is shown as `user (unverified)`" in told


def test_scripts_measure_has_help(post: Post) -> None:
    """It takes no directory of that name."""

    done = subprocess.run([ROOT / "scripts/measure", "--help"], capture_output=True, env=post.environ(), check=True)
    assert b"usage: scripts/measure" in done.stdout


def test_init_ends_where_the_system_makes_no_directory(post: Post) -> None:
    """``init`` gives an error in a system directory that takes no new one, and where a file is."""
    refused(post.call("init", "/proc/agent-mailbox-none"), 5, "make a mailbox at", "its directory")
    (post.scratch / "file").write_text("")
    refused(post.call("init", post.scratch / "file"), 5, "make a mailbox at", "name another path")
    refused(post.call("check", "--dir", post.scratch / "file"), 1, "no directory", "name the mailbox")


def test_a_hint_says_what_the_option_at_hand_needs(post: Post) -> None:
    """A batch is no body, no time is no long one, and who is unmuted is not muted."""
    post.register("a")
    assert "--body" not in refused(post.call("send", "--jsonl", "/nonexistent/x"), 2, "check the path").stderr
    refused(post.call("lease", "take", "x", "--for", "0", "--session", "a"), 2, "not a time to lease", "--for")
    assert "mail from that id is not muted" in post.call("unmute", "nobody", "--session", "a").stderr


def test_the_person_is_told_whose_mail_a_mute_concerns(post: Post) -> None:
    """Hooks show mail to sessions alone."""
    post.env.pop("AGENT_MAILBOX_TEST_CALLER")
    for verb in ("mute", "unmute"):
        told = at_terminal(post, line(verb, "ann"))
        assert (told.rc, "no hook shows mail to you" in told.stdout) == (2, True), told


def test_a_failed_mute_promises_nothing(post: Post) -> None:
    """Neither as done nor as to come: nobody is muted by a command without a session, or for one that is dead."""
    post.ok("roster", "register", "--session-id", "a")
    assert "mail from that id is muted" in post.call("mute", "Nobody", "--session", "a").stderr
    post.ok("roster", "retire", "a")
    for words in (("mute", "Nobody"), ("mute", "Nobody", "--session", "a"), ("unmute", "Nobody", "--session", "a")):
        assert "muted" not in refused(post.call(*words), 2 if len(words) == 2 else 1).stderr


def test_a_missing_file_is_what_the_error_names(post: Post) -> None:
    """A command with a missing file names that file in its error. It does not look at the engine first."""
    gone = post.scratch / "no.tar"
    for place in ((), (post.box,)):
        refused(post.call("restore", gone, *place), 1, f"backup file not found: {gone}", "check the path")
    engine = ("engine", "join", "nats://127.0.0.1:1", "--space", "x", "--credential", gone)
    refused(post.call(*engine), 2, f"'{gone}' does not exist")
    for words in (("purge", "--credential", gone), ("doctor", "--system", gone)):
        refused(post.call("engine", *words), 2, f"'{gone}' does not exist")


def test_a_working_directory_that_was_removed_is_named(post: Post) -> None:
    """A command that starts in a removed directory says that the working directory is gone."""
    gone = post.scratch / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && exec "$2" check --session x'
    words = ["/bin/sh", "-c", script, "sh", gone, ROOT / ".venv/bin/agent-mailbox"]
    environ = {name: value for name, value in post.environ().items() if name != "AGENT_MAILBOX_DIR"}
    done = subprocess.run(words, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 1, done
    assert "error: the working directory is gone\nhint: change to a directory" in done.stderr


def test_without_a_gateway_no_hint_leads_to_a_command_that_needs_one(post: Post) -> None:
    """The extra may not be installed: what is named answers without it."""
    done = refused(post.call("send", "--from", "user", "--to", "swarm:demo", "--body", "x"), 1, "no swarm 'demo'")
    assert "swarm status" not in done.stderr
    assert "`agent-mailbox swarm --help`" in done.stderr
    assert "init" in post.call("swarm", "--help").stdout
    post.register("ann", "--tags", "swarm:demo")
    assert post.send("ann", "swarm:demo/bob", "x"), "who is there is unknown"


def test_mail_that_no_gateway_could_carry_is_refused(post: Post) -> None:
    """A gateway tells which agents are elsewhere in each of this mailbox's swarms; what it does not tell may be."""
    (home := post.scratch / "gateway").mkdir()
    post.append("agent-swarm.jsonl", {"home": str(home)})
    post.register("ann", "--tags", "swarm:demo,swarm:other,swarm:odd")
    assert post.send("ann", "swarm:demo/bob"), "it told nothing yet"
    peers = {"demo": {"mailbox": str(post.box), "agents": ["bob"]}, "other": {"mailbox": "/other", "agents": ["bob"]}}
    (home / "peers.json").write_text(json.dumps({**peers, "odd": {"mailbox": ""}, "x": 1}))
    for to in ("swarm:demo/bob", "swarm:demo"):
        assert post.send("ann", to)
    for to, said, hint in (
        ("swarm:demo/bo", "swarm:demo has no other agent 'bo'", "it reaches swarm:demo/bob; "),
        ("swarm:other/bob", "this mailbox's gateway is not in it", "swarm status"),
        ("swarm:odd", "no swarm 'odd'", "it reaches swarm:demo; "),
    ):
        told = refused(post.call("send", "--from", "ann", "--to", to, "--body", "x", "--json"), 1, said, hint)
        assert told.json["error"]["code"] == "unknown_recipient"
