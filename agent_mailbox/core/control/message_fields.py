"""The written form of a field of a control message, and of the messages that the founding texts show in other forms.

Belongs here: how ``messages`` declares a field. Reading and writing (``message_text``) and the published JSON Schemas
follow from that. The shapes are those of the founding texts' catalog of schemas. ``catalog`` brings the
other forms that they show into these, as far as more differs than a key's name. Any other form is left as it is, for
``message_text`` to refuse.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..records import Record


@lru_cache(1000)  # a message may bring any number of keys
def key(word: str) -> str:
    """Return a key without the differences of spellings: ``requestId``, ``request_id`` and ``request-id`` are one."""
    return word.replace("_", "").replace("-", "").casefold()


class Field(Record):
    """One field of a message: its written place, its kind, whether each message has it, and what it else is.

    ``places``: that place and the field's other names in the founding texts, in the spelling of ``key``. Kinds: id,
    text, texts, rules, flag, instant, when, version, mode, any, list, or a tuple of the possible words.
    """

    path: tuple[str, ...]
    kind: str | tuple[str, ...]
    required: bool
    default: Any
    places: tuple[tuple[str, ...], ...]
    name: str = ""


_DEFAULTS: dict[str, Any] = {"id": "", "text": "", "mode": "", "texts": (), "rules": (), "list": (), "flag": False}


def optional_at(path: str, *also: str, kind: str | tuple[str, ...] = "text", default: Any = None) -> Any:
    """Declare a field of a message by its written place, and its other names in the founding texts."""
    if default is None:
        default = "" if isinstance(kind, tuple) else _DEFAULTS.get(kind)
    places = tuple(tuple(map(key, place.split("."))) for place in (path, *also))
    return Field(tuple(path.split(".")), kind, False, default, places)


def required_at(path: str, *also: str, kind: str | tuple[str, ...] = "text") -> Any:
    """Declare one that each message of the type has."""
    return optional_at(path, *also, kind=kind).replace(required=True)


class WrittenMessage(Record):
    """A message with a written form. ``kind``: the wire's word for its type; ``flow``: the one that it is of
    (``transitions``; empty: none); ``fields``: those that are written, in their order.

    A class that names a field of its base again gives it another form there, or none."""

    kind = flow = ""
    fields = tuple[Field, ...]()

    def __init_subclass__(cls, kind: str = "", flow: str = "") -> None:
        super().__init_subclass__()
        written = {field.name: field for field in cls.fields}
        for name in cls.__annotations__:
            form = cls.__dict__[name]
            if isinstance(form, Field):
                written[name] = form.replace(name=name)
                setattr(cls, name, form.default)
            else:
                del written[name]
        cls.kind, cls.flow, cls.fields = kind, flow, tuple(written.values())


FLAGS = {"success": True, "error": False, "allow": True, "deny": False, "approved": True, "rejected": False}
"""The words some spellings have for a decision."""


def level(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object by its keys as ``key`` has them, nulls left out.

    Raise ``ValueError`` if a key is there in two spellings with different values.
    """
    found: dict[str, Any] = {}
    for word, value in obj.items():
        if value is not None and found.setdefault(key(word), value) != value:
            raise ValueError(f"{word} is there twice, with different values")
    return found


def catalog(kind: str, obj: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return type and object in the catalog's form, as far as that takes more than other keys. Raise ``ValueError``."""
    found = level(obj)
    if kind == "shutdown_response":
        approved = found.get("approved")
        if type(approved) is not bool:
            raise ValueError("approved is not true or false")
        return ("shutdown_approved" if approved else "shutdown_rejected"), obj
    if kind == "plan_approval_request" and type(found.get("plan")) is str:
        return kind, {**_without(obj, "plan"), "planContent": found["plan"]}
    if kind == "permission_request":
        tool = found.get("tool")
        if type(tool) is str:
            return kind, {**_without(obj, "tool"), "toolName": tool}
        if type(tool) is dict and type(arguments := level(tool).get("arguments")) is dict:
            return kind, {**obj, "tool": {**_without(tool, "arguments"), "input": arguments}}
    if kind == "team_permission_update" and "permissionupdate" in found:
        return kind, {**obj, **_update_rules(found["permissionupdate"], found.get("toolname"))}
    if kind == "sandbox_permission_request" and "capability" not in found and {"hostpattern", "host"} & found.keys():
        return kind, {**obj, "capability": "network"}
    return kind, obj


def _without(obj: dict[str, Any], word: str) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if key(name) != word}


def _update_rules(update: Any, tool: Any) -> dict[str, Any]:
    """Return the observed receiver's contract: rules and a behaviour, added to the present ones."""
    if type(update) is not dict:
        raise ValueError("permissionUpdate is no object")
    said = level(update)
    behaviour, rules = said.get("behavior"), said.get("rules")
    if behaviour not in ("allow", "deny"):
        raise ValueError("permissionUpdate.behavior is neither allow nor deny")
    if type(rules) is not list or not rules:
        raise ValueError("permissionUpdate.rules is no list of rules")
    word = "allowedTools" if behaviour == "allow" else "disallowedTools"
    return {"rules": {word: [rule(one, tool) for one in rules], "adds": True}}


def rule(given: Any, tool: Any = None) -> str:
    """Return a rule in the client's own syntax, from such text or an object ``{toolName, ruleContent}``.

    Raise ``ValueError`` for anything else.
    """
    if type(given) is str:
        return given
    if type(given) is not dict:
        raise ValueError("a rule is neither text nor an object")
    said = level(given)
    if not said or not said.keys() <= {"toolname", "rulecontent"}:  # an unknown part must not widen the rule
        raise ValueError("a rule says what no rule says")
    name, content = said.get("toolname", tool), said.get("rulecontent")
    if type(name) is not str or (content is not None and type(content) is not str):
        raise ValueError("a rule names no tool")
    return f"{name}({content})" if content else name
