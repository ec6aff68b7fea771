"""What is in the logs, as plain as JSON gives it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

Line = dict[str, Any]
USER = "user"
HOURS: dict[str, int | None] = {"direct": 24, "role": None, "tag": 72, "broadcast": 4}
"""How long mail waits in each mode, the most specific mode first."""
ANSWER = timedelta(minutes=10)
"""A claim without a read ends after this time without a check."""


def read_time(text: str) -> datetime:
    """Return the instant that a line names."""
    return datetime.fromisoformat(text).astimezone(UTC)


def mode_of(address: str) -> str:
    """Return how an address reaches people."""
    if address == "all":
        return "broadcast"
    if address.startswith("role:"):
        return "role"
    return "tag" if ":" in address else "direct"


@dataclass(frozen=True)
class Mail:
    """One message."""

    id: str
    sender: str
    to: tuple[str, ...]
    at: datetime
    line: Line = field(compare=False)

    @property
    def kind(self) -> str:
        """Return its type."""
        return str(self.line.get("type") or "message")

    @property
    def is_idle_notice(self) -> bool:
        """Return whether it says that its sender's turn ended, which is a state."""
        return self.kind == "control" and self._says() == "idle_notification"

    @property
    def waits_elsewhere(self) -> bool:
        """Return whether it is no mail to be read: a note, or a task on the list. A task for one agent is read."""
        if self.kind != "control" or "direct" in map(mode_of, self.to):
            return self.kind == "note"
        return self._says() == "task_assignment"

    def _says(self) -> object:
        try:
            said = json.loads(str(self.line.get("content")))
        except ValueError:
            return None
        return said.get("type") if isinstance(said, dict) else None


@dataclass
class Facts:
    """All that an answer depends on."""

    messages: list[Line] = field(default_factory=list)
    reads: list[Line] = field(default_factory=list)
    roster: list[Line] = field(default_factory=list)
    hours: dict[str, int | None] = field(default_factory=lambda: dict(HOURS))
    looked: dict[str, datetime] = field(default_factory=dict)
    """When a session checked last."""
    gone: set[str] = field(default_factory=set)
    """Sessions whose client is known to have ended."""

    def mail(self) -> list[Mail]:
        """Return the messages in the order of their log; of two with one id the first counts."""
        found: dict[str, Mail] = {}
        for line in self.messages:
            to = line.get("recipient", line.get("to"))
            addresses = tuple(to) if isinstance(to, list) else (str(to),)
            sender = str(line.get("sender", line.get("from")))
            found.setdefault(line["id"], Mail(line["id"], sender, addresses, read_time(line["timestamp"]), line))
        return list(found.values())
