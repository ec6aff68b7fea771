"""What a test says over the wire: real requests to a gateway over TLS, signed or not as the test wants.

Also the state machine without any of that: a ledger, a mailbox and ``Gateway`` in this process.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_mailbox.core import instant
from agent_mailbox.swarm.protocol import signing, wire
from agent_mailbox.swarm.protocol.envelope import Envelope
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.swarm.machine import Machine


def now() -> int:
    """Milliseconds."""
    return time.time_ns() // 1_000_000


class Person:
    """Somebody with a key who speaks the protocol by hand."""

    def __init__(
        self, agent_id: str, endpoint: str = "https://elsewhere.example/swarm", seed: bytes | None = None
    ) -> None:
        self.agent_id = agent_id
        self.endpoint = endpoint
        self.key = Ed25519PrivateKey.from_private_bytes(seed) if seed else Ed25519PrivateKey.generate()

    @property
    def public_key(self) -> str:
        """In base64."""
        return signing.public_of(self.key)

    def envelope(self, swarm_id: str, recipient: str, content: str = "hello", **more: Any) -> dict[str, Any]:
        """A message, signed as it is; ``more`` is set before signing."""
        value = {
            "protocol_version": "0.1.0",
            "message_id": str(uuid.uuid4()),
            "timestamp": instant.text(now()),
            "sender": {"agent_id": self.agent_id, "endpoint": self.endpoint},
            "recipient": recipient,
            "swarm_id": swarm_id,
            "type": "message",
            "content": content,
            **more,
        }
        return {**value, "signature": self.sign(value)}

    def sign(self, value: dict[str, Any]) -> str:
        """The signature of a message's six fields."""
        return signing.sign_message(Envelope.model_construct(**value), self.key)

    def system(self, swarm: str, recipient: str, /, **content: Any) -> dict[str, Any]:
        """A lifecycle message."""
        return self.envelope(swarm, recipient, json.dumps(content), type="system")

    def joining(self, token: str) -> dict[str, Any]:
        sender = {"agent_id": self.agent_id, "endpoint": self.endpoint, "public_key": self.public_key}
        return {"type": "system", "action": "join_request", "invite_token": token, "sender": sender}


class Line:
    """A connection to a machine's gateway. Not an agent: it says what it is told to."""

    def __init__(self, machine: Machine, http2: bool = True, port: int | None = None) -> None:
        """``port``: a proxy's, where it is not the gateway that is spoken to."""
        base = f"https://localhost:{port or machine.port}"
        self.client = httpx.Client(
            http2=http2, verify=context(machine), trust_env=False, base_url=base, timeout=PATIENCE
        )

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up: a gateway that ends waits its grace for a peer who has said nothing to the end of TLS."""
        self.client.close()

    def post(self, path: str, value: Any, **headers: str) -> httpx.Response:
        """POST a value as JSON, or bytes as they are."""
        body = value if isinstance(value, bytes) else wire.dump_json(value).encode("utf-8", "surrogatepass")
        more = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.client.post(f"/swarm/{path}", content=body, headers={"content-type": "application/json", **more})

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)


def refused(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The answer is a refusal in the one shape."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    value = answer.json()
    assert set(value) == {"error"}
    assert set(value["error"]) == {"code", "message", "details"}
    assert code in (None, value["error"]["code"]), value
    return dict(value["error"])


def run(work: Any) -> Any:
    """Run something asynchronous, bounded."""
    return asyncio.run(asyncio.wait_for(work, PATIENCE))


@contextmanager
def crowd(port: int, connections: int, source: str = "127.0.0.2") -> Iterator[list[socket.socket]]:
    """Connections that say nothing, held until the block ends."""
    held: list[socket.socket] = []
    try:
        for _ in range(connections):
            held += [socket.create_connection(("127.0.0.1", port), 30, source_address=(source, 0))]
        yield held
    finally:
        for one in held:
            one.close()


def context(machine: Machine) -> ssl.SSLContext:
    """Trusts the machine's authority alone."""
    return ssl.create_default_context(cafile=str(machine.authority.ca))


def secured(machine: Machine, source: str = "127.0.0.1") -> ssl.SSLSocket:
    """A connection with TLS; raises ``OSError`` where there is no place."""
    plain = socket.create_connection(("127.0.0.1", machine.port), 30, source_address=(source, 0))
    return context(machine).wrap_socket(plain, server_hostname="localhost")


def is_let_in(machine: Machine, source: str) -> bool:
    """Whether an address is answered now."""
    try:
        with secured(machine, source) as line:
            line.sendall(b"GET /swarm/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return line.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def post(machine: Machine, body: bytes) -> int:
    """The status of a message that comes by a connection of its own."""
    head = f"POST /swarm/message HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    with secured(machine) as line:
        line.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        said = line.recv(4096)
        while line.recv(4096):
            pass
    return int(said.split()[1])


def beside(machine: Machine, path: str, method: str = "GET") -> httpx.Response:
    """An answer of the local API at its socket."""
    transport = httpx.HTTPTransport(uds=str(machine.swarm_home / "local.sock"))
    with httpx.Client(transport=transport, base_url="http://localhost", timeout=PATIENCE) as client:
        return client.request(method, path)


def numbers(machine: Machine) -> dict[str, float]:
    """The metrics, by name and labels."""
    lines = beside(machine, "/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
    return {name.removeprefix("agent_mailbox_swarm_"): float(value) for name, _, value in pairs}


def told(machine: Machine) -> list[dict[str, Any]]:
    """What the gateway wrote to standard error; every whole line is an object."""
    whole = (machine.scratch / "gateway.log").read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def memory(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
