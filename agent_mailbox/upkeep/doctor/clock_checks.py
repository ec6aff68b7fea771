"""Check a log's timestamps for clocks that jumped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import instant
from ...core.findings import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOCK_SLACK = 5 * 60_000
"""Milliseconds that a timestamp may be before an earlier line's, or in the future, without a note: processes wait for
locks, machines set their clocks."""


class Clock:
    """Watches a log's timestamps in log order. An archive (``now`` None) is not checked."""

    def __init__(self, path: str, now: int | None) -> None:
        self._path = path
        self._now = now
        self._latest = 0
        self._back = [0, 0, 0, 0]  # count, first line, its timestamp, the latest before
        self._ahead = [0, 0, 0]

    def take_timestamp(self, line: int, timestamp: int) -> None:
        """Take the next record's timestamp (ms)."""
        if self._now is None:
            return
        if timestamp > self._now + CLOCK_SLACK:
            self._ahead = [self._ahead[0] + 1, *(self._ahead[1:] if self._ahead[0] else (line, timestamp))]
        elif timestamp < self._latest - CLOCK_SLACK:
            first = self._back[1:] if self._back[0] else (line, timestamp, self._latest)
            self._back = [self._back[0] + 1, *first]
        else:
            self._latest = max(self._latest, timestamp)

    def clock_notes(self) -> Iterator[Problem]:
        """Yield the notes."""
        if self._back[0]:
            count, line, said, before = self._back
            what = (
                f"the clock went back here, from {instant.text(before)} to {instant.text(said)} ({_count_lines(count)})"
            )
            yield Problem(self._path, line, f"{what}; harmless, because log order counts", note=True)
        if self._ahead[0]:
            count, line, said = self._ahead
            what = (
                f"dated in the future, {instant.text(said)} ({_count_lines(count)}): it expires late; check the clock"
            )
            yield Problem(self._path, line, what, note=True)


def _count_lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
