"""The first of several servers that answers: one that is dark costs a part of a second, not a whole time-out.

Belongs here: opening connections side by side, as RFC 8305 does with addresses, and reading a credential. A server is
there when it has said something: a stopped one is connected to, and says nothing. NATS speaks first; another server is
asked for a word.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD_START = 0.03
"""Seconds that a server has before the next one is tried beside it."""


def connect_first(
    places: Sequence[tuple[str, int]], silent: float, word: bytes = b""
) -> tuple[tuple[str, int], socket.socket]:
    """Return the place that answered first, and the connection; raise ``OSError`` if none gives a sign for so long.

    A place is a host and a port, or the path of a socket. ``word``: has a server that does not speak first answer. The
    order is drawn by lot, so that the clients of a cluster spread."""
    waiting = random.sample(places, len(places))
    trouble: OSError = TimeoutError("no answer in time")
    with selectors.DefaultSelector() as open_ones:
        try:
            begun, deadline = 0.0, time.monotonic() + silent
            while waiting or open_ones.get_map():
                now = time.monotonic()
                if now >= deadline:
                    raise TimeoutError("no answer in time")
                if waiting and (now - begun >= HEAD_START or not open_ones.get_map()):
                    place, begun = waiting.pop(), now
                    try:
                        _begin_connecting(open_ones, place)
                    except OSError as error:
                        trouble = error
                        continue
                until = min(deadline, begun + HEAD_START) if waiting else deadline
                for key, event in open_ones.select(max(until - now, 0)):
                    place, found = key.data
                    if event & selectors.EVENT_WRITE:  # it is connected, or refused, which is read next
                        if word:
                            with suppress(OSError):
                                found.send(word)
                        open_ones.modify(found, selectors.EVENT_READ, key.data)
                        deadline = time.monotonic() + silent
                        continue
                    open_ones.unregister(found)
                    try:
                        return place, _require_answer(found)
                    except OSError as error:
                        trouble, begun = error, 0.0
        finally:
            for key in [*open_ones.get_map().values()]:
                key.data[1].close()
    raise trouble


def _begin_connecting(open_ones: selectors.BaseSelector, place: tuple[str, int]) -> None:
    if place[0].startswith("/"):
        ways: list[tuple[int, Any]] = [(socket.AF_UNIX, place[0])]
    else:
        ways = [(one[0], one[4]) for one in socket.getaddrinfo(*place, type=socket.SOCK_STREAM)]
    for family, address in ways:
        one = socket.socket(family)
        one.setblocking(False)
        one.connect_ex(address)
        open_ones.register(one, selectors.EVENT_WRITE, (place, one))


def _require_answer(one: socket.socket) -> socket.socket:
    """Return the connection, which has something to read; raise ``OSError`` if that is an error or its end."""
    try:
        if not one.recv(1, socket.MSG_PEEK):
            raise ConnectionResetError("the server closed the connection")
        one.setblocking(True)
    except OSError:
        one.close()
        raise
    return one


def read_credential(path: str) -> str:
    """Return the text of a credential's file; raise ``Refused`` if it cannot be read, or if others could read it."""
    try:
        mode = os.stat(path).st_mode
        with open(path, encoding="utf-8") as file:
            text = file.read(1 << 16)
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"credential cannot be read: {path}: {error}", "name another file") from None
    if mode & 0o077:
        raise Refused(f"credential is open to others: {path}", f"run `chmod 600 {path}`")
    return text
