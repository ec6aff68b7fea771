"""The real Gemini CLI against a stand-in model: what our installation makes reach the model."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.gemini_cli import GEMINI_CLI
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.control_desk import ControlDesk
from tests.e2e.client import client_program
from tests.e2e.gemini import Gemini, conversation, said, shell, use, used
from tests.e2e.rewriting import changed_calls, changer
from tests.e2e.shown import shows, shows_at, takes_long
from tests.e2e.standin import ANSWER, Failed
from tests.helpers import PATIENCE, READS, TOOLS, Post, until
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}


@pytest.fixture(scope="session")
def binary() -> Path:
    """The client's program."""
    return client_program(GEMINI_CLI)


def environ(model: Gemini) -> dict[str, str | None]:
    """The client's variables, beside those of the program's."""
    return {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "TERM": "dumb",
        "GEMINI_CLI_NO_RELAUNCH": "true",
        **NOBODY_SAID,
    }


class Client:
    """The client in a project of its own, with the installation under test."""

    def __init__(self, post: Post, binary: Path, model: Gemini) -> None:
        self.post = post
        self.binary = binary
        self.model = model
        self.project = post.scratch / "inscription"
        self.project.mkdir(exist_ok=True)
        self.settings = post.home / ".gemini/settings.json"
        self.settings.parent.mkdir()
        self.settings.write_text(json.dumps(SETTINGS, indent=2))

    def ask(self, prompt: str, *words: object, env: Mapping[str, str | None] | None = None, fails: bool = False) -> str:
        """One run with one prompt; the session's id, or nothing if the run is to fail. The client starts itself again
        only if asked to: that takes as long once more."""
        settings = {**environ(self.model), **(env or {})}
        done = subprocess.run(
            [self.binary, *map(str, words), "-p", prompt, "-m", "gemini-2.5-pro", "--output-format", "json"],
            env=self.post.environ(settings),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert bool(done.returncode) == fails, done
        return "" if fails else str(json.loads(done.stdout)["session_id"])


@pytest.fixture
def client(post: Post, binary: Path) -> Iterator[Client]:
    """The client, a mailbox, and the model's stand-in."""
    with Gemini() as model:
        yield Client(post, binary, model)


def refuse(_: dict[str, Any]) -> list[dict[str, Any]]:
    """The API takes no request."""
    raise Failed(400)


@takes_long
@shows(GEMINI_CLI, "prompt", "once", "role once", "seen", "tasks", "clean uninstall", "own session")
@shows(GEMINI_CLI, "guard", "guard files", "permit")
@shows_at(GEMINI_CLI, "headless", "mail")
@shows_at(GEMINI_CLI, "resumed", "mail")
def test_the_first_request_holds_the_mail_and_a_resumed_session_is_shown_none_again(client: Client) -> None:
    """Installed, started: the model has the mail beside the first prompt. Resumed: once in the conversation, as before,
    and one read record; mail that came meanwhile is there, too, and the agent's commands are the session's own. The API
    refused a request in between, and the client took its prompt back: the next one has the mail that was beside it.
    Another holder of its role gets none of the first's; its lead and rules bind it, as below. A foreign hook beside
    ours runs, and stays."""
    post, model = client.post, client.model
    post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"
    hooks = client.project / ".gemini/settings.json"
    hooks.parent.mkdir()
    ran = post.scratch / "ran"
    foreign = {"hooks": {"AfterAgent": [{"hooks": [{"type": "command", "command": f"touch '{ran}'"}]}]}}
    hooks.write_text(json.dumps(foreign))
    before = hooks.read_bytes()
    post.ok("install", "gemini", "--project", client.project)
    post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    session = client.ask("PROMPT_ONE", env={"AGENT_MAILBOX_ROLE": "architect"})
    first = model.asked("PROMPT_ONE")[0]
    assert [first.count(word) for word in ("MAIL_FOR_THE_ROLE", "## Mail from other agents")] == [1, 1]
    assert {r["reader_session_id"] for r in post.objects(READS)} == {session}
    assert ran.exists()
    post.send("bob", session, "MAIL_MEANWHILE")
    model.script = refuse
    client.ask("PROMPT_REFUSED", "--resume", session, fails=True)
    left = [shell("agent-mailbox send --to user --body RESUMED")]
    model.script = lambda body: [left.pop() if left and body.get("tools") else said(ANSWER)]
    assert client.ask("PROMPT_TWO", "--resume", session, "--approval-mode", "yolo") == session
    second = model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("PROMPT_ONE", "MAIL_FOR_THE_ROLE", "MAIL_MEANWHILE")] == [1, 1, 1]
    events = [r["event"] for r in post.objects(READS)]
    assert events == ["claim", "read", "seen", "read", "release", "read", "seen"]
    sent = {m["content"]: m["sender"] for m in post.ok("history", "--all")["messages"]}
    assert sent["RESUMED"] == session
    assert its_lead_and_its_rules_bind_it(client, "/bye", AGENT_MAILBOX_ROLE="architect") != session
    other = conversation(model.requests[-1])
    assert "agent-mailbox roster retire" in other
    assert "MAIL_FOR_THE_ROLE" not in other
    post.ok("uninstall", "gemini", "--project", client.project)
    assert hooks.read_bytes() == before


def its_lead_and_its_rules_bind_it(client: Client, prompt: str, **env: str) -> str:
    """A file is not sent, and no tool writes the client's settings; the model is told why. A call runs where its lead
    approves it, as the lead changed it, and nowhere else."""
    post, model = client.post, client.model
    post.register("boss")
    known = {a["session_id"] for a in post.ok("roster", "list")["agents"]}
    settings = client.project / ".gemini/settings.json"
    installed = settings.read_bytes()

    def writes(name: object) -> dict[str, Any]:
        return use("write_file", file_path=str(client.project / str(name)), content="x")

    file = shell("agent-mailbox send --to all --body @/etc/hostname")
    calls = [file, writes(".gemini/settings.json"), writes("secret"), shell("touch denied"), shell("touch approved")]
    desk = ControlDesk(OpenMailbox(str(post.box)))

    def lead() -> None:
        for _ in range(3):  # the client runs its hooks side by side: the write is asked about, too
            (request,) = until(lambda: desk.pending("boss"))
            changed = {"command": "touch changed"} if request.payload.arguments == "touch approved" else None
            desk.answer("boss", request.id, changed is not None, notes="NOT_THAT", updated_input=changed)

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        done = len(used(body))
        if body.get("tools") and not done:
            (session,) = {a["session_id"] for a in post.ok("roster", "list")["agents"]} - known
            post.ok("control", "mode", session, "safe", "--session", "boss")
            post.ok("control", "policy", session, "--deny", "Write(secret)", "--session", "boss")
        return [calls[done]] if body.get("tools") and done < len(calls) else [said(ANSWER)]

    model.script = script
    thread = threading.Thread(target=lead, daemon=True)
    thread.start()
    session = client.ask(prompt, "--approval-mode", "yolo", env={"AGENT_MAILBOX_LEAD": "boss", **env})
    thread.join(PATIENCE)
    told = [str(one) for one in used(model.requests[-1])]
    words = (
        "sends the file /etc/hostname",
        "by which it calls agent-mailbox",
        "denies Write",
        "NOT_THAT",
        "modified by a hook",
    )
    assert [word in text for word, text in zip(words, told, strict=True)] == [True] * 5, told
    assert [n for n in ("secret", "denied", "approved", "changed") if (client.project / n).exists()] == ["changed"]
    assert settings.read_bytes() == installed
    return session


@shows(GEMINI_CLI, "between tools", "stop", "end", "plain mail unasked", "own session", "own name")
def test_mail_sent_during_a_turn_arrives_before_it_ends_and_the_session_knows_its_name(client: Client) -> None:
    """Mail during a turn of Gemini CLI arrives behind a tool's result, or as the turn would end. Behind a tool that
    failed the client would drop it, so it waits for the next one. A command in its own name runs unasked; one in
    another's name is refused."""
    post, model = client.post, client.model
    post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"
    post.ok("install", "gemini", "--user")
    calls = [
        use("read_file", file_path=str(client.project / "missing")),
        shell("agent-mailbox send --to user --body FROM_THE_AGENT"),
        shell("agent-mailbox send --from bob --to user --body FORGED"),
    ]

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        done = len(used(body))
        if not done:
            post.send("bob", "all", "MAIL_DURING_THE_TURN", "--when", "now")
        if body.get("tools") and done < len(calls):
            return [calls[done]]
        if "MAIL_AT_THE_END" not in conversation(body):
            post.send("bob", "all", "MAIL_AT_THE_END")
        return [said(ANSWER)]

    model.script = script
    session = client.ask("PROMPT_ONE", env={"GEMINI_CLI_NO_RELAUNCH": None})
    talks = model.asked("PROMPT_ONE")
    assert talks[0].count("agent-mailbox: you are ") == talks[0].count("agent-mailbox:") == 1
    assert [talk.count("MAIL_DURING_THE_TURN") for talk in talks] == [0, 0, 1, 1, 1]
    assert [talk.count("MAIL_AT_THE_END") for talk in talks] == [0, 0, 0, 0, 1]
    assert "'bob' is another" in talks[-1]
    assert [r["event"] for r in post.objects(READS)] == ["read", "read", "seen", "seen"]
    sent = {m["content"]: (m["sender"], m["proof"]) for m in post.ok("history", "--all")["messages"]}
    assert sent["FROM_THE_AGENT"] == (session, f"session:{session}")
    assert "FORGED" not in sent
    assert [(a["session_id"], a["state"]) for a in post.ok("roster", "list")["agents"]] == [(session, "frozen")]
    post.ok("uninstall", "gemini", "--user")
    assert json.loads(client.settings.read_text()) == SETTINGS


@takes_long
@pytest.mark.gemini
def test_a_hook_that_changes_a_call_behind_the_rules_is_told_by_name(client: Client) -> None:
    """The lead and the person are told once of what ran, of the rule that denies it, and of the hook in the client's
    settings. A call that ran as it was asked is none."""
    post, model = client.post, client.model
    post.ok("install", "gemini", "--project", client.project)
    post.register("boss")
    rewriter = changer(post, "tool_input")
    hook = {"BeforeTool": [{"hooks": [{"type": "command", "command": str(rewriter)}]}]}
    client.settings.write_text(json.dumps({**SETTINGS, "hooks": hook}))
    calls = [shell("echo B"), shell("echo Aran1"), shell("echo Aran2")]

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        done = len(used(body))
        if body.get("tools") and not done:
            (session,) = {a["session_id"] for a in post.ok("roster", "list")["agents"]} - {"boss"}
            post.ok("control", "policy", session, "--deny", "Bash(touch:*)", "--session", "boss")
        return [calls[done]] if body.get("tools") and done < len(calls) else [said(ANSWER)]

    model.script = script
    client.ask("PROMPT_ONE", "--approval-mode", "yolo", env={"AGENT_MAILBOX_LEAD": "boss"})
    assert [(client.project / name).exists() for name in ("ran1", "ran2")] == [True, True], used(model.requests[-1])
    assert changed_calls(post) == [("echo Aran1", "touch ran1", str(rewriter))]
