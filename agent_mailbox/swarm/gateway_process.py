"""The gateway's process: both applications, the writer and the carrier, until told to stop.

Belongs here: sockets, TLS, wiring. Hypercorn serves HTTP/1.1 and HTTP/2, and HTTP/3 if aioquic is installed and a QUIC
address is given.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import stat
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any

from hypercorn.asyncio import serve as hypercorn
from hypercorn.config import Config

from ..core.records import Record
from ..errors import BadData, Refused
from ..mailbox.facade import Mailbox
from ..store.lock import FileLock
from ..upkeep import extras
from . import home as names
from . import local, server
from . import swarm_settings as configured
from .carrier import Carrier
from .gateway import Gateway
from .home import Home
from .ledger import Ledger
from .outbox import Outbox
from .peer_client import Peers
from .statuses import Statuses
from .wake import Waker, secret_in

GRACE = 2.0
"""Seconds that requests under way have after a stop; a connection that does not close is waited for as long."""


class Listening(Record):
    """Addresses to listen at. ``bind``, ``quic`` (HTTP/3): HOST:PORT. ``cert``, ``key``: PEM files; without them a
    proxy in front does TLS. ``api``: HOST:PORT of the local API, with a token, in place of its Unix socket."""

    bind: str
    cert: str | None = None
    key: str | None = None
    quic: str | None = None
    api: str | None = None
    behind_proxy: bool = False


def check(listening: Listening) -> None:
    """Raise ``Refused`` if this would serve other machines unencrypted, or give them the local API."""
    if (listening.cert is None) != (listening.key is None):
        raise Refused(
            f"TLS file missing: {'--key' if listening.key is None else '--cert'}",
            "pass `--cert FILE` and `--key FILE` together",
        )
    if listening.cert is None and not listening.behind_proxy and not _is_loopback(listening.bind):
        raise Refused(
            f"listening address needs TLS: {listening.bind}",
            "pass `--cert FILE` and `--key FILE`, or `--behind-proxy` if a proxy does TLS",
        )
    if listening.quic and (listening.cert is None or find_spec("aioquic") is None):
        raise Refused(
            f"HTTP/3 needs a certificate and aioquic: {listening.quic}",
            f"pass `--cert FILE` and `--key FILE`, and run `{extras.how('http3')}`",
        )
    if listening.api is not None and not _is_loopback(listening.api):
        raise Refused(f"local API address is not loopback: {listening.api}", "pass `--api 127.0.0.1:PORT`, or none")


def _is_loopback(bind: str) -> bool:
    host = bind.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _config(bind: str, body: int) -> Config:
    """Return the settings both sides share: limits on slow peers, and no log of requests."""
    config = Config()
    config.bind = [bind]
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.keep_alive_timeout = 30
    config.keep_alive_max_requests = 10_000
    config.read_timeout = 30
    config.graceful_timeout = GRACE
    config.shutdown_timeout = GRACE
    config.ssl_handshake_timeout = 10
    config.h11_max_incomplete_size = 32 * 1024
    config.h2_max_concurrent_streams = 64
    config.h2_max_header_list_size = 32 * 1024
    config.h2_max_inbound_frame_size = 2**14
    config.wsgi_max_body_size = body
    return config


def bound(address: str) -> tuple[socket.socket, str]:
    """Return (a socket that listens at HOST:PORT, its actual address); port 0 takes a free one."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise Refused(f"listening address invalid: {address!r}", "write HOST:PORT, as in 0.0.0.0:8443 or [::]:8443")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        sock.bind((host.strip("[]"), int(port)))
        sock.listen(128)
    except OSError as error:
        sock.close()
        raise Refused(f"cannot listen at {address}: {error.strerror}", "choose another HOST:PORT") from None
    name = sock.getsockname()
    return sock, f"[{name[0]}]:{name[1]}" if family == socket.AF_INET6 else f"{name[0]}:{name[1]}"


def bound_here(path: str) -> socket.socket:
    """Return a Unix socket that listens at a path, private to its owner from the start; it replaces a stale one."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
    except FileNotFoundError:
        pass
    try:
        sock.bind(path)
        sock.listen(128)
    except OSError as error:
        sock.close()
        raise Refused(f"cannot listen at {path}: {error.strerror or error}", "pass `--api 127.0.0.1:PORT`") from None
    finally:
        os.umask(before)
    return sock


def api_token(home: Home) -> str:
    """Return the token of the local API on loopback: created once, 0600."""
    path = home.path("local.token")
    if not os.path.exists(path):
        names.write_private(path, os.urandom(32).hex().encode() + b"\n")
    return secret_in(path, "the token") or ""


def _with_tls(config: Config, listening: Listening) -> None:
    """Set certificate, key and QUIC address; raise ``BadData`` if unusable."""
    try:
        config.certfile, config.keyfile = listening.cert, listening.key
        config.quic_bind = [listening.quic] if listening.quic else []
        config.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        raise BadData(f"certificate or key unusable: {error}", "pass PEM files that belong together") from None


async def run(mailbox: Mailbox, home: Home, listening: Listening, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. Call ``ready`` with the address once everything listens."""
    settings = configured.of(mailbox.config, mailbox.own)
    ledger = Ledger(home)
    ledger.identified()
    ledger.write_state()
    outbox = Outbox(home, mailbox, ledger)
    outbox.announce()  # before the gateway reads the mailbox
    gateway = Gateway(mailbox, ledger, outbox, settings)
    waker = Waker(settings)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    # cutting idle connections makes the server's own tasks fail: no news
    loop.set_exception_handler(lambda loop, what: None if stop.is_set() else loop.default_exception_handler(what))
    gateway.arrived = lambda messages: waker.arrived(loop, messages)
    peers = Peers.of(settings)
    # the carrier writes to the mailbox from its own threads, so it has its own mailbox object
    carrier = Carrier(home, ledger, Outbox(home, Mailbox(mailbox.directory), ledger), peers, settings)
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    sock, address = bound(listening.bind)
    config = _config(f"fd://{sock.detach()}", settings.body_bytes)
    _with_tls(config, listening)
    api_sock = bound(listening.api)[0] if listening.api else bound_here(home.path(names.SOCKET))
    api = _config(f"fd://{api_sock.detach()}", settings.body_bytes)
    token = api_token(home) if listening.api else None
    statuses = Statuses(home, Mailbox(mailbox.directory))

    async def triggered() -> None:
        await stop.wait()

    public: Any = server.application(gateway)
    beside: Any = local.application(statuses, carrier, token, waker.secret)
    tasks = [
        hypercorn(public, config, shutdown_trigger=triggered),
        hypercorn(beside, api, shutdown_trigger=triggered),
    ]
    background = [asyncio.create_task(work) for work in (gateway.write(), carrier.run(), waker.run())]
    serving = [asyncio.ensure_future(task) for task in tasks]
    ready(address)
    try:
        await _first(serving, background)
    finally:
        stop.set()
        await asyncio.wait(serving, timeout=GRACE + 0.5)
        for task in serving:
            task.cancel()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await peers.aclose()


async def _first(serving: Sequence[asyncio.Future[None]], background: Sequence[asyncio.Future[None]]) -> None:
    """Wait until the servers end or a part of the gateway breaks: half a gateway would take mail it does not keep."""
    done, _ = await asyncio.wait([*serving, *background], return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


def lock(home: Home, name: str, wait: float = 0.0) -> FileLock:
    """Return the lock by which one gateway serves a home, or one process carries; it raises ``Busy`` after ``wait``
    seconds."""
    return FileLock(home.path(name), wait)
