"""The gateway's process: both applications, the writer and the carrier, until told to stop.

Belongs here: wiring, the sockets, signals, what a reload changes. Hypercorn serves HTTP/1.1 and HTTP/2 (``listener``),
and HTTP/3 if aioquic is installed and a QUIC address is given (``quic_listener``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any

from hypercorn.config import Config

from ..core.records import Record
from ..errors import MailboxError, Refused
from ..mailbox.mailbox import Mailbox
from ..store.files.small_files import replace_file
from ..upkeep import extras
from . import boxes, gateway_log, local, pairing, server
from . import home as names
from . import swarm_settings as configured
from .carrier import Carrier
from .gateway import Gateway
from .gateway_log import log_event
from .home import Home
from .listener import Certificates, Listener
from .local import LocalWaker, secret_in
from .outbox import Outbox
from .peer_client import Peers
from .protocol.limits import Acquaintances, Room
from .readiness import GatewayMetrics, Readiness
from .statuses import AllStatuses, Statuses
from .swarm_settings import GatewaySettings

GRACE = 2.0
"""Seconds that requests under way have after a stop; a connection that does not close is waited for as long."""
REQUESTS = 2
"""Requests at once, for each connection that there may be."""
SPARE = 128
"""Descriptors left to everything that is no connection of a peer."""
LOCAL = 64
"""Connections to the local API."""
BACKLOG = 1024
"""Connections that wait to be accepted: many who connect at once must not keep members from the queue."""


class Listening(Record):
    """Addresses to listen at. ``bind``, ``quic_bind`` (HTTP/3): HOST:PORT. ``cert``, ``key``: PEM files; without them a
    proxy in front does TLS. ``api``: HOST:PORT of the local API, with a token, in place of its Unix socket."""

    bind: str
    cert: str | None = None
    key: str | None = None
    quic_bind: str | None = None
    api: str | None = None
    behind_proxy: bool = False
    log_level: str = "info"


def is_loopback(bind: str) -> bool:
    """Return whether HOST:PORT is an address of this machine alone."""
    host = bind.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _split_address(address: str) -> tuple[socket.AddressFamily, str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise Refused(f"listening address invalid: {address!r}", "write HOST:PORT, as in 0.0.0.0:8443 or [::]:8443")
    return socket.AF_INET6 if ":" in host else socket.AF_INET, host.strip("[]"), int(port)


def bind_socket(address: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> tuple[socket.socket, str]:
    """Return (a socket at HOST:PORT, its actual address); one of streams listens. Port 0 takes a free one."""
    family, host, port = _split_address(address)
    sock = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((host, port))
        if kind == socket.SOCK_STREAM:
            sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise Refused(
            f"cannot listen at {address}: {error.strerror}",
            "end the program that listens there, or choose another HOST:PORT to which the endpoint leads",
        ) from None
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
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise Refused(f"cannot listen at {path}: {error.strerror or error}", "pass `--api 127.0.0.1:PORT`") from None
    finally:
        os.umask(before)
    return sock


def check_listening(listening: Listening) -> None:
    """Raise ``Refused`` if this would serve other machines unencrypted, or give them the local API."""
    if (listening.cert is None) != (listening.key is None):
        raise Refused(
            f"TLS file missing: {'--key' if listening.key is None else '--cert'}",
            "pass `--cert FILE` and `--key FILE` together",
        )
    if listening.cert is None and not listening.behind_proxy and not is_loopback(listening.bind):
        raise Refused(
            f"listening address needs TLS: {listening.bind}",
            "pass `--cert FILE` and `--key FILE`, `--self-signed`, or `--behind-proxy` if a proxy does TLS",
        )
    if listening.quic_bind is not None and (listening.cert is None or find_spec("aioquic") is None):
        raise Refused(
            f"HTTP/3 needs a certificate and aioquic: {listening.quic_bind}",
            f"pass `--cert FILE` and `--key FILE`, and run `{extras.command_to_add('http3')}`",
        )
    if listening.api is not None and not is_loopback(listening.api):
        raise Refused(f"local API address is not loopback: {listening.api}", "pass `--api 127.0.0.1:PORT`, or none")


def _server_config() -> Config:
    """Return the settings all sides share: limits on slow peers, and no log of requests."""
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.keep_alive_timeout = 30
    config.keep_alive_max_requests = 10_000
    config.read_timeout = 30
    config.graceful_timeout = GRACE
    config.h11_max_incomplete_size = 32 * 1024
    config.h2_max_concurrent_streams = 64
    config.h2_max_header_list_size = 32 * 1024
    config.h2_max_inbound_frame_size = 2**14
    return config


def api_token(home: Home) -> str:
    """Return the token of the local API on loopback: created once, 0600."""
    path = home.path_of("local.token")
    if not os.path.exists(path):
        replace_file(path, os.urandom(32).hex().encode() + b"\n")
    return secret_in(path, "the token") or ""


def _raise_descriptor_limit(wanted: int) -> int:
    """Return how many connections the system allows of those ``wanted``, having asked it for more if need be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted + SPARE:
        soft = wanted + SPARE if hard == resource.RLIM_INFINITY else min(hard, wanted + SPARE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(8, min(wanted, soft - SPARE))


class GatewayProcess:
    """A gateway's parts while they run."""

    def __init__(self, mailbox: Mailbox, home: Home, settings: GatewaySettings) -> None:
        ledger = boxes.ledger_of(home)
        ledger.identified_knowledge()
        ledger.write_state()
        self._home, self._directory, self._places = home, mailbox.directory, [mailbox.directory]
        outboxes, carried, shown = self._open_mailboxes()
        for outbox in outboxes:
            with boxes.apart(outbox.mailbox, "outbox_not_swept"):
                outbox.queue_announcements()  # before the gateway reads the mailbox
        opened = [outbox.mailbox for outbox in outboxes]
        self.gateway = Gateway(opened, ledger, outboxes[0], settings)
        self.waker = LocalWaker(settings)
        self.carrier = Carrier(ledger, carried, Peers(settings), settings)
        self.readiness = Readiness(opened, ledger, self.gateway.unread)
        self.carrier.looked = self._look_at_mailboxes
        self.statuses = AllStatuses(shown)
        self.members = Acquaintances()
        self.connections = Room(1, 1, self.members)
        self.requests = Room(1, 1, self.members)
        self._resize_rooms(settings)
        self.meter = GatewayMetrics(self.gateway, self.carrier, self.readiness, self.connections)
        self.gateway.outcome = self._note_outcome

    def _open_mailboxes(self) -> tuple[list[Outbox], list[Outbox], list[Statuses]]:
        """Open the mailboxes that are there for the gateway, for the carrier and for the local API: each has threads of
        its own. One that goes meanwhile is looked for once more."""
        places = boxes.places_there(self._home, self._directory)
        for place in {*pairing.mailboxes_of(self._home)} - {*map(os.path.realpath, places)}:
            log_event(logging.WARNING, "mailbox_not_there", mailbox=place, code=boxes.why_away(self._home, place))
        ours, carried, shown = (boxes.open_boxes(self._home, places) for _ in range(3))
        is_whole = len(ours) == len(carried) == len(shown) == len(places)
        self._places = places if is_whole or not self._places else []  # not with every look: it costs connections
        statuses = [Statuses(self._home, one) for one, _ in shown]
        return [Outbox(*box) for box in ours], [Outbox(*box) for box in carried], statuses

    def _look_at_mailboxes(self) -> None:
        """Go on with other mailboxes if the person attached or detached one, or one came back."""
        if boxes.places_there(self._home, self._directory) != self._places:
            self.reload_settings()

    def _resize_rooms(self, settings: GatewaySettings) -> None:
        total, each = _raise_descriptor_limit(settings.connections), settings.connections_per_address
        shared = frozenset(settings.trusted_proxies)
        self.connections.set_limits(total, each, shared)
        self.requests.set_limits(REQUESTS * total, REQUESTS * each, frozenset())

    def _note_outcome(self, code: str) -> None:
        self.meter.count_batch(code)
        self.readiness.note_outcome(code)

    def reload_settings(self) -> None:
        """Go on by the configuration as it is now, or as before if that is wrong."""
        try:
            ours, carried, shown = self._open_mailboxes()
            opened = [outbox.mailbox for outbox in ours]
            fresh = Mailbox(self._directory)
            settings = configured.sound_settings(fresh.config, fresh.own)
            peers = Peers(settings)
            self.waker.apply_settings(settings)
            self.gateway.apply_settings(settings, opened)
        except (MailboxError, OSError, ValueError) as error:
            log_event(logging.ERROR, "reload_failed", error=str(error))
            return
        self._resize_rooms(settings)
        self.carrier.apply_settings(settings, carried, peers)
        self.readiness.mailboxes = opened
        self.statuses.each = shown
        log_event(logging.INFO, "reloaded")

    def public_application(self) -> Any:
        """Return the application that peers see."""
        app = server.public_application(self.gateway, self.readiness, self.members)
        bounded = server.BoundedServer(app, self.requests, partial(server.address_of, self.gateway))
        bounded.counted = self.meter.count_request
        return bounded

    def local_application(self, token: str | None) -> Any:
        app = local.local_application(self.statuses, self.meter, self.readiness, token, self.waker)
        return server.BoundedServer(app, Room(REQUESTS * LOCAL, REQUESTS * LOCAL, Acquaintances()), lambda _: "")


async def run_gateway(mailbox: Mailbox, home: Home, listening: Listening, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; reload after SIGHUP. Call ``ready`` with the address once everything listens."""
    gateway_log.start_log(listening.log_level)
    serving = GatewayProcess(mailbox, home, configured.settings_of(mailbox.config, mailbox.own))
    config = _server_config()
    config.certfile, config.keyfile = listening.cert, listening.key
    tls = None if listening.cert is None else Certificates(config)
    sock, address = bind_socket(listening.bind)
    api = bind_socket(listening.api)[0] if listening.api else bound_here(home.path_of(names.SOCKET))
    token = api_token(home) if listening.api else None
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    # cutting idle connections makes the server's own tasks fail: no news
    loop.set_exception_handler(lambda loop, what: None if stop.is_set() else gateway_log.on_loop(loop, what))
    gateway, waker = serving.gateway, serving.waker
    gateway.arrived = lambda messages: waker.note_arrival(loop, messages)
    gateway.heard = serving.carrier.hear_from

    def reload_all() -> None:
        serving.reload_settings()
        if tls is not None:
            tls.reload_files()

    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    loop.add_signal_handler(signal.SIGHUP, reload_all)
    public = Listener(serving.public_application(), config, serving.connections, tls)
    public.refused = serving.meter.count_refused
    beside = Listener(serving.local_application(token), _server_config(), Room(LOCAL, LOCAL, Acquaintances()))
    listeners = [public.serve_socket(sock), beside.serve_socket(api), *_quic_servers(listening, config, serving, tls)]
    parts = [*listeners, gateway.write_forever(), serving.carrier.carry_forever(), waker.wake_forever(), stop.wait()]
    tasks = [asyncio.ensure_future(part) for part in parts]
    ready(address)
    log_event(logging.INFO, "serving", address=address, connections=serving.connections.total)
    try:
        await _wait_for_first(tasks)
    finally:
        stop.set()
        log_event(logging.INFO, "stopping")
        await _wait_until_ended(tasks[: len(listeners)], GRACE + 0.5)
        await _wait_until_ended(tasks[len(listeners) :], GRACE)
        await serving.carrier.peers.aclose()


def _quic_servers(
    listening: Listening, config: Config, serving: GatewayProcess, tls: Certificates | None
) -> list[Coroutine[Any, Any, None]]:
    if listening.quic_bind is None or tls is None:
        return []
    from . import quic_listener

    sock, _ = bind_socket(listening.quic_bind, socket.SOCK_DGRAM)
    sock.setblocking(False)
    # browsers and peers learn of HTTP/3 by this header alone
    config.alt_svc_headers = [f'h3=":{sock.getsockname()[1]}"; ma=3600']
    return [quic_listener.serve_http3(serving.public_application(), config, serving.connections, tls, sock)]


async def _wait_for_first(parts: Sequence[asyncio.Future[Any]]) -> None:
    """Wait until told to stop, or a part of the gateway breaks: half a gateway would take mail it does not keep."""
    done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _wait_until_ended(tasks: Sequence[asyncio.Future[Any]], seconds: float) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)
