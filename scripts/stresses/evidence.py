"""What stands in the mailbox, read as plain JSON.

Belongs here: the logs and the archive as they are, line by line, without our codec, our roster or our idea of a record.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import cast

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

MESSAGES, READS, ROSTER = "agent-mailbox.jsonl", "agent-mailbox-reads.jsonl", "agent-roster.jsonl"


class Stored:
    """A message of the run: its object, and the files in which it stands."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.id = str(found["id"])
        self.token = cast.tokens(str(found.get("content") or found.get("body")))[0]
        self.sender = str(found.get("sender") or found.get("from"))
        to: Any = found.get("recipient") or found.get("to")
        self.to = [_whole(word) for word in (to if isinstance(to, list) else [to]) if word not in cast.STRANGERS]
        self.ack = found.get("ack") is True
        self.may_expire = found.get("ttl_hours") is not None
        self.thread = found.get("thread")
        self.bare = {f"role:{word}" for word in found.get("bare") or ()}
        self.places: list[str] = []

    @property
    def archived(self) -> bool:
        """Does it stand in the archive alone?"""
        return MESSAGES not in self.places


def _whole(word: str) -> str:
    return f"role:{word}" if word in ("builder", "tester") else word


class Evidence:
    """The logs and the archive at one moment at which nobody writes."""

    def __init__(self, box: Path) -> None:
        self.by_token: dict[str, list[Stored]] = {}
        self.bad: list[tuple[str, int, bytes]] = []
        self.replied: dict[str, set[str]] = {}
        self._lines: dict[str, dict[bytes, tuple[str, str, str | None]]] = {}
        self._kin: dict[str, str] = {}
        self.successions = 0
        self.control: dict[str, tuple[str, str, dict[str, Any], bool]] = {}
        """By id, in log order: the file, the sender, the payload of every control message, and whether it is sealed."""
        archive = sorted((box / "agent-mailbox-archive").glob("[0-9]*.jsonl"))
        months = [path for path in archive if not path.name.endswith("-reads.jsonl")]
        for path in (*months, box / MESSAGES):
            self._take_messages(path)
        for path in (*(p for p in archive if p not in months), box / READS):
            self._take_reads(path)
        self._take_roster(box / ROSTER)

    def _records(self, path: Path) -> list[tuple[bytes, dict[str, Any]]]:
        found = []
        for number, line in enumerate(path.read_bytes().split(b"\n") if path.exists() else (), 1):
            if line:
                try:
                    found.append((line, dict(json.loads(line))))
                except (ValueError, TypeError):
                    self.bad.append((str(path), number, line))
        return found

    def _take_messages(self, path: Path) -> None:
        seen: dict[str, Stored] = {}
        for _, obj in self._records(path):
            if obj.get("type") == "control":
                self._take_control(path.name, obj)
            if not cast.tokens(str(obj.get("content") or obj.get("body"))):
                continue
            made = Stored(obj)
            known = [one for one in self.by_token.get(made.token, []) if one.id == made.id]
            if known and made.id not in seen:
                made = known[0]  # in another file as well; twice in one file is two
            else:
                self.by_token.setdefault(made.token, []).append(made)
            seen[made.id] = made
            made.places.append(path.name)
            if made.thread:
                self.replied.setdefault(made.thread, set()).add(made.sender)

    def _take_control(self, name: str, obj: dict[str, Any]) -> None:
        try:
            payload = json.loads(obj["content"])
        except ValueError:
            return
        self.control.setdefault(obj["id"], (name, obj["sender"], payload, "seal" in obj))

    def _take_reads(self, path: Path) -> None:
        for line, obj in self._records(path):
            event = (obj["reader_session_id"], obj.get("event", "read"), obj.get("as"))
            self._lines.setdefault(obj["message_id"], {})[line] = event

    def _take_roster(self, path: Path) -> None:
        for _, obj in self._records(path):
            if obj.get("continues"):
                self.successions += 1
                self._kin[self.kin(obj["session_id"])] = self.kin(obj["continues"])

    def kin(self, session: str) -> str:
        """One name for a session, those it continues and those that continue it."""
        while session in self._kin and self._kin[session] != session:
            session = self._kin[session]
        return session

    def stored(self) -> list[Stored]:
        """Every message of the run, each id once."""
        return [one for twins in self.by_token.values() for one in twins]

    def events(self, message_id: str) -> list[tuple[str, str, str | None]]:
        """(session, event, address) of all reads of a message, oldest first."""
        return list(self._lines.get(message_id, {}).values())

    def standing(self, message_id: str) -> dict[str, str | None]:
        """Who has read a message and not given it back; through which address."""
        found: dict[str, str | None] = {}
        for session, event, via in self.events(message_id):
            if event == "release":
                found.pop(session, None)
            elif event in ("read", "ack"):
                found.setdefault(session, via)
        return found

    def claimed(self, message_id: str) -> bool:
        """Does a role's holder hold it?"""
        return any((via or "").startswith("role:") for via in self.standing(message_id).values())
