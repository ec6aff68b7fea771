"""The gateway's view of its inbox: unread, read, archived, deleted, as events. Nothing is ever removed.

Belongs here: the fold of ``statuses.jsonl`` over the mailbox's remote mail. It follows the *gateway's* callers; reading
by agents is in the mailbox's own reads log, and counts as read here, too. The fold is remembered and holds no text:
each question reads what came since the last one, and the messages of its answer.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from sys import intern

from ..core import codec, instant
from ..core.line_forms import may_have
from ..core.message_reads import Reads, with_archived
from ..core.records import Message
from ..errors import NotFound
from ..mailbox.mailbox import Mailbox
from ..store.files.lines import line_at
from ..store.log.growing_log import GrowingLog
from ..store.log.log import Log
from ..store.log.logs import end_of, parse_reads
from . import home as names
from .home import Home
from .ledger import event_line, events_of

UNREAD, READ, ARCHIVED, DELETED = "unread", "read", "archived", "deleted"
STATUSES = (UNREAD, READ, ARCHIVED, DELETED)
ACTIONS = {"read": READ, "archive": ARCHIVED, "delete": DELETED}
_RANK = {status: place for place, status in enumerate(STATUSES)}

Row = tuple[Message, str, str | None]
Known = tuple[int, str, str, int | None]
"""A message of the fold: its instant (ms), its swarm and sender, its position in the live log (None: archived)."""


class Statuses:
    """The remote mail of a mailbox, with its statuses, for several threads."""

    def __init__(self, home: Home, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self._path = home.path_of(names.STATUSES)
        self._lock = threading.Lock()
        self._begin_fold()

    def choose_rows(
        self, status: str = "all", swarm_id: str | None = None, sender: str | None = None, limit: int | None = None
    ) -> list[Row]:
        """Return the matching rows, newest first; ``all`` means every status but deleted."""

        def fits(message_id: str) -> bool:
            _, swarm, agent, _ = self._known[message_id]
            state = self._status[message_id]
            wanted = state != DELETED if status == "all" else state == status
            return wanted and swarm_id in (None, swarm) and sender in (None, agent)

        with self._lock:
            self._fold_news()
            return self._read_rows(islice(filter(fits, reversed(self._order)), limit))

    def list_ids(self, status: str, swarm_id: str) -> list[str]:
        """Return the ids of a swarm's messages with a status, newest first."""
        with self._lock:
            self._fold_news()
            order = reversed(self._order)
            return [one for one in order if self._status[one] == status and self._known[one][1] == swarm_id]

    def count_statuses(self, swarm_id: str | None = None) -> dict[str, int]:
        """Return the number of messages of each status, and in total."""
        with self._lock:
            self._fold_news()
            counted: Counter[str] = Counter()
            for (swarm, status), count in self._counted.items():
                counted[status] += count if swarm_id in (None, swarm) else 0
            return {**{status: counted[status] for status in STATUSES}, "total": counted.total()}

    def set_status(self, ids: list[str], status: str, only_forward: bool = False) -> list[Row]:
        """Set the status of known messages; return their rows after it. ``only_forward``: reading an archived message
        leaves it archived."""
        with self._lock:
            self._fold_news()
            known = sorted((i for i in set(ids) if i in self._known), key=self._instant_of, reverse=True)
            before = {i: self._status[i] for i in known}
            changing = [i for i in known if not only_forward or _RANK[before[i]] < _RANK[status]]
            now = instant.text(self.mailbox.now())
            events = [{"message_id": i, "status": status, "at": now} for i in changing if before[i] != status]
            if events:
                Log(self._path).append([event_line(event) for event in events])
                self._fold_news()
            return self._read_rows(known)

    # -- the fold -----------------------------------------------------------------------------------------------------

    def _begin_fold(self) -> None:
        logs = self.mailbox.logs
        self._mail, self._records, self._events = map(GrowingLog, (logs.messages, logs.reads, Log(self._path)))
        self._known: dict[str, Known] = {}
        self._order: list[str] = []
        self._status: dict[str, str] = {}
        self._counted: Counter[tuple[str, str]] = Counter()
        self._reads = Reads()
        self._given: dict[str, tuple[str, str]] = {}

    def _fold_news(self) -> None:
        """Fold in what came since; if a log was replaced, everything."""
        if any(map(_is_replaced, (self._mail, self._records, self._events))):
            self._begin_fold()
        try:
            self._fold_lines()
        except BaseException:
            self._begin_fold()  # what was read would be missing from the next answer
            raise

    def _fold_lines(self) -> None:
        began = not self._mail.inode
        with self._records.news() as (_, lines):
            records = list(lines)  # before the mail: what a record is about was there first
        with self._mail.news() as (_, lines):
            fresh = dict(_each_known(lines))
        touched = dict.fromkeys(fresh)
        if began:  # live before archive: mail and records move that way
            fresh = {**dict(_each_known((None, text) for text in self.mailbox.archive.lines())), **fresh}
            touched = dict.fromkeys(fresh)
        self._sort_in(fresh)
        archived = self.mailbox.archive.reads() if began else ()
        for read in with_archived(parse_reads(records, self.mailbox.logs.reads.view()), archived):
            if read.message_id in self._known and read.event not in ("claim", "seen"):
                self._reads.apply(read)
                touched[read.message_id] = None
        with self._events.news() as (_, lines):
            for event in events_of(lines):
                if event.get("status") in _RANK:
                    self._given[event["message_id"]] = event["status"], event["at"]
                    touched[event["message_id"]] = None
        for message_id in touched:
            self._count_change(message_id)

    def _sort_in(self, fresh: dict[str, Known]) -> None:
        """Add messages to the order of time; those of one instant stay in the order of the log."""
        new = [i for i in fresh if i not in self._known]
        self._known |= fresh
        if not self._order:
            self._order = sorted(new, key=self._instant_of)
            return
        for message_id in new:
            place = bisect_right(self._order, fresh[message_id][0], key=self._instant_of)
            self._order.insert(place, message_id)

    def _instant_of(self, message_id: str) -> int:
        return self._known[message_id][0]

    def _count_change(self, message_id: str) -> None:
        known, before = self._known.get(message_id), self._status.get(message_id)
        if known is None:
            return  # a status of mail that is not here
        given = self._given.get(message_id)
        now = given[0] if given else READ if self._reads.of(message_id) else UNREAD
        self._status[message_id] = now
        self._counted[known[1], now] += 1
        if before is not None:
            self._counted[known[1], before] -= 1

    # -- the messages of an answer ------------------------------------------------------------------------------------

    def _read_rows(self, ids: Iterable[str]) -> list[Row]:
        fd = self._mail.log.open()
        try:
            whole = fd is not None and end_of(fd)[0] == self._mail.inode
            return [self._make_row(message) for message in self._read_messages(ids, fd if whole else None)]
        finally:
            if fd is not None:
                os.close(fd)

    def _read_messages(self, ids: Iterable[str], fd: int | None) -> Iterator[Message]:
        for message_id in ids:
            position = self._known[message_id][3]
            there = None if fd is None or position is None else codec.message(line_at(fd, position))
            if isinstance(there, Message) and there.id == message_id:
                yield there
                continue
            try:
                yield self.mailbox.find(message_id).message
            except NotFound:
                pass  # the person removed its month from the archive

    def _make_row(self, message: Message) -> Row:
        first, given = next(iter(self._reads.of(message.id)), None), self._given.get(message.id)
        read_at = instant.text(first.timestamp) if first else given[1] if given else None
        return message, self._status[message.id], read_at


class AllStatuses:
    """The remote mail of a gateway's mailboxes, each with its own statuses."""

    def __init__(self, each: Iterable[Statuses]) -> None:
        self.each = list(each)

    def statuses_within(self, place: str | None) -> AllStatuses | None:
        """Return those of one mailbox (None: of all); None if the gateway has no such mailbox."""
        found = [one for one in self.each if place in (None, os.path.realpath(one.mailbox.directory))]
        return AllStatuses(found) if found else None

    def choose_rows(
        self, status: str = "all", swarm_id: str | None = None, sender: str | None = None, limit: int | None = None
    ) -> list[Row]:
        """Return the matching rows of all, newest first."""
        rows = [row for one in self.each for row in one.choose_rows(status, swarm_id, sender, limit)]
        return sorted(rows, key=lambda row: -row[0].timestamp)[:limit] if len(self.each) > 1 else rows

    def count_statuses(self, swarm_id: str | None = None) -> dict[str, int]:
        """Return the number of messages of each status, and in total."""
        counted: Counter[str] = Counter()
        for one in self.each:
            counted.update(one.count_statuses(swarm_id))
        return {name: counted[name] for name in (*STATUSES, "total")}

    def set_status(self, ids: list[str], status: str, only_forward: bool = False) -> list[Row]:
        """Set the status of known messages; return their rows after it."""
        return [row for one in self.each for row in one.set_status(ids, status, only_forward)]


def _is_replaced(log: GrowingLog) -> bool:
    """Return whether the log is no longer the one that was read."""
    inode, size = end_of(log.log.path)
    return log.inode != 0 and (inode != log.inode or size < log.position)


def _each_known(lines: Iterable[tuple[int | None, bytes]]) -> Iterator[tuple[str, Known]]:
    """Yield the id of each remote message among the lines, with what the fold holds of it."""
    for position, text in lines:
        message = codec.message(text) if may_have(text, b"swarm:") else None
        if isinstance(message, Message) and message.sender.startswith("swarm:"):
            about = (message.extra or {}).get("swarm")
            if isinstance(about, dict):
                swarm, agent = (intern(str(about.get(name) or "")) for name in ("swarm_id", "agent_id"))
                yield message.id, (message.timestamp, swarm, agent, position)
