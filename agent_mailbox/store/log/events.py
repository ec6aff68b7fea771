"""The telemetry log: what happened to requests, modes and policies, and what woke a session, for those who look back.

Belongs here: appending to it and reading it. It is never the source of any state. So it needs neither lock nor sync,
and a failed write is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import codec, instant
from ...core.records import BadLine
from ...errors import StorageFailed
from ..files import paths, system
from ..files.small_files import open_file
from .log import Log

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from .logs import Logs

WAKE = "wake"
LIMIT = 4 << 20
"""Bytes of telemetry after which a new log begins: some twenty thousand steps."""


def note(logs: Logs, told: Mapping[str, Any]) -> None:
    """Append one event: a whole line in one write, which the system puts behind all others (``O_APPEND``)."""
    try:
        line = codec.dumps({key: value for key, value in told.items() if value not in (None, "")}).encode() + b"\n"
        fd = open_file(f"{logs.directory}/{paths.EVENTS}", system.O_WRONLY | system.O_APPEND | system.O_CREAT)
        try:
            system.write(fd, line)
        finally:
            system.close(fd)
    except (OSError, ValueError, StorageFailed):
        pass


def note_wake(logs: Logs, session_id: str, now: int, tokens: int) -> None:
    """Append that mail woke an idle session, and the tokens that the wake cost beside the mail."""
    note(logs, {"timestamp": instant.text(now), "who": session_id, "what": WAKE, "tokens": tokens})


def note_unwoken(logs: Logs, session_id: str, now: int, why: str) -> None:
    """Append that mail should have woken an idle session, and why its client did not take that."""
    note(logs, {"timestamp": instant.text(now), "who": session_id, "what": "unwoken", "why": why})


def wakes(logs: Logs, sessions: Container[str] | None) -> tuple[int, int]:
    """Return how often these sessions (None: all) were woken, and the tokens of that, as far as telemetry is kept."""
    found = [told for name in (paths.EVENTS_BEFORE, paths.EVENTS) for told in _read(logs, name)]
    costs = [
        tokens
        for told in found
        if told.get("what") == WAKE and (sessions is None or told.get("who") in sessions)
        if type(tokens := told.get("tokens")) is int and 0 <= tokens < LIMIT
    ]
    return len(costs), sum(costs)


def rotate(logs: Logs) -> None:
    """Put a log larger than ``LIMIT`` in the place of the one before; no line is lost on the way."""
    path = logs.path(paths.EVENTS)
    if system.size(path) > LIMIT:
        try:
            system.rename(path, logs.path(paths.EVENTS_BEFORE))
        except OSError:
            pass


def _read(logs: Logs, name: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a file; skip lines that are no event."""
    try:
        for _, line in Log(logs.path(name)).lines():
            obj = codec.parse(line)
            if not isinstance(obj, BadLine):
                yield obj
    except StorageFailed:
        pass
