"""A request's way through the gateway: examine, limit, decide, append, and only then answer.

Belongs here: that order, and the one writer. Requests are examined as they arrive. One thread writes all that has
gathered as one batch with one sync, then answers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from ..core import instant
from ..core.compose import stored_line
from ..core.proofs import CARRIED
from ..core.records import Message
from ..errors import BadData, MailboxError, NoMailbox
from ..mailbox.mailbox import Mailbox
from . import boxes, inbound
from .inbound import key_of
from .ledger import Ledger
from .outbox import Outbox, announce_received, make_announcement
from .protocol import acceptance, admission, lifecycle, membership, wire
from .protocol.acceptance import Accepted
from .protocol.admission import Admission
from .protocol.limits import HOUR, MINUTE, LimitWindow
from .protocol.membership import Event, Memberships, Swarm
from .protocol.outgoing import REMEMBERED
from .protocol.refusal import Refusal
from .swarm_settings import GatewaySettings

T = TypeVar("T")
BATCH = 256
"""Most messages written with one sync."""
WAITING = 4096
"""Most messages that wait for the writer; beyond it senders are told to retry."""


class Gateway:
    """The receiving half of a gateway: mailboxes, ledger, limits, writer. ``outbox``: one of theirs, for the log."""

    def __init__(self, mailboxes: Sequence[Mailbox], ledger: Ledger, outbox: Outbox, settings: GatewaySettings) -> None:
        self.ledger = ledger
        self.outbox = outbox
        self.settings = settings
        self._set_mailboxes(mailboxes)
        self.index = inbound.InboundIndex()
        self.unread: dict[str, str] = {}
        """Why the mailbox of a place takes no mail: what it holds already cannot be read."""
        self._index_mailbox(self.mailbox)
        self._index_mailboxes(mailboxes[1:])
        self.agent_id = ledger.read_knowledge().agent_id
        self.outcome: Callable[[str], None] = lambda _: None
        self.arrived: Callable[[list[Message]], None] = lambda _: None
        self.heard: Callable[[str], None] = lambda _: None
        """Called with the endpoint of each new message's sender."""
        self._senders = LimitWindow(settings.messages_per_minute, MINUTE)
        self._swarms = LimitWindow(settings.swarm_messages_per_minute, MINUTE)
        self._addresses = LimitWindow(settings.requests_per_minute, MINUTE)
        self._joins = LimitWindow(settings.joins_per_hour, HOUR)
        self._joiners = LimitWindow(settings.joins_per_hour, HOUR)
        self._queue: asyncio.Queue[tuple[Accepted, asyncio.Future[None]]] = asyncio.Queue(WAITING)
        self._writing: dict[bytes, asyncio.Future[None]] = {}
        self._decided: set[str] = set()
        """Ids of messages that the ledger holds too, until the mailbox has them."""
        self._pool = ThreadPoolExecutor(1, "swarm-writer")
        self._pruned = ledger.now()

    # -- messages -----------------------------------------------------------------------------------------------------

    def admit_address(self, address: str) -> None:
        """Count a request of an address before anything of it is read; raise ``Refusal`` (429) beyond its limit."""
        _refuse_if_limited(self._addresses.take_one(address, self.ledger.now()), "requests from this address")

    def _set_mailboxes(self, mailboxes: Sequence[Mailbox]) -> None:
        self.mailbox = mailboxes[0]
        self._mailboxes = {boxes.place_of(mailbox): mailbox for mailbox in mailboxes}

    def _mailbox_of(self, swarm_id: str) -> Mailbox | None:
        """Return the mailbox that a swarm belongs to; None if it is away."""
        place = self.ledger.read_knowledge().place_of(swarm_id)
        return self._mailboxes.get(place) if place else self.mailbox

    def apply_settings(self, settings: GatewaySettings, mailboxes: Sequence[Mailbox]) -> None:
        """Go on with other settings, and the mailboxes as they are configured now."""
        self._index_mailboxes(mailbox for mailbox in mailboxes if boxes.place_of(mailbox) not in self._mailboxes)
        self._set_mailboxes(mailboxes)
        self.settings, self.outbox.mailbox = settings, self.mailbox
        self._senders.most = settings.messages_per_minute
        self._swarms.most = settings.swarm_messages_per_minute
        self._addresses.most = settings.requests_per_minute
        self._joins.most = self._joiners.most = settings.joins_per_hour

    def _index_mailboxes(self, mailboxes: Iterable[Mailbox]) -> None:
        for mailbox in mailboxes:
            with boxes.apart(mailbox, "mailbox_not_read"):
                self._index_mailbox(mailbox)

    def _index_mailbox(self, mailbox: Mailbox) -> None:
        """Note what a mailbox holds already. While that cannot be read, it takes no mail: it would keep some twice."""
        place = boxes.place_of(mailbox)
        try:
            with boxes.told_of(mailbox):
                self.index.take_mailbox(mailbox, self.ledger.now())
        except MailboxError as error:
            self.unread[place] = error.what
            raise
        self.unread.pop(place, None)

    @property
    def waiting(self) -> int:
        """Return the number of messages that wait to be written."""
        return self._queue.qsize()

    def read_knowledge(self) -> Memberships:
        """Return what the ledger says. Raise ``Refusal`` (503) without a ledger: after a 404 a peer would give up."""
        return _require_identity(self.ledger.read_knowledge())

    def _settle_decision(self, decide: Callable[[Memberships], tuple[Sequence[Event], T]]) -> tuple[Memberships, T]:
        return self.ledger.settle_decision(lambda known: decide(_require_identity(known)))

    async def accept_message(self, data: bytes) -> tuple[str, dict[str, str]]:
        """Take a message in; return (its id, its sender's limit as headers). Raise ``Refusal``."""
        known, now = self.read_knowledge(), self.ledger.now()
        limits = [mailbox.config.max_content for mailbox in self._mailboxes.values()]
        accepted = acceptance.examine_message(data, known, now, min(*limits, acceptance.MAX_CONTENT))
        envelope, key = accepted.envelope, accepted.sender.public_key
        if envelope.seal is not None and key not in known.sealing:
            await self._pool_run(lambda: self._pin_sealing_key(key))
        if known_as(accepted) in self.index or known_as(accepted) in self._writing:
            await self._wait_until_stored(accepted)  # a repeat uses up no limit, whoever relays it
            return envelope.message_id, self._senders.limit_headers(key, now)
        # the sender is proven and the message new: nobody uses up another's limit
        _refuse_if_limited(self._senders.seconds_to_wait(key, now), "messages of this sender")
        _refuse_if_limited(self._swarms.seconds_to_wait(envelope.swarm_id, now), "messages of this swarm")
        self._senders.take_one(key, now)
        self._swarms.take_one(envelope.swarm_id, now)
        left = self._senders.limit_headers(key, now)
        self.heard(accepted.sender.endpoint)
        if envelope.swarm_id in known.muted_swarms or envelope.sender.agent_id in known.muted_agents:
            if envelope.type == "system":  # a mute drops mail only: membership is still true
                await self._pool_run(lambda: self._decide_lifecycle(accepted, lambda outcome: (outcome.events, None)))
            return envelope.message_id, left
        await self._wait_until_stored(accepted)
        return envelope.message_id, left

    def _pin_sealing_key(self, key: str) -> None:
        """Record durably that the key seals: from now on its unsealed messages are refused, after restarts too."""

        def pin_events(known: Memberships) -> tuple[list[Event], None]:
            return [] if key in known.sealing else [self.ledger.make_event("sealed", public_key=key)], None

        self._settle_decision(pin_events)

    async def _wait_until_stored(self, accepted: Accepted) -> None:
        """Wait until the message is durable in the mailbox, by this request or an earlier one."""
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

    async def write_forever(self) -> None:
        """Write the queue batch by batch, for as long as the gateway runs."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < BATCH:
                batch.append(self._queue.get_nowait())
            try:
                results = await self._pool_run(partial(self._write_batch, [accepted for accepted, _ in batch]))
                self.outcome("")
            except MailboxError as error:
                self.outcome(error.code)
                results = [Refusal("UNAVAILABLE", f"nothing could be stored: {error.code}", wait=5)] * len(batch)
            for (_, future), refusal in zip(batch, results, strict=True):
                if not future.done():
                    future.set_exception(refusal) if refusal else future.set_result(None)
                    future.exception()  # retrieve it: the requester may be gone

    async def _pool_run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _write_batch(self, batch: list[Accepted]) -> list[Refusal | None]:
        """Append a batch durably; return a refusal for each message that cannot be kept.

        A mailbox that fails refuses its own mail. Raise its error if no other took any."""
        self._prune_index(self.ledger.now())
        results: dict[int, Refusal | None] = {}
        failed: MailboxError | None = None
        places: dict[Mailbox | None, list[int]] = {}
        for number, accepted in enumerate(batch):
            places.setdefault(self._mailbox_of(accepted.envelope.swarm_id), []).append(number)
        for mailbox, numbers in places.items():
            try:
                if mailbox is None:
                    raise NoMailbox("the swarm's mailbox is away", "attach it again, or bring it back")
                with boxes.told_of(mailbox):
                    kept = self._write_to(mailbox, [batch[number] for number in numbers])
            except MailboxError as error:
                failed, code = error, error.code
                kept = [Refusal("UNAVAILABLE", f"nothing could be stored: {code}", wait=5) for _ in numbers]
            results.update(zip(numbers, kept, strict=True))
        if failed is not None and len(self._mailboxes) == 1:
            raise failed
        return [results[number] for number in range(len(batch))]

    def _write_to(self, mailbox: Mailbox, batch: list[Accepted]) -> list[Refusal | None]:
        if boxes.place_of(mailbox) in self.unread:
            self._index_mailbox(mailbox)
        now, roster = self.ledger.now(), mailbox.logs.read_roster()
        outgoing = self.outbox.refresh_fold()  # an answer finds its asker, however recent
        results: list[Refusal | None] = []
        messages: list[Message] = []
        for accepted in batch:
            if known_as(accepted) in self.index:  # known again: a wrong clock had dropped it
                results.append(None)
                continue
            beside = {message.id for message in messages}

            def build_message(told: str, accepted: Accepted = accepted, beside: set[str] = beside) -> Message:
                found = inbound.message_of(accepted, told, self.index, outgoing, roster, now, beside)
                stored_line(found)  # raises, before the batch is written
                return found

            try:
                message = (
                    self._decide_system(accepted, build_message)
                    if accepted.envelope.type == "system"
                    else build_message("")
                )
            except Refusal as refusal:
                results.append(refusal)
            except BadData as error:
                results.append(Refusal("INVALID_FORMAT", error.what))
            else:
                results.append(None)
                messages.append(inbound.keep_attachments(mailbox.directory, message))
        if messages:
            ids = {message.id for message in messages}
            # the carrier may have told of those that were decided
            mailbox.take_in(messages, ids & self._decided, proof=CARRIED)
            self._decided -= ids
            for message in messages:
                self.index.add_message(message)
            self.arrived(messages)
        return results

    def _prune_index(self, now: int) -> None:
        """Forget the messages nobody sends again, hourly. After the clock was set back, reload: the wrong clock may
        have dropped too much."""
        if now - self._pruned > instant.HOUR:
            self.index.forget_before(now - REMEMBERED)
        elif self._pruned - now > instant.HOUR:
            self.index = inbound.InboundIndex()
            self._index_mailboxes(self._mailboxes.values())
        else:
            return
        self._pruned = now

    def _decide_system(self, accepted: Accepted, made: Callable[[str], Message]) -> Message:
        """Decide about a system message; return its record here.

        Keep the message in the event: a retry would be refused, once its sender is no member. After a crash the ledger
        delivers it.
        """

        def record_outcome(outcome: lifecycle.Outcome) -> tuple[list[Event], Message]:
            message = made(outcome.told)
            if outcome.events:  # only the content decides: keep the rest out of the ledger
                message = message.replace(references=None, attachments=None, metadata=None)
                self._decided.add(message.id)
            return [{**event, "announce": [announce_received(message)]} for event in outcome.events], message

        return self._decide_lifecycle(accepted, record_outcome)

    def _decide_lifecycle(
        self, accepted: Accepted, recorded: Callable[[lifecycle.Outcome], tuple[Sequence[Event], T]]
    ) -> T:
        """Decide about a system message under the ledger's lock. ``recorded`` returns the events to write, and what to
        return."""
        envelope = accepted.envelope

        def lifecycle_events(known: Memberships) -> tuple[Sequence[Event], T]:
            swarm = known.active_swarm(envelope.swarm_id)
            if swarm is None or envelope.sender.agent_id not in swarm.members:
                raise Refusal("NOT_MEMBER", "the sender is no member of this swarm")
            return recorded(lifecycle.decide_lifecycle(envelope, swarm, known.agent_id))

        return self._settle_decision(lifecycle_events)[1]

    # -- joining ------------------------------------------------------------------------------------------------------

    async def accept_join(self, data: bytes, address: str) -> Admission:
        """Decide about a request to join, durably before it is answered; raise ``Refusal``."""
        _refuse_if_limited(self._joins.take_one(address, self.ledger.now()), "requests to join from this address")
        request = admission.parse_join_request(data)
        self.read_knowledge()  # before the lock, which would make an empty ledger
        return await self._pool_run(lambda: self._admit_joiner(request))

    def _admit_joiner(self, request: admission.JoinRequest) -> Admission:
        def admission_events(known: Memberships) -> tuple[list[Event], Admission]:
            proof = self.settings.require_join_proof
            found = admission.decide_admission(request, known, self.ledger.now(), proof)
            if isinstance(request, admission.Proven):  # each costs a line, from any address; a repeat costs none
                wait = self._joiners.take_one(request.sender.public_key, self.ledger.now())
                _refuse_if_limited(wait, "requests to join by this key")
            return [with_news(event, found.swarm, known) for event in found.events], found

        known, found = self._settle_decision(admission_events)
        return found.replace(swarm=known.swarms[found.swarm.swarm_id])


def with_news(event: Event, swarm: Swarm, known: Memberships) -> Event:
    """Return a joining event with the news it announces to everybody. A confirmed membership (``asked``) has none."""
    if event["event"] == "asked":
        return event
    member = event["member"]
    name = member["agent_id"]
    about = {"agent_id": name}
    if event["event"] == "requested":
        content = wire.dump_json({"type": "system", "action": "join_requested", "swarm_id": swarm.swarm_id, **about})
        said = f"{name} asks to join {swarm.name}: `agent-mailbox swarm approve {swarm.alias} {name}`"
        notice = {**about, "subject": said, "content": content}
        return {**event, "announce": [make_announcement(content, wire.BROADCAST, (), notice)]}
    new = membership.member_from(member, event["at"])
    others = [m for m in swarm.members.values() if m.agent_id not in (known.agent_id, name)]
    content = lifecycle.notification_record(lifecycle.JOINED, swarm.swarm_id, name)
    notice = {**about, "subject": f"{name} joined {swarm.name}", "content": content}
    news = make_announcement(lifecycle.joined_content(swarm.swarm_id, new), wire.BROADCAST, others, notice)
    return {**event, "announce": [news]}


def _require_identity(known: Memberships) -> Memberships:
    if not known.agent_id:
        raise Refusal("UNAVAILABLE", "the membership of this agent cannot be read", wait=60)
    return known


def known_as(accepted: Accepted) -> bytes:
    """Return the key by which a message is known."""
    envelope = accepted.envelope
    return key_of(envelope.swarm_id, envelope.sender.agent_id, envelope.message_id)


def _refuse_if_limited(wait: int, what: str) -> None:
    if wait:
        raise Refusal("RATE_LIMITED", f"too many {what}; try again in {wait} s", wait=wait)
