"""Ports of loopback for servers that are told theirs: nobody takes one between our look and the server's start.

They are below those that the kernel gives to whoever connects, and each of pytest's workers has its own. Another run
beside this one, as ``scripts/bare`` is in CI, has the same: so each process begins elsewhere among them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket

_BEGIN, _MANY = 20_000, 1_500
"""The first port of the first worker, and how many ports a worker has."""
_ROWS, _LONG = 12_000, 100
"""The same for rows of ports, which lie below."""
_PORTS, _FIRSTS = (
    itertools.islice(itertools.cycle(numbers), os.getpid() % len(numbers), None)
    for numbers in (range(_MANY), range(0, _LONG - 3, 3))
)


def _worker() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])


def free_port() -> int:
    """A port nobody listens at now, and that no other test is given."""
    first = _BEGIN + _MANY * _worker()
    return next(first + port for port in itertools.islice(_PORTS, _MANY) if _are_free(first + port))


def free_row(beside: int) -> int:
    """The first of three such ports, where those that lie ``beside`` them are free as well."""
    first = _ROWS + _LONG * _worker()
    rows = (first + port for port in itertools.islice(_FIRSTS, _LONG))
    return next(row for row in rows if _are_free(*(row + there + n for there in (0, beside) for n in range(3))))


def _are_free(*ports: int) -> bool:
    with contextlib.ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
