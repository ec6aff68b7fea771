"""The ledger: every membership decision as one durable line, and the derived ``state.json``.

Belongs here: reading it incrementally, deciding under its lock. A decision follows from the log while it is locked. It
counts once its line is synced: a process killed earlier has decided nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ..core import codec, instant
from ..core.records import BadLine
from ..errors import BadData, NotFound
from ..mailbox import mailbox_gateway
from ..mailbox.open_mailbox import wall_clock
from ..store.files.lines import line_at
from ..store.files.small_files import OpenFile, replace_file
from ..store.locks.lock import FileLock
from ..store.log.growing_log import GrowingLog
from ..store.log.log import Log
from . import home as names
from . import state_file
from .home import Home
from .protocol import gateway_events, wire
from .protocol.membership import ACTIVE, JOINING, NOTHING, Event, Memberships, fold_events

T = TypeVar("T")
MAX_LINE = codec.MAX_LINE
"""Most bytes of one event: one of a thousand members has some 300 KB."""


def event_line(event: Mapping[str, Any]) -> bytes:
    """Return the line of an event, or of a whole file."""
    return wire.dump_json(event).encode("utf-8") + b"\n"


def each_event(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (position, event) of a log's lines; skip invalid ones (``doctor`` reports them)."""
    for position, text in lines:
        event = codec.parse(text, MAX_LINE)
        if not isinstance(event, BadLine) and not gateway_events.event_problem(event):
            yield position, event


def events_of(lines: Iterable[tuple[int, bytes]]) -> list[dict[str, Any]]:
    """Return all events, without positions."""
    return [event for _, event in each_event(lines)]


def _reachable_peers(known: Memberships) -> dict[str, Any]:
    """Return whom mail reaches, by each swarm's alias, with the mailbox to which that belongs (empty: the only one)."""
    told: dict[str, Any] = {}
    for swarm in known.swarms.values():
        if swarm.state in (ACTIVE, JOINING):
            agents = {"agents": [a for a in swarm.members if a != known.agent_id]} if swarm.state == ACTIVE else {}
            told[swarm.alias] = {"mailbox": swarm.mailbox or known.first, **agents}
    return told


class Ledger:
    """The ledger of a home, for several threads and beside other processes.

    ``here``: the mailbox that asks, of which ``first`` is the gateway's first (``Memberships``).
    """

    def __init__(self, home: Home, clock: Callable[[], int] = wall_clock, *, here: str = "", first: str = "") -> None:
        self.home = home
        self.now = clock
        self._view = {"here": here, "first": first}
        self._tail = GrowingLog(Log(home.path_of(names.LEDGER)))
        self._known = NOTHING
        self._announced: list[tuple[str, int]] = []
        self._lock = threading.Lock()

    def read_knowledge(self) -> Memberships:
        with self._lock:
            if self._tail.changed():
                with self._tail.news() as (replaced, lines):
                    if replaced:
                        self._known, self._announced = NOTHING, []
                    self._known = fold_events(self._note_announcements(each_event(lines)), self._known).replace(
                        **self._view
                    )
            return self._known

    def _note_announcements(self, events: Iterable[tuple[int, Event]]) -> Iterator[Event]:
        """Pass the events on; keep only the id and position of announcements, which may be long."""
        for position, event in events:
            self._announced += [(one["id"], position) for one in event.get("announce", ())]
            yield event

    def identified_knowledge(self) -> Memberships:
        """Return the same; raise ``NotFound`` before ``init``."""
        known = self.read_knowledge()
        if not known.agent_id:
            raise NotFound(f"swarm identity missing: {self.home.directory}", names.INIT)
        return known

    def open_announcements(self, told: Container[str]) -> list[dict[str, Any]]:
        """Return the announcements still to make; forget those ``told`` (ids).

        A decision's line holds its announcements, so a process killed right after it loses none.
        """
        self.read_knowledge()
        with self._lock:
            self._announced = [one for one in self._announced if one[0] not in told]
            left = dict.fromkeys(position for _, position in self._announced)
            ids = {new_id for new_id, _ in self._announced}
        return [
            {"swarm_id": event.get("swarm_id"), "at": event["at"], **one}
            for event in self._events_at(left)
            for one in event.get("announce", ())
            if one["id"] in ids
        ]

    def _events_at(self, positions: Iterable[int]) -> Iterator[Event]:
        """Yield the events at positions of the log."""
        fd = self._tail.log.open() if positions else None
        if fd is None:
            return
        with OpenFile(fd):
            for _, event in each_event((position, line_at(fd, position)) for position in positions):
                yield event

    def append_decided(self, decide: Callable[[Memberships], Sequence[Event]]) -> Memberships:
        """Append the events that ``decide`` returns for the present knowledge; return the knowledge after. Raise what
        it raises."""
        return self.settle_decision(lambda known: (decide(known), None))[0]

    def settle_decision(self, decide: Callable[[Memberships], tuple[Sequence[Event], T]]) -> tuple[Memberships, T]:
        """Do as ``decide`` does; return (the knowledge after, what ``decide`` found beside the events)."""
        with self._tail.log.held() as log:
            given, found = decide(self.read_knowledge())
            decided = list(given)
            lines = [event_line(event) for event in decided]
            if any(len(text) > MAX_LINE for text in lines):
                raise BadData(f"ledger event too large: over {MAX_LINE} bytes", "split the swarm into smaller ones")
            log.append(lines)
            log.sync()
        if decided:
            self.write_state()
        return self.read_knowledge(), found

    def write_state(self) -> None:
        """Write ``state.json`` and, for the mailboxes, ``peers.json`` from the ledger: atomic, 0600."""
        with FileLock(self.home.path_of(names.STATE_LOCK)):
            known = self.read_knowledge()
            replace_file(self.home.path_of(names.STATE), event_line(state_file.export_state(known)))
            replace_file(
                self.home.path_of(mailbox_gateway.PEERS), codec.dumps(_reachable_peers(known)).encode() + b"\n"
            )

    def placing_events(self, known: Memberships, swarm_id: str) -> list[dict[str, Any]]:
        """Return the event by which a swarm comes to the mailbox that asks, if it must be said."""
        before = known.swarms.get(swarm_id)
        is_here = known.here == known.first if before is None else known.is_visible(before)
        return [] if not known.here or is_here else [self.make_event("placed", swarm_id=swarm_id, mailbox=known.here)]

    def make_event(self, kind: str, **more: Any) -> dict[str, Any]:
        return {"event": kind, **more, "at": instant.text(self.now())}
