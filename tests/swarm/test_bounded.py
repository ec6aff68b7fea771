"""A gateway that strangers lean on: its places, its time, its memory and its words are bounded."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING, Any

import h2.connection
import h2.settings
import pytest
from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from agent_mailbox.swarm import gateway_process, listener, server
from agent_mailbox.swarm.gateway_log import MOST, SparingLogFilter
from agent_mailbox.swarm.listener import Listener
from agent_mailbox.swarm.protocol import wire
from agent_mailbox.swarm.protocol.limits import CROWDED, FULL, MAX_MEMBERS_KNOWN, Acquaintances, Room
from tests.helpers import PATIENCE, until
from tests.night import NIGHT
from tests.ports import free_port
from tests.swarm import quic
from tests.swarm.test_refusals import Scene
from tests.swarm.wirework import Person, crowd, is_let_in, memory, numbers, post, secured, told

if TYPE_CHECKING:
    from tests.swarm.conftest import Make

linux = pytest.mark.skipif(sys.platform != "linux", reason="has one address of loopback alone")


# -- places ------------------------------------------------------------------------------------------------------------


def test_a_room_gives_each_its_share_and_keeps_some_for_members() -> None:
    """Strangers share three quarters; a proxy that speaks for many has no share of its own; who leaves makes room."""
    members = Acquaintances()
    room = Room(1, 1, members)
    room.set_limits(8, 3, frozenset({"proxy"}))
    assert [room.take_place("a") for _ in range(4)] == ["", "", "", CROWDED]
    assert [room.take_place("b") for _ in range(4)] == ["", "", "", CROWDED]
    assert room.take_place("c") == FULL
    members.add_address("c")
    assert room.take_place("c") == ""
    assert [room.take_place("proxy") for _ in range(2)] == ["", FULL]
    room.give_back_place("a")
    assert (room.take_place("c"), room.taken) == ("", 8)


def test_the_list_of_known_addresses_is_bounded() -> None:
    """A full list of acquaintances forgets the one that was not heard of for longest."""
    members = Acquaintances()
    for number in range(MAX_MEMBERS_KNOWN):
        members.add_address(f"m{number}")
    members.add_address("m0")
    members.add_address("new")
    assert ("m0" in members, "m1" in members, "new" in members) == (True, False, True)


@linux
def test_one_address_that_opens_a_thousand_connections_keeps_nobody_out(machine: Make) -> None:
    """It gets its share; the others cost an accept, and standard error a few lines that say how many there were."""
    alpha = machine("alpha", connections_per_address=8).serve()
    with crowd(alpha.port, 1000):
        assert is_let_in(alpha, "127.0.0.1")
        found = until(lambda: (n := numbers(alpha))['connections_refused_total{reason="crowded"}'] >= 992 and n)
        assert found["connections"] <= 9
    log = told(alpha)
    assert sum(line["event"] == "connection_refused" for line in log) == MOST
    assert len((alpha.scratch / "gateway.log").read_bytes()) < 10_000


@linux
def test_a_member_gets_in_while_strangers_fill_the_room(machine: Make) -> None:
    """An address that a verified message came from has places that strangers never get."""
    scene = Scene(machine("alpha", connections=16, connections_per_address=4).serve())
    assert scene.line.post("message", scene.say()).status_code == 200
    scene.line.client.close()
    until(lambda: numbers(scene.alpha)["connections"] == 0)
    with crowd(scene.alpha.port, 4, "127.0.0.2"), crowd(scene.alpha.port, 4, "127.0.0.3"):
        with crowd(scene.alpha.port, 4, "127.0.0.4"):
            until(lambda: numbers(scene.alpha)["connections"] == 12)
            assert not is_let_in(scene.alpha, "127.0.0.5")
            assert is_let_in(scene.alpha, "127.0.0.1")
        until(lambda: is_let_in(scene.alpha, "127.0.0.5"))


def test_behind_a_proxy_it_is_the_client_that_is_counted() -> None:
    """Requests at once: one client's are bounded, another's and the proxy's own connections are not."""
    room, waiting = Room(100, 2, Acquaintances()), asyncio.Event()

    async def app(*_: Any) -> None:
        await waiting.wait()

    async def scene() -> None:
        bounded = server.BoundedServer(app, room, lambda request: request.headers["x-forwarded-for"])

        def ask(client: str) -> tuple[list[Any], asyncio.Task[None]]:
            said: list[Any] = []

            async def send(message: Any) -> None:
                said.append(message)

            headers = [(b"x-forwarded-for", client.encode())]
            scope = {"type": "http", "path": "/swarm/message", "headers": headers, "method": "POST"}
            return said, asyncio.create_task(bounded(scope, asyncio.Event().wait, send))

        asked = [ask(client) for client in ("a", "a", "a", "b")]
        await asked[2][1]
        waiting.set()
        await asyncio.gather(*(task for _, task in asked))
        statuses = [said[0]["status"] if said else None for said, _ in asked]
        assert statuses == [None, None, 429, None]
        assert room.taken == 0

    asyncio.run(asyncio.wait_for(scene(), PATIENCE))


def test_more_descriptors_than_the_system_gives_are_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soft limit is raised as far as it goes; connections leave descriptors for the files."""
    given = [(256, 1000)]
    monkeypatch.setattr(gateway_process.resource, "getrlimit", lambda _: given[-1])
    monkeypatch.setattr(gateway_process.resource, "setrlimit", lambda _, limits: given.append(limits))
    assert gateway_process._raise_descriptor_limit(2000) == 1000 - gateway_process.SPARE
    assert given[-1] == (1000, 1000)


# -- time --------------------------------------------------------------------------------------------------------------


async def _served(app: Any, meet: Any) -> None:
    """Serve an application in the clear while somebody meets it."""
    sock = socket.create_server(("127.0.0.1", 0))
    config = gateway_process._server_config()
    config.graceful_timeout = 0.1
    config.keep_alive_timeout = config.read_timeout = 2 * PATIENCE  # no idle time ends what the test waits for
    room = Room(10, 10, Acquaintances())
    serving = asyncio.create_task(
        Listener(server.BoundedServer(app, room, lambda _: ""), config, room).serve_socket(sock)
    )
    try:
        line = await asyncio.open_connection(*sock.getsockname())
        while not room.taken:
            await asyncio.sleep(0.01)
        await asyncio.wait_for(meet(*line), PATIENCE)
        while room.taken:  # a place is given back with the last of its tasks
            await asyncio.sleep(0.01)
    finally:
        serving.cancel()
        await asyncio.wait([serving])


def _answers(size: int) -> Any:
    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(size // 65536 + 1):
            await send({"type": "http.response.body", "body": b"x" * min(size, 65536), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app


def test_an_http2_window_of_nothing_holds_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that allows no byte of the answer loses the connection after the time for writing. Nothing else that the
    peer sends helps it."""
    monkeypatch.setattr(server, "WRITING", 0.2)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = h2.connection.H2Connection()
        peer.initiate_connection()
        peer.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        headers = {":method": "GET", ":scheme": "http", ":authority": "localhost", ":path": "/swarm/info"}
        peer.send_headers(1, list(headers.items()), end_stream=True)
        writer.write(peer.data_to_send())
        try:
            while data := await reader.read(65536):
                peer.receive_data(data)
                peer.ping(b"12345678")
                writer.write(peer.data_to_send())
        except ConnectionError:
            pass

    asyncio.run(asyncio.wait_for(_served(_answers(100), meet), PATIENCE))


def test_who_reads_nothing_of_an_answer_loses_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same below HTTP: buffers that nobody empties."""
    monkeypatch.setattr(listener, "WRITING", 0.2)
    monkeypatch.setattr(listener, "SWEEP", 0.05)

    asked = asyncio.Event()

    async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()
        writer.write(b"GET /swarm/info HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asked.wait()  # and then holds on, while it is let go

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await _answers(16 << 20)(scope, receive, send)

    asyncio.run(asyncio.wait_for(_served(app, meet), PATIENCE))


def test_who_hangs_up_gives_its_place_back() -> None:
    """A peer that hangs up gives its place back at once, not after the idle time. Otherwise the peers of thirty seconds
    would take every place."""

    async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    asyncio.run(asyncio.wait_for(_served(_answers(100), meet), PATIENCE))


# -- memory and words --------------------------------------------------------------------------------------------------


MIB = 32.0 if NIGHT else 8.0
"""What the memory may grow by: the parts of 100,000 connections that stayed would be gigabytes."""


@linux
def test_connections_leave_nothing_behind(machine: Make) -> None:
    """The memory of a gateway is flat over connections with TLS (125 KB each stayed without the collector)."""
    alpha = machine("alpha").serve()

    def come(times: int) -> float:
        for _ in range(times):
            secured(alpha).close()
        until(lambda: numbers(alpha)["connections"] == 0)  # on a busy machine the last ones are still at work
        assert alpha.gateway is not None
        return memory(alpha.gateway.pid)

    before = come(1000 if NIGHT else 60)
    assert come(100_000 if NIGHT else 150) - before < MIB


@linux
def test_a_day_of_messages_by_new_connections_leaves_the_messages(machine: Make) -> None:
    """Ten peers, a message a minute each, every one by a connection of its own (at night a whole day of it)."""
    scene = Scene(machine("alpha").serve())
    peers = [Person(f"p{number}") for number in range(10)]
    for peer in peers:
        assert scene.line.post("join", peer.joining(scene.token())).status_code == 200

    def minutes(count: int) -> float:
        for _ in range(count):
            for peer in peers:
                assert post(scene.alpha, wire.dump_json(peer.envelope(scene.swarm, "alpha")).encode()) == 200
        assert scene.alpha.gateway is not None
        return memory(scene.alpha.gateway.pid)

    before = minutes(60 if NIGHT else 3)
    assert minutes(1440 if NIGHT else 7) - before < MIB
    assert len(scene.alpha.received()) == (15_000 if NIGHT else 100)


@linux
def test_a_first_packet_of_quic_takes_no_place(machine: Make) -> None:
    """Its address may be invented: it is answered by a retry, costs nothing, and keeps nobody out."""
    port = free_port()
    alpha = machine("alpha", connections_per_address=4).serve("--quic-bind", f"127.0.0.1:{port}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE)
        for _ in range(20):
            configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
            first = QuicConnection(configuration=configuration)
            first.connect(("127.0.0.1", port), now=0.0)
            sock.sendto(first.datagrams_to_send(now=0.0)[0][0], ("127.0.0.1", port))
            assert len(sock.recv(2048)) < 200
        assert numbers(alpha)["connections"] == 0
        assert quic.ask(alpha, port, [("GET", "/swarm/health", b"")])[0][0] == 200


def test_each_kind_of_line_has_its_number_a_minute() -> None:
    """The rest is counted, and the next line says so; other kinds are not touched."""
    import logging

    clock = [0.0]
    sparing = SparingLogFilter(lambda: clock[0])

    def passes(event: str) -> logging.LogRecord | None:
        record = logging.LogRecord("agent_mailbox.swarm", logging.INFO, "", 0, event, (), None)
        return record if sparing.filter(record) else None

    assert sum(passes("refused") is not None for _ in range(MOST + 500)) == MOST
    assert passes("serving") is not None
    clock[0] = 61.0
    later = passes("refused")
    assert later is not None
    assert later.__dict__["suppressed"] == 500
