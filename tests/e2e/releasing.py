"""How long a tool call waits on after its lead approved it, and what asking costs where nobody is to be asked.

From the approval's begin (it is written on the way) until the call's command runs in the real client; the hooks' cost
by themselves.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from agent_mailbox.clients.install import installation
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from scripts.benchmarks.arguments import given as arguments_given
from tests.control_desk import ControlDesk
from tests.e2e import figures
from tests.e2e.client import Client
from tests.e2e.shown import version
from tests.e2e.standin import StandIn, bash, in_turn
from tests.helpers import ROOT, Post, until

ROUNDS = 50
DOCUMENT = ROOT / "docs/internals/client-observations.md"
BEGIN = "<!-- scripts/bench-control writes this -->\n"
LEAD, ME = "boss", "b1134fc7-6f1e-4997-83ed-699c6c8ae683"


def approvals(rounds: int, binary: Path) -> list[float]:
    """Seconds from approved to running, call by call of one session."""
    with tempfile.TemporaryDirectory() as scratch, StandIn() as model:
        client = Client(Post(Path(scratch)), binary, model)
        client.post.register(LEAD)
        client.post.register(ME, "--lead", LEAD)
        desk = ControlDesk(OpenMailbox(str(client.post.box)))
        approved: list[float] = []

        def lead() -> None:
            for _ in range(rounds):
                request = until(lambda: desk.pending(LEAD))[0]
                until(_asleep)
                approved.append(time.time())
                desk.answer(LEAD, request.id, True)

        thread = threading.Thread(target=lead, daemon=True)
        thread.start()
        model.script = in_turn(*([bash(f"date +%s.%N > ran{number:03}")] for number in range(rounds)))
        client.ask("PROMPT", "--session-id", ME, "--permission-mode", "default", "--max-turns", rounds + 5)
        thread.join()
        ran = [float((client.project / f"ran{number:03}").read_text()) for number in range(rounds)]
        return [there - then for there, then in zip(ran, approved, strict=True)]


def _asleep() -> bool:
    """Does the hook that asked sleep until the log changes?"""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            asks = (directory / "cmdline").read_bytes().endswith(b"hook\0PermissionRequest\0")
            if asks and (directory / "stat").read_text().rpartition(")")[2].split()[0] == "S":
                return True
        except OSError:
            continue
    return False


def hooks(rounds: int) -> dict[str, list[float]]:
    """Seconds of a question's hook: where nothing binds the session, where it has a lead, and the guard of another."""
    with tempfile.TemporaryDirectory() as scratch:
        post = Post(Path(scratch))
        post.register(LEAD)
        post.register(ME)
        project = post.scratch / "project"
        project.mkdir()
        post.ok("install", "claude-code", "--project", project)
        shim, _ = installation.shim_file(post.environ())
        env = post.environ({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": ME, "CLAUDE_PROJECT_DIR": str(project)})
        call = {"session_id": ME, "cwd": str(project), "tool_name": "Bash", "tool_input": {"command": "touch x"}}

        def once(event: str) -> float:
            begun = time.perf_counter()
            subprocess.run([shim, event], input=json.dumps(call).encode(), env=env, check=True, capture_output=True)
            return time.perf_counter() - begun

        def many(event: str) -> list[float]:
            for _ in range(3):
                once(event)
            return [once(event) for _ in range(rounds)]

        figures = {"the guard after a tool, nothing new": many("PostToolUse")}
        figures["the question, nothing binds the session"] = many("Permit")
        post.ok("roster", "update", "--session-id", ME, "--lead", LEAD)
        figures["the question, the session has a lead, nothing is asked"] = many("Permit")
        return figures


def _row(name: str, figures: list[float]) -> str:
    spread = " | ".join(f"{value * 1000:.1f} ms" for value in (statistics.median(figures), min(figures), max(figures)))
    return f"| {name} | {spread} |"


def main(arguments: list[str]) -> int:
    """Measure and write the table."""
    given = arguments_given(arguments, "How long a call waits on after its lead approved it.", rounds=ROUNDS)
    rounds = given.rounds
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-mailbox-tests"
    binary = cache / f"claude-code-{version(CLAUDE_CODE)}/node_modules/.bin/claude"
    lines = ["| | median | fastest | slowest |", "| --- | --- | --- | --- |"]
    lines.append(_row("from approved to running", approvals(rounds, binary)))
    lines += [_row(name, figures) for name, figures in hooks(rounds).items()]
    table = figures.table(lines, rounds)
    sys.stdout.write(table)
    if not given.print:
        figures.write(DOCUMENT, BEGIN, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
