"""The abilities of clients that tests show with the real programs, and the record of it.

``@shows(CODEX, "start", "once")`` says of which abilities a test is the proof. Ordinary runs record nothing. With
``AGENT_MAILBOX_SHOWN=FILE`` a run puts into that file what it showed, by which version, and when. ``scripts/clients``
does that.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.known_clients import abilities
from scripts.client_runs import places, record
from scripts.client_runs.record import FAILED, PASSED, SKIPPED, Shown
from tests.helpers import ROOT
from tests.night import NIGHT

if TYPE_CHECKING:
    from agent_mailbox.known_clients.known_client import KnownClient

INTO = "AGENT_MAILBOX_SHOWN"
OTHER_VERSIONS = "AGENT_MAILBOX_CLIENT_VERSIONS"
"""Versions to run in place of the pins: `codex=0.170.0 gemini=0.62.0`."""
MARK = "shows"


def version(client: KnownClient) -> str:
    """The version of a client that the tests run: the newest that it was seen with, or that of the environment."""
    others = dict(word.split("=") for word in os.environ.get(OTHER_VERSIONS, "").split())
    return others.get(client.name, client.seen_with[-1])


def shows(client: KnownClient, *names: str, by: KnownClient | None = None) -> pytest.MarkDecorator:
    """A test's mark: it shows these abilities of the client, if it passes. ``by``: the client that means it."""
    unclaimed = set(names) - set(abilities.abilities_of(client))
    assert not unclaimed, f"{client.name} does not claim {unclaimed}"
    return pytest.mark.shows(client, names, by)


def shows_at(client: KnownClient, place: str, *what: str, by: KnownClient | None = None) -> pytest.MarkDecorator:
    """A test's mark: it ran the client in this place (``scripts.client_runs.places``), and shows what it sees there."""
    unknown = {place} - set(places.PLACES) | set(what) - set(places.KINDS)
    assert not unknown, f"no such place or kind: {unknown}"
    return pytest.mark.shows(client, tuple(f"{place}{places.OF}{kind}" for kind in what), by)


takes_long = pytest.mark.skipif(not (NIGHT or os.environ.get(INTO)), reason="takes long: scripts/night suite")
"""A test of real clients that takes long, and whose rules a quicker test shows as well."""


class Recorder:
    """A plugin of the run: notes what each marked test comes to, and writes it at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[tuple[str, str, str], tuple[str, str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of a test's phases, and of its parameters' runs, is its outcome."""
        for client, ability, seen, by in [value for key, value in report.user_properties if key == MARK]:
            key = (client, ability, report.nodeid.partition("[")[0])
            before = self._rows[key][0] if key in self._rows else PASSED
            self._rows[key] = (max((before, report.outcome), key=(PASSED, SKIPPED, FAILED).index), seen, by)

    def pytest_sessionfinish(self) -> None:
        """Write what was shown."""
        if not self._rows:
            return
        words = ("git", "describe", "--always", "--dirty=+", "--exclude=*")
        commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        today = datetime.now(UTC).date().isoformat()
        new = [Shown(*key, outcome, seen, today, commit, by) for key, (outcome, seen, by) in self._rows.items()]
        record.write(record.merged(record.read(self._path), new), self._path)


def tell(items: list[pytest.Item]) -> None:
    """Put into each test's report what it shows, and mark it with its clients: ``-m codex`` runs those of Codex."""
    for item in items:
        for mark in [*item.iter_markers(MARK)]:
            client, names, by = mark.args
            item.add_marker(client.name.replace("-", "_"))
            for name in names:
                row = [client.name, name, version(by or client), by.title if by else ""]
                item.user_properties.append((MARK, row))
