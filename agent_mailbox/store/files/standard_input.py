"""Read what another process writes to us: standard input, to its end, whoever made it non-blocking.

Belongs here: waiting for the next bytes. Node, Bun and ssh hand on a pipe whose read may say "nothing yet". That is
not the end. All of this program reads standard input here.
"""

from __future__ import annotations

import sys

from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WAITING = 0x541B if sys.platform == "linux" else 0x4004667F  # FIONREAD; where it is another, poll(2) tells
PART = 1 << 16


def holds_bytes(fd: int) -> bool:
    """Return whether bytes are there now. False at the end, too, and if the system does not tell."""
    try:
        return system.ioctl(fd, _WAITING, b"\0\0\0\0") != b"\0\0\0\0"
    except OSError:
        return False


def read_part(fd: int, most: int = PART, seconds: float | None = None) -> bytes | None:
    """Return the next bytes, empty at the end; None if none came within ``seconds`` (None: wait for ever)."""
    while True:
        if seconds is not None and not holds_bytes(fd) and not wait_for(fd, seconds):
            return None
        try:
            return system.read(fd, most)
        except BlockingIOError:  # another process that holds the pipe may have taken what was there
            if seconds is None:
                wait_for(fd)


def wait_for(fd: int, seconds: float | None = None) -> bool:
    """Wait until a read would tell something; return whether it would, after at most ``seconds``."""
    return bool(system.readable([fd], seconds))


def read_all(most: int) -> bytes:
    """Return standard input up to its end, or its first ``most`` bytes. Raise ``ValueError`` if it is closed."""
    fd = input_descriptor()
    if fd is None:
        return bytes(sys.stdin.buffer.read(most))
    found = bytearray()
    while len(found) < most and (part := read_part(fd, min(most - len(found), PART))):
        found += part
    return bytes(found)


def possible_objects(most: int, seconds: float, then: int | None = None) -> Iterator[bytes]:
    """Yield standard input up to each place where its JSON object may end, and at last the whole of it.

    It ends, too, where nothing came for ``seconds``. ``then``: a descriptor that has the rest. An object may end where
    nothing more is there now. A long text must have doubled in between: to look at it takes as long as the text is.
    """
    fd, found, looked = input_descriptor(), bytearray(), 0
    if fd is None:
        found += sys.stdin.buffer.read(most + 1)
    while fd is not None and len(found) <= most:
        part = read_part(fd, seconds=seconds)
        if part:
            found += part
        elif then is None or fd == then:
            break
        else:
            del found[-1:]  # the newline behind what the shell wrote down
            fd = then
        may_be_whole = found[-2:].rstrip().endswith(b"}") and not holds_bytes(fd)
        if may_be_whole and (len(found) <= PART or len(found) >= 2 * looked):
            looked = len(found)
            yield bytes(found)
    yield bytes(found)


def input_descriptor() -> int | None:
    """Return the descriptor of standard input; None within tests. Raise ``ValueError`` if it is closed."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):  # not a real file
        return None
