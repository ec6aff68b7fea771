"""The words of a NATS server: its bytes, taken from the socket in lines and pieces, and the parts of its answers.

Belongs here: a time limit and a bound on the size for the former. Each of the latter has the form that it must have, or
the answer counts for nothing. The server is trusted with the mail, and may be broken, or another program. Then mail
waits, as for one that is out of reach. Must not know what is asked (``connection``).
"""

from __future__ import annotations

import time
from binascii import a2b_base64

from ...core import codec
from ...errors import Unavailable
from ..order import order as orders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

FURTHEST = 1 << 63
"""No position of a stream is as far."""
LINE = 64 << 10
"""Bytes of the longest line of the protocol that a server may send."""
WORDS = 4
"""The most words of a server that a caller in a hurry hears before its answer."""
_AT_ONCE = 64 << 10
"""Bytes that are received at once. With TLS a few come: room made again for each time costs more than they."""
_AT_LEAST = 0.001
"""Seconds: the shortest wait, with TLS, too."""
_CLOSED = "the server closed the connection"


class ServerBytes:
    """The bytes that come from one socket. A ``deadline`` is a time of ``time.monotonic``.

    ``ask_word`` has a server that lives say something. A caller in a hurry waits for ``WORDS`` of these, and
    not beyond, until a piece comes."""

    def __init__(self, source: socket, ask_word: Callable[[], None]) -> None:
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

    def has_more(self) -> bool:
        """Return whether something came that nobody read; raise ``OSError`` if the server closed the connection."""
        if self._place == len(self._bytes):
            self.source.settimeout(_AT_LEAST)
            try:
                count = self.source.recv_into(self._room)
            except TimeoutError:
                return False
            if not count:
                raise OSError(_CLOSED)
            self._bytes, self._place = bytes(self._room[:count]), 0
        return True

    def _receive_some(self, deadline: float) -> bytes:
        is_hurried = may_ask = orders.is_hurried()
        while (left := deadline - time.monotonic()) > 0:
            silent = orders.QUIET if may_ask else orders.WORD
            self.source.settimeout(min(left, silent) if is_hurried else left)
            try:
                count = self.source.recv_into(self._room)
            except TimeoutError:
                if not may_ask:
                    break
                if self._words == WORDS:
                    raise TimeoutError("the server speaks, and does not answer") from None
                may_ask = False
                self._words += 1
                self._ask_word()
                continue
            if not count:
                raise OSError(_CLOSED)
            return bytes(self._room[:count])
        raise TimeoutError("no answer in time")


def header_value(head: bytes, name: bytes) -> bytes:
    """Return the value of a header, as it was spelled; empty if there is none.

    The last one of the name counts: a server adds its own behind those of the publisher, who may use the same names."""
    mark = b"\r\n%s:" % name
    start = head.rfind(mark)
    return b"" if start < 0 else head[start + len(mark) : head.find(b"\r\n", start + 2)].strip()


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object of an answer; raise ``Unavailable`` if it is none."""
    found = codec.parse(data, len(data), ours=False)
    if not isinstance(found, dict):
        raise Unavailable("engine's answer is no JSON object", "is a NATS server there?")
    return found


def object_at(found: dict[str, Any], key: str) -> dict[str, Any]:
    return _part_at(found, key, dict)


def objects_at(found: dict[str, Any], key: str) -> list[dict[str, Any]]:
    objects = _part_at(found, key, list)
    if not all(isinstance(one, dict) for one in objects):
        raise orders.of_another_form()
    return objects


def text_at(found: dict[str, Any], key: str) -> str:
    return _part_at(found, key, str)


def bytes_at(found: dict[str, Any], key: str) -> bytes:
    """Return the bytes that a text within an answer spells; empty if there is none."""
    try:
        return a2b_base64(text_at(found, key))
    except ValueError:
        raise orders.of_another_form() from None


def number_at(found: dict[str, Any], key: str, least: int = 0, nothing: int | None = None) -> int:
    """Return a number within an answer, no less than that; ``nothing`` if there is none and that is a number."""
    number = found.get(key, nothing)
    if type(number) is not int or not least <= number < FURTHEST:
        raise orders.of_another_form()
    return number


def _part_at(found: dict[str, Any], key: str, kind: type[T]) -> T:
    part = found.get(key)
    if part is not None and not isinstance(part, kind):
        raise orders.of_another_form()
    return kind() if part is None else part
