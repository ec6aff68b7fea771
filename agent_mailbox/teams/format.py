"""An inbox of a team, as a value. Pure; bytes in, values out.

Belongs here: the format, as the founding texts have it (arrays that keep everything, with ``read`` flags) and as
Claude Code 2.1.329 writes it (``msg_id``; entries are removed once consumed), which entries are valid, and by what an
entry is known again when the array was rewritten. Nothing here raises for what a file holds: what is not valid comes
back as ``Unfit``, and never in the way of what is.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ..core import codec
from ..core.address import MAX_ID
from ..core.control import message_text, messages
from ..core.control.messages import Payload, Unknown
from ..core.naming import digest
from ..core.records import Record
from .fields import Unfit, clean, constant, kind, maybe

OURS = "agent_mailbox"
"""The key of an entry that we wrote: the id of the mailbox's message. The client shows no key it does not know."""
FROM_US = "@agent-mailbox"
"""How the sender of an entry that we wrote ends, which no member's name does."""
FIRST = "[agent-mailbox "
"""How its text begins: never with what could be protocol."""


class InboxEntry(Record):
    """One message in an inbox.

    ``key`` tells it from all others of the same inbox, whatever else the array loses or gains. ``protocol`` is the
    control plane's reading of a protocol message, None for plain text. ``ours`` is of a message that a mailbox put
    there: its id and the offer's nonce.
    """

    key: str
    sender: str
    text: str
    timestamp: str
    summary: str | None = None
    color: str | None = None
    read: bool = False
    msg_id: str | None = None
    protocol: Payload | Unknown | None = None
    ours: str | None = None


class Inbox(Record):
    """What an inbox file holds: the valid entries in order, and what was not valid. ``whole``: it is a JSON array, so
    that what is not in it is gone from it."""

    entries: tuple[InboxEntry, ...] = ()
    unfit: tuple[Unfit, ...] = ()
    whole: bool = True


def inbox(data: bytes) -> Inbox:
    """The inbox in a file's bytes. Of a half-written array the entries before the break are taken."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data[: error.start].decode("utf-8")
        return _entries(*_values(text), f"not UTF-8 at byte {error.start}")
    if not text.strip():
        return Inbox(unfit=(Unfit(None, "empty"),), whole=False)
    return _entries(*_values(text))


def is_array(data: bytes) -> bool:
    """Is it a whole JSON array, whatever is in it?"""
    try:
        return isinstance(json.loads(data.decode("utf-8"), parse_constant=constant), list)
    except (ValueError, RecursionError):
        return False


def _values(text: str) -> tuple[list[Any], str]:
    """The values of the array, and why it is not whole (empty: it is)."""
    values: list[Any] = []
    try:
        value = json.loads(text, parse_constant=constant)
    except (ValueError, RecursionError):
        pass
    else:
        return (value, "") if isinstance(value, list) else ([], f"not a JSON array but {kind(value)}")
    at = _next(text, 0)
    if text[at : at + 1] != "[":
        return [], "not a JSON array"
    decoder = json.JSONDecoder(parse_constant=constant)
    at += 1
    while True:
        try:
            value, end = decoder.raw_decode(text, _next(text, at))
        except (ValueError, RecursionError):
            break
        end = _next(text, end)
        follows = text[end : end + 1]
        if follows not in (",", "]") and not (isinstance(value, dict) and not follows):
            break  # a number or word may go on
        values.append(value)
        if follows != ",":
            break
        at = end + 1
    return values, f"not JSON behind entry {len(values)}" if values else "not JSON"


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _entries(values: list[Any], broken: str, more: str = "") -> Inbox:
    entries: list[InboxEntry] = []
    unfit = [Unfit(None, more or broken)] if broken or more else []
    times: Counter[str] = Counter()
    texts: dict[str, str] = {}
    for place, value in enumerate(values):
        found = _entry(value)
        if isinstance(found, str):
            unfit.append(Unfit(place, found))
            continue
        times[found.key] += 1
        if not found.key.startswith(_COUNTED):
            other = texts.setdefault(found.key, found.text) != found.text
            if other:
                unfit.append(Unfit(place, "what it is known by is another entry's"))
            if times[found.key] == 1 or (other and found.protocol is None):
                entries.append(found)  # a second text under an id is another message (see ``Mirror``)
            continue
        # Nothing but their place tells equal ones apart; as many are kept as were ever there at once.
        entries.append(found.replace(key=f"{found.key}/{times[found.key]}"))
    return Inbox(tuple(entries), tuple(unfit), whole=not (broken or more))


def _entry(value: Any) -> InboxEntry | str:
    """The entry, or why it is none. What the client delivers is valid: ``from``, ``text`` and ``timestamp`` are text.
    A key of the wrong type that may be absent counts as absent."""
    if not isinstance(value, dict):
        return f"not an object but {kind(value)}"
    for key in ("from", "text", "timestamp"):
        if not isinstance(value.get(key), str):
            return f"{key} is {kind(value[key])}" if key in value else f"no {key}"
    if not value["from"]:
        return "from is empty"
    if not value["text"].strip():
        return "text is empty"
    msg_id = maybe(value, "msg_id")
    sender, text, timestamp = (clean(value[key]) for key in ("from", "text", "timestamp"))
    summary, said = maybe(value, "summary"), protocol(text)
    if summary and isinstance(said, Unknown):
        said = None  # a model's own JSON: what the client makes itself has no summary
    plain = f"id:{msg_id}" if msg_id else _COUNTED + digest(sender, text, timestamp)
    written = sender.endswith(FROM_US) and text.startswith(FIRST)
    return InboxEntry(
        key=plain if said is None else _known_by(sender, said, text),
        sender=sender,
        text=text,
        timestamp=timestamp,
        summary=summary,
        color=maybe(value, "color"),
        read=value.get("read") is True,
        msg_id=msg_id,
        protocol=said,
        ours=maybe(value, OURS) or ("?" if written else None),
    )


_COUNTED = "text:"


def _known_by(sender: str, said: Payload | Unknown, text: str) -> str:
    """By what a protocol message is known: its reader's transcript shows it without its ``msg_id``, and changed in what
    nobody needs."""
    if isinstance(said, Unknown) or said.timestamp is None:
        return f"said:{digest(sender, text)}"
    return f"said:{digest(sender, messages.name(said), said.request_id, str(said.timestamp))}"


def protocol(text: str) -> Payload | Unknown | None:
    """The control plane's reading of a protocol message, by the four steps of the founding text ("How to Distinguish"):
    what does not begin with ``{``, is no JSON, or has no ``type`` is plain text, and None."""
    if not text.startswith("{"):
        return None
    said = message_text.parse(text)
    return None if isinstance(said, Unknown) and not said.type else said


def observed(said: Payload | Unknown) -> dict[str, Any]:
    """The same in the catalog's form; of what the catalog does not have, its type and why."""
    if isinstance(said, Unknown):
        return {"type": said.type[:MAX_ID], "unknown": said.reason}
    found = codec.parse(message_text.written(said).encode())
    return found if isinstance(found, dict) else {"type": messages.name(said)}
