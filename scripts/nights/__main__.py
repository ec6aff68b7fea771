"""``scripts/night``: run the long parts in turn, and rewrite their rows in docs/internals/night.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "internals" / "night.md"
PYTEST = (sys.executable, "-m", "pytest", "-n", os.environ.get("TEST_WORKERS", "2"), "-rs")
PARTS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "faults": ("every fault at every call, every mutant", ("scripts/faults",), {}),
    "simulation": ("worlds drawn from seeds", ("scripts/simulate", "--hours", "8"), {}),
    "drawn": (
        "changes that nobody chose: found by tests, by worlds, by neither",
        ("scripts/mutate", "--count", "10"),
        {},
    ),
    "load": ("the suite, twenty times beside busy processes", (sys.executable, "-m", "scripts.nights.load"), {}),
    "suite": ("all tests, with those that a push leaves out", (*PYTEST, "tests"), {"AGENT_MAILBOX_NIGHT": "1"}),
    "gateway": (
        "100,000 connections to a gateway, and a day of ten peers",
        (*PYTEST, "tests/swarm/test_bounded.py"),
        {"AGENT_MAILBOX_NIGHT": "1"},
    ),
    "trust": (
        "a bound worker's attacks, all modes and installations",
        (*PYTEST, "tests/trust", "tests/cli/test_callers.py", "tests/e2e/test_trust.py", "tests/e2e/test_files.py"),
        {"AGENT_MAILBOX_NIGHT": "1"},
    ),
    "accounts": (
        "every call of JetStream by each credential, on three servers",
        (*PYTEST, "tests/engine/test_accounts.py"),
        {"AGENT_MAILBOX_NIGHT": "1"},
    ),
    "team": (
        "Claude Code, Codex, Gemini CLI and OpenCode as one team",
        (*PYTEST, "tests/e2e/test_mixed_team.py"),
        {"AGENT_MAILBOX_NIGHT": "1"},
    ),
    "console": (
        "every view of a week of forty agents, in each look; three views in Firefox",
        (*PYTEST, "tests/console/test_week.py", "tests/console/test_firefox.py"),
        {"AGENT_MAILBOX_NIGHT": "1"},
    ),
    "mcp": (
        "the MCP server by the protocol's own inspector",
        (*PYTEST, "tests/mcp", "tests/e2e/test_mcp.py"),
        {"AGENT_MAILBOX_NIGHT": "1"},
    ),
}
"""By name: what it is, its words, what its environment has beside."""
HEAD = """# The long runs

`scripts/night` runs the parts that take too long for every push. It writes here how each part last ended.

| part | what | ended | commit | took |
| --- | --- | --- | --- | --- |
"""


def main(wanted: list[str]) -> int:
    """Run the wanted parts (none named: all); exit 1 where one failed."""
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]!r}: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    rows = known()
    failed = False
    for name in wanted or PARTS:
        what, words, more = PARTS[name]
        began = time.monotonic()
        done = subprocess.run(words, cwd=ROOT, env={**os.environ, **more}, capture_output=True, text=True, check=False)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        failed = failed or done.returncode != 0
        minutes = (time.monotonic() - began) / 60
        rows[name] = f"| {name} | {what} | {ending(done)} | {commit()} | {minutes:.0f} min |"
        PAGE.write_text(HEAD + "".join(f"{rows[part]}\n" for part in PARTS if part in rows))
    return int(failed)


def known() -> dict[str, str]:
    """The rows of the page, by part."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    return {line.split("|")[1].strip(): line for line in lines if line.startswith("| ") and " min |" in line}


def ending(done: subprocess.CompletedProcess[str]) -> str:
    """How a part ended, in the words of its last lines."""
    words = "passed|failed|skipped|errors?|caught|missed|violations?|worlds|calls|broken|acknowledged|shown"
    words += r"|of \d+ found by \w+"
    counts = re.findall(rf"[\d,]+ (?:{words})", done.stdout)
    said = ", ".join(dict.fromkeys(counts[-4:])) or "ended"
    return said if done.returncode == 0 else f"**failed** ({said})"


def commit() -> str:
    """The commit that was run, and when it was made."""
    words = ("git", "show", "-s", "--format=%h of %cs", "HEAD")
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
