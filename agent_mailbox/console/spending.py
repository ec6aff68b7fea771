"""The tokens that mail cost those who were shown it: by agent, by day, by project, over all mail.

Belongs here: adding up the read records, in which each delivery by a hook noted its tokens. One look reads a bounded
number of them, the live ones first; another look goes on. The sums are kept for each log.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..core import codec
from ..core.instant import MINUTE
from ..core.records import BadLine
from ..core.roster import Roster
from ..mailbox.mailbox import Mailbox
from ..store.files.lines import lines_of
from ..store.log.growing_log import GrowingLog
from . import presenters

Part = tuple[str, str, str]
"""A day (``2026-11-27``, local), a reader, and the project's address by which mail came (else empty)."""

MOST_READ = 10_000
"""Lines that one look reads: a tenth of a second of work."""
MOST_AGENTS, MOST_DAYS = 20, 14
"""Rows of a table; the rest is one row."""
_QUARTER = 15 * MINUTE


class _LogSums:
    """The sums of one log, as far as it was read."""

    def __init__(self, log: GrowingLog) -> None:
        self.log = log
        self.tokens: Counter[Part] = Counter()
        self.times: Counter[Part] = Counter()

    def read_on(self, most: int) -> int:
        """Read at most so many lines; return how many of these are left, 0 if the log may have more."""
        fd = self.log.log.open() if self.log.changed() else None
        if fd is None:
            return most
        try:
            continues, inode, end = self.log.look(fd)
            if not continues:  # the steward replaced it: its archived lines are counted there
                self.tokens.clear()
                self.times.clear()
                self.log.position = 0
            self.log.inode = inode
            for position, line in lines_of(fd, self.log.position, end):
                if not most:
                    break
                most -= 1
                self.log.position = position + len(line) + 1
                self._add(line)
        finally:
            os.close(fd)
        return most

    def _add(self, line: bytes) -> None:
        record = codec.read(line)
        if isinstance(record, BadLine) or not record.tokens:
            return
        project = record.via if record.via and record.via.startswith("project:") else ""
        part = _day_at(record.timestamp // _QUARTER), record.session_id, project
        self.tokens[part] += record.tokens
        self.times[part] += 1


class Spending:
    """Keeps what was added up, for the next look."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._sums: dict[str, _LogSums] = {}

    def describe_spending(self, roster: Roster) -> dict[str, Any]:
        """Return the tables of a page. ``spending_goes_on``: another look reads more."""
        archive = self._mailbox.archive
        logs = [self._mailbox.logs.reads, *(archive.reads_log(month) for month in reversed(archive.months()))]
        left = MOST_READ
        for log in logs:
            left = self._sums.setdefault(log.path, _LogSums(GrowingLog(log))).read_on(left)
            if not left:
                break
        there = {log.path for log in logs}
        self._sums = {path: sums for path, sums in self._sums.items() if path in there}
        return {
            "spending_goes_on": not left,
            "spent": sum(sums.tokens.total() for sums in self._sums.values()),
            "spending": [
                ("Agent", self._rows(lambda part: presenters.party_name(part[1], roster), MOST_AGENTS)),
                ("Day", self._rows(lambda part: part[0], MOST_DAYS, newest=True)),
                ("Project", self._rows(lambda part: _project_of(part, roster), MOST_AGENTS)),
            ],
        }

    def _rows(self, named: Callable[[Part], str], most: int, *, newest: bool = False) -> list[tuple[str, int, int]]:
        """Return (name, deliveries, tokens), the most expensive or the newest first, and one row of the rest."""
        times, tokens = Counter[str](), Counter[str]()
        for sums in self._sums.values():
            for part, spent in sums.tokens.items():
                name = named(part)
                times[name] += sums.times[part]
                tokens[name] += spent
        names = sorted(tokens, reverse=True) if newest else [name for name, _ in tokens.most_common()]
        rows = [(name, times[name], tokens[name]) for name in names]
        if len(rows) > most:
            rest = rows[most:]
            rows[most:] = [(f"{len(rest)} others", sum(row[1] for row in rest), sum(row[2] for row in rest))]
        return rows


def _project_of(part: Part, roster: Roster) -> str:
    """Return the project that a part counts for: the one by whose address the mail came, else its reader's only one."""
    _, reader, via = part
    agent = roster.get(reader)
    mine = [tag for tag in agent.tags if tag.startswith("project:")] if agent is not None and not via else []
    address = via or (mine[0] if len(mine) == 1 else "")
    return presenters.channel_label(address) if address else "no project"


@lru_cache(MOST_READ)
def _day_at(quarter: int) -> str:
    """Return the local day of a quarter of an hour since 1970: no day begins within one."""
    return time.strftime("%Y-%m-%d", time.localtime(quarter * _QUARTER / 1000))
