"""A channel's topics, and the conversations across all channels: every topic and every direct talk.

Belongs here: from the newest messages to topics and talks, the newest first, with what is unread in each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core import conversations
from ..core.records import USER, Message, Record
from ..mailbox.mail_pages import Digest
from ..mailbox.selection import Selection
from . import presenters, rail, unread_mail
from .desk import Looking, Params

MOST_TOPICS = 60
"""Topics of a channel that its page lists, beside the one that it shows."""
PLAIN = "no topic"
"""The name of mail without any subject."""
MOST_TALKS = 100
"""Conversations that their page lists."""
EACH = 40
"""The newest messages of a channel that are looked at."""
MOST_DIRECT = 200
"""The newest messages from or to the person that are looked at."""
MOST_FACES = 4


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


def view_talks(now: Looking, params: Params) -> dict[str, Any]:
    """Return the conversations, the newest first; ``only``: those with new mail alone."""
    only = params.get("only", "")
    places = [channel.address for channel in rail.choose_channels(now, rail.MOST_PLACES)[0]]
    newest = now.queries.latest(places, now.mailbox.now(), EACH, EACH)
    direct = now.queries.page(Selection(person=True, kind="mail"), None, MOST_DIRECT).messages
    found = sorted([*_list_topics(now, newest), *_list_direct(now, direct)], key=lambda one: -one["at"])
    is_cut = len(direct) >= MOST_DIRECT or len(newest) >= rail.MOST_PLACES or EACH in map(len, newest.values())
    chosen = [one for one in found if one["new"] or not only]
    return {
        "title": "Conversations",
        "talks": chosen[:MOST_TALKS],
        "more": max(len(chosen) - MOST_TALKS, 0),
        "only": only,
        "looked_at": {"channels": len(newest), "each": EACH, "direct": MOST_DIRECT} if is_cut else None,
        "new": sum(bool(one["new"]) for one in found),
    }


def _list_topics(now: Looking, newest: Mapping[str, list[Digest]]) -> Iterator[dict[str, Any]]:
    """Yield the topics, each with all answers; those that went to one agent alone are never new."""
    marks = now.unread.load_marks()
    for address, digests in newest.items():
        new = set() if address in marks.muted else now.unread.new_ids(address, (one for one in digests if one.is_own))
        for topic, said in group_digests(digests).items():
            title = title_of(said[-1].topic)
            count = f"{len(said)}{'+' if len(digests) == EACH else ''}"
            href, fresh = topic_href(address, topic), sum(one.id in new for one in said)
            yield _talk(now, href, presenters.channel_label(address), title, said, count, fresh)


def _list_direct(now: Looking, newest: Sequence[Message]) -> Iterator[dict[str, Any]]:
    roster, muted = now.roster, now.unread.load_marks().muted
    new = unread_mail.count_letters(now.unread_letters(), roster)
    by_agent: dict[str, list[Message]] = {}
    for message in reversed(newest):
        for who in _others(message, roster.heirs):
            by_agent.setdefault(who, []).append(message)
    for who, said in by_agent.items():
        if roster.get(who) is None:
            continue
        name, title = presenters.party_name(who, roster), presenters.title_of(said[0])
        href = presenters.page_link("/direct", **{"with": who})
        yield _talk(now, href, name, title, said, str(len(said)), 0 if f"@{who}" in muted else new[who])


def _others(message: Message, heirs: Any) -> set[str]:
    """Return the agents with whom the person talks by a message alone."""
    if USER in message.recipients:
        return {*(heirs(message.sender) or [message.sender])} - {USER}
    return {one for one in message.recipients if not presenters.is_channel(one)}


def _talk(
    now: Looking, href: str, place: str, title: str, said: Sequence[Digest] | Sequence[Message], count: str, new: int
) -> dict[str, Any]:
    """Return a conversation as a line: its place and topic, who speaks in it, its messages and the new ones."""
    speakers = [*dict.fromkeys(one.sender for one in said)]
    names = [presenters.party_name(one, now.roster) for one in speakers]
    return {
        "href": href,
        "place": place,
        "title": title,
        "faces": [presenters.face_of(who, name) for who, name in zip(speakers, names, strict=True)][:MOST_FACES],
        "names": ", ".join(names[:8]),
        "last": names[0],
        "count": count,
        "new": new,
        "at": said[0].timestamp,
        "moment": presenters.local_moment(said[0].timestamp, now.mailbox.now()),
    }
