"""The one family of errors, and the exit code each carries.

Belongs here: what may go wrong, said once. Every error tells what happened to which object (``what``) and what to
do next (``hint``); ``code`` is a stable word for programs, ``exit_code`` the process's exit status.
Must not know: how an error is printed (``cli.main`` has the one boundary).
"""

from __future__ import annotations


class MailboxError(Exception):
    """Something the mailbox refuses or cannot do. ``str(error)`` is one sentence without a final stop.

    ``at`` is the index of the item of a batch that it is about.
    """

    exit_code = 1
    code = "refused"

    def __init__(self, what: str, hint: str = "", *, code: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.at: int | None = None
        if code is not None:
            self.code = code


class Refused(MailboxError):
    """The present state refuses it: dead recipient, name taken, id conflict (exit 1)."""


NOT_YOU = "not_you"
"""The code where somebody acts as another."""


class NotFound(MailboxError):
    """Nothing there by that id, name or prefix (exit 1)."""

    code = "not_found"


class Ambiguous(MailboxError):
    """A prefix that several ids share; the hint lists them (exit 1)."""

    code = "ambiguous"


class NoMailbox(MailboxError):
    """No mailbox directory where one was looked for (exit 1)."""

    code = "no_mailbox"


class Malformed(MailboxError):
    """An argument that can never be right: namespace, TTL, id, empty body (exit 2)."""

    exit_code = 2
    code = "malformed"


class BadData(MailboxError):
    """Data that cannot be taken: not UTF-8, over the size limit, a bad batch line (exit 3)."""

    exit_code = 3
    code = "bad_data"


class Busy(MailboxError):
    """A lock was not to be had in time, or the reader of our output does not read (exit 4)."""

    exit_code = 4
    code = "busy"


class StorageFailed(MailboxError):
    """The file system said no: nothing is promised about the operation (exit 5)."""

    exit_code = 5
    code = "storage"
