"""Machines whose clocks are minutes apart agree on who is in a swarm, in what order whatever happened."""

from __future__ import annotations

import itertools

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_mailbox.core import instant
from agent_mailbox.swarm import decisions
from agent_mailbox.swarm.protocol import admission, signing, tokens, wire
from agent_mailbox.swarm.protocol.membership import Member
from tests.swarm.conftest import Make
from tests.swarm.test_protocol import NOW, SWARM, VECTORS
from tests.swarm.world import Agent, Near, played

MINUTE = 60_000


@pytest.mark.parametrize("skews", list(itertools.permutations((-6, 0, 7))), ids=str)
def test_everybody_knows_who_is_in_whatever_their_clocks_say(machine: Make, skews: tuple[int, ...]) -> None:
    """Joining, leaving, joining again, being kicked, transfer there and back, all within a second, on machines that are
    thirteen minutes apart: after each step every one of them knows the same members and master."""
    near = Near()
    names = ("alpha", "beta", "gamma")
    a, b, c = (Agent(machine(name), near, skew * MINUTE) for name, skew in zip(names, skews, strict=True))
    decisions.create_swarm(a.ledger, "demo", {})

    def agreed(master: Agent, *members: Agent) -> None:
        wanted = {one.ledger.read_knowledge().agent_id for one in members}
        for one in members:
            assert set(one.swarm.members) == wanted, one.ledger.read_knowledge().agent_id
            assert one.swarm.master == master.ledger.read_knowledge().agent_id, one.ledger.read_knowledge().agent_id

    async def scene() -> None:
        for one in (b, c):
            assert (await one.join(a))[0] == "accepted"
        agreed(a, a, b, c)
        for _ in range(2):
            await b.does(decisions.leave_swarm, False)
            agreed(a, a, c)
            assert (await b.join(a))[0] == "accepted"
            agreed(a, a, b, c)
        await a.does(decisions.kick_member, "gamma", None)
        agreed(a, a, b)
        assert c.swarm.state == "kicked"
        await c.join(a)
        agreed(a, a, b, c)
        await a.does(decisions.transfer_swarm, "beta")
        agreed(b, a, b, c)
        await b.does(decisions.kick_member, "gamma", None)
        agreed(b, a, b)
        await c.join(b)
        agreed(b, a, b, c)
        for old, new in ((b, a), (a, b), (b, a)):
            await old.does(decisions.transfer_swarm, new.ledger.read_knowledge().agent_id)
            agreed(new, a, b, c)
        await c.does(decisions.leave_swarm, False)
        agreed(a, a, b)

    played(scene, a, b, c)


def test_an_event_is_dated_after_what_it_follows_upon() -> None:
    """An event has the time of its own clock, unless that is behind the event before. It then comes just after that
    event."""
    at = instant.text(NOW)
    assert wire.later_instant(NOW + 5, at) == instant.text(NOW + 5)
    assert wire.later_instant(NOW - 5 * MINUTE, at) == instant.text(NOW + 1)
    assert wire.later_instant(NOW, "") == at


def test_who_is_listed_without_a_date_joined_by_the_masters_clock() -> None:
    """The reference's answer says not since when: it is since the invitation was made, and never later than our clock
    could say, whatever a master writes."""
    token = VECTORS["invite_token"]
    claims = tokens.unverified_claims(token)
    mine, its = (signing.public_of(Ed25519PrivateKey.generate()) for _ in range(2))
    me = Member("beta", "https://beta.example/swarm", mine, "")
    alpha = {"agent_id": "alpha", "endpoint": "https://alpha.example/swarm", "public_key": VECTORS["public_key"]}
    far = {**alpha, "agent_id": "gamma", "public_key": its, "joined_at": "9999-12-31T23:59:59.999Z"}
    event = admission.entered_event({"swarm_id": SWARM, "members": [alpha, far]}, claims, me, token, NOW)
    since = {m["agent_id"]: m["joined_at"] for m in event["members"]}
    assert since["alpha"] == since["beta"] == instant.text(min(NOW, claims.iat * 1000))
    assert since["gamma"] == instant.text(NOW + wire.FRESH)
