"""What a drill repeats. Belongs here: its shape alone, for the modules that have commands of their own."""

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
