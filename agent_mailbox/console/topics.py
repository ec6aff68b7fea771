"""A channel's topics for its page.

Belongs here: from the newest messages of a channel to its topics, the newest first, with what is unread in each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..core import conversations
from ..core.records import Record
from ..mailbox.mail_pages import Digest
from . import presenters

MOST_TOPICS = 60
"""Topics of a channel that its page lists, beside the one that it shows."""
PLAIN = "no topic"
"""The name of mail without any subject."""


class Topic(Record):
    """A topic: its name, its page, its newest messages' count and ids, and how many of them the person has not seen."""

    title: str
    href: str
    count: int
    unread: int
    is_chosen: bool
    ids: frozenset[str]


def list_topics(address: str, digests: Iterable[Digest], new: Collection[str], chosen: str | None) -> list[Topic]:
    """Return the topics of these messages, which are newest first.

    ``new``: the ids of those that the person has not seen. ``chosen``: the topic that the page shows."""
    found = group_digests(digests)
    wanted = None if chosen is None else conversations.folded(chosen)
    if wanted is not None:
        found.setdefault(wanted, [])
    return [
        Topic(
            title_of(said[-1].topic if said else chosen or ""),
            topic_href(address, folded),
            len(said),
            sum(digest.id in new for digest in said),
            folded == wanted,
            frozenset(digest.id for digest in said),
        )
        for place, (folded, said) in enumerate(found.items())
        if place < MOST_TOPICS or folded == wanted
    ]


def group_digests(digests: Iterable[Digest]) -> dict[str, list[Digest]]:
    """Return messages by their topics (folded)."""
    found: dict[str, list[Digest]] = {}
    for digest in digests:
        found.setdefault(conversations.folded(digest.topic), []).append(digest)
    return found


def title_of(topic: str) -> str:
    """Return a topic's name for a page."""
    return presenters.one_line(topic) or PLAIN


def topic_href(address: str, topic: str) -> str:
    """Return the page of a channel's topic; a topic without a name has a page, too."""
    return presenters.page_link("/channel", to=address, topic=topic or "-")


def topic_of_param(param: str | None) -> str | None:
    """Return the topic that a page's address names; None for the whole channel."""
    return None if not param else "" if param == "-" else param
