"""The benchmarks run, and what they write can be read; no figure is judged here."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from scripts.benchmarks import goals, launch, plot, report, timing
from scripts.benchmarks.measures import GROUPS, HOOK, PLAIN_CHECK, POLL, Results
from tests.helpers import PATIENCE, ROOT
from tests.night import nightly

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment that ``scripts/venv.sh`` takes for ready, whose interpreter is this one."""
    made = tmp_path / "venv"
    (made / "bin").mkdir(parents=True)
    python = made / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    shutil.copy(ROOT / "pyproject.toml", made / ".installed")
    return made


def bench(venv: Path, *words: str) -> str:
    """The standard output of ``scripts/bench``, which must succeed."""
    done = subprocess.run(
        [ROOT / "scripts" / "bench", *words],
        env={**os.environ, "AGENT_MAILBOX_VENV": str(venv), "PYTHON": sys.executable, "TMPDIR": str(venv.parent)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables(text: str) -> dict[str, list[list[str]]]:
    """The cells of each Markdown table below its heading, head first; every row must be as wide as its head."""
    found: dict[str, list[list[str]]] = {}
    for section in text.split("\n## ")[1:]:
        rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in section.splitlines() if line[:1] == "|"]
        assert {len(row) for row in rows} == {len(rows[0])}
        found[section.partition("\n")[0]] = [rows[0], *rows[2:]]
    return found


def timed(name: str, size: int, seconds: float, how: str = "dash") -> timing.Timed:
    """A subject with one round, of a bare start of 10 ms."""
    subject = timing.Subject(name=name, argv=(), env={}, size=size, agents=10, how=how)
    return timing.Timed(subject, [seconds], [0.01])


@nightly
@pytest.mark.skipif(not os.access(launch.CONSOLE[0], os.X_OK), reason="agent-mailbox is not installed beside Python")
def test_a_quick_run_gives_tables_and_leaves_nothing_behind(venv: Path) -> None:
    """Two small mailboxes, one round: the goals, and the figures of the parts asked for."""
    text = bench(venv, "--quick", "--only", "hook", "--only", "poll", "--sizes", "100,300", "--rounds", "1")
    goal_rows = tables(text)["Goals"]
    assert HOOK in {row[0] for row in goal_rows[1:]}
    rows = [*csv.DictReader(text[text.index(",".join(report.HEAD)) :].splitlines())]
    hooks = [row for row in rows if row["figure"] == HOOK]
    assert {row["messages"] for row in hooks} == {"100", "300"}
    assert all(re.fullmatch(r"[0-9]+\.[0-9]{2}", row["starts"]) for row in hooks)
    assert POLL in {row["figure"] for row in rows}
    assert list(venv.parent.iterdir()) == [venv]


def test_help_names_every_group_and_option(venv: Path) -> None:
    """``scripts/bench --help`` tells what can be run."""
    text = bench(venv, "--help")
    assert all(re.search(rf"^  {group} ", text, flags=re.MULTILINE) for group in GROUPS)
    assert {"--sizes", "--agents", "--rounds", "--only", "--quick", "--out"} <= set(re.findall(r"--[a-z]+", text))


def test_a_goal_is_judged_by_the_worst_of_its_figures() -> None:
    """One shell above the goal is a goal not met."""
    results = Results(timed=[timed(HOOK, 1000, 0.002, "dash"), timed(HOOK, 1000, 0.003, "bash")])
    row = goals.rows(results)[0]
    assert (row.figure, row.met) == ("0.30× (1k messages, 10 agents, bash)", False)


def test_the_report_names_no_machine(tmp_path: Path) -> None:
    """Neither the host nor a path is in it."""
    text = report.markdown(Results(timed=[timed(HOOK, 1000, 0.002)]), tmp_path)
    assert os.uname().nodename not in text.split()
    assert str(tmp_path) not in text
    assert str(ROOT) not in text


def test_the_plot_is_an_image_with_a_line_for_each_program() -> None:
    """Well-formed SVG, a line and a name for the hook, the plain scheme and the bare interpreter."""
    points = [(1000, 0.1), (1_000_000, 3.0)]
    results = Results(
        timed=[
            *(timed(HOOK, size, 0.002) for size, _ in points),
            *(timed(PLAIN_CHECK, size, ms, "plain") for size, ms in points),
        ]
    )
    image = ET.fromstring(plot.svg(plot.lines(results)))
    space = "{http://www.w3.org/2000/svg}"
    assert len(image.findall(f"{space}polyline")) == 3
    assert {"plain-text", "hook-text", "bare-text"} <= {text.get("class") for text in image.iter(f"{space}text")}
