"""Every endpoint under arbitrary input: an answer in the one shape, never a 500, never a trace of what was refused."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mailbox.swarm.protocol import lifecycle
from tests.helpers import PATIENCE
from tests.swarm.machine import Authority, Machine
from tests.swarm.wirework import Line, Person

EXAMPLES = settings(max_examples=settings().max_examples)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
HEADERS = st.dictionaries(
    st.sampled_from(["x-agent-id", "x-swarm-protocol", "x-forwarded-for", "content-type", "accept", "x-real-ip"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20),
    max_size=3,
)


class Target:
    """A gateway in a swarm whose master is somebody who says whatever the test wants."""

    def __init__(self, beta: Machine) -> None:
        self.beta = beta
        self.master = Person("master", "https://127.0.0.1:9/swarm", bytes(32))
        beta.register("ann")
        self.swarm = str(uuid.UUID(int=7, version=4))
        self.take_state()
        self.line = Line(beta)
        # The server lets an idle connection go after five seconds: it is not taken up at that very moment.
        kept = httpx.Limits(keepalive_expiry=2)
        transport = httpx.HTTPTransport(uds=str(beta.swarm_home / "local.sock"), limits=kept)
        self.local = httpx.Client(transport=transport, base_url="http://local", timeout=PATIENCE)

    def take_state(self) -> None:
        """Put the gateway (back) into the swarm."""
        known = self.beta.ledger.read_knowledge()
        me = {"agent_id": "beta", "endpoint": known.endpoint, "public_key": self.beta.public_key}
        other = {"agent_id": "master", "endpoint": self.master.endpoint, "public_key": self.master.public_key}
        at = "2026-01-01T00:00:00.000Z"
        swarm = {"swarm_id": self.swarm, "name": "demo", "master": "master", "joined_at": at, "settings": {}}
        members = [{**one, "joined_at": at} for one in (me, other)]
        state = {"schema_version": "1.0.0", "agent_id": "beta", "swarms": {self.swarm: {**swarm, "members": members}}}
        path = self.beta.scratch / "state.json"
        path.write_text(json.dumps(state))
        self.beta.ok("swarm", "state", "import", str(path), "--replace")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Target]:
    beta = Machine(tmp_path_factory.mktemp("fuzz"), "beta", authority).serve()
    try:
        yield Target(beta)
    finally:
        beta.kill()


def is_answer(answer: httpx.Response) -> bool:
    """In JSON; if it refuses, in the one shape; no 500."""
    value = answer.json()
    assert answer.status_code < 500, answer.text
    assert answer.status_code < 400 or set(value["error"]) == {"code", "message", "details"}
    return answer.status_code < 300


@EXAMPLES
@given(
    st.sampled_from(["message", "join", "health", "info", "x"]),
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "OPTIONS"]),
    st.binary(max_size=200),
    HEADERS,
)
def test_any_request_is_answered_without_a_failure(
    target: Target, path: str, method: str, body: bytes, headers: dict[str, str]
) -> None:
    """Any method, body and headers."""
    headers = {"content-type": "application/json", **headers}
    answer = target.line.client.request(method, f"/swarm/{path}", content=body, headers=headers)
    assert not is_answer(answer) or path in ("health", "info")


FIELDS = [
    "in_reply_to",
    "thread_id",
    "priority",
    "expires_at",
    "references",
    "attachments",
    "metadata",
    "sender",
    "seal",
]


@EXAMPLES
@given(TEXT.filter(str.strip), st.dictionaries(st.sampled_from([*FIELDS, "extra"]), JSON, max_size=3))
def test_any_signed_message_of_a_member_is_kept_or_refused(target: Target, content: str, more: dict[str, Any]) -> None:
    """Well signed, with anything in its other members: kept or refused."""
    message = target.master.envelope(target.swarm, "beta", content) | more
    is_answer(target.line.post("message", message))


KEYS = ["swarm_id", "agent_id", "endpoint", "joined_at", "at", "member", "reason", "new_master", "public_key"]
PLAUSIBLE = st.sampled_from(
    ["beta", "master", "gamma", "https://127.0.0.1:9/swarm", "2026-02-05T14:30:00.000Z", "../x"]
)
ACTIONS = [
    getattr(lifecycle, name) for name in ("JOINED", "LEFT", "TARGET_KICKED", "MEMBER_KICKED", "TRANSFER", "MUTED")
]


@EXAMPLES
@given(st.sampled_from(ACTIONS), st.dictionaries(st.sampled_from(KEYS), PLAUSIBLE | JSON, max_size=6))
def test_any_lifecycle_message_of_the_master(target: Target, action: str, more: dict[str, Any]) -> None:
    """Well signed by who has the say, with anything in it: it leads to a state that the state file's schema takes, or
    to a refusal. The gateway still knows itself."""
    message = target.master.system(target.swarm, "beta", **{**more, "action": action})
    is_answer(target.line.post("message", message))
    swarm = target.beta.ledger.read_knowledge().swarms[target.swarm]
    assert swarm.state != "active" or "beta" in swarm.members
    if swarm.state != "active" or swarm.master != "master":
        target.take_state()


JOINING = [
    *("type", "action", "invite_token", "sender"),
    *("protocol_version", "message_id", "timestamp", "seal"),
]
TOKENS = st.binary(max_size=60).map(lambda data: data.hex()) | TEXT


@EXAMPLES
@given(st.dictionaries(st.sampled_from(JOINING), JSON, max_size=4), TOKENS)
def test_any_malformed_request_to_join_is_refused(target: Target, more: dict[str, Any], token: str) -> None:
    """Whatever is asked by whatever token: refused."""
    value = Person("dave", seed=bytes(32)).joining(f"{token}.{token}.{token}") | more
    assert not is_answer(target.line.post("join", value))


@EXAMPLES
@given(
    st.sampled_from(["inbox", "inbox/count", "inbox/batch", "inbox/x", "inbox/x/read", "outbox", "wake", "x"]),
    st.sampled_from(["GET", "POST"]),
    st.dictionaries(st.sampled_from(["status", "limit", "swarm_id", "sender_id", "x"]), TEXT, max_size=3),
    st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()),
)
def test_any_local_request_is_answered_without_a_failure(
    target: Target, path: str, method: str, params: dict[str, str], body: bytes
) -> None:
    """The local API, too."""
    headers = {"content-type": "application/json"}
    is_answer(target.local.request(method, f"/api/{path}", params=params, content=body, headers=headers))
