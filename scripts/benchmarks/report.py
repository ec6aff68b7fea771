"""What was measured: the goals as a page, and all figures as CSV.

Belongs here: words and tables. It names the kind of machine, never which one.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from . import goals
from .measures import FLOOR
from .timing import spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .measures import Fact, Results
    from .timing import Timed

INTRODUCTION = """\
# Benchmarks

`scripts/bench` wrote this page. `scripts/bench --help` tells how to repeat it.

Figures of whole processes are multiples (×) of a bare interpreter start, `python3 -I -S -c pass`, run right before each
of them. A figure is the median of the rounds' ratios. [All figures](benchmarks.csv) have the range from the 10th to the
90th percentile, too.

The mailboxes hold a year of mail. 40 % of it is direct, 30 % to roles, 20 % to tags, 10 % to all. Messages have 40 to
400 characters, in 20 projects and 20 roles.

- *Plain* is the same scheme written plainly (click, orjson, portalocker, both files read whole) on the same mailboxes.
- *Lean* is `python3 -I -S agent_mailbox/__main__.py`, and *console* the installed `agent-mailbox`. Goals are judged by
  the installed one if there is one. A goal for several mailboxes, rosters or shells is judged by the worst of them.
- *Others busy*: one of twenty other agents mails the next, which checks, ten times a second (10/s). At 200/s each of
  the twenty does.
"""
HEAD = ("figure", "how", "messages", "agents", "value", "unit", "starts", "least", "most", "rounds")
"""The columns of the figures; *starts* is the multiple of a bare start, with its 10th and 90th percentile."""
MET = {True: "met", False: "**not met**", None: "–"}


def markdown(results: Results, scratch: Path) -> str:
    """The page: how it was measured, and the goals."""
    parts = [INTRODUCTION, _machine(results, scratch)]
    goal_rows = [(row.measure, row.figure, row.goal, MET[row.met]) for row in goals.rows(results)]
    if goal_rows:
        parts += ["## Goals\n", table(("measure", "figure", "goal", ""), goal_rows)]
    return "\n".join(parts)


def figures(results: Results) -> str:
    """All figures, as CSV: more rows than a page is read for."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(HEAD)
    rows.writerows(map(_process, results.timed))
    rows.writerows(map(_fact, results.facts))
    return text.getvalue()


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _process(one: Timed) -> tuple[object, ...]:
    found, s = spread(one.ratios), one.subject
    place = ("", "") if s.name == FLOOR else (s.size, s.agents)
    ms = statistics.median(one.seconds) * 1000
    ratios = (f"{ratio:.2f}" for ratio in (found.median, found.low, found.high))
    return (s.name, s.how, *place, f"{ms:.3g}", "ms", *ratios, len(one.bare))


def _fact(fact: Fact) -> tuple[object, ...]:
    place = (fact.size, fact.agents) if fact.size else ("", "")
    value = f"{fact.value:.0f}" if fact.value >= 100 else f"{fact.value:.3g}"
    return (fact.name, fact.how, *place, value, fact.unit, "", "", "", "")


def _machine(results: Results, scratch: Path) -> str:
    bare = [seconds for one in results.timed for seconds in one.bare]
    start = f" A bare start took {statistics.median(bare) * 1000:.1f} ms." if bare else ""
    version = f"{platform.python_implementation()} {platform.python_version()}"
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {file_system(scratch)}"
    load = f" The load was {results.load:.1f} at the beginning."
    return f"Measured with {version} on {where}.{start}{load}\n"


def file_system(path: Path) -> str:
    """The type of the file system a path is on, where the system tells (Linux: /proc/mounts)."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown file system"
    real = path.resolve()
    above = [(len(place), kind) for place, kind in mounts if real.is_relative_to(place)]
    return max(above)[1] if above else "unknown file system"
