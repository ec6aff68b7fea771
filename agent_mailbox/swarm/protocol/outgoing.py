"""Parcels on their way to peers: the fold of the outbox log.

Belongs here: queued, sent, delivered, failed, per peer; the meaning of an answer; when to retry. ``sent``: its outcome
is unknown, so it goes out again, under the same id, signed again.
"""

from __future__ import annotations

from collections import deque
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
LATEST = 100
"""Parcels of a swarm that a listing can show, unless its caller says otherwise."""
SHOWN = ("id", "swarm_id", "recipient", "type", "from", "at")
"""The members of a queued event that listings show."""
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


def verdict_on(answer: PeerAnswer, queued_at: int, now: int) -> str:
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


def failure_reason(answer: PeerAnswer) -> str:
    """Return why a message did not arrive, in our words: a peer's words stay out of our mail."""
    if answer.status == 0:
        return answer.message
    return f"it was refused with {answer.status} {answer.code if is_code(answer.code) else ''}".rstrip()


def backoff_seconds(tries: int, most: float) -> float:
    """Return the seconds to wait after so many failures in a row: 1, 2, 4 … ``most``."""
    return min(most, float(1 << min(tries, 20)) / 2)


PeerState = tuple[str, int, str | None]
"""A parcel's state with one peer: the last outcome, the number of tries, and why the last one failed."""


class Parcel:
    """A message on its way or over: its event (once over, without its text), and its state per peer.

    The fold changes it in place: its readers see the newest state.
    """

    __slots__ = ("event", "left", "peers")

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.event = event
        self.peers: dict[str, PeerState] = {one["agent_id"]: (QUEUED, 0, None) for one in event.get("peers") or ()}
        if event.get("why"):
            self.peers = {event["recipient"]: (FAILED, 0, event["why"])}
        self.left = 0 if event.get("why") else len(self.peers)

    @property
    def id(self) -> str:
        """Return its message id."""
        return str(self.event["id"])

    def is_open_for(self, agent: object) -> bool:
        """Return whether it is on its way to this peer."""
        return agent in self.peers and self.peers[str(agent)][0] not in FINAL

    def apply_outcome(self, outcome: str, agent: str, why: str | None) -> None:
        """Fold in the outcome of a try with a peer for which it is open."""
        self.peers[agent] = outcome, self.peers[agent][1] + 1, why
        self.left -= outcome in FINAL

    @property
    def object(self) -> dict[str, Any]:
        """Return it as listings show it."""
        peers = {
            agent: {"status": status, "tries": tries, **({"why": why} if tries or why else {})}
            for agent, (status, tries, why) in self.peers.items()
        }
        return {**{key: self.event.get(key) for key in SHOWN}, "peers": peers}


def _without_text(event: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in ("content", "metadata", "attachments")}


class Outgoing:
    """The folded outbox: ``open`` parcels in order; of each swarm the latest for listings; of all the local sender.

    ``latest``: the number of parcels of each swarm to remember for listings.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]] = (), latest: int = LATEST) -> None:
        self.open: dict[str, Parcel] = {}
        self.senders: dict[str, str] = {}
        self.claims: dict[tuple[str, int], str] = {}
        self.counted: dict[str, int] = {}
        self._most = latest
        self._latest: dict[str, deque[tuple[int, Parcel]]] = {}
        for event in events:
            self.apply_event(event)

    def apply_event(self, event: Mapping[str, Any]) -> None:
        kind, message_id = event.get("event"), event.get("id")
        if not isinstance(message_id, str):
            return
        if kind == QUEUED and message_id not in self.senders:
            self.senders[message_id] = event.get("from") or ""
            self._queue_parcel(event)
            self._note_claims(event)
        elif kind in (SENT, *FINAL) and message_id in self.open:
            parcel, peer = self.open[message_id], event.get("peer")
            if parcel.is_open_for(peer):
                parcel.apply_outcome(str(kind), str(peer), event.get("why"))
                if not parcel.left:
                    del self.open[message_id]
                    parcel.event = _without_text(parcel.event)

    def latest_rows(self, limit: int, swarm_id: str | None = None) -> list[dict[str, Any]]:
        """Return the latest parcels, of all swarms or of one, as listings show them, oldest first."""
        swarms = self._latest if swarm_id is None else (swarm_id,)
        found = sorted((row for one in swarms for row in self._latest.get(one, ())), key=lambda row: row[0])
        return [parcel.object for _, parcel in found[-limit:]]

    def _queue_parcel(self, event: Mapping[str, Any]) -> None:
        parcel = Parcel(event)
        if event.get("announces") and not parcel.peers:
            return  # only for those here
        if parcel.left:
            self.open[parcel.id] = parcel
        else:
            parcel.event = _without_text(event)
        swarm_id = event.get("swarm_id") or ""
        self.counted[swarm_id] = self.counted.get(swarm_id, 0) + 1
        latest = self._latest.setdefault(swarm_id, deque(maxlen=self._most))
        latest.append((len(self.senders), parcel))

    def _note_claims(self, event: Mapping[str, Any]) -> None:
        for repo, number, action in claimed_issues(event.get("references")):
            if action == "claimed":
                self.claims[repo, number] = event.get("from") or ""
            elif action == "completed":
                self.claims.pop((repo, number), None)


def claimed_issues(references: Any) -> list[tuple[str, int, str]]:
    """Return the issues that references claim or complete: (repository in lower case, number, action)."""
    found = []
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("type") == "github_issue":
            repo, number, action = one.get("repo"), one.get("number"), one.get("action")
            if isinstance(repo, str) and isinstance(number, int) and action in ("claimed", "completed"):
                found.append((repo.lower(), number, str(action)))
    return found


def compact_events(events: Iterable[Mapping[str, Any]], now: int) -> list[Mapping[str, Any]]:
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
            event = _without_text(event)
        kept.append(event)
    return kept
