"""PreToolUse: have the client ask about our commands that send a file, or use another mailbox; refuse a teammate's that
would speak for its lead.

Belongs here: where the agent works, and the shape of the answer. ``permissions.own_commands`` and ``own_questions``
have the rules. It needs no mailbox, for a command may name any.
"""

from __future__ import annotations

from os import path
from typing import TYPE_CHECKING, Any

from ...errors import MailboxError
from ...permissions import own_commands, own_questions
from ...store.files import paths, system

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_UNTOLD = frozenset("$`*?[{")
"""Signs of a word that a shell makes into another."""


class CommandPlace:
    """The directory an agent works in, and its mailbox (None: it has none), for ``own_questions``."""

    def __init__(self, here: str, mailbox: Callable[[], str | None]) -> None:
        self._here = here
        self._mailbox = mailbox

    def is_own(self, words: Sequence[str]) -> bool:
        """Return whether these directories, each from the one before, end in the agent's own mailbox."""
        real = self._real_path(words)
        return real is not None and real == self._own_mailbox()

    def finds_own(self, words: Sequence[str]) -> bool:
        """Return whether a command there finds the agent's own mailbox, or none."""
        real = self._real_path(words)
        if real is None:
            return False
        try:
            found = paths.find(real)
        except MailboxError:
            return False
        return found is None or system.real_directory(found) == self._own_mailbox()

    def _own_mailbox(self) -> str | None:
        try:
            box = self._mailbox()
        except MailboxError:
            return None
        return None if box is None else system.real_directory(box)

    def _real_path(self, words: Sequence[str]) -> str | None:
        """Return the real path of a directory; None for one that is not there, or that only the shell knows."""
        place = self._here
        for word in words:
            if not word or word == "-" or not _UNTOLD.isdisjoint(word):
                return None
            place = path.join(place, path.expanduser(word))
        try:
            real = path.realpath(place)
        except ValueError:  # no file can have this name
            return None
        return real if path.isdir(real) else None


def denial_of(command: str, member: str | None, place: CommandPlace, *, may_ask: bool = True) -> dict[str, Any] | None:
    """Return the answer that stops the command, or makes the client ask, with the reason; None to let it run.
    ``member``: the teammate that calls; None for a session itself, whose command tells by its processes who calls.

    If the client cannot ask its person, the command is denied."""
    why = None if member is None else own_commands.refusal_for_teammate(command, member)
    decision = "deny"
    if why is None:
        why = own_questions.question_about(command, place)
        if why is None:
            return None
        if may_ask:
            decision = "ask"
        else:
            why = f"{why} An agent may not: only the person may run this, in a terminal of their own."
    told = {"permissionDecision": decision, "permissionDecisionReason": f"agent-mailbox: {why}"}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}}
