"""Gateways in this process, with clocks that are told: everything of them but sockets, and each its own time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.swarm import decisions, joining
from agent_mailbox.swarm.carrier import Carrier
from agent_mailbox.swarm.gateway import Gateway
from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.ledger import Ledger
from agent_mailbox.swarm.outbox import Outbox
from agent_mailbox.swarm.peer_client import Peers
from agent_mailbox.swarm.protocol import admission
from agent_mailbox.swarm.protocol.membership import Swarm
from agent_mailbox.swarm.protocol.outgoing import PeerAnswer
from agent_mailbox.swarm.protocol.refusal import Refusal
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import PATIENCE
from tests.swarm.machine import LIMITS, Machine
from tests.swarm.wirework import now


class Near(Peers):
    """Peers that are in this process: what is asked of an endpoint is asked of the gateway it belongs to."""

    def __init__(self) -> None:
        super().__init__(GatewaySettings())
        self.at: dict[str, Gateway] = {}
        self.heard: list[tuple[str, bytes]] = []

    async def post_body(self, endpoint: str, path: str, body: bytes, agent_id: str, *_: Any, **__: Any) -> PeerAnswer:
        self.heard.append((path, body))
        try:
            if path == "message":
                await self.at[endpoint].accept_message(body)
                return PeerAnswer(200)
            found = await self.at[endpoint].accept_join(body, agent_id)
            return PeerAnswer(200, body=admission.accepted_reply(found.swarm))
        except Refusal as refusal:
            return PeerAnswer(refusal.status, refusal.code, refusal.message)


class Agent:
    """A machine's gateway whose clock is off by ``skew`` ms."""

    def __init__(self, machine: Machine, near: Near, skew: int) -> None:
        def clock() -> int:
            return now() + skew

        self.near, self.machine = near, machine
        home, box = Home(str(machine.swarm_home)), Mailbox(str(machine.box), clock=clock)
        self.ledger = Ledger(home, clock)
        self.outbox = Outbox(box, self.ledger)
        settings = GatewaySettings(**LIMITS)
        self.gateway = Gateway([box], self.ledger, self.outbox, settings)
        self.carrier = Carrier(self.ledger, [self.outbox], near, settings)
        near.at[machine.endpoint] = self.gateway

    @property
    def swarm(self) -> Swarm:
        (found,) = self.ledger.read_knowledge().swarms.values()
        return found

    def invite(self) -> str:
        """An invitation of one use."""
        return decisions.make_invitation(self.ledger, self.swarm.swarm_id, 1, 24)

    async def join(self, master: Agent) -> tuple[str, str]:
        """Join by a fresh invitation, and the news with it."""
        told = await joining.ask_to_join(self.ledger, self.near, self.carrier.key, master.invite())
        await master.carrier.try_everything_now()
        return told

    async def does(self, action: Callable[..., Any], *words: Any) -> None:
        """Decide something, and carry the news."""
        action(self.ledger, self.swarm.swarm_id, *words)
        await self.carrier.try_everything_now()


def played(scene: Callable[[], Coroutine[Any, Any, None]], *agents: Agent) -> None:
    """Run a scene, bounded, with everybody's writer at work."""

    async def bounded() -> None:
        writers = [asyncio.create_task(agent.gateway.write_forever()) for agent in agents]
        try:
            await asyncio.wait_for(scene(), PATIENCE)
        finally:
            for task in writers:
                task.cancel()

    asyncio.run(bounded())
