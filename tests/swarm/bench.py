"""``scripts/bench-swarm``: throughput, latency and memory of a gateway that verifies and syncs all it takes.

Messages are signed beforehand; the client is a process beside the gateway, on the same machine. Each answer counted is
a 200 to a message that is on the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from agent_mailbox.swarm.protocol import tokens, wire
from tests.swarm.machine import Authority, Machine
from tests.swarm.wirework import Line, Person, memory

if TYPE_CHECKING:
    from collections.abc import Sequence

SEQUENTIAL = 500
CHUNK = 5_000
HEADERS = {"content-type": "application/json", "x-agent-id": "bob"}
AT_ONCE = 32
"""Requests at once, over however many connections."""
EACH = 16
"""Connections from one address of the loopback network: fewer than the gateway lets one have."""


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median and p99, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100)
    return {"median_ms": round(cuts[49] * 1000, 2), "p99_ms": round(cuts[98] * 1000, 2)}


class Load:
    """A member that sends as fast as it is answered."""

    def __init__(self, machine: Machine, person: Person, swarm: str) -> None:
        self._person = person
        self._swarm = swarm
        self._verify = ssl.create_default_context(cafile=str(machine.authority.ca))
        self._base = f"https://127.0.0.1:{machine.port}"

    def signed(self, count: int) -> list[bytes]:
        """Bodies, signed now."""
        text = "A message of the usual length: what was done, what is next, and where to look. " * 3
        return [wire.dump_json(self._person.envelope(self._swarm, "alpha", text)).encode() for _ in range(count)]

    def _client(self, number: int) -> httpx.AsyncClient:
        address = f"127.0.0.{1 + number // EACH}"
        way = httpx.AsyncHTTPTransport(http2=True, verify=self._verify, local_address=address)
        return httpx.AsyncClient(transport=way, base_url=self._base)

    async def newcomers(self, bodies: list[bytes]) -> float:
        """Send each by a connection of its own, eight at once; the seconds it took."""
        queue, start = list(bodies), time.perf_counter()

        async def come() -> None:
            while queue:
                async with self._client(0) as client:
                    answer = await client.post("/swarm/message", content=queue.pop(), headers=HEADERS, timeout=60)
                assert answer.status_code == 200, answer.text

        await asyncio.gather(*(come() for _ in range(8)))
        return time.perf_counter() - start

    async def send(self, bodies: list[bytes], connections: int, at_once: int) -> tuple[float, list[float]]:
        """Send all of them, each connection with some at once; (seconds it took, seconds of each)."""
        took: list[float] = []
        queue = list(bodies)
        clients = [self._client(number) for number in range(connections)]

        async def stream(client: httpx.AsyncClient) -> None:
            while queue:
                body = queue.pop()
                start = time.perf_counter()
                try:
                    answer = await client.post("/swarm/message", content=body, headers=HEADERS, timeout=60)
                except httpx.TransportError:  # a connection serves only so many requests
                    queue.append(body)
                    continue
                took.append(time.perf_counter() - start)
                assert answer.status_code == 200, answer.text

        start = time.perf_counter()
        turns = range(max(connections, at_once))
        await asyncio.gather(*(stream(clients[turn % connections]) for turn in turns))
        seconds = time.perf_counter() - start
        for client in clients:
            await client.aclose()
        return seconds, took


def measure(messages: int, connections: int, newcomers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(Path(scratch), "alpha", Authority(Path(scratch) / "ca")).serve()
        try:
            machine.register("ann")
            swarm = machine.ok("swarm", "create", "demo", "--session", "ann")["swarm"]["swarm_id"]
            bob = Person("bob")
            token = tokens.parse_url(machine.ok("swarm", "invite", "demo")["url"]).token
            assert Line(machine).post("join", bob.joining(token)).status_code == 200
            assert machine.gateway is not None
            pid, load = machine.gateway.pid, Load(machine, bob, swarm)
            found: dict[str, Any] = {"memory_mib": {"0": round(memory(pid), 1)}}
            _, alone = asyncio.run(load.send(load.signed(SEQUENTIAL), 1, 1))
            found["one_after_another"] = percentiles(alone)
            sent, seconds, took = SEQUENTIAL, 0.0, []
            while sent < messages:
                bodies = load.signed(min(CHUNK, messages - sent))
                more, each = asyncio.run(load.send(bodies, connections, AT_ONCE))
                sent, seconds, took = sent + len(bodies), seconds + more, took + each
                found["memory_mib"][str(sent)] = round(memory(pid), 1)
            found["at_once"], found["connections"] = max(connections, AT_ONCE), connections
            seconds_new = asyncio.run(load.newcomers(load.signed(newcomers)))
            found["new_connections_per_second"] = round(newcomers / seconds_new)
            found["memory_mib"][f"{newcomers} new connections"] = round(memory(pid), 1)
            sent += newcomers
            found["per_second"] = round(len(took) / seconds)
            found["concurrent"] = percentiles(took)
            assert len(machine.received()) == sent
            machine.kill()
            start = time.perf_counter()
            machine.serve()
            found["restart_seconds"] = round(time.perf_counter() - start, 2)
            assert machine.gateway is not None
            found["memory_mib"]["after restart"] = round(memory(machine.gateway.pid), 1)
            return found
        finally:
            machine.kill()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench-swarm", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="messages in all (100000)")
    parser.add_argument("--connections", type=int, default=256, help="connections that send them (256)")
    parser.add_argument("--newcomers", type=int, default=2000, help="messages more, each by a new connection (2000)")
    given = parser.parse_args()
    found = measure(given.messages, given.connections, given.newcomers)
    print(json.dumps({**found, "cpus": os.cpu_count(), "load": os.getloadavg()[0]}, indent=2))


if __name__ == "__main__":
    main()
