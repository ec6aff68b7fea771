"""What a gateway has where its parts meet: a disk that fails between two of them, an answer that comes while somebody
decides otherwise, a member who repeats what others said, a log as long as a disk."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_mailbox.core import instant
from agent_mailbox.errors import Busy, Malformed, NotFound, StorageFailed
from agent_mailbox.mailbox.open_mailbox import random_id
from agent_mailbox.swarm import decisions, joining, state_file
from agent_mailbox.swarm.carrier import AT_ONCE
from agent_mailbox.swarm.gateway import Gateway
from agent_mailbox.swarm.ledger import Ledger
from agent_mailbox.swarm.protocol import admission, lifecycle, signing, tokens, wire
from agent_mailbox.swarm.protocol.envelope import Envelope
from agent_mailbox.swarm.protocol.membership import ACTIVE, JOINING, MAX_MEMBERS, Member, Swarm
from agent_mailbox.swarm.protocol.outgoing import PeerAnswer
from agent_mailbox.swarm.protocol.refusal import Refusal
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import PATIENCE
from tests.swarm.conftest import Make
from tests.swarm.machine import LIMITS
from tests.swarm.test_proofs import signed
from tests.swarm.wirework import Person, now
from tests.swarm.world import Agent, Near, played


def _master(machine: Make, near: Near) -> Agent:
    """Alone in a swarm of its own."""
    a = Agent(machine("alpha"), near, 0)
    decisions.create_swarm(a.ledger, "demo", {})
    return a


async def _comes(a: Agent, person: Person, **more: Any) -> None:
    """Somebody who speaks by hand joins."""
    token = tokens.parse_url(a.invite()).token
    await a.gateway.accept_join(wire.dump_json({**person.joining(token), **more}).encode(), person.agent_id)


def _body(value: dict[str, Any]) -> bytes:
    return wire.dump_json(value).encode()


# -- a full disk -------------------------------------------------------------------------------------------------------


@contextmanager
def _full_disk(log: str) -> Iterator[None]:
    """Let this log, which is made the longest of all files, take no further line."""
    with open(log, "ab") as file:
        file.write(b"{}\n" * 100_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(log), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_mail_whose_outcome_cannot_be_noted_goes_out_again_after_a_pause(machine: Make) -> None:
    """The pauses grow. Once the disk takes lines, the outcome is noted."""
    near = Near()
    a, b = _master(machine, near), Agent(machine("beta"), near, 0)
    a.carrier.settings = GatewaySettings()

    async def scene() -> None:
        await b.join(a)
        near.heard.clear()
        a.machine.send("user", "swarm:demo", "hello")
        a.outbox.queue_outgoing()
        clock, state = asyncio.get_running_loop().time, a.carrier._states[b.machine.endpoint]
        with _full_disk(a.outbox.path):
            for least in (0.75, 1.5, 3.0):
                state.due, before = 0.0, clock()
                a.carrier._start_due_peers()
                assert state.task is not None
                with pytest.raises(StorageFailed):
                    await state.task
                assert state.due >= before + least
            state.due = asked = clock() + 3600  # as its answer said
            with pytest.raises(StorageFailed):
                await a.carrier._record_outcomes(state, [{"event": "sent"}])
            assert state.due == asked
        assert [path for path, _ in near.heard] == ["message"] * 3
        await a.carrier.try_everything_now()
        assert not a.outbox.refresh_fold().open

    played(scene, a, b)


def test_peers_are_counted_while_a_further_one_is_found(machine: Make) -> None:
    """The numbers are asked for in a thread of their own."""
    carrier = _master(machine, Near()).carrier

    class Finding(dict[str, tuple[float, int]]):
        def __bool__(self) -> bool:
            return carrier._states["found"].failures > 0

    carrier._states["known"].held = Finding()
    assert carrier.count_reached() == (1, 0)
    assert carrier.count_reached() == (2, 0)


def test_mail_that_cannot_be_queued_is_read_again_alone(machine: Make) -> None:
    """The gateway looks four times a second: it does not read the whole log each time."""
    a = _master(machine, Near())
    a.machine.send("user", "swarm:demo", "first")
    a.outbox.queue_outgoing()
    place = a.outbox._mail.position
    with _full_disk(a.outbox.path):
        second = a.machine.send("user", "swarm:demo", "second")
        with pytest.raises(StorageFailed):
            a.outbox.queue_outgoing()
        assert a.outbox._mail.position == place > 0
    a.outbox.queue_outgoing()
    assert second in a.outbox.fold.senders


# -- told once ---------------------------------------------------------------------------------------------------------


def test_what_could_not_be_kept_at_once_is_told_once(machine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger tells the sessions here who joined if the mailbox was locked at that moment. The master sends its
    message again, and that makes no second one."""
    near = Near()
    a, b = _master(machine, near), Agent(machine("beta"), near, 0)

    async def scene() -> None:
        assert (await b.join(a))[0] == "accepted"
        said = {"action": lifecycle.JOINED, **Person("dave").joining("-")["sender"]}
        message = Person("alpha").system(a.swarm.swarm_id, "broadcast", **said)
        message = signing.seal_object(signing.MESSAGE, {**message, "signature": _sign(a, message)}, a.carrier.key)
        with monkeypatch.context() as patched:

            def busy(*_: Any, **__: Any) -> None:
                raise Busy("the mailbox is locked", "")

            patched.setattr(b.gateway.mailbox, "take_in", busy)
            with pytest.raises(Refusal, match="could be stored"):
                await b.gateway.accept_message(_body(message))
        b.outbox.queue_outgoing()
        await b.gateway.accept_message(_body(message))
        told = [m["id"] for m in b.machine.remote() if m["id"] == message["message_id"]]
        assert told == [message["message_id"]]

    played(scene, a, b)


def _sign(agent: Agent, value: dict[str, Any]) -> str:
    return signing.sign_message(Envelope.model_construct(**value), agent.carrier.key)


# -- limits ------------------------------------------------------------------------------------------------------------


def test_who_repeats_what_another_said_uses_up_nothing_of_it(machine: Make) -> None:
    """A broadcast is everybody's to repeat, signature and all: it is answered, and neither the sender's minute nor the
    swarm's is shorter by it."""
    near = Near()
    a = _master(machine, near)
    bob = Person("bob")
    settings = GatewaySettings(**{**LIMITS, "messages_per_minute": 3, "swarm_messages_per_minute": 3})

    async def scene() -> None:
        await _comes(a, bob)
        said = _body(bob.envelope(a.swarm.swarm_id, "broadcast"))
        for _ in range(9):
            await a.gateway.accept_message(said)
        for _ in range(2):
            await a.gateway.accept_message(_body(bob.envelope(a.swarm.swarm_id, "alpha")))
        with pytest.raises(Refusal, match="too many messages"):
            await a.gateway.accept_message(_body(bob.envelope(a.swarm.swarm_id, "alpha")))

    a.gateway = Gateway([a.gateway.mailbox], a.ledger, a.outbox, settings)
    played(scene, a)


def test_who_asks_again_and_again_from_everywhere_is_limited(machine: Make) -> None:
    """Each signed request is a line of the ledger, whoever is let in by it: so many an hour of one key, too."""
    near = Near()
    a = _master(machine, near)
    bob, carol = Person("bob"), Person("carol")
    settings = GatewaySettings(**{**LIMITS, "joins_per_hour": 3})
    a.gateway = Gateway([a.gateway.mailbox], a.ledger, a.outbox, settings)

    async def scene() -> None:
        token = tokens.parse_url(decisions.make_invitation(a.ledger, "demo", None, 24)).token
        for turn in range(3):
            await a.gateway.accept_join(_body(signed(bob, token)), f"192.0.2.{turn}")
        before = (a.machine.swarm_home / "ledger.jsonl").read_bytes()
        with pytest.raises(Refusal, match="too many"):
            await a.gateway.accept_join(_body(signed(bob, token)), "192.0.2.77")
        assert (a.machine.swarm_home / "ledger.jsonl").read_bytes() == before
        await a.gateway.accept_join(_body(signed(carol, token)), "192.0.2.78")

    played(scene, a)


def test_who_repeats_a_request_of_another_uses_up_none_of_its(machine: Make) -> None:
    """A master elsewhere was asked by the same key: what that was sent is good for nothing here, as is one answered."""
    near = Near()
    a, c = _master(machine, near), Agent(machine("gamma"), near, 0)
    decisions.create_swarm(c.ledger, "elsewhere", {})
    bob = Person("bob")
    a.gateway = Gateway([a.gateway.mailbox], a.ledger, a.outbox, GatewaySettings(**{**LIMITS, "joins_per_hour": 3}))

    async def scene() -> None:
        elsewhere = _body(signed(bob, tokens.parse_url(c.invite()).token))
        token = tokens.parse_url(a.invite()).token
        answered = _body(signed(bob, token))
        await a.gateway.accept_join(answered, "192.0.2.1")
        for turn in range(4):
            for repeated in (elsewhere, answered):
                with pytest.raises(Refusal, match=r"no such swarm|answered before"):
                    await a.gateway.accept_join(repeated, f"198.51.100.{turn}")
        await a.gateway.accept_join(_body(signed(bob, token)), "192.0.2.1")

    played(scene, a, c)


# -- joining -----------------------------------------------------------------------------------------------------------


class Meanwhile(Near):
    """Peers that answer after something else happened."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Any = None
        self.answer: PeerAnswer | None = None

    async def post_body(self, endpoint: str, path: str, body: bytes, agent_id: str, *_: Any, **__: Any) -> PeerAnswer:
        """As ``Near``, or with what it was told to say."""
        if self.first is not None:
            first, self.first = self.first, None
            first()
        if self.answer is not None:
            answer, self.answer = self.answer, None
            return answer
        return await super().post_body(endpoint, path, body, agent_id)


def _waiting(a: Agent, b: Agent) -> str:
    """An invitation by which one waits for the other's approval."""
    url = a.invite()
    invitation = tokens.parse_url(url)
    b.ledger.append_decided(lambda known: joining._joining_events(b.ledger, known, invitation, url, "demo"))
    return url


def test_a_late_refusal_of_one_invitation_does_not_end_a_joining_by_another(machine: Make) -> None:
    near = Meanwhile()
    a, b = _master(machine, near), Agent(machine("beta"), near, 0)

    async def scene() -> None:
        _waiting(a, b)
        again: list[str] = []
        near.first = lambda: again.append(_waiting(a, b))
        near.answer = PeerAnswer(403, "TOKEN_REVOKED", "no")
        await b.carrier._ask_again()
        assert (b.swarm.state, b.swarm.invitation) == (JOINING, again[0])

    played(scene, a, b)


def test_who_is_let_in_just_as_it_gives_up_leaves(machine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes between the look and the decision: then there is a swarm to leave, and to be told of it."""
    near = Near()
    a, b = _master(machine, near), Agent(machine("beta"), near, 0)

    async def scene() -> None:
        url = _waiting(a, b)
        stale = b.ledger.read_knowledge()
        assert (await joining.ask_to_join(b.ledger, near, b.carrier.key, url, again=True))[0] == "accepted"
        with monkeypatch.context() as patched:
            patched.setattr(b.ledger, "identified_knowledge", lambda: stale)
            assert joining.give_up(b.ledger, "demo") is None
        assert b.swarm.state == ACTIVE

    played(scene, a, b)


# -- what cannot be told -----------------------------------------------------------------------------------------------


def test_kick_and_mute_reject_an_overlong_reason(machine: Make) -> None:
    """Longer than a record may be it could not be told, and nothing that comes after it either."""
    a = _master(machine, Near())

    async def scene() -> None:
        await _comes(a, Person("bob"))

    played(scene, a)
    for do in (
        lambda reason: decisions.kick_member(a.ledger, "demo", "bob", reason),
        lambda reason: decisions.mute_sender(a.ledger, "bob", True, reason),
    ):
        with pytest.raises(Malformed):
            do("why " * 1000)
    a.outbox.queue_outgoing()


def test_a_notice_that_cannot_be_kept_holds_up_no_other(machine: Make) -> None:
    """A ledger of an earlier version may hold one: it is passed over."""
    a = _master(machine, Near())
    swarm_id = a.swarm.swarm_id
    for word in ("x" * 600_000, "said"):
        notice = {"agent_id": "bob", "subject": "bob", "content": word}
        news = [{"id": random_id(), "recipient": "broadcast", "content": "-", "peers": [], "notice": notice}]
        event = a.ledger.make_event("unmuted", what="agent", id="bob", swarm_id=swarm_id, announce=news)
        a.ledger.append_decided(lambda _, event=event: [event])
    a.outbox.queue_outgoing()
    assert [m["content"] for m in a.machine.remote()] == ["said"]
    a.outbox.queue_outgoing()


def test_mail_waits_for_a_ledger_that_goes_as_it_is_looked_at(machine: Make) -> None:
    """Mail waits if the ledger disappears while the gateway looks at it. Its sender is not told that it failed."""
    a = _master(machine, Near())
    ledger, away = Path(a.ledger.home.directory, "ledger.jsonl"), a.machine.scratch / "away"
    a.machine.send("user", f"swarm:{a.swarm.alias}", "patience")
    ledger.rename(away)
    with pytest.raises(NotFound, match="identity missing"):
        a.outbox.queue_outgoing()
    assert a.outbox.latest_rows(9) == (0, [])
    away.rename(ledger)
    a.outbox.queue_outgoing()
    ((count, (row,)), told) = a.outbox.latest_rows(9), a.machine.remote()
    assert (count, row["type"], told) == (1, "message", [])


def test_a_gateway_holds_one_piece_of_a_long_log_at_once(machine: Make) -> None:
    """A gateway's first look for outgoing mail reads the whole mailbox. It holds little of it at once."""
    a = _master(machine, Near())
    swarm = a.swarm
    line = json.dumps({"content": "x" * 65_536}).encode() + b"\n"
    with open(a.machine.box / "agent-mailbox.jsonl", "ab") as file:
        file.writelines(line for _ in range(400))
    a.machine.send("user", f"swarm:{swarm.alias}", "found")
    tracemalloc.start()
    try:
        a.outbox.queue_outgoing()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert a.outbox.latest_rows(100)[0] == 1


def test_of_what_was_told_long_ago_no_word_is_held(machine: Make) -> None:
    """A ledger remembers for good what was announced; who reads it again needs no more than the ids of that."""
    a = _master(machine, Near())
    said = {"recipient": "broadcast", "content": "x" * 32_768, "peers": []}
    for _ in range(40):
        news = [{"id": random_id(), **said} for _ in range(20)]
        a.ledger.append_decided(
            lambda _, news=news: [a.ledger.make_event("muted", what="agent", id="bob", announce=news)]
        )
    a.outbox.queue_outgoing()
    a.ledger.append_decided(
        lambda _: [a.ledger.make_event("muted", what="agent", id="bob", announce=[{"id": "last", **said}])]
    )
    again = Ledger(a.ledger.home)
    tracemalloc.start()
    try:
        (left,) = again.open_announcements(a.outbox.refresh_fold().senders)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left["id"] == "last"
    assert peak < 8 << 20


# -- one master's members ----------------------------------------------------------------------------------------------


def test_members_who_do_not_answer_keep_nobody_waiting(machine: Make) -> None:
    """A master names two hundred without a key; what their endpoints are asked for is asked after what matters more,
    and a few at once."""
    near = Near()
    a, b = _master(machine, near), Agent(machine("beta"), near, 0)
    asked: list[str] = []

    async def scene() -> None:
        assert (await b.join(a))[0] == "accepted"
        at = instant.text(now())
        for number in range(200):
            member = {"agent_id": f"m{number}", "endpoint": f"https://m{number}.example/swarm", "joined_at": at}
            event = {"event": "joined", "swarm_id": b.swarm.swarm_id, "member": member, "at": at}
            b.ledger.append_decided(lambda _, event=event: [event])
        second = decisions.create_swarm(a.ledger, "second", {})
        url = decisions.make_invitation(a.ledger, second.swarm_id, 1, 24)
        invitation = tokens.parse_url(url)
        b.ledger.append_decided(lambda known: joining._joining_events(b.ledger, known, invitation, url, "second"))
        await b.carrier._ask_again()
        assert b.ledger.read_knowledge().active_swarm(second.swarm_id) is not None
        assert len(asked) == AT_ONCE
        await b.carrier._ask_again()
        assert len(set(asked)) == 2 * AT_ONCE

    async def get(url: str) -> PeerAnswer:
        assert b.ledger.read_knowledge().swarm_by_word("second") is not None
        asked.append(url)
        return PeerAnswer(0)

    near.get_document = get  # type: ignore[method-assign]
    played(scene, a, b)


def test_a_full_swarm_takes_no_new_member(machine: Make) -> None:
    """A full swarm refuses one more member, by its master and by those that are told. It refuses nobody who is in or
    waits."""
    a = _master(machine, Near())
    swarm, at = a.swarm, instant.text(now())
    crowd = {f"m{n}": Member(f"m{n}", f"https://m{n}.example/swarm", Person("x").public_key, at) for n in range(3)}
    many = {f"n{n}": crowd["m0"].replace(agent_id=f"n{n}") for n in range(MAX_MEMBERS - 4)}
    waiting = {"bob": (Member("bob", Person("bob").endpoint, (bob := Person("bob")).public_key, at), "-")}
    full = swarm.replace(members={**swarm.members, **crowd, **many})
    known = a.ledger.read_knowledge()
    assert len(full.members) == MAX_MEMBERS
    token = tokens.parse_url(decisions.make_invitation(a.ledger, "demo", None, 24)).token

    def asks(person: Person, swarm: Swarm) -> bool:
        request = admission.parse_join_request(_body(person.joining(token)))
        return admission.decide_admission(request, known.replace(swarms={swarm.swarm_id: swarm}), now()).events != ()

    assert asks(Person("carol"), full.replace(members=without(full, "m0")))
    for crowded in (full, full.replace(members=without(full, "m0"), waiting=waiting)):
        with pytest.raises(Refusal, match="full"):
            asks(Person("carol"), crowded)
    assert asks(bob, full.replace(members=without(full, "m0"), waiting=waiting))
    for person, refused in ((Person("dave"), True), (Person("m1", "https://moved.example/swarm"), False)):
        later = instant.text(now() + 60_000)
        content = lifecycle.joined_content(
            swarm.swarm_id, Member(person.agent_id, person.endpoint, person.public_key, later)
        )
        said = Person("alpha").envelope(swarm.swarm_id, "broadcast", content, type="system")
        if refused:
            with pytest.raises(Refusal, match="at most"):
                lifecycle.decide_lifecycle(Envelope(**said), full, "beta")
        else:
            assert lifecycle.decide_lifecycle(Envelope(**said), full, "beta").events


def without(swarm: Swarm, agent_id: str) -> dict[str, Member]:
    """Its members, less one."""
    return {name: one for name, one in swarm.members.items() if name != agent_id}


def test_nobody_joined_in_a_time_that_has_not_come(machine: Make) -> None:
    """A state file says so: what is decided next is still an instant that everybody can read."""
    a = _master(machine, Near())

    async def scene() -> None:
        await _comes(a, Person("bob"))

    played(scene, a)
    state = state_file.export_state(a.ledger.read_knowledge())
    (swarm,) = state["swarms"].values()
    for member in (swarm, *swarm["members"]):
        member["joined_at"] = "9999-12-31T23:59:59.999Z"
    decisions.take_state(a.ledger, wire.dump_json(state).encode(), False)
    decisions.kick_member(a.ledger, "demo", "bob", None)
    assert wire.is_instant(a.swarm.departed["bob"])
    assert instant.parse(a.swarm.departed["bob"]) < now() + 2 * wire.FRESH


def test_the_doctor_waits_for_no_file_of_the_swarm(machine: Make) -> None:
    """The doctor tells whatever is in the place of the swarm's files. It waits for nothing, not even for a FIFO."""
    a = machine("alpha")
    for name in ("outbox.jsonl", "statuses.jsonl"):
        (a.swarm_home / name).mkdir(mode=0o700)
    (a.swarm_home / "key.pem").unlink()
    os.mkfifo(a.swarm_home / "key.pem", 0o600)
    asked = a.start("doctor", "--json", stdin=subprocess.DEVNULL, stderr=None)
    try:
        found = json.loads(asked.communicate(timeout=PATIENCE)[0])["problems"]
    finally:
        asked.kill()
    assert {os.path.basename(one["file"]) for one in found} == {"outbox.jsonl", "statuses.jsonl", "key.pem"}
