"""What is signed beside the founding text's six fields: a request to join, by who wants to, and all of a message."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_mailbox.core import address, codec, inbox, instant
from agent_mailbox.core.records import Message
from agent_mailbox.core.roster import Roster
from agent_mailbox.swarm import decisions
from agent_mailbox.swarm.protocol import acceptance, admission, signing, tokens, wire
from agent_mailbox.swarm.protocol.envelope import Envelope
from agent_mailbox.swarm.protocol.membership import Memberships, fold_events
from tests.helpers import until
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, Machine, meet
from tests.swarm.test_protocol import KEY, NOW, VECTORS, body, claims, known, master, refusal
from tests.swarm.test_refusals import Scene
from tests.swarm.wirework import Line, Person, now, refused


def signed(person: Person, token: str, at: int | None = None, **more: Any) -> dict[str, Any]:
    """A request to join with its proof; ``more`` is set before it is signed."""
    beside = {"protocol_version": "0.1.0", "message_id": str(uuid.uuid4()), "timestamp": instant.text(at or now())}
    return signing.seal_object(signing.JOIN, {**beside, **person.joining(token), **more}, person.key)


def asked(value: dict[str, Any], state: Memberships, at: int, proof: bool = False) -> admission.Admission:
    """What is decided about a request."""
    return admission.decide_admission(admission.parse_join_request(wire.dump_json(value).encode()), state, at, proof)


def after(state: Memberships, found: admission.Admission) -> Memberships:
    """The knowledge once that was written down."""
    return fold_events(found.events, state)


# -- requests to join -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"message_id": "11111111-1111-4111-8111-111111111111"},
        {"timestamp": "2026-02-05T14:30:00.001Z"},
        {"protocol_version": "0.2.0"},
        {"sender": {"endpoint": "https://evil.example/swarm"}},
        {"sender": {"agent_id": "rob"}},
        {"seal": "AAAA"},
        {"beside": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_seal_of_a_request_holds_or_is_refused(change: dict[str, Any]) -> None:
    """All of the request is signed: with any member another, or one more, it is nobody's."""
    bob, token = Person("bob"), tokens.make_token(claims(max_uses=1), KEY)
    value = signed(bob, token, NOW)
    assert asked(value, master(), NOW).accepted
    changed = {**value, **change, "sender": {**value["sender"], **change.get("sender", {})}}
    assert refusal(asked, changed, master(), NOW) == "INVALID_SIGNATURE"
    other = {**value, "invite_token": tokens.make_token(claims(max_uses=2), KEY)}
    assert refusal(asked, other, master(), NOW) == "INVALID_SIGNATURE"


def test_a_stale_or_incomplete_join_proof_is_refused() -> None:
    """A quarter of an hour either way; without an id or an instant it is none."""
    bob, token = Person("bob"), tokens.make_token(claims(), KEY)
    for late in (wire.FRESH + 1, -wire.FRESH - 1):
        assert refusal(asked, signed(bob, token, NOW), master(), NOW + late) == "STALE_TIMESTAMP"
    for name in ("message_id", "timestamp", "protocol_version"):
        value = signed(bob, token, NOW, **{name: None})
        assert refusal(asked, value, master(), NOW) == "INVALID_FORMAT"
    assert refusal(asked, {**signed(bob, token, NOW), "beside": 1 << 60}, master(), NOW) == "INVALID_FORMAT"


def test_no_signature_is_taken_for_one_of_another_kind() -> None:
    """The signed bytes of a message, a request, a whole message and a token are never the same."""
    bob, message = Person("bob"), Envelope(**VECTORS["envelope"])
    token = tokens.make_token(claims(), KEY)
    value = signed(bob, token, NOW)
    over = [
        signing.signed_digest(message),
        signing.bytes_to_seal(signing.JOIN, value),
        signing.bytes_to_seal(signing.MESSAGE, value),
    ]
    assert len(over[0]) == 32
    assert all(len(one) > 32 for one in over[1:])
    assert len({one[:30] for one in over}) == 3
    assert not any(b"\n" not in one for one in over[1:])
    assert b"\n" not in token.encode()
    swapped = signing.seal_object(signing.MESSAGE, value, bob.key)
    assert refusal(asked, swapped, master(), NOW) == "INVALID_SIGNATURE"
    assert (
        refusal(acceptance.examine_message, body(seal=VECTORS["envelope"]["signature"]), known(), NOW)
        == "INVALID_SIGNATURE"
    )


def test_a_member_with_an_invitation_that_is_no_longer_good_shows_that_it_is_the_member() -> None:
    """Revoked, expired, used up: who has it and knows the member's public key is not told who else is in."""
    bob = Person("bob")
    once = tokens.make_token(claims(max_uses=1), KEY)
    dated = tokens.make_token(claims(expires_at=instant.text(NOW + 1000)), KEY)
    state = after(master(), asked(signed(bob, once, NOW), master(), NOW))
    assert asked(bob.joining(once), state, NOW).accepted  # the answer may have been lost
    revoked = fold_events(
        [{"event": "revoked", "swarm_id": claims().swarm_id, "token": tokens.token_fingerprint(once)}], state
    )
    later = NOW + wire.FRESH
    for token, now_known, at, code in (
        (once, state, later, "TOKEN_EXHAUSTED"),
        (once, revoked, NOW, "TOKEN_REVOKED"),
        (dated, state, later, "TOKEN_EXPIRED"),
    ):
        assert refusal(asked, bob.joining(token), now_known, at) == code
        found = asked(signed(bob, token, at), now_known, at)
        assert found.accepted
        assert [event["event"] for event in found.events] == ["asked"]
        stranger = {**signed(Person("bob"), token, at)}
        assert refusal(asked, stranger, now_known, at) == "KEY_MISMATCH"
    assert asked(bob.joining(tokens.make_token(claims(), KEY)), state, later).accepted


def test_a_replayed_join_request_has_no_effect() -> None:
    """Replayed, it neither lists the members nor brings back who left; it is remembered for as long as it is fresh."""
    bob, token = Person("bob"), tokens.make_token(claims(), KEY)
    value = signed(bob, token, NOW)
    state = after(master(), asked(value, master(), NOW))
    assert refusal(asked, value, state, NOW) == "INVALID_SIGNATURE"
    again = signed(bob, token, NOW)
    state = after(state, asked(again, state, NOW))
    left = {"event": "left", "swarm_id": claims().swarm_id, "agent_id": "bob", "at": instant.text(NOW + 1)}
    state = fold_events([left], state)
    for replayed in (value, again):
        assert refusal(asked, replayed, state, NOW + 2) == "INVALID_SIGNATURE"
    assert asked(signed(bob, token, NOW), state, NOW + 2).accepted
    much_later = NOW + 10 * wire.FRESH
    state = after(state, asked(signed(bob, token, much_later), state, much_later))
    assert len(state.swarms[claims().swarm_id].asked) == 1


def test_a_request_that_waits_for_approval_is_answered_once() -> None:
    """A request to join that waits is answered once. Somebody who replays it after the approval does not learn the
    members."""
    bob, token = Person("bob"), tokens.make_token(claims(), KEY)
    careful = fold_events([], master())
    swarm = careful.swarms[claims().swarm_id].replace(settings={"require_approval": True})
    state = careful.replace(swarms={swarm.swarm_id: swarm})
    values = [signed(bob, token, NOW) for _ in range(2)]
    for value in values:
        found = asked(value, state, NOW)
        assert not found.accepted
        state = after(state, found)
    waiting = state.swarms[swarm.swarm_id]
    state = fold_events([admission.joined_event(waiting, waiting.waiting["bob"][0], None, NOW)], state)
    for value in values:
        assert refusal(asked, value, state, NOW) == "INVALID_SIGNATURE"


def test_require_join_proof_refuses_unsigned_requests(machine: Make) -> None:
    """``require_join_proof``: unsigned requests are refused, ours are signed. Replayed over the wire, with the gateway
    killed in between, a request changes nothing and tells nothing."""
    alpha, beta = machine("alpha", require_join_proof=True).serve(), machine("beta").serve()
    meet(alpha, beta)
    url = alpha.ok("swarm", "invite", "demo", "--unlimited")["url"]
    token, bob = tokens.parse_url(url).token, Person("bob")
    refused(Line(alpha).post("join", bob.joining(token)), 401, "INVALID_SIGNATURE")
    assert alpha.members() == {"alpha", "beta"}
    first, second = signed(bob, token), signed(bob, token)
    for value in (first, second):
        assert Line(alpha).post("join", value).status_code == 200
    alpha.kill()
    alpha.serve()
    before = (alpha.swarm_home / "ledger.jsonl").read_bytes()
    for value in (first, second):
        refused(Line(alpha).post("join", value), 401, "INVALID_SIGNATURE")
    assert (alpha.swarm_home / "ledger.jsonl").read_bytes() == before


def test_a_seal_covers_the_canonical_bytes() -> None:
    """A word that says what it is, a line feed, the object in the form of RFC 8785 without its seal."""
    value = {"b": [1.0, 1e21, "\u00e9\n"], "a": {"\U0001f600": None, "\ufb33": True}, "signature": "x", "seal": "y"}
    form = '{"a":{"\U0001f600":null,"\ufb33":true},"b":[1,1e+21,"\u00e9\\n"],"signature":"x"}'
    for kind, word in ((signing.JOIN, "join-request"), (signing.MESSAGE, "envelope")):
        assert signing.bytes_to_seal(kind, value) == f"agent-swarm-protocol/{word}/1\n{form}".encode()


# -- the whole of a message -------------------------------------------------------------------------------------------


def sealed(person: Person, swarm: str, **more: Any) -> dict[str, Any]:
    return signing.seal_object(signing.MESSAGE, person.envelope(swarm, "alpha", **more), person.key)


HINTS: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda m: {**m, "in_reply_to": "11111111-1111-4111-8111-111111111111"},
    lambda m: {**m, "thread_id": "11111111-1111-4111-8111-111111111111"},
    lambda m: {**m, "priority": "high"},
    lambda m: {**m, "expires_at": instant.text(now() + 60_000)},
    lambda m: {**m, "references": []},
    lambda m: {**m, "attachments": [{"type": "url", "mime_type": "text/plain", "content": "https://evil.example"}]},
    lambda m: {**m, "metadata": {"subject": "another"}},
    lambda m: {**m, "sender": {**m["sender"], "endpoint": "https://evil.example/swarm"}},
    lambda m: {**m, "protocol_version": "0.1.1"},
    lambda m: {**m, "later": 1},
    lambda m: {key: value for key, value in m.items() if key != "metadata"},
    lambda m: {key: value for key, value in m.items() if key != "seal"},
    lambda m: {**m, "seal": m["signature"]},
]


def test_who_sealed_once_is_heard_sealed_alone(machine: Make) -> None:
    """A member of a message that nobody signed can be changed; of a sealed one none, and once a key has sealed one, a
    missing seal is a message that was tampered with, after a restart, too. Who never seals is heard as before."""
    scene = Scene(machine("alpha").serve())
    alpha, bob = scene.alpha, scene.bob
    more = {"metadata": {"subject": "mine", "n": 1.50}, "priority": "low"}
    message = sealed(bob, scene.swarm, content="first", **more)
    refused(scene.line.post("message", {**message, "priority": "high"}), 401, "INVALID_SIGNATURE")
    assert scene.line.post("message", scene.say(content="not sealed yet")).status_code == 200
    assert scene.line.post("message", message).status_code == 200
    for _ in range(2):
        line = Line(alpha)
        for hint in HINTS:
            refused(line.post("message", hint(sealed(bob, scene.swarm, **more))), 401, "INVALID_SIGNATURE")
        carols = scene.carol.envelope(scene.swarm, "alpha", "unsealed")
        assert line.post("message", carols).status_code == 200
        assert line.post("message", sealed(bob, scene.swarm, content="sealed", **more)).status_code == 200
        alpha.kill()
        alpha.serve()
    assert alpha.received() == ["not sealed yet", "first", "unsealed", "sealed", "unsealed", "sealed"]
    assert [e["event"] for e in alpha_events(scene)].count("sealed") == 1


def alpha_events(scene: Scene) -> list[dict[str, Any]]:
    """What the master's ledger says."""
    return [json.loads(line) for line in (scene.alpha.swarm_home / "ledger.jsonl").read_text().splitlines()]


def test_our_gateways_seal_every_message(machine: Make) -> None:
    """Between two of ours every message is: mail with everything an envelope may have, and news of the swarm."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    meet(a, b, c)
    pinned = b.ledger.read_knowledge().sealing
    assert pinned == {a.public_key}  # it was told of gamma
    b.ok(
        "swarm", "notify", "github", "issue_claimed", "demo", "o/r#3", "--from", "beta-agent", "--body", "é \U0001f600"
    )
    until(lambda: len(a.received()) == 1)
    assert a.ledger.read_knowledge().sealing == {b.public_key}
    a.ok("swarm", "kick", "demo", "gamma")
    until(lambda: c.knows().state == "kicked")
    decisions.leave_swarm(b.ledger, "demo", False)
    until(lambda: a.members() == {"alpha"})


def test_what_cannot_be_sealed_is_told_to_who_sent_it(machine: Make) -> None:
    """A number beyond 53 bits has no one form: its sender learns why the message does not go out."""
    a, b = (machine(name).serve() for name in ("alpha", "beta"))
    meet(a, b)
    line = wire.dump_json(
        {"sender": "ann", "recipient": "swarm:demo/beta", "content": "x", "metadata": {"big": (1 << 53) + 1}}
    )
    a.ok("send", "--jsonl", "-", stdin=line)
    until(lambda: "53 bits" in a.unread_text("ann"))


# -- when mail ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [90_001, 5_400_000, 36_000_001])
def test_mail_never_ends_before_its_sender_says_so(scene_once: Scene, left: int) -> None:
    """Mail from elsewhere ends at its sender's instant, exactly."""
    until_then = now() + left
    message = scene_once.say(content=f"for {left} ms", expires_at=instant.text(until_then))
    assert scene_once.line.post("message", message).status_code == 200
    kept = next(m for m in scene_once.alpha.remote() if m["id"] == message["message_id"])
    assert (kept["ttl_hours"], kept["expires_at"]) == (None, instant.text(until_then))
    record = codec.message(wire.dump_json(kept).encode())
    assert isinstance(record, Message)
    assert inbox.expires_at(record, Roster(), address.DEFAULT_TTL) == until_then


@pytest.fixture(scope="module")
def scene_once(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Scene]:
    alpha = Machine(tmp_path_factory.mktemp("ends"), "alpha", authority).serve()
    yield Scene(alpha)
    alpha.kill()
