"""What a command within the test's process leaves behind: nothing, or its test fails."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import launch
from tests import helpers

if TYPE_CHECKING:
    from tests.helpers import Post


def test_a_file_that_a_command_leaves_open_fails_its_test(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told by its path; a replicator that left one a turn would run out of descriptors."""
    real, left = launch.main, []

    def leave(words: list[str]) -> int:
        left.append(open(post.scratch / "left", "w"))
        return real(words)

    monkeypatch.setattr(launch, "main", leave)
    # those of earlier tests are no reason not to look
    monkeypatch.setattr(helpers, "_threads", {*threading.enumerate()})
    with pytest.raises(AssertionError, match=f"{post.scratch}/left"):
        post.call("roster", "list")
    left.pop().close()


def test_the_environment_of_a_command_goes_with_it(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Afterwards Python has the variables of before, and so has a program that it starts."""
    monkeypatch.setenv("BEFORE", "there")
    before = dict(os.environ)
    assert post.call("roster", "list", env={"BEFORE": None, "MORE": "x", "PATH": "/nowhere"}).rc == 0
    assert dict(os.environ) == before
    started = subprocess.run(["env", "-0"], capture_output=True, text=True, check=True).stdout
    told = dict(one.split("=", 1) for one in started.split("\0") if one)
    assert before.items() <= told.items()  # a library may have told the system of others
    assert "MORE" not in told
