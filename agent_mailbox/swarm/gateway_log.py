"""The log of a serving gateway: one JSON object a line on standard error. Rotation is the system's.

Belongs here: the form, the levels, and how often. Each kind of event gets ``MOST`` lines a minute; the next line of the
kind says how many were left out. Lines bear no text of mail, no token and no key. An error is told by its type and
place: its words may quote what was sent.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from ..core import instant
from .protocol import wire

MOST = 20
"""Most lines of one kind in a minute."""
MINUTE = 60.0
MAX_KINDS = 256
MAX_TEXT = 200
FRAMES = 8
LOG = logging.getLogger("agent_mailbox.swarm")
LOG.addHandler(logging.NullHandler())  # a command that serves nothing has no log: else Python would print the bare word


def log_event(level: int, event: str, **about: object) -> None:
    """Say that something happened. ``event`` is a fixed word, ``about`` numbers and short texts."""
    if LOG.isEnabledFor(level):
        LOG.log(level, event, extra={"about": about})


def tell_defect(event: str, error: BaseException) -> None:
    """Say that something failed that should not have: its type and place, never its words."""
    log_event(logging.ERROR, event, **describe_error(error))


def describe_error(error: BaseException) -> dict[str, object]:
    """Return the type of an error, and the places it came through."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}" for frame in frames]
    return {"error": type(error).__name__, "places": " ".join(places)}


class SparingLogFilter(logging.Filter):
    """Lets ``MOST`` lines of a kind through in a minute, and counts the rest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}
        self._silent: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written; the first after a silence has the number of those left out."""
        kind = str(record.msg) if record.name == LOG.name else record.name
        if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
            kind = ""
        now = self._clock()
        since, count = self._kinds.get(kind, (now, 0))
        if now - since >= MINUTE:
            since, count = now, 0
        self._kinds[kind] = since, count + 1
        if count >= MOST:
            self._silent[kind] = self._silent.get(kind, 0) + 1
            return False
        record.__dict__["suppressed"] = self._silent.pop(kind, 0)
        return True


class JsonLogFormatter(logging.Formatter):
    """One JSON object: ``at``, ``level``, ``event``, and what the event is about."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. Another library's words are left out at an error: they may quote what was sent."""
        ours = record.name == LOG.name
        event = str(record.msg) if ours else "library"
        line: dict[str, Any] = {"at": instant.text(int(record.created * 1000)), "level": record.levelname.lower()}
        about: dict[str, object] = dict(getattr(record, "about", {})) if ours else {"library": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            about.update(describe_error(record.exc_info[1]))
        suppressed = getattr(record, "suppressed", 0)
        if suppressed:
            about["suppressed"] = suppressed
        return wire.dump_json(
            {**line, "event": event, **{name: _shorten_value(value) for name, value in about.items()}}
        )


def _shorten_value(value: object) -> object:
    return value if isinstance(value, int | float) or value is None else str(value)[:MAX_TEXT]


def start_log(level: str, stream: TextIO | None = None) -> None:
    """Write the events of this process to standard error from now on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLogFormatter())
    handler.addFilter(SparingLogFilter())
    logging.raiseExceptions = False  # who closed standard error wants no lines
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOG.setLevel(level.upper())


def on_loop(_: object, context: dict[str, Any]) -> None:
    """Take what the event loop would print for each connection that breaks."""
    error = context.get("exception")
    if isinstance(error, BaseException) and not isinstance(error, OSError):
        tell_defect("task_failed", error)
    else:
        log_event(logging.DEBUG, "connection_broke")
