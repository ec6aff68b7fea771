"""The program is replaced while it runs: what fails then is no bug, and says what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.helpers import PATIENCE, ROOT, Post

if TYPE_CHECKING:
    from pathlib import Path

FAILING = """
import os, sys
sys.path.insert(0, sys.argv[1])
from agent_mailbox.cli import boundary
from agent_mailbox.console import error_pages
told = lambda: boundary.describe_error(AttributeError("x"))
sys.stdout.write(told().what + "\\n")
changed = sys.argv[1] + "/agent_mailbox/errors.py"
"""
"""What a process of the program says of an unexpected error, before its files change."""
WAYS = {"changed": 'while "replaced" not in told().what: os.utime(changed)', "gone": "os.unlink(changed)"}
"""How they change."""


@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_a_program_that_was_replaced_is_called_no_bug(tmp_path: Path, way: str) -> None:
    """An unexpected error is a bug to report, unless a module's file changed since or is gone. Then it says so, and the
    console writes no traceback to its terminal."""
    shutil.copytree(ROOT / "agent_mailbox", tmp_path / "agent_mailbox", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        f"{FAILING}{WAYS[way]}\nsys.stdout.write(f'{{told()}} {{error_pages.describe_error(AttributeError(), str)}}')"
    )
    words = [sys.executable, "-I", "-c", code, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    before, after = done.stdout.split("\n", 1)
    assert before == "unexpected error: AttributeError: x"
    assert after.startswith("agent-mailbox was replaced while this ran")
    assert "start the console again" in after
    assert not done.stderr


def test_a_part_that_is_missing_is_told_in_one_line(post: Post) -> None:
    """A command of an installation that lacks a part says so in one line with the next step, by whichever way it
    starts, and ends with 5. What makes only the next start faster may be missing."""
    package = post.scratch / "agent_mailbox"
    shutil.copytree(ROOT / "agent_mailbox", package, ignore=shutil.ignore_patterns("__pycache__"))
    parts = {"launch.py": "check", "core": "check", "commands": "check", "upkeep/doctor": "doctor"}
    for missing, word in (parts | {"start/bundle.py": "check"}).items():
        (package / missing).rename(post.scratch / "away")
        done = subprocess.run(
            [sys.executable, "-I", "-S", package / "__main__.py", word],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=post.cwd,
            env=post.environ(),
        )
        (post.scratch / "away").rename(package / missing)
        if missing not in parts:
            assert "a part of" not in done.stderr, done
            assert "Traceback" not in done.stderr
            continue
        assert (done.returncode, done.stdout) == (5, ""), (missing, done)
        what, hint = done.stderr.splitlines()
        assert what.startswith("error: ")
        assert "a part of" in what
        assert hint.startswith("hint: run it again in a moment")
