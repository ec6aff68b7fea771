"""Whether a PostgreSQL server says a word: libpq waits two seconds for one that is dark, and for a query without end.

Belongs here: asking for one byte, by the request for TLS, of all hosts of a URL side by side. A server answers that
before it asks who connects.
"""

from __future__ import annotations

import selectors
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from urllib.parse import SplitResult

ASK_FOR_TLS = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
"""The message ``SSLRequest`` of PostgreSQL's protocol."""
PORT = "5432"


def is_silent(conninfo: Mapping[str, object], seconds: float) -> bool:
    """Return whether no server of a connection's words gives a sign for so long, once it is connected.

    One that refuses speaks, and so does one of which the words do not tell where it is: libpq knows more."""
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as open_ones:
        try:
            for family, address in _addresses(conninfo):
                one = socket.socket(family)
                one.setblocking(False)
                one.connect_ex(address)
                open_ones.register(one, selectors.EVENT_WRITE)
            is_asked = bool(open_ones.get_map())
            while open_ones.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, event in open_ones.select(left):
                    found: socket.socket = key.fileobj  # type: ignore[assignment] # it is a socket of ours
                    if not event & selectors.EVENT_WRITE:
                        return False
                    found.send(ASK_FOR_TLS)
                    deadline = time.monotonic() + seconds
                    open_ones.modify(found, selectors.EVENT_READ)
            return is_asked
        except OSError:
            return False
        finally:
            for key in [*open_ones.get_map().values()]:
                key.fileobj.close()  # type: ignore[union-attr] # likewise


def words_in(url: SplitResult) -> dict[str, object]:
    """Return where the servers of a URL are, if it says that as a usual one does; else nothing: libpq reads the rest.

    This costs no import of the library, which takes longer than a dark server may."""
    there = url.netloc.rpartition("@")[2]
    if not there or {*"[%"} & {*there} or any(word in url.query for word in ("host", "port", "service")):
        return {}
    places = [one.rpartition(":") for one in there.split(",")]
    hosts = [host if colon else port for host, colon, port in places]
    return {"host": ",".join(hosts), "port": ",".join(port if colon else "" for _, colon, port in places)}


def _addresses(conninfo: Mapping[str, object]) -> Iterator[tuple[int, tuple[object, ...] | str]]:
    hosts = str(conninfo.get("hostaddr") or conninfo.get("host") or "").split(",")
    ports = str(conninfo.get("port") or "").split(",")
    for place, host in enumerate(hosts):
        port = (ports[place] if len(ports) == len(hosts) else ports[0]) or PORT
        if host.startswith("/"):
            yield socket.AF_UNIX, f"{host}/.s.PGSQL.{port}"
        elif host:
            for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                yield family, address
