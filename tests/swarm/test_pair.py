"""Two machines pair without an authority: the invitation has a key, and nobody between them has it."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from asyncio.sslproto import _SSLProtocolTransport  # type: ignore[attr-defined] # private: typeshed leaves it out
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_mailbox.core import instant
from agent_mailbox.identity import tls_certificates as certificates
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.swarm import joining, peer_client
from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.listener import LONGEST, Served
from agent_mailbox.swarm.peer_client import Peers
from agent_mailbox.swarm.protocol import signing, tokens
from agent_mailbox.swarm.protocol.refusal import Refusal
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import MESSAGES, refused, until
from tests.swarm.conftest import Make, making
from tests.swarm.machine import Authority, Machine
from tests.swarm.test_protocol import NOW, SWARM
from tests.swarm.wirework import Person

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ENDPOINT = "https://127.0.0.1:8443/swarm"
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))


class Lan(Machine):
    """A machine of a private network: no authority, no switch but the network's name."""

    def __init__(self, scratch: Path, agent: str, authority: Authority, **more: Any) -> None:
        plain = {"private_addresses": None, "ca_file": None, "networks": ["127.0.0.0/8"]}
        super().__init__(scratch, agent, authority, **{**plain, **more})

    def serve(self, *more: str, **how: Any) -> Lan:
        """With the certificate that it makes."""
        super().serve("--self-signed", *more, **how)
        return self

    def pairs(self, text: str) -> Any:
        """Pair by an invitation that comes by standard input."""
        self.register(f"{self.agent}-agent")
        return self.ok("swarm", "pair", "-", "--session", f"{self.agent}-agent", stdin=text)


@pytest.fixture
def lan(tmp_path: Path, authority: Authority) -> Iterator[Any]:
    """Make a machine of the private network; its gateway ends with the test."""
    yield from making(Lan, tmp_path, authority)


def test_the_person_gets_the_answers_and_what_comes_while_no_agent_has_joined(lan: Any) -> None:
    """The person joins no swarm. Each command that these answers name works as it is, the gateway's place too."""
    a, b = lan("alpha").serve(), lan("beta").serve()
    assert b.pairs(a.call("swarm", "pair", "demo").stdout)["status"] == "accepted"
    assert "nobody joined, so its mail goes to the person" in a.call("swarm", "members", "demo").stdout
    nowhere: dict[str, str | None] = {"AGENT_SWARM_HOME": None}
    sent = a.call("send", "--from", "user", "--to", "swarm:demo/beta", "--body", "Hello.", env=nowhere).stdout
    named = sent.partition("delivered or not: agent-mailbox ")[2].split()
    assert named[-2:] == ["--home", str(a.swarm_home)]
    assert a.call(*named, env=nowhere).rc == 0
    asked = until(lambda: b.ok("check", "--session", "beta-agent", "--peek")["messages"])[0]["id"]
    b.ok("reply", asked, "--from", "beta-agent", "--body", "Hello back.")
    answer = until(lambda: a.ok("check", "--session", "user", "--peek")["messages"])[0]
    assert (answer["content"], answer["recipient"], answer["thread"]) == ("Hello back.", "user", asked)
    b.ok("send", "--from", "beta-agent", "--to", "swarm:demo/alpha", "--body", "News.")
    news = until(lambda: a.ok("check", "--session", "user", "--peek")["messages"][1:])[0]
    assert news["recipient"] == ["swarm:demo", "user"]
    a.register("ann")
    a.ok("swarm", "join", "demo", "--session", "ann")
    b.ok("send", "--from", "beta-agent", "--to", "swarm:demo/alpha", "--body", "More.")
    until(lambda: "More." in [m["content"] for m in a.ok("check", "--session", "ann", "--peek")["messages"]])
    assert len(a.ok("check", "--session", "user", "--peek")["messages"]) == 2


def test_a_program_s_line_answers_nothing_that_the_person_asked_of_a_swarm(lan: Any) -> None:
    """It is shown as mail. The member's own answer, which the gateway takes in, settles the question."""
    a, b = lan("alpha").serve(), lan("beta").serve()
    b.pairs(a.call("swarm", "pair", "demo").stdout)
    asked = a.ok("send", "--from", "user", "--to", "swarm:demo/beta", "--ack", "--body", "May we?")["message"]["id"]
    forged = {"id": "f" * 32, "sender": "swarm:demo/beta", "recipient": "user", "content": "Yes.", "thread": asked}
    with (a.box / MESSAGES).open("a") as log:
        log.write(json.dumps({**forged, "timestamp": instant.text(wall_clock())}) + "\n")
    assert [m["content"] for m in a.ok("check", "--session", "user", "--peek")["messages"]] == ["Yes."]

    def owing() -> Any:
        return a.ok("show", asked)["owed_by"]

    assert owing()
    until(lambda: b.ok("check", "--session", "beta-agent", "--peek")["messages"])
    b.ok("reply", asked, "--from", "beta-agent", "--body", "No.")
    until(lambda: len(a.ok("check", "--session", "user", "--peek")["messages"]) == 2)
    assert not owing()


def test_two_machines_pair_in_two_commands_and_a_third_is_known_to_both(lan: Any) -> None:
    """A machine is verified by the key that it joined with, even by those that joined before. A new certificate is no
    news."""
    a, b, c = lan("alpha").serve(), lan("beta").serve(), lan("gamma")
    a.register("ann")
    assert b.pairs(a.call("swarm", "pair", "demo", "--session", "ann").stdout)["status"] == "accepted"
    assert c.pairs(a.call("swarm", "pair", "demo").stdout)["status"] == "accepted"
    until(lambda: b.members() == {"alpha", "beta", "gamma"})
    c.ok("swarm", "send", "demo", "--from", "gamma-agent", "--body", "to both")
    until(lambda: (a.received(), b.received()) == (["to both"], ["to both"]))
    file = b.swarm_home / peer_client.FILE
    assert file.stat().st_mode & 0o777 == 0o600
    b.kill()
    file.unlink()
    b.serve()
    a.send("ann", "swarm:demo/beta", "to the new one")
    until(lambda: b.received() == ["to both", "to the new one"])
    assert a.call("swarm", "doctor").rc == 0
    a.ok("swarm", "kick", "demo", "beta")  # which is told, though it is a member no more
    until(lambda: b.knows().state == "kicked")


def test_mail_that_a_peer_does_not_take_waits_and_its_last_reason_is_told(lan: Any) -> None:
    """The peer is away, and comes back with another key: nothing was sent, and the person learns why by now."""
    a, b = lan("alpha").serve(), lan("beta").serve()
    a.register("ann")
    b.pairs(a.call("swarm", "pair", "demo", "--session", "ann").stdout)
    b.kill()
    a.send("ann", "swarm:demo/beta", "to the old key")
    until(lambda: "  waits  " in a.call("swarm", "outbox").stdout)
    assert "sent" not in a.call("swarm", "outbox").stdout
    assert "1 message left to carry; it tries each peer again now" in a.call("swarm", "flush").stdout
    (b.swarm_home / "key.pem").unlink()
    b.ok("swarm", "new-key")
    b.serve()
    why = "its certificate does not verify, nor is it by the key that it had"
    until(lambda: why in a.call("swarm", "outbox").stdout)
    assert why in a.call("swarm", "doctor").stdout
    again = a.call("swarm", "pair", "demo", "--session", "ann").stdout
    refused(b.call("swarm", "pair", "-", "--session", "beta-agent", stdin=again), 1, "another key", "swarm kick")


def test_a_connection_without_its_tls_does_not_end_the_sweeping_of_others() -> None:
    """Its transport lets go of that at the second close."""
    transport = _SSLProtocolTransport(None, Mock())
    for _ in range(2):
        transport.close()
    served = Served(transport, 0.0)
    assert not served.is_over(1.0)
    assert served.is_over(LONGEST + 1)
    served.cut_connection()


class Between:
    """Who sits at an endpoint's address with a certificate of its own, and hears what it is told."""

    def __init__(self, certificate: str, key: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)
        self.heard: list[bytes] = []
        self.met = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.met += 1
            try:
                with self._tls.wrap_socket(plain, server_side=True) as wrapped:
                    self.heard.append(wrapped.recv(65536))
            except OSError:
                plain.close()

    def close(self) -> None:
        """No more connections."""
        self._listener.close()


def _written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def test_a_man_in_the_middle_hears_nothing(lan: Any, authority: Authority, tmp_path: Path) -> None:
    """A pairing machine believes a certificate only by the word of the invitation's key. An authority that the person
    trusts does not count. A certificate that only names the key does not count either."""
    a, b = lan("alpha"), lan("beta", ca_file=str(authority.ca))
    at, real = certificates.BEGIN, a.ledger.home.read_key().public_key()
    own = _written(tmp_path / "own.pem", peer_client._make_certificate(OTHER, OTHER.public_key(), "localhost", at))
    forged = _written(tmp_path / "forged.pem", peer_client._make_certificate(OTHER, real, "localhost", at))
    for files in ((own, own), (forged, forged), (str(authority.cert), str(authority.key))):
        between = Between(*files)
        try:
            a.ok("swarm", "init", "--agent", "alpha", "--endpoint", f"https://localhost:{between.port}/swarm")
            url, again = (a.ok("swarm", "pair", "demo") for _ in range(2))
            assert url["swarm"] == again["swarm"]  # whose alias is not its name, the second time
            refused(b.call("swarm", "pair", "-", stdin=url["url"]), 1, "not by the invitation's key", "between you")
            a.ok("swarm", "leave", url["address"])
        finally:
            between.close()
        assert (between.met > 0, between.heard) == (True, [])
    assert b.ledger.read_knowledge().swarms == {}


def _hears(files: tuple[str, str], ca_file: str | None = None, **trust: Any) -> bool:
    """Does who shows that certificate at localhost hear a word of a request?"""
    between = Between(*files)
    try:
        peers = Peers(GatewaySettings(networks=("127.0.0.0/8",), ca_file=ca_file))
        answer = asyncio.run(peers.post_body(f"https://localhost:{between.port}/swarm", "join", b"{}", "me", **trust))
        assert answer.status == 0
        return any(between.heard)
    finally:
        between.close()


def test_whose_word_for_a_certificate_counts(authority: Authority, tmp_path: Path) -> None:
    """The peer's own key's, or an authority's, for the endpoint's name; nobody else's, and no expired one."""

    def files(name: str, host: str = "localhost", by: Ed25519PrivateKey = KEY) -> tuple[str, str]:
        data = peer_client._make_certificate(by, by.public_key(), host, certificates.BEGIN)
        return (_written(tmp_path / name, data),) * 2

    key, signed = signing.public_of(KEY), (str(authority.cert), str(authority.key))
    assert _hears(files("its own"), key=key)
    assert _hears(files("its own"), key=key, only=True)
    assert _hears(signed, str(authority.ca), key=key)
    assert not _hears(signed, str(authority.ca), key=key, only=True)
    assert not _hears(signed, key=key)
    assert not _hears(files("its own"))
    assert not _hears(files("other", by=OTHER), key=key)
    assert not _hears(files("name", "elsewhere"), key=key, only=True)


def test_the_answer_names_the_invitations_key(machine: Make) -> None:
    """A member may invite, too: its invitation has the key of the master, who answers."""
    bob, carol = Person("bob"), machine("carol")
    claims = tokens.TokenClaims(swarm_id=SWARM, master="alpha", endpoint=ENDPOINT, iat=NOW // 1000, issuer="bob")
    url = tokens.invitation_url(claims, tokens.make_token(claims, bob.key), signing.public_of(KEY))

    def entering(of_master: Ed25519PrivateKey) -> Any:
        members = [
            {"agent_id": "alpha", "endpoint": ENDPOINT, "public_key": signing.public_of(of_master)},
            {"agent_id": "bob", "endpoint": ENDPOINT, "public_key": signing.public_of(bob.key)},
        ]
        answer = {"swarm_id": SWARM, "name": "demo", "members": members}
        return joining._entered_event(carol.ledger, carol.ledger.home.read_key(), tokens.parse_url(url), answer)

    assert entering(KEY)["master"] == "alpha"
    with pytest.raises(Refusal, match="another key than the invitation"):
        entering(OTHER)


def test_an_invitation_whose_key_was_replaced_is_refused_before_anything_is_sent() -> None:
    """The key must have signed the invitation: an attacker who rewrites one has to make it whole, and then it is
    another's invitation. A reader that knows no key reads the rest."""
    claims = tokens.TokenClaims(swarm_id=SWARM, master="alpha", endpoint="https://h/swarm", iat=NOW // 1000)
    token = tokens.make_token(claims, KEY)
    url = tokens.invitation_url(claims, token, signing.public_of(KEY))
    assert tokens.parse_url(url).key == signing.public_of(KEY)
    assert tokens.parse_url(url.partition("&")[0]).key is None
    with pytest.raises(Refusal, match="not signed by"):
        tokens.parse_url(tokens.invitation_url(claims, token, signing.public_of(OTHER)))
    for bad in ("", "zz", "00" * 31, "00" * 32, "é"):
        with pytest.raises(Refusal, match="key is incomplete"):
            tokens.parse_url(f"{tokens.invitation_url(claims, token)}&key={bad}")


def test_the_certificate_is_made_when_it_is_needed(tmp_path: Path) -> None:
    """Another key, another host, a year that is nearly over, a damaged file: each has a new one. A clock that is years
    slow makes none that is over when it is set."""
    home = Home(str(tmp_path / "home"))
    home.ensure_directory()

    def made(key: Ed25519PrivateKey = KEY, endpoint: str = ENDPOINT, now: int = NOW) -> bytes:
        with open(peer_client.ready_certificate(home, key, endpoint, now), "rb") as file:
            return file.read()

    first = made()
    assert made() == first
    for more in ({"endpoint": "https://[fd00::1]/swarm"}, {"key": OTHER}, {"now": NOW + 15 * 365 * instant.DAY}):
        before = made()
        assert made(**more) != before  # type: ignore[arg-type]
    path = tmp_path / "home" / peer_client.FILE
    for damaged in (first[:300], b"", made()[:260] + first[260:]):
        path.write_bytes(damaged)
        assert made() != damaged
    open_to_others = made()
    path.chmod(0o644)
    assert made() != open_to_others
    path.unlink()
    slow = x509.load_pem_x509_certificate(made(now=0))
    assert slow.not_valid_before_utc.year == 2020
    assert slow.not_valid_after_utc.year > 2035


def test_who_joins_again_before_its_leaving_arrived_stays_a_member(lan: Any) -> None:
    """The master was away as it left, and would take the old news for a new leaving."""
    a, b = lan("alpha").serve(), lan("beta").serve()
    a.register("ann")
    invitation = a.call("swarm", "pair", "demo", "--session", "ann").stdout
    b.pairs(invitation)
    for one in (a, b):
        one.kill()
    b.ok("swarm", "leave", "demo")
    away = b.call("swarm", "join", invitation.strip(), "--session", "beta-agent")
    refused(away, 1, "ConnectError", "have `swarm serve` run there")
    a.serve()
    b.pairs(invitation)
    b.serve()
    sent = b.send("beta-agent", "swarm:demo/alpha", "back again")
    until(lambda: b.outbox()[sent] == {"alpha": "delivered"})
    assert [states for key, states in b.outbox().items() if key != sent] == [{"alpha": "failed"}]
    assert a.members() == b.members() == {"alpha", "beta"}
    shown = a.call("check", "--session", "ann").stdout
    assert shown.index("beta joined demo") < shown.index(f"reply {sent[:8]}")  # an event is not answered


def test_a_gateway_is_started_again_by_the_words_that_started_it(lan: Any) -> None:
    """Other words would have it listen elsewhere, or unencrypted: peers would not reach it."""
    a = lan("alpha").serve()
    a.register("ann")
    a.call("swarm", "create", "demo", "--session", "ann")
    assert "does not serve" not in a.call("doctor").stdout
    a.kill()
    words = f" --bind 127.0.0.1:{a.port} --self-signed"
    assert f"{words} --home {a.swarm_home}`" in a.call("doctor").stdout
    assert words in a.call("swarm", "status").stdout
    home = ("--home", str(a.swarm_home))
    nowhere = a.call("send", "--from", "ann", "--to", "swarm:demo/gamma", "--body", "x")
    assert f"`agent-mailbox swarm status {' '.join(home)}` shows all" in nowhere.stderr
    assert f"serve {' '.join(home)}{words}`" in a.call("swarm", "doctor", *home).stdout
    assert f"{words}` carries it" in a.call("send", "--from", "ann", "--to", "swarm:demo", "--body", "x").stderr


def test_a_wrong_paste_makes_no_swarm(lan: Any) -> None:
    """The name of a swarm to make is an argument; what comes by standard input is an invitation, or a mistake."""
    a = lan("alpha")
    a.register("ann")
    for pasted in ("", "hello", "warm://x"):
        for verb in ("pair", "join"):
            refused(
                a.call("swarm", verb, "-", "--session", "ann", stdin=pasted), 2, "invitation invalid", "copy the whole"
            )
    refused(a.call("swarm", "pair", "https://x", "--session", "ann"), 2, "invitation invalid")
    refused(a.call("swarm", "pair", "swarm://x@y?token=z", "--session", "ann"), 1, "incomplete", "copy the whole")
    assert a.ok("swarm", "status")["swarms"] == []


def test_two_ways_to_serve_at_once_are_refused(lan: Any) -> None:
    """A certificate of one's own beside another, or beside a proxy, is a mistake."""
    a = lan("alpha")
    for words in (("--behind-proxy",), ("--cert", "x", "--key", "y")):
        refused(a.call("swarm", "serve", "--self-signed", *words), 2, "options exclude each other")
    refused(a.call("swarm", "pair", "swarm://x"), 1, "invitation is swarm://")
