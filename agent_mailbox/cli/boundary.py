"""The one boundary where errors become text and exit codes, whoever parsed the command.

Belongs here: turning any exception into one line, a hint, and under ``--json`` a document. Must not import click; what
only click raises is translated by ``main`` before it comes here.
"""

from __future__ import annotations

import sys

from ..core.text import neutral
from ..errors import MailboxError, StorageFailed
from . import mail_output
from .output import PATIENCE, write_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def guarded(work: Callable[[], int], as_json: Callable[[], bool]) -> int:
    """The exit code of ``work``, or of the error it ended in, which is reported."""
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return report(known(error), as_json())


def known(error: Exception) -> MailboxError:
    """Any error as one of the family. ``AGENT_MAILBOX_DEBUG`` lets the traceback out instead."""
    from os import environ  # only for a failure

    if environ.get("AGENT_MAILBOX_DEBUG"):
        raise error
    if isinstance(error, MailboxError):
        return error
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        code = "output" if isinstance(error, BrokenPipeError) else "storage"
        return StorageFailed(
            f"the system refused{where}: {error.strerror}", "see that it is there and yours", code=code
        )
    return StorageFailed(
        f"unexpected {type(error).__name__}: {error}",
        "this is a defect of agent-mailbox; AGENT_MAILBOX_DEBUG=1 shows where",
        code="internal",
    )


def report(error: MailboxError, as_json: bool) -> int:
    """Say what went wrong: a line and a hint on stderr, and under ``--json`` a document on stdout, unless it was
    stdout that failed. Returns the exit code."""
    what, hint = neutral(error.what).rstrip("."), neutral(error.hint)
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"error: {what}\n" + (f"hint: {hint}\n" if hint else ""))
            sys.stderr.flush()
        if error.code.startswith("output"):
            sys.stdout = None
        elif as_json:
            write_out(mail_output.json({"error": {"code": error.code, "message": what, "hint": hint}}), PATIENCE)
    except (OSError, MailboxError):
        sys.stdout = None  # nobody listens; the exit code still tells
    return error.exit_code
