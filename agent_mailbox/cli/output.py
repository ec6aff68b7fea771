"""Write to standard output: everything, flushed, with a time-out.

Belongs here: the meaning of "shown". Mail counts as shown once its reader took it (``store.files.output_reader``). A
reader that takes nothing for two seconds (an open pager) must not block other writers, so the write fails and records
nothing.

A program such as ``head`` takes more than it shows. So mail is written in pieces, each when the one before was taken.
A reader that asks for more has taken the piece before.
"""

from __future__ import annotations

import posix
import sys
import time

from ..errors import MailboxError, StorageFailed
from ..store.files import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE = 2.0
"""Seconds to wait for the reader while holding a lock."""
_CHUNK = 4096  # PIPE_BUF: what poll(2) calls writable takes this much without blocking
_AGAIN = 0.01
"""Seconds until a socket may have room again."""


def write_out(text: str, patience: float | None = None) -> None:
    """Write and flush. Raises ``StorageFailed`` if the reader is gone, ``Busy`` after waiting ``patience`` seconds in
    total for one that does not read (None: wait for ever)."""
    data = text.encode("utf-8", "backslashreplace")
    if sys.stdout is None:
        raise StorageFailed("standard output is closed", "nothing was marked as read; give it an output", code="output")
    fd = _output_descriptor()
    if fd is None:
        sys.stdout.write(text)
        return
    try:
        sys.stdout.flush()
        done = _write_at_once(fd, data)
        if done < len(data):
            _write_pieces_to(fd, data[done:], patience)
    except OSError as error:
        raise StorageFailed(
            f"cannot write the output: {error.strerror}", "nothing was marked as read; run it again", code="output"
        ) from None


def write_taken(text: str, patience: float = PATIENCE) -> None:
    """Write, and return once the reader took everything; raises as ``write_out`` does."""
    until = time.monotonic() + patience
    write_out(text, patience)
    if (error := _why_untaken(max(until - time.monotonic(), 0))) is not None:
        raise error


def write_in_full(text: str, patience: float = PATIENCE) -> MailboxError | None:
    """Write, however long the reader takes. Return why it is unknown that it took everything, and asked for more."""
    error = None
    for part in (text[:-1], text[-1:]):
        write_out(part)
        error = error or _why_untaken(patience)
    return error


def write_pieces(pieces: Sequence[str], patience: float = PATIENCE) -> tuple[int, MailboxError | None]:
    """Write pieces, each once the reader took the one before. Return how many it surely took, and why not all.

    A piece is surely taken if the reader took something of what follows it. Behind the last one that is its newline."""
    from ..store.files import output_reader  # where mail is shown

    fd = _output_descriptor()
    ask = None if fd is None else output_reader.question(fd)
    if fd is None or ask is None:
        write_out("".join(pieces), patience)
        return len(pieces), None
    until = time.monotonic() + patience
    for number, part in enumerate((*pieces[:-1], pieces[-1][:-1], pieces[-1][-1:])):
        try:
            write_out(part, max(until - time.monotonic(), 0))
            left, error = output_reader.await_taken(fd, ask, until)
        except MailboxError as failed:
            left, error = sys.maxsize, failed
        if error is not None:
            is_begun = left < len(part.encode("utf-8", "backslashreplace"))
            return max(number if is_begun else number - 1, 0), error
    return len(pieces), None


def _why_untaken(patience: float) -> MailboxError | None:
    from ..store.files import output_reader

    fd = _output_descriptor()
    return None if fd is None else output_reader.why_untaken(fd, patience)


def _output_descriptor() -> int | None:
    """Return standard output's file descriptor; None if there is no real file."""
    try:
        return None if sys.stdout is None else sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def write_bytes(data: bytes) -> None:
    """Write bytes, as long as it takes; raise ``OSError``. They may be no text: a history, a key."""
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # not a real file
        sys.stdout.buffer.write(data)
        return
    sys.stdout.flush()
    _write_pieces_to(fd, data, None)


def _write_at_once(fd: int, data: bytes) -> int:
    """Write to a pipe without waiting; return the bytes it took, mostly all.

    Uses a descriptor of its own (Linux: proc(5)), because other processes may share the given one.
    """
    if posix.fstat(fd).st_mode & system.S_IFMT != system.S_IFIFO:
        return 0
    try:
        free = posix.open(f"/proc/self/fd/{fd}", posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return posix.write(free, data)
    except BlockingIOError:
        return 0
    finally:
        posix.close(free)


def _write_pieces_to(fd: int, data: bytes, patience: float | None) -> None:
    import select  # costs an eightieth of a bare start; only full pipes and other files need it

    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        while piece:
            before = time.monotonic()
            if not poll.poll(None if patience is None else patience * 1000):
                from ..store.files.output_reader import stalled

                raise stalled()
            if patience is not None:
                patience = max(patience - (time.monotonic() - before), 0)
            try:
                piece = piece[posix.write(fd, piece) :]
            except BlockingIOError:  # a non-blocking socket with room for less
                system.sleep(_AGAIN)
