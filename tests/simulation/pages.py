"""The page about the simulation: what was met, what never, which mutants it finds.

``python -m tests.simulation.pages [FILE]`` writes docs/internals/simulation.md; FILE is what ``scripts/simulate
--coverage FILE`` wrote, and replaces the figures that are kept. Belongs here: that page.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from tests.helpers import ROOT
from tests.simulation import mutation
from tests.simulation.mutation import FOUND, OUTSIDE
from tests.simulation.world import CALLS, SILENT

PAGE = ROOT / "docs/internals/simulation.md"
FIGURES = ROOT / "docs/internals/simulation-coverage.json"
KINDS = ("switch", "kill", "stop", "slow", "fault", "short", "full", "jump", "power")
CAN_FAIL = ("write", "pwrite", "open", "pread", "rename", "unlink", "mkdir", "listdir", "link", "ftruncate")
LIBERTIES = (
    "A call happens at once and whole; others run before it or after it. A power failure may take any part of it.",
    "A sector of 512 bytes is written whole or not at all. A lost sector within a longer file reads as zeros.",
    "A write over bytes that a file has already is not cut short.",
    "Python repeats a call that a signal interrupts (PEP 475), so `EINTR` never comes to our code.",
    "There are no threads and no forks; so no two processes share an open file, nor its lock.",
    "There is one user, one machine and one file system, without links except hard links.",
    "In most worlds each change of names is durable by itself, as POSIX allows. In the others names are durable in"
    " their order, as in ext4, and any sync takes all earlier ones along.",
    "inotify merges events and is absent in some worlds. It loses none: the kernel reports an overflow, too.",
    "The clock jumps in some worlds, and the power fails in others, never both in one.",
    "After a power failure a quiet stamp may be back until its session starts or checks, as its client does.",
    "The steward compacts a roster of 15 lines, and moves mail above 2 to 9 live messages.",
    "A foreign line that comes between our look and our write moves sealed lines of ours: at the steward's next run"
    " these come last. The order is not judged in such worlds.",
    "The search index is outside: SQLite does its own input and output. So is what no door leads to: terminals,"
    " crontab, the ancestors of a process, the shell guard.",
)
MISSING = (
    "hooks with a transcript (receipts: seen, lost, offered again), and succession by name or by a client's clear",
    "the shell guard as a model held to real shells",
    "the console, teams, swarm and the engine",
    "the same workloads on the real system, compared answer by answer",
)


def kept(met: list[list[Any]], sums: dict[str, Any]) -> dict[str, Any]:
    """The figures that the page keeps of a run: for each call and fault how often, and beside how many states."""
    often: Counter[tuple[str, str]] = Counter()
    states: Counter[tuple[str, str]] = Counter()
    for call, kind, _, count in met:
        often[call, kind] += count
        states[call, kind] += 1
    return {"sums": sums, "met": {f"{c} {k}": [often[c, k], states[c, k]] for c, k in sorted(often)}}


def never(met: dict[str, list[int]]) -> list[str]:
    """What could have been met and was not, in a line for each kind; calls that the product never made are left out."""
    made = [call for call in CALLS if call not in SILENT and any(f"{call} {kind}" in met for kind in KINDS)]
    may = {"fault": CAN_FAIL, "short": ("write", "pwrite")}
    missed = {kind: [c for c in may.get(kind, made) if c in made and f"{c} {kind}" not in met] for kind in KINDS}
    return [f"{kind}: {', '.join(f'`{call}`' for call in calls)}" for kind, calls in missed.items() if calls]


def page(figures: dict[str, Any], found: dict[str, Any]) -> str:
    """The page."""
    sums, met = figures["sums"], figures["met"]
    lines = [
        "# Simulation",
        "",
        "`scripts/simulate` runs the real store, facade, control plane, steward, backup and hooks on a simulated",
        "machine.",
        "All their system calls go through one module, `agent_mailbox/store/system.py`, which the simulation replaces.",
        "Many processes run in one thread. At every call a seed decides who goes on, and what goes wrong.",
        "A judge knows only what was acknowledged and shown. After each acknowledgement and change of names it asks:",
        "would all of it survive if the power failed now?",
        "",
        "- `scripts/simulate --seed N --commit C` replays a world, byte for byte.",
        "- `scripts/simulate --hours 8` goes on through the night; a failure prints its seed and a short story.",
        "- `python -m tests.simulation.mutation` takes protections away, and measures how soon the simulation notices.",
        "",
        "## What was met",
        "",
        f"The last recorded run, of commit {sums['commit']}, broke {sums['broken']} promises. It came to:",
        "",
        *(f"- {part}" for part in sums["told"].split("; ")),
        "",
        "| before the call | " + " | ".join(KINDS) + " |",
        "| --- |" + " --- |" * len(KINDS),
    ]
    for call in (c for c in CALLS if any(f"{c} {kind}" in met for kind in KINDS)):
        cells = [f"{met[f'{call} {k}'][0]:,} ({met[f'{call} {k}'][1]})" if f"{call} {k}" in met else "" for k in KINDS]
        lines.append(f"| `{call}` | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Each number is how often that happened there; in brackets, beside how many states of another process.",
        "",
        "Never met before these calls:",
        "",
        *(f"- {line}" for line in never(met)),
        "",
        "## What it finds",
        "",
        "Each protection of the store and of delivery was taken away, and each mended defect was put back.",
        "Five runs began at five seeds. The columns tell how many found it, and the medians of calls and seconds.",
        "",
        "| taken away: that … | found | calls | seconds |",
        "| --- | --- | --- | --- |",
    ]
    for mutant in mutation.ours():
        if mutant.without in found:
            lines.append(_row(mutant.without, found[mutant.without]["runs"]))
    lines += ["", "Not for it to find:", "", *(f"- {what}: {why}" for what, why in sorted(OUTSIDE.items()))]
    lines += ["", "## Liberties", "", "The world differs from a real one:", "", *(f"- {text}" for text in LIBERTIES)]
    lines += ["", "Not simulated yet:", "", *(f"- {text}" for text in MISSING), ""]
    return "\n".join(lines)


def _row(without: str, runs: list[dict[str, Any]]) -> str:
    got = [one for one in runs if one["breach"]]
    if not got:
        return f"| {without} | **no** | | |"
    calls, seconds = (median(one[key] for one in got) for key in ("calls", "seconds"))
    return f"| {without} | {len(got)} of {len(mutation.SEEDS)} | {calls:,.0f} | {seconds:.1f} |"


def main(words: list[str]) -> int:
    """Write the page."""
    if words:
        told = json.loads(Path(words[0]).read_text())
        FIGURES.write_text(json.dumps(kept(told["met"], told["sums"]), indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(json.loads(FIGURES.read_text()), json.loads(FOUND.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
