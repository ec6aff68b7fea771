"""Answers in Cursor's form, from ours: a refusal, mail at a turn's end, words at the start. **Not run**: by its
documentation. An answer that does not match a hook's schema blocks the action, so all else is no answer at all.
"""

from __future__ import annotations

import json

from ...core import codec
from ...core.text import ascii_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def spoken(text: str) -> str:
    """Return our JSON as Cursor takes it; empty if Cursor has no such answer, and so none is given."""
    said = json.loads(text)
    decided = said.get("hookSpecificOutput", {})
    answer: dict[str, Any] = {}
    if decided.get("permissionDecision") == "deny":
        why = decided["permissionDecisionReason"]
        answer = {"permission": "deny", "user_message": why, "agent_message": why}
    elif said.get("decision") == "block":
        answer = {"followup_message": said["reason"]}
    elif context := said.get("additionalContext"):
        answer = {"additional_context": context}
    return ascii_json(codec.dumps(answer)) + "\n" if answer else ""
