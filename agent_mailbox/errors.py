"""The one family of errors, and the exit code of each.

Belongs here: one class per kind of failure. ``what`` names the object, its problem and the value; ``hint`` says what
to do next. ``code`` is a stable word for programs, ``exit_code`` the process's exit status.
Must not know: how errors are printed; ``cli.boundary`` does that.
"""

from __future__ import annotations

AGAIN = ", then repeat the command"
"""The end of a hint to repeat a command; a send says with which id instead."""


class MailboxError(Exception):
    """An operation that the mailbox refuses or cannot do. ``str(error)`` is one sentence without a full stop.

    ``hint`` is empty where ``what`` says all, or nobody can do anything. ``at`` is the failing item's index in a batch.
    """

    exit_code = 1
    code = "refused"

    def __init__(self, what: str, hint: str, *, code: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.at: int | None = None
        if code is not None:
            self.code = code


class Refused(MailboxError):
    """The present state forbids it: a dead recipient, a taken name, an id conflict (exit 1)."""


NOT_YOU = "not_you"
"""The code of an error about a caller who acts as another session."""


class NotFound(MailboxError):
    """Nothing has that id, name or prefix (exit 1)."""

    code = "not_found"


class Ambiguous(MailboxError):
    """Several ids share the prefix; the hint lists them (exit 1)."""

    code = "ambiguous"


class NoMailbox(MailboxError):
    """No mailbox directory was found (exit 1)."""

    code = "no_mailbox"


class Malformed(MailboxError):
    """An argument is invalid in every state: a namespace, TTL, id or empty body (exit 2)."""

    exit_code = 2
    code = "malformed"


class BadData(MailboxError):
    """Data is unusable: not UTF-8, over the size limit, a bad batch line (exit 3)."""

    exit_code = 3
    code = "bad_data"


class Busy(MailboxError):
    """A lock, or the reader of the output, did not become free in time (exit 4)."""

    exit_code = 4
    code = "busy"


class Unavailable(Busy):
    """The engine that several machines share did not answer in time; it may have taken what it was given (exit 4)."""

    code = "unavailable"


class StorageFailed(MailboxError):
    """The file system failed; the operation may or may not have taken effect (exit 5)."""

    exit_code = 5
    code = "storage"
