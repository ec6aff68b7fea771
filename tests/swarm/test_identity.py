"""A gateway's key: lost, replaced, taken again, kept in a backup, compared by voice, borne by one agent alone."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_mailbox.swarm import gateway_identity
from agent_mailbox.swarm.home import Home
from agent_mailbox.swarm.ledger import Ledger
from agent_mailbox.swarm.protocol import admission, lifecycle, membership, signing, tokens
from agent_mailbox.swarm.protocol.membership import Member
from agent_mailbox.swarm.protocol.refusal import Refusal
from tests.helpers import refused, until
from tests.swarm.conftest import Make
from tests.swarm.machine import Machine, meet
from tests.swarm.test_protocol import NOW, SWARM, VECTORS
from tests.swarm.wirework import now

GROUPS = re.compile(r"\d{5}( \d{5}){5}")


def init(machine: Machine, *more: str) -> tuple[str, ...]:
    """The command that names the gateway."""
    return ("swarm", "init", "--agent", machine.agent, "--endpoint", machine.endpoint, *more)


def test_a_lost_key_is_noticed_by_everything_that_needs_it_and_never_replaced_unasked(machine: Make) -> None:
    """Peers would answer 401 to whatever a new key signs."""
    a = machine("alpha")
    a.ok("swarm", "create", "demo")
    (a.swarm_home / "key.pem").unlink()
    for words in (("create", "x"), ("invite", "demo"), ("serve",), ("flush",), init(a)[1:]):
        told = refused(a.call("swarm", *words, "--json"), 1, "gateway key missing")
        assert told.json["error"]["code"] == "key_lost"
    for words in (("doctor",), ("swarm", "doctor")):
        told = a.call(*words)
        assert told.rc == 3
        assert re.search("key.pem.*gateway key missing", told.stdout)
    assert not (a.swarm_home / "key.pem").exists()


def test_another_key_in_its_place_is_noticed_too(machine: Make) -> None:
    """A key that the swarms do not know is as good as none."""
    a, b = machine("alpha"), machine("beta")
    a.ok("swarm", "create", "demo")
    os.replace(b.swarm_home / "key.pem", a.swarm_home / "key.pem")
    for words in (("swarm", "invite", "demo"), ("swarm", "serve"), init(a)):
        refused(a.call(*words), 1, "gateway key is not the one that its swarms know", "demo")
    assert "not the one that its swarms know" in a.call("doctor").stdout


def test_a_new_key_begins_with_new_memberships(machine: Make) -> None:
    """While a swarm knows the key it stays; left, a new one is taken, and joins by a new invitation."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    old = b.public_key
    refused(b.call("swarm", "new-key"), 1, "gateway key is known to its swarms: demo", "swarm leave")
    b.ok("swarm", "leave", "demo")
    until(lambda: a.members() == {"alpha"})
    b.stop()
    taken = b.ok("swarm", "new-key")
    assert taken["public_key"] == b.public_key != old
    assert any(name.startswith("key.pem.until-") for name in os.listdir(b.swarm_home))
    b.serve()
    url = a.ok("swarm", "invite", "demo")["url"]
    assert b.ok("swarm", "join", url, "--session", "beta-agent")["status"] == "accepted"
    assert a.knows().members["beta"].public_key == b.public_key


def test_a_new_key_strands_no_leaving_that_is_on_its_way(machine: Make) -> None:
    """The master was away: it hears of the leaving by the old key, and takes the agent by its new one."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    a.kill()
    b.ok("swarm", "leave", "demo")
    refused(b.call("swarm", "new-key"), 4, "gateway is served already", "stop the other")
    b.stop()
    b.ok("swarm", "new-key")
    b.serve()
    a.serve()
    until(lambda: a.members() == {"alpha"})
    url = a.ok("swarm", "invite", "demo")["url"]
    assert b.ok("swarm", "join", url, "--session", "beta-agent")["status"] == "accepted"


def test_a_key_that_is_lost_for_good_ends_its_memberships(machine: Make) -> None:
    """`swarm new-key` ends the memberships of a lost key, for nobody can leave without it."""
    a = machine("alpha")
    a.ok("swarm", "create", "demo")
    (a.swarm_home / "key.pem").unlink()
    assert a.ok("swarm", "new-key")["ended"] == ["demo"]
    assert a.knows().state == membership.LEFT
    a.ok("swarm", "create", "again")


def test_a_backup_restores_the_gateway_in_another_place(machine: Make, tmp_path: Path) -> None:
    """Key and ledger; the copy is private, and never put over another gateway."""
    a = machine("alpha")
    first = a.ok("swarm", "create", "demo")["swarm"]["swarm_id"]
    saved, key = tmp_path / "gateway.json", a.public_key
    a.ok("swarm", "backup", saved)
    assert saved.stat().st_mode & 0o777 == 0o600
    refused(a.call("swarm", "backup", saved), 1, "file exists")
    refused(a.call("swarm", "restore", saved), 1, "gateway key exists")
    a.ok("swarm", "create", "later")
    (a.swarm_home / "key.pem").unlink()
    a.ok("swarm", "restore", saved)
    assert (a.public_key, a.knows("later").state) == (key, membership.ACTIVE)
    home = tmp_path / "moved"
    os.rename(a.swarm_home, tmp_path / "gone")
    a.env["AGENT_SWARM_HOME"] = str(home)
    a.ok("swarm", "restore", saved)
    assert (home / "key.pem").stat().st_mode & 0o777 == 0o600
    assert set(Ledger(Home(str(home))).read_knowledge().swarms) == {first}


_BACKUP = b'{"gateway_backup":%d,"key":"","ledger":[]}'


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[]", _BACKUP % 2, _BACKUP % 1])
def test_what_is_no_backup_restores_nothing(machine: Make, tmp_path: Path, data: bytes) -> None:
    """It is refused before anything is written."""
    a = machine("alpha")
    os.rename(a.swarm_home, tmp_path / "gone")
    (tmp_path / "bad").write_bytes(data)
    refused(a.call("swarm", "restore", tmp_path / "bad"), 3, "gateway backup invalid")
    assert not a.swarm_home.exists()


def test_a_backup_that_does_not_fit_itself_is_in_no_good_one_s_way(machine: Make, tmp_path: Path) -> None:
    """A ledger without an identity, or of another key, is refused with its key before it is in place."""
    a, b, saved = machine("alpha"), machine("beta"), tmp_path / "good"
    for one, path in ((a, saved), (b, tmp_path / "b")):
        one.ok("swarm", "create", "demo")
        one.ok("swarm", "backup", path)
    good, other = json.loads(saved.read_text()), json.loads((tmp_path / "b").read_text())
    os.rename(a.swarm_home, tmp_path / "gone")
    for bad, why in (
        ({**good, "ledger": good["ledger"][1:]}, "no identity"),
        ({**other, "key": good["key"]}, "another key"),
    ):
        (tmp_path / "bad").write_text(json.dumps(bad))
        refused(a.call("swarm", "restore", tmp_path / "bad"), 1, why)
        a.ok("swarm", "restore", saved)
        assert a.knows().state == membership.ACTIVE
        shutil.rmtree(a.swarm_home)


def test_a_backup_of_another_key_is_refused_where_swarms_know_this_one(machine: Make, tmp_path: Path) -> None:
    """The ledger that is there stays, and decides."""
    a, b = machine("alpha"), machine("beta")
    a.ok("swarm", "create", "demo")
    b.ok("swarm", "backup", tmp_path / "b")
    (a.swarm_home / "key.pem").unlink()
    refused(a.call("swarm", "restore", tmp_path / "b"), 1, "another key than its swarms know: demo")
    assert [name for name in os.listdir(a.swarm_home) if name.startswith("key.pem")] == []


def test_two_people_can_compare_keys_by_voice(machine: Make) -> None:
    """Six groups of five digits, the same wherever a key is shown."""
    a = machine("alpha")
    mark = a.ok(*init(a))["fingerprint"]
    a.ok("swarm", "create", "demo")
    assert GROUPS.fullmatch(mark)
    assert a.ok("swarm", "status")["fingerprint"] == mark == a.ok("swarm", "members", "demo")["fingerprints"]["alpha"]
    assert mark in a.call("swarm", "members", "demo").stdout
    others = {gateway_identity.key_fingerprint(signing.public_of(Ed25519PrivateKey.generate())) for _ in range(50)}
    assert len(others) == 50
    assert all(GROUPS.fullmatch(one) for one in others)


def test_one_key_cannot_stand_for_two_agents(machine: Make) -> None:
    """The six signed fields name no sender: unsealed mail of one would pass for the other's."""
    a = machine("alpha")
    a.ok("swarm", "create", "demo")
    claims = tokens.parse_url(a.ok("swarm", "invite", "demo", "--unlimited")["url"])
    key = signing.public_of(Ed25519PrivateKey.generate())

    def ask(agent: str, public: str) -> admission.Admission:
        sender = {"agent_id": agent, "endpoint": f"https://{agent}.example", "public_key": public}
        body = {"type": "system", "action": "join_request", "invite_token": claims.token, "sender": sender}
        return admission.decide_admission(
            admission.parse_join_request(json.dumps(body).encode()), a.ledger.read_knowledge(), now()
        )

    first = ask("bob", key)
    a.ledger.append_decided(lambda _: first.events)
    for agent, public in (("zed", key), ("zed", a.public_key)):
        with pytest.raises(Refusal, match="one key is one agent"):
            ask(agent, public)
    assert ask("bob", key).accepted
    swarm = a.knows()
    content = {"action": lifecycle.JOINED, "agent_id": "zed", "endpoint": "https://z.example", "public_key": key}
    with pytest.raises(Refusal, match="is that of bob"):
        lifecycle._joined_outcome(content, swarm, "eve", swarm.joined_at)
    learnt = {"event": "key", "swarm_id": swarm.swarm_id, "agent_id": "dan", "public_key": key, "at": swarm.joined_at}
    keyless = swarm.replace(members={**swarm.members, "dan": Member("dan", "https://d.example", "", swarm.joined_at)})
    known = a.ledger.read_knowledge().replace(swarms={swarm.swarm_id: keyless})
    assert not membership.fold_events([learnt], known).swarms[swarm.swarm_id].members["dan"].public_key


def test_of_two_listed_members_with_one_key_the_first_is_believed() -> None:
    """A master that knows no better let the second in."""
    token = VECTORS["invite_token"]
    me = Member("beta", "https://beta.example/swarm", signing.public_of(Ed25519PrivateKey.generate()), "")
    alpha = {"agent_id": "alpha", "endpoint": "https://alpha.example/swarm", "public_key": VECTORS["public_key"]}
    reply = {"swarm_id": SWARM, "members": [alpha, {**alpha, "agent_id": "zed"}]}
    event = admission.entered_event(reply, tokens.unverified_claims(token), me, token, NOW)
    assert {m["agent_id"] for m in event["members"]} == {"alpha", "beta"}
