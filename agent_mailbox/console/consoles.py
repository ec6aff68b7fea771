"""The consoles of all the person's mailboxes, in one process behind one port: each has a host name of its own.

Belongs here: which console answers a request, its host's name, opening another one, and the way to it. Only the console
of the mailbox that the command was started for is open from the beginning.

The name of a host tells the mailbox, so a page's addresses, its cookie and its permissions are that mailbox's alone. A
browser takes every name below ``localhost`` for this machine. Behind a proxy, or at an address of the network, there is
one name: then the others are named, and have no link.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from ..errors import MailboxError
from ..mailbox.mailbox import Mailbox
from ..store.files.small_files import read_file, replace_file
from . import presenters
from .all_mailboxes import AllMailboxes, OneMailbox
from .app import ConsoleApp
from .guard import ENTRANCE, LOOPBACK, AllowedHosts
from .live import Event

Hint = Callable[[str], str]

PATH = "/mailbox"
"""The address that leads on to another mailbox's page."""
_OWN_HOST = re.compile(rb"[a-z0-9-]{1,40}-[0-9a-f]{10}\.localhost")


class Consoles:
    """All of them. ``hosts`` are the first one's, and ``own`` its own host name. Without such a name all have one.
    ``hint_for`` gives what completes the commands in texts about a mailbox."""

    def __init__(self, directory: str, hosts: AllowedHosts, hint_for: Callable[[str], Hint], own: str) -> None:
        self._hosts = hosts
        self._hint_for = hint_for
        self._have_names = bool(own)
        self.first = ConsoleApp(directory, hosts, hint_for(directory), self)
        self.mailboxes = AllMailboxes(self.first.place, self._tell_pages)
        self._open: dict[str, ConsoleApp] = {self.first.place: self.first}
        self._host_names = {self.first.place: own}
        self._opening = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the console that the Host header names; the first one answers to every other name."""
        if scope["type"] == "lifespan":
            self.mailboxes.start_looking()
            try:
                await self.first.app(scope, receive, send)
            finally:
                self.mailboxes.stop_looking()
                for console in [*self._open.values()][1:]:
                    console.stop_serving()
            return
        hosts = [value for name, value in scope["headers"] if name == b"host"] if scope["type"] == "http" else []
        try:
            console = await self._console_at(hosts[0].decode("latin-1")) if len(hosts) == 1 else self.first
        except (MailboxError, OSError):
            await PlainTextResponse("this mailbox cannot be opened now\n", 503)(scope, receive, send)
            return
        await console.app(scope, receive, send)

    async def _console_at(self, header: str) -> ConsoleApp:
        host = header.lower().rpartition(":")[0]
        is_own = self._have_names and host.endswith(".localhost") and not self._hosts.is_allowed(header)
        named = await run_in_threadpool(self._mailbox_of, host) if is_own else None
        return self.first if named is None else await self._opened(named)

    def _mailbox_of(self, host: str) -> str | None:
        """Return the mailbox whose host name it is; None if it is no mailbox's."""
        listed = (one.directory for one in self.mailboxes.listed)
        return next((directory for directory in listed if self._host_of(directory) == host), None)

    def _host_of(self, directory: str) -> str:
        if directory not in self._host_names:
            self._host_names[directory] = own_host(directory)
        return self._host_names[directory]

    async def _opened(self, directory: str) -> ConsoleApp:
        if directory not in self._open:
            async with self._opening:
                if directory not in self._open:
                    loop = asyncio.get_running_loop()
                    self._open[directory] = await run_in_threadpool(self._make_console, directory, loop)
        return self._open[directory]

    def _make_console(self, directory: str, loop: asyncio.AbstractEventLoop) -> ConsoleApp:
        hosts = AllowedHosts(LOOPBACK, self._hosts.port, own=self._host_of(directory))
        console = ConsoleApp(directory, hosts, self._hint_for(directory), self)
        if console.desk.is_cold():
            console.prepare_index(lambda _: None)
        else:
            console.desk.warm_caches()
        console.start_serving(loop)
        return console

    # -- what the pages show of the others ----------------------------------------------------------------------------

    def describe_others(self, here: str) -> dict[str, Any]:
        """Return what a page of one mailbox shows of all, and of what waits in the others; nothing if it is alone."""
        listed = self.mailboxes.listed
        others = [one for one in listed if one.directory != here]
        return {
            "mailboxes": [(one, self._link_to(one, here)) for one in listed] if others else [],
            "elsewhere": [
                (key, f"{one.name}: {words}", self._link_to(one, here, page))
                for one in others
                for key, words, page in one.calls
            ],
            "decisions_elsewhere": sum(one.decisions or 0 for one in others),
        }

    def _link_to(self, one: OneMailbox, here: str, page: str = "/") -> str:
        if one.directory == here:
            return page
        return presenters.page_link(PATH, to=one.key, next=page) if self._have_names else ""

    async def find_way(self, key: str, page: str) -> str | None:
        """Return the address at which another mailbox's console takes this browser in; None if there is none.

        It has a token, as the link that the command prints. Only a signed-in browser asks for it."""
        one = self.mailboxes.find(key)
        if one is None or not self._have_names:
            return None
        console = await self._opened(one.directory)
        entrance = presenters.page_link(ENTRANCE, next=page)
        return (
            f"http://{self._host_of(one.directory)}:{self._hosts.port}{entrance}#token={console.gate.new_way_token()}"
        )

    # -- news ---------------------------------------------------------------------------------------------------------

    def _tell_pages(self, changed: set[str]) -> None:
        for place, console in [*self._open.items()]:
            if changed - {place}:  # its own news it tells itself
                console.hub.tell_pages([Event("elsewhere")])

    def close_streams(self) -> None:
        """Close the streams of all open pages."""
        for console in self._open.values():
            console.hub.close_streams()


def own_host(directory: str) -> str:
    """Return the host name that only this mailbox's console has, so that its cookie goes to no other server here.

    Browsers take every name below ``localhost`` for this machine (RFC 6761). They keep permissions and looks by it, so
    it stays the same. It cannot be guessed: an agent's server at that name would get the cookie."""
    mailbox = Mailbox(directory)
    record = mailbox.logs.custody
    path = None if record is None else record.path("console-host")
    kept = (read_file(path) if path else None) or b""
    if _OWN_HOST.fullmatch(kept):
        return kept.decode()
    project = re.sub(r"[^a-z0-9]+", "-", os.path.basename(os.path.dirname(mailbox.directory)).lower()).strip("-")[:24]
    made = f"{project.strip('-') or 'mailbox'}-{secrets.token_hex(5)}.localhost"
    try:
        if path:
            replace_file(path, made.encode())
    except MailboxError:
        pass  # it has another one at its next start
    return made
