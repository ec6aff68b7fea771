"""The ledger: every decision about membership as one durable line; and ``state.json``, what follows from it.

Belongs here: reading it incrementally, deciding under its lock. A decision is taken on what the log says while the log
is locked, and counts from the moment its line is synced: a process killed anywhere else has decided nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core import codec, instant
from ..core.records import BadLine
from ..errors import BadData, NotFound
from ..mailbox.opened import wall_clock
from ..store.growing_log import GrowingLog
from ..store.lines import line_at
from ..store.lock import FileLock
from ..store.log import HeldLog, Log
from . import home as names
from . import state_file
from .home import Home
from .protocol import wire
from .protocol.membership import NOTHING, Event, Knowledge, fold

MAX_LINE = codec.MAX_LINE
"""Bytes of one event: that of a thousand members has some 300 KB."""


def line(event: Mapping[str, Any]) -> bytes:
    """An event's line."""
    return wire.dumps(event).encode("utf-8") + b"\n"


def each_event(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(position, event) of a log's lines; what is none is passed over (``doctor`` tells)."""
    for position, text in lines:
        event = codec.parse(text, MAX_LINE)
        if not isinstance(event, BadLine):
            yield position, event


def events_of(lines: Iterable[tuple[int, bytes]]) -> list[dict[str, Any]]:
    """The events alone, all of them."""
    return [event for _, event in each_event(lines)]


def _announced(event: Event) -> list[dict[str, Any]]:
    return [{"swarm_id": event.get("swarm_id"), "at": event["at"], **one} for one in event.get("announce", ())]


class Ledger:
    """The ledger of a home. May be used by several threads, and beside other processes."""

    def __init__(self, home: Home, clock: Callable[[], int] = wall_clock) -> None:
        self.home = home
        self.now = clock
        self._tail = GrowingLog(Log(home.path(names.LEDGER)))
        self._known = NOTHING
        self._announced: list[tuple[str, int]] = []
        self._lock = threading.Lock()

    def known(self) -> Knowledge:
        """What the ledger says now."""
        with self._lock:
            if self._tail.changed():
                with self._tail.news() as (anew, lines):
                    if anew:
                        self._known, self._announced = NOTHING, []
                    self._known = fold(self._noting(each_event(lines)), self._known)
            return self._known

    def _noting(self, events: Iterable[tuple[int, Event]]) -> Iterator[Event]:
        """The events; of what they announce only the id and the place are kept, for it may be long."""
        for position, event in events:
            self._announced += [(one["id"], position) for one in event.get("announce", ())]
            yield event

    def identified(self) -> Knowledge:
        """The same; raises ``NotFound`` before ``init``."""
        known = self.known()
        if not known.agent_id:
            raise NotFound(f"no swarm identity in {self.home.directory}", "`agent-mailbox swarm init` makes one")
        return known

    def announcements(self, told: Container[str]) -> list[dict[str, Any]]:
        """What is to be announced, less what was ``told`` (ids), which is not asked for again: a decision holds what
        it has to tell others, so that a process killed right after it has not left them in the dark."""
        self.known()
        with self._lock:
            self._announced = [one for one in self._announced if one[0] not in told]
            left = dict.fromkeys(position for _, position in self._announced)
            ids = {new_id for new_id, _ in self._announced}
        return [one for event in self._at(left) for one in _announced(event) if one["id"] in ids]

    def _at(self, positions: Iterable[int]) -> Iterator[Event]:
        """The events at positions of the log."""
        fd = self._tail.log.open() if positions else None
        if fd is None:
            return
        try:
            for _, event in each_event((position, line_at(fd, position)) for position in positions):
                yield event
        finally:
            os.close(fd)

    def decide(self, decide: Callable[[Knowledge], Sequence[Event]]) -> Knowledge:
        """Append what ``decide`` makes of the present knowledge; raises what it raises. Returns the knowledge after."""
        with HeldLog(self._tail.log.path) as log:
            events = list(decide(self.known()))
            lines = [line(event) for event in events]
            if any(len(text) > MAX_LINE for text in lines):
                raise BadData(f"a decision of more than {MAX_LINE} bytes", "that many members are no swarm of ours")
            log.append(lines)
            log.sync()
        if events:
            self.write_state()
        return self.known()

    def write_state(self) -> None:
        """``state.json`` as it follows from the ledger: derived, atomic, 0600."""
        with FileLock(self.home.path(names.STATE_LOCK)):
            known = self.known()
            aside = self.home.path(f"{names.STATE}.new")
            names.write_private(aside, state_file.encode(state_file.export(known)))
            os.replace(aside, self.home.path(names.STATE))

    def event(self, kind: str, **more: Any) -> dict[str, Any]:
        """An event of this moment."""
        return {"event": kind, **more, "at": instant.text(self.now())}
