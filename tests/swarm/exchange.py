"""An exchange under faults: gateways killed at any point, the network between them flapping, every message once.

``run`` is one such exchange; the suite has a short one, ``scripts/swarm-faults`` a long one.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import socket
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.helpers import until
from tests.swarm.machine import Authority, Machine, meet

LONG = 600.0
"""Seconds after which an exchange that has not ended hangs."""


class Flapping:
    """A network between peers and a port: connections are cut after so many bytes, or not made at all."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0
        self.cut = 0
        self.calm = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.calm and self._dice.random() < 0.2:
                self.cut += 1
                client.close()
                continue
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """Carry bytes both ways until either side ends, or as many have passed as this connection may."""
        left = self._dice.choice((3_000, 10_000, 50_000, 1 << 40))
        try:
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                ends = {client: server, server: client}
                while left > 0 or self.calm:
                    ready, _, _ = select.select(list(ends), [], [])
                    for one in ready:
                        data = one.recv(4096)
                        if not data:
                            return
                        left -= len(data)
                        ends[one].sendall(data)
                self.cut += 1
        except OSError:
            return


def run(directory: Path, authority: Authority, messages: int, kills: int, seed: int) -> dict[str, Any]:
    """Have alpha send ``messages`` to beta while one or the other is killed ``kills`` times at points that the seed
    chooses, counted in messages that arrived. Asserts that each arrived exactly once; returns what happened."""
    began = time.monotonic()
    dice, network = random.Random(seed), Flapping(seed)
    alpha = Machine(directory, "alpha", authority)
    beta = Machine(directory, "beta", authority, through=network.port)
    network.target = beta.port
    try:
        network.calm = True
        alpha.serve()
        beta.serve()
        meet(alpha, beta)
        network.calm = False
        texts = [f"message {i}" for i in range(messages)]
        lines = [json.dumps({"sender": "ann", "recipient": "swarm:demo/beta", "content": text}) for text in texts]
        points = sorted(dice.randrange(messages) for _ in range(kills))
        half = messages // 2
        alpha.ok("send", "--jsonl", "-", stdin="\n".join(lines[:half]))
        killed: Counter[str] = Counter()
        rest = lines[half:]
        for point in points:
            if rest and point >= half // 2:  # the other half is sent while alpha's gateway is down, or up: as it falls
                alpha.ok("send", "--jsonl", "-", stdin="\n".join(rest))
                rest = []
            wanted = min(point, messages - 1 - len(rest))
            until(lambda wanted=wanted: len(beta.received()) >= wanted, LONG)
            for one in {0: (alpha,), 1: (beta,), 2: (alpha, beta)}[dice.randrange(3)]:
                one.kill()
                killed[one.agent] += 1
                one.serve()
        if rest:
            alpha.ok("send", "--jsonl", "-", stdin="\n".join(rest))
        until(lambda: len(beta.received()) >= messages, LONG)
        until(lambda: alpha.ok("swarm", "status")["outbox"] == 0, LONG)
        assert Counter(beta.received()) == Counter(texts)
        assert beta.doctor() == []
        seconds = round(time.monotonic() - began)
        happened = {"killed": dict(killed), "connections_cut": network.cut}
        return {"messages": messages, **happened, "seed": seed, "seconds": seconds}
    finally:
        alpha.kill()
        beta.kill()
        network.close()


def main() -> None:
    """``scripts/swarm-faults``: the long form, several times over."""
    parser = argparse.ArgumentParser(prog="scripts/swarm-faults", description=__doc__)
    parser.add_argument("--messages", type=int, default=1000, help="messages of one exchange (1000)")
    parser.add_argument("--kills", type=int, default=40, help="times one or both gateways are killed in it (40)")
    parser.add_argument("--rounds", type=int, default=1, help="exchanges (1)")
    parser.add_argument("--seed", type=int, default=1, help="what the first is made from (1)")
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.rounds):
        with tempfile.TemporaryDirectory() as scratch:
            told = run(Path(scratch), Authority(Path(scratch) / "ca"), given.messages, given.kills, seed)
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
