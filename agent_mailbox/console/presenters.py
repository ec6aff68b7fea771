"""Records as a page shows them: messages as rows, addresses as channels, receipts.

Belongs here: words, names and times. They contain untrusted text: templates escape it, ``visible`` escapes unprintable
characters, ``markup`` turns bodies into HTML.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from ..core import frame, message_reads, reach, references
from ..core.address import ALL, is_remote, is_shown
from ..core.control import message_text, messages, summary
from ..core.message_reads import Reads
from ..core.records import USER, Message, Read, Record
from ..core.roster import DEAD, Agent, Roster
from ..core.text import clipped, visible
from ..errors import Malformed
from ..mailbox import arrivals
from ..mailbox.open_mailbox import OpenMailbox
from ..mailbox.sending import Sent
from . import markup, receipt_words
from .beside import conflict_lines, links_of
from .receipt_words import Receipt

REMOTE = "remote"
"""Shown instead of the roles of an agent elsewhere, which no roster here records."""


class Unchanged(str):
    """The words of an action that had nothing to do: what it was to bring about was so before."""


class Channel(Record):
    """An address as a channel, such as ``#inscription`` for ``project:inscription``: its count of members, its page."""

    address: str
    label: str
    kind: str
    members: int
    href: str


def page_link(path: str, /, **params: str | int | None) -> str:
    """Return the address of a console page. A browser may have sent any name of a parameter."""
    query = urlencode({key: value for key, value in params.items() if value not in (None, "")})
    return f"{path}?{query}" if query else path


def clock_time(millis: int) -> str:
    """Return hour and minute in the local time zone, which is the person's."""
    return time.strftime("%H:%M", time.localtime(millis / 1000))


def local_day(millis: int) -> str:
    """Return the local date in words."""
    return time.strftime("%A, %-d %B %Y", time.localtime(millis / 1000))


def local_moment(millis: int, now: int) -> str:
    """Return the local time, with its day unless that is today's: ``Mon 16 Mar, 14:30``."""
    at, today = time.localtime(millis / 1000), time.localtime(now / 1000)
    form = "%H:%M" if at[:3] == today[:3] else "%a %-d %b, %H:%M" if at[0] == today[0] else "%-d %b %Y, %H:%M"
    return time.strftime(form, at)


def exact_moment(millis: int) -> str:
    """Return the local day, time and time zone, for a tooltip."""
    return time.strftime("%A, %-d %B %Y, %H:%M:%S %Z", time.localtime(millis / 1000))


def iso_instant(millis: int) -> str:
    """Return the instant in ISO 8601, for machines."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(millis / 1000))


def utc_offset() -> int:
    """Return the minutes by which this machine's clock on the wall is ahead of UTC."""
    return round((time.localtime().tm_gmtoff or 0) / 60)


def elapsed_time(millis: int, now: int) -> str:
    """Return the elapsed time in one unit: ``3 min``."""
    seconds = max(now - millis, 0) // 1000
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def whole_number(given: str) -> int | None:
    """Return the number that a form or an address has; None if it is none, or longer than that of an instant (ms)."""
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else None


def parse_instant(given: str) -> int:
    """Return an instant (ms) that a page gave to a form; raise ``Malformed``."""
    if (found := whole_number(given)) is None:
        raise Malformed(f"not an instant: {given!r}", "reload the page")
    return found


def one_line(text: str) -> str:
    """Return untrusted text on one line."""
    return visible(" ".join(text.split()))


def end_sentence(text: str) -> str:
    """Return a text with the stop that ends a sentence, if it has none."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def party_name(session_id: str, roster: Roster, person: str = "you") -> str:
    """Return a party's name for a page. An agent whose name reads as the person's is shown with its id."""
    if session_id == USER:
        return person
    agent, called = roster.get(session_id), frame.name_of(session_id, roster)
    given = (agent and agent.name) or session_id
    taken = is_shown(unicodedata.normalize("NFKC", given))
    return f"{called} (agent {frame.short(session_id)})" if taken else called


def agent_words(agents: Iterable[Agent]) -> list[tuple[str, str]]:
    """Return the word by which one writes each agent in a form, with its id where that is another."""
    return sorted((agent.name or agent.session_id, agent.session_id if agent.name else "") for agent in agents)


TONES = 12
"""The colours by which parties are told apart, beside their names."""


class Face(Record):
    """A party's initials, and the number of its colour."""

    initials: str
    tone: int


def face_of(session_id: str, name: str) -> Face:
    """Return a party's face; its colour stays with its id."""
    words = [word for word in re.split(r"[^\w]+", name) if word]
    initials = "".join(word[0] for word in words[:2]) if len(words) > 1 else name[:1]
    return Face(visible(initials).upper()[:2], zlib.crc32(session_id.encode("utf-8", "replace")) % TONES)


def time_left(millis: int) -> str:
    """Return a short time, exact where it matters: ``40 s``, ``98 min``, ``5 h``."""
    seconds = max(millis, 0) // 1000
    for most, size, unit in ((120, 1, "s"), (120 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < most:
            return f"{seconds // size} {unit}"
    return f"{seconds // 86400} d"


def sender_name(message: Message, roster: Roster, person: str = "you") -> str:
    """Return a message's sender for a page; one whose word would count is marked if nothing proves it."""
    if not frame.is_unverified(message, roster):
        return party_name(message.sender, roster, person)
    return f"{party_name(message.sender, roster, USER)} (unverified)"


def living_agents(roster: Roster) -> list[Agent]:
    return [agent for agent in roster.agents.values() if agent.state != DEAD]


# -- addresses --------------------------------------------------------------------------------------------------------


def is_channel(address: str) -> bool:
    """Return whether an address is a channel's, and no agent's."""
    return address == ALL or ":" in address


def channel_label(address: str) -> str:
    """Return an address as a channel's label: ``#inscription`` of a project, ``#architect (role)`` of all else."""
    kind, _, name = address.partition(":")
    return f"#{visible(name or address)}" + (f" ({visible(kind)})" if name and kind != "project" else "")


def list_channels(roster: Roster) -> list[Channel]:
    """Return all channels: ``all``, every role ever held, the tags of living and frozen agents."""
    there = living_agents(roster)
    members = Counter(tag for agent in there for tag in {*agent.tags})
    tags = members.keys() | roster.roles_ever
    found = [_as_channel(tag, visible(tag.partition(":")[0]), members[tag]) for tag in tags]
    found.sort(key=lambda channel: (channel.kind != "project", channel.kind, channel.label))
    return [_as_channel(ALL, "everyone", len(there)), *found]


def _as_channel(address: str, kind: str, members: int) -> Channel:
    return Channel(address, channel_label(address), kind, members, page_link("/channel", to=address))


def name_addresses(addresses: Iterable[str], roster: Roster) -> str:
    """Return addresses in words, a channel with its count of members: ``Ada, #inscription (7 agents)``."""
    found = []
    for address in addresses:
        if not is_channel(address):
            found.append(party_name(address, roster))
            continue
        count = sum(address in (ALL, *agent.tags) for agent in living_agents(roster))
        found.append(f"{channel_label(address)} ({count} {'agent' if count == 1 else 'agents'})")
    return ", ".join(found)


def name_address(address: str, roster: Roster) -> str:
    return channel_label(address) if is_channel(address) else party_name(address, roster)


def describe_sent(sent: Sent, desk: OpenMailbox, roster: Roster) -> str:
    """Return when each reader will see a sent message, and its warnings, as sentences."""
    arrival = arrivals.find_arrival(desk, sent.message, sent.delivery, roster, queued=bool(sent.queued))
    where = [f"{label}: {names}" for label, names in reach.list_arrival(arrival, roster, name_address)] or [
        frame.unreached(sent.message)
    ]
    said = (f"sent to {frame.target_of(sent.message, roster)}", *where, *sent.warnings)
    return " ".join(end_sentence(f"{sentence[:1].upper()}{sentence[1:]}") for sentence in said)


def rail_keys(message: Message, roster: Roster) -> set[str]:
    """Return the rail entries that a message belongs to: channel addresses, and ``@id`` for direct threads."""
    found = {address for address in message.recipients if is_channel(address)}
    others = {message.sender, *message.recipients} - {USER} - found
    if message.sender == USER or USER in message.recipients:
        found |= {f"@{heir}" for other in others for heir in (roster.heirs(other) or [other])}
    return found


def _target_link(address: str, roster: Roster) -> tuple[str, str]:
    if is_channel(address):
        return channel_label(address), page_link("/channel", to=address)
    if roster.get(address) is None and f"role:{address}" in roster.roles_ever:
        return channel_label(address), page_link("/channel", to=f"role:{address}")
    return party_name(address, roster), page_link("/agent", id=address)


# -- messages ---------------------------------------------------------------------------------------------------------


def receipt_of(message: Message, reads: Reads, roster: Roster) -> Receipt:
    """Return who has not seen a message, in words."""
    return receipt_words.describe_receipt(message, reads, roster, lambda who: name_address(who, roster))


def message_row(
    message: Message,
    reads: Reads,
    roster: Roster,
    replies: int = 0,
    *,
    whole: bool = False,
    home: str = "",
    said: Mapping[str, str] = MappingProxyType({}),
    after: dict[str, Any] | None = None,
    now: int | None = None,
    sought: Sequence[str] = (),
    unsent: str = "",
) -> dict[str, Any]:
    """Return a message as a row of a list.

    ``whole``: do not fold its body. ``sought``: phrases (``words.phrases``) that a search found. ``home``: the page's
    address, not repeated as the recipient. ``said``: parents in a few words, by id. ``after``: the row above.
    ``unsent``: see ``OpenMailbox.unsent``. ``now`` (ms): the row is in no list with days, so its time names its day.

    The row ``follows`` if the one above is its parent, or another answer to that. It ``asks`` for an ack if the person
    has given none. A row below with the same ``joins`` has no head of its own.
    """
    agent = roster.get(message.sender)
    is_control = message.type == "control"
    is_news = message.type == "system" and references.is_event(message)  # the subject says it all
    body, fold = ("", None) if is_control or is_news else markup.fold_body(message, whole, sought)
    roles = [REMOTE] if is_remote(message.sender) else frame.roles_of(agent)[:3] if agent is not None else []
    sender, day = sender_name(message, roster, person="You"), local_day(message.timestamp)
    is_kept_here = unsent and not reads.of(message.id)
    return {
        "id": message.id,
        "sender": sender,
        "sender_id": message.sender,
        "roles": ", ".join(roles),
        "face": face_of(message.sender, sender),
        "joins": json.dumps([message.sender, sender, message.recipients, message.thread, day]),
        "is_person": message.sender == USER and not frame.is_unverified(message, roster),
        "to": () if message.recipients == (home,) else tuple(_target_link(to, roster) for to in message.recipients[:8]),
        "at": message.timestamp,
        "clock": clock_time(message.timestamp) if now is None else local_moment(message.timestamp, now),
        "day": day,
        "subject": one_line(message.subject or ""),
        "body": body,
        "fold": fold,
        "control": control_words(message.content) if is_control else "",
        "notes": tuple(note for note in frame.notes(message) if not note.startswith("in reply")),
        "parent": message.thread,
        "parent_said": said.get(message.thread or "", "an earlier message"),
        "follows": bool(after and message.thread and message.thread in (after["id"], after["parent"])),
        "replies": replies,
        "receipt": receipt_words.describe_unsent(unsent) if is_kept_here else receipt_of(message, reads, roster),
        "asks": message.ack and not is_control and not reads.acked(message, roster.lineage(USER)),
        "beside": links_of(message),
        "conflicts": conflict_lines(message),
    }


def control_words(content: str) -> str:
    """Return a control message in words, without our id of what it is about; its raw line has that."""
    payload = message_text.parse(content)
    told = summary.line(payload)
    if isinstance(payload, messages.Unknown):
        return told
    kind, _, said = told.partition(": ")
    return f"{kind.partition(' ')[0].replace('_', ' ')}: {said}"


def title_of(message: Message) -> str:
    """Return a message's subject, or the beginning of its text."""
    return clipped(one_line(message.subject or message.content[:400]), 80)


def receipt_rows(
    message: Message, records: Sequence[Read], reads: Reads, roster: Roster, now: int, unsent: str
) -> list[dict[str, Any]]:
    """Return a message's receipts as table rows, sending first, and then those who are to see it and have none.

    ``unsent``: see ``OpenMailbox.unsent``."""
    spelt = {"read": "read", "ack": "acknowledged", "release": "given back", "seen": "seen", "claim": "claimed"}
    empty: dict[str, Any] = dict.fromkeys(("at", "clock", "via", "cost"), "")
    sent = {"at": message.timestamp, "clock": local_moment(message.timestamp, now), "what": unsent or "sent"}
    found = [{**empty, **sent, "who": sender_name(message, roster)}]
    titles = message_reads.by_title(records)
    for record in records:
        offered = record.event == "read" and record.nonce is not None
        what = "offered" if offered else spelt.get(record.event, record.event)
        found.append(
            {
                "at": record.timestamp,
                "clock": local_moment(record.timestamp, now),
                "what": f"{what} by title" if record in titles else what,
                "who": party_name(record.session_id, roster),
                "via": visible(record.via) if record.via and ":" in record.via else "",
                "cost": f"{record.tokens} tokens" if record.tokens else "",
            }
        )
    unseen = receipt_words.list_unseen(message, reads, roster)
    return [*found, *({**empty, "what": what, "who": party_name(who, roster)} for who, what in unseen)]
