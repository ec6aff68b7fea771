"""HTTP/3, bounded as the rest: an address that answers a retry first, places, and an end to each connection.

Belongs here: what Hypercorn's QUIC lacks. It keeps a connection, some 100 KB, for each first packet of anybody, and the
sender of that may be invented. Here the first packet costs nothing: it is answered by a retry (RFC 9000, 8.1), and only
who answers from its address gets a connection. Needs aioquic (extra ``[http3]``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any

from aioquic._buffer import Buffer
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicHeader, QuicPacketType, encode_quic_retry, pull_quic_header
from aioquic.quic.retry import QuicRetryTokenHandler
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import RawData
from hypercorn.protocol.quic import QuicProtocol
from hypercorn.protocol.quic import _Connection as QuicState
from hypercorn.typing import ConnectionState

from .gateway_log import log_event, tell_defect
from .listener import HANDSHAKE, LONGEST, SWEEP, Certificates
from .protocol.limits import Room, counted_network

QUEUE = 256
"""Most datagrams that wait; the rest is lost, as datagrams may be, and sent again."""
FIRST = 1200
"""Least bytes of a datagram that begins a connection (RFC 9000, 14.1)."""
IDLE = 30.0


class KeptConnection:
    """A connection's place: its address, when it began, when it last had a request."""

    def __init__(self, connection: QuicState, address: str, now: float) -> None:
        self.connection = connection
        self.address = address
        self.since = self.used = now

    def is_over(self, now: float) -> bool:
        """Return whether its handshake or its life takes too long, or it has no request for too long."""
        h3 = self.connection.h3
        if h3 is None:
            return now - self.since > HANDSHAKE
        if h3.streams:
            self.used = now
        return now - self.used > IDLE or now - self.since > LONGEST


class BoundedQuic(QuicProtocol):
    """Hypercorn's QUIC with places."""

    def __init__(self, app: Any, config: Config, tasks: TaskGroup, transport: asyncio.DatagramTransport, room: Room):
        async def send(event: Any) -> None:
            transport.sendto(event.data, event.address)

        server = transport.get_extra_info("sockname")[:2]
        super().__init__(ASGIWrapper(app), config, WorkerContext(None), tasks, ConnectionState({}), server, send)
        self.quic_config.idle_timeout = IDLE
        self._room = room
        self._retries = QuicRetryTokenHandler()
        self._kept: dict[int, KeptConnection] = {}

    async def handle(self, event: Any) -> None:
        """Take a datagram: of a known connection as Hypercorn does, a first one only with a place."""
        try:
            header = pull_quic_header(Buffer(data=event.data), host_cid_length=8)
        except ValueError:
            return
        if header.version == 0:
            return  # a negotiation, which two servers could answer each other for ever
        if header.destination_cid not in self.connections and header.version in self.quic_config.supported_versions:
            if header.packet_type != QuicPacketType.INITIAL or len(event.data) < FIRST:
                return
            if not await self._begin_connection(header, event.address):
                return
        await super().handle(event)

    async def _begin_connection(self, header: QuicHeader, where: tuple[str, int]) -> bool:
        """Return whether a connection begins, its address proven and a place taken."""
        now = self.context.time()
        if not header.token:
            await self.send(RawData(data=self._retry_packet(header, where, now), address=where))
            return False
        try:
            first = self._retries.validate_token(
                address=where[:2], destination_cid=header.destination_cid, token=header.token, now=now
            )
        except ValueError:
            return False
        address = counted_network(where[0], where[0])
        if self._room.take_place(address):
            return False
        quic = QuicConnection(
            configuration=self.quic_config,
            original_destination_connection_id=first,
            retry_source_connection_id=header.destination_cid,
        )
        cids = {header.destination_cid, quic.host_cid}
        connection = QuicState(cids=cids, quic=quic, task=self.context.single_task_class())
        self.connections.update(dict.fromkeys(cids, connection))
        self._kept[id(connection)] = KeptConnection(connection, address, now)
        return True

    def _retry_packet(self, header: QuicHeader, where: tuple[str, int], now: float) -> bytes:
        source = os.urandom(8)
        token = self._retries.create_token(
            address=where[:2],
            original_destination_connection_id=header.destination_cid,
            retry_source_connection_id=source,
            now=now,
        )
        return encode_quic_retry(
            version=header.version or 1,
            source_cid=source,
            destination_cid=header.source_cid,
            original_destination_cid=header.destination_cid,
            retry_token=token,
        )

    async def _handle_timer(self, timer: float, connection: QuicState) -> None:
        """Go on as Hypercorn does; a defect ends this connection, not all."""
        try:
            await super()._handle_timer(timer, connection)
        except Exception as error:
            tell_defect("quic_failed", error)
            self._drop_connection(connection)

    async def sweep_connections(self) -> None:
        """End the connections whose time is over; give back the places of those that ended."""
        now = self.context.time()
        for kept in list(self._kept.values()):
            connection = kept.connection
            if connection.cids and kept.is_over(now):
                log_event(logging.INFO, "connection_cut", seconds=round(now - kept.since), protocol="quic")
                connection.quic.close()
                await self.send_all(connection)
                self._drop_connection(connection)
                await connection.task.stop()
            if not connection.cids:
                del self._kept[id(connection)]
                self._room.give_back_place(kept.address)

    def _drop_connection(self, connection: QuicState) -> None:
        for cid in connection.cids:
            self.connections.pop(cid, None)
        connection.cids = set()


class Datagrams(asyncio.DatagramProtocol):
    """Queues what comes in, and loses what is too much."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[RawData] = asyncio.Queue(QUEUE)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if not self.queue.full():
            self.queue.put_nowait(RawData(data=data, address=addr))


async def serve_http3(app: Any, config: Config, room: Room, tls: Certificates, sock: socket.socket) -> None:
    """Serve an application by HTTP/3 at a UDP socket until cancelled."""
    loop = asyncio.get_running_loop()
    transport, datagrams = await loop.create_datagram_endpoint(Datagrams, sock=sock)
    try:
        async with TaskGroup(loop) as tasks:
            quic = BoundedQuic(app, config, tasks, transport, room)
            await asyncio.gather(_receive_datagrams(quic, datagrams.queue), _sweep_forever(quic, tls))
    finally:
        transport.close()


async def _receive_datagrams(quic: BoundedQuic, queue: asyncio.Queue[RawData]) -> None:
    while True:
        event = await queue.get()
        try:
            await quic.handle(event)
        except Exception as error:  # one peer's packet, which must not end all
            tell_defect("quic_failed", error)


async def _sweep_forever(quic: BoundedQuic, tls: Certificates) -> None:
    renewals = tls.renewals
    while True:
        await asyncio.sleep(SWEEP)
        await quic.sweep_connections()
        tls.current_context()
        if tls.renewals != renewals:
            renewals = tls.renewals
            quic.quic_config.load_cert_chain(certfile=tls.cert, keyfile=tls.key)
