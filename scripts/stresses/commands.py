"""Real commands and hooks, each a process of its own: how they are started, and what they said.

Belongs here: command lines and environments. Output goes to files, so that what a killed process had said is known.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from tests.door import switches

from ..benchmarks import launch
from . import cast

if TYPE_CHECKING:
    from pathlib import Path

_PLACES = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime", "/usr/local/lib/faketime")
FAKETIME = [path for place in _PLACES for path in glob.glob(f"{place}/libfaketime.so.1")]
"""The library that gives a process a clock of its own; empty where it is not installed."""
READING = ("check", "hook")
HOOKS = ("hook", "permit")
_REMINDER = re.compile(r'\\n\S+ (?:from|to) [^\\]*: \\"[^"]*\\"')
"""A line of ``clients.hooks.reminder``, as it stands in a hook's JSON."""
REFUSALS = {"send": {1}, "reply": {1}, "ack": {1}, "release": {1}, "doctor": {3}, "wait": {1}}
"""Exit codes beside 0 and 4 (busy) that are no surprise in the middle of everything."""


class Stage:
    """The directories of a run."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.box = scratch / "project" / "data"
        self.journals = scratch / "journals"
        self.spoken = scratch / "spoken"
        self.asking = scratch / "asking"
        for directory in (
            self.box.parent,
            self.journals,
            self.spoken,
            self.asking / "hooks",
            self.asking / ".venv/bin",
        ):
            directory.mkdir(parents=True, mode=0o700)
        self._make_asking()

    def _make_asking(self) -> None:
        """A checkout with nothing but the shim, whose Python only says that it would be started."""
        shutil.copy(launch.SHIM, self.asking / "hooks")
        python = self.asking / ".venv/bin/python"
        python.write_text("#!/bin/sh\necho maybe\n", encoding="ascii")
        python.chmod(0o700)

    def environment(self, hours: float | None = None) -> dict[str, str]:
        """For the command line; with a clock that is some hours off."""
        made = launch.command_environment(self.scratch, self.box) | {switches.CALLER: switches.AS_SAID}
        if hours is not None:
            # Files keep their times, as they do where a clock is set. (libfaketime breaks clock_nanosleep, which every
            # wait for a lock needs, where it is told to leave the monotonic clock alone.)
            made |= {"LD_PRELOAD": FAKETIME[0], "FAKETIME": f"{hours * 3600:+.0f}", "NO_FAKE_STAT": "1"}
        return made

    def hook_environment(self, session: str, hours: float | None = None) -> dict[str, str]:
        """As a client sets it; one of the sessions names the mailbox, the others find it by their pointer."""
        made = self.environment(hours)
        if session in cast.HOOKED and session != "h1":
            del made["AGENT_MAILBOX_DIR"]
        client = {"CLAUDE_CODE_SESSION_ID": session, "CLAUDE_PROJECT_DIR": str(self.box.parent), "CLAUDECODE": "1"}
        wishes = {"AGENT_MAILBOX_TAGS": cast.TAG, "AGENT_MAILBOX_ROLE": ",".join(cast.HOOKED.get(session, ()))}
        return {**made, **client, **wishes}


class Command:
    """A process that was started, and what became of it. ``hours``: how far its clock is off; ``asks``: the shell
    command that a hook is to give leave for."""

    def __init__(
        self,
        stage: Stage,
        number: int,
        what: str,
        words: list[str],
        session: str = "",
        *,
        launcher: tuple[str, ...] = launch.LEAN,
        hours: float | None = None,
        token: str = "",
        asks: str = "",
    ) -> None:
        self.asks = asks
        self.number, self.what, self.words, self.session, self.token = number, what, words, session, token
        self.jumped, self.killed, self.stopped = hours is not None, False, False
        self._out, self._err = (stage.spoken / f"{number:06}.{name}" for name in ("out", "err"))
        hook = what in HOOKS
        given = stage.spoken / f"{number:06}.in"
        given.write_bytes(_client_says(stage, session, words[-1], asks) if hook else b"")
        self.started = time.monotonic()
        with given.open("rb") as stdin, self._out.open("wb") as stdout, self._err.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*launcher, *words],
                env=stage.hook_environment(session, hours) if hook else stage.environment(hours),
                cwd=stage.box.parent,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )

    def ended(self) -> bool:
        """Has it? Takes away what libfaketime leaves behind for each process that does not end by returning."""
        if self.process.poll() is None:
            return False
        for name in (f"faketime_shm_{self.process.pid}", f"sem.faketime_sem_{self.process.pid}") if self.jumped else ():
            try:
                os.unlink(f"/dev/shm/{name}")
            except OSError:
                pass
        return True

    @property
    def said(self) -> str:
        """Its standard output."""
        return self._out.read_text(encoding="utf-8", errors="replace")

    @property
    def complained(self) -> str:
        """Its standard error."""
        return self._err.read_text(encoding="utf-8", errors="replace")

    @property
    def code(self) -> int:
        """Its exit code."""
        return self.process.returncode

    @property
    def shown(self) -> list[str]:
        """The tokens of the mail it showed; a reminder of what is owed quotes titles, and shows nothing."""
        return cast.tokens(_REMINDER.sub("", self.said)) if self.what in READING else []

    def complaint(self) -> str | None:
        """What is wrong with how it ended, if anything is."""
        if self.killed:
            return None
        expected = {0} if self.what in HOOKS else {0, 4} | REFUSALS.get(self.what, set())
        if self.code not in expected or "Traceback" in self.complained or "unexpected" in self.complained:
            return f"`{' '.join(self.words)}` ended with {self.code}: {self.complained.strip()[-2000:]}"
        if self.what == "hook" and '"systemMessage"' in self.said and " is locked" not in self.said:
            return f"the hook {self.words[-1]} of {self.session} said: {self.said.strip()[-500:]}"
        return None

    @property
    def busy(self) -> bool:
        """Did it give up on a lock?"""
        return self.code == 4 or (self.what == "hook" and " is locked" in self.said)


def _client_says(stage: Stage, session: str, event: str, asks: str) -> bytes:
    call: dict[str, object] = {"session_id": session, "cwd": str(stage.box.parent), "hook_event_name": event}
    if asks:
        call |= {"tool_name": "Bash", "tool_input": {"command": asks}, "tool_use_id": "toolu_1"}
    elif event == "SessionStart":
        call["source"] = "resume"
    elif event == "SessionEnd":
        call["reason"] = "other"
    elif event == "UserPromptSubmit":
        call["prompt"] = "Go on."
    return json.dumps(call).encode()


def guard_says(stage: Stage, session: str, shell: tuple[str, ...]) -> str:
    """The shell guard's answer for a session: empty for "nothing new", else ``maybe``."""
    done = subprocess.run(
        [*shell, str(stage.asking / "hooks" / "agent-mailbox-hook"), "UserPromptSubmit"],
        env={**stage.environment(), "CLAUDE_CODE_SESSION_ID": session},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
