"""The end of a quota: a turn failed, and the session cannot go on before its quota comes back.

Belongs here: which errors of a client are such an end. ``control.giving_back`` gives back what the session holds.
"""

from __future__ import annotations

from ...control.giving_back import GivingBack
from ...core.roster import ALIVE
from ...core.text import clipped, neutral
from ...known_clients.every_client import USUAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...mailbox.open_mailbox import OpenMailbox
    from ..client_input import ClientInput


def is_quota_end(call: ClientInput) -> bool:
    """Return whether a turn failed since a quota ended; other errors pass, or are for the person."""
    return call.reason in USUAL.quota_ends and USUAL.passing not in call.last_words


def give_back_at_end(desk: OpenMailbox, call: ClientInput) -> None:
    """Give back what the session holds, and tell who leads it."""
    if is_quota_end(call) and desk.logs.read_roster().state(call.session_id) == ALIVE:
        said = clipped(neutral(call.last_words), 150)
        GivingBack(desk).give_back(call.session_id, f"{call.reason}: {said}" if said else call.reason)
