"""What a drill or a sweep repeats. Belongs here: its shape alone, for the modules that have commands of their own."""

from __future__ import annotations

from typing import NamedTuple


class Scene(NamedTuple):
    """What a drill repeats: commands that prepare it, and those that meet each other."""

    weight: float
    prepared: str
    met: str
    """Two to four of these, beside each other; a ``!`` behind those that always come."""
    since: str = ""
    """Done behind them, one after the other, and aimed at, too."""
    aims: tuple[str, ...] = ()
    """Things that befall these commands, one of which is drawn for a round; see ``plans._directed``."""
    least: int = 2
    """Agents that it needs: four share each role."""


PARTED = " / "
"""What is between the parts of a round."""


class Sweep(NamedTuple):
    """What the rounds of a sweep consist of. A ``?`` behind a word: in half of the rounds. ``a|b``: one of them.
    ``a@2``: agent 2 does it, else anyone."""

    weight: float
    """Worlds of few calls have a large one."""
    words: str
    """Three parts, between `` / ``: what prepares a round, the commands beside each other, of which the first one is
    attacked, and what comes behind them. ``everyone`` before a command: each agent does it. ``later``: hours go by;
    ``soon``: as long as a claim lasts, about; ``night``: up to some weeks."""
    attacks: tuple[str, ...] = ()
    """Those of ``ATTACKS`` that suit it; none: all that have a weight."""
    outages: float = 0.0
    """How often the power fails behind a round."""
    small: float = 0.5
    """How often few are many for the product."""
    scans: bool = True
    """Does it scan a log that is large by that? A scan seeks no line of mail for others."""
    rounds: int = 12
    """The most; the fewest are half of them. A single one is attacked, which others never are in the first round."""
    found: bool = True
    """Is the mailbox there?"""
    registered: bool = True
    """Are the agents registered first?"""
    clients: bool = False
    """Have agents clients with transcripts?"""
    live: tuple[int, ...] = (0, 0, 1, 2)
    """How many live messages a steward leaves: one of these."""
    agents: int = 0
    """How many there are; 0: two or three, and four with clients. Agents 0 and 2 share a role, as do 1 and 3."""
    loose: float = 0.6
    """How often each change of names is durable by itself."""
    starts: tuple[int, ...] = ()
    """When it begins, in seconds since 1970: one of these; none: with the year 2026."""
