"""What is to be carried to whom, and how far that has come: the fold of the outbox log.

Belongs here: queued, sent, delivered, failed, per peer; what an answer means; when to try again. ``sent``: it went out
and nobody knows yet what became of it, so it goes out again, under the same id, signed afresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core import instant
from ...core.records import Record
from .refusal import is_code

QUEUED, SENT, DELIVERED, FAILED = "queued", "sent", "delivered", "failed"
FINAL = (DELIVERED, FAILED)
LONGEST = 7 * instant.DAY
"""Milliseconds for which a message is tried, at most: a peer that is away for longer has left."""
REMEMBERED = LONGEST + instant.DAY
"""How long an id is known for certain: longer than anybody tries, so that nothing comes or goes out twice."""
PATIENCE = instant.HOUR
"""How long a refusal is not yet believed that may mean "I have not heard of you yet" (membership travels, too)."""
_TRANSIENT = (408, 425, 429)
_WRONG_CLOCK = "STALE_TIMESTAMP"
"""One of the two clocks is wrong, and will be set: until then it is tried again, as with a peer that is away."""
_DOUBTFUL = ("NOT_MEMBER", "NOT_MASTER", "SWARM_NOT_FOUND", "NOT_AUTHORIZED", "")


class PeerAnswer(Record):
    """What a peer answered; status 0: nothing. ``wait``: seconds it asks to wait, ``final``: trying again is vain."""

    status: int
    code: str = ""
    message: str = ""
    wait: int | None = None
    body: Mapping[str, Any] | None = None
    final: bool = False


def verdict(answer: PeerAnswer, queued_at: int, now: int) -> str:
    """``DELIVERED``, ``FAILED``, or ``SENT``: to be tried again."""
    if answer.status in (200, 202):
        return DELIVERED
    if answer.final or now - queued_at >= LONGEST:
        return FAILED
    if answer.status == 0 or answer.status in _TRANSIENT or answer.status >= 500 or 300 <= answer.status < 400:
        return SENT
    if answer.status == 400 and answer.code == _WRONG_CLOCK:
        return SENT
    doubtful = answer.status in (400, 403, 404) and answer.code in _DOUBTFUL and (answer.code or answer.status != 400)
    return SENT if doubtful and now - queued_at < PATIENCE else FAILED


def reason(answer: PeerAnswer) -> str:
    """Why a message did not arrive, in words of ours: what the peer wrote goes into nobody's mail but its own."""
    if answer.status == 0:
        return answer.message
    return f"it was refused with {answer.status} {answer.code if is_code(answer.code) else ''}".rstrip()


def backoff(tries: int, most: float) -> float:
    """Seconds to wait after so many tries in a row that failed: 1, 2, 4 … ``most``."""
    return min(most, float(1 << min(tries, 20)) / 2)


class Parcel(Record):
    """A message on its way: its event, and per peer how often it was tried."""

    event: Mapping[str, Any]
    open: Mapping[str, int]

    @property
    def id(self) -> str:
        """Its message id."""
        return str(self.event["id"])


class Outgoing:
    """The folded outbox: ``open`` parcels in order, and of every other only its id and who sent it from here."""

    def __init__(self, events: Iterable[Mapping[str, Any]] = ()) -> None:
        self.open: dict[str, Parcel] = {}
        self.senders: dict[str, str] = {}
        self.claims: dict[tuple[str, int], str] = {}
        for event in events:
            self.apply(event)

    def apply(self, event: Mapping[str, Any]) -> None:
        """Fold one more event in."""
        kind, message_id = event.get("event"), event.get("id")
        if not isinstance(message_id, str):
            return
        if kind == QUEUED and message_id not in self.senders:
            self.senders[message_id] = event.get("from") or ""
            peers = {peer["agent_id"]: 0 for peer in event.get("peers") or ()}
            if peers:
                self.open[message_id] = Parcel(event, peers)
            self._note_claims(event)
        elif kind in (SENT, *FINAL) and message_id in self.open:
            parcel, peer = self.open[message_id], event.get("peer")
            left = {agent: tries for agent, tries in parcel.open.items() if agent != peer}
            if kind == SENT and isinstance(peer, str) and peer in parcel.open:
                left = {**parcel.open, peer: parcel.open[peer] + 1}
            if left:
                self.open[message_id] = parcel.replace(open=left)
            else:
                del self.open[message_id]

    def _note_claims(self, event: Mapping[str, Any]) -> None:
        for repo, number, action in claimed(event.get("references")):
            if action == "claimed":
                self.claims[repo, number] = event.get("from") or ""
            elif action == "completed":
                self.claims.pop((repo, number), None)


def claimed(references: Any) -> list[tuple[str, int, str]]:
    """The issues that references claim or complete, as (repository in lower case, number, action)."""
    found = []
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("type") == "github_issue":
            repo, number, action = one.get("repo"), one.get("number"), one.get("action")
            if isinstance(repo, str) and isinstance(number, int) and action in ("claimed", "completed"):
                found.append((repo.lower(), number, str(action)))
    return found


def compacted(events: Iterable[Mapping[str, Any]], now: int) -> list[Mapping[str, Any]]:
    """The events that still matter at ``now``: of what is done and older than ``REMEMBERED`` nothing but the ids of the
    ledger's announcements, of what is done the ids without the text."""
    events = list(events)
    fold = Outgoing(events)
    oldest = instant.text(max(0, now - REMEMBERED))
    kept: list[Mapping[str, Any]] = []
    fresh = {e["id"] for e in events if e.get("event") == QUEUED and (e["id"] in fold.open or e["at"] >= oldest)}
    for event in events:
        if event.get("id") not in fresh:
            if event.get("event") == QUEUED and event.get("announces"):  # the ledger has it still: its id is known
                kept.append({name: event[name] for name in ("event", "id", "at", "announces")})
            continue
        if event.get("event") == QUEUED and event["id"] not in fold.open:
            event = {key: value for key, value in event.items() if key not in ("content", "metadata", "attachments")}
        kept.append(event)
    return kept
