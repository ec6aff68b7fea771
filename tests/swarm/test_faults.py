"""Exactly once, under faults: the short form of ``scripts/swarm-faults``."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from agent_mailbox.core import instant
from agent_mailbox.mailbox.facade import Mailbox
from agent_mailbox.swarm import decisions, importing
from agent_mailbox.swarm.outbox import Outbox
from agent_mailbox.swarm.protocol.outgoing import Outgoing, compacted
from tests.faults import faults
from tests.helpers import PATIENCE
from tests.swarm import calls, exchange
from tests.swarm.machine import Authority, Machine
from tests.swarm.wirework import Line, Person

SWARM = "660e8400-e29b-41d4-a716-446655440001"


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


NEWS = {
    "member_left": ("carol left demo", {"agent_id": "carol"}),
    "master_changed": ("carol is the master of demo", {"old_master": "master", "new_master": "carol"}),
    "kicked": ("the master kicked this agent from demo", {"agent_id": "beta"}),
    "swarm_dissolved": ("demo was dissolved by its master", {}),
}


def test_what_changed_a_swarm_is_told_whoever_dies_before_telling_it(tmp_path: Path, authority: Authority) -> None:
    """Killed after the ledger's line and before the mailbox's: who left, or is master no more, is refused when it says
    so again, and yet those here learn of it, once, however often the gateway starts."""
    if why := faults.why_no_strace():
        pytest.skip(why)
    beta = Machine(tmp_path, "beta", authority)
    master, carol = Person("master", "https://127.0.0.1:9/swarm"), Person("carol", "https://127.0.0.1:9/swarm")
    beta.register("ann", "--tags", "swarm:demo")
    take_state(beta, master, carol)
    traced = calls.Traced(beta)
    for action, (told, more) in NEWS.items():
        sender = carol if action == "member_left" else master
        message = sender.system(SWARM, "beta", action=action, **more)
        with traced.dying(("write", str(beta.box / "agent-mailbox.jsonl"), 1)):
            with Line(beta) as line, pytest.raises(httpx.HTTPError):
                line.post("message", message)
            assert beta.gateway is not None
            beta.gateway.wait(PATIENCE)
        assert beta.remote() == [], action
        assert (beta.knows().state, beta.knows().master, len(beta.knows().members)) != ("active", "master", 3), action
        for _ in range(2):
            beta.serve()
            with Line(beta) as line:
                again = line.post("message", message).status_code
            assert again == (200 if action == "master_changed" else 404 if beta.knows().state != "active" else 403)
            beta.stop()
        assert [m["subject"] for m in beta.remote()] == [told], action
        assert len(beta.unread("ann")) == 1
        assert beta.doctor() == []


def test_whoever_tells_those_here_it_is_told_once(tmp_path: Path, authority: Authority) -> None:
    """Eight processes' worth of outboxes at one decision: one notice. One that died before the outbox had it, and a
    compaction of what is long over, tell nothing again."""
    beta = Machine(tmp_path, "beta", authority)
    take_state(beta, Person("master", "https://127.0.0.1:9/swarm"))
    decisions.mute(beta.ledger, "master", True)

    def look(_: int = 0) -> int:
        ledger = beta.ledger
        outbox = Outbox(ledger.home, Mailbox(str(beta.box)), ledger)
        outbox.announce()
        return len(ledger.announcements(outbox.fold.senders))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(look, range(8))) == {0}
    (beta.swarm_home / "outbox.jsonl").unlink()
    look()
    assert [m["subject"] for m in beta.remote()] == ["master is muted here"]
    queued = beta.objects("../swarm/outbox.jsonl")
    later = compacted(queued, instant.parse(queued[0]["at"]) + 30 * instant.DAY)
    assert Outgoing(later).senders.keys() == Outgoing(queued).senders.keys() != set()
    assert (Outgoing(later).open, "content" in later[0]) == ({}, False)
    assert beta.ok("swarm", "outbox")["messages"] == []


def take_state(beta: Machine, *others: Person) -> None:
    """Put a machine into a swarm with others, whose master is the first."""
    at = "2026-01-01T00:00:00.000Z"
    members = [(beta.agent, beta.endpoint, beta.public_key)] + [(o.agent_id, o.endpoint, o.public_key) for o in others]
    swarm = {"swarm_id": SWARM, "name": "demo", "master": others[0].agent_id, "joined_at": at, "settings": {}}
    names = ("agent_id", "endpoint", "public_key", "joined_at")
    swarm["members"] = [dict(zip(names, (*one, at), strict=True)) for one in members]
    state = {"schema_version": "1.0.0", "agent_id": beta.agent, "swarms": {SWARM: swarm}}
    importing.take_state(beta.ledger, json.dumps(state).encode(), True)
