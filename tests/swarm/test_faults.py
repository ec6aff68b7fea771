"""Exactly once, under faults: the short form of ``scripts/swarm-faults``."""

from __future__ import annotations

from pathlib import Path

from tests.swarm import exchange
from tests.swarm.machine import Authority


def test_every_message_arrives_once_though_gateways_die_and_the_network_flaps(
    tmp_path: Path, authority: Authority
) -> None:
    """30 messages, three kills at points a seed chooses, connections cut: each is in the mailbox once."""
    told = exchange.run(tmp_path, authority, messages=30, kills=3, seed=7)
    assert sum(told["killed"].values()) >= 3
    assert told["connections_cut"] > 0
