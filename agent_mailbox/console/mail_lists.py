"""The mail that a page lists: which, its rows, and the ways to older and newer ones.

Belongs here: what every page with a list of mail shares. ``views`` has the pages.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from ..core import instant, words
from ..core.records import Message
from ..core.roster import Roster
from ..errors import MailboxError, Malformed
from ..mailbox.mail_pages import Page
from ..mailbox.selection import Position, Selection, chooses
from . import presenters, topics, unread_mail
from .desk import Looking, Params

PAGE = 50
"""Messages per page: two screens."""
ALL_TIME = 10**15 - 1
SHORTEST = 3
"""Letters from which a word is also the beginning of others."""


def selection_of_page(path: str, params: Params) -> Selection | None:
    """Return the mail that a page lists, or None; raises ``Malformed``."""
    if path == "/channel":
        return Selection(address=params.get("to", ""))
    if path == "/direct":
        return Selection(address=params.get("with", ""), person=True)
    if path == "/agent":
        return Selection(reader=params.get("id", ""))
    if path == "/archive":
        return Selection(kind="mail" if params.get("control") == "off" else "")
    if path == "/search":
        since, until = (parse_date(params.get(name, "")) for name in ("since", "until"))
        asked = parse_query(params.get("q", ""))
        return asked.replace(address=params.get("with", "").strip(), since=since, until=until)
    return None


def parse_query(typed: str) -> Selection:
    """Return the selection that a query asks for; raises ``Malformed`` for an unknown ``is:``.

    A word in double quotes is looked for as a whole word.
    """
    plain: list[str] = []
    found = Selection()
    for word in typed.split():
        name, _, value = word.partition(":")
        if name == "from" and value:
            found = found.replace(sender=value)
        elif name in ("to", "in") and value:
            found = found.replace(recipient="all" if value == "#all" else value)
        elif name == "is" and value:
            found = _apply_kind(found, value)
        else:
            plain.append(f"{word}*" if len(word) >= SHORTEST and not word.endswith(('"', "*")) else word)
    return found.replace(query=" ".join(plain))


def _in_any_case(word: str, roster: Roster) -> str:
    """Return the agent's id for a name that is spelt in another case, if one agent has it; else the word."""
    if not word or ":" in word or any(agent.name == word for agent in roster.agents.values()):
        return word
    alike = [a.session_id for a in roster.agents.values() if (a.name or "").casefold() == word.casefold()]
    return alike[0] if len(alike) == 1 else word


def _apply_kind(found: Selection, value: str) -> Selection:
    if value == "ack":
        return found.replace(asks=True)
    if value in ("control", "mail"):
        return found.replace(kind=value)
    raise Malformed(f"unknown filter: is:{value}", "write is:ack, is:control or is:mail")


def parse_date(given: str) -> int | None:
    """Return a date field's local day or minute in ms; None if empty."""
    if not given:
        return None
    for form in ("%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return int(time.mktime(time.strptime(given, form)) * 1000)
        except (ValueError, OverflowError):
            continue
    raise Malformed(f"not a date: {given!r}", "write 2026-03-16 or 2026-03-16T14:30")


def list_mail(now: Looking, path: str, params: Params) -> dict[str, Any]:
    """Return the rows of a page that lists mail, and the link to older ones."""
    chosen = selection_of_page(path, params)
    assert chosen is not None
    topic, roster, later = topics.topic_of_param(params.get("topic")), now.roster, None
    if path == "/search":
        named = {name: getattr(chosen, name) for name in ("address", "sender", "recipient")}
        chosen = chosen.replace(**{name: _in_any_case(word, roster) for name, word in named.items()})

    def look_up_page(before: Position | None) -> Page:
        return read_page(now, path, chosen, topic, before, PAGE)

    before = _parse_place(params.get("before", ""))
    if before is None and now.queries.page(Selection(since=dated_later(now)), None, 1).messages:
        # A line of another year would stand below all news, for years.
        if any(m.timestamp >= dated_later(now) for m in look_up_page(None).messages):
            later = presenters.page_link(path, **{**params, "open": None, "before": f"{ALL_TIME}.z"})
        page = look_up_page(Position(dated_later(now), ""))
    else:
        page = look_up_page(before)
    if before is None and params.get("open"):
        before = _just_after(now, chosen, params["open"], {m.id for m in page.messages})
        page = look_up_page(before) if before is not None else page
    older = None
    if page.before is not None:
        place = f"{page.before.timestamp}.{page.before.id}"
        older = presenters.page_link(path, **{**params, "open": None, "before": place})
    listed = {m.id for m in page.messages}
    waiting = [m for m in now.mailbox.queued() if m.id not in listed] if before is None else []
    waiting = [m for m in waiting if belongs_to_page(now, m, path, chosen, topic)]
    shown = [*page.messages, *waiting]
    said, unsent = unread_mail.describe_parents(now, shown), now.mailbox.unsent()
    sought = words.phrases(chosen.query)
    rows: list[dict[str, Any]] = []
    for m in shown:
        rows.append(
            presenters.message_row(m, page.reads, roster, page.replies.get(m.id, 0), home=chosen.address, said=said,
                      after=rows[-1] if rows else None, sought=sought, unsent=unsent.get(m.id, ""))
        )  # fmt: skip
    newer = None
    if before is not None and rows and path != "/search":
        place_of = {**params, "page": path, "after": rows[-1]["at"], "open": None, "before": None}
        newer = presenters.page_link("/jump", **place_of)
    return {
        "rows": rows,
        "older": older,
        "newer": newer,
        "is_newest": before is None,
        "later": later,
    }


def read_page(
    now: Looking, path: str, chosen: Selection, topic: str | None, before: Position | None, most: int
) -> Page:
    """Return some ``most`` messages of a list before a position: a channel's by its topics, other lists as chosen."""
    if path == "/channel":
        return now.queries.channel(chosen.address, before, most, topic)
    return now.queries.page(chosen, before, most)


def belongs_to_page(now: Looking, message: Message, path: str, chosen: Selection, topic: str | None) -> bool:
    """Return whether a message that has just come belongs to a page that lists mail."""
    try:
        if path == "/channel":
            return now.queries.is_in(message, chosen.address, topic)
        return chooses(chosen, now.roster)(message)
    except MailboxError:  # the page's address matches no agent, or none any more
        return False


def dated_later(now: Looking) -> int:
    """Return the instant (ms) from which a message is dated in the future: clocks differ by minutes."""
    return now.mailbox.now() + 10 * instant.MINUTE


def _just_after(now: Looking, chosen: Selection, message_id: str, listed: Collection[str]) -> Position | None:
    """Return the position behind an opened message that the list has but its newest page has not."""
    found, _ = now.queries.known([message_id] if message_id not in listed else [])
    belongs = chooses(chosen, now.roster)
    return next((Position(m.timestamp + 1, "") for m in found if belongs(m)), None)


def _parse_place(given: str) -> Position | None:
    stamp, _, message_id = given.partition(".")
    at = presenters.whole_number(stamp)
    return Position(at, message_id) if at is not None and message_id else None
