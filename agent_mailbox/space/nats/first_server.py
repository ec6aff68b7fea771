"""The first of several servers that answers: one that is dark costs a part of a second, not a whole time-out.

Belongs here: opening connections side by side, as RFC 8305 does with addresses. A NATS server speaks first, so a server
is there when it has said something: a stopped one is connected to, and says nothing.
"""

from __future__ import annotations

import random
import selectors
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD_START = 0.03
"""Seconds that a server has before the next one is tried beside it."""


def connect_first(places: Sequence[tuple[str, int]], silent: float) -> tuple[tuple[str, int], socket.socket]:
    """Return the place that answered first, and the connection; raise ``OSError`` if none gives a sign for so long.

    The order is drawn by lot, so that the clients of a cluster spread."""
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
                    found = key.fileobj
                    if event & selectors.EVENT_WRITE:  # it is connected, or refused
                        open_ones.modify(found, selectors.EVENT_READ, key.data)
                        deadline = time.monotonic() + silent
                        continue
                    open_ones.unregister(found)
                    try:
                        return key.data, _require_answer(found)  # type: ignore[arg-type] # it is a socket of ours
                    except OSError as error:
                        trouble, begun = error, 0.0
        finally:
            for key in [*open_ones.get_map().values()]:
                key.fileobj.close()  # type: ignore[union-attr] # likewise
    raise trouble


def _begin_connecting(open_ones: selectors.BaseSelector, place: tuple[str, int]) -> None:
    for family, kind, protocol, _, address in socket.getaddrinfo(*place, type=socket.SOCK_STREAM):
        one = socket.socket(family, kind, protocol)
        one.setblocking(False)
        one.connect_ex(address)
        open_ones.register(one, selectors.EVENT_WRITE, place)


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
