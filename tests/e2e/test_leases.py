"""Two real clients on one file: with a lease, enforced or not, and without one."""

from __future__ import annotations

import json
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.texts import SECTION
from tests.e2e.standin import ANSWER, bash, conversation, said, use
from tests.helpers import PATIENCE
from tests.night import nightly
from tests.store.test_finding import git

if TYPE_CHECKING:
    from tests.e2e.client import Client

    Body = dict[str, Any]

pytestmark = pytest.mark.usefixtures("on_path")
START = 3
"""Times that the line of a session's start names the program: who it is, and two commands."""
EDITS = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash")


class Pair:
    """Ann, who works until Bob is done, and Bob. Each answers its requests in turn; an event lets one wait."""

    def __init__(self, client: Client) -> None:
        self.client, self.post = client, client.post
        git(client.project, "init", "-q")
        self.ids = {name: str(uuid.uuid4()) for name in ("ANN", "BOB")}
        for name, session in self.ids.items():
            self.post.register(session, "--name", name.title())
        self.ready, self.done = threading.Event(), threading.Event()
        self.answers: dict[str, list[list[Body] | threading.Event]] = {}
        client.model.script = self._script

    def _script(self, body: Body) -> list[Body]:
        who = next((name for name in self.ids if f"PROMPT_{name}" in conversation(body)), "")
        answers = self.answers.get(who, []) if body.get("tools") else []
        while answers:
            answer = answers.pop(0)
            if not isinstance(answer, threading.Event):
                return answer
            self.ready.set()
            assert answer.wait(PATIENCE)
        return [said(ANSWER)]

    def work(self, ann: list[list[Body]], bob: list[list[Body]], ann_after: list[list[Body]]) -> None:
        """Ann does her part and waits; Bob does his; then Ann goes on."""
        self.answers = {"ANN": [*ann, self.done, *ann_after], "BOB": [*bob]}
        failed: list[BaseException] = []

        def work() -> None:
            try:
                self.client.ask("PROMPT_ANN", "--session-id", self.ids["ANN"], *EDITS)
            except BaseException as error:
                failed.append(error)
                self.ready.set()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            assert self.ready.wait(PATIENCE)
            self.client.ask("PROMPT_BOB", "--session-id", self.ids["BOB"], *EDITS)
        finally:
            self.done.set()
            thread.join(PATIENCE)
        assert not failed, failed

    def last(self, name: str) -> str:
        """The whole conversation that a session's model had in the end."""
        return self.client.model.asked(f"PROMPT_{name}")[-1]

    def results(self, name: str) -> list[tuple[bool, str]]:
        """What a session's tools told, in order: whether that was an error, and what."""
        body = [b for b in self.client.model.requests if f"PROMPT_{name}" in conversation(b) and b.get("tools")][-1]
        blocks = [block for m in body["messages"] if isinstance(m["content"], list) for block in m["content"]]
        return [(b.get("is_error", False), json.dumps(b["content"])) for b in blocks if b["type"] == "tool_result"]


@pytest.fixture
def pair(client: Client) -> Pair:
    """Two sessions in one project."""
    return Pair(client)


LEASE = [bash('agent-mailbox lease plan.md --note "the new plan"')]


def write(pair: Pair, name: str, text: str) -> list[Body]:
    """A file is written by the client's tool."""
    return [use("Write", file_path=str(pair.client.project / name), content=text)]


@nightly
def test_who_writes_another_s_file_is_told_between_tools_and_the_other_once(pair: Pair) -> None:
    """An agent that writes a leased file is told whom to write to, and its tools run. The holder hears of it once. Of a
    file without a lease both are told once."""
    both = [[use("Read", file_path=str(pair.client.project / "both.md"))], write(pair, "both.md", "his")]
    leased = [write(pair, "plan.md", "one"), [bash("echo two >> plan.md")], write(pair, "other.md", "x")]
    pair.work([write(pair, "both.md", "hers"), LEASE], [*both, *leased], [[bash("true")], [bash("true")]])
    told, heard = pair.last("BOB"), pair.last("ANN")
    assert told.count("plan.md is leased by Ann until") == 1
    assert "send --to Ann" in told
    assert told.count("Ann edited both.md 0 min ago") == 1
    assert [wrong for wrong, _ in pair.results("BOB")] == [False] * 5
    assert (pair.client.project / "plan.md").read_text() == "onetwo\n"
    assert heard.count("Bob edits plan.md, which you lease") == 1
    assert heard.count("Bob edits both.md now") == 1


def test_an_enforced_lease_refuses_every_way_a_file_is_named(pair: Pair) -> None:
    """The tool, and a command; the model is told whose it is, and the file is as it was."""
    pair.post.configure("[leases]\nenforce = true\n")
    bob = [write(pair, "plan.md", "one"), [bash("echo two >> plan.md")], write(pair, "other.md", "x")]
    pair.work([write(pair, "plan.md", "hers"), LEASE], bob, [[bash("true")]])
    results = pair.results("BOB")
    assert [wrong for wrong, _ in results] == [True, True, False], results
    assert all("plan.md is leased by Ann" in text and "send --to Ann" in text for _, text in results[:2])
    assert (pair.client.project / "plan.md").read_text() == "hers"
    assert pair.last("ANN").count("Bob edits plan.md, which you lease") == 1


@nightly
def test_nobody_reads_a_word_about_files_of_its_own(pair: Pair) -> None:
    """A file that one of them alone writes puts nothing of ours into its conversation."""
    bob = [write(pair, "own.md", "x"), [bash("echo x > own.txt")]]
    pair.work([write(pair, "plan.md", "hers")], bob, [[bash("true")]])
    for name in pair.ids:
        text = pair.last(name)
        start = START + text.count("also works in this tree")
        assert text.count("agent-mailbox") == SECTION.count("agent-mailbox") + start, name
