"""Exactly once, under faults: gateways killed at their system calls."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from agent_mailbox.core import instant
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.swarm import decisions
from agent_mailbox.swarm.outbox import Outbox
from agent_mailbox.swarm.protocol.outgoing import Outgoing, compact_events
from tests.faults.killing import skip_without_strace
from tests.helpers import MESSAGES, PATIENCE, begin_again, until
from tests.swarm.conftest import Make
from tests.swarm.machine import Authority, Machine, meet
from tests.swarm.wirework import Line, Person, now

if TYPE_CHECKING:
    from collections.abc import Iterator


SWARM = "660e8400-e29b-41d4-a716-446655440001"


class Traced:
    """A machine whose gateway is traced, and dies when it is about to make a call."""

    def __init__(self, machine: Machine) -> None:
        skip_without_strace()
        self.machine = machine
        self._kept = Path(tempfile.mkdtemp(dir=machine.scratch))
        for place in (machine.box, machine.swarm_home):
            shutil.copytree(place, self._kept / place.name, ignore=shutil.ignore_patterns("*.sock"))

    @contextmanager
    def dying(self, call: str, file: Path) -> Iterator[None]:
        """The machine is as it was when this was made; its gateway runs, and dies before this call on the file."""
        machine = self.machine
        for place in (machine.box, machine.swarm_home):
            shutil.rmtree(place)
            shutil.copytree(self._kept / place.name, place)
        begin_again(machine.box, machine.env)
        fault = ("-P", str(file), "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when=1")
        machine.serve(under=("strace", "-f", "-qq", *fault, "-o", str(machine.scratch / "trace")))
        try:
            yield
        finally:
            self._end()

    def is_dead(self) -> bool:
        """Return whether the gateway has died."""
        return self.machine.gateway is None or self.machine.gateway.poll() is not None

    def _end(self) -> None:
        """End the gateway, and with it strace, which would leave it behind."""
        tracer = self.machine.gateway
        if tracer is not None and tracer.poll() is None:
            children = Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text().split()
            for pid in map(int, children):
                with suppress(ProcessLookupError):  # it died of its fault meanwhile, and is reaped only now
                    os.kill(pid, signal.SIGKILL)
            tracer.wait(PATIENCE)
        self.machine.kill()


def test_a_message_arrives_once_whichever_gateway_dies_at_it(tmp_path: Path, authority: Authority) -> None:
    """A receiver is killed before it writes the message, and before it syncs it: nothing is answered that is not there,
    and what was not answered comes again. A sender is killed before it notes what it is to send, and before it notes
    that it was taken. Each message is there once."""
    alpha, beta = (Machine(tmp_path, name, authority).serve() for name in ("alpha", "beta"))
    meet(alpha, beta)
    until(lambda: alpha.outbox() == {} or {*alpha.outbox().popitem()[1].values()} == {"delivered"})

    def sent(text: str) -> str:
        return alpha.send("ann", "swarm:demo/beta", text)

    beta.kill()
    receiver = Traced(beta)
    for call in ("write", "fdatasync"):
        with receiver.dying(call, beta.box / MESSAGES):
            mail = sent(call)
            until(receiver.is_dead)
            assert alpha.outbox()[mail] != {"beta": "delivered"}, call
        beta.serve()
        until(lambda mail=mail: alpha.outbox()[mail] == {"beta": "delivered"})
        assert Counter(beta.received())[call] == 1, call
        assert beta.doctor() == [], call
        beta.kill()
    alpha.kill()
    outbox = alpha.swarm_home / "outbox.jsonl"
    sender = Traced(alpha)
    with sender.dying("write", outbox):  # what it is to send
        mail = sent("queued")
        until(sender.is_dead)
    alpha.serve()
    until(lambda: mail in alpha.outbox())  # its peer does not answer yet
    alpha.kill()
    beta.serve()
    sender = Traced(alpha)
    with sender.dying("write", outbox):  # that it was taken
        until(sender.is_dead)
    assert beta.received().count("queued") == 1
    alpha.serve()
    until(lambda: alpha.outbox()[mail] == {"beta": "delivered"})
    assert beta.received().count("queued") == 1
    assert alpha.doctor() == []
    alpha.kill()
    beta.kill()


NEWS = {
    "member_left": ("carol left demo", {"agent_id": "carol"}),
    "master_changed": ("carol is the master of demo", {"old_master": "master", "new_master": "carol"}),
    "kicked": ("the master kicked this agent from demo", {"agent_id": "beta"}),
    "swarm_dissolved": ("demo was dissolved by its master", {}),
}


def test_what_changed_a_swarm_is_told_whoever_dies_before_telling_it(tmp_path: Path, authority: Authority) -> None:
    """Killed after the ledger's line and before the mailbox's: who left, or is master no more, is refused when it says
    so again, and yet those here learn of it, once, however often the gateway starts."""
    beta = Machine(tmp_path, "beta", authority)
    master, carol = Person("master", "https://127.0.0.1:9/swarm"), Person("carol", "https://127.0.0.1:9/swarm")
    beta.register("ann", "--tags", "swarm:demo")
    take_state(beta, master, carol)
    traced = Traced(beta)
    for action, (told, more) in NEWS.items():
        sender = carol if action == "member_left" else master
        message = sender.system(SWARM, "beta", action=action, **more)
        with traced.dying("write", beta.box / MESSAGES):
            with Line(beta) as line, pytest.raises(httpx.HTTPError):
                line.post("message", message)
            assert beta.gateway is not None
            beta.gateway.wait(PATIENCE)
        assert beta.remote() == [], action
        assert (beta.knows().state, beta.knows().master, len(beta.knows().members)) != ("active", "master", 3), action
        for _ in range(2):
            beta.serve()
            with Line(beta) as line:
                again = line.post("message", message).status_code
            assert again == (200 if action == "master_changed" else 404 if beta.knows().state != "active" else 403)
            beta.stop()
        assert [m["subject"] for m in beta.remote()] == [told], action
        assert len(beta.unread("ann")) == 1
        assert beta.doctor() == []


def test_whoever_tells_those_here_it_is_told_once(tmp_path: Path, authority: Authority) -> None:
    """Eight processes' worth of outboxes at one decision: one notice. One that died before the outbox had it, and a
    compaction of what is long over, tell nothing again."""
    beta = Machine(tmp_path, "beta", authority)
    take_state(beta, Person("master", "https://127.0.0.1:9/swarm"))
    decisions.mute_sender(beta.ledger, "master", True)

    def look(_: int = 0) -> int:
        ledger = beta.ledger
        outbox = Outbox(Mailbox(str(beta.box)), ledger)
        outbox.queue_announcements()
        return len(ledger.open_announcements(outbox.fold.senders))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(look, range(8))) == {0}
    (beta.swarm_home / "outbox.jsonl").unlink()
    look()
    assert [m["subject"] for m in beta.remote()] == ["master is muted here"]
    queued = beta.objects("../swarm/outbox.jsonl")
    later = compact_events(queued, instant.parse(queued[0]["at"]) + 30 * instant.DAY)
    assert Outgoing(later).senders.keys() == Outgoing(queued).senders.keys() != set()
    assert (Outgoing(later).open, "content" in later[0]) == ({}, False)
    assert beta.ok("swarm", "outbox")["messages"] == []


def take_state(beta: Machine, *others: Person) -> None:
    """Put a machine into a swarm with others, whose master is the first."""
    at = "2026-01-01T00:00:00.000Z"
    members = [(beta.agent, beta.endpoint, beta.public_key)] + [(o.agent_id, o.endpoint, o.public_key) for o in others]
    swarm = {"swarm_id": SWARM, "name": "demo", "master": others[0].agent_id, "joined_at": at, "settings": {}}
    names = ("agent_id", "endpoint", "public_key", "joined_at")
    swarm["members"] = [dict(zip(names, (*one, at), strict=True)) for one in members]
    state = {"schema_version": "1.0.0", "agent_id": beta.agent, "swarms": {SWARM: swarm}}
    decisions.take_state(beta.ledger, json.dumps(state).encode(), True)


AT = "2026-03-16T14:30:00.000Z"
SWARM = "00000000-0000-4000-8000-000000000001"
DAMAGED = {
    "ledger.jsonl": (
        {"event": "created", "swarm_id": SWARM, "name": "lost", "alias": "lost", "settings": {}, "at": AT},
        {"event": "identity", "agent_id": "alpha", "at": AT},
        {"event": "joined", "swarm_id": SWARM, "member": {"agent_id": "x"}, "at": AT},
        {"event": "muted", "what": "agent", "id": 7, "at": AT},
        {"event": "kicked", "swarm_id": SWARM, "agent_id": "x", "at": "yesterday"},
        {"event": "left", "swarm_id": SWARM, "agent_id": "x", "at": AT, "announce": [{"content": "no id"}]},
    ),
    "outbox.jsonl": (
        {"event": "queued", "id": "a", "peers": [{"agent_id": "beta"}], "at": AT},
        {"event": "queued", "id": "b"},
        {"event": "delivered", "id": "a", "at": AT},
    ),
    "statuses.jsonl": ({"message_id": "a", "status": "read"},),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_record_that_lacks_a_member_is_passed_by_and_both_doctors_name_its_line(machine: Make, name: str) -> None:
    """No command breaks by it: the records around it count."""
    a = machine("alpha")
    a.ok("swarm", "create", "demo")
    log = Path(a.swarm_home) / name
    before = len(log.read_bytes().splitlines()) if log.exists() else 0
    with log.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in DAMAGED[name])
    log.chmod(0o600)

    a.ok("swarm", "create", "after")

    for words in (("members", "demo"), ("members", "after"), ("status",), ("outbox",), ("inbox",), ("flush",)):
        a.ok("swarm", *words)
    for doctor in (("doctor",), ("swarm", "doctor")):
        told = a.call(*doctor).stdout
        for number in range(before + 1, before + 1 + len(DAMAGED[name])):
            assert f"{name}:{number}" in told


def test_mail_whose_record_lost_its_text_fails_and_its_sender_is_told(machine: Make) -> None:
    """A parcel without a text cannot be carried."""
    a = machine("alpha")
    about = {"event": "queued", "id": SWARM, "from": "user", "at": instant.text(now())}
    parcel = {**about, "swarm_id": SWARM, "recipient": "beta", "type": "message"}
    with (Path(a.swarm_home) / "outbox.jsonl").open("a") as file:
        file.write(json.dumps({**parcel, "peers": [{"agent_id": "beta", "endpoint": "https://b.example"}]}) + "\n")

    a.ok("swarm", "flush")

    assert f"{SWARM} did not reach beta: its record in the outbox has no text" in a.unread_text("user")
