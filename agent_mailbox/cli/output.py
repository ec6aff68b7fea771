"""Write to standard output: everything, flushed, with a time-out; and look whether its reader left.

A program such as ``head`` takes more than it shows. So mail is written in pieces, each when the one before was taken.
A reader that asks for more has taken the piece before.
"""

from __future__ import annotations

import posix
import sys
import time

from ..errors import Busy, MailboxError, StorageFailed
from ..store.files import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

READER_LEFT = "output-left"
"""The code of the error of a pipe whose reader has closed it."""
PATIENCE = 2.0
"""Seconds to wait for the reader while holding a lock."""
_CHUNK = 4096  # PIPE_BUF: what poll(2) calls writable takes this much without blocking
_AGAIN = 0.01
"""Seconds until a socket may have room again."""
_QUESTIONS = {system.S_IFIFO: 0x541B, system.S_IFSOCK: 0x5411}
"""The numbers for ioctl(2), by the kind of file: FIONREAD of a pipe, SIOCOUTQ of a socket (Linux)."""
_PAUSE, _LONGEST = 0.00002, 0.01
"""Seconds between the first two looks, and between two looks at most."""
_AT_ONCE = 8
"""Looks before one whether the reader is gone: most have taken everything by then."""


def write_out(text: str, patience: float | None = None) -> None:
    """Write and flush. Raises ``StorageFailed`` if the reader is gone, ``Busy`` after waiting ``patience`` seconds in
    total for one that does not read (None: wait for ever)."""
    data = text.encode("utf-8", "backslashreplace")
    if sys.stdout is None:
        raise unwritten("standard output is closed")
    fd = _output_descriptor()
    if fd is None:
        sys.stdout.write(text)
        return
    try:
        sys.stdout.flush()
        done = _write_at_once(fd, data)
        if done < len(data):
            write_to(fd, data[done:], patience)
    except OSError as error:
        raise unwritten(f"cannot write the output: {error.strerror}", error) from None


def unwritten(why: str, error: OSError | None = None) -> StorageFailed:
    """Return the error of an output that takes nothing."""
    code = READER_LEFT if isinstance(error, BrokenPipeError) else "output"
    return StorageFailed(why, "nothing was marked as read; repeat it with another output", code=code)


def reader_left() -> StorageFailed:
    """Return the error, without a word, of a reader such as ``head`` that took what it wanted of what is only shown."""
    return StorageFailed("", "", code=READER_LEFT)


def write_taken(text: str, patience: float) -> None:
    """Write, and return once the reader took everything; raises as ``write_out`` does."""
    until = time.monotonic() + patience
    write_out(text, patience)
    if (error := why_untaken(_output_descriptor(), max(until - time.monotonic(), 0))) is not None:
        raise error


def write_in_full(text: str) -> MailboxError | None:
    """Write, however long the reader takes. Return why it is unknown that it took everything, and asked for more."""
    error = None
    for part in (text[:-1], text[-1:]):
        write_out(part)
        error = error or why_untaken(_output_descriptor(), PATIENCE)
    return error


def write_pieces(pieces: Sequence[str]) -> tuple[int, MailboxError | None]:
    """Write pieces, each once the reader took the one before. Return how many it surely took, and why not all.

    A piece is surely taken if the reader took something of what follows it. Behind the last one that is its newline."""
    fd = _output_descriptor()
    ask = None if fd is None else question(fd)
    if fd is None or ask is None:
        write_out("".join(pieces), PATIENCE)
        return len(pieces), None
    until = time.monotonic() + PATIENCE
    for number, part in enumerate((*pieces[:-1], pieces[-1][:-1], pieces[-1][-1:])):
        try:
            write_out(part, max(until - time.monotonic(), 0))
            left, error = await_taken(fd, ask, until)
        except MailboxError as failed:
            left, error = sys.maxsize, failed
        if error is not None:
            is_begun = left < len(part.encode("utf-8", "backslashreplace"))
            return max(number if is_begun else number - 1, 0), error
    return len(pieces), None


def _output_descriptor() -> int | None:
    """Return standard output's file descriptor; None if there is no real file."""
    try:
        return None if sys.stdout is None else sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def write_bytes(data: bytes) -> None:
    """Write bytes, as long as it takes. They may be no text: a history, a key.

    Raises ``StorageFailed``, one without a word if the reader stops early."""
    if sys.stdout is None:
        raise unwritten("standard output is closed")
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # not a real file
        sys.stdout.buffer.write(data)
        return
    try:
        sys.stdout.flush()
        write_to(fd, data, None)
    except BrokenPipeError:
        raise reader_left() from None
    except OSError as error:
        raise unwritten(f"cannot write the output: {error.strerror}") from None


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


def write_to(fd: int, data: bytes, patience: float | None) -> None:
    """Write to a descriptor; raise ``Busy`` after waiting ``patience`` seconds in total (None: wait for ever)."""
    import select  # costs an eightieth of a bare start; only full pipes and other files need it

    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        while piece:
            before = time.monotonic()
            if not poll.poll(None if patience is None else patience * 1000):
                raise stalled()
            if patience is not None:
                patience = max(patience - (time.monotonic() - before), 0)
            try:
                piece = piece[posix.write(fd, piece) :]
            except BlockingIOError:  # a non-blocking socket with room for less
                system.sleep(_AGAIN)


def question(fd: int) -> Callable[[], int] | None:
    """Return a function that tells how many bytes the reader has not taken; None if the system cannot say."""
    number = _QUESTIONS.get(system.fstat(fd).st_mode & system.S_IFMT)
    if number is None:
        return None

    def ask() -> int:
        left = int.from_bytes(system.ioctl(fd, number, b"\0\0\0\0"), sys.byteorder)
        if left == 0 and number == _QUESTIONS[system.S_IFSOCK] and system.is_broken(fd):
            return 1  # a socket drops what its reader left there
        return left

    try:
        ask()
    except OSError:
        return None
    return ask


def await_taken(fd: int, ask: Callable[[], int], until: float) -> tuple[int, MailboxError | None]:
    """Wait until that instant for the reader to take everything. Return how many bytes it left, and why."""
    pause, looks = _PAUSE, 0
    while left := ask():
        looks += 1
        if looks > _AT_ONCE:
            if system.is_broken(fd):
                return (left, _gone()) if (left := ask()) else (0, None)
            if system.monotonic() >= until:
                return left, stalled()
        system.sleep(pause)
        pause = min(pause * 2, _LONGEST)
    return 0, None


def why_untaken(fd: int | None, patience: float) -> MailboxError | None:
    """Return why the reader did not take everything that was written, for so many seconds; None once it did."""
    ask = None if fd is None else question(fd)
    return None if fd is None or ask is None else await_taken(fd, ask, system.monotonic() + patience)[1]


def _gone() -> StorageFailed:
    return unwritten("the reader of the output left before its end")


def stalled() -> Busy:
    """Return the error of a reader that does not read."""
    return Busy(
        "the reader of the output does not read; nothing was marked as read",
        "use `agent-mailbox check --peek` with a pager; let a plain `check` print to its end",
        code="output_blocked",
    )


def list_pipes() -> list[int]:
    """Return standard output's descriptor if it is a pipe: waiting for it ends when its reader leaves."""
    return [fd for fd in (sys.stdout.fileno(),) if posix.fstat(fd).st_mode & system.S_IFMT == system.S_IFIFO]


def is_left() -> bool:
    """Return whether the reader of the pipe is gone, for a command that goes on printing."""
    import select  # as above

    poll = select.poll()
    for fd in list_pipes():
        poll.register(fd, 0)
    return bool(poll.poll(0))
