"""The real OpenCode against a stand-in model: what our plugin makes reach the model."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import pytest

from agent_mailbox.clients import doorbell
from agent_mailbox.known_clients.opencode import OPENCODE
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.control_desk import ControlDesk
from tests.e2e.client import client_program
from tests.e2e.completions import Completions, by_prompt, results, said, shell, use
from tests.e2e.shown import shows, shows_at, takes_long
from tests.helpers import FRAME, PATIENCE, READS, TOOLS, Post, until
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SETTINGS = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "npm_config_offline": "true",  # it would fetch types for plugins: see have_types
    "TERM": "dumb",
    **NOBODY_SAID,
}


@pytest.fixture(scope="session")
def binary() -> Path:
    """The client's program."""
    return client_program(OPENCODE)


def have_types(directory: Path) -> None:
    """Leave in a directory of the client's settings what says that it has the types for plugins. Otherwise it reads all
    of npm for each start and each project, and keeps a lock meanwhile, for which the next client waits a minute."""
    (directory / "node_modules").mkdir(parents=True)
    lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (directory / "package-lock.json").write_text(json.dumps(lock))


class OpenCode:
    """The client in a project of its own, with the installation under test."""

    def __init__(self, post: Post, binary: Path, model: Completions) -> None:
        self.post = post
        self.binary = binary
        self.model = model
        self.project = post.scratch / "inscription"
        self.project.mkdir(exist_ok=True)
        self.config = post.home / ".config/opencode/opencode.json"
        have_types(self.config.parent)
        options = {"baseURL": f"{model.url}/v1", "apiKey": "dummy"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"stand-in": {}}}
        model_name = "standin/stand-in"
        config = {
            "$schema": "https://opencode.ai/config.json",  # the client would write it in
            "model": model_name,
            "small_model": model_name,
            "provider": {"standin": provider},
        }
        self.config.write_text(json.dumps(config))
        post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"

        self.used: list[dict[str, Any]] = []
        """How the tools of the last run ended, by the client's own account."""

    def install(self, project: Path | None = None) -> None:
        """Install for its own project or another, where the client has no types to fetch."""
        self.post.ok("install", "opencode", "--project", project or self.project)
        have_types((project or self.project) / ".opencode")

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


class Served(OpenCode):
    """The client as a server that a person's terminal is attached to, for a ``with`` block. It takes a start, and so a
    second of it, for any number of projects."""

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

    def post_json(self, path: str, value: Any, project: Path | None = None) -> Any:
        """One call of its interface, for its own project or another; nothing as the value: what it tells."""
        data = None if value is None else json.dumps(value).encode()
        where = f"{self.url}{path}?directory={project or self.project}"
        request = urllib.request.Request(where, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def begin(self, prompt: str, project: Path | None = None, **more: Any) -> str:
        """A new session and its first prompt, or a command of its person's; its id."""
        session = str(self.post_json("/session", {}, project)["id"])
        self.say(session, prompt, project, **more)
        return session

    def say(self, session: str, prompt: str, project: Path | None = None, **more: Any) -> None:
        """One prompt to a session, until its turn is over. A slash is a command of its person's."""
        if prompt.startswith("/"):
            self.post_json(f"/session/{session}/command", {"command": prompt[1:], "arguments": ""}, project)
        else:
            value = {"parts": [{"type": "text", "text": prompt}], **more}
            self.post_json(f"/session/{session}/message", value, project)

    def errors(self, session: str, project: Path) -> list[str]:
        """How each tool of a session failed; empty words for one that did not."""
        told = self.post_json(f"/session/{session}/message", None, project)
        return [p["state"].get("error", "") for m in told for p in m["parts"] if p["type"] == "tool"]

    @contextmanager
    def refusing(self, project: Path) -> Iterator[None]:
        """A person who refuses whatever is asked about in a project, for a ``with`` block."""
        over = threading.Event()

        def refuse() -> None:
            while not over.wait(0.05):
                for asked in self.post_json("/permission", None, project):
                    self.post_json(f"/permission/{asked['id']}/reply", {"reply": "reject"}, project)

        person = threading.Thread(target=refuse, daemon=True)
        person.start()
        try:
            yield
        finally:
            over.set()
            person.join(PATIENCE)

    def project_of(self, name: str) -> Path:
        """Another project."""
        (project := self.post.scratch / name).mkdir()
        return project


@pytest.fixture
def opencode(post: Post, binary: Path) -> Iterator[Served]:
    """The client, a mailbox, and the model's stand-in."""
    with Completions() as model:
        yield Served(post, binary, model)


@pytest.mark.opencode
def test_the_first_prompt_has_the_mail(opencode: Served) -> None:
    """Installed, started: the model has the mail beside the first prompt, once, and one read record tells so."""
    opencode.install()
    opencode.post.send("bob", "all", "MAIL_FOR_ALL")
    session = opencode.ask("PROMPT_ONE")
    assert opencode.model.asked("PROMPT_ONE")[0].count("| MAIL_FOR_ALL") == 1
    assert [(r["reader_session_id"], r["event"]) for r in opencode.post.objects(READS)] == [(session, "read")]


@takes_long
@shows(
    OPENCODE, "start", "prompt", "once", "role once", "end", "own session", "between tools", "wake when idle", "stop"
)
@shows(OPENCODE, "guard", "guard files", "permit", "own name", "plain mail unasked", "clean uninstall", "tasks")
@shows_at(OPENCODE, "server", "mail", "wake")
@shows_at(OPENCODE, "resumed", "mail")
def test_a_server_s_sessions_have_their_mail_and_are_bound(opencode: Served) -> None:
    """Installed, started: the model has the mail beside the first prompt. A second holder of the role gets none of the
    first's. What comes later is each its own claim, below. Resumed by another client: once in the conversation, as
    before, and one read record; mail that came meanwhile is there, too."""
    opencode.install()
    post, model = opencode.post, opencode.model
    post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    post.send("bob", "all", "MAIL_FOR_ALL")
    post.env["AGENT_MAILBOX_ROLE"] = "architect"
    with opencode:
        sessions = [opencode.begin(prompt) for prompt in ("PROMPT_ONE", "PROMPT_OTHER")]
        first, other = model.asked("PROMPT_ONE")[0], model.asked("PROMPT_OTHER")[0]
        for claim in CLAIMS:
            model.requests.clear()
            model.script = lambda _: [said("DONE")]
            claim(opencode)
    words = ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "## Mail from other agents")
    assert [first.count(word) for word in words] == [1] * 3
    assert [other.count(word) for word in words[:2]] == [0, 1]
    session = sessions[0]
    mine = [r["event"] for r in post.objects(READS) if r["reader_session_id"] == session]
    post.send("bob", session, "MAIL_MEANWHILE")
    model.script = lambda _: [said("DONE")]
    assert opencode.ask("PROMPT_TWO", "--session", session) == session
    second = model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "MAIL_MEANWHILE")] == [1, 1, 1]
    assert [r["event"] for r in post.objects(READS) if r["reader_session_id"] == session] == [*mine, "read"]
    assert mine == ["claim", "read", "read"]
    assert post.ok("roster", "show", session)["agent"]["state"] == "frozen"


def mail_comes_between_two_tool_calls(opencode: Served) -> None:
    """Behind the output of the first, as is the word on a file that another leases. The agent's commands know who they
    are; a subagent speaks as its parent, and consumes none of its mail."""
    post, model = opencode.post, opencode.model
    post.register("ada", "--name", "Ada")
    post.ok("lease", "leased", "--session", "ada", cwd=opencode.project)

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        if "TASK" in str(body["messages"]) and not results(body):
            post.send("bob", session, "MAIL_FOR_THE_PARENT")
        sends = [shell(f"agent-mailbox send --to user --body FROM_THE_{who}") for who in ("PARENT", "CHILD")]
        task = use("task", description="a task", prompt="TASK", subagent_type="general")
        return by_prompt(PROMPT_TURN=[task, sends[0], write], TASK=[sends[1]])(body)

    write = use("write", filePath="leased", content="x")
    session = str(opencode.post_json("/session", {})["id"])
    model.script = script
    opencode.say(session, "PROMPT_TURN")
    talks = model.asked("PROMPT_TURN")
    assert [talk.count(FRAME) for talk in talks] == [1, 2, 2, 2]
    told = results(model.requests[-1])
    assert "MAIL_FOR_THE_PARENT" in told[0]
    assert "leased by Ada" in told[2]
    children = [talk for talk in model.asked("TASK") if "PROMPT_TURN" not in talk]
    assert len(children) == 2
    assert not any("MAIL_FOR_THE_PARENT" in talk for talk in children)
    sent = {m["content"]: m["sender"] for m in post.ok("history", "--all")["messages"]}
    assert (sent["FROM_THE_PARENT"], sent["FROM_THE_CHILD"]) == (session, session)


def mail_wakes_an_idle_session(opencode: Served) -> None:
    """By the doorbell's line alone, as the agent that its person chose; the mail comes framed, once. Mail that comes as
    a turn ends has one more."""
    post, model = opencode.post, opencode.model

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        if "MAIL_AGAIN" in str(body["messages"]) and "MAIL_AT_THE_END" not in str(body["messages"]):
            post.send("bob", session, "MAIL_AT_THE_END")
        return [said("DONE")]

    model.script = script
    session = opencode.begin("PROMPT_IDLE", agent="plan")
    for word in ("MAIL_FOR_THE_IDLE", "MAIL_AGAIN"):
        until(lambda: post.file(".cache", "doorbell", session).exists())
        post.send("bob", session, word)
        until(lambda word=word: model.asked(word))
    until(lambda: model.asked("MAIL_AT_THE_END"))
    talks = [body for body in model.requests if body.get("tools") and "PROMPT_IDLE" in str(body["messages"])]
    assert len(talks) == 4
    told = [str(message["content"]) for message in talks[-1]["messages"] if message["role"] == "user"]
    assert [text.count(doorbell.LINE) for text in told] == [0, 1, 1, 1]
    for place, word in enumerate(("MAIL_FOR_THE_IDLE", "MAIL_AGAIN", "MAIL_AT_THE_END"), 1):
        assert [text.count(word) for text in told] == [int(number == place) for number in range(4)]
    assert "MUST NOT make any edits" in told[-1]


def its_lead_and_its_rules_bind_it(opencode: Served) -> None:
    """A file is not sent, another's name is refused, and the model told why. A call runs where its lead approves it, as
    the lead changed it, and nowhere else. No tool writes the mailbox. A turn that is broken off asks no lead any more,
    and the next prompt goes on."""
    post, model = opencode.post, opencode.model
    post.register("boss")
    file = shell("agent-mailbox send --to all --body @/etc/hostname")
    inside = use("write", filePath=str(post.file("config.toml")), content="x")
    hidden = "me=--from; agent-mailbox send $me boss --to all --body FORGED"
    write = use("write", filePath="approved", content="x")
    calls = [shell("touch denied"), write, shell(hidden), shell("touch unchanged")]
    model.script = by_prompt(PROMPT_BOUND=[file, inside, *calls], PROMPT_BROKEN=[shell("touch broken-off")])
    desk = ControlDesk(OpenMailbox(str(post.box)))
    answered: list[str] = []

    def lead() -> None:
        for _ in calls:
            (request,) = until(lambda: desk.pending("boss"))
            answered.append(request.payload.tool)
            given = request.payload.arguments
            changed = {"command": "touch changed"} if given == "touch unchanged" else None
            desk.answer("boss", request.id, "denied" not in given, notes="NOT_THAT", updated_input=changed)

    session = opencode.begin("PROMPT_LED")
    post.ok("roster", "update", "--session-id", session, "--lead", "boss")
    post.ok("control", "mode", session, "safe", "--session", "boss")
    thread = threading.Thread(target=lead, daemon=True)
    thread.start()
    opencode.say(session, "PROMPT_BOUND")
    thread.join(PATIENCE)
    told = results(model.requests[-1])
    turn = threading.Thread(target=opencode.say, args=(session, "PROMPT_BROKEN"), daemon=True)
    turn.start()
    until(lambda: desk.pending("boss"))
    opencode.post_json(f"/session/{session}/abort", {})
    turn.join(PATIENCE)
    until(lambda: not desk.pending("boss"))
    opencode.say(session, "PROMPT_AFTER")
    assert answered == ["Bash", "Write", "Bash", "Bash"]
    assert [(opencode.project / name).exists() for name in ("denied", "unchanged", "changed")] == [False, False, True]
    assert "'boss' is another" in told[4]
    assert "sends the file /etc/hostname" in told[0]
    assert "this file is the mailbox's own" in told[1]
    assert "boss denied" in told[2]
    assert "NOT_THAT" in told[2]
    assert model.asked("PROMPT_AFTER")
    assert not any("FORGED" in m["content"] for m in post.ok("history", "--all")["messages"] if m["type"] == "message")
    there = [(opencode.project / name).exists() for name in ("denied", "approved", "broken-off")]
    assert there == [False, True, False]
    assert not post.file("config.toml").exists()


def plain_mail_is_not_asked_about_where_the_person_has_every_command_asked_about(opencode: Served) -> None:
    """A redirection still is, and what is not ours; the person refuses whatever is asked. Their own rules for our
    commands hold."""
    project = opencode.project_of("asks")
    opencode.install(project)
    rules = {"*": "ask", "agent-mailbox history *": "deny"}
    (project / "opencode.json").write_text(json.dumps({"permission": {"bash": rules}}))
    mail = "agent-mailbox send --to user --body FREE_MAIL"
    errors = []
    with opencode.refusing(project):
        for commands in ([mail, f"{mail} > taken"], ["agent-mailbox history --all", f"{mail} && touch taken"]):
            opencode.model.script = by_prompt(PROMPT_ASKS=list(map(shell, commands)))
            errors += opencode.errors(opencode.begin("PROMPT_ASKS", project), project)
    rejected, denied = "rejected permission", "prevents you from using"
    assert [[word in error for word in (rejected, denied)] for error in errors] == [
        [False, False],
        [True, False],
        [False, True],
        [True, False],
    ]
    sent = [m for m in opencode.post.ok("history", "--all")["messages"] if m["content"] == "FREE_MAIL"]
    assert len(sent) == 1
    assert not (project / "taken").exists()


def a_plugin_without_its_hook_breaks_nothing(opencode: Served) -> None:
    """Prompts and tools go on as without it."""
    project = opencode.project_of("broken")
    opencode.install(project)
    plugin = project / ".opencode/plugins/agent-mailbox.js"
    plugin.write_text(plugin.read_text().replace("agent-mailbox-hook", "gone"))
    opencode.model.script = by_prompt(PROMPT_ONE=[shell("touch there")])
    opencode.begin("PROMPT_ONE", project)
    assert (project / "there").exists()


def uninstalled_it_leaves_everything_as_it_was(opencode: Served) -> None:
    """``uninstall opencode`` leaves the person's own plugin and settings as they were, and no mail is shown any more.
    Before that, ``/bye`` is a command."""
    post, model = opencode.post, opencode.model
    ran = post.scratch / "ran"
    own = opencode.config.parent / "plugins/mine.js"
    own.parent.mkdir()
    own.write_text(
        f'import {{ appendFileSync }} from "node:fs"\nexport const Mine = async () => ({{\n'
        f'  "chat.message": async () => appendFileSync({json.dumps(str(ran))}, "x"),\n}})\n'
    )

    def tree() -> dict[str, bytes]:
        found = sorted(opencode.config.parent.rglob("*"))
        mine = [p for p in found if not {"node_modules", ".gitignore"} & {*p.parts}]  # the client makes those
        return {str(p): p.read_bytes() if p.is_file() else b"/" for p in mine}

    before = tree()
    post.ok("install", "opencode", "--user")
    assert before.items() < tree().items()
    for name in ("with", "without"):
        post.send("bob", f"project:{name}", "MAIL_FOR_THE_PROJECT")
    opencode.begin("/bye", opencode.project_of("with"))
    assert "agent-mailbox roster retire" in model.asked("MAIL_FOR_THE_PROJECT")[0]
    agents = len(post.ok("roster", "list")["agents"])
    post.ok("uninstall", "opencode", "--user")
    assert tree() == before
    opencode.begin("PROMPT_WITHOUT", opencode.project_of("without"))
    assert "MAIL_FOR_THE_PROJECT" not in model.asked("PROMPT_WITHOUT")[0]
    assert "Mail from other agents" not in model.asked("PROMPT_WITHOUT")[0]
    assert ran.read_text() == "xx"
    assert len(post.ok("roster", "list")["agents"]) == agents


CLAIMS = (
    mail_comes_between_two_tool_calls,
    mail_wakes_an_idle_session,
    its_lead_and_its_rules_bind_it,
    plain_mail_is_not_asked_about_where_the_person_has_every_command_asked_about,
    a_plugin_without_its_hook_breaks_nothing,
    uninstalled_it_leaves_everything_as_it_was,
)
"""What one server shows beside its sessions' first mail."""
