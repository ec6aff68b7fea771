"""The sockets that a gateway listens at: HOST:PORT, or a path of its own home.

Belongs here: making them, and saying why one cannot be made.
"""

from __future__ import annotations

import os
import socket
import stat
from ipaddress import ip_address

from ..errors import Refused

BACKLOG = 1024
"""Connections that wait to be accepted: many who connect at once must not keep members from the queue."""


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
        raise Refused(f"cannot listen at {address}: {error.strerror}", "choose another HOST:PORT") from None
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
