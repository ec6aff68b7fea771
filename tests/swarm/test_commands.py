"""The commands beside a serving gateway: without one, without the extra, and where a joining fails."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent_mailbox.config import config_file
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import BadData
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mcp import tool_commands
from agent_mailbox.mcp.tool_schemas import ToolAnswer
from agent_mailbox.swarm import peer_client
from agent_mailbox.swarm.peer_client import Peers, is_public
from agent_mailbox.swarm.swarm_settings import GatewaySettings
from tests.helpers import ROSTER, Program, refused, refused_both, until
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, meet


def test_without_the_extra_one_line_says_how_to_install_it(program: Program) -> None:
    """Every command of the group, and nothing else, needs the extra."""
    code = (
        "import sys\n"
        "for name in ('jwt', 'starlette'): sys.modules[name] = None\n"
        "from agent_mailbox.launch import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    told = refused(program.python(code, "swarm", "status"), 1, "starlette, jwt", "[swarm]'")
    assert told.stdout == ""
    assert program.python(code, "init", program.box).rc == 0


def test_only_the_gateway_loads_the_swarm_extra(program: Program) -> None:
    """Sending, checking and even the help of ``swarm`` import none of its libraries."""
    program.run("init", program.box)
    code = (
        "import sys\n"
        "from agent_mailbox.launch import main\n"
        "main(sys.argv[1:])\n"
        "print(sorted({'pydantic', 'cryptography', 'jwt', 'starlette', 'httpx', 'asyncio'} & set(sys.modules)))"
    )
    for words in (("send", "--from", "a", "--to", "b", "--body", "x", "--dir", program.box), ("swarm", "--help")):
        assert program.python(code, *words).stdout.splitlines()[-1] == "[]"


def test_mail_that_the_gateway_could_not_carry_fails_at_once(machine: Make) -> None:
    """The gateway tells its mailbox its swarms and their agents; a sender learns the known ones."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    for to, said in (
        ("swarm:nosuch", "swarm:demo"),
        ("swarm:nosuch/beta", "swarm:demo"),
        ("swarm:demo/betta", "swarm:demo/beta"),
        ("swarm:demo/alpha", "swarm:demo/beta"),
    ):
        words = ("send", "--from", "user", "--to", to, "--body", "x")
        refused_both(a.call, 1, *words, said=["was not sent", said])
    assert [m for m in a.objects("agent-mailbox.jsonl") if m["sender"] == "user"] == []
    a.ok("send", "--from", "user", "--to", "swarm:demo/beta", "--body", "x")


def test_an_agent_with_a_client_joins_and_leaves_with_the_proof_of_who_calls(machine: Make) -> None:
    """Its tag counts, and the doctor has nothing to say of the command's own lines."""
    a = machine("alpha")
    Mailbox(str(a.box)).register(Registration(session_id="ann", client="4711"), "ann")
    a.ok("swarm", "create", "demo", "--session", "ann")
    assert a.ok("roster", "show", "ann")["agent"]["tags"] == ["swarm:demo"]
    assert b'"seal":"' in a.lines(ROSTER)[-1]
    assert not any(ROSTER in note["file"] for note in a.call("doctor", "--json").json.get("notes", []))


def test_a_successor_comes_into_no_swarm_that_was_left_meanwhile(machine: Make) -> None:
    """While the gateway is in the swarm, or asks to join it, its place there passes on. The dead lose no tag by a
    leave, so it ends with whoever follows them."""
    alpha = machine("alpha")
    waiting = alpha.ledger.make_event(
        "joining", swarm_id="5b3c8e5e-2c4b-4d5e-9f59-6a1f9a3a7c11", invitation="swarm://x", alias="asked", master="m"
    )
    alpha.ledger.append_decided(lambda _: [waiting])

    def enter(session: str) -> list[str]:
        alpha.ok("roster", "retire", session)
        return sorted(alpha.ok("roster", "register", "--session-id", f"{session}2", "--name", "Ada")["agent"]["tags"])

    alpha.ok("roster", "register", "--session-id", "ann", "--name", "Ada", "--tags", "swarm:asked,concern:tests")
    alpha.ok("swarm", "create", "demo", "--session", "ann")
    assert enter("ann") == ["concern:tests", "swarm:asked", "swarm:demo"]
    alpha.ok("roster", "retire", "ann2")
    alpha.ok("swarm", "leave", "demo", "--dissolve")
    assert "swarm:demo" in alpha.ok("roster", "show", "ann2")["agent"]["tags"]
    assert enter("ann2") == ["concern:tests", "swarm:asked"]
    revived = alpha.ok("roster", "register", "--session-id", "ann2")["agent"]
    assert sorted(revived["tags"]) == ["concern:tests", "swarm:asked"]


def test_swarm_commands_that_cannot_work_say_why(machine: Make) -> None:
    """Each says what happened, to what, and what to do; in text and under --json."""
    a = machine("alpha")
    a.ok("swarm", "create", "demo")
    for rc, words, said in (
        (1, ("members", "nowhere"), "nowhere"),
        (1, ("kick", "demo", "bob"), "member not found in demo: 'bob'"),
        (1, ("kick", "demo", "alpha"), "cannot be kicked"),
        (1, ("transfer", "demo", "bob"), "member not found"),
        (1, ("approve", "demo", "bob"), "join request not found"),
        (1, ("join", "swarm://x"), "invitation"),
        (1, ("join", "swarm://x@y?token=a.b.c"), "token"),
        (2, ("create", "\n"), "name"),
        (2, ("init", "--agent", "bobmessage", "--endpoint", a.endpoint), "bobmessage"),
        (2, ("init", "--agent", "alpha", "--endpoint", "http://x"), "https"),
        (1, ("init", "--agent", "other", "--endpoint", a.endpoint), "alpha"),
        (2, ("mute", "a b"), "agent or swarm invalid"),
        (2, ("inbox", "--status", "lost"), "lost"),
        (2, ("inbox", "--mark", "read"), "--mark"),
        (2, ("notify", "github", "pr_opened", "demo", "o/r"), "OWNER/REPO#NUMBER"),
        (3, ("state", "import", str(a.user_state / "config.toml")), "not JSON"),
    ):
        refused_both(a.call, rc, "swarm", *words, said=(said,)) if words[0] != "notify" else refused(
            a.call("swarm", *words, "--from", "ann"), rc, said
        )
    local = a.send("ann", "user", "from here")
    refused_both(a.call, 1, "swarm", "inbox", "--mark", "read", local, said=("came from no swarm",))
    b = machine("beta")
    (b.swarm_home / "key.pem").unlink()
    refused(b.call("swarm", "create", "x"), 1, "gateway key missing")


def test_a_gateway_whose_mailbox_was_moved_is_told_what_to_do(machine: Make) -> None:
    """It answers, and keeps nothing: peers' mail waits. It comes once the gateway is started again."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    moved = a.box.rename(a.box.with_name("moved"))
    a.box, a.env["AGENT_MAILBOX_DIR"] = moved, str(moved)
    sent = b.send("beta-agent", "swarm:demo/alpha", "on its way")
    until(lambda: b.outbox()[sent] == {"alpha": "sent"})
    found = a.call("swarm", "doctor")
    said = "alpha answers, and can keep no mail now; make room, or start `agent-mailbox swarm serve"
    assert (found.rc, said in found.stdout) == (3, True), found
    assert "note: alpha answers, and can keep no mail now" in b.call("swarm", "doctor").stdout
    a.stop()
    a.serve()
    until(lambda: a.received() == ["on its way"])
    assert a.call("swarm", "doctor").rc == 0


def test_a_gateway_that_serves_is_told_to_serve_elsewhere_only_if_nobody_answers(machine: Make) -> None:
    """An address that is not allowed, or a certificate that does not verify, is no other place to serve at."""
    a = machine("alpha").serve()
    elsewhere = "serve at the address where the endpoint leads"
    for is_allowed, why in ((False, "localhost is at no public"), (True, "its certificate does not verify")):
        a.set(private_addresses=is_allowed)  # and the default authorities
        found = a.call("swarm", "doctor").stdout
        assert (f"alpha cannot be reached: {why}" in found, elsewhere in found) == (True, False), found
    a.stop()
    a.serve("--bind", "127.0.0.1:0")
    assert elsewhere in a.call("swarm", "doctor").stdout


def test_a_second_copy_of_a_gateway_is_told(machine: Make) -> None:
    """A home was copied to another host, and one of the two serves: the other one hears nothing more."""
    a = machine("alpha").serve()
    copy, box = a.scratch / "copy", a.scratch / "another"
    shutil.copytree(a.swarm_home, copy, ignore=lambda _, names: [one for one in names if one.endswith("sock")])
    assert a.call("init", box).rc == 0
    found = a.call("swarm", "doctor", "--home", copy, "--dir", box)
    assert (found.rc, "another copy of this key gets the mail; keep one: alpha" in found.stdout) == (3, True), found
    assert a.call("swarm", "doctor").rc == 0


def test_swarm_send_carries_mail_without_a_gateway(machine: Make) -> None:
    """`swarm send` carries mail itself where no gateway serves. The next command tries again what did not arrive."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    a.kill()
    a.ok("swarm", "send", "demo/beta", "--from", "ann", "--body", "by hand")
    assert b.received() == ["by hand"]
    delivered = a.outbox().keys()
    b.kill()
    said = a.run("swarm", "send", "demo/beta", "--from", "ann", "--body", "later")
    assert "so the mail waits: `agent-mailbox swarm serve" in said.stderr
    assert not [untrue for untrue in ("this command sent it", "peer_not_reached") if untrue in said.stderr]
    (late,) = a.outbox().keys() - delivered
    assert a.outbox()[late] == {"beta": "sent"}
    b.serve()
    assert a.ok("swarm", "flush") == {"carried": True, "open": 0}
    assert b.received() == ["by hand", "later"]
    assert a.ok("swarm", "status")["serving"] is False


def test_members_may_invite_only_if_the_swarm_allows_it(machine: Make) -> None:
    """The master takes a member's invitation if the swarm has ``--allow-member-invite``. Otherwise a member cannot make
    one. A revoked invitation is worth nothing."""
    a, b, c = (machine(name).serve() for name in ("alpha", "beta", "gamma"))
    a.register("ann")
    a.ok("swarm", "create", "open", "--allow-member-invite", "--session", "ann")
    a.ok("swarm", "create", "closed")
    for name in ("open", "closed"):
        assert b.ok("swarm", "join", a.ok("swarm", "invite", name)["url"])["status"] == "accepted"
    refused(b.call("swarm", "invite", "closed"), 1, "only its master")
    assert c.ok("swarm", "join", b.ok("swarm", "invite", "open")["url"])["status"] == "accepted"
    until(lambda: b.members("open") == {"alpha", "beta", "gamma"})
    url = a.ok("swarm", "invite", "closed", "--unlimited")["url"]
    a.ok("swarm", "invite", url, "--revoke")
    refused(c.call("swarm", "join", url), 1, "revoked")


def test_a_woken_agent_is_told_all_it_needs(machine: Make, tmp_path: Path) -> None:
    """New mail calls the configured trigger with its secret; ``swarm context`` has recent messages, membership, mutes
    and what is pending."""
    calls: list[tuple[str | None, dict[str, Any]]] = []

    class Trigger(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            calls.append((self.headers["x-wake-secret"], json.loads(body)))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Trigger)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    secret = tmp_path / "wake"
    secret.touch(mode=0o600)
    secret.write_text("open sesame\n")
    url = f"http://127.0.0.1:{server.server_port}/api/wake"
    a, b = machine("alpha").serve(), machine("beta", wake_url=url, wake_secret_file=str(secret)).serve()
    meet(a, b)
    sent = a.send("ann", "swarm:demo/beta", "wake up", "--priority", "high")
    until(lambda: any(body["message_id"] == sent for _, body in calls))
    told, body = next(call for call in calls if call[1]["message_id"] == sent)
    assert told == "open sesame"
    assert (body["sender_id"], body["notification_level"]) == ("alpha", "high")
    b.ok("swarm", "mute", "somebody")
    context = b.ok("swarm", "context", "demo")
    assert [m["content"] for m in context["messages"]][-1] == "wake up"
    assert {m["agent_id"] for m in context["swarm"]["members"]} == {"alpha", "beta"}
    assert context["muted_agents"] == ["somebody"]
    assert sent in context["pending"]
    shown = b.call("swarm", "context", "demo").stdout
    assert "| wake up" in shown
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ),
        *("255.255.255.255", "192.0.2.1", "192.0.0.170", "198.18.0.1", "240.0.0.1", "192.88.99.1"),
        *("::1", "::", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "5f00::1", "100::1"),
        *("::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::7f00:1"),
        *("2002:a00:1::", "2001:0:a00:1::", "2001:20::1"),
    ],
)
def test_private_addresses_are_refused_as_peers(address: str) -> None:
    """Private, loopback, link-local, shared, multicast, documentation; and what carries another within."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_public_addresses_are_allowed_as_peers(address: str) -> None:
    """Anywhere else."""
    assert is_public(address)


def test_a_command_that_fails_has_made_no_swarm(machine: Make) -> None:
    """An agent that is not registered joins nothing, and nothing was created for it to join."""
    alpha = machine("alpha")
    assert alpha.call("swarm", "create", "demo", "--session", "nobody").rc == 1
    assert alpha.ok("swarm", "status")["swarms"] == []


def test_what_nobody_here_can_know_of_a_swarm_is_not_said(machine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ack is not promised, remote mail is neither read nor unread, and a gateway that does not serve is named.

    A client's tool says the same.
    """
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    words = ("send", "--from", "ann", "--to", "swarm:demo/beta", "--body", "x")
    sent = a.call(*words, "--ack", "--json")
    (warning,) = sent.warnings
    assert "acks do not travel to a swarm" in warning
    shown = a.call("show", sent.json["message"]["id"]).stdout
    assert "no agent has read it here; delivered or not: agent-mailbox swarm outbox" in shown
    for said in (shown, a.call("status", "--session", "ann").stdout):
        assert "(no swarm tells of reading or acks)" in said
        assert "(unread)" not in said
    a.stop()
    waits = "no gateway serves here, so the mail waits: `agent-mailbox swarm serve"
    assert waits in a.call(*words).stderr
    for name, value in a.environ({"AGENT_MAILBOX_SESSION": "ann"}).items():
        monkeypatch.setenv(name, value)
    answers: list[ToolAnswer] = []
    tool_commands.answer_call(str(a.box), "send", {"to": "swarm:demo/beta", "body": "x", "ack": True}, answers.append)
    assert [line.partition(waits)[0] for line in answers[0].data["warnings"]] == [warning.removeprefix("warning: "), ""]
    status = a.call("swarm", "status").stdout
    assert "not serving: agent-mailbox swarm serve" in status
    assert "outbox: 0 on their way" not in status
    found = a.call("swarm", "doctor").stdout
    assert "run `agent-mailbox swarm serve" in found
    assert "certificate does not verify" not in found


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
