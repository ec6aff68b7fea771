"""Serving: the listening socket, the launch link, the end.

Belongs here: from ``agent-mailbox console`` to a running server. The link goes where the person is, and nowhere else:
to the terminal, or through a private file to the browser. It never stands in a command's words, which every user of the
machine can list, nor in a log.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from ..errors import Refused, StorageFailed
from .app import Console
from .gate import LINK_SECONDS
from .guard import AllowedHosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .live import Hub

MAX_CONNECTIONS = 256
_OPENER = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>agent-mailbox</title>'
)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there (``port`` 0: any that is free); raises ``Refused``."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.create_server((host, port), family=family, backlog=64)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Refused(
            f"cannot listen on {host} port {port}: {reason}", "--port N takes another; --port 0 any that is free"
        ) from None
    return made


class _Ending(uvicorn.Server):
    """Lets the streams of open pages go before it waits for connections to end: they do not by themselves."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)


class Server:
    """A console that listens."""

    def __init__(self, directory: str, host: str, port: int) -> None:
        self._socket = listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.console = Console(directory, AllowedHosts(host, self.port))
        self.url = f"http://{_named(host)}:{self.port}/"
        config = uvicorn.Config(
            self.console.app, log_config=None, access_log=False, server_header=False, date_header=False, ws="none",
            lifespan="on", proxy_headers=False, limit_concurrency=MAX_CONNECTIONS, timeout_graceful_shutdown=1,
            http="h11", loop="asyncio",
        )  # fmt: skip
        self._server = _Ending(config, self.console.hub)

    def link(self) -> str:
        """A new launch link, good once and for ``LINK_SECONDS``: the token stands in the fragment, which no browser
        sends anywhere."""
        return f"{self.url}#token={self.console.gate.link()}"

    def run(self) -> None:
        """Serve until the process is told to end."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass  # how a person ends it
        finally:
            self._socket.close()


def _named(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1" if host == "0.0.0.0" else "[::1]"
    return f"[{host}]" if ":" in host else host


def end_in_order() -> None:
    """Have SIGTERM, and the closing of the terminal, end the process as Ctrl+C does, with everything tidied up.
    (uvicorn shuts down at a signal, and raises it again afterwards.)"""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def ask_for_links(server: Server, say: Callable[[str], None]) -> None:
    """At a terminal Enter makes another link: for a second browser, or when the first was too old."""
    if sys.stdin is None or not sys.stdin.isatty():
        return

    def listen() -> None:
        for _ in sys.stdin:
            say(f"{server.link()}\n")

    threading.Thread(target=listen, name="links", daemon=True).start()


@contextmanager
def opened(link: str) -> Iterator[None]:
    """Have the person's browser open the link, by way of a file that only they can read: for a ``with`` block, or until
    the link is void. Raises ``Refused`` where there is no browser, ``StorageFailed``."""
    import webbrowser

    try:
        directory = tempfile.mkdtemp(prefix="agent-mailbox-", dir=os.environ.get("XDG_RUNTIME_DIR") or None)
    except OSError as error:
        raise _cannot_open(error) from None
    path = os.path.join(directory, "open.html")
    timer = threading.Timer(LINK_SECONDS, _remove, (path,))
    timer.daemon = True
    try:
        _write(path, f'{_OPENER}<meta http-equiv="refresh" content="0;url={link}"><a href="{link}">Open it</a>')
        timer.start()
        if not webbrowser.open(f"file://{path}"):
            raise Refused("no browser is known here", "start it without --open, and follow the link")
        yield
    finally:
        timer.cancel()
        _remove(path)


def _write(path: str, text: str) -> None:
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise _cannot_open(error) from None


def _cannot_open(error: OSError) -> StorageFailed:
    return StorageFailed(f"cannot write the opening page: {error.strerror}", "start it without --open")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # it went before
