"""Coordination over GitHub: the founding text's notifications, and references to their issues.

Belongs here: the words of each event. ``gh`` makes the issue itself; nothing here speaks to GitHub.
"""

from __future__ import annotations

from typing import Any

from ..errors import Malformed
from .protocol.refusal import Refusal

EVENTS = {
    "issue_created": ("github_issue", "mention", "New issue"),
    "issue_assigned": ("github_issue", "assigned", "Assigned"),
    "issue_claimed": ("github_issue", "claimed", "Claimed"),
    "issue_completed": ("github_issue", "completed", "Completed"),
    "issue_blocked": ("github_issue", "blocked", "Blocked"),
    "issue_unblocked": ("github_issue", "unblocked", "Unblocked"),
    "comment_added": ("github_issue", "mention", "New comment"),
    "pr_opened": ("github_pr", "mention", "New pull request"),
    "review_requested": ("github_pr", "review_requested", "Review requested"),
}
"""Event to (reference type, action, words): the founding table's five, and the actions on issues."""


def make_notification(
    event: str, repo: str, number: int, text: str | None
) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """Return (content, references, metadata) of a notification; raise ``Malformed``."""
    kind, action, said = EVENTS[event]
    references = [make_reference(kind, repo, number, action)]
    place = "pull" if kind == "github_pr" else "issues"
    metadata = {"github_url": f"https://github.com/{repo}/{place}/{number}", "action": event}
    return f"{said}: {repo}#{number}" + (f"\n{text}" if text else ""), references, metadata


def make_reference(kind: str, repo: str, number: int, action: str) -> dict[str, Any]:
    """Return a checked reference; raise ``Malformed``."""
    from .protocol.envelope import ACTIONS, EnvelopeReference, read_model  # the help needs no extra

    value = {"type": kind, "repo": repo, "number": number, "action": action}
    try:
        found = read_model(EnvelopeReference, value, "the reference")
    except Refusal as refusal:
        raise Malformed(
            f"reference invalid: {refusal.message}", f"write OWNER/REPO, a number, and one of {', '.join(ACTIONS)}"
        ) from None
    return found.model_dump(exclude_none=True)


def parse_reference(text: str) -> dict[str, Any]:
    """Return a further reference, written ``ACTION:OWNER/REPO#N``: ``unblocked:owner/repo#5``."""
    action, colon, rest = text.partition(":")
    repo, mark, number = rest.partition("#")
    if not colon or not mark or not (number.isascii() and number.isdigit() and len(number) < 12):
        raise Malformed(
            f"reference invalid: {text!r}", "write ACTION:OWNER/REPO#NUMBER, such as unblocked:owner/repo#5"
        )
    return make_reference("github_issue", repo, int(number), action)
