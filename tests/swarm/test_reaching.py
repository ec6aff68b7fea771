"""Reaching peers: networks, authorities, names that move, and a joining that fails, in words that help."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from agent_mailbox.config import config_file
from agent_mailbox.errors import BadData
from agent_mailbox.swarm import peer_client
from agent_mailbox.swarm.peer_client import Peers
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import refused
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority


def test_the_person_allows_a_network_and_nothing_beside_it() -> None:
    """Whatever spelling an address has; a project's configuration allows none."""
    peers = Peers(GatewaySettings(networks=("100.64.0.0/10", "fd00:1::/32")))
    for address in ("100.64.0.1", "100.127.255.254", "::ffff:100.64.0.9", "fd00:1::5", "8.8.8.8"):
        assert peers._may_be_at(address), address
    for address in ("127.0.0.1", "10.0.0.1", "fd00:2::1", "169.254.169.254", "::1", "64:ff9b::6440:1"):
        assert not peers._may_be_at(address), address
    said = config_file.parse_own({"swarm": {"networks": ["here"]}}, "/box")
    assert "swarm" not in said
    assert "a list of networks" in said["faults"][0].text
    assert ("swarm", "networks") in config_file.PERSONAL


def test_a_private_authority_is_believed_beside_the_systems_and_a_missing_one_is_named(
    authority: Authority, tmp_path: Path
) -> None:
    """It adds to what the system believes."""
    system = len(ssl.create_default_context().get_ca_certs())
    assert len(peer_client.verifying_context(str(authority.ca)).get_ca_certs()) == system + 1
    with pytest.raises(BadData, match=r"\[swarm\] ca_file unusable: .*nowhere"):
        peer_client.verifying_context(str(tmp_path / "nowhere"))


def test_a_name_that_is_at_a_private_address_for_the_moment_is_tried_again() -> None:
    """Behind a portal every name is; an address that is written out stays what it is."""
    for host, final in (("localhost", False), ("127.0.0.1", True)):
        answer = asyncio.run(Peers(GatewaySettings()).get_document(f"https://{host}:1/swarm/info"))
        assert (answer.status, answer.final) == (0, final)
        assert "no public address" in answer.message


def test_a_stranger_s_refusal_is_quoted(machine: Make) -> None:
    """A master's refusal is a stranger's words; the hint is ours."""
    a, b = machine("alpha").serve(), machine("beta")
    a.ok("swarm", "create", "demo")
    url = a.ok("swarm", "invite", "demo")["url"]
    a.ok("swarm", "invite", url, "--revoke")
    refused(b.call("swarm", "join", url), 1, 'its master answered 403, "the invite token was revoked"')
    b.set(private_addresses=False)
    refused(b.call("swarm", "join", url), 1, "no public address", "networks = [")


def test_an_invitation_may_come_by_standard_input_or_in_a_file(machine: Make, tmp_path: Path) -> None:
    """A command's arguments are seen by all of this machine."""
    a, b, c = machine("alpha").serve(), machine("beta"), machine("gamma")
    a.ok("swarm", "create", "demo")
    url = a.ok("swarm", "invite", "demo", "--unlimited")["url"]
    assert b.ok("swarm", "join", "-", stdin=f"{url}\n")["status"] == "accepted"
    (tmp_path / "url").write_text(url)
    assert c.ok("swarm", "join", f"@{tmp_path / 'url'}")["status"] == "accepted"
