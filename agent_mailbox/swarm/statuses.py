"""The gateway's view of its inbox: unread, read, archived, deleted, as events. Nothing is ever removed.

Belongs here: the fold of ``statuses.jsonl`` over the mailbox's remote mail. It follows the *gateway's* callers; reading
by agents is in the mailbox's own reads log, and counts as read here, too.
"""

from __future__ import annotations

from ..core import codec, instant
from ..core.claims import Reads
from ..core.records import Message
from ..mailbox.facade import Mailbox
from ..store.log import Log
from . import home as names
from .home import Home
from .inbound import remote_mail
from .ledger import events_of, line

UNREAD, READ, ARCHIVED, DELETED = "unread", "read", "archived", "deleted"
STATUSES = (UNREAD, READ, ARCHIVED, DELETED)
ACTIONS = {"read": READ, "archive": ARCHIVED, "delete": DELETED}
_RANK = {status: place for place, status in enumerate(STATUSES)}

Row = tuple[Message, str, str | None]


class Statuses:
    """The remote mail of a mailbox, with its statuses."""

    def __init__(self, home: Home, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self._path = home.path(names.STATUSES)

    def rows(self) -> list[Row]:
        """Return all remote mail, newest first: (message, status, when it was read)."""
        live = (codec.message(text) for _, text in self.mailbox.logs.messages.lines() if b'"swarm:' in text)
        archived = (codec.message(text) for text in self.mailbox.archive.lines() if b'"swarm:' in text)
        found: dict[str, Message] = {}
        for message in remote_mail(m for m in (*live, *archived) if isinstance(m, Message)):
            found.setdefault(message.id, message)
        reads = Reads(self.mailbox.logs.read_records())
        given: dict[str, tuple[str, str]] = {}
        for event in events_of(Log(self._path).lines()):
            if event.get("status") in _RANK:
                given[str(event.get("message_id"))] = event["status"], event["at"]
        rows = [self._row(message, reads, given.get(message.id)) for message in found.values()]
        return sorted(rows, key=lambda row: -row[0].timestamp)

    def _row(self, message: Message, reads: Reads, given: tuple[str, str] | None) -> Row:
        first = next(iter(reads.of(message.id)), None)
        read_at = instant.text(first.timestamp) if first else given[1] if given else None
        status = given[0] if given else READ if first else UNREAD
        return message, status, read_at

    def chosen(self, status: str = "all", swarm_id: str | None = None, sender: str | None = None) -> list[Row]:
        """Return the matching rows; ``all`` means every status but deleted."""

        def fits(row: Row) -> bool:
            about = (row[0].extra or {})["swarm"]
            wanted = row[1] != DELETED if status == "all" else row[1] == status
            return wanted and swarm_id in (None, about["swarm_id"]) and sender in (None, about["agent_id"])

        return [row for row in self.rows() if fits(row)]

    def counts(self, swarm_id: str | None = None) -> dict[str, int]:
        """Return the number of messages of each status, and in total."""
        rows = [row for row in self.rows() if swarm_id in (None, (row[0].extra or {})["swarm"]["swarm_id"])]
        counted = {status: sum(row[1] == status for row in rows) for status in STATUSES}
        return {**counted, "total": len(rows)}

    def mark(self, ids: list[str], status: str, only_forward: bool = False) -> list[Row]:
        """Set the status of known messages; return their rows after it. ``only_forward``: reading an archived message
        leaves it archived."""
        wanted = set(ids)
        rows = [row for row in self.rows() if row[0].id in wanted]
        now = instant.text(self.mailbox.now())
        changing = [row for row in rows if not only_forward or _RANK[row[1]] < _RANK[status]]
        events = [{"message_id": row[0].id, "status": status, "at": now} for row in changing if row[1] != status]
        if events:
            Log(self._path).append([line(event) for event in events])
        changed = {event["message_id"] for event in events}
        return [(m, status, read_at or now) if m.id in changed else (m, old, read_at) for m, old, read_at in rows]
