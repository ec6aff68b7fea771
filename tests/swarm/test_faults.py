"""Exactly once, under faults: the short form of ``scripts/swarm-faults``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import faults
from tests.swarm import calls, exchange
from tests.swarm.machine import Authority


def test_every_message_arrives_once_though_gateways_die_and_the_network_flaps(
    tmp_path: Path, authority: Authority
) -> None:
    """30 messages, three kills at points a seed chooses, connections cut: each is in the mailbox once."""
    told = exchange.run(tmp_path, authority, messages=30, kills=3, seed=7)
    assert sum(told["killed"].values()) >= 3
    assert told["connections_cut"] > 0


def test_what_is_answered_is_kept_whatever_call_the_gateway_dies_at(tmp_path: Path, authority: Authority) -> None:
    """Killed before it writes and before it syncs (``scripts/swarm-calls``: before every call): a 200 is mail that is
    there, and what was not answered comes again, once."""
    if why := faults.why_no_strace():
        pytest.skip(why)

    def on_the_log(call: calls.Call) -> bool:
        return call[0] in ("write", "fdatasync") and call[1].endswith("/agent-mailbox.jsonl")

    killed = calls.receiver(tmp_path, authority, on_the_log)
    assert killed["write"] >= 1
    assert killed["fdatasync"] >= 1
