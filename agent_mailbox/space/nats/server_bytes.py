"""The bytes that a NATS server sends, taken from its socket in lines and pieces.

Belongs here: that, within a time limit and a bound on the size. Must not know what they say (``connection``).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..order import hurry

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

LINE = 64 << 10
"""Bytes of the longest line of the protocol that a server may send."""
_AT_ONCE = 64 << 10
"""Bytes that are received at once. With TLS a few come: room made again for each time costs more than they."""


class ServerBytes:
    """The bytes that come from one socket. A ``deadline`` is a time of ``time.monotonic``.

    ``ask_word`` has a server that lives say something. A caller in a hurry waits for ``hurry.WORDS`` of
    these, and not beyond, until a piece comes."""

    def __init__(self, source: socket.socket, ask_word: Callable[[], None]) -> None:
        self.source = source
        self._ask_word = ask_word
        self._room = memoryview(bytearray(_AT_ONCE))
        self._bytes = b""
        self._place = 0
        self._words = 0

    def read_line(self, deadline: float) -> bytes:
        """Return the next line without its end; raise ``OSError`` if none comes in time, or one without an end."""
        while (end := self._bytes.find(b"\r\n", self._place)) < 0:
            if len(self._bytes) - self._place > LINE:
                raise OSError("the server sends a line without an end")
            self._bytes = self._bytes[self._place :] + self._receive_some(deadline)
            self._place = 0
        found = self._bytes[self._place : end]
        self._place = end + 2
        return found

    def read_bytes(self, size: int, deadline: float) -> bytes:
        """Return the next ``size`` bytes; raise ``OSError`` if they do not come in time."""
        self._words = 0
        end = self._place + size
        if end <= len(self._bytes):
            found = self._bytes[self._place : end]
            self._place = end
            return found
        whole = bytearray(self._bytes[self._place :])
        while len(whole) < size:
            whole += self._receive_some(deadline)
        self._bytes, self._place = bytes(whole[size:]), 0
        return bytes(whole[:size])

    def _receive_some(self, deadline: float) -> bytes:
        is_hurried = may_ask = hurry.is_hurried()
        while (left := deadline - time.monotonic()) > 0:
            silent = hurry.QUIET if may_ask else hurry.WORD
            self.source.settimeout(min(left, silent) if is_hurried else left)
            try:
                count = self.source.recv_into(self._room)
            except TimeoutError:
                if not may_ask:
                    break
                if self._words == hurry.WORDS:
                    raise TimeoutError("the server speaks, and does not answer") from None
                may_ask = False
                self._words += 1
                self._ask_word()
                continue
            if not count:
                raise OSError("the server closed the connection")
            return bytes(self._room[:count])
        raise TimeoutError("no answer in time")
