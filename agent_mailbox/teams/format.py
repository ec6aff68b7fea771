"""An inbox of a team as a value. Pure: bytes in, values out.

    [{"from": "ann", "text": "Hello", "timestamp": "2026-03-16T14:30:00.000Z", "msg_id": "m1", "read": false}]

Belongs here: the format, its valid entries, and the key by which an entry is known again after a rewrite. The founding
texts' arrays keep everything, with ``read`` flags. Claude Code 2.1.329 adds ``msg_id``, and removes consumed entries.
Nothing here raises for a file's content: invalid parts come back as ``Unfit``; the valid ones count.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ..clients.foreign_fields import Unfit, clean_text, kind_of, refuse_constant, text_under
from ..core import codec
from ..core.address import MAX_ID, uuid_of
from ..core.control import message_text
from ..core.control.messages import Payload, Unknown
from ..core.naming import digest
from ..core.records import Record

OURS = "agent_mailbox"
"""The key under which our entries name the mailbox's message; the client shows no unknown key."""
FROM_US = "@agent-mailbox"
"""The end of the sender's name in our entries; no member's name ends so."""
FIRST = "[agent-mailbox "
"""The beginning of the text of our entries; no protocol message begins so."""


class InboxEntry(Record):
    """One message in an inbox.

    ``key`` tells it from all others of the inbox, whatever else the array loses or gains. ``protocol``: the control
    plane's reading of a protocol message, None for plain text. ``ours``: the id and the offer's nonce of a message that
    a mailbox put there.
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
    """An inbox file's content: the valid entries in order, and the invalid parts. ``whole``: it is a JSON array, so
    absence means consumed."""

    entries: tuple[InboxEntry, ...] = ()
    unfit: tuple[Unfit, ...] = ()
    whole: bool = True


def parse_inbox(data: bytes) -> Inbox:
    """Return the inbox in a file's bytes; a half-written array gives the entries before the break."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data[: error.start].decode("utf-8")
        return _make_entries(*_parse_values(text), f"not UTF-8 at byte {error.start}")
    if not text.strip():
        return Inbox(unfit=(Unfit(None, "empty"),), whole=False)
    return _make_entries(*_parse_values(text))


def is_array(data: bytes) -> bool:
    """Return whether the bytes are a whole JSON array, whatever is in it."""
    try:
        return isinstance(json.loads(data.decode("utf-8"), parse_constant=refuse_constant), list)
    except (ValueError, RecursionError):
        return False


def _parse_values(text: str) -> tuple[list[Any], str]:
    """Return (the values of the array, why it is not whole; empty: it is)."""
    values: list[Any] = []
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        pass
    else:
        return (value, "") if isinstance(value, list) else ([], f"not a JSON array but {kind_of(value)}")
    at = _skip_spaces(text, 0)
    if text[at : at + 1] != "[":
        return [], "not a JSON array"
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    at += 1
    while True:
        try:
            value, end = decoder.raw_decode(text, _skip_spaces(text, at))
        except (ValueError, RecursionError):
            break
        end = _skip_spaces(text, end)
        follows = text[end : end + 1]
        if follows not in (",", "]") and not (isinstance(value, dict) and not follows):
            break  # a number or word may go on
        values.append(value)
        if follows != ",":
            break
        at = end + 1
    return values, f"not JSON after entry {len(values)}" if values else "not JSON"


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _make_entries(values: list[Any], broken: str, more: str = "") -> Inbox:
    entries: list[InboxEntry] = []
    unfit = [Unfit(None, more or broken)] if broken or more else []
    times: Counter[str] = Counter()
    texts: dict[str, str] = {}
    for place, value in enumerate(values):
        found = _parse_entry(value)
        if isinstance(found, str):
            unfit.append(Unfit(place, found))
            continue
        times[found.key] += 1
        if not found.key.startswith(_COUNTED):
            other = texts.setdefault(found.key, found.text) != found.text
            if other:
                unfit.append(Unfit(place, "another entry has its id"))
            if times[found.key] == 1 or (other and found.protocol is None):
                entries.append(found)  # a second text under an id is another message (see ``Mirror``)
            continue
        # Only their place tells equal ones apart; keep as many as were ever there at once.
        entries.append(found.replace(key=f"{found.key}/{times[found.key]}"))
    return Inbox(tuple(entries), tuple(unfit), whole=not (broken or more))


def _parse_entry(value: Any) -> InboxEntry | str:
    """Return the entry, or why it is invalid. It is valid if the client delivers it: ``from``, ``text`` and
    ``timestamp`` are text.

    An optional key of the wrong type counts as absent.
    """
    if not isinstance(value, dict):
        return f"not an object but {kind_of(value)}"
    for key in ("from", "text", "timestamp"):
        if not isinstance(value.get(key), str):
            return f"{key} is {kind_of(value[key])}" if key in value else f"no {key}"
    if not value["from"]:
        return "from is empty"
    if not value["text"].strip():
        return "text is empty"
    msg_id = text_under(value, "msg_id")
    sender, text, timestamp = (clean_text(value[key]) for key in ("from", "text", "timestamp"))
    summary, said = text_under(value, "summary"), parse_protocol(text)
    if summary and isinstance(said, Unknown):
        said = None  # a model's own JSON: the client's own has no summary
    plain = f"id:{msg_id}" if msg_id else _COUNTED + digest(sender, text, timestamp)
    written = sender.endswith(FROM_US) and text.startswith(FIRST)
    return InboxEntry(
        key=plain if said is None else _known_by(sender, said, text),
        sender=sender,
        text=text,
        timestamp=timestamp,
        summary=summary,
        color=text_under(value, "color"),
        read=value.get("read") is True,
        msg_id=msg_id,
        protocol=said,
        ours=text_under(value, OURS) or ("?" if written else None),
    )


_COUNTED = "text:"


def _known_by(sender: str, said: Payload | Unknown, text: str) -> str:
    """Return the key of a protocol message: its reader's transcript shows it without ``msg_id``, and changed in
    details."""
    if isinstance(said, Unknown) or said.timestamp is None:
        return f"said:{digest(sender, text)}"
    return f"said:{digest(sender, said.kind, said.request_id, str(said.timestamp))}"


def parse_protocol(text: str) -> Payload | Unknown | None:
    """Return the control plane's reading of a protocol message; None for plain text (the founding text's "How to
    Distinguish").

    Protocol begins with ``{``, is JSON and has a ``type``.
    """
    if not text.startswith("{"):
        return None
    said = message_text.parse(text)
    return None if isinstance(said, Unknown) and not said.type else said


def catalog_form(said: Payload | Unknown) -> dict[str, Any]:
    """Return the same in the catalog's form; for an unknown one its type and why."""
    if isinstance(said, Unknown):
        return {"type": said.type[:MAX_ID], "unknown": said.reason}
    found = codec.parse(message_text.written(said).encode())
    return found if isinstance(found, dict) else {"type": said.kind}


def message_id(team_name: str, inbox_name: str, key: str) -> str:
    """Return the id of an entry's message here, the same at every import: a UUID of version 8 (RFC 9562)."""
    return uuid_of(digest("agent-mailbox team", team_name, inbox_name, key), "8")
