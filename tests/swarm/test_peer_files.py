"""A peer's files: bytes within a message become files here, and nothing that the peer says of them is believed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from typing import Any

import pytest

from agent_mailbox.core.attachments import DIRECTORY, MOST
from agent_mailbox.errors import Busy
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.swarm import decisions, inbound
from agent_mailbox.swarm.gateway import Gateway
from agent_mailbox.swarm.protocol import tokens, wire
from agent_mailbox.swarm.protocol.refusal import Refusal
from tests.swarm.conftest import Make
from tests.swarm.wirework import Person
from tests.swarm.world import Agent, Near, played

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
DIGEST = hashlib.sha256(PICTURE).hexdigest()


def inline(data: bytes = PICTURE, **more: Any) -> dict[str, Any]:
    """Bytes within a message, as a peer sends them."""
    return {"type": "inline", "mime_type": "image/png", "content": base64.b64encode(data).decode(), **more}


class Host:
    """A master, and Bob, who speaks by hand."""

    def __init__(self, machine: Make) -> None:
        self.agent = Agent(machine("alpha"), Near(), 0)
        self.machine, self.bob = self.agent.machine, Person("bob")
        decisions.create_swarm(self.agent.ledger, "demo", {})
        asyncio.run(self._joins())

    async def _joins(self) -> None:
        token = tokens.parse_url(self.agent.invite()).token
        await self.agent.gateway.accept_join(wire.dump_json(self.bob.joining(token)).encode(), "bob")

    def body(self, *given: dict[str, Any]) -> bytes:
        """A message of Bob's with attachments."""
        return wire.dump_json(self.bob.envelope(self.agent.swarm.swarm_id, "alpha", attachments=list(given))).encode()

    def hears(self, *bodies: bytes) -> None:
        """Take messages in, by a gateway that has just started; raise a refusal."""
        a = self.agent
        a.gateway = Gateway([a.gateway.mailbox], a.ledger, a.outbox, a.gateway.settings)

        async def scene() -> None:
            for body in bodies:
                await a.gateway.accept_message(body)

        played(scene, a)

    def gets(self, *given: dict[str, Any]) -> list[dict[str, Any]]:
        """Take a message in; the attachments of its record."""
        self.hears(self.body(*given))
        found: list[dict[str, Any]] = self.machine.remote()[-1]["attachments"]
        return found

    def kept(self) -> list[str]:
        """The names of the files."""
        home = self.machine.file(DIRECTORY)
        return sorted(os.listdir(home)) if home.exists() else []


@pytest.fixture
def host(machine: Make) -> Host:
    """A gateway that Bob may write to."""
    return Host(machine)


def test_the_bytes_of_a_peer_are_a_file_here(host: Host) -> None:
    """The bytes of a peer become a file that is named by their digest. It keeps the peer's name, or gets one by its
    type. Its type and size are found here. A URL stays a URL."""
    far = {"type": "url", "mime_type": "text/plain", "content": "https://x.example"}
    named, plain, url = host.gets(inline(name="plan.png", sha256=DIGEST), inline(), far)
    path = f"{DIRECTORY}/{DIGEST}.png"
    file = {"type": "file", "mime_type": "image/png", "size": len(PICTURE), "sha256": DIGEST, "path": path}
    assert (named, plain, url) == ({**file, "name": "plan.png"}, {**file, "name": "attachment.png"}, far)
    assert (host.machine.file(path).read_bytes(), host.kept()) == (PICTURE, [f"{DIGEST}.png"])
    assert host.machine.file(path).stat().st_mode & 0o777 == 0o600
    shown = host.machine.call("show", host.machine.remote()[-1]["id"]).stdout
    assert f"Attached: plan.png (image/png, {len(PICTURE)} B): {host.machine.file(path)}" in shown
    assert host.machine.doctor() == []


@pytest.mark.parametrize(
    "name", ["../../../evil", "/etc/passwd", "a\x1b[2J\n| forged", "..", ".", "x" * 400, 5, ["a"], "", None], ids=str
)
def test_no_name_leads_out_or_breaks_a_line(host: Host, name: Any) -> None:
    """Whatever a peer calls it, the file is where its digest says, and a message of another shape is still heard."""
    (entry,) = host.gets(inline(name=name, path="/etc/passwd", absolute_path="/etc/passwd", not_kept="forged", size=-1))
    assert host.kept() == [entry["path"].removeprefix(f"{DIRECTORY}/")]
    assert (entry["sha256"], entry["size"], entry["name"].isprintable()) == (DIGEST, len(PICTURE), True)
    assert set(entry) == {"type", "name", "mime_type", "size", "sha256", "path"}
    assert ("/" in entry["name"], len(entry["name"]) <= 80) == (False, True)
    shown = host.machine.call("show", host.machine.remote()[-1]["id"]).stdout
    assert [line for line in shown.splitlines() if line.startswith("|")] == ["| hello"]
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (inline(name="a.png", sha256="0" * 64), inbound.DAMAGED),
        (inline(name="a.png", sha256="x"), inbound.DAMAGED),
        (inline(name="a.png", content="%%%"), inbound.UNREADABLE),
        (inline(name="a.png", content="QQ="), inbound.UNREADABLE),
        (inline(b"x" * 1001, name="a.png"), inbound.LARGE),
        (inline(b"x" * 501, name="a.png"), inbound.FULL),
    ],
    ids=["another digest", "no digest", "no base64", "cut", "large", "no room"],
)
def test_what_is_not_kept_is_a_name_with_the_reason(
    host: Host, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], why: str
) -> None:
    """The text arrives, the reader is told, and no byte of it is in the mailbox."""
    monkeypatch.setattr(attachment_files, "MOST_BYTES", 1000)
    monkeypatch.setattr(attachment_files, "MOST_FOREIGN", 500)
    (entry,) = host.gets(given)
    assert entry == {"type": "inline", "name": "a.png", "mime_type": "image/png", "not_kept": why}
    assert host.kept() == []
    shown = host.machine.call("show", host.machine.remote()[-1]["id"]).stdout.splitlines()
    told = why if " " not in why else f'"{why}"'
    assert f"Attached: a.png (image/png): not kept, {told}" in shown


def test_a_message_brings_so_many_files_and_no_more(host: Host) -> None:
    """Those beyond the limit are told."""
    entries = host.gets(*(inline(b"%d" % n, name=f"{n}.txt") for n in range(MOST + 2)))
    assert [entry.get("not_kept") for entry in entries] == [*[None] * MOST, *[inbound.MANY] * 2]
    assert len(host.kept()) == MOST


def test_files_of_peers_leave_room_for_local_files(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small their files are: beyond their part of the room none is kept, and one's own still is."""
    monkeypatch.setattr(attachment_files, "MOST_FOREIGN", 3 * attachment_files.LEAST_COUNTED)
    monkeypatch.setattr(attachment_files, "MOST_TOTAL", 6 * attachment_files.LEAST_COUNTED)
    told = [entry.get("not_kept") for entry in host.gets(*(inline(b"%d" % n) for n in range(4)))]
    told += [entry.get("not_kept") for entry in host.gets(inline(b"more"))]
    assert told == [None, None, None, inbound.FULL, inbound.FULL]
    attachment_files.put(str(host.machine.box), "own", [b"own"])
    assert len(host.kept()) == 4


def test_what_is_not_taken_in_leaves_no_file(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of a muted peer or of a stranger leaves no file. A message that could not be written and comes again is
    one file."""
    decisions.mute_sender(host.agent.ledger, "bob", True)
    host.hears(host.body(inline()))
    decisions.mute_sender(host.agent.ledger, "bob", False)
    stranger = Person("eve").envelope(host.agent.swarm.swarm_id, "alpha", attachments=[inline()])
    with pytest.raises(Refusal, match="member"):
        host.hears(wire.dump_json(stranger).encode())
    assert host.kept() == []
    body = host.body(inline())
    with monkeypatch.context() as patched:

        def busy(*_: Any, **__: Any) -> None:
            raise Busy("the mailbox is locked", "")

        patched.setattr(host.agent.gateway.mailbox, "take_in", busy)
        with pytest.raises(Refusal, match="could be stored"):
            host.hears(body)
    host.hears(body, body)
    assert (len(host.machine.remote()), host.kept()) == (1, [f"{DIGEST}.png"])


def test_a_file_goes_from_machine_to_machine(machine: Make) -> None:
    """A file keeps its name and its digest between machines, from the attaching command to the showing one."""
    near = Near()
    a, b = Agent(machine("alpha"), near, 0), Agent(machine("beta"), near, 0)
    decisions.create_swarm(a.ledger, "demo", {})

    async def scene() -> None:
        assert (await b.join(a))[0] == "accepted"
        a.machine.register("ann", "--tags", "swarm:demo")
        (a.machine.scratch / "plan.png").write_bytes(PICTURE)
        await asyncio.to_thread(
            a.machine.send, "ann", "swarm:demo/beta", "look", "--attach", a.machine.scratch / "plan.png"
        )
        a.outbox.queue_outgoing()
        await a.carrier.try_everything_now()

    played(scene, a, b)
    b.machine.register("bea", "--tags", "swarm:demo")
    (mail,) = (m for m in b.machine.ok("history", "--all")["messages"] if m["content"] == "look")
    (entry,) = mail["attachments"]
    assert (entry["name"], entry["sha256"]) == ("plan.png", DIGEST)
    with open(entry["absolute_path"], "rb") as file:
        assert file.read() == PICTURE
