"""The matrix of docs/clients.md: what each client can do, as far as a test showed it.

Belongs here: from the record and the clients' modules to a table. A cell is *live* or *partly* only if every test of it
passed; a test that was skipped shows nothing.
"""

from __future__ import annotations

from agent_mailbox.known_clients import abilities
from agent_mailbox.known_clients.every_client import KNOWN

from . import places, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_mailbox.known_clients.known_client import KnownClient

    from .record import Shown

LIVE, PARTLY, NOT, NOT_RUN = "**live**", "*partly*", "not", "not run"


def rows_of(client: KnownClient, rows: list[Shown]) -> list[Shown]:
    """Return the lines of one client."""
    return [row for row in rows if row.client == client.name]


def cell(client: KnownClient, ability: str, rows: list[Shown]) -> str:
    """Return what was shown of one ability."""
    if ability not in abilities.abilities_of(client):
        return NOT
    mine = [row for row in rows_of(client, rows) if row.ability == ability]
    if not mine or any(row.outcome != record.PASSED for row in mine):
        return NOT_RUN
    return PARTLY if ability in client.limits else LIVE


def _versions(client: KnownClient, rows: list[Shown]) -> str:
    """Return with which versions its abilities were shown, and when: the oldest run counts."""
    mine = [row for row in rows_of(client, rows) if row.outcome == record.PASSED and places.OF not in row.ability]
    if not mine:
        return NOT_RUN
    versions = " and ".join(sorted({f"{row.by} {row.version}".strip() for row in mine}))
    return f"{versions}, {min(row.date for row in mine)}"


def text() -> str:
    """Return the tables and the limits behind the first, as Markdown."""
    rows, shown = record.read(), KNOWN
    lines = [
        f"| | {' | '.join(client.title for client in shown)} |",
        f"| --- |{' --- |' * len(shown)}",
        f"| *run with* | {' | '.join(_versions(client, rows) for client in shown)} |",
    ]
    for name, ability in abilities.ABILITIES.items():
        lines.append(f"| {name}: {ability.means} | {' | '.join(cell(client, name, rows) for client in shown)} |")
    ran = [client for client in shown if client.seen_with]
    limits = [f"- {client.title}, *{name}*: {limit}." for client in ran for name, limit in client.limits.items()]
    by_place = ["", "By client and place:", "", places.text()]
    return "\n".join([*lines, "", "The limits of what is *partly* there:", "", *limits, *by_place])
