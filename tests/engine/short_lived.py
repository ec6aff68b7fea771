"""Short-lived sessions, as in continuous integration: each registers, sends, looks and ends. What does each cost, and
what grows?

Belongs here: the run, on two machines and one server, in this process. ``python -m tests.engine.short_lived N``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.engine import joining_space
from agent_mailbox.mailbox.space import Space
from agent_mailbox.store import creation

from .nats_server import TOKEN, serving

PARTS = 5


def main(arguments: list[str]) -> int:
    """Run so many sessions; print, for each fifth of them, what a session took, and how large everything is."""
    many = int(arguments[0]) if arguments else 10_000
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch) / "server") as url:
        os.environ |= {
            "XDG_STATE_HOME": f"{scratch}/state",
            "AGENT_MAILBOX_TEST_STATE": f"{scratch}/state/agent-mailbox",
        }
        token = Path(scratch) / "token"
        token.touch(0o600)
        token.write_text(TOKEN)
        places = [creation.create(f"{scratch}/{name}", os.environ) for name in ("north", "south")]
        for name, place in zip(("north", "south"), places, strict=True):
            joining_space.join(Mailbox(place).logs, Space(url, "ci", name, str(token)))
        Mailbox(places[0]).register(Registration(session_id="lead"), "lead")
        print("| sessions | a session takes | of the processor | files of a machine | of its record | server |")
        for part in range(PARTS):
            times, began = list[float](), time.process_time()
            for n in range(part * many // PARTS, (part + 1) * many // PARTS):
                start = time.perf_counter()
                _live(Mailbox(places[n % 2]), f"ci-{n}")
                times.append(time.perf_counter() - start)
            cost = (time.process_time() - began) / len(times)
            Mailbox(places[0]).deliver("lead", lambda items: items)
            sizes = [_size(Path(one)) for one in (places[0], f"{scratch}/state", f"{scratch}/server/store")]
            cells = [f"{(part + 1) * many // PARTS}", f"{median(times) * 1000:.1f} ms", f"{cost * 1000:.1f} ms"]
            print("|", " | ".join([*cells, *(f"{size / 1024:.0f} KiB" for size in sizes)]), "|", flush=True)
    return 0


def _live(box: Mailbox, who: str) -> None:
    """A session's whole life: each step as its command does it."""
    box.register(Registration(session_id=who, roles=("ci",)), who)
    box.send(Draft(sender=who, to=("lead",), content=f"{who}: all tests passed"))
    box.deliver(who, lambda items: items)
    box.end(who, "retire", who)
    if box.replica is not None:
        box.replica.order.close()  # type: ignore[attr-defined]


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
