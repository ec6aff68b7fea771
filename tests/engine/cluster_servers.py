"""Three servers of a cluster, and machines that join a space there."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from agent_mailbox.errors import Unavailable
from agent_mailbox.space.nats.nats_order import NatsOrder
from tests.helpers import PATIENCE, Program, until
from tests.ports import free_row

from .nats_server import processor, started
from .opened_orders import open_nats
from .pair import MACHINES, Pair

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

SPACE = "team"


def makes_space(order: NatsOrder) -> bool:
    """Do the servers make the space of an order? It is closed behind that."""
    try:
        order.make_unless_there()
    except Unavailable:
        return False
    finally:
        order.close()
    return True


class Servers:
    """The servers of a directory that ``engine config`` wrote."""

    def __init__(self, program: Program, nodes: int, machines: Sequence[str] = MACHINES) -> None:
        self.home = program.scratch / "engine"
        words = [word for machine in machines for word in ("--machine", machine)]
        result = program.call(
            *("engine", "config", "--nodes", nodes, "--space", SPACE, "--into", self.home, "--json"),
            *("--port", free_row(beside=2000), *words),
        )
        assert result.rc == 0, result
        self.written: dict[str, Any] = result.json
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """All of them, started as the command says: in its directory each."""
        with ExitStack() as stack:
            for n, command in enumerate(self.written["start"], 1):
                assert command == f"(cd {self.home / str(n)} && nats-server -c server.conf)"
                self.nodes[f"{SPACE}-{n}"] = stack.enter_context(started(self.home / str(n)))[0]
            yield

    def is_ready(self) -> bool:
        """Do the servers make a space? They need a moment after their start."""
        return makes_space(self.order(MACHINES[0], wait=2))  # one without a leader says nothing

    def processor(self) -> float:
        """Seconds of the processor that all of them have used."""
        return sum(processor(node.pid) for node in self.nodes.values())

    def order(self, machine: str, credential: str = "", wait: float = PATIENCE) -> NatsOrder:
        """A machine's way to the space, with its credential or another's."""
        file = self.home / "machines" / (credential or machine)
        return open_nats(self.written["url"], SPACE, machine, str(file), str(self.home / "authority.pem"), wait)


def joined(servers: Servers, program: Program) -> Pair:
    """Two mailboxes that joined with the commands that were printed."""
    pair = Pair(program, servers.written["url"], "")
    pair.space = SPACE
    until(servers.is_ready)
    for machine, command in zip(MACHINES, servers.written["join"], strict=True):
        result = program.call(*command.split()[1:], "--dir", program.scratch / machine)
        assert result.rc == 0, result
    return pair
