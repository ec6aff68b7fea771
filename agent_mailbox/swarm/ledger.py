"""The ledger: every decision about membership as one durable line; and ``state.json``, what follows from it.

Belongs here: reading it incrementally, deciding under its lock. A decision is taken on what the log says while the log
is locked, and counts from the moment its line is synced: a process killed anywhere else has decided nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..core import codec, instant
from ..core.records import BadLine
from ..desk import wall_clock
from ..errors import BadData, NotFound
from ..store.lock import FileLock
from ..store.log import HeldLog, Log, boundary, lines_of
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


def each_event(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The events on lines; what is none is passed over (``doctor`` tells)."""
    for text in lines:
        event = codec.parse(text, MAX_LINE)
        if not isinstance(event, BadLine):
            yield event


def events_of(lines: Iterable[tuple[int, bytes]]) -> list[dict[str, Any]]:
    """The same of a log's lines with their positions."""
    return list(each_event(text for _, text in lines))


def _telling(events: Iterable[dict[str, Any]], told: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events, with what they announce noted in ``told`` as they go by."""
    for event in events:
        told += [{"swarm_id": event.get("swarm_id"), "at": event["at"], **one} for one in event.get("announce", ())]
        yield event


class Tail:
    """A log read as it grows: ``news`` gives what came since, and whether it starts anew (the file was replaced). Of a
    long log one piece is held at a time."""

    def __init__(self, path: str) -> None:
        self.log = Log(path)
        self._ino, self._at = 0, 0

    def changed(self) -> bool:
        """Is the log another, or longer, than it was?"""
        try:
            there = os.stat(self.log.path)
        except FileNotFoundError:
            return self._ino != 0
        return (there.st_ino, there.st_size) != (self._ino, self._at)

    @contextmanager
    def news(self) -> Iterator[tuple[bool, Iterator[bytes]]]:
        """(begins anew, whole lines since the last time), as of a block; they count as read if that ends well."""
        fd = self.log.open()
        if fd is None:
            anew, (self._ino, self._at) = self._ino != 0, (0, 0)
            yield anew, iter(())
            return
        try:
            there = os.fstat(fd)
            anew = there.st_ino != self._ino or there.st_size < self._at
            start = 0 if anew else self._at
            end = boundary(fd, there.st_size)
            yield anew, (text for _, text in lines_of(fd, start, max(end, start)))
            self._ino, self._at = there.st_ino, max(end, start)
        finally:
            os.close(fd)


class Ledger:
    """The ledger of a home. May be used by several threads, and beside other processes."""

    def __init__(self, home: Home, clock: Callable[[], int] = wall_clock) -> None:
        self.home = home
        self.now = clock
        self._tail = Tail(home.path(names.LEDGER))
        self._known = NOTHING
        self._announced: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def known(self) -> Knowledge:
        """What the ledger says now."""
        with self._lock:
            if self._tail.changed():
                told: list[dict[str, Any]] = []
                with self._tail.news() as (anew, lines):
                    self._known = fold(_telling(each_event(lines), told), NOTHING if anew else self._known)
                if anew or told:
                    self._announced = [*([] if anew else self._announced), *told]
            return self._known

    def identified(self) -> Knowledge:
        """The same; raises ``NotFound`` before ``init``."""
        known = self.known()
        if not known.agent_id:
            raise NotFound(f"no swarm identity in {self.home.directory}", "`agent-mailbox swarm init` makes one")
        return known

    def announcements(self) -> list[dict[str, Any]]:
        """Everything that was to be announced: a decision holds what it has to tell others, so that a process killed
        right after it has not left them in the dark. Less what is settled."""
        self.known()
        with self._lock:
            return list(self._announced)

    def settle(self, ids: Container[str]) -> None:
        """Let go of the announcements that the outbox has: what they say may be long, and is not asked for again."""
        with self._lock:
            self._announced = [one for one in self._announced if one["id"] not in ids]

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
