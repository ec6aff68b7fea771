"""The ends of a session: of its turn, of its quota, and of its life in the roster.

Belongs here: the mail that keeps a session from ending its turn, as far as the brake lets it. An error of a
client may be the end of a quota: then the session cannot go on, and ``control.giving_back`` gives back what it holds.
A session that goes on after its end in the roster is told so, once for each end. A hook registers no such
session by itself: it may have left, or somebody may have sent it away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import frame, inbox
from ...core.records import IDLE, NOW, TURN
from ...core.roster import ALIVE
from ...core.text import clipped, neutral, typed
from ...known_clients.every_client import USUAL
from ...mailbox import arrivals
from ...mailbox.sending import Sending
from ...mailbox.session_brake import SessionBrake
from ...store.files import small_files
from .. import transcript

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.inbox import Item
    from ...mailbox.open_mailbox import OpenMailbox
    from ..client_input import ClientInput


class TurnEnd:
    """The end of a session's turn, in a mailbox that was opened for it."""

    def __init__(self, desk: OpenMailbox) -> None:
        self._desk = desk
        self._brake: SessionBrake | None = None

    def choose(self, session_id: str, items: list[Item]) -> list[Item]:
        """Return the mail that keeps the session from ending its turn. Mail for when the turn is over does not, if a
        doorbell will wake the session for it."""
        chosen = inbox.due(items, NOW, TURN, IDLE)
        if any(inbox.timing(item) == IDLE for item in chosen):
            is_armed = arrivals.find_armed(self._desk.logs.cache(), (session_id,))
            chosen = inbox.due(items, NOW, TURN) if is_armed else chosen
        if not chosen:
            return []
        if self._brake is None:
            self._brake = SessionBrake(self._desk, session_id, Sending(self._desk).send)
        return self._brake.let_on(chosen)


# -- of a quota -------------------------------------------------------------------------------------------------------


def give_back_at_end(desk: OpenMailbox, call: ClientInput) -> None:
    """Give back what the session holds, and tell who leads it. As the session ends, that is told only of something."""
    ends = call.event == "SessionEnd"  # ``claude -p`` ends its hook for a failed turn before that has begun
    error, words = transcript.find_failure(call.transcript, call.session_id) if ends else (call.reason, call.last_words)
    is_quota = error in USUAL.quota_ends and USUAL.passing not in words  # others pass, or are for the person
    if is_quota and desk.logs.read_roster().state(call.session_id) == ALIVE:
        from ...control import giving_back  # seldom in a session's life

        said = clipped(neutral(words), 150)
        giving_back.give_back(desk, call.session_id, f"{error}: {said}" if said else error, tells_nothing=not ends)


# -- of a session in the roster ---------------------------------------------------------------------------------------


KEPT = "retired"
"""The derived directory that holds, for each session, the end of which it was told."""
_VERB = "roster retire"


def tell_once(desk: OpenMailbox, session_id: str, program: str, command: str, write: Callable[[str], None]) -> None:
    """Write the line for a retired session, unless it was told already, or this ``command`` of its own retired it."""
    roster = desk.logs.read_roster()
    agent, told = roster.get(session_id), desk.logs.cache(KEPT, session_id)
    if agent is None or small_files.load_derived(told) == b"%d" % agent.changed or _VERB in command:
        return
    heirs = [heir for heir in roster.heirs(session_id) if heir != session_id]
    goes = f"{frame.name_of(heirs[-1], roster)} continues it" if heirs else "its mail waits for nobody"
    why = f" ({clipped(neutral(agent.reason), 100)})" if agent.reason else ""
    back = f"`{program} roster register --session-id {typed(session_id)}`"
    write(
        f"agent-mailbox: this session, {frame.name_of(session_id, roster)}, was retired on"
        f" {frame.when(agent.changed)}{why}. It gets no mail, and {goes}. To come back: {back}"
    )
    small_files.save_derived(told, b"%d" % agent.changed)
