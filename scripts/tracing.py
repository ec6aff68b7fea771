"""How far a command goes: the modules, functions and calls between modules of five trips, each a process of its own.

Belongs here: making a mailbox, walking the trips in it, and counting. ``tests/test_trips.py`` holds the ceilings.

Counted are the package's own functions while no module is imported. A comprehension is part of its function. A call
between modules has its nearest caller of the package in another module. The callers are two sessions of one client: it
is the process that traces, so that the walk up the processes has one step.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    from tests.helpers import Post

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = f"{ROOT}/agent_mailbox/"
FOUND = "AGENT_MAILBOX_TRACE"
"""The variable that names the file for what a child counted."""
IN_FUNCTION = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
ANN, BOB = "ann", "bob"
AS_INSTALLED: dict[str, str | None] = {"AGENT_MAILBOX_TEST_CALLER": None, "PATH": f"{ROOT}/tests/door/bin"}
"""Callers are told by their processes, as they are outside tests, and the command is on the ``PATH``."""


class Trip(NamedTuple):
    """How far one command went."""

    modules: int
    functions: int
    calls: int


class Tracer:
    """Counts the calls of functions, and those from one module to another."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.crossings: Counter[str] = Counter()
        self._importing = 0

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Take one event of ``sys.setprofile``."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_name == "<module>":
            self._importing += 1 if event == "call" else -1
        elif event == "call" and not self._importing and code.co_name not in IN_FUNCTION:
            self._count(frame)

    def _count(self, frame: FrameType) -> None:
        mine, above = _name(frame), frame.f_back
        while above is not None and not above.f_code.co_filename.startswith(PACKAGE):
            above = above.f_back
        self.calls[mine] += 1
        if above is not None and above.f_code.co_filename != frame.f_code.co_filename:
            self.crossings[f"{_name(above)} > {mine}"] += 1

    @property
    def trip(self) -> Trip:
        """Return the three figures."""
        modules = {name.partition(":")[0] for name in self.calls}
        return Trip(len(modules), len(self.calls), self.crossings.total())


def _name(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_code.co_qualname}"


def run_traced(words: list[str]) -> None:
    """Run one command in this process, count, and write what was found into the file that ``FOUND`` names."""
    sys.path.insert(0, f"{ROOT}/tests/door")
    from importlib import import_module

    import_module("switches").switch_as_imported()
    main = import_module("agent_mailbox.launch").main
    tracer = Tracer()
    sys.setprofile(tracer.note)
    code = main(words)
    sys.setprofile(None)
    found = {"trip": tracer.trip, "calls": tracer.calls, "crossings": tracer.crossings, "code": code}
    Path(os.environ[FOUND]).write_text(json.dumps(found))
    os._exit(code)


class Walk:
    """Five trips through a mailbox with two sessions, of which the first leads the second."""

    def __init__(self, post: Post) -> None:
        self.post = post
        post.register(ANN)
        post.register(BOB, "--lead", ANN)
        os.environ["AGENT_MAILBOX_TEST_STATE"] = str(post.user_state)
        from agent_mailbox.store.user_state import processes
        from agent_mailbox.store.user_state.processes import PIPE, ProcessRecords

        me = processes.read(os.getpid())
        assert me is not None, "the trips need /proc"
        for session_id in (ANN, BOB):
            ProcessRecords(str(post.user_state)).record(me, session_id, PIPE)
        self.details: dict[str, dict[str, Any]] = {}

    def trips(self) -> Iterator[tuple[str, Trip]]:
        """Yield each trip's name and figures."""
        self._walk("check, 3 unread", "check", "--session", BOB)  # the first ones find derived files missing
        for _ in range(3):
            sent = self._walk("send", "send", "--from", ANN, "--to", BOB, "--body", "hello")
        yield "send", sent
        yield "check, 3 unread", self._walk("check, 3 unread", "check", "--session", BOB)
        self._walk("send", "send", "--from", ANN, "--to", BOB, "--body", "hello")
        yield "hook with mail", self._hook("hook with mail")
        self._hook("hook, nothing new")
        yield "hook, nothing new", self._hook("hook, nothing new")
        asked = self.post.ok("control", "request", "permission", "--session", BOB, "--tool", "Bash")
        which = asked["request"]["id"]
        yield "control approve", self._walk("control approve", "control", "approve", which, "--session", ANN)

    def _hook(self, name: str) -> Trip:
        call = {"session_id": BOB, "transcript_path": "/nowhere.jsonl", "hook_event_name": "UserPromptSubmit"}
        env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": BOB}
        return self._walk(name, "hook", "UserPromptSubmit", stdin=json.dumps(call), env=env)

    def _walk(self, name: str, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> Trip:
        found = self.post.scratch / "trip.json"
        environ = self.post.environ({**AS_INSTALLED, FOUND: str(found), "PYTHONPATH": str(ROOT), **(env or {})})
        done = subprocess.run(
            [sys.executable, "-m", "scripts.tracing", "--run", *words],
            input=stdin.encode(),
            env=environ,
            cwd=self.post.cwd,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done
        self.details[name] = json.loads(found.read_text())
        return Trip(*self.details[name]["trip"])


def main(words: list[str]) -> int:
    """Print the trips; with the name of one, each of its calls between modules with how often it was made."""
    import tempfile

    from tests.door import switches
    from tests.helpers import Post

    switches.switch_now()
    with tempfile.TemporaryDirectory() as scratch:
        walk = Walk(Post(Path(scratch)))
        for name, trip in walk.trips():
            if not words:
                print(f"{name:18} {trip.modules:3} modules {trip.functions:4} functions {trip.calls:4} calls between")
        for name in words:
            for crossing, often in sorted(walk.details[name]["crossings"].items()):
                print(f"{often:4} {crossing}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_traced(sys.argv[2:])
    sys.exit(main(sys.argv[1:]))
