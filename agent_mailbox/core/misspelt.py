"""Misspelt names: which known words a word nearly is.

Belongs here: that likeness, and what a sender is told of it. It decides whether mail is refused, so it is narrower than
``text.near``, which only suggests. Two words that differ in a number, or in a part of one or two signs, are two names
(``worker-1``, ``worker-2``). The beginning of an agent's id or name is not another name.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from ..errors import NotFound
from .address import ALL, is_value
from .frame import shown_words
from .records import USER
from .roster import DEAD, TOO_SHORT
from .text import did_you_mean, typed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .roster import Agent, Roster

MOST = 3
"""Known words that are named to somebody who misspelt one."""
LONG = 8
"""Letters from which a word may have two slips of a key; a shorter one has one, and below ``SHORT`` none."""
SHORT = 3
_LOOK_ALIKES = str.maketrans(
    "авекмнорстухіјѕһԁԛԝαβεικμνορτυχγıɡ",
    "abekmhopctyxijshdqwabeikmvoptuxyig",
)
"""Cyrillic and Greek letters, folded, that look like Latin ones."""
_SEPARATORS = re.compile(r"[\s._+/#@:-]+")
_NUMBER = re.compile(r"\d+")
_HEX = re.compile(r"[0-9a-f]{6,}")
_DOUBLED = re.compile(r"(.)\1+")


def warn_unknown(word: str, roster: Roster, *, strict: bool) -> str:
    """Return the warning about a word that nobody has. Raise ``NotFound`` if it nearly is one that somebody has, and
    under ``strict``."""
    hint = ""
    if close := nearly(word, known_words(roster)) or nearly_agent(word, roster):
        short = f" For an agent, {TOO_SHORT};" if roster.begins_too_shortly(word) else ""
        insists = f"; role:{word} insists on a role of that name" if is_value(word) else ""
        hint = f"{did_you_mean(close)}{short} `agent-mailbox roster list` shows who is there{insists}"
    elif word.startswith("@") and is_value(word.lstrip("@")):
        hint = f"a name is written without the sign: {word.lstrip('@')}; `agent-mailbox roster list` shows all"
    if hint:
        raise NotFound(f"nobody is called {word!r}, and nothing was sent", hint, code="unknown_recipient")
    meant = did_you_mean(roster.near(word))
    if strict:
        raise NotFound(
            f"unknown recipient: {word!r}",
            meant or f"address role:{word} to let the mail wait for a role of that name",
            code="unknown_recipient",
        )
    waits = f"unknown recipient: {word!r}; sent to role:{word}, where it waits for whoever takes that name or role"
    return f"{waits}. {meant}" if meant else waits


def unknown_agent(me: str, roster: Roster) -> NotFound:
    """Return the error of a session that nobody knows: whom its caller may have meant, and how a new one begins."""
    meant = did_you_mean(nearly_agent(me, roster))
    first = f"or a new session, first run `agent-mailbox roster register --session-id {typed(me)}`"
    return NotFound(f"no agent {me!r} is known", f"{meant} F{first}" if meant else f"f{first}")


def warn_stranger(word: str, member: str, roster: Roster, *, strict: bool) -> str:
    """Return the warning about an unknown ``member`` of a team; raise ``NotFound`` under ``strict``."""
    what, meant = f"unknown teammate: {word!r}", did_you_mean(nearly(member, agent_words(roster)))
    if strict:
        hint = f"{meant} `agent-mailbox teams import` registers the living ones".lstrip()
        raise NotFound(what, hint, code="unknown_recipient")
    waits = f"{what}; mail to it waits until `agent-mailbox teams import` registers it"
    return f"{waits}. {meant}" if meant else waits


def warn_unheld(tag: str, roster: Roster) -> list[str]:
    """Return the warning about a role that nobody ever held, or another tag that nobody carries, if it nearly is one
    that somebody has."""
    if tag.startswith("role:"):
        meant = did_you_mean(roster.near(tag[5:]))
        return [f"no agent ever held {tag}; {meant}"] if meant else []
    tags = {word for agent in _living(roster) for word in agent.tags}
    meant = did_you_mean(nearly(tag, tags - {tag}))
    return [f"nobody carries {tag}; {meant}"] if meant else []


def known_words(roster: Roster) -> list[str]:
    """Return every word by which mail reaches somebody: agents not dead by name and id, roles ever held, tags."""
    tags = (tag for agent in _living(roster) for tag in agent.tags if not tag.startswith("role:"))
    roles = (role.removeprefix("role:") for role in sorted(roster.roles_ever))
    return list(dict.fromkeys((*agent_words(roster), *roles, *tags, ALL, USER)))


def agent_words(roster: Roster) -> list[str]:
    """Return the words by which agents that are not dead are known."""
    return [word for agent in _living(roster) for word in shown_words(agent)]


def _living(roster: Roster) -> list[Agent]:
    return [agent for agent in roster.agents.values() if agent.state != DEAD]


def nearly_agent(word: str, roster: Roster) -> list[str]:
    """Return the agents that the word nearly is or begins, by name or id; of those that are dead, in case alone."""
    words = agent_words(roster)
    begun = dict.fromkeys(one for one in words if _begins(folded(word), folded(one)))
    if found := nearly(word, words) or [*begun][:MOST]:
        return found
    dead = (one for agent in roster.agents.values() if agent.state == DEAD for one in shown_words(agent))
    return [one for one in dict.fromkeys(dead) if folded(one) == folded(word)][:MOST]


def _begins(one: str, other: str) -> bool:
    """Return whether a folded word is the beginning of another, and not a name of its own: ``work`` of ``worker``."""
    rest = other.removeprefix(one)
    if not one or rest in (other, ""):
        return False
    if _HEX.fullmatch(other.partition("-")[0]):
        return len(one) >= SHORT  # of a UUID
    return not (rest.lstrip("-")[:1].isdigit() or (rest.startswith("-") and len(rest) <= 3))


def nearly(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that the word nearly is, the likeliest first; at most ``MOST``."""
    wanted = folded(word)
    found: dict[str, tuple[int, str]] = {}
    for one in known:
        spelt = folded(one)
        slips = _slips(wanted, spelt)
        if slips is None and ":" in one:
            slips = _slips(wanted, folded(one.partition(":")[2]))
        if slips is not None:
            found.setdefault(spelt, (slips, one))
    return [one for _, one in sorted(found.values())][:MOST]


def folded(word: str) -> str:
    """Return a word without what the eye passes over: case, accents, look-alikes, signs around it and their kind."""
    if not word.isascii():
        plain = unicodedata.normalize("NFKD", word)
        word = "".join(c for c in plain if not unicodedata.combining(c) and unicodedata.category(c) != "Cf")
    return _SEPARATORS.sub("-", word.casefold().translate(_LOOK_ALIKES)).strip("-")


def _slips(one: str, other: str) -> int | None:
    """Return by how many slips of a key two folded words differ; None for two different names."""
    if one == other:
        return 0
    if abs(len(one) - len(other)) > 2:
        return None
    parts, others = one.split("-"), other.split("-")
    if len(parts) == len(others) > 1:
        counts = [_slips(*pair) for pair in zip(parts, others, strict=True)]
        return None if None in counts else max(filter(None, counts))
    if not (_HEX.fullmatch(one) and _HEX.fullmatch(other)) and _NUMBER.findall(one) != _NUMBER.findall(other):
        return None
    if _DOUBLED.sub(r"\1", one) == _DOUBLED.sub(r"\1", other):
        return 1  # a key that was held too long
    short = min(len(one), len(other))
    most = 0 if short < SHORT else 1 if short < LONG else 2
    begin = next((at for at in range(short) if one[at] != other[at]), short)
    one, other = one[begin:], other[begin:]
    end = next((at for at in range(min(len(one), len(other))) if one[-1 - at] != other[-1 - at]), None)
    end = min(len(one), len(other)) if end is None else end
    one, other = one[: len(one) - end], other[: len(other) - end]
    if short == SHORT and len(one) == len(other) == 1:
        return None  # Bob and Rob are two
    count = _distance(one, other) if max(len(one), len(other)) <= 2 * LONG else most + 1
    return count if count <= most else None


def _distance(one: str, other: str) -> int:
    """Return how many letters to add, drop, change or swap with the next make one word of the other."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
