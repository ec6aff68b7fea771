"""The cost of our hooks to each client while there is nothing new: the shell guard, by the JSON that it writes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients.install import installation
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.every_client import CLIENTS
from scripts.benchmarks.arguments import given as arguments_given
from tests.e2e import figures
from tests.helpers import ROOT, Post

if TYPE_CHECKING:
    from agent_mailbox.known_clients.known_client import KnownClient

ROUNDS = 50
DOCUMENT = ROOT / "docs/internals/client-observations.md"
BEGIN = "<!-- scripts/bench-hooks writes this -->\n"
STDIN = ROOT / "tests/claude/stdin"
MOMENTS = {"a prompt": ("UserPromptSubmit",), "after a tool": ("PostToolBatch", "PostToolUse")}
MOMENTS |= {"before a command": ("PreToolUse", "Permit"), "a turn's end": ("Stop",)}
"""The moments of a turn, each with our hooks that a client may have there."""


def _json(client: KnownClient, ours: str) -> bytes:
    """What the client hands a hook: as it was captured, or as our plugin and Claude Code write it."""
    call: dict[str, Any] = {"session_id": "a-session", "cwd": "/", "hook_event_name": ours}
    theirs = next((on for on, event in client.events.items() if event == ours), ours)
    for captured in (STDIN / client.name / f"{name}.json" for name in (theirs, "SessionEnd")):
        if captured.exists():
            call = json.loads(captured.read_text())
            break
    if ours in ("PreToolUse", "Permit"):
        call |= {"tool_name": "Bash", "tool_input": {"command": "true"}}
    return json.dumps(call, separators=(",", ":")).encode()


def measured(client: KnownClient, rounds: int) -> dict[str, list[float]]:
    """Seconds of the hooks of each moment, one call after the other, for a session that nothing binds."""
    with tempfile.TemporaryDirectory() as scratch:
        post = Post(Path(scratch))
        project = post.scratch / "project"
        project.mkdir()
        post.ok("install", client.name, "--project", project)
        session = str(json.loads(_json(client, "SessionEnd"))["session_id"])
        names = filter(None, (client.session_variable, client.hook_variable))
        env = post.environ({**dict.fromkeys(names, session), **dict.fromkeys(client.marks, "1")})
        shim, _ = installation.shim_file(post.environ())
        word = () if client is CLAUDE_CODE else (client.word,)

        def once(event: str) -> float:
            begun = time.perf_counter()
            done = subprocess.run(
                [shim, event, *word], input=_json(client, event), env=env, check=True, capture_output=True
            )
            took = time.perf_counter() - begun
            assert done.stdout == b"", done
            return took

        wanted = {wanted.event for wanted in client.hooks()}
        first = "SessionStart" if "SessionStart" in wanted else "UserPromptSubmit"
        subprocess.run([shim, first, *word], input=_json(client, first), env=env, check=True, capture_output=True)
        found = {}
        for moment, events in MOMENTS.items():
            mine = [event for event in events if event in wanted]
            for _ in range(3):
                [once(event) for event in mine]
            found[moment] = [sum(map(once, mine)) for _ in range(rounds)] if mine else []
        return found


def _cell(seconds: list[float]) -> str:
    return f"{min(seconds) * 1000:.1f} ms ({statistics.median(seconds) * 1000:.1f})" if seconds else "no hook"


def main(arguments: list[str]) -> int:
    """Measure and write the table."""
    given = arguments_given(arguments, "What a hook with nothing new costs each client.", rounds=ROUNDS)
    rounds = given.rounds
    lines = [f"| fastest (median) | {' | '.join(MOMENTS)} |", f"| --- |{' --- |' * len(MOMENTS)}"]
    bare = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run(["/bin/sh", "-c", ":"], check=True, capture_output=True)
        bare.append(time.perf_counter() - begun)
    ran = [client for client in CLIENTS if client.seen_with]
    lines += [f"| {client.title} | {' | '.join(map(_cell, measured(client, rounds).values()))} |" for client in ran]
    lines.append(f"| `sh -c :`, for comparison |{f' {_cell(bare)} |' * len(MOMENTS)}")
    table = figures.table(lines, rounds)
    sys.stdout.write(table)
    if not given.print:
        figures.write(DOCUMENT, BEGIN, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
