"""Errors as a page tells them.

Belongs here: the family's errors as HTTP status (RFC 9110) and as what stands on the page.
"""

from __future__ import annotations

from ..core.text import visible
from ..errors import Ambiguous, BadData, Busy, MailboxError, Malformed, NotFound, StorageFailed

STATUS = {Malformed: 400, BadData: 400, NotFound: 404, Ambiguous: 404, Busy: 503, StorageFailed: 500}


def answered(error: Exception) -> tuple[dict[str, str], int]:
    """What went wrong and what to do, and the status; what is none of the family is a defect of ours, and says so."""
    if isinstance(error, MailboxError):
        told = {"what": visible(error.what).rstrip("."), "hint": visible(error.hint)}
        return told, next((status for kind, status in STATUS.items() if isinstance(error, kind)), 409)
    what = f"unexpected {type(error).__name__}: {error}"
    return {"what": visible(what), "hint": "this is a defect of agent-mailbox; the page may work anew"}, 500
