"""One session of a week: a client, its model, what goes wrong in its turns, and what it was sent.

Belongs here: headless runs. A process is killed in a turn, a tool fails, the API answers 400, 429 or 500 or breaks off,
and each next turn resumes the session. ``week_places`` has the sessions that are no headless runs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.copilot_cli import COPILOT_CLI
from agent_mailbox.known_clients.gemini_cli import GEMINI_CLI
from agent_mailbox.known_clients.opencode import OPENCODE
from tests.e2e import codex_client, completions, gemini, responses, standin, test_copilot, test_gemini
from tests.e2e import test_opencode as opencode
from tests.e2e.client import Client, client_program
from tests.e2e.standin import Failed
from tests.helpers import Post

if TYPE_CHECKING:
    from agent_mailbox.known_clients.known_client import KnownClient
    from tests.e2e.standin import Body, Server

FAULTS = ("none", "tool", "bad tool", "400", "429", "500", "cut", "kill", "kill behind a tool", "400 behind a tool")
MOST = 120
"""Seconds of one turn, after which its client is killed: that, too, is a fault."""
PROMPT = re.compile(r"(?:TURN|MAIL)-(\d+)-\d+-")
DONE = "DONE"


class Kind:
    """A client, its model, and how a turn of a session is started and what its conversation is."""

    def __init__(self, post: Post, client: KnownClient) -> None:
        self.client, self.program = client, client_program(client)
        make, model, call, bad, self.said = _OF[client.name]
        self.model: Server = model()
        self.model.__enter__()
        self.it = make(post, self.program, self.model)
        if client is not CLAUDE_CODE:
            post.ok("install", client.name, "--project", self.it.project)
        self.call, self.bad = call, bad

    def words(self, session: str, prompt: str, *, is_new: bool) -> list[str]:
        """Return the words after the program's name for one turn."""
        if self.client is CLAUDE_CODE:
            named = ["--session-id", session] if is_new else ["--resume", session]
            return ["-p", prompt, "--dangerously-skip-permissions", *named]
        if self.client is CODEX:
            more = [] if is_new else ["resume", session]
            return ["exec", codex_client.TRUSTING, *more, "--skip-git-repo-check", "--json", prompt]
        if self.client is GEMINI_CLI:
            named = ["--session-id", session] if is_new else ["--resume", session]
            return [*named, "--approval-mode", "yolo", "-p", prompt, "-m", "gemini-2.5-pro"]
        if self.client is OPENCODE:
            return ["run", "--format", "json", *([] if is_new else ["--session", session]), prompt]
        return ["-p", prompt, *(["--session-id", session] if is_new else ["--resume", session])]

    def start(self, words: list[str]) -> subprocess.Popen[bytes]:
        """Start a turn's process."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        if self.client is CLAUDE_CODE:
            env = {"IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "3"}
            return self.it.start(*words, start_new_session=True, **streams, env=env)  # type: ignore[no-any-return]
        if self.client is COPILOT_CLI:
            return self.it.start(*words, start_new_session=True, **streams)  # type: ignore[no-any-return]
        env = (
            self.it.environ() if hasattr(self.it, "environ") else self.it.post.environ(test_gemini.environ(self.model))
        )
        return subprocess.Popen(
            [str(self.program), *words], env=env, cwd=self.it.project, start_new_session=True, **streams
        )

    def talk(self, body: Body) -> str:
        """Return a conversation as the model got it; Gemini CLI itself repeats a tool's result when it is resumed."""
        if self.client is not GEMINI_CLI:
            return self.model.talk(body)
        return "\n".join(dict.fromkeys(json.dumps(part) for content in body["contents"] for part in content["parts"]))


_COMPLETIONS = (completions.Completions, completions.shell)
_OF: dict[str, tuple[Any, ...]] = {
    "claude-code": (
        *(Client, standin.StandIn, standin.bash),
        *(standin.use("Read", file_path="/missing"), standin.said),
    ),
    "codex": (codex_client.Codex, responses.Responses, responses.shell, responses.shell("exit 3"), responses.said),
    "gemini": (
        *(test_gemini.Client, gemini.Gemini, gemini.shell),
        *(gemini.use("read_file", file_path="/missing"), gemini.said),
    ),
    "opencode": (
        *(opencode.Served, *_COMPLETIONS),
        *(completions.use("read", filePath="/missing"), completions.said),
    ),
    "copilot": (
        *(test_copilot.Copilot, *_COMPLETIONS),
        *(completions.use("view", path="/missing"), completions.said),
    ),
}
"""By name: the client as tests have it, its model, how that calls a command, a call that fails, and what it says."""


@dataclass
class WeekShare:
    """What all sessions of a week have in common: their mailbox, its lock, how many messages come at once."""

    post: Post
    mails: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Commands are called within this process, one at a time."""
    sessions: list[Session] = field(default_factory=list)


class Session:
    """One session: its turns, what goes wrong in each, and what it was sent."""

    place = "headless"
    faults = FAULTS

    def __init__(self, week: WeekShare, number: int, kind: Kind) -> None:
        self.week, self.number, self.kind = week, number, kind
        self.id, self.turn, self.calls = "", 0, 0
        self.past: list[str] = []
        """Its conversations before it was cleared."""
        self.fault, self.last = "none", ""
        self.process: subprocess.Popen[bytes] | None = None
        self.sent: list[str] = []
        self.is_mailed = True
        self.log: list[str] = []

    def mail(self) -> None:
        """Send it messages."""
        for _ in range(self.week.mails if self.is_mailed else 0):
            with self.week.lock:
                self.sent.append(word := f"MAIL-{self.number}-{len(self.sent)}-")
                self.send(word)

    def send(self, word: str) -> None:
        """Send it this message."""
        self.week.post.send("bob", self.id, word)

    def kill(self) -> None:
        """Kill its client, with all that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)  # type: ignore[union-attr]

    def end(self) -> None:
        """End what still runs of it."""

    def note(self, line: str) -> None:
        """Note how a turn ended, and say it at once."""
        self.log.append(line)
        print(f"{self.kind.client.title}, {self.place} ({self.number}): {line}", file=sys.stderr, flush=True)

    def prompt(self) -> str:
        """Begin a turn; its prompt."""
        self.turn, self.calls = self.turn + 1, 0
        return f"TURN-{self.number}-{self.turn}-go-on"  # no space: a terminal may show one as it likes

    def script(self, body: Body) -> list[Body]:
        """Return the answer of its model in this turn, or fail."""
        self.last = self.kind.talk(body)
        self.calls += 1
        is_first, fault = self.calls == 1, self.fault
        behind = fault.endswith("behind a tool")
        if is_first and self.id:
            self.mail()
        if is_first and (behind or "tool" in fault):
            return [self.kind.bad if fault == "bad tool" else self.kind.call("true")]
        if fault == "bad tool" and self.calls == 2:
            return [self.kind.call("true")]
        if fault.startswith("kill") and (behind or is_first):
            self.kill()
            raise Failed(500)
        if fault.startswith("400"):
            raise Failed(400)
        if fault in ("429", "500", "cut") and is_first:
            raise Failed(int(fault) if fault.isdigit() else 0)
        return [self.kind.said(DONE)]

    def take_turn(self, fault: str) -> None:
        """Run one turn with that fault."""
        is_new, self.fault = not self.id, fault
        session = self.id or str(uuid.uuid4())
        if self.id:
            self.mail()
        began = time.monotonic()
        words = self.kind.words(session, self.prompt(), is_new=is_new)
        self.process = self.kind.start(words)
        try:
            out, _ = self.process.communicate(timeout=MOST)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, _ = self.process.communicate()
        if is_new:
            found = re.search(rb'"(?:thread_id|sessionID)":"([^"]+)"', out)
            self.id = found[1].decode() if found else session
        self.note(f"{fault}: {self.process.returncode}, {time.monotonic() - began:.0f} s, {self.calls} requests")
