"""Time to live: when a message expires.

Belongs here: the default per mode, the override, the frozen recipient's stopped clock. ``now`` is always passed in;
expiry is judged when answering and never deletes anything.
"""

from __future__ import annotations

from .address import BROADCAST, DIRECT, ROLE, TAG
from .instant import HOUR
from .roster import FROZEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .records import Message
    from .roster import Roster

DEFAULT_TTL: Mapping[str, float | None] = {DIRECT: 24, ROLE: None, TAG: 72, BROADCAST: 4}
"""Hours per mode. Direct, role (none) and broadcast are the seed's; the seed gives tags none, 72 is ours."""


def expires_at(message: Message, roster: Roster, ttls: Mapping[str, float | None]) -> int | None:
    """The instant (ms) from which the message counts as expired; None while there is none.

    None means no time to live, or a direct recipient that is frozen now, so that the clock stands. With several
    addresses the longest counts.
    """
    latest = 0
    for address in message.recipients:
        mode = roster.mode(address)
        hours = message.ttl_hours if message.ttl_hours is not None else ttls[mode]
        if hours is None:
            return None
        deadline: int | None = message.timestamp + int(hours * HOUR)
        if mode == DIRECT:
            deadline = _stopped_while_frozen(address, message.timestamp, deadline, roster)
        if deadline is None:
            return None
        latest = max(latest, deadline)
    return latest


def _stopped_while_frozen(word: str, sent: int, deadline: int | None, roster: Roster) -> int | None:
    agent = roster.get(word) or roster.bearer(word)
    for since, until in agent.frozen if agent else ():
        if deadline is None or since >= deadline:
            break
        if until is None:
            return None if agent and agent.state == FROZEN else deadline
        deadline += max(0, until - max(since, sent))
    return deadline


def expired(message: Message, now: int, roster: Roster, ttls: Mapping[str, float | None]) -> bool:
    """Has the message expired at ``now``? At the deadline exactly: yes."""
    deadline = expires_at(message, roster, ttls)
    return deadline is not None and now >= deadline
