"""What the gateway does with a request: examine, limit, decide, append, and only then answer.

Belongs here: the order, and the one writer. Requests are examined as they come; what is to be kept goes to one thread
which writes whatever has gathered as one batch with one sync, and answers all of it afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from ..core import instant
from ..core.records import Message
from ..errors import BadData, MailboxError
from ..mailbox.facade import Mailbox
from ..mailbox.sending import random_id
from . import inbound
from .inbound import Incoming, key_of
from .ledger import Ledger
from .outbox import Outbox, announce, heard
from .protocol import acceptance, admission, lifecycle, membership, wire
from .protocol.acceptance import Accepted
from .protocol.admission import Admission
from .protocol.limits import HOUR, MINUTE, Window
from .protocol.membership import Event, Knowledge, Swarm
from .protocol.outgoing import REMEMBERED
from .protocol.refusal import Refusal
from .swarm_settings import GatewaySettings

T = TypeVar("T")
BATCH = 256
"""Messages written with one sync, at most."""
WAITING = 4096
"""Messages that may wait for the writer: beyond it senders are told to come again."""


class Gateway:
    """The receiving half of a gateway: a mailbox, a ledger, the limits, the writer."""

    def __init__(self, mailbox: Mailbox, ledger: Ledger, outbox: Outbox, settings: GatewaySettings) -> None:
        self.mailbox = mailbox
        self.ledger = ledger
        self.outbox = outbox
        self.settings = settings
        self.index = inbound.load(mailbox, ledger.now())
        self.arrived: Callable[[list[Message]], None] = lambda _: None
        self._senders = Window(settings.messages_per_minute, MINUTE)
        self._swarms = Window(settings.swarm_messages_per_minute, MINUTE)
        self._addresses = Window(settings.requests_per_minute, MINUTE)
        self._joins = Window(settings.joins_per_hour, HOUR)
        self._joiners = Window(settings.joins_per_hour, HOUR)
        self._queue: asyncio.Queue[tuple[Accepted, asyncio.Future[None]]] = asyncio.Queue(WAITING)
        self._writing: dict[bytes, asyncio.Future[None]] = {}
        self._decided: set[str] = set()
        """Ids of messages that the ledger holds as well, until they stand in the mailbox."""
        self._pool = ThreadPoolExecutor(1, "swarm-writer")
        self._pruned = ledger.now()

    # -- messages -----------------------------------------------------------------------------------------------------

    def admit_address(self, address: str) -> None:
        """Count a request for an address; raises ``Refusal`` (429). Coarse, and before anything is read of it."""
        _limited(self._addresses.take(address, self.ledger.now()), "requests from this address")

    async def message(self, data: bytes) -> tuple[str, int]:
        """Take a message in; (its id, how many more its sender may send this minute). Raises ``Refusal``."""
        known, now = self.ledger.known(), self.ledger.now()
        most = min(self.mailbox.config.max_content, acceptance.MAX_CONTENT)
        accepted = acceptance.examine(data, known, now, most)
        envelope, key = accepted.envelope, accepted.sender.public_key
        if envelope.seal is not None and key not in known.sealing:
            await self._pool_run(lambda: self._pin(key))
        if known_as(accepted) in self.index or known_as(accepted) in self._writing:
            await self._kept(accepted)  # whoever brings it again: it counts once
            return envelope.message_id, self._senders.left(key)
        # who it is was proved above, and that it says something new: nobody uses up what is another's
        _limited(self._senders.wait(key, now), "messages of this sender")
        _limited(self._swarms.wait(envelope.swarm_id, now), "messages of this swarm")
        self._senders.take(key, now)
        self._swarms.take(envelope.swarm_id, now)
        left = self._senders.left(key)
        if envelope.swarm_id in known.muted_swarms or envelope.sender.agent_id in known.muted_agents:
            if envelope.type == "system":  # a mute is about mail: who is in the swarm is still true
                await self._pool_run(lambda: self._lifecycle(accepted, lambda outcome: outcome.events))
            return envelope.message_id, left
        await self._kept(accepted)
        return envelope.message_id, left

    def _pin(self, key: str) -> None:
        """From now on, whoever starts this gateway, a message of that key without a seal was tampered with."""

        def decide(known: Knowledge) -> list[Event]:
            return [] if key in known.sealing else [self.ledger.event("sealed", public_key=key)]

        self.ledger.decide(decide)

    async def _kept(self, accepted: Accepted) -> None:
        """Return once the message is durably in the mailbox, by this request or an earlier one."""
        key = known_as(accepted)
        if key in self.index:
            return
        pending = self._writing.get(key)
        if pending is None:
            if self._queue.full():
                raise Refusal("UNAVAILABLE", "too much waits to be written", wait=5)
            pending = asyncio.get_running_loop().create_future()
            self._writing[key] = pending
            pending.add_done_callback(lambda _: self._writing.pop(key, None))
            self._queue.put_nowait((accepted, pending))
        await asyncio.shield(pending)

    async def write(self) -> None:
        """The writer: for as long as the gateway runs."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < BATCH:
                batch.append(self._queue.get_nowait())
            try:
                results = await self._pool_run(partial(self._write, [accepted for accepted, _ in batch]))
            except MailboxError as error:
                results = [Refusal("UNAVAILABLE", f"nothing could be stored: {error.code}", wait=5)] * len(batch)
            for (_, future), refusal in zip(batch, results, strict=True):
                if not future.done():
                    future.set_exception(refusal) if refusal else future.set_result(None)
                    future.exception()  # nobody may be waiting any more

    async def _pool_run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _write(self, batch: list[Accepted]) -> list[Refusal | None]:
        """Append a batch, durable when this returns; a refusal for each message that cannot be kept."""
        now, roster = self.ledger.now(), self.mailbox.logs.read_roster()
        self._prune(now)
        outgoing = self.outbox.refresh()  # an answer goes to who asked, however lately that was
        results: list[Refusal | None] = []
        messages: list[Message] = []
        for accepted in batch:
            if known_as(accepted) in self.index:  # what was forgotten by a wrong clock is known again
                results.append(None)
                continue
            beside = {message.id for message in messages}

            def made(told: str, accepted: Accepted = accepted, beside: set[str] = beside) -> Message:
                found = inbound.message_of(Incoming(accepted, told), self.index, outgoing, roster, now, beside)
                inbound.check(found)
                return found

            try:
                message = self._heard(accepted, made) if accepted.envelope.type == "system" else made("")
            except Refusal as refusal:
                results.append(refusal)
            except BadData as error:
                results.append(Refusal("INVALID_FORMAT", error.what))
            else:
                results.append(None)
                messages.append(message)
        if messages:
            ids = {message.id for message in messages}
            self.mailbox.take_in(messages, ids & self._decided)  # which the carrier may have told of meanwhile
            self._decided -= ids
            for message in messages:
                self.index.add(message)
            self.arrived(messages)
        return results

    def _prune(self, now: int) -> None:
        """Forget what nobody sends again. A clock that went back was wrong when it last was asked how old things are,
        and too much may have been forgotten: it is read again."""
        if now - self._pruned > instant.HOUR:
            self.index.forget(now - REMEMBERED)
        elif self._pruned - now > instant.HOUR:
            self.index = inbound.load(self.mailbox, now)
        else:
            return
        self._pruned = now

    def _heard(self, accepted: Accepted, made: Callable[[str], Message]) -> Message:
        """Decide about a system message; the message it is here. What changes something holds that message, for the
        next try of its sender, no member any more, is refused: if this process is killed, or fails, before the message
        stands in the mailbox, it is told from the ledger."""
        found: list[Message] = []

        def kept(outcome: lifecycle.Outcome) -> list[Event]:
            message = made(outcome.told)
            if outcome.events:  # it is the content that says what changes: the ledger is spared whatever hangs on it
                message = message.replace(references=None, attachments=None, metadata=None)
                self._decided.add(message.id)
            found[:] = [message]
            return [{**event, "announce": [heard(message)]} for event in outcome.events]

        self._lifecycle(accepted, kept)
        return found[0]

    def _lifecycle(self, accepted: Accepted, kept: Callable[[lifecycle.Outcome], Sequence[Event]]) -> None:
        """Decide about a system message, on what the ledger says while it is locked. ``kept``: the events as they are
        to be written down."""
        envelope = accepted.envelope

        def decide(known: Knowledge) -> Sequence[Event]:
            swarm = known.active(envelope.swarm_id)
            if swarm is None or envelope.sender.agent_id not in swarm.members:
                raise Refusal("NOT_MEMBER", "the sender is no member of this swarm")
            return kept(lifecycle.decide(envelope, swarm, known.agent_id))

        self.ledger.decide(decide)

    # -- joining ------------------------------------------------------------------------------------------------------

    async def join(self, data: bytes, address: str) -> Admission:
        """Decide about a request to join; raises ``Refusal``. Durable before it is answered."""
        _limited(self._joins.take(address, self.ledger.now()), "requests to join from this address")
        request = admission.parse(data)
        return await self._pool_run(lambda: self._admit(request))

    def _admit(self, request: admission.JoinRequest) -> Admission:
        found: list[Admission] = []

        def decide(known: Knowledge) -> list[Event]:
            proof = self.settings.require_join_proof
            found[:] = [admission.decide(request, known, self.ledger.now(), proof)]
            if isinstance(request, admission.Proven):  # each is a line, from wherever it comes; a repeated one is none
                wait = self._joiners.take(request.sender.public_key, self.ledger.now())
                _limited(wait, "requests to join by this key")
            return [with_news(event, found[0].swarm, known) for event in found[0].events]

        known = self.ledger.decide(decide)
        return found[0].replace(swarm=known.swarms[found[0].swarm.swarm_id])


def with_news(event: Event, swarm: Swarm, known: Knowledge) -> Event:
    """An event of somebody's joining (or asking to), with what everybody is to be told of it: nothing, if it is in."""
    if event["event"] == "asked":
        return event
    member = event["member"]
    name = member["agent_id"]
    about = {"agent_id": name}
    if event["event"] == "requested":
        content = wire.dumps({"type": "system", "action": "join_requested", "swarm_id": swarm.swarm_id, **about})
        said = f"{name} asks to join {swarm.name}: `agent-mailbox swarm approve {swarm.alias} {name}`"
        notice = {**about, "subject": said, "content": content}
        return {**event, "announce": [announce(random_id(), content, wire.BROADCAST, (), notice)]}
    new = membership.member(member, event["at"])
    others = [m for m in swarm.members.values() if m.agent_id not in (known.agent_id, name)]
    content = lifecycle.notification(lifecycle.JOINED, swarm.swarm_id, name)
    notice = {**about, "subject": f"{name} joined {swarm.name}", "content": content}
    news = announce(random_id(), lifecycle.joined(swarm.swarm_id, new), wire.BROADCAST, others, notice)
    return {**event, "announce": [news]}


def known_as(accepted: Accepted) -> bytes:
    """What a message is known by."""
    envelope = accepted.envelope
    return key_of(envelope.swarm_id, envelope.sender.agent_id, envelope.message_id)


def _limited(wait: int, what: str) -> None:
    if wait:
        raise Refusal("RATE_LIMITED", f"too many {what}; try again in {wait} s", wait=wait)
