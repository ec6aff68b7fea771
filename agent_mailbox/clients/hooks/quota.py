"""The end of a quota: a turn failed, and the session cannot go on before its quota comes back.

Belongs here: which errors of a client are such an end. ``control.giving_back`` gives back what the session holds.

``claude -p`` ends its hook for that before the hook has begun. So the hook at the session's end looks, too.
"""

from __future__ import annotations

from ...core.roster import ALIVE
from ...core.text import clipped, neutral
from ...known_clients.every_client import USUAL
from .. import transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...mailbox.open_mailbox import OpenMailbox
    from ..client_input import ClientInput


def give_back_at_end(desk: OpenMailbox, call: ClientInput) -> None:
    """Give back what the session holds, and tell who leads it. As the session ends, that is told only of something."""
    ends = call.event == "SessionEnd"
    error, words = transcript.find_failure(call.transcript, call.session_id) if ends else (call.reason, call.last_words)
    is_quota = error in USUAL.quota_ends and USUAL.passing not in words  # others pass, or are for the person
    if is_quota and desk.logs.read_roster().state(call.session_id) == ALIVE:
        from ...control import giving_back  # seldom in a session's life

        said = clipped(neutral(words), 150)
        giving_back.give_back(desk, call.session_id, f"{error}: {said}" if said else error, tells_nothing=not ends)
