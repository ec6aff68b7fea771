"""``scripts/clients``: run what each client can do, by its newest version or the pinned one, and say what changed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.known_clients import abilities
from agent_mailbox.known_clients.every_client import CLIENTS, KNOWN

from . import record
from .record import FAILED, PASSED, ROOT

if TYPE_CHECKING:
    from agent_mailbox.known_clients.known_client import KnownClient

    from .record import Shown

PAGE = ROOT / "docs/internals/clients-newest.md"
HEAD = """# The newest versions of the clients

`scripts/clients` runs the tests of [the table](../clients.md#the-clients-side-by-side) with the newest version of each
client in npm. It writes here what they showed, and what changed against the pinned version. CI stays on the pins.

"""


def main() -> int:
    """Run, compare, write; exit 1 if something that was shown is no more."""
    parser = argparse.ArgumentParser(prog="scripts/clients", description=__doc__)
    parser.add_argument(
        "--pins", action="store_true", help="run the pinned versions, and renew the record and its table"
    )
    parser.add_argument("clients", nargs="*", choices=[client.name for client in KNOWN] + [[]], metavar="CLIENT")
    given = parser.parse_args()
    wanted = [client for client in KNOWN if not given.clients or client.name in given.clients]
    if given.pins:
        _run(wanted, {}, record.RECORD)
        record.write([row for row in record.read() if record.is_there(row)])
        subprocess.run([sys.executable, "-m", "scripts.documents"], cwd=ROOT, check=True)
        return 0
    versions = {client.name: newest(client) for client in wanted if client.package}
    with tempfile.TemporaryDirectory() as scratch:
        _run(wanted, versions, into := Path(scratch) / "shown.jsonl")
        rows = record.read(into)
    text = told(wanted, versions, record.read(), rows)
    print(text)
    PAGE.write_text(HEAD + with_others(text, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return int(any(row.outcome == FAILED for row in rows))


def newest(client: KnownClient) -> str:
    """Return the newest version that npm has of a client."""
    words = ("npm", "view", client.package, "version")
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _run(clients: list[KnownClient], versions: dict[str, str], into: Path) -> None:
    """Run the tests that show anything of these clients; they record it."""
    marks = " or ".join(client.name.replace("-", "_") for client in clients)
    more = {
        "AGENT_MAILBOX_SHOWN": str(into),
        "AGENT_MAILBOX_CLIENT_VERSIONS": " ".join(f"{name}={version}" for name, version in versions.items()),
    }
    words = (sys.executable, "-m", "pytest", "-n", os.environ.get("TEST_WORKERS", "2"), "-rs", "tests/e2e", "-m", marks)
    subprocess.run(words, cwd=ROOT, env={**os.environ, **more}, check=False)


def states(client: KnownClient, rows: list[Shown]) -> dict[str, str]:
    """Return each ability of a client with the worst outcome of its tests."""
    order = (PASSED, record.SKIPPED, FAILED).index
    found: dict[str, str] = {}
    for row in rows:
        if row.client == client.name:
            found[row.ability] = max(row.outcome, found.get(row.ability, PASSED), key=order)
    return found


def with_others(text: str, before: str) -> str:
    """Return what a run showed, with the rows that the page has of clients that it did not run."""
    ran = {client.title for client in CLIENTS if f"| {client.title} |" in text}
    rows = [
        line
        for line in before.splitlines()
        if line.startswith("| ") and line.split(" | ")[0][2:] not in (*ran, "client")
    ]
    head, rule, *rest = text.splitlines()
    return "\n".join([head, rule, *sorted([*(row for row in rows if "---" not in row)]), *rest, ""])


def told(clients: list[KnownClient], versions: dict[str, str], before: list[Shown], rows: list[Shown]) -> str:
    """Return what a run showed and what changed, as Markdown."""
    commit = rows[0].commit if rows else "?"
    lines = ["| client | pinned | newest | shown | changed | run |", "| --- | --- | --- | --- | --- | --- |"]
    ran = f"{datetime.now(UTC).date().isoformat()}, {commit}"
    broken = []
    for client in (one for one in CLIENTS if one in clients and one.name in versions):
        old, new = states(client, before), states(client, rows)
        lost = [name for name, state in new.items() if state == FAILED and old.get(name) == PASSED]
        missing = [name for name, state in old.items() if state == PASSED and new.get(name) not in (PASSED, FAILED)]
        won = [name for name, state in new.items() if state == PASSED and old.get(name) != PASSED]
        changed = [*(f"**{name}** fails" for name in lost), *(f"{name} did not run" for name in missing)]
        changed += [f"{name} is new" for name in won]
        claimed = abilities.abilities_of(client)
        count = f"{sum(state == PASSED and name in claimed for name, state in new.items())} of {len(claimed)}"
        pinned, newest_one = client.seen_with[-1], versions[client.name]
        lines.append(
            f"| {client.title} | {pinned} | {newest_one} | {count} | {', '.join(changed) or 'nothing'} | {ran} |"
        )
        broken += sorted(
            {f"- {client.title}: `{row.test}`" for row in rows if row[0] == client.name and row[3] == FAILED}
        )
    failing = ["", "The tests that fail:", "", *broken] if broken else []
    return "\n".join([*lines, *failing, ""])


if __name__ == "__main__":
    sys.exit(main())
