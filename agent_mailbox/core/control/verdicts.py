"""The fate of a control message, as a value.

Belongs here: the outcomes, and their words for a reader. ``state`` gives them out.
"""

from __future__ import annotations

from ..records import Record

APPLIED, NOTED, REPEATED, LATE, REFUSED, UNKNOWN = "applied", "noted", "repeated", "late", "refused", "unknown"
"""The outcome of a message. It took effect. It only informs. It repeated the present state. It came after another
decision. Its sender may not, or there is no such step. Its type is unknown."""
UNPROVEN = "nothing proves who wrote it"


class Verdict(Record):
    """The fate of a control message, and why; the step it made, if any.

    ``about`` is the agent it concerns; ``forbidden``: it was refused because of its sender.
    """

    outcome: str
    why: str = ""
    kind: str = ""
    request_id: str = ""
    before: str | None = None
    after: str | None = None
    about: str = ""
    forbidden: bool = False


def told(verdict: Verdict) -> str:
    """Return what a reader of the message should know of its fate; empty if it took effect, or only informs."""
    if verdict.outcome in (APPLIED, NOTED):
        return verdict.why
    return f"{verdict.outcome}: {verdict.why}" if verdict.why else verdict.outcome
