"""What one send costs a command with our own client of NATS, and with nats-py: to import, connect and publish.

Belongs here: that measurement, whose two figures are in ``space.nats.connection``.
``python -m tests.engine.library_cost PYTHON`` runs it; that Python has nats-py.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from agent_mailbox.space.nats.nats_order import open_order
from tests.helpers import ROOT

from .nats_server import TOKEN, serving

ROUNDS = 25
OURS = """
from agent_mailbox.space.nats.connection import NatsConnection, Publication
(answer,) = NatsConnection({url!r}, {word!r}, None).ask_each([Publication("mbx.team.a.messages.{n}", b"x")])
assert b'"seq"' in answer.data
"""
THEIRS = """
import asyncio, nats
async def main():
    way = await nats.connect({url!r}, token=open({word!r}).read().strip())
    assert (await way.jetstream().publish("mbx.team.a.messages.{n}", b"x")).seq
    await way.close()
asyncio.run(main())
"""


def main(python: str) -> int:
    """Measure both in turn, and print the medians: by the wall clock, and of the processor."""
    with tempfile.TemporaryDirectory() as place, serving(Path(place) / "server") as url:
        word = Path(place) / "token"
        word.touch(0o600)
        word.write_text(TOKEN)
        open_order(url, "team", "a", str(word)).make_unless_there()
        found: dict[str, list[tuple[float, float]]] = {}
        for n in range(ROUNDS):
            for name, code in (("nothing", ""), ("ours", OURS), ("nats-py", THEIRS)):
                found.setdefault(name, []).append(
                    _measure(python, code.format(url=url, word=str(word), n=f"{name}{n}"))
                )
    for name, times in found.items():
        wall, processor = (median(one[part] for one in times) * 1000 for part in (0, 1))
        print(f"{name}: {wall:.0f} ms, {processor:.0f} ms of the processor")
    return 0


def _measure(python: str, code: str) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([python, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, used


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
