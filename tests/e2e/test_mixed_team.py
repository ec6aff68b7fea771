"""A team of four clients in one project and one mailbox, each for real: every message reaches each of its readers once.

The proof is the last request of each session, which holds its whole conversation.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.gemini_cli import GEMINI_CLI
from agent_mailbox.known_clients.opencode import OPENCODE
from tests.e2e import completions, gemini, responses, standin, test_codex, test_gemini, test_opencode
from tests.e2e.client import Client, client_program
from tests.e2e.standin import StandIn
from tests.helpers import MESSAGES, PATIENCE, TOOLS, until
from tests.night import nightly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.standin import Body, Server
    from tests.helpers import Post

ROLES = {"Ada": "builder", "Bea": "builder", "Cy": "tester", "Dot": "tester"}
"""The four agents: in Claude Code, Codex, Gemini CLI and OpenCode. Two hold each role."""
RESUME = {"Ada": "--resume", "Bea": "resume", "Cy": "--resume"}


class Member:
    """One agent: its client, its model, and how it is asked something."""

    def __init__(self, model: Server, shell: Callable[[str], Body], said: Callable[[str], Body]) -> None:
        self.model = model
        self.session = ""
        self._shell = shell
        self._said = said
        self._left: list[tuple[str, Callable[[], object]]] = []
        self._lock = threading.Lock()
        model.script = self._script

    def will_run(self, command: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Have the model run this command next; something else happens before its client gets that answer."""
        self._left.append((command, meanwhile))

    def _script(self, body: Body) -> list[Body]:
        with self._lock:
            if not body.get("tools") or not self._left:
                return [self._said("DONE")]
            command, meanwhile = self._left.pop(0)
        meanwhile()
        told = self.model.talk(body).partition("this session is ")[2].partition(":")[0]
        return [self._shell(command.replace("SENDER", f"--from {told}" if told else ""))]

    def talk(self) -> str:
        """The whole conversation, as the model was sent it last."""
        return next(self.model.talk(body) for body in reversed(self.model.requests) if body.get("tools"))

    def says(self, word: str) -> int:
        """How often a message with this text was shown to the model."""
        return self.talk().count(f"| {word}")


class Team:
    """The four, each installed in the one project."""

    def __init__(self, post: Post, models: dict[str, Server]) -> None:
        self.post = post
        tools = TOOLS
        post.env["PATH"] = f"{tools}:{post.env['PATH']}"
        (post.home / ".profile").write_text(f"PATH='{tools}':$PATH\n")
        self.claude = Client(post, client_program(CLAUDE_CODE), models["Ada"])  # type: ignore[arg-type]
        self.codex = test_codex.Codex(post, client_program(CODEX), models["Bea"])  # type: ignore[arg-type]
        self.gemini = test_gemini.Client(post, client_program(GEMINI_CLI), models["Cy"])  # type: ignore[arg-type]
        self.opencode = test_opencode.Served(post, client_program(OPENCODE), models["Dot"])  # type: ignore[arg-type]
        self.codex.install()
        post.ok("install", "gemini", "--user")
        self.opencode.install()
        shells = (standin.bash, responses.shell, gemini.shell, completions.shell)
        words = (standin.said, responses.said, gemini.said, completions.said)
        self.members = {
            name: Member(models[name], shell, said) for name, shell, said in zip(ROLES, shells, words, strict=True)
        }

    def _turn(self, name: str, prompt: str) -> str:
        """One prompt to one of them, in the session that it has; the session's id."""
        session = self.members[name].session
        env = {"AGENT_MAILBOX_NAME": name, "AGENT_MAILBOX_ROLE": ROLES[name]}
        if name == "Dot":
            if not session:
                return self.opencode.begin(prompt)
            self.opencode.say(session, prompt)
            return session
        again = [RESUME[name], session] if session else []
        if name == "Ada":
            return str(self.claude.ask(prompt, "--allowedTools", "Bash", *again, env=env)["session_id"])
        if name == "Bea":
            return self.codex.ask(prompt, *again, env=env)
        return self.gemini.ask(prompt, *again, env=env)

    def ask(self, prompt: str) -> None:
        """Ask all four at once, and wait until each is done."""
        with ThreadPoolExecutor() as pool:
            for name, session in zip(ROLES, pool.map(self._turn, ROLES, [prompt] * len(ROLES)), strict=True):
                self.members[name].session = session

    def wrong(self, sent: dict[str, tuple[str, str]]) -> dict[str, dict[str, int]]:
        """The messages that were not shown once to each of their readers, and to nobody else: how often to whom.
        ``sent``: a message's text, its sender and its address."""
        found = {}
        for word, (sender, address) in sent.items():
            shown = {name: member.says(word) for name, member in self.members.items()}
            kind, _, role = address.partition(":")
            holders = [name for name in ROLES if ROLES[name] == role]
            if kind == "role":
                right = sorted(shown[name] for name in holders) == [0, 1] and sum(shown.values()) == 1
            else:
                readers = [address] if address in ROLES else [name for name in ROLES if name != sender]
                right = shown == {name: int(name in readers) for name in ROLES}
            if not right:
                found[word] = shown
        return found


@pytest.fixture
def team(post: Post) -> Iterator[Team]:
    """The four clients, a mailbox, and a stand-in for each one's model."""
    with StandIn() as ada, responses.Responses() as bea, gemini.Gemini() as cy, completions.Completions() as dot:
        made = Team(post, dict(zip(ROLES, (ada, bea, cy, dot), strict=True)))
        post.env |= {"AGENT_MAILBOX_NAME": "Dot", "AGENT_MAILBOX_ROLE": ROLES["Dot"]}
        with made.opencode:
            yield made


@nightly
def test_twenty_messages_in_all_modes_reach_each_of_their_readers_once(team: Team) -> None:
    """Four clients get each message of every kind of address exactly once. It may come before a session, between tools,
    at a turn's end or while the session is idle."""
    post, members = team.post, team.members
    sent: dict[str, tuple[str, str]] = {}

    def send(address: str, word: str, *words: str) -> None:
        sent[word] = ("bob", address)
        post.send("bob", address, word, *words)

    def will_send(name: str, address: str, word: str, more: str = "", **how: Any) -> None:
        sent[word] = (name, address)
        members[name].will_run(f"agent-mailbox send SENDER --to {address} --body {word} {more}".rstrip(), **how)

    for address in ("role:builder", "role:tester", "all", "project:inscription"):
        send(address, f"BEFORE_{address.upper().replace(':', '_')}")
    will_send("Ada", "role:tester", "FROM_ADA")
    will_send("Bea", "all", "FROM_BEA")
    will_send("Cy", "project:inscription", "FROM_CY")
    will_send("Dot", "all", "FROM_DOT", "--priority high")
    team.ask("PROMPT_ONE")
    for name in ROLES:
        send(name, f"FOR_{name.upper()}", "--ack")
    will_send("Ada", "Cy", "ADA_TO_CY", meanwhile=lambda: send("role:builder", "BETWEEN_BUILDERS"))
    will_send("Bea", "Dot", "BEA_TO_DOT", "--priority low", meanwhile=lambda: send("all", "BETWEEN_ALL"))
    will_send("Cy", "Ada", "CY_TO_ADA", meanwhile=lambda: send("role:tester", "BETWEEN_TESTERS"))
    will_send("Dot", "Bea", "DOT_TO_BEA")
    (asked,) = [message["id"] for message in post.objects(MESSAGES) if message["content"] == "FROM_BEA"]
    sent["ANSWER_TO_ALL"] = ("Dot", "all")
    members["Dot"].will_run(f"agent-mailbox reply {asked} --all --body ANSWER_TO_ALL")
    team.ask("PROMPT_TWO")
    team.ask("PROMPT_THREE")
    assert len(sent) == 20
    assert sorted(message["content"] for message in post.objects(MESSAGES)) == sorted(sent)
    with suppress(AssertionError):
        until(lambda: not team.wrong(sent))
    assert team.wrong(sent) == {}


@nightly
def test_four_clients_finish_a_chain_of_tasks_without_a_word(team: Team) -> None:
    """All four claim what is open at once, three times, and finish what they got. Each of three tasks, of which each
    waits for the one before, has one claim and is done. The log has no message of text."""
    before = ""
    for task in ("task-1", "task-2", "task-3"):
        after = ("--after", before) if before else ()
        team.post.ok("task", "add", "--to", "all", "--title", task, "--task-id", task, *after, "--session", "user")
        before = task
    together = threading.Barrier(len(ROLES), timeout=PATIENCE)
    for member in team.members.values():
        for _ in range(3):
            member.will_run(
                't=$(agent-mailbox task claim --next) && agent-mailbox task done "${t%% *}" --summary ok', together.wait
            )
    team.ask("work")
    tasks = {one["id"]: one["state"] for one in team.post.ok("task", "list", "--all")["tasks"]}
    assert tasks == {"task-1": "done", "task-2": "done", "task-3": "done"}
    written = team.post.objects(MESSAGES)
    said = [json.loads(one["content"]) for one in written if one.get("type") == "control"]
    claims = [one["requestId"] for one in said if one["type"] == "task_claim"]
    assert sorted(claims) == ["task-1", "task-2", "task-3"]
    assert [one for one in written if one.get("type", "message") == "message"] == []
