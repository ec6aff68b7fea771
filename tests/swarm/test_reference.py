"""With peers that behave as the public reference does: what it leaves out, spells otherwise, sends without headers,
refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from agent_mailbox.swarm import joining
from agent_mailbox.swarm.peer_client import Peers
from agent_mailbox.swarm.protocol import tokens
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import until
from tests.ports import free_port
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, Machine
from tests.swarm.wirework import Line, Person, now, refused, run

SWARM = "660e8400-e29b-41d4-a716-446655440001"
SIGNED = ("message_id", "timestamp", "swarm_id", "recipient", "type", "content")


class Reference:
    """A master, or a member, that answers as the reference's server does, over TLS, and keeps what it takes. It is as
    strict as the reference came to be in 2026 (headers, membership, endpoint, recipient, signature)."""

    def __init__(self, authority: Authority, slash: str = "") -> None:
        port = free_port()
        self.person = Person("ref", f"https://localhost:{port}/swarm{slash}")
        self.swarm = SWARM
        self.members: dict[str, dict[str, str]] = {"ref": self.entry(self.person)}
        self.messages: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.refusals: list[str] = []
        self.limited = 0
        self.approval = False
        scene = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                value = json.loads(self.rfile.read(int(self.headers["content-length"])))
                scene.requests.append(self.path)
                if self.path == "/swarm/join":
                    self.reply(*scene.join(value))
                elif self.path == "/swarm/message":
                    self.reply(*scene.message(value, self.headers))
                else:
                    self.reply(404, {"detail": "Not Found"})

            def do_GET(self) -> None:
                scene.requests.append(self.path)
                self.reply(200, scene.entry(scene.person))

            def reply(self, status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                for name, text in {"content-length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.cert, authority.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """No longer serving."""
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def entry(person: Person) -> dict[str, str]:
        return {"agent_id": person.agent_id, "endpoint": person.endpoint, "public_key": person.public_key}

    def join(self, value: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Accepted, with ``swarm_name`` and no settings; who is in already is as it was. Or left to wait, for ever."""
        if self.approval:
            return 202, {"status": "pending", "swarm_id": self.swarm, "message": "requires master approval"}
        self.members.setdefault(value["sender"]["agent_id"], value["sender"])
        members = list(self.members.values())
        return 200, {"status": "accepted", "swarm_id": self.swarm, "swarm_name": "demo", "members": members}

    def message(self, value: dict[str, Any], headers: Message) -> tuple[Any, ...]:
        """Queued; or limited, with an instant where seconds belong; or refused."""
        if self.limited:
            self.limited -= 1
            error = {"code": "RATE_LIMITED", "message": "x", "details": {"retry_after": now() // 1000 + 60}}
            return 429, {"error": error}, {"Retry-After": str(now() // 1000 + 60)}
        status, code = self.examined(value, headers)
        if code:
            self.refusals.append(code)
            return status, {
                "error": {"code": code, "message": "Inbound message authentication failed", "details": None}
            }
        if value["message_id"] not in [one["message_id"] for one in self.messages]:
            self.messages.append(value)
            if value["type"] == "system":
                self.dispatch(json.loads(value["content"]))
        return 200, {"status": "queued", "message_id": value["message_id"]}

    def examined(self, value: dict[str, Any], headers: Message) -> tuple[int, str]:
        """(200, nothing), or the status and code of the refusal."""
        if value["swarm_id"] != self.swarm:
            return 404, "SWARM_NOT_FOUND"
        sender = self.members.get(value["sender"]["agent_id"])
        said = (headers["x-agent-id"], headers["x-swarm-protocol"])
        if said != (value["sender"]["agent_id"], "0.1.0") or value["recipient"] not in ("ref", "broadcast"):
            return 403, "NOT_AUTHORIZED"
        if sender is None or sender["endpoint"].rstrip("/") != value["sender"]["endpoint"].rstrip("/"):
            return 403, "NOT_AUTHORIZED"
        digest = hashlib.sha256("".join(value[name] for name in SIGNED).encode()).digest()
        try:
            key = Ed25519PublicKey.from_public_bytes(base64.b64decode(sender["public_key"]))
            key.verify(base64.b64decode(value["signature"]), digest)
        except InvalidSignature:
            return 401, "INVALID_SIGNATURE"
        return 200, ""

    def dispatch(self, content: dict[str, Any]) -> None:
        """Who is in: a newcomer by what is beside the action, whoever says so."""
        if content["action"] == "member_joined":
            entry = {name: content[name] for name in ("agent_id", "endpoint", "public_key")}
            self.members.setdefault(content["agent_id"], entry)
        elif content["action"] in ("member_left", "member_kicked"):
            self.members.pop(content["agent_id"], None)

    def kick(self, target: Machine, reason: str, *others: Machine) -> None:
        """As its command does it: to the target, then to the others; the reason goes between quotes as it is."""
        for machine in (target, *others):
            action, recipient = ("kicked", target.agent) if machine is target else ("member_kicked", "broadcast")
            content = spliced(action, target.agent, reason)
            envelope = self.person.envelope(self.swarm, recipient, content, type="system")
            assert Line(machine).post("message", envelope).status_code == 200
        del self.members[target.agent]

    def invitation(self) -> str:
        """A URL, as ``swarm invite`` of the reference prints it."""
        claims = tokens.TokenClaims(swarm_id=SWARM, master="ref", endpoint=self.person.endpoint, iat=now() // 1000)
        return tokens.invitation_url(claims, tokens.make_token(claims, self.person.key))


def spliced(action: str, agent: str, reason: str) -> str:
    """A kick's content in the reference's spelling."""
    return f'{{"action":"{action}","agent_id":"{agent}","reason":"{reason}"}}'


@pytest.fixture
def references(authority: Authority) -> Iterator[Callable[..., Reference]]:
    """Make one that serves."""
    made: list[Reference] = []

    def make(**how: str) -> Reference:
        made.append(Reference(authority, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def reference(references: Callable[..., Reference]) -> Reference:
    return references()


def test_a_reference_master_is_joined_written_to_and_heard(machine: Make, references: Callable[..., Reference]) -> None:
    """We join by its invitation, though its endpoint ends in a slash; it gets mail in its exact form, even where it
    first says that it is too busy, or has not heard of us; its mail, which has no header, is taken."""
    reference = references(slash="/")
    b = machine("beta").serve()
    b.register("ann")
    assert b.ok("swarm", "join", reference.invitation(), "--session", "ann")["status"] == "accepted"
    assert b.ok("swarm", "join", reference.invitation(), "--session", "ann")["status"] == "accepted"
    reference.limited = 1
    entry = reference.members.pop("beta")
    sent = b.send("ann", "swarm:demo/ref", "hello ref")
    until(lambda: reference.refusals)
    reference.members["beta"] = entry
    until(lambda: reference.messages)
    (got,) = reference.messages
    assert list(got) == [
        *("protocol_version", "message_id", "timestamp", "sender", "recipient", "swarm_id", "type", "content"),
        *("signature", "seal"),  # the last is ours; the reference passes over what it does not know
    ]
    assert (got["message_id"], got["recipient"], got["content"]) == (sent, "ref", "hello ref")
    assert got["sender"] == {"agent_id": "beta", "endpoint": b.endpoint}
    assert set(reference.refusals) == {"NOT_AUTHORIZED"}
    line = Line(b)
    for recipient, text in (("beta", "just you"), ("broadcast", "all of you")):
        assert line.post("message", reference.person.envelope(SWARM, recipient, text)).status_code == 200
    assert b.received() == ["just you", "all of you"]


async def answered_late(machine: Machine, url: str) -> str:
    """What the gateway is told that asked once more before it was given up."""
    peers = Peers(GatewaySettings(private_addresses=True, ca_file=str(machine.authority.ca)))
    try:
        return (await joining.ask_to_join(machine.ledger, peers, machine.ledger.home.read_key(), url, again=True))[0]
    finally:
        await peers.aclose()


def test_a_joining_that_is_never_approved_is_given_up(machine: Make, reference: Reference) -> None:
    """The reference has no procedure to approve: who waits can stop asking, and ask again later."""
    b = machine("beta").serve()
    b.register("ann")
    reference.approval = True
    asked = b.ok("swarm", "join", reference.invitation(), "--session", "ann", "--as", "demo")
    assert asked["status"] == "pending"
    until(lambda: reference.requests.count("/swarm/join") > 1)
    assert b.ok("swarm", "leave", "demo")["swarm"] == "demo"
    assert b.knows().state == "left"
    late = run(answered_late(b, reference.invitation()))
    reference.approval = False
    assert (late, run(answered_late(b, reference.invitation()))) == ("pending", "accepted")
    assert b.knows().state == "left"
    assert b.ok("swarm", "join", reference.invitation(), "--session", "ann")["status"] == "accepted"
    assert b.knows().state == "active"


def test_a_reference_in_our_swarm_learns_who_joined(machine: Make, reference: Reference) -> None:
    """A peer like the public reference learns from our word alone who joined, with the key. It takes mail of the
    newcomer at once."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    a.register("ann")
    b.register("bob")
    a.ok("swarm", "create", "demo", "--session", "ann")
    reference.swarm = a.knows().swarm_id
    token = tokens.parse_url(a.ok("swarm", "invite", "demo")["url"]).token
    answer = Line(a).post("join", reference.person.joining(token)).json()
    reference.members = {one["agent_id"]: one for one in answer["members"]}
    b.ok("swarm", "join", a.ok("swarm", "invite", "demo")["url"], "--session", "bob")
    until(lambda: set(reference.members) == {"alpha", "beta", "ref"})
    assert reference.members["beta"]["public_key"] == b.public_key
    mail = b.send("bob", "swarm:demo/ref", "hello from beta")
    until(lambda: b.outbox()[mail] == {"ref": "delivered"})
    assert reference.requests.count("/swarm/info") == 0
    a.ok("swarm", "kick", "demo", "beta", "--reason", 'it said "no"')
    until(lambda: set(reference.members) == {"alpha", "ref"})


def test_a_reference_s_kick_counts_though_its_reason_is_no_json(machine: Make, reference: Reference) -> None:
    """The reference puts a reason between quotes as it is: the kick counts all the same, if it is the master's."""
    b, c = machine("beta").serve(), machine("gamma").serve()
    for one in (b, c):
        one.register("ann")
        one.ok("swarm", "join", reference.invitation(), "--session", "ann")
    b.ok("swarm", "join", reference.invitation(), "--session", "ann")
    news = {"action": "member_joined", **reference.members["gamma"], "joined_at": "2026-02-05T14:30:00.000Z"}
    assert Line(b).post("message", reference.person.system(SWARM, "broadcast", **news)).status_code == 200
    until(lambda: b.members() == {"ref", "beta", "gamma"})
    gamma = Person("gamma", c.endpoint)
    gamma.key = c.ledger.home.read_key()
    usurped = gamma.envelope(SWARM, "broadcast", spliced("member_kicked", "beta", 'a "word"'), type="system")
    refused(Line(b).post("message", usurped), 403, "NOT_MASTER")
    reference.kick(c, 'it said "no",\nand \\ more', b)
    until(lambda: c.knows().state == "kicked" and b.members() == {"ref", "beta"})


def test_the_reference_s_exported_state_is_imported(machine: Make) -> None:
    """Its 2.0.0 is taken: keys may lack an endpoint, mail is beside; not if it has this agent with another key."""
    b, c = machine("beta"), Person("gamma")
    at = "2026-11-21T13:57:30.626310+00:00"
    me = {"agent_id": "beta", "endpoint": b.endpoint, "public_key": b.public_key, "joined_at": at}
    members = [me, {**Reference.entry(c), "joined_at": at}]
    settings = {"allow_member_invite": False, "require_approval": False}
    swarm = {"swarm_id": SWARM, "name": "demo", "master": "gamma", "members": members, "joined_at": at}
    state = {
        "schema_version": "2.0.0",
        "agent_id": "beta",
        "exported_at": at,
        "swarms": {SWARM: {**swarm, "settings": settings}},
        "muted_swarms": [],
        "muted_agents": ["delta"],
        "public_keys": {"gamma": {"public_key": c.public_key, "fetched_at": at}},
        "inbox": [{"message_id": SWARM, "content": "a: 1", "received_at": at, "status": "unread"}],
        "outbox": [],
    }
    file = b.scratch / "state.json"
    file.write_text(json.dumps(state))
    assert b.ok("swarm", "state", "import", str(file)) == {"swarms": 1, "how": "merge"}
    assert b.knows().members["gamma"].joined_at == "2026-11-21T13:57:30.626Z"
    assert b.ledger.read_knowledge().muted_agents == ("delta",)
    me["public_key"] = c.public_key
    file.write_text(json.dumps(state))
    for how in ("--merge", "--replace"):
        answer = b.call("swarm", "state", "import", str(file), how, "--json")
        assert (answer.rc, answer.json["error"]["code"]) == (1, "key_mismatch")


def test_a_member_the_master_names_without_a_key(machine: Make, reference: Reference) -> None:
    """The reference's ``member_joined`` has no key and microseconds. The key comes from the endpoint the master signed,
    and until then the member is told to come again; a key that is known is never exchanged so."""
    b, c = machine("beta").serve(), machine("gamma")
    b.register("ann")
    b.ok("swarm", "join", reference.invitation(), "--session", "ann")
    content = {
        "action": "member_joined",
        "swarm_id": SWARM,
        "agent_id": "gamma",
        "endpoint": c.endpoint,
        "joined_at": "2026-02-05T14:30:00.123456+00:00",
    }
    line = Line(b)
    assert line.post("message", reference.person.system(SWARM, "broadcast", **content)).status_code == 200
    gamma = Person("gamma", c.endpoint)
    gamma.key = c.ledger.home.read_key()
    early = line.post("message", gamma.envelope(SWARM, "beta", "too early"))
    refused(early, 503, "UNAVAILABLE")
    assert early.headers["retry-after"] == "5"
    assert not b.knows().members["gamma"].public_key
    c.serve()
    until(lambda: b.knows().members["gamma"].public_key == gamma.public_key)
    assert line.post("message", gamma.envelope(SWARM, "beta", "hello")).status_code == 200
    again = {**content, "at": "2030-01-01T00:00:00.000Z", "endpoint": reference.person.endpoint}
    assert line.post("message", reference.person.system(SWARM, "broadcast", **again)).status_code == 200
    assert b.knows().members["gamma"].public_key == gamma.public_key
    assert b.knows().members["gamma"].endpoint == c.endpoint


def test_a_stranger_makes_nobody_connect_anywhere(machine: Make, reference: Reference) -> None:
    """Mail and lifecycle news of somebody unknown, or of a member without the say, naming an endpoint that listens:
    nobody calls there. Nor does a master's word move us to a private address where the switch for tests is off."""
    b = machine("beta").serve()
    b.register("ann")
    b.ok("swarm", "join", reference.invitation(), "--session", "ann")
    reference.requests.clear()
    stranger = Person("mallory", reference.person.endpoint)
    line = Line(b)
    assert line.post("message", stranger.envelope(SWARM, "beta")).status_code == 403
    told = {"action": "member_joined", "agent_id": "mallory", "endpoint": reference.person.endpoint}
    assert line.post("message", stranger.system(SWARM, "broadcast", **told)).status_code == 403
    b.kill()
    b.set(ca_file=str(b.authority.ca), retry_seconds=1)
    b.serve()
    keyless = {**told, "agent_id": "delta", "joined_at": "2026-02-05T14:30:00.000Z"}
    assert Line(b).post("message", reference.person.system(SWARM, "broadcast", **keyless)).status_code == 200
    mail = b.send("ann", "swarm:demo/ref", "hello")
    until(lambda: "no public address" in str(b.ok("swarm", "outbox")["messages"]))
    assert b.outbox()[mail] == {"ref": "sent"}  # a name may be at a public address later
    assert reference.requests == []
