"""The inbox: everything that waits for the person, one line each, in groups by what it stops.

Belongs here: the groups, their order, and the lines. ``details`` has what is shown beside the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..control_plane import control_log
from ..core.control.control_requests import ControlRequest
from ..core.instant import MINUTE
from ..core.records import USER, Message, Record
from ..core.text import clipped
from ..errors import Refused
from . import cards, decided_requests, presenters
from .cards import CardWords
from .desk import Looking, Params
from .presenters import Face, Unchanged
from .unread import LONGEST

Asked = tuple[ControlRequest, list[str]]

MOST_UNVERIFIED = 20
"""Requests without a proof that a page shows: any program may write hundreds."""
TURN = 8
"""Requests of one agent that are placed by their deadlines; its further ones come after those of all others."""
BEFORE = 2 * MINUTE
"""Milliseconds before its deadline at which a line is back that was put off."""
SOON = 10 * 60_000
"""Milliseconds before a deadline in which it is marked."""


class InboxLine(Record):
    """A line. ``about``: its second line. ``time``: what is left, or when it came. ``may_choose``: it can be decided
    together with others."""

    key: str
    message_id: str
    face: Face
    who: str
    saying: CardWords
    about: str
    time: str
    at: int
    expires: int | None = None
    is_soon: bool = False
    request: str = ""
    may_choose: bool = False


class InboxGroup(Record):
    """Lines that wait for one reason. ``is_folded``: they are out of sight until one asks."""

    key: str
    title: str
    hint: str
    count: int
    entries: tuple[InboxLine, ...]
    is_folded: bool = False


def view_inbox(now: Looking, params: Params) -> dict[str, Any]:
    """Return what waits for the person, and what waits for others, in groups."""
    letters = [item.message for item in now.unread_letters()]
    asking = [*(m for m in letters if m.ack), *_still_owed(now, {m.id for m in letters})]
    news = [m for m in letters if not m.ack]
    mine = {m.id for m in (*letters, *asking)}
    later = now.unread.list_put_off()
    waiting = mine | {request.message_id for request in now.open_requests()}
    put_off = [until for message_id, until in later.items() if message_id in waiting]
    asking, news = ([m for m in mail if m.id not in later] for mail in (asking, news))
    unread = [m for m in now.survey.unread or () if m.id not in mine and USER not in m.recipients]
    stops, unverified, others = group_requests(now, later)
    groups = [
        stops,
        InboxGroup("asks", "Asks you", "by mail", len(asking), _list_mail(now, asking)),
        unverified,
        InboxGroup("know", "To know", "", len(news), _list_mail(now, news)),
        others,
        InboxGroup(
            "unread", "Nobody has read it", "mail to others", len(unread), _list_mail(now, unread[::-1], True), True
        ),
    ]
    groups = [group for group in groups if group.count]
    shown = [entry for group in groups if not group.is_folded for entry in group.entries]
    return {
        "title": "Inbox",
        "groups": groups,
        "chosen": params.get("open") or (shown[0].message_id if shown else ""),
        "reasons": decided_requests.latest_reasons(control_log.of(now.mailbox).requests.values()),
        "put_off": len(put_off),
        "again": (min(put_off) - now.mailbox.now()) // 1000 + 1 if put_off else "",
        "read_at_once": [m.id for m in news[: decided_requests.MOST]],
    }


def put_off(now: Looking, fields: Params) -> str:
    """Put a line off for an hour, or until its deadline is near; without an ``id`` have all of them back.

    Raise ``Refused`` if its deadline is near."""
    message_id, clock = fields.get("id", ""), now.mailbox.now()
    if not message_id:
        had = now.unread.list_put_off()
        now.unread.end_put_off()
        return "Everything that you put off is here again." if had else Unchanged("Nothing was put off.")
    message_id = now.mailbox.find(message_id).message.id
    request = next((one for one in now.open_requests() if one.message_id == message_id), None)
    deadline = None if request is None else expires_at(request)
    until = min(clock + LONGEST, clock + LONGEST if deadline is None else deadline - BEFORE)
    if until <= clock:
        raise Refused("its deadline is too near to put it off", "decide it now")
    now.unread.put_off(message_id, until)
    return "Put off, for an hour at most."


def _still_owed(now: Looking, unread: Collection[str]) -> list[Message]:
    """Return what the person owed at the last count, without what they answered since."""
    messages, reads = now.queries.known(message.id for message in now.survey.owed if message.id not in unread)
    lineage = now.roster.lineage(USER)
    return [message for message in messages if not reads.acked(message, lineage)]


def group_requests(now: Looking, later: Collection[str]) -> list[InboxGroup]:
    """Return the groups of open requests: the person's, those that nothing proves, and those that others decide.

    ``later``: the messages that the person put off, whose requests are in none."""
    found = (request for request in now.open_requests() if request.message_id not in later)
    asked = [(request, request.list_deciders(now.roster)) for request in found]
    mine = by_deadline([one for one in asked if one[0].proven and USER in one[1]])
    forged = [one for one in asked if not one[0].proven]
    others = by_deadline([one for one in asked if one[0].proven and USER not in one[1]])
    return [
        InboxGroup("stops", "Stops an agent", "the nearest deadline first", len(mine), _list_requests(now, mine)),
        InboxGroup("unverified", "Unverified", "nothing proves who asks", len(forged),
                   _list_requests(now, forged[:MOST_UNVERIFIED]), True),
        InboxGroup("others", "Others decide", "", len(others), _list_requests(now, others), True),
    ]  # fmt: skip


def _list_requests(now: Looking, asked: Sequence[Asked]) -> tuple[InboxLine, ...]:
    return tuple(_request_line(now, *one) for one in asked[: decided_requests.MOST])


def _list_mail(now: Looking, mail: Sequence[Message], to_others: bool = False) -> tuple[InboxLine, ...]:
    return tuple(_mail_line(now, message, to_others) for message in mail[: decided_requests.MOST])


def by_deadline(asked: Iterable[Asked]) -> list[Asked]:
    """Return requests by their deadlines. An agent's requests beyond a turn come last."""
    before: Counter[str] = Counter()
    ranked = []
    for place, one in enumerate(sorted(asked, key=lambda one: (expires_at(one[0]) or float("inf"), one[0].asked))):
        ranked.append((before[one[0].asker] // TURN, place, one))
        before[one[0].asker] += 1
    return [one for *_, one in sorted(ranked, key=lambda found: found[:2])]


def expires_at(request: ControlRequest) -> int | None:
    """Return the instant (ms) after which no answer to a request counts; None without one."""
    return getattr(request.payload, "expires", None)


def _request_line(now: Looking, request: ControlRequest, deciders: Sequence[str]) -> InboxLine:
    roster, clock = now.roster, now.mailbox.now()
    expires, name = expires_at(request), presenters.party_name(request.asker, roster)
    saying, mine = cards.describe_request(request, roster), USER in deciders
    about = [presenters.one_line(getattr(request.payload, "reason", ""))]
    about = [f"“{about[0]}”"] if about[0] else [presenters.one_line(saying.path)]
    if not mine:
        about.insert(0, f"{', '.join(presenters.party_name(who, roster) for who in deciders)} decides")
    return InboxLine(
        key=f"r-{request.id}",
        message_id=request.message_id,
        face=presenters.face_of(request.asker, name),
        who=name if request.proven else f"{name} (unverified)",
        saying=saying,
        about=clipped(" · ".join(filter(None, about)), 140),
        time="no limit" if expires is None else presenters.time_left(expires - clock),
        at=request.asked,
        expires=expires,
        is_soon=expires is not None and expires - clock < SOON,
        request=request.id,
        may_choose=request.proven and mine and cards.may_decide(request, clock, roster),
    )


def _mail_line(now: Looking, message: Message, to_others: bool) -> InboxLine:
    roster = now.roster
    name = presenters.sender_name(message, roster)
    text = clipped(presenters.one_line(message.content[:600]), 140)
    title = presenters.title_of(message)
    to = presenters.name_addresses(message.recipients[:3], roster) if to_others else ""
    about = " · ".join(filter(None, (f"to {to}" if to else "", text if message.subject else "")))
    return InboxLine(
        key=f"m-{message.id}",
        message_id=message.id,
        face=presenters.face_of(message.sender, name),
        who=name,
        saying=CardWords(title),
        about=about,
        time=presenters.local_moment(message.timestamp, now.mailbox.now()),
        at=message.timestamp,
    )
