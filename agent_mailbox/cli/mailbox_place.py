"""Where a command is: its environment, and the mailbox it uses.

Belongs here: reading the environment once, finding the mailbox. Whose it is and what is done there: its callers.
"""

from __future__ import annotations

import posix

from ..errors import NoMailbox
from ..store import paths
from ..store.system import environment as environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class MailboxPlace:
    """How a mailbox was found: its directory, and whether somebody named it (``--dir``, ``AGENT_MAILBOX_DIR``)."""

    def __init__(self, directory: str, named: bool) -> None:
        self.directory = directory
        self.named = named


def locate(given: str | None, environ: Mapping[str, str], start: str | None = None) -> MailboxPlace:
    """The mailbox to use: ``--dir``, else ``AGENT_MAILBOX_DIR``, else the nearest from ``start`` upwards (default: from
    here). Raises ``NoMailbox``.
    """
    named = given or environ.get("AGENT_MAILBOX_DIR")
    if named:
        return MailboxPlace(named, True)
    found = paths.find(_without_links(start) if start else posix.getcwd())
    if found is None:
        raise NoMailbox(
            "no mailbox here or above", "`agent-mailbox init` makes one; --dir or AGENT_MAILBOX_DIR names one elsewhere"
        )
    return MailboxPlace(found, False)


def _without_links(directory: str) -> str:
    """The directory's real path, by going there and back: the system knows where one is, and ``os`` costs 2 ms."""
    try:
        here = posix.open(".", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
        try:
            posix.chdir(directory)
            return posix.getcwd()
        finally:
            posix.fchdir(here)
            posix.close(here)
    except (OSError, ValueError):
        from os.path import realpath

        return realpath(directory)
