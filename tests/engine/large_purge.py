"""A space of very many records that all machines archived: what does `engine purge` take?

Belongs here: the run, on one real server, by the calls of the command. ``python -m tests.engine.large_purge N ENGINE``,
where ENGINE is ``nats`` or ``postgresql``.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox import Draft
from agent_mailbox.core import compose
from agent_mailbox.core.address import uuid_of
from agent_mailbox.space import purging
from agent_mailbox.space.nats.nats_order import open_order as open_nats
from agent_mailbox.space.order import bundles
from agent_mailbox.space.order.follow_progress import spell_word
from agent_mailbox.space.order.order import ARCHIVE, MESSAGES, MOST, PASSED
from agent_mailbox.space.postgres.postgres_order import open_order as open_postgres
from tests.helpers import end_all_when_terminated

from . import postgres_server
from .nats_server import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_mailbox.space.order.order import SpaceOrder

FILE = "2026-01.jsonl"


def main(arguments: list[str]) -> int:
    """Fill a space, purge it, and print what that took."""
    many, kind = int(arguments[0]), arguments[1]
    with tempfile.TemporaryDirectory() as scratch, (_nats if kind == "nats" else _postgres)(Path(scratch)) as order:
        order.make_unless_there()
        for first in range(0, many, MOST):
            lines = [_line(n) for n in range(first, min(first + MOST, many))]
            order.append_lines(MESSAGES, [line for _, line in lines], ids=[message_id for message_id, _ in lines])
        for record in bundles.records_of(FILE, (_line(n)[1] for n in range(many))):
            order.append_lines(ARCHIVE, [record])
        order.append_lines(PASSED, [spell_word("applied", order.last_position())])
        print(f"{order.last_position():,} records on {kind}", flush=True)
        start, used = time.perf_counter(), time.process_time()
        plan = purging.plan_purge(order, [order.machine])
        planned, thought = time.perf_counter(), time.process_time()
        purging.purge_records(order, plan, order)
        done = time.perf_counter()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"planned in {planned - start:.0f} s ({thought - used:.0f} s of the processor), {memory} MiB")
        left = order.last_position() - order.count_holes()
        print(f"removed {len(plan.positions):,} in {done - planned:.0f} s; {left:,} are left")
        assert len(plan.positions) == order.count_holes() == many - 1
        order.close()
    return 0


def _line(n: int) -> tuple[str, bytes]:
    chance = random.Random(n)
    message_id = uuid_of(f"{chance.getrandbits(128):032x}", "4")
    draft = Draft(sender="ann", to=("ben",), content=chance.randbytes(chance.randrange(100)).hex())
    return message_id, compose.stored_line(compose.message(draft, ("ben",), message_id, n)).rstrip(b"\n")


@contextmanager
def _nats(scratch: Path) -> Iterator[SpaceOrder]:
    token = scratch / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    with serving(scratch / "server") as url:
        yield open_nats(url, "large", "north", str(token))


@contextmanager
def _postgres(scratch: Path) -> Iterator[SpaceOrder]:
    with postgres_server.made() as server, server.running():
        yield open_postgres(server.url, "large", "north", postgres_server.credential(scratch / "word"))


if __name__ == "__main__":
    end_all_when_terminated()
    sys.exit(main(sys.argv[1:]))
