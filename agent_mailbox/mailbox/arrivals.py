"""The signs by which a sender is told when each reader will see the mail.

Belongs here: gathering them, for the agents that a message reaches alone, and without the network. ``core.arrival``
has the rule.
"""

from __future__ import annotations

from ..core import arrival
from ..core.recipients import is_mate
from ..store import armed_doorbells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.arrival import Arrival
    from .opened import OpenMailbox
    from .sending import Sent


def arrival_of(desk: OpenMailbox, sent: Sent) -> Arrival:
    """Return when the agents that a sent message reaches will see it."""
    roster, readers = desk.logs.read_roster(), sent.delivery.agents
    signs = arrival.Signs(
        waking=armed_doorbells.armed(desk.logs.cache(), readers),
        hooked=sent.delivery.running,
        carried=[who for who in readers if is_mate(roster.get(who))],
        elsewhere=desk.elsewhere(readers),
        queued=sent.queued,
    )
    return arrival.sort(sent.message, sent.delivery, signs, roster)
