"""The person's own marks: how far they have seen each channel, which places are pinned or muted, what is put off.

Belongs here: an instant for a channel, and for a topic of it where that is further. No agent is told of a mark, and
nothing counts as read by one. A place is a channel's address, or ``@id`` for the talk with an agent.
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


PINNED, MUTED = "pinned", "muted"
"""The lists of places."""


class Marks(Record):
    """Everything up to ``since`` (ms) is seen, and each channel or topic up to its own instant.

    ``pinned``: the places that come first. ``muted``: those whose new mail is not counted. ``later``: the ids of
    messages that the person put off, each until an instant."""

    since: int
    until: Mapping[str, int] = {}
    pinned: tuple[str, ...] = ()
    muted: tuple[str, ...] = ()
    later: Mapping[str, int] = {}

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
        return self.replace(until=dict([*rest.items(), (key, at)][-MOST:]))

    def placed(self, kind: str, place: str, is_on: bool) -> Marks:
        """Return the marks with a place in the list of a kind, or out of it."""
        rest = tuple(other for other in getattr(self, kind) if other != place)
        return self.replace(**{kind: (*rest, place)[-MOST:] if is_on else rest})

    def put_off(self, message_id: str, until: int) -> Marks:
        """Return the marks with a message put off until an instant."""
        return self.replace(later=dict([*self.later.items(), (message_id, until)][-MOST:]))


def _key(address: str, topic: str) -> str:
    return f"{address}\n{topic[:LONGEST]}"


def written(marks: Marks) -> bytes:
    """Return the marks as a file's content."""
    lists = {kind: list(getattr(marks, kind)) for kind in (PINNED, MUTED)}
    instants = {"until": dict(marks.until), "later": dict(marks.later)}
    return codec.dumps({"since": marks.since, **instants, **lists}).encode("utf-8", "replace") + b"\n"


def read(content: bytes) -> Marks | None:
    """Return the marks of a file's content; None if it holds none."""
    found = codec.parse(content)
    if not isinstance(found, dict) or not isinstance(found.get("since"), int):
        return None
    until, later = (_instants(found.get(key)) for key in ("until", "later"))
    pinned, muted = (_texts(found.get(kind)) for kind in (PINNED, MUTED))
    return Marks(found["since"], until, pinned, muted, later)


def _instants(given: object) -> dict[str, int]:
    return {key: at for key, at in given.items() if isinstance(at, int)} if isinstance(given, dict) else {}


def _texts(given: object) -> tuple[str, ...]:
    return tuple(one for one in given if isinstance(one, str)) if isinstance(given, list) else ()
