"""Control messages to JSON text and back.

Belongs here: reading any spelling into the one value, writing the catalog's, and the checks that admit a message to the
union. Any other text comes back as ``Unknown``; ``parse`` raises nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...errors import BadData
from .. import codec, instant
from ..address import MAX_ID
from ..records import BadLine
from . import message_fields
from .message_fields import Field
from .messages import MODES, STRICTNESS, TYPES, VERSION, Payload, PlanRequest, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_RULE = 1000
"""Characters of one rule: a path and some; more is a mistake."""
_MODE_KEYS = ("mode", "permissionmode", "defaultmode")
_TOOL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")


@lru_cache(8)  # one is checked before it is sent, and folded behind that
def parse(text: str) -> Payload | Unknown:
    """Return the message in a control envelope's content."""
    try:
        obj = codec.parse(text.encode("utf-8"))
    except UnicodeEncodeError:
        return Unknown("half of a surrogate pair", raw=text)
    if isinstance(obj, BadLine):
        return Unknown(obj.reason, raw=text)
    kind = obj.get("type")
    if type(kind) is not str:
        return Unknown("no type", raw=text)
    try:
        return _read(*message_fields.catalog(kind, obj))
    except ValueError as error:
        return Unknown(str(error), kind, text)


def _read(kind: str, obj: dict[str, Any]) -> Payload:
    if kind not in TYPES:
        raise ValueError("not a type of message there is")
    said: dict[str, Any] = {}
    levels: dict[int, dict[str, Any]] = {}
    for field in TYPES[kind].fields:
        value = _value(field, obj, levels)
        if value is not None:
            said[field.name] = value
        elif field.required:
            raise ValueError(f"no {'.'.join(field.path)}")
    payload = TYPES[kind](**said)
    if isinstance(payload, PlanRequest) and not (payload.goal or payload.content or payload.steps):
        raise ValueError("no plan")
    if kind.endswith("_response") and said.get("approved") and said.get("cause"):
        raise ValueError("a time-out approves nothing")
    if "updates" in said:
        _refuse_modes(said["updates"])
    return payload


def _value(field: Field, obj: dict[str, Any], levels: dict[int, dict[str, Any]]) -> Any:
    """Return the object's value for the field in any spelling; None for nothing. Raise ``ValueError``.

    ``levels`` keeps the objects by their plain keys, for the fields that follow.
    """
    kind, where = field.kind, ".".join(field.path)
    found = [
        _choice(given, where, kind) if isinstance(kind, tuple) else _KINDS[kind](given, where)
        for path in field.places
        if (given := _at(path, obj, levels)) is not None and not (kind == "text" and given == "")
    ]
    if not found:
        return None
    if kind == "mode":
        return max(found, key=STRICTNESS.index)
    if kind in ("id", "flag", "rules", "version", "any") and any(one != found[0] for one in found):
        raise ValueError(f"{where} is said in two ways that differ")
    return found[0]


def _at(path: tuple[str, ...], obj: Any, levels: dict[int, dict[str, Any]]) -> Any:
    for word in path:
        if type(obj) is not dict:
            return None
        level = levels.get(id(obj))
        if level is None:
            level = levels[id(obj)] = message_fields.level(obj)
        obj = level.get(word)
    return obj


def _choice(given: Any, where: str, words: tuple[str, ...]) -> Any:
    if given not in words:
        raise ValueError(f"{where} is none of {', '.join(words)}")
    return given


def _text(given: Any, where: str) -> str:
    if type(given) is not str:
        raise ValueError(f"{where} is not text")
    return given


def _id(given: Any, where: str) -> str:
    if type(given) is not str or not 0 < len(given) <= MAX_ID or not given.isprintable() or " " in given:
        raise ValueError(f"{where} is no id")
    return given


def _texts(given: Any, where: str) -> tuple[str, ...]:
    given = [given] if type(given) is str else given
    if type(given) is not list or not all(type(one) is str for one in given):
        raise ValueError(f"{where} is no list of texts")
    return tuple(dict.fromkeys(one for one in given if one))


def _rules(given: Any, where: str) -> tuple[str, ...]:
    return tuple(map(check_rule, _texts(given, where)))


def check_rule(text: str) -> str:
    """Return ``text`` if it is a permission rule in the client's form, ``Tool`` or ``Tool(what)``; else raise
    ``ValueError``.

    A rule for every tool there is would be a mode that bypasses permissions.
    """
    tool, bracket, rest = text.partition("(")
    name = tool.removesuffix("*") if tool.startswith("mcp__") else tool
    closed = not bracket or (rest.endswith(")") and len(rest) > 1)
    if not name or not _TOOL.issuperset(name) or not closed or len(text) > MAX_RULE or not text.isprintable():
        raise ValueError(f"{text[:60]!r} is no permission rule")
    return text


def added_rules(updates: Iterable[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the allow and deny rules that ``permissionUpdates`` add; none if one of them is no rule. Other updates are
    ignored."""
    found: dict[object, list[str]] = {"allow": [], "deny": []}
    try:
        for update in updates:
            said = message_fields.level(update) if type(update) is dict else {}
            if said.get("type") == "addRules" and type(said.get("rules")) is list:
                rules = found.get(str(said.get("behavior")), [])
                rules += [check_rule(message_fields.rule(one)) for one in said["rules"]]
    except ValueError:
        return (), ()
    return tuple(found["allow"]), tuple(found["deny"])


def _flag(given: Any, where: str) -> bool:
    given = message_fields.FLAGS.get(given, given) if type(given) is str else given
    if type(given) is not bool:
        raise ValueError(f"{where} is not true or false")
    return given


def mode(given: Any, where: str = "mode") -> str:
    """Return a mode from any spelling; raise ``ValueError`` for one that no message may set."""
    found = next(
        (one for one in MODES if type(given) is str and message_fields.key(one) == message_fields.key(given)), None
    )
    if found is None:
        raise ValueError(f"{where}: no message can set the mode {str(given)[:40]!r}")
    return found


def _refuse_modes(value: Any) -> None:
    """Refuse any mode that ``mode`` refuses, however deep it is nested."""
    if type(value) is dict:
        for word, inner in value.items():
            if message_fields.key(word) in _MODE_KEYS:
                mode(inner, word)
            _refuse_modes(inner)
    elif type(value) in (list, tuple):
        for inner in value:
            _refuse_modes(inner)


def _instant(given: Any, where: str) -> int:
    return instant.parse(_text(given, where))


def _when(given: Any, where: str) -> int | None:  # it decides nothing, so an unreadable one is left out
    if type(given) is int and -(1 << 45) < given < 1 << 45:
        return given
    try:
        return _instant(given, where)
    except ValueError:
        return None


def _version(given: Any, where: str) -> int:
    if type(given) is not int or given < 1:
        raise ValueError(f"{where} is no version")
    if given > VERSION:
        raise ValueError(f"{where} {given} is newer than this program, which knows {VERSION}")
    return given


def _any(given: Any, where: str) -> Any:
    if type(given) is not dict:
        raise ValueError(f"{where} is no object")
    return given


def _list(given: Any, where: str) -> tuple[Any, ...]:
    if type(given) is not list:
        raise ValueError(f"{where} is no list")
    return tuple(given)


_KINDS = {
    "text": _text,
    "id": _id,
    "texts": _texts,
    "rules": _rules,
    "flag": _flag,
    "mode": mode,
    "instant": _instant,
    "when": _when,
    "version": _version,
    "any": _any,
    "list": _list,
}


def check(content: str) -> tuple[str, ...]:
    """Return a warning for a body of unknown type: it is kept and shown, and changes nothing.

    Raise ``BadData`` for a body that names a known type without its shape: it was meant to change something. Readers
    judge from the log who may send what (``state``): a sender's word is a claim.
    """
    read = parse(content)
    if not isinstance(read, Unknown):
        return ()
    if read.type in TYPES:
        raise BadData(
            f"no control message: {read.type}: {read.reason}",
            "use `agent-mailbox control`, which writes such messages",
        )
    return (f"no control message ({read.reason}): it is shown as it is, and changes nothing",)


def written(payload: Payload) -> str:
    """Return the message as JSON text in the catalog's form; raise ``BadData`` for values that JSON cannot hold."""
    obj: dict[str, Any] = {"type": payload.kind}
    for field in payload.fields:
        value = getattr(payload, field.name)
        if not field.required and field.name not in ("version", "state") and value == field.default:
            continue
        place = obj
        for word in field.path[:-1]:
            place = place.setdefault(word, {})
        place[field.path[-1]] = instant.text(value) if field.kind in ("when", "instant") else value
    try:
        return codec.dumps(obj)
    except ValueError as error:
        raise BadData(f"{payload.kind}: {error}", "a tool's input must be plain JSON, not nested deeply") from None
