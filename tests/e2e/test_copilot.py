"""The real GitHub Copilot CLI against a stand-in model: what our installation makes reach the model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.copilot_cli import COPILOT_CLI
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.control_desk import ControlDesk
from tests.e2e.client import client_program
from tests.e2e.completions import Completions, by_prompt, results, use
from tests.e2e.rewriting import changed_calls, changer
from tests.e2e.shown import shows, shows_at, takes_long
from tests.e2e.terminal import Terminal
from tests.helpers import FRAME, PATIENCE, READS, TOOLS, Post, until
from tests.night import nightly
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def shell(command: str) -> dict[str, Any]:
    """A delta of an answer: the client is to run this in its shell."""
    return use("bash", command=command, description="as the test wants it")


@pytest.fixture(scope="session")
def binary() -> Path:
    """The client's program."""
    return client_program(COPILOT_CLI)


class Copilot:
    """The client in a project of its own, with the installation under test."""

    def __init__(self, post: Post, binary: Path, model: Completions) -> None:
        self.post = post
        self.binary = binary
        self.model = model
        self.project = post.scratch / "inscription"
        (self.project / ".git").mkdir(parents=True)
        self.home = post.home / ".copilot"
        self.home.mkdir()
        (self.home / "config.json").write_text(json.dumps({"trustedFolders": [str(self.project)]}))
        post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"

    def install(self) -> None:
        """Install for the project."""
        self.post.ok("install", "copilot", "--project", self.project)

    def start(
        self, *words: object, env: Mapping[str, str | None] | None = None, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """The client as a process."""
        settings: dict[str, str | None] = {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": f"{self.model.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "stand-in",
            "TERM": "dumb",
            # its program unpacks itself into the user's cache, once
            "XDG_CACHE_HOME": str(self.binary.parents[2] / "unpacked"),
            **NOBODY_SAID,
            **(env or {}),
        }
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words = ("--allow-all-tools", "--allow-all-paths", *words)
        return subprocess.Popen(
            [self.binary, *map(str, words)], env=self.post.environ(settings), cwd=self.project, **{**streams, **popen}
        )

    def ask(self, prompt: str, session: str = "", *, env: Mapping[str, str | None] | None = None) -> str:
        """One run with one prompt, of a new session or this one; the session's id."""
        resumed = ["--resume", session] if session else ["--session-id", session := str(uuid.uuid4())]
        with self.start("-p", prompt, *resumed, env=env) as process:
            try:
                out, err = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == 0, (out, err)
        return session


class CopilotTerminal(Terminal):
    """Copilot CLI at a terminal."""

    words = ()
    answers = ((b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62;c"))

    def submit(self, prompt: str) -> None:
        """Type a prompt and send it, until the model is asked: a return key right behind words may be part of them."""
        asked = len(self.client.model.requests)
        self.type(prompt)
        self.press("\r", lambda _: len(self.client.model.requests) > asked, again_after=1.0)


@pytest.fixture
def copilot(post: Post, binary: Path) -> Iterator[Copilot]:
    """The client, a mailbox, and the model's stand-in."""
    with Completions() as model:
        yield Copilot(post, binary, model)


@takes_long
@shows(COPILOT_CLI, "start", "prompt", "end", "once", "role once", "seen")
@shows_at(COPILOT_CLI, "headless", "mail")
@shows_at(COPILOT_CLI, "resumed", "mail")
def test_the_first_request_holds_the_mail_and_a_resumed_session_is_shown_none_again(copilot: Copilot) -> None:
    """Installed, started: the model has the mail beside the first prompt. Resumed: once in the conversation, as before,
    and one read record, which its file proves to be seen; mail that came meanwhile is there, too. A second holder of
    the role gets none of the first's."""
    copilot.install()
    post, model = copilot.post, copilot.model
    post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    post.send("bob", "all", "MAIL_FOR_ALL")
    session = copilot.ask("PROMPT_ONE", env={"AGENT_MAILBOX_ROLE": "architect"})
    first = model.asked("PROMPT_ONE")[0]
    words = ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "## Mail from other agents")
    assert [first.count(word) for word in words] == [1] * 3
    assert post.ok("roster", "show", session)["agent"]["state"] == "frozen"
    post.send("bob", session, "MAIL_MEANWHILE")
    copilot.ask("PROMPT_TWO", session)
    second = model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "MAIL_MEANWHILE")] == [1, 1, 1]
    events = [r["event"] for r in post.objects(READS)]
    assert events == ["claim", "read", "read", "seen", "seen", "read", "seen"]
    copilot.ask("PROMPT_THREE", env={"AGENT_MAILBOX_ROLE": "architect"})
    third = model.asked("PROMPT_THREE")[0]
    assert [third.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL")] == [0, 1]


@shows(COPILOT_CLI, "between tools", "own session")
def test_mail_sent_during_a_turn_comes_between_two_tool_calls(copilot: Copilot) -> None:
    """Behind the result of the first. The agent's commands know who they are; a subagent speaks as its parent, and
    consumes none of its mail."""
    copilot.install()
    post, model = copilot.post, copilot.model

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        if "TASK" in str(body["messages"]) and not results(body):
            post.send("bob", "all", "MAIL_FOR_THE_PARENT", "--when", "now")
        sends = [shell(f"agent-mailbox send --to user --body FROM_THE_{who}") for who in ("PARENT", "CHILD")]
        task = use("task", description="a", prompt="TASK", agent_type="general-purpose", name="child")
        return by_prompt(PROMPT_ONE=[task, sends[0]], TASK=[sends[1]])(body)

    model.script = script
    session = copilot.ask("PROMPT_ONE")
    assert [talk.count(FRAME) for talk in model.asked("PROMPT_ONE")] == [0, 1, 1]
    assert "MAIL_FOR_THE_PARENT" in results(model.requests[-1])[0]
    children = [talk for talk in model.asked("TASK") if "PROMPT_ONE" not in talk]
    assert len(children) == 2
    assert not any("MAIL_FOR_THE_PARENT" in talk for talk in children)
    sent = {m["content"]: m["sender"] for m in post.ok("history", "--all")["messages"]}
    assert (sent["FROM_THE_PARENT"], sent["FROM_THE_CHILD"]) == (session, session)
    assert [r["event"] for r in post.objects(READS)] == ["read", "seen"]


@takes_long
@pytest.mark.copilot
def test_a_prompt_taken_back_or_killed_leaves_its_mail_to_the_next_one(copilot: Copilot) -> None:
    """Escape, twice, before the answer: the client forgets the prompt, and our next hook sees that. So does the one
    after a kill, before which it had written little or nothing. In the end each message is there once."""
    copilot.install()
    post, model, held = copilot.post, copilot.model, threading.Event()

    def hold(body: dict[str, Any]) -> list[dict[str, Any]]:
        if body.get("tools"):
            held.wait(PATIENCE)
        return by_prompt()(body)

    model.script = hold
    post.send("bob", "all", "MAIL_TAKEN_BACK")
    with CopilotTerminal(copilot) as terminal:
        assert "MAIL_TAKEN_BACK" in terminal.ask("PROMPT_ONE")
        (path,) = terminal.wait(lambda: [*copilot.home.glob("session-state/*/events.jsonl")])
        terminal.wait(lambda: "PROMPT_ONE" in path.read_text())
        terminal.press("\x1b", lambda _: "PROMPT_ONE" not in path.read_text(), again_after=0.4)
        held.set()
        terminal.type("\x15")  # it clears the line; a "P" right behind an escape would begin a sequence of control
        assert terminal.ask("PROMPT_TWO").count("MAIL_TAKEN_BACK") == 1
    held.clear()
    post.send("bob", "all", "MAIL_KILLED")
    session = str(uuid.uuid4())
    with copilot.start("-p", "PROMPT_THREE", "--session-id", session, start_new_session=True) as process:
        until(lambda: model.asked("PROMPT_THREE"))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    held.set()
    known = (copilot.home / f"session-state/{session}/events.jsonl").exists()
    with copilot.start("-p", "PROMPT_FOUR", "--resume" if known else "--session-id", session) as process:
        assert process.wait(PATIENCE) == 0
    (talk,) = model.asked("PROMPT_FOUR")
    assert talk.count("MAIL_KILLED") == 1
    assert [r["event"] for r in post.objects(READS) if r["reader_session_id"] == session][-1] == "seen"


@nightly
@shows(COPILOT_CLI, "stop")
def test_mail_at_a_turn_s_end_is_the_next_prompt(copilot: Copilot) -> None:
    """Framed, once; five times in a row at most, though each of them runs the prompt's hook."""
    copilot.install()
    post, model = copilot.post, copilot.model

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        post.send("bob", "all", f"MAIL_{len(model.requests)}_")
        return by_prompt()(body)

    model.script = script
    copilot.ask("PROMPT_ONE")
    talks = model.asked("PROMPT_ONE")
    assert len(talks) == 6
    assert [talks[-1].count(f"| MAIL_{number}_") for number in range(1, 7)] == [1, 1, 1, 1, 1, 0]


@shows(COPILOT_CLI, "guard", "guard files", "permit")
def test_its_lead_and_its_rules_bind_it_and_its_subagents(copilot: Copilot) -> None:
    """A file is not sent, and the model told why. A call runs where its lead approves it, as the lead changed it, and
    nowhere else, a subagent's too. No tool writes the mailbox, and a file that another leases is told."""
    copilot.install()
    post, model = copilot.post, copilot.model
    post.register("boss")
    post.register("ada", "--name", "Ada")
    post.ok("lease", "leased", "--session", "ada", cwd=copilot.project)
    session = copilot.ask("PROMPT_ONE")
    post.ok("roster", "update", "--session-id", session, "--lead", "boss")
    post.ok("control", "mode", session, "safe", "--session", "boss")
    post.ok("control", "policy", session, "--allow", "Edit(leased)", "--deny", "Edit(secret)", "--session", "boss")
    file = shell("agent-mailbox send --to all --body @/etc/hostname")

    def writes(name: object) -> dict[str, Any]:
        return use("create", path=str(copilot.project / str(name)), file_text="x")

    task = use("task", description="a", prompt="TASK", agent_type="general-purpose", name="child")
    calls = [file, writes(post.file("config.toml")), writes("secret"), writes("leased"), shell("touch denied")]
    model.script = by_prompt(PROMPT_TWO=[*calls, shell("touch approved"), task], TASK=[shell("touch by-the-child")])
    desk = ControlDesk(OpenMailbox(str(post.box)))
    answered: list[str] = []

    def lead() -> None:
        for _ in range(4):
            (request,) = until(lambda: desk.pending("boss"))
            answered.append(request.payload.arguments)
            says_yes = "approved" in answered[-1] or "TASK" in answered[-1]
            changed = {"command": "touch changed"} if answered[-1] == "touch approved" else None
            desk.answer("boss", request.id, says_yes, notes="NOT_THAT", updated_input=changed)

    thread = threading.Thread(target=lead, daemon=True)
    thread.start()
    copilot.ask("PROMPT_TWO", session)
    thread.join(PATIENCE)
    told = results(model.requests[-1])
    said = ("sends the file /etc/hostname", "the mailbox's own", "denies Edit", "Created file", "NOT_THAT")
    assert [word in text for word, text in zip(said, told, strict=False)] == [True] * 5
    assert model.asked("PROMPT_TWO")[-1].count("leased by Ada") == 1
    names = ("secret", "leased", "denied", "approved", "changed", "by-the-child")
    assert [name for name in names if (copilot.project / name).exists()] == ["leased", "changed"]
    assert answered[0] == "touch denied"
    assert answered[-1] == "touch by-the-child"
    assert not post.file("config.toml").exists()
    assert not any("FORGED" in m["content"] for m in post.ok("history", "--all")["messages"] if m["type"] == "message")


@takes_long
@pytest.mark.copilot
@pytest.mark.parametrize("file", ["aaa.json", "tidy.json"])
def test_a_hook_that_changes_a_call_is_told_by_name_or_comes_before_the_rules(copilot: Copilot, file: str) -> None:
    """The client runs one hook after the other, the last file's first. If the other tool's is behind ours, the lead and
    the person are told once of what ran, of the rule that denies it, and of the hook. If it is ahead, the rules judge
    what it made. A call that ran as it was asked is nothing."""
    copilot.install()
    post, model = copilot.post, copilot.model
    post.register("boss")
    session = copilot.ask("PROMPT_ONE")
    post.ok("roster", "update", "--session-id", session, "--lead", "boss")
    post.ok("control", "policy", session, "--deny", "Bash(touch:*)", "--session", "boss")
    rewriter = changer(post, "updatedInput")
    hook = {"PreToolUse": [{"type": "command", "command": str(rewriter)}]}
    (copilot.project / ".github/hooks" / file).write_text(json.dumps({"version": 1, "hooks": hook}))
    model.script = by_prompt(PROMPT_TWO=[shell("echo B"), shell("echo Aran1"), shell("echo Aran2")])
    copilot.ask("PROMPT_TWO", session)
    told, is_behind = results(model.requests[-1]), file == "aaa.json"
    assert ["denies Bash(touch:*)" in text for text in told] == [False, not is_behind, not is_behind]
    assert [(copilot.project / name).exists() for name in ("ran1", "ran2")] == [is_behind] * 2, told
    assert changed_calls(post) == [("echo Aran1", "touch ran1", str(rewriter))] * is_behind


@takes_long
@shows(COPILOT_CLI, "tasks")
@shows_at(COPILOT_CLI, "terminal", "mail")
def test_at_a_terminal_the_tasks_are_commands(copilot: Copilot) -> None:
    """Copilot CLI at a terminal has our tasks as commands, and shows mail with the first prompt."""
    copilot.install()
    copilot.post.send("bob", "all", "MAIL_FOR_ALL")
    with CopilotTerminal(copilot) as terminal:
        assert "| MAIL_FOR_ALL" in terminal.ask("PROMPT_ONE")
        terminal.submit("/bye LEAVING")
        (talk,) = terminal.wait(lambda: copilot.model.asked("ARGUMENTS: LEAVING"))
        assert "agent-mailbox roster retire" in talk


WAKER = """
import { watch, writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({}), box = process.env.AGENT_MAILBOX_DIR;
watch(`${box}/agent-mailbox.jsonl`, () => session.send({ prompt: "PROMPT_OF_THE_EXTENSION" }));
writeFileSync(`${process.env.HOME}/joined`, "");
"""
"""A person's own extension, which begins a turn when the mailbox's log changes. We install none."""


@takes_long
@pytest.mark.copilot
def test_a_person_s_own_extension_wakes_an_idle_session(copilot: Copilot) -> None:
    """It runs with ``--experimental`` alone. The prompt's hook then shows the mail, once."""
    copilot.install()
    place = copilot.project / ".github/extensions/waker/extension.mjs"
    place.parent.mkdir(parents=True)
    place.write_text(WAKER)
    with CopilotTerminal(copilot, "--experimental") as terminal:
        terminal.ask("PROMPT_ONE")
        terminal.wait((copilot.post.home / "joined").exists)
        copilot.post.send("bob", "all", "MAIL_WHILE_IDLE")
        talk = str(terminal.wait(lambda: copilot.model.asked("PROMPT_OF_THE_EXTENSION"))[0])
        assert talk.count("| MAIL_WHILE_IDLE") == 1


@shows(COPILOT_CLI, "clean uninstall")
def test_uninstalled_it_leaves_everything_as_it_was(copilot: Copilot) -> None:
    """``uninstall copilot`` leaves the person's own hooks and files as they were, and no mail is shown any more."""
    post, model = copilot.post, copilot.model
    ran = post.scratch / "ran"
    own = copilot.home / "hooks/mine.json"
    own.parent.mkdir()
    hook = {"type": "command", "bash": f"echo x >>'{ran}'"}
    own.write_text(json.dumps({"version": 1, "hooks": {"sessionStart": [hook]}}))

    def tree() -> dict[str, bytes]:
        places = [copilot.home / name for name in ("hooks", "skills", "instructions")]
        return {str(p): p.read_bytes() for place in places for p in place.rglob("*") if p.is_file()}

    before = tree()
    post.ok("install", "copilot", "--user")
    assert before.items() < tree().items()
    assert post.ok("install", "copilot", "--user")["changed"] == []
    post.send("bob", "all", "MAIL_FOR_ALL")
    copilot.ask("PROMPT_ONE")
    assert "MAIL_FOR_ALL" in model.asked("PROMPT_ONE")[0]
    post.ok("uninstall", "copilot", "--user")
    assert tree() == before
    assert not (copilot.home / "skills").exists()
    copilot.ask("PROMPT_TWO")
    assert "MAIL_FOR_ALL" not in model.asked("PROMPT_TWO")[0]
    assert "Mail from other agents" not in model.asked("PROMPT_TWO")[0]
    assert ran.read_text() == "x\nx\n"
