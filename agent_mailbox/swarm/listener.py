"""A listening socket whose connections are counted before they cost anything, and end in any case.

Belongs here: accepting, TLS, the time limits of writing and of life, the end. Hypercorn serves each accepted connection
(``TCPServer``, the part below its own ``serve``, which accepts without limit). A connection that has no place is closed
before TLS begins: it costs an ``accept`` and a ``close``. A renewal of the certificate that is half written, or wrong,
leaves the old one in use.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config

from ..errors import BadData
from .gateway_log import log_event, on_loop
from .protocol.limits import Room, counted_network

Seen = tuple[tuple[int, int, int], ...]
WRITING = 20.0
"""Most seconds in which a peer takes nothing of what is written to it."""
LONGEST = 3600.0
"""Most seconds of a connection's life; one without requests ends by Hypercorn's ``keep_alive_timeout``."""
HANDSHAKE = 10.0
CLOSING = 3.0
SWEEP = 1.0
LATER = 0.5
"""Seconds until the next try where the system has no descriptor left."""
READ_AHEAD = 1 << 16

CUT: ContextVar[Callable[[], None]] = ContextVar("CUT", default=lambda: None)
"""Ends the connection that the present request came by."""


class Certificates:
    """The chain and the key that a server's configuration names: read again, for a new connection, when they change."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.cert, self.key = str(config.certfile), str(config.keyfile)
        self._seen = self._stat_files()
        self.renewals = 0
        try:
            self._context = self._make_context()
        except OSError as error:  # ssl.SSLError is one
            raise BadData(f"certificate or key unusable: {error}", "pass PEM files that belong together") from None

    def _make_context(self) -> ssl.SSLContext:
        made = self._config.create_ssl_context()
        assert made is not None  # both files are named
        return made

    def _stat_files(self) -> Seen | None:
        try:
            found = [os.stat(path) for path in (self.cert, self.key)]
        except OSError:
            return None
        return tuple((one.st_ino, one.st_size, one.st_mtime_ns) for one in found)

    def current_context(self) -> ssl.SSLContext:
        seen = self._stat_files()
        if seen is not None and seen != self._seen:
            self.reload_files()
        return self._context

    def reload_files(self) -> None:
        """Read the files now. If they are unusable, the old ones stay."""
        self._seen = self._stat_files()
        try:
            self._context = self._make_context()
        except OSError as error:
            log_event(logging.WARNING, "certificate_unusable", error=type(error).__name__, certificate=self.cert)
            return
        self.renewals += 1
        log_event(logging.INFO, "certificate_renewed", certificate=self.cert)


class Served:
    """An accepted connection, with what is known of its writing.

    CPython's transport lets go of its TLS at a second close, and raises ``AttributeError`` then. It ends by itself
    within ``CLOSING`` seconds.
    """

    def __init__(self, transport: asyncio.Transport, now: float) -> None:
        self.transport = transport
        self.since = now
        self._waiting = 0
        self._moved = now

    def is_over(self, now: float) -> bool:
        """Return whether its peer stopped taking what is written, or its time is over."""
        waiting = 0
        with suppress(AttributeError):
            waiting = self.transport.get_write_buffer_size()
        if waiting == 0 or waiting < self._waiting:
            self._moved = now
        self._waiting = waiting
        return now - self._moved > WRITING or now - self.since > LONGEST

    def cut_connection(self) -> None:
        """End it at once."""
        with suppress(AttributeError):
            self.transport.abort()


class Connection(TCPServer):
    """Hypercorn's connection, which ends when its peer hung up: the original waits out its idle time first."""

    async def _read_data(self) -> None:
        await super()._read_data()
        await self.idle_task.stop()

    async def _idle_timeout(self) -> None:
        if not self.reader.at_eof():  # a request that ends after its peer hung up starts the idle time again
            await super()._idle_timeout()


class Listener:
    """Serves an application at a socket until told to stop."""

    def __init__(self, app: Any, config: Config, room: Room, tls: Certificates | None = None) -> None:
        self._app = ASGIWrapper(app)
        self._config = config
        self._room = room
        self._tls = tls
        self._context = WorkerContext(None)
        self._served: set[Served] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: Callable[[str], None] = lambda _: None

    async def serve_socket(self, sock: socket.socket) -> None:
        """Accept for ever; when cancelled, let requests under way end within the grace."""
        sweeping = asyncio.create_task(self._sweep_stalled())
        try:
            await self._accept_forever(sock)
        finally:
            sock.close()
            await self._context.terminated.set()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=self._config.graceful_timeout)
            sweeping.cancel()
            for one in self._served:
                one.cut_connection()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept_forever(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        sock.setblocking(False)
        while True:
            try:
                accepted, where = await loop.sock_accept(sock)
            except (ConnectionError, InterruptedError):
                continue  # it was gone before we came to it
            except OSError as error:
                log_event(logging.ERROR, "accept_failed", error=errno.errorcode.get(error.errno or 0, ""))
                await asyncio.sleep(LATER)
                continue
            address = counted_network(where[0], where[0]) if isinstance(where, tuple) else ""
            why = self._room.take_place(address)
            if why:
                accepted.close()
                self.refused(why)
                log_event(logging.WARNING, "connection_refused", why=why, address=address, connections=self._room.taken)
                continue
            task = loop.create_task(self._serve_connection(accepted, address))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve_connection(self, accepted: socket.socket, address: str) -> None:
        """Serve one connection to its end, however it ends."""
        try:
            await self._served_by_hypercorn(accepted)
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # no TLS, or a broken one: anybody may connect and say anything
        except Exception as error:
            on_loop(None, {"exception": error})
        finally:
            accepted.close()
            self._room.give_back_place(address)

    async def _served_by_hypercorn(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(READ_AHEAD, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        tls: dict[str, Any] = {}
        if self._tls is not None:
            tls = {
                "ssl": self._tls.current_context(),
                "ssl_handshake_timeout": HANDSHAKE,
                "ssl_shutdown_timeout": CLOSING,
            }
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, **tls)
        served = Served(transport, loop.time())
        self._served.add(served)
        CUT.set(served.cut_connection)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            await Connection(self._app, loop, self._config, self._context, {}, reader, writer)
        finally:
            self._served.discard(served)
            served.cut_connection()

    async def _sweep_stalled(self) -> None:
        """End the connections whose peers stopped reading."""
        while True:
            await asyncio.sleep(SWEEP)
            now = asyncio.get_running_loop().time()
            for one in [one for one in self._served if one.is_over(now)]:
                log_event(logging.INFO, "connection_cut", seconds=round(now - one.since))
                one.cut_connection()
