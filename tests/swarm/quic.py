"""A client that speaks HTTP/3, and nothing else: one connection, request after request (RFC 9114, by aioquic)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aioquic.quic.events import QuicEvent

    from tests.swarm.machine import Machine

Asked = tuple[str, str, bytes]
"""Method, path, body."""


class Client(QuicConnectionProtocol):
    """A connection, with the answers that are not complete yet."""

    _http: H3Connection | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        """Whatever comes."""
        for one in self._h3().handle_event(event):
            self._take(one)

    def _h3(self) -> H3Connection:
        if self._http is None:
            self._http = H3Connection(self._quic)
            self._open: dict[int, tuple[dict[bytes, bytes], bytearray, asyncio.Future[None]]] = {}
        return self._http

    def _take(self, event: H3Event) -> None:
        if isinstance(event, HeadersReceived | DataReceived):
            headers, body, done = self._open[event.stream_id]
            if isinstance(event, HeadersReceived):
                headers.update(event.headers)
            else:
                body += event.data
            if event.stream_ended:
                done.set_result(None)

    async def ask(self, authority: str, asked: Asked) -> tuple[int, dict[bytes, bytes], bytes]:
        """One request; (status, headers, body)."""
        method, path, body = asked
        http, stream = self._h3(), self._quic.get_next_available_stream_id()
        headers: dict[bytes, bytes] = {}
        self._open[stream] = headers, received, done = headers, bytearray(), asyncio.get_running_loop().create_future()
        pseudo = {":method": method, ":scheme": "https", ":authority": authority, ":path": path}
        more = {"content-type": "application/json"} if body else {}
        lines = [(name.encode(), text.encode()) for name, text in {**pseudo, **more}.items()]
        http.send_headers(stream, lines, end_stream=not body)
        if body:
            http.send_data(stream, body, end_stream=True)
        self.transmit()
        await asyncio.wait_for(done, PATIENCE)
        return int(headers[b":status"]), headers, bytes(received)


def ask(machine: Machine, port: int, requests: Sequence[Asked]) -> list[tuple[int, dict[bytes, bytes], bytes]]:
    """The answers of a machine's gateway at a QUIC port, whose certificate is verified."""

    async def run() -> list[tuple[int, dict[bytes, bytes], bytes]]:
        configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
        configuration.load_verify_locations(str(machine.authority.ca))
        async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Client) as client:
            assert isinstance(client, Client)
            return [await client.ask(f"localhost:{port}", one) for one in requests]

    return asyncio.run(asyncio.wait_for(run(), PATIENCE))
