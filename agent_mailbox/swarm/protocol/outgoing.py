"""Parcels on their way to peers: the fold of the outbox log.

Belongs here: queued, sent, delivered, failed, per peer; the meaning of an answer; when to retry. ``sent``: its outcome
is unknown, so it goes out again, under the same id, signed again.
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
"""Most milliseconds a message is tried: a peer that is away for longer has left."""
REMEMBERED = LONGEST + instant.DAY
"""Milliseconds an id is known for certain: longer than any retry, so that nothing comes or goes out twice."""
PATIENCE = instant.HOUR
"""Milliseconds in which a refusal may mean "I have not heard of you yet" (membership travels, too)."""
_TRANSIENT = (408, 425, 429)
_WRONG_CLOCK = "STALE_TIMESTAMP"
"""One of the two clocks is wrong: retry until it is set, as with an absent peer."""
_DOUBTFUL = ("NOT_MEMBER", "NOT_MASTER", "SWARM_NOT_FOUND", "NOT_AUTHORIZED", "")


class PeerAnswer(Record):
    """A peer's answer; status 0: none. ``wait``: seconds it asks to wait; ``final``: a retry is vain."""

    status: int
    code: str = ""
    message: str = ""
    wait: int | None = None
    body: Mapping[str, Any] | None = None
    final: bool = False


def verdict(answer: PeerAnswer, queued_at: int, now: int) -> str:
    """Return ``DELIVERED``, ``FAILED``, or ``SENT``: to be retried."""
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
    """Return why a message did not arrive, in our words: a peer's words stay out of our mail."""
    if answer.status == 0:
        return answer.message
    return f"it was refused with {answer.status} {answer.code if is_code(answer.code) else ''}".rstrip()


def backoff(tries: int, most: float) -> float:
    """Return the seconds to wait after so many failures in a row: 1, 2, 4 … ``most``."""
    return min(most, float(1 << min(tries, 20)) / 2)


class Parcel(Record):
    """A message on its way: its event, and the number of tries per peer."""

    event: Mapping[str, Any]
    open: Mapping[str, int]

    @property
    def id(self) -> str:
        """Return its message id."""
        return str(self.event["id"])


class Outgoing:
    """The folded outbox: ``open`` parcels in order; of all others only the id and the local sender."""

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
    """Return the issues that references claim or complete: (repository in lower case, number, action)."""
    found = []
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("type") == "github_issue":
            repo, number, action = one.get("repo"), one.get("number"), one.get("action")
            if isinstance(repo, str) and isinstance(number, int) and action in ("claimed", "completed"):
                found.append((repo.lower(), number, str(action)))
    return found


def compacted(events: Iterable[Mapping[str, Any]], now: int) -> list[Mapping[str, Any]]:
    """Return the events that still matter at ``now``.

    Finished parcels keep no text. Older than ``REMEMBERED`` they go, all but the ids of the ledger's announcements.
    """
    events = list(events)
    fold = Outgoing(events)
    oldest = instant.text(max(0, now - REMEMBERED))
    kept: list[Mapping[str, Any]] = []
    fresh = {e["id"] for e in events if e.get("event") == QUEUED and (e["id"] in fold.open or e["at"] >= oldest)}
    for event in events:
        if event.get("id") not in fresh:
            if event.get("event") == QUEUED and event.get("announces"):  # the ledger has it still: keep its id
                kept.append({name: event[name] for name in ("event", "id", "at", "announces")})
            continue
        if event.get("event") == QUEUED and event["id"] not in fold.open:
            event = {key: value for key, value in event.items() if key not in ("content", "metadata", "attachments")}
        kept.append(event)
    return kept
