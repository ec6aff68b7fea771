"""Three gateways on loopback, as real processes: everything a swarm does, from command to hook."""

from __future__ import annotations

from tests.helpers import until
from tests.swarm.conftest import Make
from tests.swarm.machine import meet


def test_mail_between_machines(machine: Make) -> None:
    """Direct mail, a broadcast and a chain of replies arrive, once, marked as remote, and only where they should."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    meet(a, b, c)
    first = a.send("ann", "swarm:demo/beta", "hello beta", "--subject", "Greetings")
    until(lambda: b.received() == ["hello beta"])
    mail = b.remote()[-1]
    assert (mail["id"], mail["sender"], mail["subject"]) == (first, "swarm:demo/alpha", "Greetings")
    shown = b.call("check", "--session", "beta-agent", "--limit", "0")
    assert "swarm:demo/alpha (remote)" in shown.stdout
    assert "| hello beta" in shown.stdout
    answer = b.ok("reply", first, "--from", "beta-agent", "--body", "hello alpha")["message"]
    assert answer["recipient"] == "swarm:demo/alpha"
    until(lambda: a.received() == ["hello alpha"])
    assert a.remote()[-1]["thread"] == first
    assert a.remote()[-1]["recipient"] == "ann"
    again = a.ok("reply", answer["id"], "--from", "ann", "--body", "and again")["message"]
    until(lambda: b.received() == ["hello beta", "and again"])
    thread = [m["id"] for m in b.ok("thread", first)["messages"]]
    assert thread == [first, answer["id"], again["id"]]
    c.send("gamma-agent", "swarm:demo", "hear me, all")
    for one in (a, b):
        until(lambda one=one: "hear me, all" in one.received())
    assert c.received() == []
    until(lambda: set(a.outbox()[first].values()) == {"delivered"})
