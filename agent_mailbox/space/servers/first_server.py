"""The first of several servers that answers: one that is dark costs a part of a second, not a whole time-out.

Belongs here: taking an address apart, opening connections side by side, as RFC 8305 does with addresses; and reading a
credential, or making one. A server is there when it has said something: a stopped one is connected to, and says
nothing.
"""

from __future__ import annotations

import _socket as socket  # ``socket`` itself makes enums, which costs 9 ms
import os
import select

from ...errors import BadData, Refused
from ...store.files import system
from ...store.files.small_files import read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Place = tuple[str, int]
    """A host and a port, or the path of a socket and any number."""

HEAD_START = 0.03
"""Seconds that a server has before the next one is tried beside it."""


def split_address(url: str) -> tuple[str, str, str, str]:
    """Return the parts of a URL: its scheme, who connects, where to, and what follows."""
    scheme, _, rest = url.partition("://")
    end = min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    who, _, where = rest[:end].rpartition("@")
    return scheme.lower(), who, where, rest[end:]


def connect_first(places: Sequence[Place], silent: float, word: bytes = b"") -> tuple[Place, socket.socket]:
    """Return the place that answered first, and the connection; raise ``OSError`` if none gives a sign for so long.

    ``word``: has a server that does not speak first answer."""
    waiting = sorted(places, key=lambda _: system.urandom(4))  # so that the clients of a cluster spread
    trouble: OSError = TimeoutError("no answer in time")
    asked: dict[int, tuple[Place, socket.socket]] = {}
    states, connected = select.poll(), set[int]()
    begun, deadline = 0.0, system.monotonic() + silent
    try:
        while waiting or asked:
            now = system.monotonic()
            if now >= deadline:
                raise TimeoutError("no answer in time")
            if waiting and (now - begun >= HEAD_START or not asked):
                place, begun = waiting.pop(), now
                try:
                    for one in _begin_connecting(place):
                        asked[one.fileno()] = place, one
                        states.register(one.fileno(), select.POLLOUT)
                except OSError as error:
                    trouble = error
                    continue
            until = min(deadline, begun + HEAD_START) if waiting else deadline
            for number, _ in states.poll(max(until - now, 0) * 1000 + 1):
                place, found = asked[number]
                try:
                    if number not in connected:  # it is now, or refused, which is told next
                        connected.add(number)
                        states.modify(number, select.POLLIN)
                        deadline = system.monotonic() + silent
                        if word:
                            found.send(word)
                    elif found.recv(1, socket.MSG_PEEK):
                        found.setblocking(True)
                        del asked[number]  # which stays open
                        return place, found
                    else:
                        raise ConnectionResetError("the server closed the connection")
                except OSError as error:
                    states.unregister(number)
                    connected.discard(number)
                    asked.pop(number)[1].close()
                    trouble, begun = error, 0.0
    finally:
        for _, one in asked.values():
            one.close()
    raise trouble


def _begin_connecting(place: Place) -> Iterator[socket.socket]:
    """Yield a connection for each of its addresses, none of which may stand yet; raise ``OSError`` if one cannot be
    tried. Those of IPv4 come first: a kernel may be without IPv6, and files name ``localhost`` there all the same."""
    if place[0].startswith("/"):
        ways: list[tuple[int, Any]] = [(socket.AF_UNIX, place[0])]
    else:
        host = place[0].encode() if place[0].isascii() else place[0]  # the codec of other names is a large module
        ways = sorted((one[0], one[4]) for one in socket.getaddrinfo(host, place[1], 0, socket.SOCK_STREAM))
    for family, address in ways:
        one = socket.socket(family)
        one.setblocking(False)
        one.connect_ex(address)
        yield one


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


def read_or_make_password(path: str, user: str, is_known: bool = False) -> str:
    """Return the password in a credential, which ends with ``user`` and that; make it if there is none."""
    made = read_or_make_file(path, lambda: f"{user}{system.urandom(32).hex()}\n".encode(), is_known)
    text = " ".join(made.decode("utf-8", "replace").split())
    word = text.removeprefix(user)
    if word == text or not word.isalnum():
        raise BadData(f"credential has another form: {path}", "put back what it was")
    return word


def read_or_make_file(path: str, make: Callable[[], bytes], is_known: bool = False) -> bytes:
    """Return a file's content; make it if there is none. ``is_known``: others rely on what it was."""
    found = read_file(path)
    if found is None and is_known:
        raise Refused(f"secret of the cluster is not there: {path}", "put it back, or `--remove` its machine first")
    if found is None:
        found = make()
        system.make_directory(system.dirname(path))
        replace_file(path, found)
    return found
