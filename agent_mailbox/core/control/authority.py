"""Who may command: the person, and the lead an agent had when the command was given.

Belongs here: that one question. It is asked with the instant of the command, so that what was refused once is not
allowed later because somebody became a lead, and what was allowed stays so when a lead changes. A name is a claim
(any process of the user can write it); this keeps the confused apart, not the wicked.
"""

from __future__ import annotations

from ..records import USER
from ..roster import Agent, Roster


def lead_at(agent: Agent | None, when: int) -> str | None:
    """The lead an agent had at an instant (ms). Before it registered at all it had the one it registered with."""
    leads = agent.leads if agent is not None else ()
    lead = next((who for since, who in reversed(leads) if since <= when), None)
    if lead is None and agent is not None and leads and when < leads[0][0] == agent.registered:
        return leads[0][1]
    return lead


def is_same(speaker: str, session_id: str, when: int, roster: Roster) -> bool:
    """Is the speaker that session, or one that continued it at the instant?"""
    seen, queue = {speaker}, [speaker]
    while queue:
        here = queue.pop()
        if here == session_id:
            return True
        agent = roster.get(here)
        for old, since in zip(agent.continues, agent.heir, strict=True) if agent is not None else ():
            if since <= when and old not in seen:
                seen.add(old)
                queue.append(old)
    return False


def commands(speaker: str, worker: str, when: int, roster: Roster) -> bool:
    """May the speaker command the worker: answer its requests, set its mode and policy, shut it down? Never itself."""
    if worker == USER or speaker == worker or is_same(worker, speaker, when, roster):
        return False
    if is_same(speaker, worker, when, roster):
        return False
    if speaker == USER:
        return True
    lead = lead_at(roster.get(worker), when)
    return lead is not None and is_same(speaker, lead, when, roster)


def leads_itself(worker: str, roster: Roster) -> bool:
    """Do the leads above a worker go in a circle? Then nobody is told of its turns: each would wake the next."""
    seen, above = set[str](), worker
    while above not in seen and above != USER:
        seen.add(above)
        above = lead_of(above, roster)
    return above != USER


def lead_of(worker: str, roster: Roster) -> str:
    """Who decides for a worker now: its lead, or what continues that; the person where it has none, or one that is
    gone."""
    agent = roster.get(worker)
    if agent is None or agent.lead is None or agent.lead == USER:
        return USER
    heirs = roster.heirs(agent.lead)
    if agent.lead in heirs or roster.get(agent.lead) is None:
        return agent.lead
    return heirs[-1] if heirs else USER
