"""The console's server: the listening socket, the launch link, the shutdown.

Belongs here: from ``agent-mailbox console`` to a running server, and how long a request may take to arrive. The link
reaches only the person: on the terminal, or by a private file in the browser. It never appears in a log, nor in a
command line, which every local user can list.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..core.text import visible_text
from ..errors import MailboxError, Refused, StorageFailed
from ..store.files.small_files import make_file
from .consoles import Consoles, Hint, own_host
from .guard import LINK_SECONDS, LOOPBACK, AllowedHosts

MAX_CONNECTIONS = 256
_OPENER = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>agent-mailbox</title>'
)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket (``port`` 0: any free one); raises ``Refused``."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.create_server((host, port), family=family, backlog=64)
    except (OSError, ValueError) as error:  # ValueError: no name of a host can be spelt so
        number = getattr(error, "errno", None)
        is_named_so = isinstance(error, (socket.gaierror, ValueError)) or number == errno.EADDRNOTAVAIL
        reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
        raise Refused(
            f"cannot listen on {host} port {port}: {reason}",
            "choose an address of this machine with --host ADDR; without it, it is 127.0.0.1"
            if is_named_so
            else "choose another port with --port N; --port 0 picks a free one",
        ) from None
    return made


class _Inert(logging.Formatter):
    """Escapes what an exception quotes: it may be mail, and this goes to a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible_text(super().format(record))


def log_to_stderr() -> None:
    """Write unexpected errors to standard error with their traceback. Refused connections are no errors: whoever opens
    many could push the link out of the person's sight."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Inert())
    for name in ("uvicorn", __package__):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.ERROR)
        logger.propagate = False


class TimelyConnection(H11Protocol):
    """A connection whose every request must be there within ``seconds``: 256 that bring none would keep everyone out.

    uvicorn has no such limit. It ends waiting only between a connection's first byte and a request's last; a stream or
    a slow answer is none of its business."""

    seconds = 10.0

    _due: asyncio.TimerHandle | None = None

    # uvicorn's own method takes a Transport where asyncio's says BaseTransport
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._set_timer(True)

    def data_received(self, data: bytes) -> None:
        """Take bytes; wait on if they end amid a request."""
        super().data_received(data)
        state = self.conn.their_state
        self._set_timer(state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0])))

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(False)
        super().connection_lost(exc)

    def _set_timer(self, is_amid: bool) -> None:
        if self._due is not None and not is_amid:
            self._due.cancel()
            self._due = None
        elif self._due is None and is_amid:
            self._due = self.loop.call_later(self.seconds, self.transport.close)


class _Ending(uvicorn.Server):
    """Closes the streams of open pages before it waits for connections, which they would keep open."""

    def __init__(self, config: uvicorn.Config, consoles: Consoles) -> None:
        super().__init__(config)
        self._consoles = consoles

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._consoles.close_streams()
        await super().shutdown(sockets)


class Server:
    """A console that listens at a host, by its socket. ``hint_for``: what completes the commands in texts about a
    mailbox."""

    def __init__(
        self, directory: str, host: str, listening: socket.socket, origin: str, hint_for: Callable[[str], Hint]
    ) -> None:
        self._socket = listening
        self.port: int = listening.getsockname()[1]
        own = "" if origin or host != LOOPBACK else own_host(directory)
        hosts = AllowedHosts(host, self.port, origin, own)
        self._consoles = Consoles(directory, hosts, hint_for, own)
        self.console = self._consoles.first
        self.fallback = f"http://{_host_in_url(host)}:{self.port}/"
        self.url = f"{origin}/" if origin else f"http://{own}:{self.port}/" if own else self.fallback
        config = uvicorn.Config(
            self._consoles, log_config=None, access_log=False, server_header=False, date_header=False, ws="none",
            lifespan="on", proxy_headers=False, limit_concurrency=MAX_CONNECTIONS, timeout_graceful_shutdown=1,
            http=TimelyConnection, loop="asyncio",
        )  # fmt: skip
        self._server = _Ending(config, self._consoles)

    def new_link(self) -> str:
        """Return a new launch link, valid once within ``LINK_SECONDS``. Its token is in the fragment, which no browser
        sends."""
        return f"{self.url}#token={self.console.gate.new_link_token()}"

    def tell_link(self, link: str) -> str:
        """Return the lines that show a launch link. The second is for a browser that does not know our host name."""
        if self.url == self.fallback or self.console.hosts.is_secure:
            return f"{link}\n"
        other = f"{self.fallback}{link.removeprefix(self.url)}"
        return f"{link}\nfor a browser that does not know that name: {other}\n"

    def serve_until_signal(self) -> None:
        _handle_signal(signal.SIGHUP, self._server.handle_exit)  # as uvicorn does with the two others
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass  # Ctrl+C
        finally:
            self._socket.close()


def _host_in_url(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return LOOPBACK if host == "0.0.0.0" else "[::1]"
    return f"[{host}]" if ":" in host else host


def end_in_order() -> None:
    """Make SIGTERM and SIGHUP end the process as cleanly as Ctrl+C. (uvicorn shuts down, then raises the signal
    again.)"""

    def interrupt_server(*_: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        _handle_signal(number, interrupt_server)


def _handle_signal(number: int, act: Callable[[int, FrameType | None], None]) -> None:
    """Have a signal do that, unless it is ignored, as ``nohup`` has it."""
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, act)


def ask_for_links(server: Server, say: Callable[[str], None]) -> None:
    """Print another link for each Enter at a terminal: for a second browser, or after the first expired."""
    if sys.stdin is None or not sys.stdin.isatty():
        return

    def print_links() -> None:
        with suppress(OSError, MailboxError):  # the terminal is gone
            for _ in sys.stdin:
                say(server.tell_link(server.new_link()))

    threading.Thread(target=print_links, name="links", daemon=True).start()


@contextmanager
def open_in_browser(link: str) -> Iterator[None]:
    """Open the link in the person's browser, through a file that only they can read. It exists during the ``with``
    block, at most until the link expires. Raises ``Refused`` if no browser is found, ``StorageFailed``."""
    try:
        directory = tempfile.mkdtemp(prefix="agent-mailbox-", dir=os.environ.get("XDG_RUNTIME_DIR") or None)
    except OSError as error:
        raise StorageFailed(
            f"cannot write the file with the link: {error.strerror}", "run `agent-mailbox console` without --open"
        ) from None
    path = os.path.join(directory, "open.html")
    timer = threading.Timer(LINK_SECONDS, shutil.rmtree, (directory, True))
    timer.daemon = True
    try:
        page = f'{_OPENER}<meta http-equiv="refresh" content="0;url={link}"><a href="{link}">Open it</a>'
        make_file(path, page.encode())
        timer.start()
        if not webbrowser.open(f"file://{path}"):
            raise Refused("no browser was found", "run `agent-mailbox console` without --open, and follow its link")
        yield
    finally:
        timer.cancel()
        shutil.rmtree(directory, ignore_errors=True)
