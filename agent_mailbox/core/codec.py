"""Records to JSON lines and back: the only place that knows how a line is spelt.

Belongs here: strict JSON in (RFC 8259: no NaN, no lone surrogates, bounded nesting), canonical JSON out. Readers also
take the older spellings: the seed's ``from``/``to``/``body``, a roster line without ``event``. Any other line comes
back as a ``BadLine``: the readers never raise.

The scanner is the C one inside the standard ``json`` package, taken directly. ``json`` itself imports ``re``, which
would cost a hook as much as the interpreter's start.
"""

from __future__ import annotations

from . import instant
from .address import is_id, is_value
from .records import (
    MAX_TTL_HOURS,
    PRIORITIES,
    READ_EVENTS,
    ROSTER_EVENTS,
    TYPES,
    WHENS,
    BadLine,
    Message,
    Read,
    RosterEvent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    R = TypeVar("R", Message, Read, RosterEvent)

    def _quoted(text: str) -> str: ...
    def _make_scanner(rules: object) -> Callable[[str, int], tuple[Any, int]]: ...

else:
    try:
        from _json import encode_basestring as _quoted
        from _json import make_scanner as _make_scanner
    except ImportError:  # this interpreter lacks the accelerator
        from json.encoder import encode_basestring as _quoted
        from json.scanner import py_make_scanner as _make_scanner

MAX_LINE = 1 << 20
"""Bytes in one line. The largest record we write (64 KiB of content, every byte escaped) is well under half of it."""
MAX_DEPTH = 32
"""Levels of nesting in ``metadata`` and unknown keys: far more than a record needs, far less than any stack."""


class _Bad(ValueError):
    """The reason why a line is no record; becomes a ``BadLine`` before it leaves this module."""


def _decimal(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise _Bad(f"a number out of range: {text[:20]}")
    if len(text) < 17 and abs(value) > 1e-300:
        return value
    from .exact_number import exact  # few numbers are so long

    return exact(text, value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (key := repeated_key(pairs)) is not None:
        raise _Bad(f"the key {key[:40]!r} occurs twice in one object")
    return dict(pairs)


def repeated_key(pairs: list[tuple[str, Any]]) -> str | None:
    """Return the first key of a JSON object that occurs twice, by its pairs; None if each occurs once."""
    keys = [key for key, _ in pairs]
    return None if len(set(keys)) == len(keys) else next(key for key in keys if keys.count(key) > 1)


def _constant(text: str) -> float:
    raise _Bad(f"{text} is not JSON")


class _Rules:
    """The parts of a ``json.JSONDecoder`` that the scanner uses."""

    strict = True
    object_hook = None
    object_pairs_hook: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None
    parse_float = staticmethod(_decimal)
    parse_int = int  # of any length: none becomes a float
    parse_constant = staticmethod(_constant)
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own interned keys, cleared by it after each line

    def __getattr__(self, _hook: str) -> None:
        """Return no hook for one of a newer Python, such as ``array_hook`` (3.15)."""


scan = _make_scanner(_Rules())
_once_rules = _Rules()
_once_rules.object_pairs_hook = _once
_scan_once = _make_scanner(_once_rules)
"""The same for what somebody gives us to send: of two values by one key, none is dropped in silence."""
BOM = b"\xef\xbb\xbf"
"""The byte order mark that some editors begin a file with: no part of the text."""


def parse(line: bytes, limit: int = MAX_LINE, *, ours: bool = True, once: bool = False) -> dict[str, Any] | BadLine:
    """Return the JSON object on one line of at most ``limit`` bytes.

    ``ours``: we could write it too, so half surrogates and deep nesting are refused. ``once``: a key that occurs twice
    is refused.
    """
    if len(line) > limit:
        return BadLine(f"{len(line)} bytes in one line")
    try:
        text = (line[3:] if line[:3] == BOM else line).decode("utf-8").strip(" \t\r\n")
        value, end = (_scan_once if once else scan)(text, 0)
        if end != len(text):
            return BadLine("something follows the JSON value")
        if type(value) is not dict:
            return BadLine("not a JSON object")
        if ours and b"\\u" in line:
            dumps(value).encode("utf-8")
        elif ours and line.count(b"[") + line.count(b"{") > MAX_DEPTH:
            dumps(value)
    except _Bad as error:
        return BadLine(str(error))
    except UnicodeDecodeError:
        return BadLine("not UTF-8")
    except UnicodeEncodeError:
        return BadLine("half of a surrogate pair")
    except RecursionError:
        return BadLine("nested too deeply")
    except (ValueError, StopIteration, OverflowError, SystemError):
        # SystemError: the bare C scanner means JSONDecodeError, which exists only once ``json`` is imported.
        return BadLine("not JSON")
    return value


def dumps(value: Any, depth: int = 0) -> str:
    """Return compact JSON of plain values; raise ``ValueError`` for other values, or nesting beyond ``MAX_DEPTH``."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is float:
        if value - value != 0:
            raise _Bad("a number out of range")
        return repr(value)
    if depth >= MAX_DEPTH:
        raise _Bad("nested too deeply")
    if kind is dict:
        return "{" + ",".join([f"{_quoted(k)}:{dumps(v, depth + 1)}" for k, v in value.items()]) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([dumps(v, depth + 1) for v in value]) + "]"
    if isinstance(value, float) and type(text := getattr(value, "text", None)) is str:
        return text  # an ``ExactNumber``
    if isinstance(value, str):  # a proof is its text
        return _quoted(value)
    raise _Bad(f"{kind.__name__} is not JSON")


# -- messages ---------------------------------------------------------------------------------------------------------

_MESSAGE_KEYS = {
    *("id", "sender", "recipient", "timestamp", "subject", "content", "thread", "ttl_hours", "read_by"),
    *("type", "when", "expires_at", "ack", "priority", "references", "attachments", "metadata", "seal", "proof"),
}
_OLDER = {"sender": "from", "recipient": "to", "content": "body"}
_MOST_IDS = 4096
_ids: dict[str, bool] = {}
"""Whether words are ids: a log has few, and each on many lines."""


def _text(obj: dict[str, Any], key: str) -> str:
    value = obj.get(key)
    if value is None and key in _OLDER:
        value = obj.get(_OLDER[key])
    if type(value) is not str or not value:
        raise _Bad(f"no {key}" if value in (None, "") else f"{key} is not text")
    return value


def _maybe_text(obj: dict[str, Any], key: str) -> str | None:
    value = obj.get(key)
    return value if type(value) is str and value else None


def _strings(value: Any) -> tuple[str, ...]:
    if type(value) is str:
        value = [value]
    if type(value) is not list:
        return ()
    return tuple(dict.fromkeys([item for item in value if type(item) is str and item]))


def _id(obj: dict[str, Any], key: str) -> str:
    """Return the id by a key, which must have an id's form: elsewhere words are built from it."""
    if not _is_id(found := _text(obj, key)):
        raise _Bad(f"{key} is no id: {found[:40]!r}")
    return found


def _is_id(word: str) -> bool:
    known = _ids.get(word)
    if known is None:
        if len(_ids) >= _MOST_IDS:
            _ids.clear()
        known = _ids[word] = is_id(word)
    return known


def _maybe_id(obj: dict[str, Any], key: str) -> str | None:
    return _id(obj, key) if _maybe_text(obj, key) is not None else None


def _tags(value: Any) -> tuple[str, ...]:
    """Return the tags that have a tag's form: another word could be an agent's id."""
    parted = [(tag, *tag.partition(":")[::2]) for tag in _strings(value)]
    return tuple([tag for tag, namespace, word in parted if is_value(namespace) and is_value(word)])


def _one_of(known: tuple[str, ...], value: Any, otherwise: str) -> str:
    return value if type(value) is str and value in known else otherwise


def _as_record(line: bytes, build: Callable[[dict[str, Any]], R]) -> R | BadLine:
    obj = parse(line)
    if isinstance(obj, BadLine):
        return obj
    try:
        return build(obj)
    except ValueError as error:
        return BadLine(str(error))


def message_from(obj: dict[str, Any]) -> Message:
    """Return a message from its JSON object, canonical or older; raise ``ValueError``, which names the wrong key.

    Only id, sender, recipient, timestamp and content are required. An optional key of the wrong shape counts as absent,
    so that a careless writer's mail is still mail.
    """
    recipients = _strings(obj.get("recipient") or obj.get("to"))
    if not recipients:
        raise _Bad("no recipient")
    hours: Any = obj.get("ttl_hours")
    older = {_OLDER[key] for key in _OLDER if key not in obj}
    extra = {key: value for key, value in obj.items() if key not in _MESSAGE_KEYS and key not in older}
    return Message(
        id=_text(obj, "id"),
        sender=_text(obj, "sender"),
        recipients=recipients,
        timestamp=instant.parse(_text(obj, "timestamp")),
        content=_text(obj, "content"),
        subject=_maybe_text(obj, "subject"),
        thread=_maybe_text(obj, "thread"),
        ttl_hours=hours if type(hours) in (int, float) and 0 < hours <= MAX_TTL_HOURS else None,
        expires_at=(instant.told(obj["expires_at"]) or None) if "expires_at" in obj else None,
        type=_one_of(TYPES, obj.get("type"), "message"),
        when=(_one_of(WHENS, obj["when"], "") or None) if "when" in obj else None,
        ack=obj.get("ack") is True,
        priority=_one_of(PRIORITIES, obj.get("priority"), "normal"),
        references=obj.get("references"),
        attachments=obj.get("attachments"),
        metadata=obj.get("metadata"),
        read_by=_strings(obj.get("read_by")),
        extra=extra or None,
    )


def message_object(message: Message, read_by: tuple[str, ...] = (), *, whole: bool = False) -> dict[str, Any]:
    """Return the canonical JSON object of a message, keys in their order.

    On disk an optional key with its default is left out; ``whole`` spells out the defaults, for programs.
    """
    m = message
    obj: dict[str, Any] = {
        "id": m.id,
        "sender": m.sender,
        "recipient": m.recipients[0] if len(m.recipients) == 1 else list(m.recipients),
        "timestamp": instant.text(m.timestamp),
    }
    if whole or m.subject is not None:
        obj["subject"] = m.subject
    obj.update(content=m.content, thread=m.thread, ttl_hours=m.ttl_hours, read_by=list(read_by))
    if whole or m.type != "message":
        obj["type"] = m.type
    if m.when is not None:
        obj["when"] = m.when
    if m.expires_at is not None:
        obj["expires_at"] = instant.text(m.expires_at)
    if whole or m.ack:
        obj["ack"] = m.ack
    if whole or m.priority != "normal":
        obj["priority"] = m.priority
    for key in ("references", "attachments", "metadata"):
        if getattr(m, key) is not None:
            obj[key] = getattr(m, key)
    obj.update(m.extra or {})
    return obj


def spell_message(message: Message) -> bytes:
    """Return the line of a message, with its newline; raise ``ValueError`` for values JSON or UTF-8 cannot hold."""
    return dumps(message_object(message)).encode("utf-8") + b"\n"


def message(line: bytes) -> Message | BadLine:
    """Return the message on a line."""
    return _as_record(line, message_from)


# -- reads and roster events ------------------------------------------------------------------------------------------


def _read_from(obj: dict[str, Any]) -> Read:
    # The seed's page prints the keys without underscores; both spellings count.
    reader = obj.get("reader_session_id", obj.get("readersession_id"))
    return Read(
        message_id=_text({"message_id": obj.get("message_id", obj.get("messageid"))}, "message_id"),
        session_id=_id({"reader_session_id": reader}, "reader_session_id"),
        timestamp=instant.parse(_text(obj, "timestamp")),
        event=_known_event(obj, READ_EVENTS, "read"),
        via=_maybe_text(obj, "as"),
        nonce=_maybe_text(obj, "nonce"),
        tokens=tokens if type(tokens := obj.get("tokens")) is int and 0 <= tokens < 1 << 53 else None,
        title=obj.get("title") is True,
    )


def _known_event(obj: dict[str, Any], known: tuple[str, ...], default: str) -> str:
    event = obj.get("event", default)
    if event not in known:
        raise _Bad(f"unknown event {event!r}")
    return str(event)


def read(line: bytes) -> Read | BadLine:
    """Return the read record on a line."""
    return _as_record(line, _read_from)


def spell_read(record: Read) -> bytes:
    """Return the line of a read record."""
    obj: dict[str, Any] = {
        "message_id": record.message_id,
        "reader_session_id": record.session_id,
        "timestamp": instant.text(record.timestamp),
        "event": record.event,
    }
    more = {"as": record.via, "nonce": record.nonce, "tokens": record.tokens, "title": record.title or None}
    obj |= {key: value for key, value in more.items() if value is not None}
    return dumps(obj).encode("utf-8") + b"\n"


def _roster_from(obj: dict[str, Any]) -> RosterEvent:
    tags = obj.get("tags")
    role = _maybe_text(obj, "role")
    if role is not None:  # the seed's roster entries carry the role beside the tags
        tags = [*_strings(tags), role if role.startswith("role:") else f"role:{role}"]
    return RosterEvent(
        event=_known_event(obj, ROSTER_EVENTS, "register"),
        session_id=_id(obj, "session_id"),
        timestamp=instant.parse(_text(obj, "timestamp")) if obj.get("timestamp") is not None else 0,
        name=_maybe_id(obj, "name"),
        tags=None if tags is None else _tags(tags),
        lead=_maybe_id(obj, "lead"),
        continues=_maybe_id(obj, "continues"),
        by=_maybe_text(obj, "by"),
        reason=_maybe_text(obj, "reason"),
        client=_maybe_text(obj, "client"),
        muted=None if obj.get("muted") is None else _strings(obj["muted"]),
    )


def roster_event(line: bytes) -> RosterEvent | BadLine:
    """Return the roster event on a line; one without ``event`` registers, as in a hand-written entry."""
    return _as_record(line, _roster_from)


def spell_event(record: RosterEvent) -> bytes:
    """Return the line of a roster event; fields that are None are left out."""
    obj: dict[str, Any] = {
        "event": record.event,
        "session_id": record.session_id,
        "timestamp": instant.text(record.timestamp),
    }
    for key in ("name", "tags", "lead", "continues", "by", "reason", "client", "muted"):
        value = getattr(record, key)
        if value is not None:
            obj[key] = value
    return dumps(obj).encode("utf-8") + b"\n"
