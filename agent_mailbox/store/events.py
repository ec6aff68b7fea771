"""The telemetry log: what happened to requests, modes and policies, for people and programs that look back.

Belongs here: appending to it and reading it. It is never the source of any state. So it needs neither lock nor sync,
and a failed write is ignored.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import BadLine
from ..errors import StorageFailed
from . import paths, system
from .lines import lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .logs import Logs

LIMIT = 4 << 20
"""Bytes of telemetry after which a new log begins: some twenty thousand steps."""


def note(logs: Logs, told: Mapping[str, Any]) -> None:
    """Append one event: a whole line in one write, which the system puts behind all others (``O_APPEND``)."""
    try:
        line = codec.dumps({key: value for key, value in told.items() if value not in (None, "")}).encode() + b"\n"
        fd = paths.open_file(logs.path(paths.EVENTS), system.O_WRONLY | system.O_APPEND | system.O_CREAT)
        try:
            system.write(fd, line)
        finally:
            system.close(fd)
    except (OSError, ValueError, StorageFailed):
        pass


def rotate(logs: Logs) -> None:
    """Put a log larger than ``LIMIT`` in the place of the one before; no line is lost on the way."""
    path = logs.path(paths.EVENTS)
    if system.size(path) > LIMIT:
        try:
            system.rename(path, logs.path(paths.EVENTS_BEFORE))
        except OSError:
            pass


def read(logs: Logs, start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the events from a position on, each with the position behind it; skip lines that are no event."""
    try:
        fd = paths.open_file(logs.path(paths.EVENTS), system.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        for position, line in lines_of(fd, start):
            obj = codec.parse(line)
            if not isinstance(obj, BadLine):
                yield position + len(line) + 1, obj
    finally:
        system.close(fd)
