"""A cluster by ``engine config``: three real servers over TLS, and who may do what in them."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from agent_mailbox.errors import Refused
from agent_mailbox.space import space_checks
from agent_mailbox.space.nats.connection import API, Publication
from agent_mailbox.space.order.order import ROSTER, NoServer
from tests.helpers import PATIENCE, Program, until

from .cluster_servers import SPACE, Servers, joined
from .opened_orders import open_nats
from .pair import LOG, MACHINES, Pair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DOCTOR = "engine", "doctor", "--system"
OLD = """\
  SYSTEM {{ users: [ {{ user: "system", password: "{system}" }} ] }}
  MAILBOX {{
    jetstream: enabled
    users: [
      {{ user: "KEEPER", password: "{keeper}", permissions: {{
        publish: [ "$JS.API.STREAM.PURGE.MBX_team", "$JS.API.STREAM.MSG.DELETE.MBX_team" ]
        subscribe: [ "_INBOX.KEEPER.>" ] }} }},
{machines}
    ]
  }}
}}
"""
"""The accounts as earlier versions wrote them, and a machine's user there."""
OLD_USER = """\
      {{ user: "{machine}", password: "{word}", permissions: {{
        publish: [ "mbx.team.{machine}.>", "mbxf.team.{machine}.>", "mbxlive.team.{machine}", {calls} ]
        subscribe: [ "_INBOX.{machine}.>", "mbx.team.>", "mbxlive.team.*" ] }} }}"""
OLD_CALLS = "STREAM.INFO", "STREAM.CREATE", "STREAM.MSG.GET", "DIRECT.GET"


def test_a_leader_that_is_killed_loses_nothing(program: Program) -> None:
    """Three servers over TLS; the leader of the space is killed; mail that was sent meanwhile arrives, each once.

    Another space is on the same servers, with machines and mail of its own."""
    servers = Servers(program, 3)
    ops = (
        "engine",
        "config",
        "--into",
        servers.home,
        "--space",
        "ops",
        "--machine",
        "south",
        "--machine",
        "far",
        "--json",
    )
    apart = program.call(*ops).json["join"]
    with servers.running():
        pair = joined(servers, program)
        _are_apart(pair, apart)
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
            pair.ok(machine, "roster", "register", "--session-id", who)
        sent = [pair.send("north", "--from", "ann", "--to", "ben", "--body", "before")]
        doctor = *DOCTOR, servers.home / "system", "--dir", program.scratch / "south"
        order = servers.order("north")
        info = order.stream_info()
        assert info["config"]["num_replicas"] == 3
        with pair.serving("south"):
            until(lambda: pair.program.run(*doctor).rc == 0)
        order.close()
        servers.nodes[info["cluster"]["leader"]].kill()
        sent += [pair.send("north", "--from", "ann", "--to", "ben", "--body", "after")]
        with pair.serving("north"), pair.serving("south"):
            until(lambda: pair.ok("north", "engine", "status")["queued"] == 0)
            until(lambda: len(pair.lines("south", LOG)) == len(sent))
        assert pair.seen("south", "ben") == ["before", "after"]
        assert [json.loads(line)["id"] for line in pair.lines("south", LOG)] == sent
        result = program.run(*doctor)
        assert result.rc == 3
        assert f"server does not answer: {info['cluster']['leader']}" in result.stdout


def _are_apart(pair: Pair, joins: Sequence[str]) -> None:
    """Join the machines of another space, of which one is named as one of the first; send, and look."""
    program = pair.program
    first = pair.ok("north", "engine", "status")["records"]
    boxes = [program.scratch / f"ops-{n}" for n in range(len(joins))]
    for box, command, who in zip(boxes, joins, ("cem", "dan"), strict=True):
        program.call("init", box)
        result = program.call(*command.split()[1:], "--dir", box)
        assert result.rc == 0, result
        program.call("roster", "register", "--session-id", who, "--dir", box)
    assert program.call("send", "--from", "dan", "--to", "cem", "--body", "in ops", "--dir", boxes[1]).rc == 0
    assert program.call("engine", "join", "--dir", boxes[0]).rc == 0, "it takes in what is there"
    (seen,) = program.call("check", "--session", "cem", "--dir", boxes[0], "--json").json["messages"]
    assert seen["content"] == "in ops"
    assert pair.ok("north", "engine", "status")["records"] == first


@contextmanager
def _interfering(server: int) -> Iterator[int]:
    """A way to the server on which somebody adds a word to its first, before TLS begins; the port."""

    def move(source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def serve() -> None:
        client, _ = listener.accept()
        with client, socket.create_connection(("127.0.0.1", server)) as there:
            client.sendall(there.makefile("rb", 0).readline() + b"-ERR 'said by nobody'\r\n")
            back = threading.Thread(target=move, args=(there, client), daemon=True)
            back.start()
            move(client, there)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(PATIENCE)


def test_a_machine_speaks_for_itself_alone(program: Program) -> None:
    """A machine's credential lets it neither publish as another machine, nor hear its answers, nor remove anything.
    Somebody without a credential cannot speak in the server's name."""
    servers = Servers(program, 1)
    with servers.running():
        pair = joined(servers, program)
        pair.ok("north", "roster", "register", "--session-id", "ann")
        with pytest.raises(Refused, match="Permissions Violation"):
            servers.order("south", "north").append_lines(ROSTER, [b"forged"])
        with pytest.raises(Refused, match="Permissions Violation"):
            servers.order("south", "north").ship_file("0" * 64, b"forged")
        order = servers.order("north")
        order.ship_file("0" * 64, b"its own")
        assert list(servers.order("south").fetch_copies("0" * 64)) == [b"its own"]
        config = order.stream_info()["config"]
        authority = str(servers.home / "authority.pem")
        for call in ("PURGE", "DELETE", "UPDATE", "MSG.DELETE"):
            asked = Publication(f"{API}STREAM.{call}.MBX_{SPACE}", json.dumps(config).encode())
            with pytest.raises(Refused, match="Permissions Violation"):
                order.connection.ask_each([asked])
        keeper = open_nats(servers.written["url"], SPACE, "north", str(servers.home / "keeper"), authority, PATIENCE)
        keeper.remove_records([order.last_position() + 1])  # it may, and there is none
        position = order.append_lines(ROSTER, [b"to be removed", b"the last"]) - 1
        keeper.remove_through(ROSTER, position)
        assert [one.line for one in order.of_log(ROSTER)] == [b"the last"]
        with pytest.raises(Refused, match="Permissions Violation"):
            keeper.append_lines(ROSTER, [b"forged"])
        for subject in ("_INBOX.south.>", "_INBOX.>", ">"):
            order.connection.listen_on(subject)
            with pytest.raises(Refused, match="Permissions Violation"):
                order.connection.has_heard(PATIENCE)
        answer = order.connection.ask_each(
            [Publication(f"{API}STREAM.CREATE.MBX_{SPACE}", json.dumps({**config, "max_msgs": 1}).encode())]
        )[0]
        assert b"different configuration" in answer.data
        last = order.last_position()
        order.close()
        with _interfering(urlsplit(servers.written["url"]).port or 0) as port:
            word = str(servers.home / "machines/north")
            other = open_nats(f"tls://127.0.0.1:{port}", SPACE, "north", word, authority, PATIENCE)
            assert other.last_position() == last
            other.close()
        found = program.run(*DOCTOR, servers.home / "machines" / "north", "--dir", program.scratch / "north")
        assert 'Permissions Violation for Publish to "$SYS' in found.stdout
        unknown = program.scratch / "unknown.pem"
        for found_there, said, hint in (
            (None, "CERTIFICATE_VERIFY_FAILED", "names the CA certificate that signed the server's"),
            (b"no certificate", "authority's certificate cannot be read", "--authority FILE` names another"),
        ):
            unknown.write_bytes(found_there or b"")
            far = open_nats(
                *(servers.written["url"], SPACE, "north", str(servers.home / "machines/north")),
                None if found_there is None else str(unknown),
            )
            with pytest.raises(NoServer, match=said) as refusal:
                far.last_position()
            assert hint in refusal.value.hint


def _put_back_old_files(home: Path) -> None:
    """The files as an earlier version wrote them."""

    def word(name: str) -> str:
        return (home / name).read_text().split()[1]

    calls = ", ".join(f'"$JS.API.{call}.{kind}_team"' for kind in ("MBX", "MBXF") for call in OLD_CALLS)
    users = (OLD_USER.format(machine=one, word=word(f"machines/{one}"), calls=calls) for one in MACHINES)
    configuration = home / "1" / "server.conf"
    text = configuration.read_text()
    text = text[: text.index("  SYSTEM {")]
    text += OLD.format(system=word("system"), keeper=word("keeper"), machines=",\n".join(users))
    configuration.write_text(text)


def test_files_of_an_earlier_version_are_written_again(program: Program) -> None:
    """A machine can write as another one if the servers run by files of an earlier version. Each command then names the
    next command, and mail waits. Files that are written again serve what was there. They refuse a machine that was
    removed."""
    servers = Servers(program, 1)
    with servers.running():
        pair = joined(servers, program)
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
            pair.ok(machine, "roster", "register", "--session-id", who)
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "before")
    _put_back_old_files(servers.home)
    said = "servers run by files of an earlier version, with which a machine may write as another and remove mail"
    with servers.running():
        sent = program.call(
            "send", "--from", "ann", "--to", "ben", "--body", "meanwhile", "--dir", program.scratch / "north"
        )
        assert sent.stdout.startswith("queued "), sent
        assert said in pair.ok("north", "engine", "status")["trouble"]
        (told, *_) = program.call("engine", "doctor", "--json", "--dir", program.scratch / "north").json["problems"]
        assert told.startswith(said)
        again = program.call(*servers.written["join"][0].split()[1:], "--dir", program.scratch / "north")
        assert (again.rc, said in again.stderr) == (4, True), again
    command = shlex.split(told.split("`")[1].replace("DIR", str(servers.home)))
    assert program.call(*command[1:], "--json").json == servers.written
    with servers.running():
        until(servers.is_ready)
        assert pair.ok("south", "engine", "status")["trouble"] == ""
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "after")
        with pair.serving("south"):
            until(lambda: len(pair.lines("south", LOG)) == 3)
        assert pair.seen("south", "ben") == ["before", "meanwhile", "after"]
    copied = servers.home / "machines" / "copied"
    shutil.copy(servers.home / "machines" / "south", copied)
    assert program.call(*command[1:], "--remove", "south").rc == 0
    with servers.running():
        until(servers.is_ready)
        with pytest.raises(Refused, match="Authorization Violation"):
            servers.order("south", "copied").last_position()


def test_a_server_that_may_lose_mail_is_named(program: Program) -> None:
    """One that syncs every two minutes, as it does by default."""
    servers = Servers(program, 1)
    configuration = servers.home / "1" / "server.conf"
    configuration.write_text(configuration.read_text().replace(", sync_interval: always", ""))
    with servers.running():
        pair = joined(servers, program)
        with pair.serving("north"):
            found = program.run(*DOCTOR, servers.home / "system", "--json", "--dir", program.scratch / "north")
    assert (found.rc, found.json["notes"]) == (3, [])
    (said,) = found.json["problems"]
    assert said == (
        "server acknowledges what a power failure loses; write `sync_interval: always` in its configuration: team-1"
    )


def test_the_doctor_names_a_server_that_is_old_full_behind_or_away() -> None:
    """An old version, another clock, a full disk, a copy that is away or behind, and a space that is kept once. A
    server without a limit, or without room of its own, is not full."""
    good = {"version": "2.15.1", "now": "2026-11-23T19:48:06.76Z", "jetstream": {"config": {"sync_always": True}}}
    now = 1795463286.9
    judged = space_checks._of_one
    assert list(judged(good, now)) == []
    assert list(judged({**good, "version": "2.9.10"}, now)) == ["server is too old, 2.9.10"]
    for ahead, told in ((60, -61), (2.2, -3), (2.0, None), (-2.8, None), (-3.0, 2), (-60, 59)):  # it cuts its seconds
        said = [] if told is None else [f"server's clock differs by {told} s"]
        assert list(judged(good, now + ahead)) == said, ahead
    for room, taken in ((100, 90), (0, 0), (0, 5), (-1, 5), (100, 91), (100, 120)):
        full = {"config": {"sync_always": True, "max_storage": room}, "stats": {"storage": taken}}
        told = [f"server has little room left, {taken} of {room} bytes are taken"] if taken > 90 else []
        assert list(judged({**good, "jetstream": full}, now)) == told, (room, taken)
    copies = [{"name": "b", "current": False, "lag": 7}, {"name": "c", "offline": True, "current": False}]
    info = {"config": {"num_replicas": 1}, "cluster": {"name": "team", "replicas": copies, "leader": "a"}}
    kept_once, behind, away = space_checks.of_copies(info)
    assert "kept by one server" in kept_once
    assert (behind, away) == ("server is behind: b by 7 records", "server is away: c")
    assert [*space_checks.of_copies({"cluster": {"replicas": [{"name": "b"}]}})] == ["server is behind: b by 0 records"]
    del info["cluster"]["leader"]
    assert [said.partition(",")[0] for said in space_checks.of_copies(info)][1] == "no server leads the space"
