"""A scripted team by two versions of the program: how often mail wakes it, and what its talk costs.

Belongs here: the agents, who call hooks and commands as their clients do, and the script of their hour. Each agent is a
process that stands for a client; its hooks, commands and doorbell are processes of the version that is measured. There
is no model: what an agent does follows from the text that it is shown.

The clock is the real one. So the pause between two wakes is set to none: it would only save more.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e import figures
from tests.helpers import ROOT

from . import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENT = ROOT / "docs/internals/quiet.md"
BEGIN = "<!-- scripts/bench-team writes this -->\n"
BEFORE = "83d985f"
"""The last commit without tasks that are claimed, and without the brake."""
WORKERS = ("Ann", "Ben", "Cem", "Dan")
TASKS = 12
THANKS = 10
"""Times that an agent answers thanks with thanks, in each of the two loops."""
SETTLES = 1.2
"""Seconds in which a doorbell rings for mail that was sent."""
TOKEN = 4
LINE = "agent-mailbox: new mail"


class Figures:
    """The figures of a run."""

    def __init__(self) -> None:
        self.turns = self.wakes = self.vain = self.kept_on = self.requests = self.talk = 0
        self.done: set[str] = set()
        self.vain_texts: list[str] = []


class Agent:
    """A session of a client: its process, its conversation, and the doorbell beside it."""

    def __init__(self, team: Team, name: str, *roles: str) -> None:
        self.team, self.name, self.id = team, name, str(uuid.uuid4())
        self.process = subprocess.Popen(
            [sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.env = {
            **team.env,
            "CLAUDE_PID": str(self.process.pid),
            "CLAUDE_CODE_SESSION_ID": self.id,
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ATTENDED": "1",
            "AGENT_MAILBOX_NAME": name,
            "AGENT_MAILBOX_LEAD": "user" if not roles else team.lead,
            "AGENT_MAILBOX_ROLE": ",".join(roles),
        }
        self.talk = 0
        self.told = ""
        self.work: deque[tuple[str, ...]] = deque()
        self.bell: subprocess.Popen[bytes] | None = None
        self.thanked = 0
        self.in_turn = False
        self.is_woken = False
        self.acts = False
        self.woken_by = ""
        self.does("busy")
        self.hook("SessionStart", source="startup")
        self.does("idle")
        self.listen()

    def does(self, status: str) -> None:
        """Write the client's registry."""
        path = Path(self.team.env["HOME"], f".claude/sessions/{self.process.pid}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"pid": self.process.pid, "sessionId": self.id, "status": status}))

    def run(self, *words: str, stdin: str = "") -> str:
        """Run the program as a command or a hook of the session; return what it says."""
        done = subprocess.run(
            [str(self.team.program), *words], input=stdin.encode(), env=self.env, cwd=self.team.project,
            capture_output=True, check=False,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "replace")

    def hook(self, event: str, **said: object) -> str:
        """Call a hook; return what it tells the model, which stays in the conversation."""
        call = {"session_id": self.id, "cwd": str(self.team.project), "hook_event_name": event, **said}
        answer = self.run("hook", event, stdin=json.dumps(call))
        said = json.loads(answer) if answer.strip() else {}
        text = str(said.get("reason") or said["hookSpecificOutput"]["additionalContext"]) if said else ""
        self.talk += len(text)
        self.told += text
        return text

    def listen(self) -> None:
        """Start the doorbell, as the client does in the background."""
        if self.bell is None or self.bell.poll() is not None:
            self.bell = subprocess.Popen(
                [str(self.team.program), "hook", "Doorbell"], env=self.env, cwd=self.team.project,
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert self.bell.stdin is not None
            self.bell.stdin.write(json.dumps({"session_id": self.id, "hook_event_name": "SessionStart"}).encode())
            self.bell.stdin.close()

    def rings(self) -> bool:
        """Return whether the doorbell woke the session."""
        return not self.in_turn and self.bell is not None and self.bell.poll() == 2

    def request(self) -> None:
        """Ask the model: all the talk so far goes with the request."""
        self.team.figures.requests += 1
        self.team.figures.talk += self.talk

    def begin(self, prompt: str) -> None:
        """Begin a turn."""
        self.in_turn, self.told, self.acts = True, "", prompt != LINE
        self.is_woken = prompt == LINE
        self.does("busy")
        if self.is_woken:
            self.bell = None
            self.team.figures.wakes += 1
            self.talk += len(LINE) + CLAUDE_CODE.wake_tokens * TOKEN
        self.woken_by = self.hook("UserPromptSubmit", prompt=prompt)
        self.listen()
        self.read()
        self.request()

    def step(self) -> None:
        """Run the next command of the turn, or end the turn."""
        if self.work:
            words = self.work.popleft()
            said = self.run(*words) if words[0] != "work" else ""
            self.talk += len(said) + (sum(map(len, words)) if words[0] != "work" else 0)
            self.told = ""
            self.team.heard(self, words, said)
            self.hook("PostToolBatch", tool_calls=[{"tool_name": "Bash"}])
            self.read()
            self.request()
            return
        self.told = ""
        if self.hook("Stop", stop_hook_active=False):
            self.team.figures.kept_on += 1
            self.read()
            self.request()
            return
        if self.is_woken and not self.acts:
            self.team.figures.vain += 1
            self.team.figures.vain_texts.append(f"{self.name}: {self.woken_by}")
        self.in_turn = False
        self.does("idle")

    def read(self) -> None:
        """Plan what the text that was just shown asks for."""
        self.work.extend(self.team.answers(self, self.told))

    def end(self) -> None:
        """End the client and its doorbell, as `kill -9` does."""
        for process in (self.process, self.bell):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


class Team:
    """A lead and four workers in a mailbox of their own, by the program in a tree."""

    def __init__(self, tree: Path, scratch: Path) -> None:
        self.program = tree / "tests/door/bin/agent-mailbox"
        self.has_tasks = (tree / "agent_mailbox/control/tasking.py").exists()
        self.project, home = scratch / "app", scratch / "home"
        (self.project / ".git").mkdir(parents=True)
        state = home / ".local/state/agent-mailbox"
        state.mkdir(parents=True)
        (state / "config.toml").write_text("[wake]\ngap_seconds = 0\n" if self.has_tasks else "")
        self.figures = Figures()
        self.env = {
            "PATH": f"{tree}/tests/door/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "HOME": str(home),
            "AGENT_MAILBOX_TEST_STATE": str(state),
            "AGENT_MAILBOX_TEST_CALLER": "as-said",
            "AGENT_MAILBOX_DIR": str(scratch / "box"),
        }
        subprocess.run([str(self.program), "init", str(scratch / "box")], env=self.env, check=True, capture_output=True)
        self.lead = "user"
        self.lee = Agent(self, "Lee")
        self.lead = self.lee.id
        self.workers = {name: Agent(self, name, "worker") for name in WORKERS}
        self.agents = [self.lee, *self.workers.values()]
        self.silent_for = {"Dan"}

    # -- what agents do -----------------------------------------------------------------------------------------------

    def answers(self, agent: Agent, text: str) -> list[tuple[str, ...]]:
        """Return the commands with which an agent answers a text that it is shown."""
        found: list[tuple[str, ...]] = []
        for block in re.split(r"\n(?=[0-9a-f]{8} )", text):
            head = re.search(r"(?m)^([0-9a-f]{8}) ", block)
            if head is None:
                continue
            if "| thanks!" in block:
                if agent.thanked < THANKS:
                    agent.thanked += 1
                    found.append(("reply", head[1], "--body", "thanks!"))
                continue
            if "idle_notification" in block and not self._asks_after(agent, block):
                continue
            agent.acts = True
            if "| the filter works" in block or "| here is the schema" in block:
                found.append(("reply", head[1], "--body", "thanks!"))
            elif "| where is the schema?" in block:
                found.append(("reply", head[1], "--body", "here is the schema"))
            elif "ack?" in block.split("\n")[0]:
                found.append(("ack", head[1]))
            elif "| are you stuck?" in block:
                self.silent_for.discard(agent.name)
                found += self._finish(agent)
            elif "task_assignment" in block:
                agent.acts = True
        if "open to you; next:" in text:
            agent.acts = True
            found += self.take(agent)
        return found

    def _asks_after(self, agent: Agent, block: str) -> bool:
        """Return whether a worker's idle notice makes the lead ask: it knows by its list who holds a task."""
        name = next((name for name in self.held if name in block.split("\n")[0]), "")
        if agent is not self.lee or not name:
            return False
        self.lee.work.append(("send", "--to", name, "--body", "are you stuck?"))
        agent.acts = True
        return True

    def take(self, agent: Agent) -> list[tuple[str, ...]]:
        """Return the commands that take a task, and do it."""
        if self.has_tasks:
            return [("task", "claim", "--next")]
        return [*self._mine(agent)]

    def _mine(self, agent: Agent) -> list[tuple[str, ...]]:
        mine = self.assigned.get(agent.name)
        return [("control", "report", mine.popleft(), "--phase", "implementing")] if mine else []

    def _finish(self, agent: Agent) -> list[tuple[str, ...]]:
        held = self.held.pop(agent.name, "")
        if not held:
            return []
        if self.has_tasks:
            return [("task", "done", held, "--summary", "it works")]
        return [("control", "report", held, "--phase", "done", "--message", "it works")]

    def heard(self, agent: Agent, words: tuple[str, ...], said: str) -> None:
        """Go on with a task that a command took."""
        is_taken = words[:2] == ("task", "claim") or "implementing" in words
        task = re.search(r"task-\d+", said if self.has_tasks else " ".join(words))
        if is_taken and task:
            self.held[agent.name] = task[0]
            if agent.name in (*self.silent_for, self.dies_with):
                return
            agent.work += [("work",), *self._finish(agent)]
        if words[:2] == ("task", "done") or "done" in words:
            self.figures.done.add(next(word for word in words if word.startswith("task-")))
            agent.work += self.take(agent) if "open to you; next:" in said else []

    # -- the hour -----------------------------------------------------------------------------------------------------

    held: dict[str, str]
    assigned: dict[str, deque[str]]
    dies_with = ""

    def hour(self) -> Figures:
        """Let the team work through its forty turns."""
        self.held, self.assigned = {}, {name: deque() for name in WORKERS}
        adds: list[tuple[str, ...]] = []
        for number in range(TASKS):
            who = WORKERS[number % len(WORKERS)]
            words = ("--title", f"Part {number} of the page", "--task-id", f"task-{number:04}")
            if self.has_tasks:
                adds.append(("task", "add", "--to", "role:worker", *words))
            else:
                self.assigned[who].append(f"task-{number:04}")
                adds.append(("control", "request", "task", who, *words[:2], "--request-id", f"task-{number:04}"))
        project = f"project:{self.project.name}"
        self.turn("Lee", *adds)
        self.turn("Lee", ("send", "--to", project, "--body", "the freeze is at five"))
        self.dies_with = "Cem"
        self.turn("Cem", *self.take(self.workers["Cem"]))
        self.workers["Cem"].end()  # the killed one: its task is open again
        self.held.pop("Cem", None)
        self.agents.remove(self.workers["Cem"])
        self.dies_with = ""
        self.turn("Dan", *self.take(self.workers["Dan"]))  # the silent one: it holds a task, and its turn is over
        self.turn(
            "Ann",
            *self.take(self.workers["Ann"]),
            ("send", "--to", "Lee", "--body", "the filter works"),
            *[("work",)] * 3,
        )
        self.turn("Ben", ("send", "--to", "Ann", "--ack", "--body", "where is the schema?"), *[("work",)] * 3)
        self.turn("Lee", ("send", "--to", project, "--ack", "--body", "pull main now"))
        for prompt in range(33):
            name = ("Ann", "Ben", "Dan")[prompt % 3]
            takes = self.take(self.workers[name]) if name not in self.silent_for else []
            if prompt % 11 == 10:
                self.turn("Lee", ("work",))
            else:
                self.turn(name, ("work",), *takes)
        return self.figures

    def turn(self, name: str, *work: Sequence[str]) -> None:
        """Prompt an agent as its person does, and let everything happen that follows."""
        agent = self.lee if name == "Lee" else self.workers[name]
        self.figures.turns += 1
        agent.work.extend(tuple(words) for words in work)
        agent.begin("go on")
        while True:
            active = [one for one in self.agents if one.in_turn]
            for one in active:
                one.step()
            if self._ring() or active:
                continue
            time.sleep(SETTLES)
            if not self._ring():
                return

    def _ring(self) -> bool:
        end = time.monotonic() + SETTLES / 3
        while time.monotonic() < end:
            if woken := [one for one in self.agents if one.rings()]:
                for one in woken:
                    one.begin(LINE)
                return True
            time.sleep(0.05)
        return False


def measure(tree: Path) -> Figures:
    """Return the figures of an hour by the program in a tree."""
    with tempfile.TemporaryDirectory(prefix="bench-team-", ignore_cleanup_errors=True) as scratch:
        team = Team(tree, Path(scratch))
        try:
            return team.hour()
        finally:
            for agent in (team.lee, *team.workers.values()):
                agent.end()


def rows(now: Figures, before: Figures) -> list[str]:
    """Return the table."""
    lines = ["| | now | before | now / before |", "| --- | --- | --- | --- |"]
    for what, key in (
        ("turns of the script", "turns"),
        ("wakes of an idle session", "wakes"),
        ("wakes without anything to act on", "vain"),
        ("turns that mail kept from ending", "kept_on"),
        ("requests to the model", "requests"),
        ("tokens of talk in all requests", "talk"),
    ):
        here, there = getattr(now, key), getattr(before, key)
        if key == "talk":
            here, there = here // TOKEN, there // TOKEN
        lines.append(
            f"| {what} | {here:,} | {there:,} | {here / there:.2f} |"
            if there
            else f"| {what} | {here:,} | {there:,} | |"
        )
    return lines


def main() -> None:
    """Measure both, and write the table."""
    given = arguments.given(sys.argv[1:], __doc__ or "")
    with tempfile.TemporaryDirectory(prefix="bench-team-tree-") as scratch:
        tree = Path(scratch, "before")
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", "-q", str(tree), BEFORE], check=True)
        try:
            now, before = measure(ROOT), measure(tree)
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)
    lines = rows(now, before)
    print("\n".join(lines), f"\ntasks done: {len(now.done)}, {len(before.done)}")
    if not given.print:
        figures.write(DOCUMENT, BEGIN, figures.table(lines, 1))


if __name__ == "__main__":
    main()
