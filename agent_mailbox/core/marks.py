"""The instants up to which the person has seen the channels.

Belongs here: an instant for a channel, and for a topic of it where that is further. They are the person's own notes: no
agent is told, nothing counts as read by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import codec
from .records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 1000
"""Marks that are kept; the longest unchanged ones go first, and their channels count from the beginning on."""
LONGEST = 80
"""Characters by which a mark knows a topic."""


class Marks(Record):
    """Everything up to ``since`` (ms) is seen, and each channel or topic up to its own instant."""

    since: int
    until: Mapping[str, int] = {}

    def reached(self, address: str, topic: str | None = None) -> int:
        """Return the instant up to which a channel, or its topic (folded), is seen."""
        of_topic = 0 if topic is None else self.until.get(_key(address, topic), 0)
        return max(self.since, self.until.get(address, 0), of_topic)

    def moved(self, address: str, topic: str | None, at: int) -> Marks:
        """Return the marks with a channel, or its topic, seen up to an instant; no mark goes back."""
        key = address if topic is None else _key(address, topic)
        at = max(at, self.until.get(key, 0))
        rest = {
            other: instant
            for other, instant in self.until.items()
            if other != key and not (topic is None and instant <= at and other.startswith(f"{address}\n"))
        }
        return Marks(self.since, dict([*rest.items(), (key, at)][-MOST:]))


def _key(address: str, topic: str) -> str:
    return f"{address}\n{topic[:LONGEST]}"


def written(marks: Marks) -> bytes:
    """Return the marks as a file's content."""
    return codec.dumps({"since": marks.since, "until": dict(marks.until)}).encode("utf-8", "replace") + b"\n"


def read(content: bytes) -> Marks | None:
    """Return the marks of a file's content; None if it holds none."""
    found = codec.parse(content)
    if not isinstance(found, dict) or not isinstance(found.get("since"), int):
        return None
    until = found.get("until")
    known = until.items() if isinstance(until, dict) else ()
    return Marks(found["since"], {key: at for key, at in known if isinstance(at, int)})
