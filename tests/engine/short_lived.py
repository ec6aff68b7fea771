"""Short-lived sessions, as in continuous integration: each registers, sends, looks and ends. What does each cost, and
what grows?

Belongs here: the run, on two machines and one server, in this process, with the steward every thousand sessions.
``python -m tests.engine.short_lived N``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.space import joining_space
from agent_mailbox.space.space import Space, order_in
from agent_mailbox.store.user_state import creation
from agent_mailbox.upkeep import steward
from tests.door import switches
from tests.helpers import end_all_when_terminated

from .nats_server import TOKEN, serving

PART = 1000
"""Sessions between two runs of the steward: six minutes, where ten thousand live in an hour."""


def main(arguments: list[str]) -> int:
    """Run so many sessions; print, for each thousand, what a session took, and how large everything is."""
    many = int(arguments[0]) if arguments else 10_000
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch) / "server") as url:
        switches.switch_now()
        os.environ[switches.STATE] = f"{scratch}/state"
        token = Path(scratch) / "token"
        token.touch(0o600)
        token.write_text(TOKEN)
        places = [creation.create(f"{scratch}/{name}", os.environ) for name in ("north", "south")]
        for name, place in zip(("north", "south"), places, strict=True):
            joining_space.join_space(Mailbox(place).logs, Space(url, "ci", name, str(token)))
        Mailbox(places[0]).register(Registration(session_id="lead"), "lead")
        print(
            "| sessions | a session takes | of the processor | the steward | files of each | of its record | server |"
        )
        for first in range(0, many, PART):
            times, began = list[float](), time.process_time()
            for n in range(first, min(first + PART, many)):
                start = time.perf_counter()
                _live(Mailbox(places[n % 2]), f"ci-{n}")
                times.append(time.perf_counter() - start)
            cost, began = (time.process_time() - began) / len(times), time.process_time()
            Mailbox(places[0]).deliver("lead", lambda items: items)
            for place in places:
                box = Mailbox(place)
                steward.run_upkeep(box)
                _close(box)
            upkeep = (time.process_time() - began) / len(places)
            sizes = [_size(Path(one)) for one in (places[0], f"{scratch}/state", f"{scratch}/server/store")]
            cells = [str(first + len(times)), *(f"{s * 1000:.1f} ms" for s in (median(times), cost)), f"{upkeep:.1f} s"]
            print("|", " | ".join([*cells, *(f"{size / 1024:.0f} KiB" for size in sizes)]), "|", flush=True)
    return 0


def _live(box: Mailbox, who: str) -> None:
    """A session's whole life: each step as its command does it."""
    box.register(Registration(session_id=who, roles=("ci",)), who)
    box.send(Draft(sender=who, to=("lead",), content=f"{who}: all tests passed"))
    box.deliver(who, lambda items: items)
    box.end(who, "retire", who)
    _close(box)


def _close(box: Mailbox) -> None:
    if box.replica is not None:
        order_in(box.replica).close()


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


if __name__ == "__main__":
    end_all_when_terminated()
    sys.exit(main(sys.argv[1:]))
