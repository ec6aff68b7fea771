"""What is beside a gateway on its machine: a second one, other homes and mailboxes, other users."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import pytest

from agent_mailbox.swarm import decisions
from agent_mailbox.swarm.protocol import admission, tokens
from tests.helpers import NOBODY, PATIENCE, as_nobody, refused, start_at_once, until
from tests.ports import free_port
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, Machine, meet
from tests.swarm.wirework import Person


def test_of_two_gateways_on_one_home_one_serves(machine: Make) -> None:
    """Started at once, again and again: one listens, the other says why not, and the first is not disturbed."""
    a = machine("alpha")
    for _ in range(2):
        words = ("swarm", "serve", "--bind", "127.0.0.1:0", "--behind-proxy", "--json")
        both = [a.start(*words, stdin=subprocess.DEVNULL) for _ in range(2)]
        until(lambda both=both: sum(one.poll() is not None for one in both) == 1)
        loser, winner = sorted(both, key=lambda one: one.poll() is None)
        assert loser.wait() == 4
        assert loser.stderr is not None
        assert b"served already" in loser.stderr.read()
        assert winner.stdout is not None
        address = json.loads(winner.stdout.readline())["listening"]
        assert httpx.get(f"http://{address}/swarm/health", trust_env=False, timeout=PATIENCE).status_code == 200
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(a.swarm_home / "local.sock")), timeout=PATIENCE) as api:
            assert api.get("http://l/api/inbox/count").status_code == 200
        winner.terminate()
        assert winner.wait(PATIENCE) == 0
        for one in both:
            assert one.stdout is not None
            assert one.stderr is not None
            one.stdout.close()
            one.stderr.close()


def test_of_two_processes_with_one_use_one_admits(machine: Make) -> None:
    """Two that hold the same ledger decide at once about two who come with the same token: one is in, one is not."""
    a = machine("alpha")
    a.ok("swarm", "create", "demo")
    code = (
        "import json, sys\n"
        "from agent_mailbox.swarm.home import Home\n"
        "from agent_mailbox.swarm.ledger import Ledger\n"
        "from agent_mailbox.swarm.protocol import admission\n"
        "from agent_mailbox.swarm.protocol.refusal import Refusal\n"
        "ledger, request = Ledger(Home(sys.argv[1])), admission.parse_join_request(sys.argv[2].encode())\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
        "try:\n"
        "    ledger.append_decided(lambda known: admission.decide_admission(request, known, ledger.now()).events)\n"
        "except Refusal as refusal:\n"
        "    print(refusal.code)\n"
        "else:\n"
        "    print('in')\n"
    )
    for turn in range(3):
        token = tokens.parse_url(a.ok("swarm", "invite", "demo")["url"]).token
        asking = [json.dumps(Person(f"{name}{turn}").joining(token)) for name in ("bob", "eve")]
        racing = [a.start(a.swarm_home, one, python=("-c", code), stderr=None) for one in asking]
        start_at_once(racing)
        assert sorted(one.communicate(timeout=PATIENCE)[0] for one in racing) == [b"TOKEN_EXHAUSTED\n", b"in\n"]
        assert len(a.members()) == 2 + turn


def test_what_happened_is_told_once_whoever_tells_it(machine: Make) -> None:
    """A command looks through the outbox while the gateway does: of each notice there is one."""
    a = machine("alpha")
    a.register("ann")
    a.ok("swarm", "create", "demo", "--session", "ann")
    member = Person("bob")
    token = tokens.parse_url(a.ok("swarm", "invite", "demo")["url"]).token
    request = admission.parse_join_request(json.dumps(member.joining(token)).encode())
    a.ledger.append_decided(lambda known: admission.decide_admission(request, known, a.ledger.now()).events)
    for turn in range(20):
        decisions.mute_sender(a.ledger, "bob", turn % 2 == 0)
    code = (
        "import sys\n"
        "from agent_mailbox.mailbox.mailbox import Mailbox\n"
        "from agent_mailbox.swarm.home import Home\n"
        "from agent_mailbox.swarm.ledger import Ledger\n"
        "from agent_mailbox.swarm.outbox import Outbox\n"
        "home = Home(sys.argv[1])\n"
        "outbox = Outbox(Mailbox(sys.argv[2]), Ledger(home))\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
        "outbox.queue_outgoing()\n"
    )
    racing = [a.start(a.swarm_home, a.box, python=("-c", code), stderr=None) for _ in range(2)]
    start_at_once(racing)
    for one in racing:
        one.communicate(timeout=PATIENCE)
        assert one.returncode == 0
    told = [m["id"] for m in a.remote()]
    assert len(told) == len(set(told)) == 20
    assert a.doctor() == []


def test_a_mailbox_has_one_gateway_and_a_gateway_one_mailbox(machine: Make, tmp_path: Path) -> None:
    """A second home, a copy of the first, a second mailbox: each is refused and told whose it is, before anything is
    decided, and mail goes on as it was. What was moved is followed; what is gone is given up."""
    a, b = machine("alpha").serve(), machine("beta").serve()
    meet(a, b)
    other, copy, second = tmp_path / "other", tmp_path / "copy", tmp_path / "second"
    at = ("--endpoint", "https://localhost:1/swarm")
    refused(
        a.call("swarm", "init", "--agent", "two", *at, "--home", other),
        1,
        f"gateway than {other}: {a.swarm_home}",
        "--home",
    )
    assert not other.exists()
    shutil.copytree(a.swarm_home, copy, ignore=shutil.ignore_patterns("*.sock"))
    for words in (("serve",), ("create", "more"), ("flush",), ("inbox",)):
        refused(a.call("swarm", *words, "--home", copy), 1, str(a.swarm_home))
    assert (copy / "ledger.jsonl").read_bytes() == (a.swarm_home / "ledger.jsonl").read_bytes()
    assert a.call("init", second).rc == 0
    refused(a.call("swarm", "send", "demo/beta", "--body", "x", "--dir", second), 1, str(a.box), "--home")
    a.send("ann", "swarm:demo/beta", "as before")
    until(lambda: b.received() == ["as before"])
    assert not [m for m in a.objects("agent-mailbox.jsonl") if m["sender"] == "swarm-gateway"]
    a.kill()
    third = tmp_path / "third"
    a.box.rename(third)
    assert a.ok("swarm", "status", "--dir", third)["agent_id"] == "alpha"
    shutil.rmtree(a.swarm_home)
    assert a.ok("swarm", "status", "--dir", third, "--home", copy)["swarms"]
    assert a.ok("doctor", "--dir", third)["problems"] == []


def test_the_mailboxs_doctor_looks_at_its_gateway(machine: Make) -> None:
    """A key that others may read, a torn line, a time that has not come: each is told, without the network; and what
    is said of a gateway that is gone, or cannot serve, is a note."""
    a = machine("alpha")
    assert a.doctor() == []
    a.ok("swarm", "create", "demo")
    (a.swarm_home / "key.pem").chmod(0o644)
    with open(a.swarm_home / "ledger.jsonl", "ab") as file:
        file.write(b'{"event":"torn\n{"event":"x","at":"2999-01-01T00:00:00.000Z"}\n')
    found = a.call("doctor", "--json").json
    said = {(Path(one["file"]).name, one["line"]): one["what"] for one in found["problems"]}
    assert "read by others" in said["key.pem", None]
    assert said["ledger.jsonl", 3] == "the gateway passes this line by (not JSON); correct it, or delete it"
    assert any("2999" in one["what"] and "clock" in one["what"] for one in found["notes"])
    without = (
        "import sys\n"
        "for name in ('jwt', 'cryptography', 'pydantic'): sys.modules[name] = None\n"
        "from agent_mailbox.launch import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    bare = a.python(without, "doctor", "--json")
    assert "[swarm]'" in json.dumps(bare.json["notes"])
    assert "read by others" in json.dumps(bare.json["problems"])
    shutil.rmtree(a.swarm_home)
    gone = a.call("doctor", "--json")
    assert gone.rc == 0
    assert "gateway missing" in json.dumps(gone.json["notes"])


@pytest.mark.parametrize("home", ["/tmp/\0x", "", ".", "no/where", "/" + "x" * 5000, "/proc/self", "\x1b[2J/x", 7])
def test_what_a_mailbox_says_of_its_gateway_may_be_anybodys(machine: Make, home: object) -> None:
    """It came with a repository, say: nothing is believed, no command fails by it, and the doctor only says so."""
    a = machine("alpha")
    record = a.box / "agent-swarm.jsonl"
    record.write_text(json.dumps({"home": home}) + "\n")
    assert a.call("doctor", "--json").rc == 0
    assert a.ok("swarm", "status")["agent_id"] == "alpha"
    assert a.doctor() == []


def test_the_doctor_looks_at_no_gateway_of_another_mailbox(machine: Make) -> None:
    """A mailbox that names somebody else's gateway learns, and writes, nothing there."""
    a, b = machine("alpha"), machine("beta")
    (b.swarm_home / "key.pem").chmod(0o644)
    before = {path: path.read_bytes() for path in b.swarm_home.iterdir()}
    (a.box / "agent-swarm.jsonl").write_text(json.dumps({"home": str(b.swarm_home)}) + "\n")
    found = a.call("doctor", "--json").json
    assert found["problems"] == []
    assert ["does not name this mailbox" in note["what"] for note in found["notes"]] == [True]
    assert a.ok("swarm", "status")["agent_id"] == "alpha"
    assert {path: path.read_bytes() for path in b.swarm_home.iterdir()} == before


# -- other users ------------------------------------------------------------------------------------------------------


@pytest.fixture
def open_machine(authority: Authority) -> Iterator[Machine]:
    """A machine in a directory that anybody may enter: its own modes are all that protects it."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        machine = Machine(Path(scratch), "alpha", authority)
        yield machine
        machine.kill()


def _reached(paths: Iterable[Path]) -> list[str]:
    """Those that can be opened, or connected to."""
    found = []
    for path in paths:
        try:
            if path.suffix == ".sock":
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect(str(path))
            else:
                path.open("rb").close()
        except PermissionError:
            continue
        found.append(path.name)
    return found


def _asked(port: int) -> list[int]:
    """What the local API on loopback answers without its token."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/", trust_env=False, timeout=PATIENCE) as api:
        given = {"authorization": "Bearer " + "0" * 64}
        told = [api.get(path, headers=given).status_code for path in ("inbox", "inbox/count", "outbox")]
        return [*told, api.post("wake").status_code]


def test_another_user_reaches_neither_the_gateway_s_socket_nor_its_files(open_machine: Machine, machine: Make) -> None:
    """Neither the socket nor a file, even where the directory has been opened; nor, on loopback, the local API without
    the token, which it cannot read. It can ask what peers ask, no more."""
    port = free_port()
    a, b = open_machine.serve("--api", f"127.0.0.1:{port}"), machine("beta").serve()
    meet(a, b)
    a.send("ann", "swarm:demo/beta", "private")
    until(lambda: b.received() == ["private"])
    assert _asked(port) == [401] * 4  # and what asking imports is loaded: another user may not read it
    assert as_nobody(lambda: _asked(port)) == [401, 401, 401, 401]
    a.stop()
    a.serve()
    everything = sorted(a.swarm_home.iterdir())
    private = {"local.sock", "local.token", "key.pem", "state.json", "ledger.jsonl", "outbox.jsonl"}
    assert private <= {path.name for path in everything}
    theirs = a.scratch.parent / "theirs.sock"  # the same question where the answer must be yes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(theirs))
        listening.listen()
        theirs.chmod(0o777)
        assert as_nobody(lambda: _reached([theirs, a.authority.ca])) == ["theirs.sock"]
    assert as_nobody(lambda: _reached(everything)) == []
    a.swarm_home.chmod(0o755)
    assert as_nobody(lambda: _reached(everything)) == []


def test_a_home_of_another_user_is_not_used(open_machine: Machine) -> None:
    """The gateway refuses a home of another user. It also refuses a key that another user owns, who would know that
    key."""
    a = open_machine
    os.chown(a.swarm_home, NOBODY, NOBODY)
    refused(a.call("swarm", "serve"), 1, f"belongs to uid {NOBODY}")
    os.chown(a.swarm_home, 0, 0)
    os.chown(a.swarm_home / "key.pem", NOBODY, NOBODY)
    refused(a.call("swarm", "serve"), 1, "key.pem")
