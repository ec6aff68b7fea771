"""Agents that a text names: ``@Ada`` has her told, too.

Belongs here: which words of a text are such names. A word that is no agent's name is only a word.
"""

from __future__ import annotations

import re

from ..core.roster import Agent, Roster
from . import presenters

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_MENTION = re.compile(r"(?<![\w@.])@([A-Za-z0-9][\w.@+-]*)", re.ASCII)
MOST = 20
"""Agents that one text may name."""


def list_mentionable(roster: Roster) -> list[Agent]:
    """Return the agents that a text may name: those not dead, by their names."""
    return sorted(presenters.living_agents(roster), key=lambda agent: mention_word(agent).casefold())


def mention_word(agent: Agent) -> str:
    """Return the word by which a text names an agent."""
    return agent.name or agent.session_id


def find_mentioned(text: str, roster: Roster) -> list[str]:
    """Return the sessions that a text names by ``@Name``, outside of code, in any case if that is one agent."""
    by_word: dict[str, list[Agent]] = {}
    for agent in list_mentionable(roster):
        for word in {mention_word(agent).casefold(), agent.session_id.casefold()}:
            by_word.setdefault(word, []).append(agent)
    found: dict[str, None] = {}
    for word in _MENTION.findall(_CODE.sub(" ", text)):
        named = _find_named(word, by_word)
        if named is not None:
            found[named.session_id] = None
    return [*found][:MOST]


def _find_named(word: str, by_word: dict[str, list[Agent]]) -> Agent | None:
    """Return the agent of a word, which punctuation may follow."""
    named = by_word.get(word.casefold()) or by_word.get(word.rstrip(".@+-").casefold(), [])
    exact = [agent for agent in named if word.rstrip(".@+-") in (agent.name, agent.session_id)]
    return exact[0] if exact else named[0] if len(named) == 1 else None
