"""The result of a run: a short table, or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .director import Director

ROWS = (
    *("messages acknowledged", "messages stored", "shown", "reads", "claims", "acks", "releases", "successions"),
    *("commands", "hooks", "kills", "stops", "clock jumps", "derived files damaged", "strangers' lines", "torn lines"),
    *("tool calls asked about", "allowed", "denied", "denied, having failed", "timed out", "forged"),
    *("archive runs", "guard: nothing", "guard: maybe", "busy", "refused", "shown, then busy"),
)
MOST = 20


def table(director: Director) -> str:
    """What happened and what did not hold, for people."""
    lines = [f"{name:<28}{director.counts[name]:>9}" for name in ROWS]
    lines.append(f"{'violations':<28}{len(director.violations):>9}")
    lines += [f"  {violation}" for violation in director.violations[:MOST]]
    more = len(director.violations) - MOST
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])]) + "\n"


def document(director: Director, seed: str, kept: str | None) -> str:
    """The same as one JSON document."""
    counts = {name: director.counts[name] for name in ROWS}
    return json.dumps({"seed": seed, "counts": counts, "violations": director.violations, "kept": kept}) + "\n"
