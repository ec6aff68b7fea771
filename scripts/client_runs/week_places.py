"""The sessions of a week that are no headless runs: at a terminal, in an editor, behind a service, forked, at a server.

Belongs here: how a turn begins and ends in each place, and what else happens there: mail wakes it, ``/clear``, a stop.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import uuid
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.terminal import Terminal
from tests.e2e.test_background import is_served
from tests.e2e.test_places import First, wrapped
from tests.helpers import until

from .week_sessions import FAULTS, MOST, Kind, Session

if TYPE_CHECKING:
    from tests.e2e.standin import Body

    from .week_sessions import WeekShare

WOKEN, CLEARED = "woken", "cleared"
_ALLOWED = ("--allowedTools", "Bash,Read")
_ENV = {"CLAUDE_CODE_MAX_RETRIES": "3"}


class Placed(Session):
    """A session that runs on between its turns."""

    left_bell: tuple[str, int] = "", 0
    """What the doorbell of a client that was killed left."""

    def __init__(self, week: WeekShare, number: int, kind: Kind) -> None:
        super().__init__(week, number, kind)
        self.box = week.post.box

    def take_turn(self, fault: str) -> None:
        """Run one turn with that fault. A client that does not end it is killed."""
        self.fault, began = fault, time.monotonic()
        try:
            self.begin()
            self.run_turn(fault)
        except (AssertionError, OSError, ValueError) as error:
            fault = f"{fault} ({type(error).__name__})"
            with contextlib.suppress(OSError):
                self.kill()
            if self.process is not None:
                self.process.wait(MOST)  # the next turn looks whether it runs
        self.note(f"{fault}: {time.monotonic() - began:.0f} s, {self.calls} requests")

    def begin(self) -> None:
        """Start its client, if it does not run."""
        raise NotImplementedError

    def run_turn(self, fault: str) -> None:
        """Have it take a turn, and wait until that is over."""
        raise NotImplementedError

    def bell(self) -> tuple[str, int]:
        """Return what its doorbell wrote, which begins with a number while it waits, and when that was, in ns."""
        place = self.box / ".cache/doorbell" / self.id
        return (place.read_text(), place.stat().st_mtime_ns) if self.id and place.exists() else ("", 0)

    def is_idle(self) -> bool:
        """Return whether it is between turns, as far as its place can tell."""
        return True

    def be_woken(self) -> None:
        """Send it mail once its doorbell waits, and wait until that woke it."""
        until(lambda: (bell := self.bell()) != self.left_bell and bell[0][:1].isdigit() and self.is_idle())
        self.calls = 0
        self.mail()
        word = self.sent[-1]
        until(lambda: word in self.last)


class AtTerminal(Placed):
    """Claude Code at a terminal."""

    place = "terminal"
    faults = (*FAULTS, WOKEN, WOKEN, CLEARED)
    terminal: Terminal | None = None
    is_prompted = False
    """Whether its client was started with this turn's prompt."""

    def begin(self) -> None:
        """Start it, or resume it. A prompt typed beside its start's hook may be lost, and a resumed session does not
        show when that is over: its prompt is in its command, if it is to have one."""
        self.is_prompted = False
        if self.terminal is None or self.terminal.process.poll() is not None:
            self.end()
            self.left_bell = self.bell()
            self.is_prompted = bool(self.id) and self.fault != WOKEN
            prompt = [self.prompt()] if self.is_prompted else []
            self.terminal = self.open(*_ALLOWED, *(["--resume", self.id, *prompt] if self.id else []))
            self.process = self.terminal.process
            if not self.id:
                self.terminal.started()
        self.id = str(self.terminal.wait(self.terminal.session))

    def script(self, body: Body) -> list[Body]:
        """Answer as every session does. Its turn is over when it is idle after the first request."""
        if self.calls == 0 and self.terminal is not None:
            self.terminal.mark()
        return super().script(body)

    def is_idle(self) -> bool:
        """Return whether the client says that it is between turns."""
        return self.terminal is not None and self.terminal.idle()

    def open(self, *words: str) -> Terminal:
        """Start its client with these words."""
        return Terminal(self.kind.it, *words, env=_ENV)

    def run_turn(self, fault: str) -> None:
        """Type a prompt, or ``/clear``, or have mail wake it."""
        terminal = self.terminal
        assert terminal is not None

        def is_over() -> bool:
            return terminal.process.poll() is not None or (self.calls > 0 and self.is_idle())

        if fault == CLEARED:
            if self.is_prompted:
                terminal.wait(is_over)
            new = terminal.clear()
            self.past.append(self.last)
            self.last, self.id = "", new
            return
        if fault == WOKEN:
            self.be_woken()
        elif not self.is_prompted:
            terminal.submit(self.prompt())  # mail before it would wake the session into the typing
        terminal.wait(is_over)

    def end(self) -> None:
        """End the terminal."""
        if self.terminal is not None:
            self.terminal.__exit__()
            self.terminal = None


class InContainer(AtTerminal):
    """Claude Code as the first process of a container; one that was killed goes on in another."""

    place = "container"

    def open(self, *words: str) -> Terminal:
        """Start it in a container of its own."""
        contained = copy(self.kind.it)
        contained.binary = wrapped(self.kind.it)
        return First(contained, *words, env=_ENV)


class InEditor(Placed):
    """Claude Code as an editor runs it: by streams of JSON."""

    place = "editor"

    def begin(self) -> None:
        """Start it, or resume it."""
        if self.process is not None and self.process.poll() is None:
            return
        named = ["--resume", self.id] if self.id else ["--session-id", str(uuid.uuid4())]
        words = (
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            *_ALLOWED,
            *named,
        )
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        env = {**_ENV, "CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}
        self.process = self.kind.it.start(*words, env=env, start_new_session=True, stderr=subprocess.DEVNULL, **pipes)
        self.began = named[1]

    def run_turn(self, _: str) -> None:
        """Send a prompt, and read on until its result."""
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.id:
            self.mail()
        message = {"type": "user", "message": {"role": "user", "content": self.prompt()}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if json.loads(line)["type"] == "result":
                break
        self.id = self.began

    def end(self) -> None:
        """End it."""
        if self.process is not None and self.process.poll() is None:
            self.kill()


class InBackground(Placed):
    """Claude Code run by its background service. It looks for its mailbox: no variable of a terminal counts there."""

    place = "background"
    faults = ("none", "429", "500", "cut", WOKEN, WOKEN)

    def __init__(self, week: WeekShare, number: int, kind: Kind) -> None:
        super().__init__(week, number, kind)
        self.box = kind.it.project / "data"
        week.post.ok("init", self.box)

    def send(self, word: str) -> None:
        """Send it this message."""
        self.week.post.ok("send", "--dir", self.box, "--from", "bob", "--to", self.id, "--body", word)

    def begin(self) -> None:
        """Stop it: the next prompt brings it back."""

    def run_turn(self, fault: str) -> None:
        """Bring it back with a prompt, or have mail wake it."""
        if fault == WOKEN:
            self.be_woken()
        else:
            resumed = []
            if self.id:
                self.mail()
                self.client("stop", self.id[:8])
                until(lambda: not is_served(self.week.post, self.id))
                resumed = ["--resume", self.id]
            known = self.sessions()
            self.client("--bg", *resumed, self.prompt())  # with other words beside --resume the client makes a copy
            if not self.id:
                (self.id,) = until(lambda: self.sessions() - known)
        until(lambda: self.calls and self.is_idle())

    def client(self, *words: str) -> None:
        """Run one command of the client."""
        env = {**_ENV, "TERM": "xterm-256color", "AGENT_MAILBOX_DIR": None}
        with self.kind.it.start(*words, env=env) as process:
            process.communicate(timeout=MOST)

    def sessions(self) -> set[str]:
        """Return the sessions of its mailbox."""
        with self.week.lock:
            return {a["session_id"] for a in self.week.post.ok("roster", "list", "--dir", self.box)["agents"]}

    def entries(self) -> list[dict[str, Any]]:
        """Return what the client's own registry has of it."""
        found = []
        for file in (self.week.post.home / ".claude/sessions").glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                found.append(json.loads(file.read_text()))
        return [entry for entry in found if entry.get("sessionId") == self.id]

    def is_idle(self) -> bool:
        """Return whether it is between turns."""
        return any(entry.get("status") == "idle" for entry in self.entries())

    def kill(self) -> None:
        """Kill the process that runs it."""
        for entry in self.entries():
            os.kill(int(entry["pid"]), signal.SIGKILL)

    def end(self) -> None:
        """End the service and all that it runs."""
        mine = f"HOME={self.week.post.home}\0".encode()
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
                served = b"\0daemon\0" in words or b"bg-pty-host" in words or b"\0--bg" in words
                if served and mine in Path(f"/proc/{name}/environ").read_bytes():
                    os.kill(int(name), signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.kill()


class Forked(Session):
    """A session that begins with the talk of the client's first headless one, under an id of its own."""

    place = "forked"

    def take_turn(self, fault: str) -> None:
        """Run one turn; the first one forks."""
        if not self.id:
            origin = next(one for one in self.week.sessions if one.kind is self.kind)
            until(lambda: origin.turn > 1 and origin.id)
            self.id = str(uuid.uuid4())
            words = ["-p", self.prompt(), "--dangerously-skip-permissions", "--resume", origin.id, "--fork-session"]
            self.process = self.kind.start([*words, "--session-id", self.id])
            self.process.communicate(timeout=MOST)
            self.note(f"forked: {self.process.returncode}, {self.calls} requests")
            return
        super().take_turn(fault)


class AtServer(Placed):
    """OpenCode by a server, to which terminals are attached."""

    place = "server"
    faults = (*(fault for fault in FAULTS if fault != "bad tool"), WOKEN, WOKEN)  # that would ask its person

    def begin(self) -> None:
        """Start the server, or start it again."""
        server = self.kind.it
        if self.process is None or self.process.poll() is not None:
            self.left_bell = self.bell()
            server.__enter__()
            self.process = server.process
        if not self.id:
            self.id = str(server.post_json("/session", {})["id"])

    def run_turn(self, fault: str) -> None:
        """Give it a prompt, or have mail wake it."""
        if fault == WOKEN:
            self.be_woken()
            return
        self.kind.it.say(self.id, self.prompt())

    def kill(self) -> None:
        """Kill the server."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(MOST)

    def end(self) -> None:
        """End it."""
        self.kill()


PLACES: dict[str, tuple[type[Session], ...]] = {
    "claude-code": (AtTerminal, InContainer, InEditor, InBackground, Forked),
    "opencode": (AtServer,),
}
"""By client: the places beside a headless run in which it has a session."""
