"""The engines of a storm: three NATS servers, or a PostgreSQL server, that are killed and started again.

Belongs here: what a storm asks of either.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from agent_mailbox.errors import MailboxError
from tests.helpers import PATIENCE, Child, Program, until

from .cluster_servers import SPACE, Servers
from .nats_server import program
from .opened_orders import open_postgres
from .postgres_server import PostgresServer, credential, made

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from agent_mailbox.space.order.order import SpaceOrder

MACHINES = ("north", "south", "west")


class Engine(Protocol):
    """It has servers on ``ports``."""

    ports: Sequence[int]

    def start_all(self) -> None:
        """Start the servers."""

    def end(self) -> None:
        """End them."""

    def join_words(self, machine: str, ports: Sequence[int]) -> Sequence[object]:
        """Return the words with which a machine joins by way of other ports."""

    def order(self, machine: str) -> SpaceOrder:
        """Return a machine's way to the space."""

    def kill_for(self, chance: random.Random, seconds: float) -> None:
        """Kill a server, and start it again after so many seconds."""

    def pids(self, chance: random.Random) -> Sequence[int]:
        """Return the processes of a server."""


class Nats:
    """Three servers of ``engine config``; the leader is killed as often as any other."""

    def __init__(self, scratch: Path) -> None:
        self.servers = Servers(Program(scratch / "operator"), 3, MACHINES)
        self.nodes: dict[int, Child] = {}
        self.ports = [int(one.rpartition(":")[2]) for one in self.servers.written["url"].split(",")]

    def start_all(self) -> None:
        for node in (1, 2, 3):
            self._start(node)
        until(self.servers.is_ready)

    def end(self) -> None:
        for child in self.nodes.values():
            child.kill()
            child.wait(PATIENCE)

    def join_words(self, machine: str, ports: Sequence[int]) -> Sequence[object]:
        """Return the words with which a machine joins by way of other ports."""
        home = self.servers.home
        url = ",".join(f"tls://127.0.0.1:{port}" for port in ports)
        files = "--credential", home / "machines" / machine, "--authority", home / "authority.pem"
        return url, "--space", SPACE, *files

    def order(self, machine: str) -> SpaceOrder:
        """Return a machine's way to the space."""
        return self.servers.order(machine)

    def kill_for(self, chance: random.Random, seconds: float) -> None:
        """Kill a server, and start it again after so many seconds."""
        node = self._one(chance)
        self.nodes[node].kill()
        self.nodes[node].wait(PATIENCE)
        time.sleep(seconds)
        self._start(node)

    def pids(self, chance: random.Random) -> Sequence[int]:
        """Return the process of a server."""
        return (self.nodes[self._one(chance)].pid,)

    def _one(self, chance: random.Random) -> int:
        if chance.random() < 0.5:
            return chance.choice([1, 2, 3])
        order = self.servers.order(MACHINES[0])
        try:
            return int(str(order.stream_info()["cluster"]["leader"]).rpartition("-")[2])
        except (MailboxError, KeyError):
            return chance.choice([1, 2, 3])
        finally:
            order.close()

    def _start(self, node: int) -> None:
        place = self.servers.home / str(node)
        with (place / "log").open("ab") as log:
            self.nodes[node] = Child([program(), "-c", "server.conf"], cwd=place, stderr=log)


class Postgres:
    """One server, with all of its processes."""

    def __init__(self, scratch: Path) -> None:
        self._all, self._run = ExitStack(), ExitStack()
        self.server: PostgresServer = self._all.enter_context(made())
        self.word = credential(scratch / "owner")
        self.ports = [self.server.port]

    def start_all(self) -> None:
        self._run.enter_context(self.server.running())

    def end(self) -> None:
        self._run.close()
        self._all.close()

    def join_words(self, machine: str, ports: Sequence[int]) -> Sequence[object]:  # noqa: ARG002 - all have one role
        """Return the words with which a machine joins by way of another port."""
        url = self.server.url.replace(f":{self.server.port}/", f":{ports[0]}/")
        return url, "--space", SPACE, "--credential", self.word

    def order(self, machine: str) -> SpaceOrder:
        """Return a machine's way to the space."""
        return open_postgres(self.server.url, SPACE, machine, self.word)

    def kill_for(self, chance: random.Random, seconds: float) -> None:  # noqa: ARG002 - there is one
        """Kill the server, and start it again after so many seconds."""
        self._run.close()
        time.sleep(seconds)
        self.start_all()

    def pids(self, chance: random.Random) -> Sequence[int]:  # noqa: ARG002 - likewise
        """Return the processes of the server."""
        return self.server.pids()


ENGINES: Mapping[str, Callable[[Path], Engine]] = {"nats": Nats, "postgres": Postgres}
