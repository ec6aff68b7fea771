"""A mailbox, and a client's directory with teams in it."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.teams import writing
from tests.helpers import MESSAGES, PATIENCE, Post
from tests.teams import samples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a write that takes longer than is allowed comes with the next round; these tests want it."""
    monkeypatch.setattr(writing, "HOLD", float(PATIENCE))


class Teams(Post):
    """The program with a mailbox, beside a client that has teams."""

    @property
    def root(self) -> Path:
        """Where the client keeps its teams."""
        return self.home / ".claude/teams"

    def make(self, team: str, *names: str, **more: Any) -> None:
        """A team, or its configuration again."""
        directory = self.root / team
        (directory / "inboxes").mkdir(parents=True, exist_ok=True)
        self.replace(directory / "config.json", samples.config(team, *names, **more))

    def box_of(self, team: str, name: str) -> Path:
        """An inbox."""
        return self.root / team / "inboxes" / f"{name}.json"

    def put(self, team: str, name: str, *entries: Any) -> Path:
        """An inbox with just these entries, as the client replaces it."""
        return self.replace(self.box_of(team, name), list(entries))

    def replace(self, path: Path, value: Any) -> Path:
        """Put a file into the place of another, one that may be believed to stay as it is."""
        aside = path.with_name(path.name + ".tmp.00000000")
        aside.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        aside.rename(path)
        self.age(path)
        return path

    def age(self, path: Path) -> None:
        """Make a file look as if it was written a while ago."""
        then = time.time_ns() - 10**9
        os.utime(path, ns=(then, then))

    def holds(self, team: str, name: str) -> Any:
        """What is in an inbox."""
        return json.loads(self.box_of(team, name).read_bytes())

    def samples(self) -> None:
        """The captured teams."""
        for team, inboxes in samples.TEAMS.items():
            self.make(team, *(name for name in inboxes if name != "team-lead"))
            for name, entries in inboxes.items():
                self.put(team, name, *entries)

    def mirrored(self) -> list[dict[str, Any]]:
        """The messages that came from teams, raw."""
        return [m for m in self.objects(MESSAGES) if "team" in (m.get("metadata") or {})]

    def native(self) -> dict[str, bytes]:
        """Everything the client has of its teams, byte by byte."""
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}


@pytest.fixture
def teams(tmp_path: Path) -> Teams:
    """A mailbox, and a client without a team yet."""
    made = Teams(tmp_path)
    made.root.mkdir(parents=True)
    return made
