"""PreToolUse: refuse our commands in another's name; have the client ask about those that send a file.

Belongs here: who the agent is, and the shape of the refusal. ``permissions.own_commands`` has the rules. It needs no
mailbox, for a command may name any; with one, the agent's name and the beginning of its id are its own too.
"""

from __future__ import annotations

from ...core import frame
from ...core.roster import MIN_PREFIX
from ...permissions import own_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...core.roster import Roster
    from .teammate import CallingTeammate


def denial(
    command: str, caller: CallingTeammate, roster: Roster | None, *, may_ask: bool = True
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
        decision, why = "ask" if may_ask else "deny", own_commands.takes_file(command)
    if why is None:
        return None
    if decision == "deny" and not may_ask and own_commands.takes_file(command) == why:
        why = f"{why}; only the person may run this, in a terminal of their own"
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
