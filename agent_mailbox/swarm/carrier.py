"""The outbox's way to its peers: in order for each, all at once, until delivered or given up.

Belongs here: when to try, and recording the outcome. Every attempt is signed again with a new timestamp under the same
id, so a peer that was away for days takes it once. The carrier also repeats requests: for approval, for missing keys,
and daily to confirm a membership.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from ..core import instant
from ..errors import MailboxError, NotFound
from ..store.files.small_files import time_of
from . import home as names
from .boxes import apart, place_of
from .gateway_identity import key_of
from .gateway_log import log_event
from .joining import REFUSED, ask_to_join, confirm_membership, stop_asking
from .ledger import Ledger
from .outbox import Outbox
from .peer_client import TIMEOUT, Peers
from .protocol import lifecycle, signing, wire
from .protocol.envelope import Envelope, Model, PublicKey, encode_envelope, object_of, read_model
from .protocol.membership import DENIED, JOINING, Memberships
from .protocol.outgoing import DELIVERED, FAILED, SENT, Parcel, PeerAnswer, backoff_seconds, failure_reason, verdict_on
from .protocol.refusal import Refusal
from .swarm_settings import GatewaySettings

LOOK = 0.25
"""Seconds between two looks at what is new; a look is two ``stat`` calls."""
TTL = instant.DAY
"""Milliseconds a membership counts as confirmed (founding text: 24 hours for keys)."""
SELDOM = 4 / 3
"""Pause between two requests, in ``retry_seconds``: by default nine an hour, since a master takes ten."""
AT_ONCE = 8
"""Most keys requested in one round."""
OF_ONE_SWARM = (400, 403, 404, 503)
"""Answers after which only mail of that swarm waits: it is unknown there, or its mailbox is away."""
_CARRIED = ("in_reply_to", "thread_id", "priority", "expires_at", "references", "attachments", "metadata")


class Info(Model):
    """The part of ``/swarm/info`` that a key is taken from."""

    agent_id: str
    public_key: PublicKey


def _key_of(known: Memberships, parcel: Parcel, agent: str, endpoint: str) -> str:
    """Return the key of the agent at that endpoint, which may vouch for its certificate; empty if it is unknown."""
    swarm = known.active_swarm(parcel.event["swarm_id"])
    member = swarm.members.get(agent) if swarm is not None else None
    if member is not None and member.endpoint == endpoint:
        return member.public_key
    return next((str(peer.get("public_key") or "") for peer in parcel.event["peers"] if peer["agent_id"] == agent), "")


class _Peer:
    """A peer's state: no try before ``due`` (monotonic seconds); ``failures`` in a row. ``is_silent``: it gave no
    answer to the last one. ``held``: the first two for each swarm that it does not take mail of now. ``unrecorded``:
    outcomes in a row that could not be written down."""

    def __init__(self) -> None:
        self.due, self.is_silent = 0.0, False
        self.failures = self.unrecorded = 0
        self.held: dict[str, tuple[float, int]] = {}
        self.task: asyncio.Task[None] | None = None

    def holds(self, swarm_id: str, now: float) -> bool:
        """Return whether a swarm's mail waits at this moment."""
        return now < self.held.get(swarm_id, (0.0, 0))[0]


async def _close_later(peers: Peers) -> None:
    await asyncio.sleep(TIMEOUT)
    await peers.aclose()


class Carrier:
    """The carrier of a home's outbox, one of ``outboxes`` for each mailbox. Its caller holds ``carrying.lock``."""

    def __init__(self, ledger: Ledger, outboxes: Sequence[Outbox], peers: Peers, settings: GatewaySettings) -> None:
        self.ledger = ledger
        self.outboxes = list(outboxes)
        self.peers = peers
        self.settings = settings
        self.key, self._past = key_of(ledger), ledger.home.past_keys()
        self.poke = asyncio.Event()
        self.looked: Callable[[], None] = lambda: None
        """Called with each look at what is new."""
        self._states: defaultdict[str, _Peer] = defaultdict(_Peer)
        self._asked: dict[str, float] = {}

    @property
    def outbox(self) -> Outbox:
        """Return the first outbox: all have one log."""
        return self.outboxes[0]

    def outbox_at(self, place: str | None) -> Outbox:
        """Return the outbox of a mailbox; the first one if none is named."""
        return next((one for one in self.outboxes if place_of(one.mailbox) == place), self.outbox)

    def _outbox_of(self, parcel: Parcel) -> Outbox:
        """Return the outbox of the mailbox that a parcel is from; the first one for a mailbox that is away."""
        place = self.ledger.read_knowledge().place_of(str(parcel.event.get("swarm_id") or ""))
        return self.outbox_at(place)

    def _sweep_outboxes(self) -> None:
        """Queue what goes out from each mailbox; one that fails holds up no other."""
        for outbox in self.outboxes:
            for queue in (outbox.queue_announcements, outbox.queue_mail):
                with apart(outbox.mailbox, "outbox_not_swept"):  # busy, or the disk is full: the next look tries again
                    queue()

    def apply_settings(self, settings: GatewaySettings, outboxes: Sequence[Outbox], peers: Peers) -> None:
        """Go on with other settings and mailboxes; requests under way end by the old connections."""
        self.settings, self.outboxes = settings, list(outboxes)
        old, self.peers = self.peers, peers
        self._closing = asyncio.create_task(_close_later(old))

    async def carry_forever(self) -> None:
        """Carry for ever; a failing parcel or look stops no other."""
        self.outbox.compact_log()
        upkeep: asyncio.Task[None] | None = None
        flush = self.ledger.home.path_of(names.FLUSH)  # whose time is that of the last `swarm flush`
        flushed = time_of(flush)
        while True:
            self.looked()
            await asyncio.to_thread(self._sweep_outboxes)
            if (asked := time_of(flush)) != flushed:
                flushed = asked
                self._forget_pauses()
            self._start_due_peers()
            if upkeep is None or upkeep.done():  # beside it: a silent master holds up no mail
                upkeep = asyncio.create_task(self._repeat_requests())
            try:
                await asyncio.wait_for(self.poke.wait(), LOOK)
            except TimeoutError:
                pass
            self.poke.clear()

    async def try_everything_now(self) -> None:
        """Try everything once, now. Raise what keeps the first mailbox's mail from being queued."""
        await asyncio.to_thread(self.outbox.queue_outgoing)
        await asyncio.to_thread(self._sweep_outboxes)
        self._forget_pauses()
        self._start_due_peers()
        tasks = [state.task for state in self._states.values() if state.task is not None]
        await asyncio.gather(*tasks)
        await self._repeat_requests()

    def _forget_pauses(self) -> None:
        for state in self._states.values():
            state.due, state.held = 0.0, {}

    def hear_from(self, endpoint: str) -> None:
        """Try a peer that gave no answer again, since it has just written: it is back."""
        state = self._states.get(endpoint)
        if state is not None and state.is_silent:
            state.due = 0.0
            self.poke.set()

    def count_reached(self) -> tuple[int, int]:
        """Return the number of peers that took the last try, and of those that did not."""
        states = list(self._states.values())  # a copy: a thread asks, and the carrier adds to it
        away = sum(state.failures > 0 or bool(state.held) for state in states)
        return len(states) - away, away

    def _start_due_peers(self) -> None:
        """Start a task for every peer with something due and no task at work."""
        now = asyncio.get_running_loop().time()
        for parcel, _, endpoint in self._open_deliveries():
            state = self._states[endpoint]
            is_due = state.due <= now and not state.holds(parcel.event["swarm_id"], now)
            if is_due and (state.task is None or state.task.done()):
                state.task = asyncio.create_task(self._serve_peer(endpoint, state))

    async def _serve_peer(self, endpoint: str, state: _Peer) -> None:
        """Send one peer everything due, in order, until a try has to be repeated.

        The peer's own failure (500) does not hold up later parcels. A swarm whose mail it does not take now
        (``OF_ONE_SWARM``) holds up only its own.
        """
        blocked: set[str] = set()
        done: list[dict[str, Any]] = []
        try:
            for parcel, agent, _ in [one for one in self._open_deliveries() if one[2] == endpoint]:
                swarm_id = parcel.event["swarm_id"]
                if swarm_id in blocked or state.holds(swarm_id, asyncio.get_running_loop().time()):
                    blocked.add(swarm_id)  # for all of this run: its mail stays in order
                    continue
                event, answer = await self._attempt_delivery(parcel, agent, endpoint)
                if event["event"] == SENT:
                    if not (state.failures or state.held):
                        log_event(logging.WARNING, "peer_not_reached", peer=agent, status=answer.status)
                    if answer.status or event["why"] != parcel.peers[agent][2]:
                        done.append(event)  # record once why a peer is away, not with every try
                    if not self._goes_on(state, swarm_id, answer):
                        break
                    if swarm_id in state.held:
                        blocked.add(swarm_id)
                else:
                    if state.failures or swarm_id in state.held:
                        log_event(logging.INFO, "peer_reached", peer=agent)
                    state.failures, state.due, state.is_silent = 0, 0.0, False
                    state.held.pop(swarm_id, None)
                    done.append(event)
                    if event["event"] == FAILED:
                        outbox, why = self._outbox_of(parcel), failure_reason(answer)
                        await asyncio.to_thread(outbox.tell_sender, parcel.event, agent, why)
                if len(done) >= 32:
                    await self._record_outcomes(state, done)
                    done = []
        except NotFound as error:  # the ledger is gone: what is left waits for it
            log_event(logging.WARNING, "outbox_not_swept", code=error.code)
        finally:
            if done:
                await self._record_outcomes(state, done)

    async def _record_outcomes(self, state: _Peer, done: list[dict[str, Any]]) -> None:
        """Write outcomes down. If that fails, their mail goes out again, but after a pause: not with every look."""
        try:
            await asyncio.to_thread(self.outbox.append_events, done)
        except MailboxError:
            state.unrecorded += 1
            state.due = max(state.due, self._due_after(state.unrecorded))  # the peer may have asked for more
            raise
        state.unrecorded = 0

    def _due_after(self, failures: int, wait: int | None = None) -> float:
        """Return when to try again after so many failures in a row; ``wait``: after so many seconds."""
        pause = wait or backoff_seconds(failures, self.settings.retry_seconds)
        return asyncio.get_running_loop().time() + pause * random.uniform(0.75, 1)

    def _goes_on(self, state: _Peer, swarm_id: str, answer: PeerAnswer) -> bool:
        """Note a try that has to be repeated; return whether later parcels go on at once."""
        is_one_swarm = answer.status in OF_ONE_SWARM
        failures = 1 + (state.held.get(swarm_id, (0.0, 0))[1] if is_one_swarm else state.failures)
        due = self._due_after(failures, answer.wait)
        if is_one_swarm:
            state.held[swarm_id] = due, failures
        else:
            state.failures, state.due, state.is_silent = failures, due, not answer.status
        return is_one_swarm or answer.status == 500

    def _open_deliveries(self) -> list[tuple[Parcel, str, str]]:
        """Return what is on its way, in order: each parcel with a peer, and with that one's endpoint."""
        return [
            (parcel, peer["agent_id"], peer["endpoint"])
            for parcel in list(self.outbox.fold.open.values())  # a copy: other threads add to it
            for peer in parcel.event["peers"]
            if parcel.is_open_for(peer["agent_id"])
        ]

    async def _attempt_delivery(self, parcel: Parcel, agent: str, endpoint: str) -> tuple[dict[str, Any], PeerAnswer]:
        """Try once; return (the event that follows, the answer)."""
        known, now = self.ledger.identified_knowledge(), self.ledger.now()
        why = self._why_pointless(parcel, agent, endpoint, now)
        try:
            body = b"" if why else encode_envelope(self.sealed_envelope(parcel.event, now))
        except Refusal as refusal:
            why = refusal.message
        if why:
            answer = PeerAnswer(0, message=why, final=True)
        else:
            key = _key_of(known, parcel, agent, endpoint)
            answer = await self.peers.post_body(endpoint, "message", body, known.agent_id, key)
        kind = verdict_on(answer, instant.parse(parcel.event["at"]), now)
        event: dict[str, Any] = {"event": kind, "id": parcel.id, "peer": agent, "at": instant.text(now)}
        if kind != DELIVERED:
            event = {**event, "why": answer.message, "status": answer.status}
        return {**event, "tries": parcel.peers[agent][1]}, answer

    def _why_pointless(self, parcel: Parcel, agent: str, endpoint: str, now: int) -> str:
        if now >= self._outbox_of(parcel).give_up_time(parcel):
            return "it expired, or its recipient was away for too long"
        if parcel.event.get("content") is None:
            return "its record in the outbox has no text"
        swarm = self.ledger.read_knowledge().active_swarm(parcel.event["swarm_id"])
        if parcel.event.get("announces"):
            is_back = swarm is not None and lifecycle.is_leaving(parcel.event["content"])
            return "this gateway joined again before it arrived" if is_back else ""
        if swarm is None or agent not in swarm.members:
            return "it is no longer in a swarm with this agent"
        if swarm.members[agent].endpoint != endpoint:
            return "it left, and an agent of that name joined from elsewhere"
        return ""

    def sealed_envelope(self, event: Mapping[str, Any], now: int) -> Envelope:
        """Return the event as a message of this moment, signed and sealed; raise ``Refusal`` if no peer would take
        it."""
        known = self.ledger.read_knowledge()
        value = {
            "protocol_version": wire.PROTOCOL,
            "message_id": event["id"],
            "timestamp": instant.text(now),
            "sender": {"agent_id": known.agent_id, "endpoint": known.endpoint},
            "recipient": event["recipient"],
            "swarm_id": event["swarm_id"],
            "type": event["type"],
            "content": event["content"],
            "signature": "-",
            **{key: event[key] for key in _CARRIED if event.get(key) is not None},
        }
        key = self.key
        if event.get("announces"):  # who leaves a swarm and takes a new key left it by the old one
            key = next((one for until, one in self._past if event["at"] < until), key)
        unsigned = read_model(Envelope, value, "the message")
        signed = object_of(unsigned.model_copy(update={"signature": signing.sign_message(unsigned, key)}))
        return read_model(Envelope, signing.seal_object(signing.MESSAGE, signed, key), "the message")

    # -- repeated requests --------------------------------------------------------------------------------------------

    async def _repeat_requests(self) -> None:
        """Repeat waiting joinings, confirm memberships, ask for missing keys."""
        try:
            await self._ask_again()
        except (MailboxError, Refusal):
            pass  # the next round asks again

    async def _ask_again(self) -> None:
        known = self.ledger.read_knowledge()
        for swarm in known.swarms.values():
            if swarm.state == JOINING and self._is_due(swarm.swarm_id):
                said, _ = await ask_to_join(
                    self.ledger, self.peers, self.key, swarm.invitation, swarm.alias, again=True
                )
                if said == REFUSED:
                    await asyncio.to_thread(stop_asking, self.ledger, swarm, DENIED)
            elif known.active_swarm(swarm.swarm_id) and swarm.invitation and swarm.master != known.agent_id:
                age = self.ledger.now() - instant.parse(swarm.confirmed_at)
                if not 0 <= age <= TTL and self._is_due(swarm.swarm_id):
                    await confirm_membership(self.ledger, self.peers, self.key, swarm)
        await self._ask_keys(known)

    async def _ask_keys(self, known: Memberships) -> None:
        """Ask for some of the missing keys: a master who names many silent members must not delay other requests."""
        keyless = (
            (swarm.swarm_id, member)
            for swarm in known.swarms.values()
            for member in swarm.members.values()
            if not member.public_key and self._is_due(f"{swarm.swarm_id} {member.agent_id}")
        )
        asked = [self._learn_key(swarm_id, one.agent_id, one.endpoint) for swarm_id, one in islice(keyless, AT_ONCE)]
        await asyncio.gather(*asked)

    def _is_due(self, what: str) -> bool:
        now = asyncio.get_running_loop().time()
        if now < self._asked.get(what, 0.0):
            return False
        self._asked[what] = now + self.settings.retry_seconds * SELDOM
        return True

    async def _learn_key(self, swarm_id: str, agent_id: str, endpoint: str) -> None:
        """Learn the key of a member that its *master* named without one (as the reference does).

        Ask only the endpoint that the master signed: nobody else's word makes this gateway connect anywhere.
        """
        answer = await self.peers.get_document(f"{endpoint}/info")
        try:
            info = read_model(Info, answer.body, "info")
        except Refusal:
            return
        if answer.status == 200 and info.agent_id == agent_id:
            told = {"swarm_id": swarm_id, "agent_id": agent_id, "public_key": info.public_key}
            event = self.ledger.make_event("key", **told)
            await asyncio.to_thread(self.ledger.append_decided, lambda _: [event])
