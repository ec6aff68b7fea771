"""References of a message in words: ``claimed owner/repo#3``, and whether an agent here holds that already.

Belongs here: the line under a subject. The values are other people's, of any shape; those that are no reference are
skipped.
"""

from __future__ import annotations

from .address import is_remote
from .text import clipped, neutral

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .records import Message

MOST = 8
"""References named in a line; the others are counted."""
LONGEST = 120
"""Characters of one of them."""


def lines(message: Message) -> list[str]:
    """Return ``References: …`` and ``Conflict: …``, each only if there is one."""
    given = message.references if isinstance(message.references, list) else []
    said = [text for text in map(one, given) if text]
    shown = ", ".join(said[:MOST]) + (f" and {len(said) - MOST} more" if len(said) > MOST else "")
    conflicts = _conflicts(message) if is_remote(message.sender) else []
    return [
        *([f"References: {shown}"] if said else []),
        *([f"Conflict: {', '.join(conflicts[:MOST])}"] if conflicts else []),
    ]


def one(reference: Any) -> str:
    """Return a reference in words; empty if it is none."""
    if not isinstance(reference, dict):
        return ""
    repo, number, sha, url = (reference.get(key) for key in ("repo", "number", "sha", "url"))
    where = repo if isinstance(repo, str) else url if isinstance(url, str) else ""
    if where and type(number) is int:
        where += f"#{number}"
    elif where and isinstance(sha, str):
        where += f"@{sha[:12]}"
    action = reference.get("action")
    said = f"{action.replace('_', ' ')} {where}" if isinstance(action, str) and where else where
    return clipped(neutral(said), LONGEST)


def _conflicts(message: Message) -> list[str]:
    """Return the conflicts that the gateway wrote beside the message; a sender cannot write them."""
    about = (message.extra or {}).get("swarm")
    found = about.get("conflicts") if isinstance(about, dict) else None
    texts = found if isinstance(found, list) else []
    return [clipped(neutral(text), LONGEST) for text in texts if isinstance(text, str)]


def is_event(message: Message) -> bool:
    """Return whether it is news of a swarm, which the gateway put into the subject; its text is then for programs."""
    about = (message.extra or {}).get("swarm")
    noted = isinstance(about, dict) and about.get("event") is True
    return noted and bool(message.subject) and is_remote(message.sender)
