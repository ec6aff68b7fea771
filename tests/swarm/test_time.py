"""What takes days: with clocks that are told."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_mailbox.core import instant
from agent_mailbox.mailbox import Mailbox
from agent_mailbox.swarm.carrier import Carrier
from agent_mailbox.swarm.client import Peers
from agent_mailbox.swarm.gateway import Gateway
from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.ledger import Ledger
from agent_mailbox.swarm.outbox import Outbox
from agent_mailbox.swarm.protocol.envelope import encode
from agent_mailbox.swarm.settings import Settings
from tests.helpers import until
from tests.swarm.conftest import Make
from tests.swarm.machine import Machine, meet
from tests.swarm.wirework import now


def parts(machine: Machine, at: int) -> tuple[Mailbox, Ledger, Outbox]:
    """A machine's parts, whose clock says ``at``."""
    home, box = Home(str(machine.swarm_home)), Mailbox(str(machine.box), clock=lambda: at)
    ledger = Ledger(home, clock=lambda: at)
    return box, ledger, Outbox(home, box, ledger)


async def deliver(gateway: Gateway, *bodies: bytes) -> list[Any]:
    """What a gateway answers to some bodies, one after another."""
    writer = asyncio.create_task(gateway.write())
    answers = [await gateway.message(body) for body in bodies]
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
    carrier = Carrier(ledger.home, ledger, outbox, Peers(), Settings())
    parcel = outbox.refresh().open[sent]
    bodies = [encode(carrier.envelope(parcel.event, at)) for at in (later, later + 1000)]
    assert instant.text(later).encode() in bodies[0]
    receiving, known, out = parts(b, later)
    gateway = Gateway(receiving, known, out, Settings())
    answers = asyncio.run(asyncio.wait_for(deliver(gateway, *bodies), 30))
    assert [message_id for message_id, _ in answers] == [sent, sent]
    assert b.received() == ["patience"]
    assert outbox.until(parcel) == instant.parse(parcel.event["at"]) + 72 * instant.HOUR
    _, ledger, outbox = parts(a, now() + 4 * instant.DAY)
    outbox.refresh()
    asyncio.run(Carrier(ledger.home, ledger, outbox, Peers(), Settings()).flush())
    assert a.outbox()[sent] == {"beta": "failed"}
    assert "expired" in a.unread_text("ann")


def test_an_index_forgets_what_nobody_sends_again(machine: Make) -> None:
    """Eight days on, what came is no longer remembered; until then it is."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    a.ok("swarm", "send", "demo/beta", "--from", "ann", "--body", "hello")
    until(lambda: b.received() == ["hello"])
    a.kill()
    b.kill()
    sizes = []
    for days in (0, 7, 9):
        box, ledger, outbox = parts(b, now() + days * instant.DAY)
        sizes.append(len(Gateway(box, ledger, outbox, Settings()).index))
    assert sizes[0] == sizes[1] > sizes[2] == 0
