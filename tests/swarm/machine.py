"""Machines of a swarm, on loopback: each a mailbox, a gateway's home, and the gateway as a real process.

``Machine.serve`` starts it, ``kill`` ends it as a power cut would. A private authority signs everyone's certificate;
verification is never off.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import trustme

from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.ledger import Ledger
from agent_mailbox.swarm.protocol import signing
from tests.helpers import PATIENCE, Post, until
from tests.ports import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from agent_mailbox.swarm.protocol.membership import Swarm

LIMITS = {
    "messages_per_minute": 1_000_000,
    "swarm_messages_per_minute": 1_000_000,
    "joins_per_hour": 1_000_000,
    "requests_per_minute": 10_000_000,
    "retry_seconds": 1,
}


class Authority:
    """A private certificate authority."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.made = made = trustme.CA()
        cert = made.issue_cert("localhost", "127.0.0.1")
        self.ca, self.cert, self.key = directory / "ca.pem", directory / "cert.pem", directory / "key.pem"
        made.cert_pem.write_to_path(str(self.ca))
        cert.private_key_pem.write_to_path(str(self.key))
        for part in cert.cert_chain_pems:
            part.write_to_path(str(self.cert), append=True)


class Machine(Post):
    """A machine: ``box`` its mailbox, ``swarm_home`` its gateway's."""

    def __init__(
        self, scratch: Path, agent: str, authority: Authority, *, through: int | None = None, **settings: Any
    ) -> None:
        """``through``: the port peers reach it by, where that is not its own."""
        super().__init__(scratch / agent)
        self.agent = agent
        self.authority = authority
        self.port = free_port()
        self.endpoint = f"https://localhost:{through or self.port}/swarm"
        self.swarm_home = self.scratch / "swarm"
        self.env["AGENT_SWARM_HOME"] = str(self.swarm_home)
        self.gateway: subprocess.Popen[bytes] | None = None
        self.set(**{"private_addresses": True, "ca_file": str(authority.ca), **LIMITS, **settings})
        self.ok("swarm", "init", "--agent", agent, "--endpoint", self.endpoint)

    def set(self, **settings: Any) -> None:
        """Write ``[swarm]``; what is None is left to its default."""
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if value is not None]
        super().configure("[swarm]\n" + "\n".join(lines) + "\n")

    def serve(self, *more: str, under: Sequence[str] = ()) -> Machine:
        """Start the gateway, perhaps ``under`` a tracer, and wait until it listens."""
        words = ["swarm", "serve", "--bind", f"127.0.0.1:{self.port}", "--json", *more]
        if not {"--behind-proxy", "--self-signed"} & set(more):
            words += ["--cert", str(self.authority.cert), "--key", str(self.authority.key)]
        from agent_mailbox.swarm import gateway_process  # noqa: F401 - what is forked has it

        with open(self.scratch / "gateway.log", "ab") as log:
            self.gateway = self.start(*words, stdin=subprocess.DEVNULL, stderr=log, under=under, forked=True)
        assert self.gateway.stdout is not None
        said = self.gateway.stdout.readline()
        assert b"listening" in said, (said, (self.scratch / "gateway.log").read_text()[-3000:])
        return self

    def kill(self) -> None:
        """End the gateway at once, wherever it is."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End the gateway in good order; its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self.gateway is None:
            return 0
        self.gateway.send_signal(how)
        code = self.gateway.wait(PATIENCE)
        assert self.gateway.stdout is not None
        self.gateway.stdout.close()
        self.gateway = None
        return code

    @property
    def ledger(self) -> Ledger:
        """What the gateway wrote down."""
        return Ledger(Home(str(self.swarm_home)))

    def knows(self, alias: str = "demo") -> Swarm:
        """A swarm as this machine knows it."""
        found = self.ledger.read_knowledge().swarm_by_word(alias)
        assert found is not None
        return found

    @property
    def public_key(self) -> str:
        """In base64."""
        return signing.public_of(self.ledger.home.read_key())

    def unread_text(self, session: str) -> str:
        """A session's unread mail as it would be shown."""
        return self.call("check", "--session", session, "--peek", "--limit", "0").stdout

    def members(self, alias: str = "demo") -> set[str]:
        """Who is in a swarm, as this machine knows it."""
        return set(self.knows(alias).members)

    def remote(self) -> list[dict[str, Any]]:
        """The mail from elsewhere that is in the mailbox, raw."""
        return [m for m in self.objects("agent-mailbox.jsonl") if m["sender"].startswith("swarm:")]

    def received(self) -> list[str]:
        """The texts among it that are no lifecycle messages."""
        return [m["content"] for m in self.remote() if m.get("type", "message") != "system"]

    def outbox(self) -> dict[str, dict[str, str]]:
        """Message id to peer to status."""
        rows = self.ok("swarm", "outbox", "--limit", "1000")["messages"]
        return {row["id"]: {agent: peer["status"] for agent, peer in row["peers"].items()} for row in rows}


def meet(master: Machine, *others: Machine, name: str = "demo") -> None:
    """Have the machines be one swarm, an agent of each in it (``ann`` at the master's, ``X-agent`` elsewhere)."""
    master.register("ann")
    master.ok("swarm", "create", name, "--session", "ann")
    for other in others:
        other.register(f"{other.agent}-agent")
        url = master.ok("swarm", "invite", name)["url"]
        joined = other.ok("swarm", "join", url, "--session", f"{other.agent}-agent")
        assert joined["status"] == "accepted"
    everyone = {master.agent, *(other.agent for other in others)}
    for machine in (master, *others):
        until(lambda machine=machine: machine.members(name) == everyone)
