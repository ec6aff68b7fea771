"""Asking another program: its answer, limited in time and in size.

Belongs here: what a program may do in place of answering. It hangs, prints without end, is killed, or leaves a child
that keeps its output open.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from ...core.records import Record
from ...core.text import neutral

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO

MOST = 1 << 24
"""Bytes that a program may print: a large repository's changed files are far below."""
_LOOK = 0.1
_SAID = 300


class NoAnswer(OSError):
    """A program was ended, since it took too long or printed too much."""


class ProgramAnswer(Record):
    """A program's end. ``code``: its exit code, or below 0 the signal that killed it."""

    code: int
    out: bytes
    err: bytes

    def complaint(self) -> str:
        """Return why the program failed, with its own last line; empty if it did not fail."""
        if not self.code:
            return ""
        if self.code < 0:
            return f"killed by signal {-self.code}"
        return self.last_line() or f"exit code {self.code}"

    def last_line(self) -> str:
        """Return the last line of what it complains of, else of its answer. Git says its reason first."""
        lines = (self.err.strip() or self.out.strip())[-_SAID:].decode("utf-8", "replace").splitlines()
        return neutral(next((one for one in lines if one.startswith("fatal: ")), lines[-1]).strip()) if lines else ""


def why_failed(
    words: Sequence[str], seconds: float, *, given: bytes = b"", environ: Mapping[str, str] | None = None
) -> str:
    """Run a program for what it does; return why it failed, empty if it did not."""
    try:
        return ask(words, seconds, given=given, environ=environ).complaint()
    except FileNotFoundError:
        return f"there is no {words[0]} here"
    except OSError as error:
        return error.strerror or str(error)


def leave(words: Sequence[str], *, directory: str | None = None, environ: Mapping[str, str] | None = None) -> None:
    """Start a program, and leave it to itself. Raise ``OSError`` if it cannot be started."""
    no = subprocess.DEVNULL
    subprocess.Popen(words, cwd=directory, env=environ, stdin=no, stdout=no, stderr=no, start_new_session=True)


def ask(
    words: Sequence[str],
    seconds: float,
    *,
    given: bytes = b"",
    directory: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> ProgramAnswer:
    """Run a program that ends by itself, with ``given`` as its standard input.

    Raise ``OSError`` if it cannot be started, and ``NoAnswer`` if it was ended, with the children in its group."""
    pipe = subprocess.PIPE
    with (
        _file_of(given) as stdin,
        subprocess.Popen(
            words, cwd=directory, env=environ, stdin=stdin, stdout=pipe, stderr=pipe, start_new_session=True
        ) as child,
    ):
        try:
            return _listen(child, seconds)
        except BaseException:  # Ctrl-C does not reach it
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            raise


@contextlib.contextmanager
def _file_of(given: bytes) -> Iterator[IO[bytes] | int]:
    if not given:
        yield subprocess.DEVNULL
        return
    import tempfile  # hooks ask git, and give it nothing

    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


def _listen(child: subprocess.Popen[bytes], seconds: float) -> ProgramAnswer:
    until, late = time.monotonic() + seconds, NoAnswer(0, f"no end within {seconds:g} s")
    out, err = bytearray(), bytearray()
    with selectors.DefaultSelector() as ends:
        for file, said in ((child.stdout, out), (child.stderr, err)):
            assert file is not None
            ends.register(file, selectors.EVENT_READ, said)
        while ends.get_map():
            is_over = child.poll() is not None  # asked first: what it wrote before is there to be read
            ready = ends.select(0 if is_over else _LOOK)
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                key.data.extend(data)
                if not data:
                    ends.unregister(key.fileobj)
            if is_over and not ready:  # a child of its own keeps them open
                break
            if len(out) + len(err) > MOST:
                raise NoAnswer(0, f"more than {MOST >> 20} MiB of output")
            if time.monotonic() > until:
                raise late
    try:
        return ProgramAnswer(child.wait(max(until - time.monotonic(), 0.0)), bytes(out), bytes(err))
    except subprocess.TimeoutExpired:
        raise late from None
