"""With peers that behave as the public reference does: what it leaves out, spells otherwise, sends without headers."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent_mailbox.swarm.protocol import tokens
from tests.helpers import until
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, free_port
from tests.swarm.wirework import Line, Person, now

SWARM = "660e8400-e29b-41d4-a716-446655440001"


class Reference:
    """A master that answers as the reference's server does, over TLS, and keeps what it is sent."""

    def __init__(self, authority: Authority) -> None:
        port = free_port()
        self.person = Person("ref", f"https://localhost:{port}/swarm")
        self.members: list[dict[str, str]] = [self.entry(self.person)]
        self.messages: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.limited = 0
        scene = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                value = json.loads(self.rfile.read(int(self.headers["content-length"])))
                scene.requests.append(self.path)
                self.reply(*scene.join(value) if self.path == "/swarm/join" else scene.message(value))

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
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def entry(person: Person) -> dict[str, str]:
        """A member."""
        return {"agent_id": person.agent_id, "endpoint": person.endpoint, "public_key": person.public_key}

    def join(self, value: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Accepted, with ``swarm_name`` and no settings."""
        if value["sender"] not in self.members:
            self.members.append(value["sender"])
        return 200, {"status": "accepted", "swarm_id": SWARM, "swarm_name": "demo", "members": self.members}

    def message(self, value: dict[str, Any]) -> tuple[Any, ...]:
        """Queued; or limited, with an instant where seconds belong."""
        if self.limited:
            self.limited -= 1
            error = {"code": "RATE_LIMITED", "message": "x", "details": {"retry_after": now() // 1000 + 60}}
            return 429, {"error": error}, {"Retry-After": str(now() // 1000 + 60)}
        self.messages.append(value)
        return 200, {"status": "queued", "message_id": value["message_id"]}

    def invitation(self) -> str:
        """A URL, as ``swarm invite`` of the reference prints it."""
        claims = tokens.Claims(swarm_id=SWARM, master="ref", endpoint=self.person.endpoint, iat=now() // 1000)
        return tokens.url(claims, tokens.make(claims, self.person.key))


@pytest.fixture
def reference(authority: Authority) -> Iterator[Reference]:
    """One, serving."""
    made = Reference(authority)
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_reference_master_is_joined_written_to_and_heard(machine: Make, reference: Reference) -> None:
    """We join by its invitation; it gets mail in its exact form, even where it first says it is too busy; its mail,
    which bears no header of the protocol, is taken."""
    b = machine("beta").serve()
    b.register("ann")
    assert b.ok("swarm", "join", reference.invitation(), "--session", "ann")["status"] == "accepted"
    reference.limited = 1
    sent = b.send("ann", "swarm:demo/ref", "hello ref")
    until(lambda: reference.messages)
    (got,) = reference.messages
    assert list(got) == [
        *("protocol_version", "message_id", "timestamp", "sender", "recipient", "swarm_id", "type", "content"),
        *("signature", "seal"),  # the last is ours; the reference passes over what it does not know
    ]
    assert (got["message_id"], got["recipient"], got["content"]) == (sent, "ref", "hello ref")
    assert got["sender"] == {"agent_id": "beta", "endpoint": b.endpoint}
    line = Line(b)
    for recipient, text in (("beta", "just you"), ("broadcast", "all of you")):
        assert line.post("message", reference.person.envelope(SWARM, recipient, text)).status_code == 200
    assert b.received() == ["just you", "all of you"]


def test_a_member_the_master_names_without_a_key(machine: Make, reference: Reference) -> None:
    """The reference's ``member_joined`` has no key and microseconds. The key comes from the endpoint the master signed,
    and until then the member's mail is refused; a key that is known is never exchanged so."""
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
    gamma.key = c.ledger.home.key()
    assert line.post("message", gamma.envelope(SWARM, "beta", "too early")).status_code == 401
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
    b.configure(ca_file=str(b.authority.ca), retry_seconds=1)
    b.serve()
    keyless = {**told, "agent_id": "delta", "joined_at": "2026-02-05T14:30:00.000Z"}
    assert Line(b).post("message", reference.person.system(SWARM, "broadcast", **keyless)).status_code == 200
    mail = b.send("ann", "swarm:demo/ref", "hello")
    until(lambda: b.outbox().get(mail) == {"ref": "failed"})
    assert reference.requests == []
    assert "no public address" in b.unread_text("ann")
