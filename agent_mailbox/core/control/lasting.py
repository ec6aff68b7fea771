"""The rules that an approval may add for good: those that the asker's client suggested, as far as they are narrow.

Belongs here: which suggestions are offered to a decider. The asker writes them, so they are other people's text. A rule
is offered only for the tool that the request is about, and never for all that the tool can do.
"""

from __future__ import annotations

from typing import Any

from . import message_text
from .messages import Payload, PermissionRequest, Unknown

MOST = 5
"""Rules that are offered: a decider reads each. More of them are no small decision, and none is offered."""


def offered(payload: Payload | Unknown) -> tuple[str, ...]:
    """Return the allow rules that a decider may add with an approval; empty if none is suggested or one is too wide."""
    if not isinstance(payload, PermissionRequest):
        return ()
    found = tuple(dict.fromkeys(message_text.added_rules(payload.suggestions)[0]))
    return found if len(found) <= MOST and all(_is_narrow(rule, payload.tool) for rule in found) else ()


def updates(rules: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Return the field of a response that adds these allow rules."""
    return ({"type": "addRules", "behavior": "allow", "rules": list(rules)},) if rules else ()


def _is_narrow(rule: str, tool: str) -> bool:
    name, _, rest = rule.partition("(")
    what = rest.removesuffix(")")
    return name == tool and (bool(what.strip("*:/ ~.?")) or (not what and name.startswith("mcp__")))
