"""The right to command: the person has it, and the lead an agent had when the command was given.

Belongs here: that one question. It is asked with the instant of the command. So a refused command stays refused when
its sender becomes a lead later, and an allowed one stays allowed when the lead changes.

An unproven line may name a lead, which binds the agent; only a proven lead may allow it anything. Any session may take
the name of an agent that is gone, and then has its mail. It has that agent's place only if the person said so, or the
older session's own client (``Agent.inherits``).
"""

from __future__ import annotations

from ..records import USER
from ..roster import Agent, Roster


def lead_at(agent: Agent | None, when: int, *, proven: bool = True) -> str | None:
    """Return the lead an agent had at an instant (ms). Before it registered it had the one it registered with."""
    leads = () if agent is None else agent.proven_leads if proven else agent.leads
    lead = next((who for since, who in reversed(leads) if since <= when), None)
    if lead is None and agent is not None and leads and when < leads[0][0] == agent.registered:
        return leads[0][1]
    return lead


def is_same(speaker: str, session_id: str, when: int, roster: Roster, *, proven: bool = True) -> bool:
    """Return whether the speaker is that session or had its place at the instant; unproven, whether it continued it."""
    seen, queue = {speaker}, [speaker]
    while queue:
        here = queue.pop()
        if here == session_id:
            return True
        agent = roster.get(here)
        if agent is None:
            continue
        for old, since in zip(agent.continues, agent.heir, strict=True):
            if since <= when and old not in seen and (not proven or old in agent.inherits):
                seen.add(old)
                queue.append(old)
    return False


def commands(speaker: str, worker: str, when: int, roster: Roster, *, proven: bool = True) -> bool:
    """Return whether the speaker may command the worker: answer its requests, set its mode and policy, shut it down.

    An agent never commands itself. Without ``proven``: whether it may restrict the worker, which a lead that only a
    foreign line names may do.
    """
    if worker == USER or speaker == worker or is_same(worker, speaker, when, roster, proven=False):
        return False
    if is_same(speaker, worker, when, roster, proven=False):
        return False
    if speaker == USER:
        return True
    leads = {lead_at(roster.get(worker), when, proven=True)}
    if not proven:
        leads.add(lead_at(roster.get(worker), when, proven=False))
    return any(lead is not None and is_same(speaker, lead, when, roster, proven=proven) for lead in leads)


def leads_itself(worker: str, roster: Roster) -> bool:
    """Return whether the leads above a worker go in a circle. Then no turn is reported: each report would wake the
    next."""
    seen, above = set[str](), worker
    while above not in seen and above != USER:
        seen.add(above)
        above = lead_of(above, roster)
    return above != USER


def lead_of(worker: str, roster: Roster) -> str:
    """Return the agent that decides for a worker now: its proven lead, or that one's successor; else the person."""
    agent = roster.get(worker)
    lead = agent.proven_leads[-1][1] if agent is not None and agent.proven_leads else None
    if lead is None or lead == USER:
        return USER
    heirs = [heir for heir in roster.heirs(lead) if lead in roster.estate(heir)]
    if lead in heirs or roster.get(lead) is None:
        return lead
    return heirs[-1] if heirs else USER
