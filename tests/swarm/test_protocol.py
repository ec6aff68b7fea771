"""The protocol without I/O: the published vectors byte for byte, strict reading, tokens, limits, the state machine."""

from __future__ import annotations

import base64
import json
import tracemalloc
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import instant
from agent_mailbox.swarm.protocol import acceptance, admission, envelope, limits, signing, tokens, wire
from agent_mailbox.swarm.protocol.membership import Member, Memberships, fold_events
from agent_mailbox.swarm.protocol.outgoing import (
    DELIVERED,
    FAILED,
    SENT,
    Outgoing,
    PeerAnswer,
    compact_events,
    verdict_on,
)
from agent_mailbox.swarm.protocol.refusal import Refusal
from agent_mailbox.swarm.protocol.wire import check_endpoint

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors.json").read_text())
KEY = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(VECTORS["private_key_hex"]))
SWARM = VECTORS["envelope"]["swarm_id"]
NOW = instant.parse("2026-02-05T14:30:00.000Z")


def body(**changed: Any) -> bytes:
    """The vector's message, changed, signed as it was."""
    return wire.dump_json({**VECTORS["envelope"], **changed}).encode("utf-8", "surrogatepass")


def known(**settings: bool) -> Memberships:
    """What beta knows: it is in the vector's swarm with alpha, who is its master."""
    at = "2026-02-05T14:00:00.000Z"
    members = [("alpha", VECTORS["public_key"]), ("beta", signing.public_of(Ed25519PrivateKey.generate()))]
    values = [{"agent_id": a, "endpoint": f"https://{a}.example/swarm", "public_key": k} for a, k in members]
    return fold_events(
        [
            {"event": "identity", "agent_id": "beta", "endpoint": "https://beta.example/swarm"},
            {"event": "joining", "swarm_id": SWARM, "alias": "demo", "master": "alpha", "invitation": "", "at": at},
            {
                "event": "entered",
                "swarm_id": SWARM,
                "name": "Demo",
                "master": "alpha",
                "at": at,
                "members": values,
                "settings": settings,
            },
        ]
    )


def master() -> Memberships:
    """What alpha knows, who made the vector's swarm."""
    mine = Member("alpha", "https://alpha.example/swarm", VECTORS["public_key"], "2026-02-05T14:00:00.000Z").object
    created = {"event": "created", "swarm_id": SWARM, "name": "Demo", "alias": "demo", "settings": {}, "member": mine}
    return fold_events(
        [
            {"event": "identity", "agent_id": "alpha", "endpoint": "https://alpha.example/swarm"},
            {**created, "at": "2026-02-05T14:00:00.000Z"},
        ]
    )


def refusal(work: Any, *args: Any) -> str:
    """The code of the refusal that something ends in."""
    with pytest.raises(Refusal) as caught:
        work(*args)
    return caught.value.code


def test_the_vectors_come_out_byte_for_byte() -> None:
    """Signing string, digest, signature, envelope, token and URL are those of the public vectors."""
    message = envelope.parse_envelope(wire.parse_json(body()))
    assert signing.signing_string(message) == VECTORS["signing_string"]
    assert signing.signed_digest(message).hex() == VECTORS["sha256_hex"]
    assert signing.public_of(KEY) == VECTORS["public_key"]
    assert signing.sign_message(message, KEY) == VECTORS["envelope"]["signature"]
    assert envelope.encode_envelope(message) == wire.dump_json(VECTORS["envelope"]).encode()
    claims = tokens.verified_claims(VECTORS["invite_token"], VECTORS["public_key"])
    assert tokens.make_token(claims, KEY) == VECTORS["invite_token"]
    assert tokens.invitation_url(claims, VECTORS["invite_token"]) == VECTORS["invite_url"]
    assert tokens.parse_url(VECTORS["invite_url"]).claims == claims


def test_the_vector_is_accepted_and_every_tampered_signed_field_is_not() -> None:
    """Each of the six signed fields, changed to something else that is well-formed, breaks the signature."""
    assert acceptance.examine_message(body(), known(), NOW).sender.agent_id == "alpha"
    for field, value in {
        "message_id": "550e8400-e29b-41d4-a716-446655440001",
        "timestamp": "2026-02-05T14:30:00.001Z",
        "recipient": "broadcast",
        "type": "notification",
        "content": "hello",
        "signature": base64.b64encode(bytes(64)).decode(),
    }.items():
        assert refusal(acceptance.examine_message, body(**{field: value}), known(), NOW) == "INVALID_SIGNATURE", field
    other = "660e8400-e29b-41d4-a716-446655440009"
    assert refusal(acceptance.examine_message, body(swarm_id=other), known(), NOW) == "SWARM_NOT_FOUND"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"sender": {"agent_id": "mallory", "endpoint": "https://m.example/swarm"}}, "NOT_MEMBER"),
        ({"sender": {"agent_id": "beta", "endpoint": "https://b.example/swarm"}}, "NOT_AUTHORIZED"),
        ({"recipient": "gamma"}, "WRONG_RECIPIENT"),
        ({"protocol_version": "1.0.0"}, "UNSUPPORTED_VERSION"),
        ({"protocol_version": "0.1"}, "INVALID_FORMAT"),
        ({"type": "control"}, "INVALID_FORMAT"),
        ({"content": 5}, "INVALID_FORMAT"),
        ({"content": ""}, "INVALID_FORMAT"),
        ({"content": "\ud800"}, "INVALID_FORMAT"),
        ({"content": "a\0b"}, "INVALID_FORMAT"),
        ({"content": "x" * 70_000}, "INVALID_FORMAT"),
        ({"message_id": "550E8400-E29B-41D4-A716-446655440000"}, "INVALID_FORMAT"),
        ({"message_id": "../../etc/passwd"}, "INVALID_FORMAT"),
        ({"timestamp": "2026-02-05T14:30:00Z"}, "INVALID_FORMAT"),
        ({"timestamp": "2026-02-30T14:30:00.000Z"}, "INVALID_FORMAT"),
        ({"recipient": "../beta"}, "INVALID_FORMAT"),
        ({"sender": {"agent_id": "a/../b", "endpoint": "https://m.example/swarm"}}, "INVALID_FORMAT"),
        ({"sender": {"agent_id": "alpha", "endpoint": "http://m.example/swarm"}}, "INVALID_FORMAT"),
        ({"references": [{"type": "github_issue", "repo": "a/b"}]}, "INVALID_FORMAT"),
        ({"references": [{"type": "github_issue", "repo": "../b", "number": 1}]}, "INVALID_FORMAT"),
        ({"attachments": [{"type": "file", "mime_type": "a/b", "content": "x"}]}, "INVALID_FORMAT"),
        ({"priority": "urgent"}, "INVALID_FORMAT"),
        ({"expires_at": "2026-02-05T14:29:59Z"}, "MESSAGE_EXPIRED"),
        ({"expires_at": "soon"}, "INVALID_FORMAT"),
        ({"in_reply_to": "x"}, "INVALID_FORMAT"),
        ({"metadata": [1]}, "INVALID_FORMAT"),
    ],
    ids=str,
)
def test_what_is_no_message_for_us_is_refused(changed: dict[str, Any], code: str) -> None:
    """Each member that is wrong has its refusal."""
    assert refusal(acceptance.examine_message, body(**changed), known(), NOW) == code


@pytest.mark.parametrize("late", [wire.FRESH + 1, -wire.FRESH - 1])
def test_a_stale_or_future_timestamp_is_refused(late: int) -> None:
    """Fifteen minutes either way, not a millisecond more."""
    assert refusal(acceptance.examine_message, body(), known(), NOW + late) == "STALE_TIMESTAMP"
    acceptance.examine_message(body(), known(), NOW + (wire.FRESH if late > 0 else -wire.FRESH))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"nonsense",
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b'{"a":123456789012345678901234567890}',
        b'{"a":"\xff"}',
        "{}".encode("utf-16"),
        b'{"a":"\\ud800"}',
        b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"a":' + b"[" * 100_000,
    ],
    ids=lambda data: repr(data[:20]),
)
def test_ambiguous_json_is_refused(data: bytes) -> None:
    """No key twice, no NaN, no number beyond 64 bits, no other encoding, no half pair, no depth."""
    assert refusal(wire.parse_json, data) == "INVALID_FORMAT"


def test_every_reference_type_and_action_is_taken_and_later_ones_passed_over() -> None:
    """Every reference that the founding text names arrives. A type that a minor version may add hurts nothing."""
    given: list[dict[str, Any]] = [
        {"type": "github_repo", "repo": "o/r"},
        {"type": "github_commit", "repo": "o/r", "sha": "abc123"},
        {"type": "url", "url": "https://x.example"},
        *({"type": "github_issue", "repo": "o/r", "number": 3, "action": action} for action in envelope.ACTIONS),
        {"type": "github_pr", "repo": "o/r", "number": 4},
    ]
    message = envelope.parse_envelope(
        wire.parse_json(body(references=[*given, {"type": "gitlab_issue", "x": 1}], new_member={"a": 1}))
    )
    assert [one.model_dump(exclude_none=True) for one in message.references or ()] == given


def test_no_id_lets_a_message_verify_as_another() -> None:
    """Recipient, type and content are signed without separators: an id that ends in a type would let ``bob``'s mail be
    shown to ``bobmessage``. Such ids, and the reserved words, are nobody's."""
    for word in ("bobmessage", "bobsystem", "bobnotification", "broadcast", "user", "all", "a/b", ".a", "", "é"):
        assert not wire.is_admissible(word), word
    assert wire.is_admissible("bob")


def test_a_signature_in_another_base64_spelling_is_refused() -> None:
    """Base64 that decodes to the same bytes, but is spelt otherwise, is no signature."""
    signature = VECTORS["envelope"]["signature"]
    spare = signature[:-3] + chr(ord(signature[-3]) + 1) + "=="
    assert base64.b64decode(spare) == base64.b64decode(signature)
    for other in (spare, signature.rstrip("="), signature + "\n", signature.replace("+", "-"), " " + signature):
        assert refusal(acceptance.examine_message, body(signature=other), known(), NOW) == "INVALID_SIGNATURE"


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes) -> None:
    """Whatever comes is a message or a refusal."""
    with pytest.raises(Refusal):
        acceptance.examine_message(data, known(), NOW)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*envelope.Envelope.model_fields, "extra"]), JSON, max_size=4))
def test_no_member_makes_the_reader_fail_otherwise(changed: dict[str, Any]) -> None:
    """The vector with any members changed to anything: refused, or taken where only hints were changed."""
    try:
        data = json.dumps({**VECTORS["envelope"], **changed}).encode()
        assert acceptance.examine_message(data, known(), NOW)
    except Refusal:
        pass


# -- tokens and joining -----------------------------------------------------------------------------------------------


def claims(**changed: Any) -> tokens.TokenClaims:
    """The vector's claims, changed."""
    made = {"swarm_id": SWARM, "master": "alpha", "endpoint": "https://alpha.example/swarm", "iat": NOW // 1000}
    return tokens.TokenClaims(**{**made, **changed})


def asking(agent: str, token: str, key: Ed25519PrivateKey | None = None) -> admission.JoinRequest:
    public = signing.public_of(key or Ed25519PrivateKey.generate())
    sender = {"agent_id": agent, "endpoint": f"https://{agent}.example/swarm", "public_key": public}
    value = {"type": "system", "action": "join_request", "invite_token": token, "sender": sender}
    return admission.parse_join_request(wire.dump_json(value).encode())


def test_a_token_of_one_use_lets_one_in_and_the_same_one_again() -> None:
    """The first is in; the second is not; the first, asking again, is told again and uses nothing up."""
    token, key = tokens.make_token(claims(max_uses=1), KEY), Ed25519PrivateKey.generate()
    now = master()
    first = admission.decide_admission(asking("bob", token, key), now, NOW)
    assert first.accepted
    now = fold_events(first.events, now)
    assert refusal(admission.decide_admission, asking("eve", token), now, NOW) == "TOKEN_EXHAUSTED"
    again = admission.decide_admission(asking("bob", token, key), now, NOW)
    assert (again.accepted, again.events) == (True, ())
    assert refusal(admission.decide_admission, asking("bob", token), now, NOW) == "KEY_MISMATCH"


def test_a_token_spelt_otherwise_is_the_same_token() -> None:
    """The last character of a signature in base64 has spare bits: four spellings, one use."""
    token = tokens.make_token(claims(max_uses=1), KEY)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = token[:-1] + alphabet[alphabet.index(token[-1]) ^ 1]
    assert other != token
    assert tokens.token_fingerprint(other) == tokens.token_fingerprint(token)
    now = fold_events(admission.decide_admission(asking("bob", token), master(), NOW).events, master())
    with pytest.raises(Refusal):
        admission.decide_admission(asking("eve", other), now, NOW)


def hmac_token(payload: dict[str, Any], alg: str) -> str:
    """A token as an attacker makes one: signed with the public key as if it were a secret, or not at all."""
    part = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in ({"alg": alg}, payload)]
    if alg == "none":
        return ".".join([*part, ""])
    import hashlib
    import hmac

    secret = wire.raw_key(VECTORS["public_key"])
    mac = hmac.new(secret, ".".join(part).encode(), hashlib.sha256).digest()
    return ".".join([*part, base64.urlsafe_b64encode(mac).rstrip(b"=").decode()])


def test_nobody_joins_by_a_token_that_is_not_ours() -> None:
    """Algorithm confusion, none, a key in the header, forged, expired, of another swarm, revoked, of another master."""
    payload = claims().model_dump(exclude_none=True)
    mallory = Ed25519PrivateKey.generate()
    embedded = jwt.encode(payload, mallory, algorithm="EdDSA", headers={"jwk": {"kty": "OKP"}, "kid": "../x"})
    expired = tokens.make_token(claims(expires_at="2026-02-05T14:30:00.000Z"), KEY)
    foreign = tokens.make_token(claims(swarm_id="770e8400-e29b-41d4-a716-446655440001"), KEY)
    elsewhere = tokens.make_token(claims(endpoint="https://evil.example/swarm"), KEY)
    for token, code in (
        (hmac_token(payload, "HS256"), "INVALID_TOKEN"),
        (hmac_token(payload, "none"), "INVALID_TOKEN"),
        (hmac_token(payload, "EdDSA"), "INVALID_SIGNATURE"),
        (embedded, "INVALID_SIGNATURE"),
        (tokens.make_token(claims(), mallory), "INVALID_SIGNATURE"),
        (expired, "TOKEN_EXPIRED"),
        (foreign, "SWARM_NOT_FOUND"),
        (elsewhere, "INVALID_TOKEN"),
        (tokens.make_token(claims(issuer="bob"), mallory), "NOT_AUTHORIZED"),
        ("a.b.c", "INVALID_TOKEN"),
        ("x" * 4000, "INVALID_TOKEN"),
    ):
        assert refusal(admission.decide_admission, asking("bob", token), master(), NOW) == code, token
    token = tokens.make_token(claims(), KEY)
    revoked = fold_events([{"event": "revoked", "swarm_id": SWARM, "token": tokens.token_fingerprint(token)}], master())
    assert refusal(admission.decide_admission, asking("bob", token), revoked, NOW) == "TOKEN_REVOKED"
    assert refusal(admission.decide_admission, asking("bobmessage", token), master(), NOW) == "INVALID_FORMAT"


def test_who_was_kicked_needs_a_new_invitation() -> None:
    """A token that let it in before does not do so again, however many uses it has left."""
    token, key = tokens.make_token(claims(), KEY), Ed25519PrivateKey.generate()
    now = fold_events(admission.decide_admission(asking("bob", token, key), master(), NOW).events, master())
    kicked = {"event": "kicked", "swarm_id": SWARM, "agent_id": "bob", "at": "2026-02-05T15:00:00.000Z"}
    now = fold_events([kicked], now)
    assert refusal(admission.decide_admission, asking("bob", token, key), now, NOW) == "JOIN_DENIED"
    assert admission.decide_admission(asking("bob", tokens.make_token(claims(max_uses=3), KEY), key), now, NOW).accepted


def test_the_answer_to_a_join_is_believed_only_with_the_key_that_signed_the_invitation() -> None:
    """A reply whose master has another key, or none, or that gives us another key, is no membership."""
    token = VECTORS["invite_token"]
    made = tokens.unverified_claims(token)
    me = Member("beta", "https://beta.example/swarm", signing.public_of(Ed25519PrivateKey.generate()), "")
    alpha = {"agent_id": "alpha", "endpoint": "https://alpha.example/swarm", "public_key": VECTORS["public_key"]}
    reply = {"status": "accepted", "swarm_id": SWARM, "swarm_name": "demo", "members": [alpha]}
    event = admission.entered_event(reply, made, me, token, NOW)
    assert {m["agent_id"] for m in event["members"]} == {"alpha", "beta"}
    other = {**alpha, "public_key": me.public_key}
    for members in ([other], [], [alpha, {**alpha, "agent_id": "beta"}]):
        with pytest.raises(Refusal):
            admission.entered_event({**reply, "members": members}, made, me, token, NOW)


# -- limits, outbox ---------------------------------------------------------------------------------------------------


def test_the_sixty_first_in_a_minute_waits() -> None:
    """Sixty pass; the next is told how long; when the first is a minute old there is room for one."""
    window = limits.LimitWindow(60, limits.MINUTE)
    assert [window.take_one("bob", 1000 + i) for i in range(60)] == [0] * 60
    assert window.take_one("bob", 2000) == 59
    assert window.take_one("eve", 2000) == 0
    assert window.take_one("bob", 61_000) == 0
    assert window.take_one("bob", 61_000) == 1


def test_what_a_limit_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit keeps only so many addresses that come once. It forgets an address that came often once its window ends.
    A day of strangers thus costs what a minute of them does."""
    monkeypatch.setattr(limits, "MAX_KEYS", 1_000)
    once, often = limits.LimitWindow(600, limits.MINUTE), limits.LimitWindow(200, 10_000)
    tracemalloc.start()
    try:
        for number in range(1_000):
            once.take_one(str(number), 0)
        full = tracemalloc.get_traced_memory()[0]
        for number in range(1_000, 10_000):
            once.take_one(str(number), 1)
        assert tracemalloc.get_traced_memory()[0] < 1.2 * full
        before = tracemalloc.get_traced_memory()[0]
        for number in range(100):
            for turn in range(200):
                assert often.take_one(str(number), number * 1_000 + turn) == 0
        assert tracemalloc.get_traced_memory()[0] - before < 300_000  # ten of them; of all hundred it is 800 kB
    finally:
        tracemalloc.stop()
    assert often.take_one("99", 99_600) > 0
    assert often.take_one("91", 99_600) > 0


def test_a_forwarding_header_is_believed_of_a_proxy_we_know_alone() -> None:
    """A limit believes a forwarding header only from a proxy that we know. A client's own words stand left of what the
    proxy adds, and do not count."""
    proxy = frozenset({"10.0.0.1"})
    assert limits.origin_address("203.0.113.9", "198.51.100.1", frozenset()) == "203.0.113.9"
    assert limits.origin_address("203.0.113.9", "198.51.100.1", proxy) == "203.0.113.9"
    assert limits.origin_address("10.0.0.1", "1.1.1.1, 198.51.100.1", proxy) == "198.51.100.1"
    assert limits.origin_address("10.0.0.1", "1.1.1.1, nonsense", proxy) == "10.0.0.1"
    assert limits.origin_address("10.0.0.1", None, proxy) == "10.0.0.1"
    assert limits.origin_address("2001:db8::1", None, proxy) == limits.origin_address("2001:db8::ffff", None, proxy)
    assert limits.origin_address("::ffff:10.0.0.1", "198.51.100.7", proxy) == "198.51.100.7"


def test_a_peer_s_answer_decides_whether_to_try_again() -> None:
    """Taken; to be tried again; in vain. What may only mean "I have not heard of you" is tried for an hour."""
    hour = instant.HOUR
    for status, code, age, meant in (
        (200, "", 0, DELIVERED),
        (202, "", 0, DELIVERED),
        (0, "", 0, SENT),
        (429, "RATE_LIMITED", 0, SENT),
        (503, "UNAVAILABLE", 0, SENT),
        (0, "", 8 * 24 * hour, FAILED),
        (403, "NOT_MEMBER", 0, SENT),
        (403, "NOT_MEMBER", hour, FAILED),
        (404, "SWARM_NOT_FOUND", 0, SENT),
        (401, "INVALID_SIGNATURE", 0, FAILED),
        (400, "INVALID_FORMAT", 0, FAILED),
        (413, "PAYLOAD_TOO_LARGE", 0, FAILED),
    ):
        assert verdict_on(PeerAnswer(status, code), 0, age) == meant, (status, code, age)
    assert verdict_on(PeerAnswer(0, final=True), 0, 0) == FAILED


def on_their_way(fold: Outgoing) -> dict[str, tuple[str, dict[str, str]]]:
    """The open parcels: their text, and their state per peer."""
    return {
        one.id: (one.event["content"], {peer: state for peer, (state, *_) in one.peers.items()})
        for one in fold.open.values()
    }


def test_the_outbox_forgets_what_is_over_and_nothing_else() -> None:
    """Compacted, the same parcels are open, the same ids known, and no text of the delivered is kept."""
    peers = [
        {"agent_id": "b", "endpoint": "https://b.example/swarm"},
        {"agent_id": "c", "endpoint": "https://c.example"},
    ]
    at = instant.text(NOW)
    events: list[dict[str, Any]] = [
        {"event": "queued", "id": "1", "peers": peers, "content": "done", "from": "ann", "at": at},
        {"event": "queued", "id": "2", "peers": peers, "content": "open", "from": "ann", "at": at},
        {"event": "delivered", "id": "1", "peer": "b", "at": at},
        {"event": "delivered", "id": "1", "peer": "c", "at": at},
        {"event": "sent", "id": "2", "peer": "b", "at": at},
        {"event": "delivered", "id": "2", "peer": "c", "at": at},
    ]
    before, after = Outgoing(events), Outgoing(compact_events(events, NOW))
    assert on_their_way(before) == on_their_way(after) == {"2": ("open", {"b": "sent", "c": "delivered"})}
    assert before.senders == after.senders == {"1": "ann", "2": "ann"}
    assert [e for e in compact_events(events, NOW) if e.get("content") == "done"] == []
    later = compact_events(events, NOW + 30 * instant.DAY)
    assert on_their_way(Outgoing(later)) == on_their_way(before)
    assert "1" not in Outgoing(later).senders


def test_a_listing_has_the_latest_of_each_swarm_and_counts_them_all() -> None:
    """It holds no text of what is over, however much there was; the newest comes last, whatever its swarm."""
    at, peers = instant.text(NOW), [{"agent_id": "b", "endpoint": "https://b.example/swarm"}]
    about = {"event": "queued", "recipient": "b", "type": "message", "from": "ann", "at": at, "peers": peers}
    busy: list[dict[str, Any]] = [{**about, "id": f"{n}", "swarm_id": "busy", "content": "x" * 9000} for n in range(50)]
    quiet = [{**about, "id": "rare", "swarm_id": "quiet", "content": "open"}]
    ended = [{"event": "failed" if n % 2 else "delivered", "id": f"{n}", "peer": "b", "at": at} for n in range(50)]
    fold = Outgoing([*busy[:25], *quiet, *busy[25:], *ended], latest=30)
    assert [row["id"] for row in fold.latest_rows(2)] == ["48", "49"]
    assert [row["peers"]["b"]["status"] for row in fold.latest_rows(2)] == ["delivered", "failed"]
    assert [row["id"] for row in fold.latest_rows(31)].index("rare") == 5
    assert (len(fold.latest_rows(100)), fold.latest_rows(9, "quiet")[0]["id"], fold.counted) == (
        31,
        "rare",
        {"busy": 50, "quiet": 1},
    )
    assert [one.id for one in fold.open.values()] == ["rare"]
    assert not any("x" * 9000 in str(parcel.event) for _, parcel in fold._latest["busy"])


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("bücher.example", "xn--bcher-kva.example"),
        ("bücher..example", "xn--"),
        ("a..example", "empty"),
        (".example", "empty"),
        ("example..", "empty"),
        ("a" * 64 + ".example", "63"),
    ],
)
def test_a_host_that_is_no_name_is_refused_with_why(host: str, said: str) -> None:
    """One in other letters is told its ASCII form."""
    with pytest.raises(ValueError, match=said):
        check_endpoint(f"https://{host}:8443/swarm")


@pytest.mark.parametrize("host", ["xn--bcher-kva.example", "localhost", "a.example.", "127.0.0.1:8443", "[::1]:8443"])
def test_a_host_that_is_a_name_or_an_address_is_taken(host: str) -> None:
    """An endpoint whose host is a name or an address is taken as it is."""
    assert check_endpoint(f"https://{host}/swarm") == f"https://{host}/swarm"
