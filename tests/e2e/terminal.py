"""The real client at a terminal: a session that a person types into, and that is idle in between.

Belongs here: the pseudo-terminal, typing, ending. What the client shows is kept for a failure's message and never
asserted on: what reached the model is.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, Self

from tests.helpers import PATIENCE, ROSTER, until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.e2e.standin import Server
    from tests.helpers import Post

ROWS, COLUMNS = 40, 120
RETYPE = 15.0
"""Seconds after which a key that nothing followed is sent again: a busy client would take both, and go one too far."""


class Startable(Protocol):
    """A client that a terminal can run."""

    @property
    def post(self) -> Post:
        """Its mailbox."""

    @property
    def model(self) -> Server:
        """The model's stand-in."""

    def start(
        self, *words: object, env: Mapping[str, str | None] | None = None, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """Start it as a process."""


def bell(post: Post, session: str) -> int | None:
    """The session's doorbell, if one waits."""
    try:
        who = post.file(".cache", "doorbell", session).read_text().partition(" ")[0]
    except FileNotFoundError:
        return None
    return int(who) if who.isdigit() and is_alive(int(who)) else None


def is_alive(pid: int) -> bool:
    """Whether that process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Terminal:
    """A client in a pseudo-terminal, for a ``with`` block, after which no process of it is left."""

    words: tuple[object, ...] = ("--permission-mode", "default")
    """The words that every terminal of the client has."""
    answers: tuple[tuple[bytes, bytes], ...] = ()
    """What the client asks a terminal, and what this one says."""

    def __init__(self, client: Startable, *words: object, env: Mapping[str, str | None] | None = None) -> None:
        self.client = client
        self.screen = bytearray()
        """Everything the client wrote."""
        self._marked, self._asked = 0, ""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        try:
            self.process = client.start(
                *self.words,
                *words,
                env={"TERM": "xterm-256color", **(env or {})},
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                preexec_fn=_controlling_terminal,
            )
        finally:
            os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The client's process."""
        return self.process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # it ends what runs in its background
            try:
                self.process.wait(PATIENCE / 6)
            except subprocess.TimeoutExpired:
                self.kill()
        self._reader.join(PATIENCE)
        os.close(self._master)

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 1 << 16):
                self.screen += data
                for question, answer in self.answers:
                    if question in data:
                        os.write(self._master, answer)
        except OSError:
            pass  # EIO: nobody has the other end any more

    def type(self, text: str) -> None:
        """Send keys."""
        os.write(self._master, text.encode())

    def press(self, key: str, has_followed: Callable[[bytes], Any], again_after: float = RETYPE) -> None:
        """Send a key, and again until what is to follow has, by what was shown since: a dialog just drawn takes none.
        One that may come twice need not wait so long for it."""
        seen, again = len(self.screen), time.monotonic() + again_after
        self.type(key)

        def done() -> Any:
            nonlocal again
            if found := has_followed(bytes(self.screen[seen:])):
                return found
            if time.monotonic() > again:
                again = time.monotonic() + again_after
                self.type(key)
            return None

        self.wait(done)

    def submit(self, prompt: str) -> None:
        """Type a prompt and send it: the key comes once the client has shown the words, or it would be part of them."""
        seen = len(self.screen)
        self.type(prompt)
        self.wait(lambda: prompt.encode()[-8:] in self.screen[seen:])
        self.type("\r")

    def ask(self, prompt: str) -> str:
        """Submit; returns the conversation as the model was sent it."""
        self.mark()
        self._asked = prompt
        self.submit(prompt)
        return str(self.wait(lambda: self.client.model.asked(prompt))[0])

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Wait for a condition; what the client showed last is the failure's message."""
        try:
            return until(condition)
        except AssertionError as error:
            raise AssertionError(f"{error}; the client showed {bytes(self.screen[-3000:])!r}") from None

    def session(self) -> str | None:
        """The session it runs, by the client's own registry; None before it says."""
        return self._registered().get("sessionId")

    def started(self, since: int = 0) -> str:
        """Wait until its start is over, the hook of it included: the client shows the name that this hook told, and
        waits for a prompt. A busy one waits for prompts before. ``since``: the length of the screen before that start.
        Returns the session."""

        def named() -> str | None:
            me, events = self.session(), self.client.post.objects(ROSTER)
            names = [str(event["name"]).encode() for event in events if event["session_id"] == me and "name" in event]
            return me if names and names[-1] in self.screen[since:] and self.idle() else None

        return str(self.wait(named))

    def clear(self) -> str:
        """Clear the conversation, and wait until the start of the next one is over. Returns the new session."""
        old, seen = self.session(), len(self.screen)
        self.submit("/clear")
        self.wait(lambda: self.session() not in (None, old))
        self._asked = ""  # nothing yet, of the new one
        return self.started(seen)

    def mark(self) -> None:
        """What comes now begins a turn: ``idle`` means after it, for the client writes down late what it does."""
        self._marked, self._asked = time.time_ns() // 1_000_000, ""

    def idle(self) -> bool:
        """Does the client say that its session is between turns, since the last mark? It also has written down the
        answer to what was asked: a busy machine may delay its "idle" of an earlier turn into this one."""
        entry = self._registered()
        is_between = entry.get("status") in ("idle", "shell") and entry.get("statusUpdatedAt", 0) >= self._marked
        return is_between and (not self._asked or self.has_answer())

    def has_answer(self) -> bool:
        """Did it write down an answer to what was asked? Without hooks it may be too quick to say "busy"."""
        transcripts = (self.client.post.home / ".claude/projects").glob(f"*/{self.session()}.jsonl")
        return any(
            b'"type":"assistant"' in file.read_bytes().partition(self._asked.encode())[2] for file in transcripts
        )

    def busy(self) -> bool:
        """Does it say that a turn is going on?"""
        return self._registered().get("status") == "busy"

    def waiting(self) -> bool:
        """Does it say that a dialog waits for the person?"""
        return self._registered().get("status") == "waiting"

    def _registered(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.client.post.home / f".claude/sessions/{self.pid}.json").read_text()))
        except (FileNotFoundError, ValueError):
            return {}  # not there yet, or written at this moment

    def leave(self) -> int:
        """End the session as a person does; returns the exit code."""
        self.submit("/exit")
        again = time.monotonic() + RETYPE

        def left() -> bool:
            nonlocal again
            if self.process.poll() is None and time.monotonic() > again:
                again = time.monotonic() + RETYPE
                self.type("\r")  # a turn that began meanwhile, or a question, may have taken the first
            return self.process.poll() is not None

        self.wait(left)
        return int(self.process.returncode)

    def kill(self) -> None:
        """End it as a crash does: at once, nothing tidied up."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


def _controlling_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
