"""Three gateways on loopback, as real processes: everything a swarm does, from command to hook."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import httpx
import jsonschema
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_mailbox.core import instant
from agent_mailbox.swarm import state_file
from agent_mailbox.swarm.protocol import signing, tokens
from tests.helpers import PATIENCE, ROOT, refused, until
from tests.ports import free_port
from tests.swarm.conftest import Make
from tests.swarm.machine import meet
from tests.swarm.wirework import Line, Person, now


def test_mail_between_machines_arrives_once_and_only_where_it_should(machine: Make) -> None:
    """Direct mail, a broadcast and a chain of replies arrive, once, marked as remote, and only where they should."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    meet(a, b, c)
    first = a.send("ann", "swarm:demo/beta", "hello beta", "--subject", "Greetings")
    until(lambda: b.received() == ["hello beta"])
    mail = b.remote()[-1]
    assert (mail["id"], mail["sender"], mail["subject"]) == (first, "swarm:demo/alpha", "Greetings")
    shown = b.call("check", "--session", "beta-agent", "--limit", "0")
    assert "swarm:demo/alpha (remote)" in shown.stdout
    assert "| hello beta" in shown.stdout
    answer = b.ok("reply", first, "--from", "beta-agent", "--body", "hello alpha")["message"]
    assert answer["recipient"] == "swarm:demo/alpha"
    until(lambda: a.received() == ["hello alpha"])
    assert a.remote()[-1]["thread"] == first
    assert a.remote()[-1]["recipient"] == "ann"
    again = a.ok("reply", answer["id"], "--from", "ann", "--body", "and again")["message"]
    until(lambda: b.received() == ["hello beta", "and again"])
    thread = [m["id"] for m in b.ok("thread", first)["messages"]]
    assert thread == [first, answer["id"], again["id"]]
    c.send("gamma-agent", "swarm:demo", "hear me, all")
    for one in (a, b):
        until(lambda one=one: "hear me, all" in one.received())
    assert c.received() == []
    until(lambda: set(a.outbox()[first].values()) == {"delivered"})


def test_everyone_learns_that_a_member_left_or_was_kicked(machine: Make) -> None:
    """Kick, leave, transfer, and the master's end: everyone learns of it, and whoever is out is not heard."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    meet(a, b, c)
    a.ok("swarm", "transfer", "demo", "beta")
    for one in (a, b, c):
        until(lambda one=one: one.knows().master == "beta")
    assert a.call("swarm", "kick", "demo", "gamma").rc == 1
    b.ok("swarm", "kick", "demo", "gamma", "--reason", 'it said "no"')
    until(lambda: c.knows().state == "kicked")
    until(lambda: a.members() == {"alpha", "beta"})
    still = ("send", "--from", "gamma-agent", "--to", "swarm:demo", "--body", "still here?")
    until(lambda: "is not in it, and the mail was not sent" in c.call(*still).stderr)
    assert b.received() == a.received() == []
    for one, agent in ((a, "ann"), (b, "beta-agent"), (c, "gamma-agent")):  # the one put out is told why, too
        until(lambda one=one, agent=agent: """Reason: "it said 'no'\"""" in one.unread_text(agent))
    url = b.ok("swarm", "invite", "demo")["url"]
    assert c.ok("swarm", "join", url, "--session", "gamma-agent")["status"] == "accepted"
    until(lambda: a.members() == {"alpha", "beta", "gamma"})
    a.ok("roster", "retire", "ann")
    assert a.ok("swarm", "leave", "demo")["sessions"] == []  # the dead need no leave
    for one in (b, c):
        until(lambda one=one: one.members() == {"beta", "gamma"})
    assert b.call("swarm", "leave", "demo").rc == 1  # its master hands it over, or ends it
    b.ok("swarm", "leave", "demo", "--dissolve")
    until(lambda: c.knows().state == "dissolved")
    told = [m["subject"] for m in b.remote() if m.get("type") == "system"]
    for said in ("gamma was kicked from demo", "gamma joined demo", "alpha left demo"):
        assert said in told


def test_any_gateway_may_be_killed_at_any_point(machine: Make) -> None:
    """Each is killed and comes back between the steps; what was decided and sent meanwhile arrives, once."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    meet(a, b, c)
    b.kill()
    while_away = a.send("ann", "swarm:demo/beta", "while you were away")
    to_all = a.send("ann", "swarm:demo", "for everyone")
    until(lambda: c.received() == ["for everyone"])
    a.kill()
    b.serve()
    a.serve()
    until(lambda: sorted(b.received()) == ["for everyone", "while you were away"])
    assert (until(lambda: set(a.outbox()[to_all].values()) == {"delivered"}), a.outbox()[while_away]) == (
        True,
        {"beta": "delivered"},
    )
    c.kill()
    a.ok("swarm", "kick", "demo", "gamma")
    a.kill()
    a.serve()
    c.serve()
    until(lambda: c.knows().state == "kicked")
    until(lambda: b.members() == {"alpha", "beta"})
    assert sorted(b.received()) == ["for everyone", "while you were away"]
    assert b.doctor() == []


def test_joining_with_approval_waits_for_the_master(machine: Make) -> None:
    """It waits, is asked again by itself, and is in once the master says so; who is denied is not."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    a.register("ann")
    a.ok("swarm", "create", "Careful Swarm!", "--require-approval", "--session", "ann")
    url = a.ok("swarm", "invite", "careful-swarm", "--max-uses", "2")["url"]
    for one in (b, c):
        assert one.ok("swarm", "join", url, "--as", "them")["status"] == "pending"
    ignored = "--as other is ignored: the swarm was joined before, and its alias stays them"
    assert ignored in b.call("swarm", "join", url, "--as", "other").stderr
    assert b.call("swarm", "join", url, "--as", "them").warnings == []
    until(lambda: len(a.unread("ann")) == 2)
    asked = a.ok("check", "--session", "ann")["messages"]
    assert [m["subject"].partition(" asks")[0] for m in asked] == ["beta", "gamma"]
    a.ok("swarm", "approve", "careful-swarm", "beta")
    a.ok("swarm", "deny", "careful-swarm", "gamma")
    until(lambda: b.knows("them").state == "active")
    assert ignored in b.call("swarm", "join", "them", "--as", "other").stderr
    assert b.members("them") == {"alpha", "beta"}
    assert b.knows("them").name == "Careful Swarm!"
    assert a.members("careful-swarm") == {"alpha", "beta"}
    until(lambda: c.knows("them").state == "denied")
    third = machine("delta")
    assert third.call("swarm", "join", url).rc == 1  # two asked with it; that is what it was good for


def test_what_cannot_be_carried_is_told_to_who_sent_it(machine: Make) -> None:
    """A command refuses swarm mail from a session that has not joined. It refuses an unknown member and an unknown
    swarm. Such mail from another program comes back with the reason."""
    a, b = (machine(name).serve() for name in ("alpha", "beta"))
    meet(a, b)
    a.register("outsider")
    refused(a.call("send", "--from", "outsider", "--to", "swarm:demo", "--body", "x"), 1, "not joined swarm:demo")
    refused(a.call("swarm", "send", "nowhere", "--from", "ann", "--body", "x"), 1, "no swarm 'nowhere' is known")
    refused(a.call("send", "--from", "ann", "--to", "swarm:demo/nobody", "--body", "x"), 1, "no other agent 'nobody'")
    refused(a.call("send", "--from", "user", "--to", "swarm:nowhere", "--body", "x"), 1, "no swarm 'nowhere' is known")
    to = {"outsider": "swarm:demo/beta", "ann": "swarm:demo/nobody", "user": "swarm:nowhere"}
    with a.file("agent-mailbox.jsonl").open("a") as log:  # by another program, which asks nobody
        for sender, recipient in to.items():
            said = {"id": f"m-{sender}", "sender": sender, "recipient": recipient, "content": "x"}
            log.write(json.dumps({**said, "timestamp": instant.text(now())}) + "\n")
    until(lambda: len(a.unread("outsider")) == 1)
    until(lambda: sum(m["sender"] == "swarm-gateway" for m in a.objects("agent-mailbox.jsonl")) == 3)
    texts = [m["content"] for m in a.objects("agent-mailbox.jsonl") if m["sender"] == "swarm-gateway"]
    for said in ("outsider has not joined swarm:demo", "demo has no other member 'nobody'", "in no swarm 'nowhere'"):
        assert any(said in text for text in texts), texts
    assert "swarm-gateway → you" in a.call("check", "--session", "outsider", "--peek").stdout  # proven to be its own
    assert b.received() == []


KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"


def test_a_secret_does_not_leave_unless_the_person_insists(machine: Make, tmp_path: Path) -> None:
    """A secret leaves only if the person insists. It may stand in a file, an answer, a batch, or another program's
    line."""
    a, b = (machine(name).serve() for name in ("alpha", "beta"))
    meet(a, b)
    (tmp_path / "id_ed25519").write_text(KEY)
    to = ("--to", "swarm:demo/beta")
    texts = (
        ("--body", f"@{tmp_path / 'id_ed25519'}"),
        ("--body", "ghp_" + 36 * "x"),
        ("--subject", KEY[:35], "--body", "x"),
    )
    for words in texts:
        refused(a.call("send", "--from", "ann", *to, *words), 1, "looks like a secret", "only the person")
        refused(a.call("send", "--from", "ann", *to, *words, "--allow-secret"), 1, "only the person")
    refused(a.call("swarm", "send", "demo", "--from", "ann", "--body", KEY), 1, "looks like a secret")
    here = a.ok("send", "--from", "user", "--to", "ann", "--body", KEY)["message"]["id"]
    refused(a.call("reply", here, "--from", "ann", *to, "--body", KEY), 1, "looks like a secret")
    line = {"recipient": "swarm:demo/beta", "content": KEY, "may_leave": True}
    refused(a.call("send", "--from", "ann", "--jsonl", "-", stdin=json.dumps(line)), 1, "only the person")
    with a.file("agent-mailbox.jsonl").open("a") as log:
        log.write(json.dumps({**line, "id": "m1", "sender": "user", "timestamp": instant.text(now())}) + "\n")
    until(lambda: "looks like a secret (private key)" in a.unread_text("user"))
    assert b.received() == []

    a.ok("send", "--from", "user", *to, "--body", KEY, "--allow-secret")
    until(lambda: b.received() == [KEY])


def test_a_hook_shows_what_another_machine_sent(machine: Make) -> None:
    """One agent's command, another machine's session start: the mail is in what the client is told, as a stranger's.
    A claim of an issue that somebody there holds is shown as a conflict."""
    a, b = (machine(name).serve() for name in ("alpha", "beta"))
    meet(a, b)
    b.ok("swarm", "notify", "github", "issue_claimed", "demo", "Owner/Repo#3", "--from", "beta-agent")
    until(lambda: len(a.received()) == 1)
    a.ok("swarm", "notify", "github", "issue_claimed", "demo/beta", "owner/repo#3", "--from", "ann", "--body", "mine")
    until(lambda: len(b.received()) == 1)
    event = {"session_id": "beta-agent", "hook_event_name": "SessionStart", "source": "startup", "cwd": str(b.cwd)}
    told = b.run("hook", "SessionStart", stdin=json.dumps({**event, "transcript_path": str(b.scratch / "t.jsonl")}))
    text = told.json["hookSpecificOutput"]["additionalContext"]
    for said in (
        "swarm:demo/alpha (remote)",
        "Claimed: owner/repo#3",
        "References: claimed owner/repo#3",
        'Conflict: "beta-agent holds owner/repo#3"',
    ):
        assert said in text, text


def test_the_local_api_lists_counts_and_marks_mail(machine: Make) -> None:
    """Lists, counts and marks over its owner's socket, changes no mail; on loopback it wants the token."""
    a, b = (machine(name).serve() for name in ("alpha", "beta"))
    meet(a, b)
    ids = [a.send("ann", "swarm:demo/beta", f"number {i}") for i in range(3)]
    until(lambda: len(b.received()) == 3)
    lines = len(b.lines("agent-mailbox.jsonl"))
    way = httpx.HTTPTransport(uds=str(b.swarm_home / "local.sock"))
    with httpx.Client(transport=way, base_url="http://l", timeout=PATIENCE) as api:
        for _ in range(200):  # what nobody asked for is read all the same, and the connection stays usable
            assert api.request("GET", "/api/outbox", content=b"x" * 50_000).status_code == 200
        assert api.get("/api/inbox/count").json()["unread"] >= 3
        assert api.get(f"/api/inbox/{ids[0]}").json()["status"] == "read"
        assert api.post(f"/api/inbox/{ids[1]}/archive").json()["status"] == "archived"
        done = api.post("/api/inbox/batch", json={"message_ids": [ids[2], str(uuid.uuid4())], "action": "delete"})
        assert done.json() == {"action": "delete", "updated": 1, "total": 2}
        everything = api.get("/api/inbox", params={"status": "all", "sender_id": "alpha"}).json()["messages"]
        assert {m["message_id"]: m["status"] for m in everything if m["message_type"] == "message"} == {
            ids[0]: "read",
            ids[1]: "archived",
        }
        assert api.get("/api/inbox", params={"limit": "-1"}).status_code == 400
        assert api.post("/api/inbox/batch", json={"message_ids": [], "action": "read"}).status_code == 400
        assert api.get("/api/inbox/nonsense").status_code == 404
        assert api.post("/api/wake").status_code == 202
        assert api.get("/api/outbox/count").json()["count"] >= 0
        assert api.get("/swarm/info").status_code == 404
    assert len(b.lines("agent-mailbox.jsonl")) == lines
    assert b.ok("swarm", "inbox", "--status", "deleted")["count"] == 1
    shown = b.unread_text("beta-agent")  # nobody here has read them
    assert [f"| number {i}" in shown for i in range(3)] == [True] * 3
    b.kill()
    port = free_port()
    b.serve("--api", f"127.0.0.1:{port}")
    token = (b.swarm_home / "local.token").read_text().strip()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE) as api:
        assert api.get("/api/inbox").status_code == 401
        assert api.get("/api/inbox", headers={"authorization": "Bearer nonsense"}).status_code == 401
        good = {"authorization": f"Bearer {token}"}
        assert api.get("/api/inbox", headers=good).status_code == 200
        assert api.get("/api/inbox", headers={**good, "host": "evil.example:80"}).status_code == 403


def test_the_state_file_follows_every_decision(machine: Make) -> None:
    """It is what the schema says, 0600, and follows every decision; exported it is taken back by the same agent, and
    by no other; a merge re-keys nobody."""
    a, b = (machine(name).serve() for name in ("alpha", "beta"))
    meet(a, b)
    schema = json.loads((ROOT / "docs" / "swarm-state.schema.json").read_text())
    state = json.loads((b.swarm_home / "state.json").read_text())
    jsonschema.validate(state, schema)
    (swarm,) = state["swarms"].values()
    assert {m["agent_id"] for m in swarm["members"]} == {"alpha", "beta"}
    exported = b.call("swarm", "state", "export").json
    jsonschema.validate(exported, schema)
    assert exported["exported_at"]
    file = b.scratch / "state.json"
    file.write_text(json.dumps(exported))
    assert b.ok("swarm", "state", "import", str(file), "--replace") == {"swarms": 1, "how": "replace"}
    assert json.loads((b.swarm_home / "state.json").read_text()) == state
    assert a.call("swarm", "state", "import", str(file)).rc == 1
    rekeyed = json.loads(file.read_text())
    next(iter(rekeyed["swarms"].values()))["members"][0]["public_key"] = swarm["members"][1]["public_key"]
    file.write_text(json.dumps(rekeyed))
    assert "member key differs" in b.call("swarm", "state", "import", str(file)).stderr
    file.write_text(json.dumps({**exported, "schema_version": "3.0.0"}))
    assert b.call("swarm", "state", "import", str(file)).rc == 3
    a.send("ann", "swarm:demo/beta", "still friends")
    until(lambda: b.received() == ["still friends"])


def test_an_old_state_merged_brings_nobody_back(machine: Make) -> None:
    """A merge of an old state keeps the present master and brings back nobody who left. It adds the members that only
    the file has. A replacement makes the file alone count."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    meet(a, b, c)
    file = b.scratch / "state.json"
    old = b.call("swarm", "state", "export").json
    (swarm,) = old["swarms"].values()
    copy = {**swarm["members"][0], "agent_id": "copy"}
    key = signing.public_of(Ed25519PrivateKey.generate())
    delta = {**copy, "agent_id": "delta", "endpoint": "https://delta.example/swarm", "public_key": key}
    swarm["members"] += [delta, copy]  # the second has another's key
    file.write_text(json.dumps(old))
    a.ok("swarm", "kick", "demo", "gamma")
    a.ok("swarm", "transfer", "demo", "beta")
    until(lambda: (b.knows().master, set(b.knows().members)) == ("beta", {"alpha", "beta"}))
    b.ok("swarm", "state", "import", str(file), "--merge")
    assert (b.knows().master, set(b.knows().members)) == ("beta", {"alpha", "beta", "delta"})
    b.ok("swarm", "state", "import", str(file), "--replace")
    assert (b.knows().master, set(b.knows().members)) == ("alpha", {"alpha", "beta", "gamma", "delta"})


def test_the_published_schema_is_the_one_that_is_checked() -> None:
    """docs/swarm-state.schema.json is what the program validates with."""
    assert json.loads((ROOT / "docs" / "swarm-state.schema.json").read_text()) == state_file.state_schema()


def test_the_doctor_names_what_is_wrong_with_a_gateway(machine: Make) -> None:
    """Well: no problem. Not serving, a file others can read, a torn line: each is told."""
    a = machine("alpha").serve()
    well = a.ok("swarm", "doctor")
    assert (well["ok"], well["problems"]) == (True, [])
    a.kill()
    (a.swarm_home / "state.json").chmod(0o644)
    with open(a.swarm_home / "ledger.jsonl", "ab") as file:
        file.write(b'{"event":"torn\n')
    found = a.call("swarm", "doctor", "--json")
    assert found.rc == 3
    said = " ".join(f"{one['place']} {one['what']}" for one in found.json["problems"])
    for word in ("can be read by others", "ledger.jsonl:2", "cannot be reached", "run `agent-mailbox swarm serve --b"):
        assert word in said, said


def test_a_gateway_speaks_to_no_private_address(machine: Make) -> None:
    """Without the switch for tests, neither an invitation nor a member's endpoint makes it connect to this machine or
    a private network: no packet is sent."""
    a = machine("alpha").serve()
    a.ok("swarm", "create", "demo")
    url = a.ok("swarm", "invite", "demo")["url"]
    b = machine("beta", private_addresses=False)
    told = b.call("swarm", "join", url)
    assert "no public address" in told.stderr
    assert a.members() == {"alpha"}


def test_serving_in_the_clear_needs_a_proxy(machine: Make) -> None:
    """Neither beyond loopback without a certificate, nor twice for one home, nor the local API to others."""
    a = machine("alpha")
    assert "needs TLS" in a.call("swarm", "serve", "--bind", "0.0.0.0:0").stderr
    unset = a.call("swarm", "serve", "--bind", "192.0.2.1:1", "--cert", "", "--key", "")  # nothing could listen there
    refused(unset, 2, "--cert is empty")
    assert "local API" in a.call("swarm", "serve", "--api", "0.0.0.0:1").stderr
    a.serve("--behind-proxy")
    health = httpx.get(f"http://127.0.0.1:{a.port}/swarm/health", trust_env=False, timeout=PATIENCE)
    assert health.json()["agent_id"] == "alpha"
    assert a.call("swarm", "serve").rc == 4
    assert a.stop() == 0


def test_what_came_before_a_restart_is_known_after_it(machine: Make) -> None:
    """The same bytes, sent again to a gateway that was killed in between, are answered alike and kept once."""
    a = machine("alpha").serve()
    a.register("ann")
    swarm = a.ok("swarm", "create", "demo", "--session", "ann")["swarm"]["swarm_id"]
    bob = Person("bob")
    token = tokens.parse_url(a.ok("swarm", "invite", "demo")["url"]).token
    assert Line(a).post("join", bob.joining(token)).status_code == 200
    message = bob.envelope(swarm, "alpha", "once")
    assert Line(a).post("message", message).status_code == 200
    a.kill()
    a.serve()
    assert Line(a).post("message", message).json() == {"status": "queued", "message_id": message["message_id"]}
    assert a.received() == ["once"]
