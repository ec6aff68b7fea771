"""Errors as pages.

Belongs here: each error's HTTP status (RFC 9110) and its text for the page; the log of those that are bugs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from ..core.text import visible
from ..errors import Ambiguous, BadData, Busy, MailboxError, Malformed, NotFound, StorageFailed
from ..store.user_state import replaced_program

log = logging.getLogger(__name__)
_HINTS = {
    "pass --body TEXT, --body - (standard input) or --body @FILE": "write its text",
    "write it to a file and send its path": "shorten it, or attach it as a file",
    "leave the id out for a new one": "its form was sent before; send it again, and it is a message of its own",
    "pass --to with an agent, a role, namespace:value or all": "name an agent, a role, namespace:value or all",
}
"""Hints of commands that mean something else in a form."""
_AS_BEFORE = re.compile(r" with --id [0-9a-f-]{36}")
"""Words of a hint that are not for a form: it keeps its id."""
STATUS = {Malformed: 400, BadData: 400, NotFound: 404, Ambiguous: 404, Busy: 503, StorageFailed: 500}


def describe_error(error: Exception, complete: Callable[[str], str]) -> tuple[dict[str, str], int]:
    """Return an error's text and hint, and the HTTP status. An unexpected error is reported as a bug. ``complete``
    gives the commands in a hint the options that they need."""
    if isinstance(error, MailboxError):
        hint = _HINTS.get(error.hint, _AS_BEFORE.sub("", error.hint))
        told = {"what": visible(error.what).rstrip("."), "hint": visible(complete(hint))}
        return told, next((status for kind, status in STATUS.items() if isinstance(error, kind)), 409)
    if replaced_program.was_replaced():
        return {"what": replaced_program.WHAT, "hint": "start the console again"}, 500
    log.error("unexpected error", exc_info=error)
    what = f"unexpected error: {type(error).__name__}: {error}"
    return {"what": visible(what), "hint": "this is a bug of agent-mailbox; try to reload the page"}, 500
