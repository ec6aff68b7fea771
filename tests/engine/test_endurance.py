"""A few seconds of the long run of ``scripts/night engine``: everything that it does, and its whole verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .endurance import Run

if TYPE_CHECKING:
    from pathlib import Path


def test_no_promise_is_broken_while_everything_is_killed(tmp_path: Path) -> None:
    """Three machines on three servers, which are killed, as replicators and commands are, while links are cut: all
    acknowledged mail is in all copies once, in one order, and is shown once to each reader and one holder."""
    run = Run(tmp_path, seconds=8, seed=5, agents=1, pause=0.3)
    assert run.play() == []
    assert run.journal.acknowledged
    assert any(what.startswith("kill") for what in run.journal.events)
