"""The real OpenCode against a stand-in model: what our plugin makes reach the model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from typing import TYPE_CHECKING, Any, Self

import pytest

from agent_mailbox.control.requests import Control
from tests.e2e.completions import Completions, by_prompt, results, shell, use
from tests.e2e.conftest import npm_program
from tests.helpers import FRAME, PATIENCE, READS, Post, until
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VERSION = "1.18.33"
SETTINGS = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "npm_config_offline": "true",  # it fetches types for plugins, and goes on without
    "TERM": "dumb",
    **NOBODY_SAID,
}


@pytest.fixture(scope="session")
def binary() -> Path:
    """The client's program."""
    return npm_program("opencode-ai", VERSION, "opencode")


class OpenCode:
    """The client in a project of its own, with the installation under test."""

    def __init__(self, post: Post, binary: Path, model: Completions) -> None:
        self.post = post
        self.binary = binary
        self.model = model
        self.project = post.scratch / "inscription"
        self.project.mkdir()
        self.config = post.home / ".config/opencode/opencode.json"
        self.config.parent.mkdir(parents=True)
        options = {"baseURL": f"{model.url}/v1", "apiKey": "dummy"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"stand-in": {}}}
        config = {"model": "standin/stand-in", "small_model": "standin/stand-in", "provider": {"standin": provider}}
        self.config.write_text(json.dumps(config))
        post.env["PATH"] = f"{os.path.dirname(sys.executable)}:{post.env['PATH']}"

        self.used: list[dict[str, Any]] = []
        """How the tools of the last run ended, by the client's own account."""

    def install(self) -> None:
        """Install for the project."""
        self.post.ok("install", "opencode", "--project", self.project)

    def environ(self, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """The client's whole environment."""
        return self.post.environ({**SETTINGS, **(env or {})})

    def ask(self, prompt: str, *words: object, env: Mapping[str, str | None] | None = None) -> str:
        """One run with one prompt; the session's id."""
        done = subprocess.run(
            [self.binary, "run", "--format", "json", *map(str, words), prompt],
            env=self.environ(env),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done
        said = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line for line in said if line["type"] == "error"] == []
        self.used = [line["part"]["state"] for line in said if line["type"] == "tool_use"]
        return str(said[0]["sessionID"])


@pytest.fixture
def opencode(post: Post, binary: Path) -> Iterator[OpenCode]:
    """The client, a mailbox, and the model's stand-in."""
    with Completions() as model:
        yield OpenCode(post, binary, model)


def test_the_first_request_holds_the_mail_and_a_resumed_session_is_shown_none_again(opencode: OpenCode) -> None:
    """Installed, started: the model has the mail beside the first prompt. Resumed: once in the conversation, as before,
    and one read record; mail that came meanwhile is there, too. A second holder of the role gets none of the first's.
    """
    opencode.install()
    post, model = opencode.post, opencode.model
    post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    post.send("bob", "all", "MAIL_FOR_ALL")
    role = {"AGENT_MAILBOX_ROLE": "architect"}
    session = opencode.ask("PROMPT_ONE", env=role)
    first = model.asked("PROMPT_ONE")[0]
    assert [first.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "## Mail from other agents")] == [1] * 3
    assert {r["reader_session_id"] for r in post.objects(READS)} == {session}
    assert [(a["session_id"], a["state"]) for a in post.ok("roster", "list")["agents"]] == [(session, "frozen")]
    post.send("bob", session, "MAIL_MEANWHILE")
    assert opencode.ask("PROMPT_TWO", "--session", session) == session
    second = model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "MAIL_MEANWHILE")] == [1, 1, 1]
    assert [r["event"] for r in post.objects(READS)] == ["claim", "read", "read", "read"]
    opencode.ask("PROMPT_THREE", env=role)
    third = model.asked("PROMPT_THREE")[0]
    assert [third.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL")] == [0, 1]


def test_mail_sent_during_a_turn_comes_between_two_tool_calls(opencode: OpenCode) -> None:
    """Behind the output of the first. The agent's commands know who they are; a subagent speaks as its parent, and
    consumes none of its mail."""
    opencode.install()
    post, model = opencode.post, opencode.model

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        if "TASK" in str(body["messages"]) and not results(body):
            post.send("bob", "all", "MAIL_FOR_THE_PARENT")
        sends = [shell(f"agent-mailbox send --to user --body FROM_THE_{who}") for who in ("PARENT", "CHILD")]
        task = use("task", description="a task", prompt="TASK", subagent_type="general")
        return by_prompt(PROMPT_ONE=[task, sends[0]], TASK=[sends[1]])(body)

    model.script = script
    session = opencode.ask("PROMPT_ONE")
    talks = model.asked("PROMPT_ONE")
    assert [talk.count(FRAME) for talk in talks] == [0, 1, 1]
    assert "MAIL_FOR_THE_PARENT" in results(model.requests[-1])[0]
    children = [talk for talk in model.asked("TASK") if "PROMPT_ONE" not in talk]
    assert len(children) == 2
    assert not any("MAIL_FOR_THE_PARENT" in talk for talk in children)
    sent = {m["content"]: m["sender"] for m in post.ok("history", "--all")["messages"]}
    assert (sent["FROM_THE_PARENT"], sent["FROM_THE_CHILD"]) == (session, session)
    assert len(post.objects(READS)) == 1


def test_its_lead_and_its_rules_bind_it(opencode: OpenCode) -> None:
    """Another's name is refused, and the model told why; a call runs where its lead approves it, and nowhere else."""
    opencode.install()
    post, model = opencode.post, opencode.model
    post.register("boss")
    session = opencode.ask("PROMPT_ONE")
    post.ok("roster", "update", "--session-id", session, "--lead", "boss")
    post.ok("control", "mode", session, "safe", "--session", "boss")
    forged = shell("agent-mailbox send --from boss --to all --body FORGED")
    calls = [shell("touch denied"), use("write", filePath="approved", content="x")]
    inside = use("write", filePath=str(post.file("config.toml")), content="x")
    model.script = by_prompt(PROMPT_TWO=[forged, inside, *calls])
    desk = Control(str(post.box))
    answered: list[str] = []

    def lead() -> None:
        for _ in calls:
            (request,) = until(lambda: desk.pending("boss"))
            answered.append(request.payload.tool)
            desk.answer("boss", request.id, request.payload.tool == "Write", notes="NOT_THAT")

    thread = threading.Thread(target=lead, daemon=True)
    thread.start()
    opencode.ask("PROMPT_TWO", "--session", session)
    thread.join(PATIENCE)
    assert answered == ["Bash", "Write"]
    told = results(model.requests[-1])
    assert "names another" in told[0] or "agent-mailbox: " in told[0]
    assert "this file is the mailbox's own" in told[1]
    assert "boss denied" in told[2]
    assert "NOT_THAT" in told[2]
    assert not any("FORGED" in m["content"] for m in post.ok("history", "--all")["messages"] if m["type"] == "message")
    assert [(opencode.project / name).exists() for name in ("denied", "approved")] == [False, True]
    assert not post.file("config.toml").exists()


class Served(OpenCode):
    """The client as a server that a person's terminal is attached to, for a ``with`` block."""

    def __enter__(self) -> Self:
        words = [self.binary, "serve", "--port", "0"]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, env=self.environ(), cwd=self.project, **streams)
        assert self.process.stdout is not None
        line = next(line for line in self.process.stdout if b"http://" in line)
        self.url = line.decode().split()[-1]
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def post_json(self, path: str, value: Any) -> Any:
        """One call of its interface."""
        request = urllib.request.Request(
            f"{self.url}{path}", json.dumps(value).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def say(self, session: str, prompt: str, **more: Any) -> None:
        """One prompt to a session, until its turn is over."""
        self.post_json(f"/session/{session}/message", {"parts": [{"type": "text", "text": prompt}], **more})


def test_mail_wakes_an_idle_session(post: Post, binary: Path) -> None:
    """By the doorbell's line alone, as the agent that its person chose; the mail comes framed, once."""
    with Completions() as model:
        served = Served(post, binary, model)
        served.install()
        with served:
            session = served.post_json("/session", {})["id"]
            served.say(session, "PROMPT_ONE", agent="plan")
            until(lambda: post.file(".cache", "doorbell", session).exists())
            post.send("bob", session, "MAIL_FOR_THE_IDLE")
            until(lambda: model.asked("MAIL_FOR_THE_IDLE"))
            post.send("bob", session, "MAIL_AGAIN")
            until(lambda: model.asked("MAIL_AGAIN"))
            last = model.requests[-1]
        told = [str(message["content"]) for message in last["messages"] if message["role"] == "user"]
        assert "MUST NOT make any edits" in told[-1]
        assert [text.count("agent-mailbox: new mail") for text in told] == [0, 1, 1]
        assert [text.count("MAIL_FOR_THE_IDLE") for text in told] == [0, 1, 0]
        assert [text.count("MAIL_AGAIN") for text in told] == [0, 0, 1]
        assert len(post.objects(READS)) == 2


def test_plain_mail_is_not_asked_about_where_the_person_has_every_command_asked_about(opencode: OpenCode) -> None:
    """A redirection still is, and what is not ours; a run refuses whatever it would ask about. The person's own rules
    for our commands stand."""
    opencode.install()
    config = json.loads(opencode.config.read_text())
    rules = {"*": "ask", "agent-mailbox history *": "deny"}
    opencode.config.write_text(json.dumps({**config, "permission": {"bash": rules}}))
    mail = "agent-mailbox send --to user --body FREE_MAIL"
    commands = [mail, f"{mail} > taken", "touch taken", f"{mail} && touch taken", "agent-mailbox history --all"]
    for number, command in enumerate(commands):
        opencode.model.script = by_prompt(PROMPT_ONE=[shell(command)])
        opencode.ask("PROMPT_ONE")
        (used,) = opencode.used
        assert ("rejected permission" in used.get("error", "")) == (0 < number < 4), (command, used)
    assert "prevents you from using" in used["error"]
    sent = [m for m in opencode.post.ok("history", "--all")["messages"] if m["content"] == "FREE_MAIL"]
    assert len(sent) == 1
    assert not (opencode.project / "taken").exists()
