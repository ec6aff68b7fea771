"""Errors as pages.

Belongs here: each error's HTTP status (RFC 9110) and its text for the page; the log of those that are bugs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..core.text import visible
from ..errors import Ambiguous, BadData, Busy, MailboxError, Malformed, NotFound, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)
STATUS = {Malformed: 400, BadData: 400, NotFound: 404, Ambiguous: 404, Busy: 503, StorageFailed: 500}


def describe_error(error: Exception, complete: Callable[[str], str]) -> tuple[dict[str, str], int]:
    """Return an error's text and hint, and the HTTP status. An unexpected error is reported as a bug. ``complete``
    gives the commands in a hint the options that they need."""
    if isinstance(error, MailboxError):
        told = {"what": visible(error.what).rstrip("."), "hint": visible(complete(error.hint))}
        return told, next((status for kind, status in STATUS.items() if isinstance(error, kind)), 409)
    log.error("unexpected error", exc_info=error)
    what = f"unexpected error: {type(error).__name__}: {error}"
    return {"what": visible(what), "hint": "this is a bug of agent-mailbox; try to reload the page"}, 500
