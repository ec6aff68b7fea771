"""The other forms of control messages in the founding texts, brought into the catalog's.

Belongs here: forms that differ by more than a key's name (``message_fields.Field.also``). Examples are a plan that
is one text, a response that says ``success`` or ``error``, a shutdown's one response with two meanings, rules as
objects. Any other form is left as it is, for ``message_text`` to refuse.
"""

from __future__ import annotations

from typing import Any

FLAGS = {"success": True, "error": False, "allow": True, "deny": False, "approved": True, "rejected": False}
"""The words some spellings have for a decision."""


_KEYS: dict[str, str] = {}
_MOST = 1000


def key(word: str) -> str:
    """Return a key without the differences of spellings: ``requestId``, ``request_id`` and ``request-id`` are one."""
    known = _KEYS.get(word)
    if known is None:
        known = word.replace("_", "").replace("-", "").casefold()
        if len(_KEYS) < _MOST:  # a message may bring any number of keys
            _KEYS[word] = known
    return known


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
        return kind, {**obj, **_rules(found["permissionupdate"], found.get("toolname"))}
    if kind == "sandbox_permission_request" and "capability" not in found and {"hostpattern", "host"} & found.keys():
        return kind, {**obj, "capability": "network"}
    return kind, obj


def _without(obj: dict[str, Any], word: str) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if key(name) != word}


def _rules(update: Any, tool: Any) -> dict[str, Any]:
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


def added_rules(updates: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the allow and deny rules that a response's ``permissionUpdates`` add; other updates are ignored."""
    allow: list[str] = []
    deny: list[str] = []
    for update in updates:
        said = level(update) if type(update) is dict else {}
        if said.get("type") != "addRules" or type(said.get("rules")) is not list:
            continue
        into = {"allow": allow, "deny": deny}.get(str(said.get("behavior")))
        if into is not None:
            into += [rule(one) for one in said["rules"]]
    return tuple(allow), tuple(deny)
