"""Standard input and output as the server's two ends: bounded lines in, whole answers out.

Belongs here: what the SDK's own streams lack. Lines have a limit, and the client must take its answers in time. The
input ends with the client, though another process may hold the pipe. ``OutputStream`` tells when the client has taken
the answer to a request: only then is mail recorded as read. An id is one request's until that is answered or taken
back.
"""

from __future__ import annotations

import io
import json
import os
import re
import select
import sys
import threading
from typing import TYPE_CHECKING

from ..cli import output
from ..core.codec import BOM
from ..errors import BadData, Busy

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 1 << 20
"""Bytes of one request: the longest text, each character escaped, and more."""
_LOOK = 5.0
"""Seconds between looks whether the client is there."""
PATIENCE = 30.0
"""Seconds in which the client must take more of an answer; the server ends behind them."""
TAKEN = 2.0
"""Seconds in which the client must take an answer that was written, as from the command."""
_CHUNK = 4096
"""Bytes of an answer for which the client has that time."""


class InputStream(io.TextIOBase):
    """Lines of a file descriptor, up to its end or that of the process that started this one. They also end once no
    answer can be written: the server would wait for the next line for ever."""

    def __init__(self, fd: int, answers: OutputStream) -> None:
        self._fd = fd
        self._answers = answers
        self._parent = os.getppid()
        self._data = b""
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def readline(self, _size: int = -1, /) -> str:  # type: ignore[override]
        """Return the next line that is no repeated request, empty at the end. Raises ``BadData`` for one that is too
        long."""
        while (text := self._next_line()) and self._answers.refuses(text):
            pass
        return text

    def _next_line(self) -> str:
        seen = 0
        while (end := self._data.find(b"\n", seen)) < 0:
            seen = len(self._data)
            if seen > LONGEST:
                raise BadData(f"a request is over the limit of {LONGEST} bytes", "send a path in place of the text")
            if not (more := self._read_more()):
                return ""
            self._data += more
        line, self._data = self._data[: end + 1], self._data[end + 1 :]
        text = line.removeprefix(BOM).decode("utf-8", "replace")
        return _mend_halves(text) if _HALF.search(text) else text

    def _read_more(self) -> bytes:
        while not self._answers.has_failed:
            if self._poll.poll(_LOOK * 1000):
                try:
                    return os.read(self._fd, 1 << 16)
                except BlockingIOError:  # another process that holds the pipe took what was there
                    continue
            if os.getppid() != self._parent:
                break
        return b""


_HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
"""The beginning of half a character, or of a whole one in two halves."""


def _mend_halves(text: str) -> str:
    """Return a request with U+FFFD for each half of a character, as of a cut emoji. The SDK would never answer it."""
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace") + "\n"


class OutputStream(io.TextIOBase):
    """Answers on a file descriptor; ``taken`` is called with the id of each request whose answer the client has."""

    def __init__(self, fd: int, taken: Callable[[object], None]) -> None:
        self.has_failed = False
        self._fd = fd
        self._taken = taken
        self._pen = threading.Lock()
        self._open: set[str] = set()

    def write(self, text: str, /) -> int:
        """Write an answer in full. Raises ``Busy`` if the client does not take it."""
        message = json.loads(text)
        if "method" not in message:
            self._open.discard(str(message.get("id")))
        with self._pen:
            try:
                self._write_whole(text.encode("utf-8", "backslashreplace"))
            except (OSError, Busy):
                self.has_failed = True
                raise
        if "method" not in message and output.why_untaken(self._fd, TAKEN) is None:
            self._taken(message.get("id"))
        return len(text)

    def refuses(self, text: str) -> bool:
        """Return whether a line repeats a request that waits for its answer, by its id; then say so. It would be done
        twice, and the client could not tell the two answers apart. The error has no id: by that it would answer the
        first request (JSON-RPC 2.0, 5.1)."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return False  # the SDK says what is wrong with it
        told = message.get("params", {}) if isinstance(message, dict) else None
        if not isinstance(told, dict) or not isinstance(message.get("method"), str):
            return False  # no request, or none that is answered
        if message["method"] == "notifications/cancelled":
            self._open.discard(str(told.get("requestId")))
        elif message.get("jsonrpc") == "2.0" and type(message.get("id")) in (int, str):
            known_as = str(message["id"])
            if known_as in self._open:
                error = {"code": -32600, "message": f"request id {known_as:.80} waits for its answer: take another"}
                self.write(json.dumps({"jsonrpc": "2.0", "id": None, "error": error}) + "\n")
                return True
            self._open.add(known_as)
        return False

    def _write_whole(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            try:
                output.write_to(self._fd, data[start : start + _CHUNK], PATIENCE)
            except Busy:
                what = "the client does not read its answers"
                raise Busy(what, "start the client again", code="output_blocked") from None


def claim_streams(taken: Callable[[object], None]) -> tuple[InputStream, OutputStream]:
    """Return the two ends. Whatever else writes to standard output then writes to standard error."""
    ends = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    answers = OutputStream(ends[1], taken)
    return InputStream(ends[0], answers), answers
