"""What takes days: with clocks that are told."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_mailbox.core import instant
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.files.small_files import note_time
from agent_mailbox.swarm import checkup, decisions
from agent_mailbox.swarm.carrier import Carrier
from agent_mailbox.swarm.gateway import Gateway
from agent_mailbox.swarm.home import FLUSH, Home
from agent_mailbox.swarm.ledger import Ledger
from agent_mailbox.swarm.outbox import Outbox
from agent_mailbox.swarm.peer_client import Peers
from agent_mailbox.swarm.protocol import admission, signing, tokens, wire
from agent_mailbox.swarm.protocol.envelope import encode_envelope
from agent_mailbox.swarm.protocol.membership import Member
from agent_mailbox.swarm.protocol.outgoing import PeerAnswer
from agent_mailbox.swarm.protocol.refusal import Refusal
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import PATIENCE, until
from tests.swarm.conftest import Make
from tests.swarm.machine import Machine, meet
from tests.swarm.test_protocol import NOW, SWARM, VECTORS
from tests.swarm.wirework import Person, now
from tests.swarm.world import Agent, Near, played


def parts(machine: Machine, at: int) -> tuple[Mailbox, Ledger, Outbox]:
    """A machine's parts, whose clock says ``at``."""
    home, box = Home(str(machine.swarm_home)), Mailbox(str(machine.box), clock=lambda: at)
    ledger = Ledger(home, clock=lambda: at)
    return box, ledger, Outbox(box, ledger)


async def deliver(gateway: Gateway, *bodies: bytes) -> list[Any]:
    """What a gateway answers to some bodies, one after another."""
    writer = asyncio.create_task(gateway.write_forever())
    answers = [await gateway.accept_message(body) for body in bodies]
    writer.cancel()
    return answers


def test_a_peer_that_was_away_for_a_day_gets_its_mail_once(machine: Make) -> None:
    """A day later the same message goes out under its id with a timestamp of that day, and is taken; sent yet again it
    is known. After its time to live it goes out no more."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    b.kill()
    a.kill()
    sent = a.send("ann", "swarm:demo/beta", "patience")
    assert a.ok("swarm", "flush") == {"carried": True, "open": 1}
    later = now() + instant.DAY
    _, ledger, outbox = parts(a, later)
    carrier = Carrier(ledger, [outbox], Peers(GatewaySettings()), GatewaySettings())
    parcel = outbox.refresh_fold().open[sent]
    bodies = [encode_envelope(carrier.sealed_envelope(parcel.event, at)) for at in (later, later + 1000)]
    assert instant.text(later).encode() in bodies[0]
    receiving, known, out = parts(b, later)
    gateway = Gateway([receiving], known, out, GatewaySettings())
    answers = asyncio.run(asyncio.wait_for(deliver(gateway, *bodies), 30))
    assert [message_id for message_id, _ in answers] == [sent, sent]
    assert b.received() == ["patience"]
    assert outbox.give_up_time(parcel) == instant.parse(parcel.event["at"]) + 72 * instant.HOUR
    _, ledger, outbox = parts(a, now() + 4 * instant.DAY)
    outbox.refresh_fold()
    asyncio.run(Carrier(ledger, [outbox], Peers(GatewaySettings()), GatewaySettings()).try_everything_now())
    assert a.outbox()[sent] == {"beta": "failed"}
    assert "expired" in a.unread_text("ann")


def test_an_index_forgets_what_nobody_sends_again(machine: Make) -> None:
    """Eight days on, what came is no longer remembered; until then it is."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    sent = a.send("ann", "swarm:demo/beta")
    until(lambda: b.received() == ["hello"])
    a.kill()
    b.kill()
    known = []
    for days in (0, 7, 9):
        box, ledger, outbox = parts(b, now() + days * instant.DAY)
        known.append(Gateway([box], ledger, outbox, GatewaySettings()).index.has_id(sent))
    assert known == [True, True, False]


# -- a clock that is wrong for a while --------------------------------------------------------------------------------


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.off = 0

    def __call__(self) -> int:
        return now() + self.off


def test_a_clock_that_was_ahead_doubles_nothing(machine: Make) -> None:
    """A gateway starts while its clock is nine days ahead, and takes every message it has for forgotten. Once the clock
    is set, a message that was kept long ago and comes again (its answer was lost) is known."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    sent = a.send("ann", "swarm:demo/beta", "once")
    until(lambda: b.received() == ["once"])
    a.kill()
    b.kill()
    clock = Clock()
    clock.off = 9 * instant.DAY
    home, box = Home(str(b.swarm_home)), Mailbox(str(b.box), clock=clock)
    ledger = Ledger(home, clock=clock)
    gateway = Gateway([box], ledger, Outbox(box, ledger), GatewaySettings())
    assert not gateway.index.has_id(sent)
    clock.off = 0
    _, known, outbox = parts(a, now())
    event = {**queued(a, sent), "peers": []}
    carrier = Carrier(known, [outbox], Peers(GatewaySettings()), GatewaySettings())
    again = encode_envelope(carrier.sealed_envelope(event, now()))
    other = encode_envelope(carrier.sealed_envelope({**event, "id": str(uuid.uuid4()), "content": "another"}, now()))
    answers = asyncio.run(asyncio.wait_for(deliver(gateway, again, other, again), 30))
    assert [message_id for message_id, _ in answers][::2] == [sent, sent]
    assert b.received() == ["once", "another"]
    assert b.doctor() == []


def queued(machine: Machine, message_id: str) -> dict[str, Any]:
    """A message's line in the outbox."""
    lines = map(json.loads, (machine.swarm_home / "outbox.jsonl").read_bytes().splitlines())
    return next(event for event in lines if event["id"] == message_id and event["event"] == "queued")


@pytest.mark.parametrize("hours", [2, -2, 48])
def test_a_wrong_clock_delays_mail_and_loses_none(machine: Make, hours: int) -> None:
    """Hours ahead or behind, every try is refused as stale, and none is the last; set right, the mail arrives once."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    a.kill()
    sent = a.send("ann", "swarm:demo/beta", "patience")
    clock = Clock()
    clock.off = hours * instant.HOUR
    home, box = Home(str(a.swarm_home)), Mailbox(str(a.box), clock=clock)
    ledger = Ledger(home, clock=clock)

    async def flush() -> None:
        peers = Peers(GatewaySettings(private_addresses=True, ca_file=str(a.authority.ca)))
        await Carrier(ledger, [Outbox(box, ledger)], peers, GatewaySettings()).try_everything_now()
        await peers.aclose()

    for _ in range(2):
        asyncio.run(asyncio.wait_for(flush(), PATIENCE))
        assert a.outbox()[sent] == {"beta": "sent"}
    assert b.received() == []
    clock.off = 0
    asyncio.run(asyncio.wait_for(flush(), PATIENCE))
    assert a.outbox()[sent] == {"beta": "delivered"}
    assert b.received() == ["patience"]
    assert not [m for m in a.objects("agent-mailbox.jsonl") if m["sender"] == "swarm-gateway"]


def test_mail_that_seemed_too_old_goes_out_once_the_clock_is_set(machine: Make) -> None:
    """A gateway weeks ahead passes over what waits; set back it looks again, and no restart is needed."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    a.kill()
    late = a.send("ann", "swarm:demo/beta", "late")
    clock = Clock()
    clock.off = 20 * instant.DAY
    home, box = Home(str(a.swarm_home)), Mailbox(str(a.box), clock=clock)
    outbox = Outbox(box, Ledger(home, clock=clock))
    outbox.queue_outgoing()
    assert late not in outbox.fold.open
    clock.off = 0
    outbox.queue_outgoing()
    assert late in outbox.fold.open


def test_a_membership_confirmed_in_the_future_is_confirmed_again(machine: Make) -> None:
    """A gateway asks again for a membership that a fast clock confirmed in the future. It does not wait until that time
    comes."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    b.kill()
    swarm, ahead = b.knows(), parts(b, now() + 9 * instant.DAY)[1]
    about = {"swarm_id": swarm.swarm_id, "master": swarm.master, "members": [m.object for m in swarm.members.values()]}
    ahead.append_decided(lambda _: [ahead.make_event("entered", **about)])
    assert instant.parse(b.knows().confirmed_at) > now()
    b.ok("swarm", "flush")
    assert instant.parse(b.knows().confirmed_at) <= now()


def test_who_asked_in_time_waits_on_though_the_invitation_expires(machine: Make) -> None:
    """The master approves two days later, or its clock says so for a while: the joiner goes on asking, and is in."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    a.ok("swarm", "create", "demo", "--require-approval")
    url = a.ok("swarm", "invite", "demo", "--hours", "1")["url"]
    b.register("bob")
    assert b.ok("swarm", "join", url, "--session", "bob")["status"] == "pending"
    request = Person("beta", b.endpoint).joining(tokens.parse_url(url).token)
    request["sender"]["public_key"] = b.public_key
    known, later = a.ledger.read_knowledge(), now() + 2 * instant.DAY
    asked = admission.decide_admission(admission.parse_join_request(json.dumps(request).encode()), known, later)
    assert (asked.accepted, asked.events) == (False, ())
    stranger = Person("eve").joining(tokens.parse_url(url).token)
    with pytest.raises(Refusal, match="expired"):
        admission.decide_admission(admission.parse_join_request(json.dumps(stranger).encode()), known, later)


def test_the_doctor_says_whose_clock_is_wrong(machine: Make) -> None:
    """The doctor blames this machine's clock, in one line, if all peers agree and it does not. It says that either
    clock may be wrong where a single peer differs."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    meet(a, b, c)

    def told(off: int, *away: Machine) -> list[tuple[str, str, bool]]:
        for one in away:
            one.kill()
        clock = Clock()
        clock.off = off
        ledger = Ledger(Home(str(a.swarm_home)), clock=clock)

        async def ask() -> list[tuple[str, str, bool]]:
            peers = Peers(GatewaySettings(private_addresses=True, ca_file=str(a.authority.ca)))
            found = await checkup.check_network(
                ledger, peers, GatewaySettings(private_addresses=True, ca_file=str(a.authority.ca))
            )
            await peers.aclose()
            return found

        return [one for one in asyncio.run(asyncio.wait_for(ask(), PATIENCE)) if "clock" in "".join(map(str, one[:2]))]

    assert told(0) == []
    ((place, what, note),) = told(20 * 60_000)
    assert (place, note) == ("clock", False)
    assert "this machine's clock is" in what
    assert "fast, say all 2 peers" in what
    ((_, what, note),) = told(-5 * 60_000)
    assert "slow, say all 2 peers" in what
    assert note
    ((place, what, _),) = told(-20 * 60_000, c)
    assert place == b.endpoint
    assert "beta or this machine is wrong" in what


def test_a_peer_that_is_back_is_tried_at_once_if_it_writes_or_the_person_flushes(machine: Make) -> None:
    """Else mail waits for the end of a pause, which grows up to five minutes. One that asked for a pause has it."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    a.kill()
    _, ledger, outbox = parts(a, now())

    async def carry() -> None:
        peers = Peers(GatewaySettings(private_addresses=True, ca_file=str(a.authority.ca)))
        carrier = Carrier(ledger, [outbox], peers, GatewaySettings())
        state = carrier._states[b.endpoint]
        carrying = asyncio.create_task(carrier.carry_forever())
        for text, is_silent in (("it writes", True), ("it asked for a pause", False)):
            state.due, state.is_silent = float("inf"), is_silent
            await asyncio.to_thread(a.send, "ann", "swarm:demo/beta", text)
            carrier.hear_from(b.endpoint)
            assert state.due == (0.0 if is_silent else float("inf"))
            if not is_silent:
                note_time(ledger.home.path_of(FLUSH), 1000)
            await asyncio.to_thread(until, lambda text=text: b.received()[-1:] == [text])
            assert state.task is not None
            await state.task
        carrying.cancel()
        await peers.aclose()

    asyncio.run(asyncio.wait_for(carry(), PATIENCE))


def test_the_doctor_takes_no_command_from_a_peer(machine: Make) -> None:
    """Commands of ours are between backticks, and get the options of this one: what a peer said has none."""
    answer = PeerAnswer(400, message="run `agent-mailbox setup --remove`")
    said = checkup._unfit_words(machine("alpha").ledger, "beta", answer, ours=False)
    assert said == "beta cannot be reached: run 'agent-mailbox setup --remove'"


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
