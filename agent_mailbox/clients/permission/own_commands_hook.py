"""PreToolUse: refuse our commands in another's name; have the client ask about those that send a file, or use another
mailbox.

Belongs here: who the agent is, where it works, and the shape of the refusal. ``permissions.own_commands`` and
``own_questions`` have the rules. It needs no mailbox, for a command may name any; with one, the agent's name and the
beginning of its id are its own too.
"""

from __future__ import annotations

from ...core import frame
from ...core.roster import MIN_PREFIX
from ...errors import MailboxError
from ...permissions import own_commands, own_questions
from ...store import paths, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ...core.roster import Roster
    from .teammate import CallingTeammate


_UNTOLD = frozenset("$`*?[{")
"""Signs of a word that a shell makes into another."""


class WorkPlace:
    """The directory an agent works in, and its mailbox (None: it has none), for ``own_questions``."""

    def __init__(self, here: str, mailbox: Callable[[], str | None]) -> None:
        self._here = here
        self._mailbox = mailbox

    def is_own(self, words: Sequence[str]) -> bool:
        """Return whether these directories, each from the one before, end in the agent's own mailbox."""
        real = self._real(words)
        return real is not None and real == self._own()

    def finds_own(self, words: Sequence[str]) -> bool:
        """Return whether a command there finds the agent's own mailbox, or none."""
        real = self._real(words)
        if real is None:
            return False
        try:
            found = paths.find(real)
        except MailboxError:
            return False
        return found is None or system.real_directory(found) == self._own()

    def _own(self) -> str | None:
        try:
            box = self._mailbox()
        except MailboxError:
            return None
        return None if box is None else system.real_directory(box)

    def _real(self, words: Sequence[str]) -> str | None:
        """Return the real path of a directory; None for one that is not there, or that only the shell knows."""
        from os import path  # where a command names a directory

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


def denial(
    command: str, caller: CallingTeammate, roster: Roster | None, place: WorkPlace, *, may_ask: bool = True
) -> dict[str, Any] | None:
    """Return the answer that stops the command, or makes the client ask, with the reason; None to let it run.

    A client that cannot be made to ask is refused what its person would be asked about."""
    if (member := caller.member()) is not None:
        why = own_commands.refusal(command, lambda word: word == member, member)
    else:
        me = caller.session_id
        line = roster.lineage(me) if roster is not None else (me,)
        why = own_commands.refusal(command, lambda word: is_own(word, me, roster) or caller.leads_as(word, line))
    decision = "deny"
    if why is None:
        why = own_questions.question(command, place)
        if why is None:
            return None
        if may_ask:
            decision = "ask"
        else:
            why = f"{why} An agent may not: only the person may run this, in a terminal of their own."
    told = {"permissionDecision": decision, "permissionDecisionReason": f"agent-mailbox: {why}"}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}}


def is_own(word: str, session_id: str, roster: Roster | None) -> bool:
    """Return whether the word names the session: its id, its name, or a prefix of its UUID that no other id shares."""
    if word == session_id:
        return True
    known = roster.agents if roster is not None else {}
    if word in known:
        return False
    bearer = roster.bearer(word) if roster is not None else None
    if bearer is not None:
        return bearer.session_id == session_id
    if len(word) < MIN_PREFIX or frame.short(session_id) == session_id or not session_id.startswith(word):
        return False
    return not any(other.startswith(word) for other in known if other != session_id)
