"""The real Claude Code against a stand-in model: what our installation makes reach the model."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.clients.install import status_setting
from agent_mailbox.clients.texts import SECTION
from agent_mailbox.core.given_names import NAMES
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.shown import shows, shows_at
from tests.e2e.standin import Failed, bash, conversation, in_turn, said
from tests.e2e.terminal import Terminal
from tests.helpers import FRAME, PATIENCE, READS, stamp
from tests.night import nightly

if TYPE_CHECKING:
    from tests.e2e.client import Client
    from tests.e2e.standin import Body


@shows(CLAUDE_CODE, "start", "once", "role once", "seen")
@shows_at(CLAUDE_CODE, "headless", "mail")
def test_the_first_request_holds_the_mail_and_a_resumed_session_is_shown_none_again(client: Client) -> None:
    """Installed, started: the model has the mail beside the first prompt. Resumed: once in the conversation, as before,
    and one read record; mail that came meanwhile is there, too. A second session gets only what is for everyone."""
    client.post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    session = client.ask("PROMPT_ONE", env={"AGENT_MAILBOX_ROLE": "architect"})["session_id"]
    first = client.model.asked("PROMPT_ONE")[0]
    assert "MAIL_FOR_THE_ROLE" in first
    assert "MAIL_FOR_ALL" in first
    assert first.count(FRAME) == 1
    assert {r["reader_session_id"] for r in client.post.objects(READS)} == {session}
    client.post.send("bob", session, "MAIL_MEANWHILE")
    assert client.ask("PROMPT_TWO", "--resume", session)["session_id"] == session
    second = client.model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "MAIL_MEANWHILE")] == [1, 1, 1]
    assert [r["event"] for r in client.post.objects(READS)] == [
        "claim",
        *("read", "read", "seen", "seen", "read", "seen"),
    ]
    client.ask("PROMPT_THREE", env={"AGENT_MAILBOX_ROLE": "architect"})
    third = client.model.asked("PROMPT_THREE")[0]
    assert [third.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL")] == [0, 1]


def test_without_mail_nothing_of_ours_is_in_the_conversation(client: Client) -> None:
    """The hooks say one line as a session starts, and no more without mail; uninstalled, they do not even run."""
    session = client.ask("PROMPT_ONE")["session_id"]
    (talk,) = client.model.asked("PROMPT_ONE")
    assert FRAME not in talk
    (agent,) = client.post.ok("roster", "list")["agents"]
    assert agent["session_id"] == session
    (line,) = re.findall(r"agent-mailbox: .*? writes", talk)
    assert line.startswith(f"agent-mailbox: you are {agent['name']}; ")
    rest = talk.replace(line, "")
    assert rest.count("agent-mailbox") == SECTION.count("agent-mailbox")  # no command of a person's either
    client.post.ok("uninstall", "claude-code", "--project", client.project)
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    client.ask("PROMPT_TWO")
    assert "MAIL_FOR_ALL" not in client.model.asked("PROMPT_TWO")[0]
    assert len(client.post.ok("roster", "list")["agents"]) == 1


@shows(CLAUDE_CODE, "tasks")
def test_the_commands_and_the_section_reach_the_model(client: Client) -> None:
    """``/checkpoint`` and ``/bye`` are the client's to expand; CLAUDE.md's section is in the conversation."""
    for name, words in (("checkpoint", "Do not retire."), ("bye", "agent-mailbox roster retire")):
        client.ask(f"/{name}")
        talk = client.model.asked(f"/{name}")[-1]
        assert words in talk
        assert "## Mail from other agents" in talk


@shows(CLAUDE_CODE, "between tools", "seen")
def test_mail_sent_during_a_tool_call_is_in_the_next_request_of_the_turn(client: Client) -> None:
    """Between the tool's result and the model's next word, also if the call fails; seen is recorded."""
    command = "printf begun; " + client.mailer("MAIL_BETWEEN") + "; printf ended; exit 3"
    client.model.script = in_turn([bash(command)])
    session = client.ask("PROMPT_ONE", "--allowedTools", "Bash")["session_id"]
    first, second = client.model.asked("PROMPT_ONE")
    assert "MAIL_BETWEEN" not in first
    assert second.count("MAIL_BETWEEN") == 1
    assert "begunended" in second
    assert client.events("MAIL_BETWEEN") == [(session, "read"), (session, "seen")]


@shows(CLAUDE_CODE, "stop")
def test_mail_sent_as_the_turn_ends_starts_one_more_turn(client: Client) -> None:
    """Once; told the model once, not doubled."""

    def script(body: Body) -> list[Body]:
        if "PROMPT_ONE" in conversation(body) and "MAIL_AT_THE_END" not in conversation(body) and body.get("tools"):
            client.post.send("bob", "project:inscription", "MAIL_AT_THE_END")
        return [said("DONE")]

    client.model.script = script
    session = client.ask("PROMPT_ONE")["session_id"]
    first, second = client.model.asked("PROMPT_ONE")
    assert (first.count("MAIL_AT_THE_END"), second.count("MAIL_AT_THE_END")) == (0, 1)
    assert client.events("MAIL_AT_THE_END") == [(session, "read"), (session, "seen")]


@nightly
def test_twenty_messages_one_at_the_end_of_every_turn_do_not_loop(client: Client) -> None:
    """The turn is continued five times; what comes then stays unread, for the next prompt."""
    count = 0

    def script(body: Body) -> list[Body]:
        nonlocal count
        if body.get("tools") and count < 20:
            count += 1
            client.post.send("bob", "project:inscription", f"MAIL_{count:02}")
        return [said("DONE")]

    client.model.script = script
    session = client.ask("PROMPT_ONE")["session_id"]
    assert len(client.model.asked("PROMPT_ONE")) == 6
    assert len(client.post.unread(session)) == 1
    client.ask("PROMPT_TWO", "--resume", session)
    assert "MAIL_06" in client.model.asked("PROMPT_TWO")[0]


@shows(CLAUDE_CODE, "seen", "once")
def test_mail_without_an_answer_is_shown_once_when_the_session_comes_back(client: Client) -> None:
    """After kill -9 while the model has yet to answer, and after a request that the API refused. The client sends what
    its file holds again, and no hook shows it beside that."""
    client.post.send("bob", "project:inscription", "MAIL_FIRST")
    session = client.ask("PROMPT_ONE")["session_id"]
    client.post.send("bob", session, "MAIL_UNSEEN")
    asked, done = threading.Event(), threading.Event()

    def script(body: Body) -> list[Body]:
        if "MAIL_UNSEEN" in conversation(body):
            asked.set()
            done.wait(PATIENCE)
        return [said("DONE")]

    client.model.script = script
    with client.start("-p", "PROMPT_TWO", "--resume", session) as process:
        assert asked.wait(PATIENCE)
        process.kill()
        done.set()
    assert client.post.unread(session) == []
    client.model.script = in_turn()
    client.ask("PROMPT_THREE", "--resume", session)
    (talk,) = client.model.asked("PROMPT_THREE")
    assert talk.count("| MAIL_UNSEEN") == 1
    assert client.events("MAIL_UNSEEN")[-1] == (session, "seen")  # killed before its file had it, it is offered again
    assert [e for _, e in client.events("MAIL_FIRST")] == ["read", "seen"]
    client.post.send("bob", session, "MAIL_REFUSED")

    def refuse(_: Body) -> list[Body]:
        raise Failed(400)

    client.model.script = refuse
    with client.start("-p", "PROMPT_FOUR", "--resume", session) as process:
        process.communicate(timeout=PATIENCE)
    client.model.script = in_turn()
    client.ask("PROMPT_FIVE", "--resume", session)
    (talk,) = client.model.asked("PROMPT_FIVE")
    assert [talk.count(f"| {mail}") for mail in ("MAIL_UNSEEN", "MAIL_REFUSED")] == [1, 1]
    assert client.events("MAIL_REFUSED")[-1] == (session, "seen")


@nightly
def test_a_quoted_nonce_is_not_a_receipt(client: Client) -> None:
    """A delivery that the client dropped (its prompt was blocked by a user's hook) is not seen because the model reads
    the log it is recorded in; it is offered again."""
    blocker = client.post.scratch / "block"
    blocker.write_text("#!/bin/sh\ncase $(cat) in *PROMPT_BLOCKED*) echo no >&2; exit 2;; esac\n")
    blocker.chmod(0o755)
    settings = client.project / ".claude/settings.json"
    hook = {"hooks": [{"type": "command", "command": str(blocker)}]}
    settings.write_text(json.dumps({"hooks": {"UserPromptSubmit": [hook]}}))
    session = client.ask("PROMPT_ONE")["session_id"]
    client.post.send("bob", session, "MAIL_DROPPED")
    client.model.script = in_turn([bash(f"cat {client.post.file(READS)}")])
    for prompt in ("PROMPT_BLOCKED", "PROMPT_TWO"):
        client.ask(prompt, "--resume", session, "--allowedTools", "Bash")
    assert "MAIL_DROPPED" in client.model.asked("PROMPT_TWO")[-1]
    assert [e for _, e in client.events("MAIL_DROPPED")] == ["read", "release", "read", "seen"]


@nightly
def test_what_is_owed_comes_back_after_a_compaction(client: Client) -> None:
    """After a compaction the session is told who it is, what it owes and what it asked, and nothing else."""
    owed = client.post.send("bob", "role:architect", "MAIL_OWED", "--ack", "--subject", "SUBJECT_OWED")
    client.post.send("bob", "role:architect", "MAIL_TOLD")
    session = client.ask("PROMPT_ONE", env={"AGENT_MAILBOX_ROLE": "architect"})["session_id"]
    client.post.send("bob", "role:architect", "MAIL_NEWER", "--thread", owed)
    client.post.send(session, "role:builder", "MAIL_ASKED", "--ack", "--subject", "SUBJECT_ASKED")
    client.ask("/compact", "--resume", session)
    client.ask("PROMPT_TWO", "--resume", session)
    talk = client.model.asked("PROMPT_TWO")[0]
    assert "PROMPT_ONE" not in talk
    assert "this session is" in talk
    assert re.search(rf"{owed[:8]} from bob: .{{1,3}}SUBJECT_OWED.{{1,3}} \(superseded\)", talk)
    assert "SUBJECT_ASKED" in talk
    assert "MAIL_TOLD" not in talk


@nightly
@shows_at(CLAUDE_CODE, "forked", "mail")
def test_a_fork_is_a_new_agent(client: Client) -> None:
    """It gets what is for everyone of the project again, none of its origin's direct mail, and a name of its own."""
    client.post.send("bob", "project:inscription", "MAIL_FOR_THE_PROJECT")
    origin = client.ask("PROMPT_ONE", env={"AGENT_MAILBOX_NAME": "Ann"})["session_id"]
    client.post.send("bob", "Ann", "MAIL_FOR_ANN")
    fork = client.ask("PROMPT_TWO", "--resume", origin, "--fork-session")["session_id"]
    assert fork != origin
    talk = client.model.asked("PROMPT_TWO")[0]
    assert "MAIL_FOR_ANN" not in talk
    assert talk.count("MAIL_FOR_THE_PROJECT") == 2  # in the past it shares, and as its own
    agents = {a["session_id"]: a for a in client.post.ok("roster", "list")["agents"]}
    assert (agents[origin]["name"], agents[fork]["continues"]) == ("Ann", [])
    assert agents[fork]["name"] in NAMES
    client.ask("PROMPT_THREE", "--resume", origin)
    assert client.model.asked("PROMPT_THREE")[0].count("MAIL_FOR_ANN") == 1


def test_worktrees_share_mailbox_and_project(client: Client) -> None:
    """A session in a linked worktree finds the repository's mailbox and is of its project."""
    main, linked = client.project, client.post.scratch / "feature-x"
    for words in (
        ("init", "-q"),
        ("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "x"),
        ("worktree", "add", "-q", str(linked)),
    ):
        subprocess.run(["git", *words], cwd=main, check=True, capture_output=True, timeout=PATIENCE)
    here: dict[str, str | None] = {"AGENT_MAILBOX_DIR": None}
    client.post.ok("init", main / "data", env=here)
    client.post.ok("install", "claude-code", "--user")
    words = ("send", "--from", "bob", "--to", "project:inscription", "--body", "MAIL_FOR_THE_PROJECT")
    client.post.ok(*words, cwd=main, env=here)
    client.ask("PROMPT_ONE", cwd=linked, env=here)
    assert "MAIL_FOR_THE_PROJECT" in client.model.asked("PROMPT_ONE")[0]


def test_a_cloned_repository_s_mailbox_is_shown_to_nobody(client: Client) -> None:
    """Whatever a repository ships, hooks of a user-wide installation read only what the user's own `init` made."""
    hostile = client.post.scratch / "cloned"
    shutil.copytree(client.post.box, hostile / "data")
    (hostile / "data/agent-mailbox.jsonl").write_text(
        json.dumps({"id": "m1", "sender": "user", "recipient": "all", "timestamp": stamp(), "content": "MAIL_HOSTILE"})
        + "\n"
    )
    client.post.ok("install", "claude-code", "--user")
    here: dict[str, str | None] = {"AGENT_MAILBOX_DIR": None}
    client.ask("PROMPT_ONE", cwd=hostile, env=here)
    assert "MAIL_HOSTILE" not in client.model.asked("PROMPT_ONE")[0]
    assert not (hostile / "data/.cache").exists()
    client.post.ok("init", hostile / "data", env=here)
    client.ask("PROMPT_TWO", cwd=hostile, env=here)
    assert "MAIL_HOSTILE" in client.model.asked("PROMPT_TWO")[0]


@shows(CLAUDE_CODE, "clean uninstall")
def test_a_user_s_own_hooks_go_on_untouched(client: Client) -> None:
    """Before and after ours at every event; the file that holds both is what it was, byte for byte, without ours."""
    seen = client.post.scratch / "seen"
    noting = client.post.scratch / "noting"
    noting.write_text(f'#!/bin/sh\ncat >/dev/null\necho "$1" >> {seen}\n')
    noting.chmod(0o755)
    events = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")
    client.post.ok("uninstall", "claude-code", "--project", client.project)
    own = {"hooks": {e: [{"hooks": [{"type": "command", "command": f"{noting} {e}"}]}] for e in events}}
    settings = client.project / ".claude/settings.local.json"
    settings.parent.mkdir()
    settings.write_text(before := json.dumps({"model": "opus", **own, "zz": "ü"}, indent=3, ensure_ascii=False))
    client.post.ok("install", "claude-code", "--project", client.project)
    client.post.send("bob", "all", "MAIL_BESIDE")
    client.model.script = in_turn([bash("true")])
    client.ask("PROMPT_ONE", "--allowedTools", "Bash")
    assert seen.read_text().split() == list(events)
    assert "MAIL_BESIDE" in client.model.asked("PROMPT_ONE")[0]
    client.post.ok("uninstall", "claude-code", "--project", client.project)
    assert settings.read_text() == before
    client.ask("PROMPT_TWO")
    assert seen.read_text().split() == [*events, *(e for e in events if e != "PostToolUse")]


@shows_at(CLAUDE_CODE, "cleared", "mail")
def test_a_cleared_session_goes_on_as_itself(client: Client) -> None:
    """A new id and an empty context: name, role and mail are its own, what it owes comes back, the old one is gone.
    Its status line tells what waits for the person."""
    client.post.send("bob", "role:architect", "MAIL_OWED", "--ack", "--subject", "SUBJECT_OWED")
    client.post.register("bob")
    client.post.ok("control", "request", "permission", "--tool", "Bash", "--session", "bob")
    (settings,) = client.project.glob(".claude/settings*.json")
    shim = str(client.post.home / ".local/share/agent-mailbox/agent-mailbox-hook")
    given = status_setting.with_line(json.loads(settings.read_text()), "statusLine", shim, is_wanted=True)
    settings.write_text(json.dumps(given))
    names = {"AGENT_MAILBOX_ROLE": "architect", "AGENT_MAILBOX_NAME": "Ann"}
    with Terminal(client, env=names) as terminal:
        terminal.wait(lambda: terminal.idle() and b"waits" in terminal.screen)
        assert "MAIL_OWED" in terminal.ask("PROMPT_ONE")
        terminal.wait(terminal.idle)
        old = terminal.session()
        new = terminal.clear()
        talk = terminal.ask("PROMPT_TWO")
        terminal.wait(terminal.idle)
        client.post.send("bob", "Ann", "MAIL_FOR_ANN")
        terminal.wait(lambda: client.model.asked("MAIL_FOR_ANN"))
        terminal.leave()
    assert "PROMPT_ONE" not in talk
    assert "MAIL_OWED" not in talk
    assert talk.count("agent-mailbox: you are Ann (architect); ") == 1
    assert "SUBJECT_OWED" in talk
    agents = {a["session_id"]: a for a in client.post.ok("roster", "list")["agents"]}
    assert (agents[new]["name"], agents[new]["continues"]) == ("Ann", [old])
    assert agents[old]["state"] == "dead"


def test_a_prompt_taken_back_does_not_take_its_mail_along(client: Client) -> None:
    """Escape before a word of the answer: the client never sends that prompt again, nor what its hook told. The mail
    is in the next turn, and only then seen."""
    held = threading.Event()

    def script(body: Body) -> list[Body]:
        if body.get("tools") and not held.is_set():
            held.wait(PATIENCE)
        return [said("ANSWER")]

    with Terminal(client) as terminal:
        session = terminal.started()  # what its start told stays in the conversation
        (client.post.box / "config.toml").write_text("[hook]\ndoorbell = false\n")
        client.post.send("bob", "project:inscription", "MAIL_TAKEN_BACK")
        client.model.script = script
        assert "MAIL_TAKEN_BACK" in terminal.ask("PROMPT_ONE")
        terminal.mark()
        terminal.type("\x1b")
        terminal.wait(terminal.idle)
        held.set()
        assert client.events("MAIL_TAKEN_BACK") == [(session, "read")]
        terminal.type("AND_MORE")
        terminal.wait(lambda: b"AND_MORE" in terminal.screen)
        terminal.mark()
        terminal.type("\r")
        terminal.wait(lambda: "MAIL_TAKEN_BACK" in (client.model.asked("AND_MORE") or [""])[-1])
        talk = client.model.asked("AND_MORE")[-1]
        assert talk.count("MAIL_TAKEN_BACK") == 1
        terminal.wait(terminal.idle)  # the model spoke, and the client wrote that down
        terminal.leave()
    # A busy client may take the key for an interruption: then the prompt stays in the conversation, with its mail.
    told = ["read", "seen"] if "[Request interrupted by user" in talk else ["read", "release", "read", "seen"]
    assert [event for _, event in client.events("MAIL_TAKEN_BACK")] == told


PIPES = {
    "": ["read", "seen"],
    "| head -99": ["read", "seen"],
    "| tail -3": ["read", "release", "read", "seen"],
    "| head -3": ["read", "seen"],
    "> copy.txt; cat copy.txt": ["read", "seen"],
    "> copy.txt": ["read", "release", "read", "seen"],
}
"""What a check's output goes through, and what becomes of the mail."""


@nightly
@pytest.mark.usefixtures("on_path")
def test_a_check_that_the_model_runs_is_seen_as_far_as_it_got_it(client: Client) -> None:
    """A message that a pipe kept from the model comes with a later hook. A message that the model got counts as
    seen."""
    mailers = [client.post.scratch / f"mailer-{number}" for number in range(len(PIPES))]
    for number, mailer in enumerate(mailers):
        Path(client.mailer(f"MAIL_CHECKED_{number}")).rename(mailer)
    calls = [[bash(f"{mailer}; agent-mailbox check {pipe}")] for mailer, pipe in zip(mailers, PIPES, strict=True)]
    client.model.script = in_turn(*calls)
    client.ask("PROMPT_ONE", "--allowedTools", "Bash")
    talk = client.model.asked("PROMPT_ONE")[-1]
    for number, stages in enumerate(PIPES.values()):
        assert f"MAIL_CHECKED_{number}" in talk.partition("PROMPT_ONE")[2]
        assert [event for _, event in client.events(f"MAIL_CHECKED_{number}")] == stages
