"""The control messages as a JSON Schema (draft 2020-12): the form this program writes, for other programs.

Belongs here: the schema, from the fields in ``messages``. ``scripts/schemas`` writes it to docs/control.
"""

from __future__ import annotations

from typing import Any

from agent_mailbox.core.address import MAX_ID
from agent_mailbox.core.control.messages import MODES, TYPES, VERSION

_INSTANT = {"type": "string", "format": "date-time"}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_KINDS: dict[str, dict[str, Any]] = {
    "id": {"type": "string", "minLength": 1, "maxLength": MAX_ID},
    "text": {"type": "string"},
    "texts": _TEXTS,
    "rules": _TEXTS,
    "flag": {"type": "boolean"},
    "mode": {"enum": list(MODES)},
    "instant": _INSTANT,
    "when": _INSTANT,
    "version": {"type": "integer", "minimum": 1, "maximum": VERSION},
    "any": {"type": "object"},
    "list": {"type": "array"},
}


def schema(kind: str) -> dict[str, Any]:
    """Return the schema of one type of message. Readers take more: ``message_fields.catalog``, ``Field.places``."""
    whole: dict[str, Any] = _object({"type": {"const": kind}}, ["type", "version", "timestamp"])
    for field in TYPES[kind].fields:
        place = whole
        for word in field.path[:-1]:
            if field.required:
                _require(place, word)
            place = place["properties"].setdefault(word, _object({}, []))
        its = field.kind
        place["properties"][field.path[-1]] = {"enum": list(its)} if isinstance(its, tuple) else dict(_KINDS[its])
        if field.required:
            _require(place, field.path[-1])
    told = " ".join((TYPES[kind].__doc__ or "").split())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "description": told.split("``")[0].split(". ")[0].split("? ")[0].rstrip(" .("),
        **whole,
    }


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _require(place: dict[str, Any], word: str) -> None:
    if word not in place["required"]:
        place["required"].append(word)
