"""What a world is like: the chances of everything that may befall its calls.

Belongs here: the form of it. ``plans`` and its kin say which worlds there are.
"""

from __future__ import annotations

from typing import NamedTuple


class Profile(NamedTuple):
    """What a world is like, drawn from its seed. Probabilities are of one call."""

    ordered: bool = True
    grain: int = 1
    lockless: bool = False
    watchless: bool = False
    switch: float = 0.2
    kill: float = 0.0
    stop: float = 0.0
    fault: float = 0.0
    short: float = 0.0
    full: float = 0.0
    jump: float = 0.0
    power: float = 0.0
    slow: float = 0.0
    strict: bool = False
    """Does whoever has the highest rank go on (probabilistic concurrency testing, Burckhardt 2010)? Else anyone."""
    spots: int = 0
    """How many calls are chosen before which more happens."""
    heat: int = 0
    """At how many calls behind a turning one more happens."""
    focused: bool = False
    """Do kills and faults come there, and hardly elsewhere? Else few long commands come to their end."""
    aimed: float = 0.0
    """How many processes are aimed at: one thing befalls each, before a call that is drawn when it starts."""
    aims: tuple[str, ...] = ()
    """The things that befall them."""
