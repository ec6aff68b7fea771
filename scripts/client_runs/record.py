"""The record of what the tests with real clients showed: one line a client, an ability and a test.

Belongs here: its form. The tests write it (``tests/e2e/shown.py``), and nobody writes it by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/internals/clients-shown.jsonl"
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


class Shown(NamedTuple):
    """A test that ran: ``version`` is the client's, ``by`` the client that ran in the place of an MCP client."""

    client: str
    ability: str
    test: str
    outcome: str
    version: str
    date: str
    commit: str
    by: str = ""


def read(path: Path = RECORD) -> list[Shown]:
    """Return the record's lines; none if there is no record."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Shown(**json.loads(line)) for line in lines]


def write(rows: list[Shown], path: Path = RECORD) -> None:
    """Write the record, in an order of its own."""
    path.write_text("".join(f"{json.dumps(row._asdict())}\n" for row in sorted(rows)), encoding="utf-8")


def is_there(row: Shown) -> bool:
    """Return whether a row's test still exists."""
    path, _, name = row.test.partition("::")
    return (ROOT / path).exists() and f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def merged(before: list[Shown], new: list[Shown]) -> list[Shown]:
    """Return the record after a run: the tests that it ran count as they ended now."""
    ran = {row[:3] for row in new}
    return [*(row for row in before if row[:3] not in ran), *new]
