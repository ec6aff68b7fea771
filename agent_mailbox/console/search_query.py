"""The words of the search field: filters such as ``from:Ada`` and ``is:ack``, and beginnings of words.

Belongs here: from what the person typed to a selection of mail.
"""

from __future__ import annotations

from ..core.roster import Roster
from ..errors import Malformed
from ..mailbox.selection import Selection

SHORTEST = 3
"""Letters from which a word is also the beginning of others."""


def parse_query(typed: str) -> Selection:
    """Return the selection that a query asks for; raises ``Malformed`` for an unknown ``is:``.

    A word in double quotes is looked for as a whole word.
    """
    plain: list[str] = []
    found = Selection()
    for word in typed.split():
        name, _, value = word.partition(":")
        if name == "from" and value:
            found = found.replace(sender=value)
        elif name in ("to", "in") and value:
            found = found.replace(recipient="all" if value == "#all" else value)
        elif name == "is" and value:
            found = _apply_kind(found, value)
        else:
            plain.append(f"{word}*" if len(word) >= SHORTEST and not word.endswith(('"', "*")) else word)
    return found.replace(query=" ".join(plain))


def in_any_case(word: str, roster: Roster) -> str:
    """Return the agent's id for a name that is spelt in another case, if one agent has it; else the word."""
    if not word or ":" in word or any(agent.name == word for agent in roster.agents.values()):
        return word
    alike = [a.session_id for a in roster.agents.values() if (a.name or "").casefold() == word.casefold()]
    return alike[0] if len(alike) == 1 else word


def _apply_kind(found: Selection, value: str) -> Selection:
    if value == "ack":
        return found.replace(asks=True)
    if value in ("control", "mail"):
        return found.replace(kind=value)
    raise Malformed(f"unknown filter: is:{value}", "write is:ack, is:control or is:mail")
