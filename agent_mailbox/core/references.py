"""References of a message in words: ``claimed owner/repo#3``, and whether an agent here holds that already.

Belongs here: the line under a subject, and ``--ref`` as people write it. The values in mail are other people's, of any
shape; those that are no reference are skipped. Types and actions are those of the swarm protocol, and ``file``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..errors import Malformed
from . import codec
from .address import is_remote
from .text import clipped, neutral, term

if TYPE_CHECKING:
    from .records import Message

MOST = 8
"""References named in a line; the others are counted."""
LONGEST = 120
"""Characters of one of them."""
REASON = 1000
"""Characters of a reason."""

ACTIONS = ("claimed", "completed", "blocked", "unblocked", "assigned", "mention", "review_requested")
_REPO = r"(?P<repo>[^\s/#@]+/[^\s/#@]+)"
_FORMS = {
    "github_repo": _REPO,
    "github_issue": _REPO + r"#(?P<number>[0-9]{1,9})",
    "github_pr": _REPO + r"#(?P<number>[0-9]{1,9})",
    "github_commit": _REPO + r"@(?P<sha>[0-9a-fA-F]{7,64})",
    "url": r"(?P<url>https?://\S+)",
    "file": r"(?P<path>.+)",
}


def parse(text: str) -> dict[str, Any]:
    """Return the reference that ``[ACTION:]KIND:VALUE`` means; raise ``Malformed`` for another text."""
    action, colon, rest = text.partition(":")
    given = {"action": action} if colon and action in ACTIONS else {}
    word, _, value = (rest if given else text).partition(":")
    kind = word if word in _FORMS else f"github_{word}"
    found = re.fullmatch(_FORMS[kind], value) if kind in _FORMS else None
    if found is None:
        raise Malformed(
            f"not a reference: {text!r}",
            "write issue:OWNER/REPO#3, pr:OWNER/REPO#7, commit:OWNER/REPO@SHA, repo:OWNER/REPO, url:URL or file:PATH",
        )
    said: dict[str, Any] = found.groupdict()
    return {"type": kind, **said, **({"number": int(said["number"])} if "number" in said else {}), **given}


def lines(message: Message) -> list[str]:
    """Return ``References: …`` and ``Conflict: …``, each only if there is one."""
    given = message.references if isinstance(message.references, list) else []
    said = [_quoted(*parts) for parts in map(_parts, given) if parts[1]]
    shown = ", ".join(said[:MOST]) + (f" and {len(said) - MOST} more" if len(said) > MOST else "")
    conflicts = _conflicts(message) if is_remote(message.sender) else []
    return [
        *([f"References: {shown}"] if said else []),
        *([f"Conflict: {', '.join(conflicts[:MOST])}"] if conflicts else []),
    ]


def one(reference: Any) -> str:
    """Return a reference in words; empty if it is none."""
    action, where = _parts(reference)
    return clipped(neutral(f"{action} {where}".lstrip()), LONGEST) if where else ""


def _parts(reference: Any) -> tuple[str, str]:
    """Return a reference's action, and what it is about; both are empty if it is none."""
    if not isinstance(reference, dict):
        return "", ""
    number, sha = reference.get("number"), reference.get("sha")
    where = next((v for key in ("repo", "url", "path") if isinstance(v := reference.get(key), str)), "")
    if where and type(number) is int:
        where += f"#{number}"
    elif where and isinstance(sha, str):
        where += f"@{sha[:12]}"
    action = reference.get("action")
    return action.replace("_", " ") if isinstance(action, str) else "", where


def _quoted(action: str, where: str) -> str:
    """Return the same words for a line of ours. An action that is none of ours is any text, and quoted as such."""
    if action.replace(" ", "_") in ACTIONS:
        return f"{action} {term(where, LONGEST)}"
    return term(f"{action} {where}".lstrip(), LONGEST)


def _conflicts(message: Message) -> list[str]:
    """Return the conflicts that the gateway wrote beside the message; a peer cannot write them, a program here can."""
    about = (message.extra or {}).get("swarm")
    found = about.get("conflicts") if isinstance(about, dict) else None
    texts = found if isinstance(found, list) else []
    return [term(text, LONGEST) for text in texts if isinstance(text, str)]


def is_event(message: Message) -> bool:
    """Return whether it is news of a swarm, which the gateway put into the subject; its text is then for programs."""
    about = (message.extra or {}).get("swarm")
    noted = isinstance(about, dict) and about.get("event") is True
    return noted and bool(message.subject) and is_remote(message.sender)


def reason_lines(message: Message) -> list[str]:
    """Return ``Reason: …`` of such news, if somebody gave one; what a master ends for good has a word for programs."""
    told = codec.parse(message.content.encode("utf-8", "replace"), codec.MAX_LINE, ours=False)
    if not isinstance(told, dict) or told.get("action") == "swarm_dissolved":
        return []
    reason = told.get("reason")
    return [f"Reason: {term(reason, REASON)}"] if isinstance(reason, str) and reason.strip() else []
