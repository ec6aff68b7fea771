"""Channels as conversations: the mail that belongs to a channel, and its topics.

Belongs here: a channel is the mail to an address and every answer in its threads. A subject begins a topic, and answers
stay in it. Topics of one name are one topic, as in Zulip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .records import Message
    from .roster import Roster

    Parent = Callable[[str], Message | None]
    """Looks up the message of an id."""

DEEPEST = 64
"""Messages of a thread that are looked at upwards: a hostile thread may be endless."""


def upwards(message: Message, parent: Parent) -> Iterator[Message]:
    """Yield the message and those above it in its thread, nearest first."""
    one: Message | None = message
    met: set[str] = set()
    while one is not None and one.id not in met and len(met) < DEEPEST:
        yield one
        met.add(one.id)
        one = parent(one.thread) if one.thread is not None else None


def belongs(message: Message, address: str, roster: Roster, parent: Parent) -> bool:
    """Return whether the message is to the address, or answers in a thread of such mail."""
    return any(threads.exchanged((one,), address, roster) for one in upwards(message, parent))


def topic(message: Message, parent: Parent) -> str:
    """Return the subject of the message, else of the nearest one above it that has one; empty if none has."""
    return next((one.subject for one in upwards(message, parent) if one.subject), "")


def folded(subject: str) -> str:
    """Return what topics of one name share: ``Re: Schema  4`` and ``schema 4`` are one topic."""
    words = subject.casefold().split()
    while words and words[0] == "re:":
        del words[0]
    return " ".join(words)
