"""The roster's agents as people ask for them: with the time each was last seen.

Belongs here: one agent, all agents. A registration asks no more, so the other questions are ``mailbox.queries``.
"""

from __future__ import annotations

from ..core.records import USER
from ..core.roster import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.roster import Agent
    from .open_mailbox import OpenMailbox


def every(desk: OpenMailbox, state: str | None = None) -> list[tuple[Agent, int]]:
    """Return the roster's agents, in one state or all, each with the ms it was last seen."""
    seen = desk.last_seen()
    roster = desk.logs.read_roster()
    return [(a, last_seen(a, seen)) for a in roster.agents.values() if state is None or a.state == state]


def one(desk: OpenMailbox, word: str) -> tuple[Agent, int | None]:
    """Return the agent a word means, and the ms it was last seen (None: the person, who has no heartbeat).

    Raises ``NotFound`` or ``Ambiguous``.
    """
    found = desk.logs.read_roster().find(word)
    return found, None if found.session_id == USER else last_seen(found, desk.last_seen((found.session_id,)))


def judged_signs(desk: OpenMailbox, sessions: Iterable[str]) -> Mapping[str, int]:
    """Return the ms of the last sign of life by which each session is judged here.

    If machines share the mailbox, a session without one here is another's, which judges it: it counts as just seen."""
    seen = desk.logs.last_seen()
    return {**dict.fromkeys(sessions, desk.now()), **seen} if desk.logs.is_shared else seen


def last_seen(agent: Agent, seen: Mapping[str, int]) -> int:
    """Return the ms an agent was last seen: its heartbeat, else its registration.

    A dead agent may have no heartbeat any more. Then it was last seen when it was frozen for good, or retired.
    """
    beat = seen.get(agent.session_id, 0)
    if not beat and agent.state == DEAD:
        beat = agent.frozen[-1][0] if agent.frozen and agent.frozen[-1][1] == agent.changed else agent.changed
    return max(beat, agent.registered)
