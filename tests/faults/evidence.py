"""What the logs of a mailbox say, read with the plain ``json`` module: the witness that does not trust the program.

Belongs here: lines, live and archived, and a few questions about them. Nothing of ``agent_mailbox`` is imported.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.helpers import ARCHIVE, MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from pathlib import Path

LOGS = (MESSAGES, READS, ROSTER)


class Evidence:
    """The bytes of every log of a mailbox at one moment."""

    def __init__(self, box: Path) -> None:
        files = [*(box / name for name in LOGS), *sorted((box / ARCHIVE).glob("*.jsonl"))]
        self.files = {str(p.relative_to(box)): p.read_bytes() for p in files if p.exists()}

    def lines(self, log: str, *, live: bool = True, archived: bool = True) -> list[bytes]:
        """The lines of one of the three logs, of its archives first."""
        names = [n for n in self.files if n.startswith(ARCHIVE) and archived and _log_of(n) == log]
        names += [log] if live else []
        return [one for name in names for one in self.files.get(name, b"").split(b"\n") if one]

    def records(self, log: str, *, live: bool = True, archived: bool = True) -> list[dict[str, Any]]:
        """The records among them."""
        found = (parsed(one) for one in self.lines(log, live=live, archived=archived))
        return [record for record in found if record is not None]

    def ids(self, *, live: bool = True, archived: bool = True) -> Counter[str]:
        """How often each message is there."""
        return Counter(record["id"] for record in self.records(MESSAGES, live=live, archived=archived))

    def events(self, log: str, **wanted: str) -> int:
        """How many records of the log say all of this."""
        return sum(all(record.get(k) == v for k, v in wanted.items()) for record in self.records(log))

    def standing(self) -> Counter[tuple[str, str]]:
        """(reader, message) of the reads that no release took back, with how often they were recorded."""
        found: Counter[tuple[str, str]] = Counter()
        for record in {json.dumps(r): r for r in self.records(READS)}.values():
            key = (record["reader_session_id"], record["message_id"])
            if record.get("event", "read") == "read":
                found[key] += 1
            elif record["event"] == "release":
                del found[key]
        return found

    def bad(self) -> list[bytes]:
        """The lines that are no records."""
        return [one for log in LOGS for one in self.lines(log) if parsed(one) is None]


def parsed(one: bytes) -> dict[str, Any] | None:
    """The JSON object on a line, or None."""
    try:
        record = json.loads(one.decode("utf-8"))
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def unchanged(before: Evidence, after: Evidence, *, rewritten: bool) -> None:
    """Nobody's earlier record changed: what stood in a log is there still, byte for byte and in the same place; or,
    where the steward was at work (``rewritten``), every line still is somewhere, and the archive only grew."""
    for name, data in before.files.items():
        if not rewritten or name.startswith(ARCHIVE):
            assert after.files.get(name, b"").startswith(data), f"{name} changed"
    for log in LOGS:
        gone = Counter(before.lines(log)) - Counter(after.lines(log))
        assert not gone, f"gone from {log}: {list(gone)[:3]}"


def _log_of(name: str) -> str | None:
    if name.endswith("/MANIFEST.jsonl"):
        return None
    if name.endswith("/roster.jsonl"):
        return ROSTER
    return READS if name.endswith("-reads.jsonl") else MESSAGES
