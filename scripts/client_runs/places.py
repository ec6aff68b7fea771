"""The table of docs/clients.md by client and place: what a session sees where it runs, as far as a test showed it.

Belongs here: the places, and from the record to a table. A test says by ``shows_at`` where it ran the client; nobody
writes a cell by hand. A cell holds only if every test of it passed.
"""

from __future__ import annotations

from agent_mailbox.known_clients.every_client import KNOWN

from . import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_mailbox.known_clients.known_client import KnownClient

    from .record import Shown

OF = "/"
"""Between a place and what is shown there, in the record's word for an ability."""
PLACES = {
    "terminal": "at a terminal",
    "headless": "one prompt and over: `claude -p`, `codex exec`, `gemini -p`, `opencode run`, `copilot -p`",
    "background": "run by the client's background service: `claude --bg`, `/bg`",
    "server": "run by a server, to which terminals are attached: `opencode serve`",
    "without its server": "at a terminal that runs it alone: `codex --no-daemon`",
    "editor": "by streams of JSON, as an editor runs it",
    "container": "process numbers of its own, the client is the first",
    "resumed": "resumed after its client ended",
    "forked": "with another session's talk, under an id of its own",
    "cleared": "after `/clear`",
}
MAIL, WAKE, NO_WAKE = "mail", "wake", "no wake"
KINDS = (MAIL, WAKE, NO_WAKE)
"""What a test shows: the mail is seen; it wakes an idle session; it wakes none, and whoever asks is told."""
ASKED = ("claude-code", "codex", "gemini", "opencode", "copilot")
YES, NO, UNKNOWN = "yes", "no", "not run"


def cell(rows: list[Shown], place: str, *kinds: str) -> str:
    """Return what the rows of a client show of a place, by the kinds that may stand in this column."""
    for kind in kinds:
        mine = [row for row in rows if row.ability == f"{place}{OF}{kind}"]
        if mine and all(row.outcome == record.PASSED for row in mine):
            return NO if kind == NO_WAKE else YES
    return UNKNOWN


def text() -> str:
    """Return the table and the places that nobody ran, as Markdown."""
    lines = ["| client | place | mail | wake | with | tests |", "| --- | --- | --- | --- | --- | --- |"]
    missing = []
    for client in (one for one in KNOWN if one.name in ASKED):
        rows = [row for row in record.read() if row.client == client.name and OF in row.ability]
        there = {place: _row(client, place, rows) for place in PLACES}
        lines += [line for line in there.values() if line]
        unknown = [place for place, line in there.items() if not line]
        missing.append(f"- {client.title}: {', '.join(unknown)}.")
    meant = [f"- *{place}*: {what}." for place, what in PLACES.items()]
    return "\n".join(
        [*lines, "", "The places:", "", *meant, "", "Nobody ran, or there is no such place:", "", *missing, ""]
    )


def _row(client: KnownClient, place: str, rows: list[Shown]) -> str:
    mine = [row for row in rows if row.ability.startswith(f"{place}{OF}") and row.outcome == record.PASSED]
    if not mine:
        return ""
    versions = " and ".join(sorted({row.version for row in mine}))
    tests = ", ".join(f"`{name}`" for name in sorted({row.test.removeprefix("tests/e2e/") for row in mine}))
    mail, wake = cell(rows, place, MAIL), cell(rows, place, WAKE, NO_WAKE)
    return f"| {client.title} | {place} | {mail} | {wake} | {versions}, {min(row.date for row in mine)} | {tests} |"
