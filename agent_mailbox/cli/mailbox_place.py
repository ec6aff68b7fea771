"""Find the mailbox that a command uses.

Belongs here: reading the environment, and the search. The callers check who made the mailbox.
"""

from __future__ import annotations

import posix

from ..core.text import typed
from ..errors import NoMailbox
from ..identity.client_variables import SERVICES
from ..store.files import paths, system
from ..store.files.system import environment as environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class MailboxPlace:
    """A mailbox directory, and whether ``--dir`` or ``AGENT_MAILBOX_DIR`` named it."""

    def __init__(self, directory: str, named: bool) -> None:
        self.directory = directory
        self.named = named


def locate_mailbox(given: str | None, environ: Mapping[str, str], start: str | None = None) -> MailboxPlace:
    """Return the mailbox to use: ``--dir``, else ``AGENT_MAILBOX_DIR``, else the nearest from ``start`` (default: the
    working directory) upwards. Raises ``NoMailbox``, and ``StorageFailed`` if its messages log was removed.

    A variable with a relative path names a mailbox of each directory: it is found there, as without the variable. In a
    client's background service the variable is another terminal's, and does not count.
    """
    variable = environ.get("AGENT_MAILBOX_DIR") if environ.keys().isdisjoint(SERVICES) else None
    if given or (variable and variable.startswith("/")):
        return MailboxPlace(given or variable or "", True)
    begin = _without_links(start) if start else working_directory()
    found = system.absolute(system.join(working_directory(), variable)) if variable else paths.find(begin)
    if found is not None and (real := paths.strays(found, environ)) is not None:
        raise NoMailbox(
            f"{found} is {real}, through a link that your `agent-mailbox init` did not record",
            f"if it is to be this project's, too, the person runs `agent-mailbox init {typed(found)}`",
        )
    if found is None:
        if (gone := paths.remnant(begin, environ)) is not None:
            raise paths.lost(gone)
        raise NoMailbox(
            "no mailbox here or above",
            "run `agent-mailbox init` to make one, or name one with --dir or AGENT_MAILBOX_DIR",
        )
    return MailboxPlace(found, False)


def working_directory() -> str:
    """Return the working directory; raises ``NoMailbox`` if it is gone."""
    try:
        return posix.getcwd()
    except OSError:  # such as that of a worktree that was removed
        hint = "change to a directory that is there, or name the mailbox with --dir or AGENT_MAILBOX_DIR"
        raise NoMailbox("the working directory is gone", hint) from None


def _without_links(directory: str) -> str:
    """Return the directory's real path by changing to it and back: importing ``os`` would cost 2 ms."""
    try:
        at = posix.open(".", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
        try:
            posix.chdir(directory)
            return posix.getcwd()
        finally:
            posix.fchdir(at)
            posix.close(at)
    except (OSError, ValueError):
        from os.path import realpath

        return realpath(directory)
