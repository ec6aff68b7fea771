"""Running the program for real and having the system fail under it.

Belongs here: strace (kills, failing calls), limits, the library that writes halves; a fresh mailbox for each case.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox import Mailbox
from tests.door import switches
from tests.faults import commands, world
from tests.faults.disk import Disk
from tests.faults.evidence import LOGS, Evidence
from tests.faults.verdict import KILLED, Verdict
from tests.helpers import ARCHIVE, MAIN, PATIENCE, Post, Result, begin_again
from tests.night import NIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.faults.commands import Command

EXHAUSTIVE = os.environ.get("AGENT_MAILBOX_FAULTS") == "all"
"""Every case; without it one of each kind."""
WHOLE = EXHAUSTIVE or NIGHT
"""Each kind of a command's calls; without it a share of the steward's."""
SHARE = 3
"""The steward makes three times as many kinds of calls as another command: a push tries each third of them."""
CALLS = (
    *("write", "pwrite64", "writev", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat"),
    *("ftruncate", "truncate", "fsync", "fdatasync", "mkdir", "mkdirat", "rmdir", "utimensat", "flock", "openat"),
)
"""System calls that change a file, its name, its durability or who may touch it; of ``openat`` those that make one."""
LASTING = frozenset(CALLS) - {"fsync", "fdatasync", "flock", "openat"}
"""Those that leave something other programs see, whoever dies after them. A sync leaves it to a power failure, a lock
goes with its process."""
PROGRAM = (sys.executable, "-I", "-S", "-B", str(MAIN))
MODULE = (sys.executable, "-B", "-m", "agent_mailbox")


def sample(calls: list[Call]) -> list[Call]:
    """Choose the calls to try: all of them exhaustively, else the last of each kind. What is made beside a file that it
    is to replace counts for nobody until then."""
    some = [call for call in calls if call.name.startswith("rename") or not call.is_aside]
    return calls if EXHAUSTIVE else list({call.kind: call for call in some}.values())


def share(calls: list[Call], command: Command, first: int) -> list[Call]:
    """Choose the calls that are tried now, from the ``first`` on; the night tries all."""
    return calls if WHOLE or not command.steward else calls[first::SHARE]


NAMELESS = re.compile(r"/preview-|/#\d+( ?\(deleted\))?$|[.-]\d{3,}(/|$)|\.[0-9a-f]{8,}\b[^/]*(/|$)")
"""The end of what strace calls a file without a name (O_TMPFILE), or of a name that no other run has."""

TRIED = commands.ALL if EXHAUSTIVE else commands.USUAL
"""The commands that meet a fault at each of their calls."""
ALIKE = (
    (re.compile(r"/(boxes|quiet|cursors|agent-heartbeats)/[^/]+"), r"/\1/NAME"),
    (re.compile(r"(/boxes/NAME|/ends)/agent-[a-z-]+"), r"\1/LOG"),
    (re.compile(r"\d{4}-\d\d(-reads)?"), "MONTH"),
)
"""What is treated alike: the mailboxes and agents, what is noted of each log, the months of the archive."""


class Call:
    """One system call of a run: its name, the file it is about, and its number among those on that file."""

    def __init__(self, name: str, path: str, number: int, text: str, *, new: bool, whole: int = 0) -> None:
        self.name = name
        self.path = path
        self.number = number
        self.whole = whole
        """Of a file that had another name in each run: its number among those of that name, on any file."""
        self.made = new and "O_CREAT" in text
        self.changes = (name != "openat" or "O_CREAT" in text) and " = -1 " not in text
        self.leaves = name in LASTING or self.made

    def __repr__(self) -> str:
        return f"{self.name} #{self.number} of {self.path}"

    @property
    def is_aside(self) -> bool:
        """Return whether it is about a new file, empty yet, or about a small one, that is to replace another."""
        return self.path.endswith("~") or (self.made and self.path.endswith(".new"))

    @property
    def kind(self) -> tuple[str, str]:
        """The call's name and what it is about: calls of one kind stand in the same step of the program."""
        path = self.path
        for pattern, word in ALIKE:
            path = pattern.sub(word, path)
        return self.name, path

    def options(self, what: str) -> list[str]:
        """strace's options that have ``what`` happen to this call."""
        where = [] if self.whole else ["-P", self.path]
        return [*where, "-e", f"trace={self.name}", "-e", f"inject={self.name}:{what}:when={self.whole or self.number}"]


TRACING = (
    *("-f", "-qq", "-y", "-s", "0", "--seccomp-bpf"),
    *("-e", "signal=none", "-e", f"trace={','.join(CALLS)}"),
)
"""strace's options that have it write down all calls."""


def read_calls(trace: Path, places: Sequence[Path], there: set[str]) -> list[Call]:
    """Every call of a trace that changes something in these places, in order; the files were ``there`` before."""
    counted: dict[tuple[str, str], int] = {}
    whole: dict[tuple[str, str], int] = {}
    found = []
    below = "|".join(re.escape(str(place)) for place in places)
    inside = re.compile(rf'[<"]({below})((?:/[^>"]*)?)[>"]')
    for text in trace.read_text(errors="replace").splitlines():
        name = re.match(r"(\d+) +(\w+)\(", text)
        if not name:
            continue
        whole[name[1], name[2]] = whole.get((name[1], name[2]), 0) + 1
        paths = inside.findall(text)
        where = next((place + rest for place, rest in paths if not NAMELESS.search(rest)), "")
        if where:
            key = (name[2], where)
            counted[key] = counted.get(key, 0) + 1
            among = 0 if where == "".join(paths[0]) else whole[name[1], name[2]]
            found.append(Call(*key, counted[key], text, new=where not in there, whole=among))
            there.add(where)
    return [call for call in found if call.changes]


def assert_struck(trace: Path, call: Call) -> None:
    """Assert that a run was killed before the call."""
    struck = trace.read_text(errors="replace").splitlines()
    assert any(f" {call.name}(" in one and one.endswith("= ?") for one in struck), (call, struck)


class Case:
    """A mailbox in which a command is to meet a fault."""

    def __init__(self, scratch: Path, command: Command) -> None:
        self.command = command
        self.scratch = scratch
        self.out, self.err, self.trace = (scratch / name for name in ("stdout", "stderr", "trace"))
        self._template = scratch / "template"
        shutil.rmtree(self._template, ignore_errors=True)
        world.build(self._template, long_roster=command.steward)
        self.post = Post(scratch)
        self.post.env[switches.ROSTER_LINES] = str(world.LONG_ROSTER - 1)
        self.fresh()

    def fresh(self) -> Evidence:
        """The mailbox as it was before, derived files and all; returns what is in it."""
        shutil.rmtree(self.post.box)
        shutil.copytree(self._template, self.post.box)
        begin_again(self.post.box, self.post.env)
        mailbox = Mailbox(str(self.post.box))
        for reader in world.READERS:
            mailbox.deliver(reader, lambda _: [], choose=lambda _: [])
        return Evidence(self.post.box)

    def run(
        self, *wrapped_in: str, env: dict[str, str] | None = None, limit: int | None = None, words: Sequence[str] = ()
    ) -> Result:
        """The command as a process, perhaps under a tracer, perhaps with a limit on the size of its files."""
        program = PROGRAM if self.command.lean else MODULE
        if limit is None and env is None and not EXHAUSTIVE:
            return self._run_forked(wrapped_in, words or self.command.words)
        with self.out.open("wb") as out, self.err.open("wb") as err:
            done = subprocess.run(
                [*wrapped_in, *program, *(words or self.command.words)],
                input=self.command.stdin,
                stdout=out if limit is None else subprocess.PIPE,
                stderr=err if limit is None else subprocess.PIPE,
                env=self.post.environ(env),
                cwd="/",
                timeout=PATIENCE,
                check=False,
                preexec_fn=None if limit is None else _limiter(limit),
            )
        out_bytes, err_bytes = done.stdout or self.out.read_bytes(), done.stderr or self.err.read_bytes()
        return Result(done.returncode, out_bytes, err_bytes)

    def _run_forked(self, wrapped_in: Sequence[str], words: Sequence[str]) -> Result:
        with self.out.open("wb") as out, self.err.open("wb") as err:
            how = {"stdin": self.command.stdin, "stdout": out, "stderr": err, "cwd": Path("/")}
            done = self.post.run(*words, under=wrapped_in, **how)
        return Result(done.rc, self.out.read_bytes(), self.err.read_bytes())

    def calls(self) -> list[Call]:
        """Every call of a run without faults that changes something in the mailbox or writes its output, in order."""
        self.fresh()
        result, calls = self.traced()
        assert result.rc == 0, result
        return calls

    def traced(self, words: Sequence[str] = ()) -> tuple[Result, list[Call]]:
        """A run in the mailbox as it is, perhaps of other words, and its calls, see ``calls``."""
        there = set(map(str, self.post.box.rglob("*")))
        result = self.run("strace", *TRACING, *self._log, words=words)
        calls = read_calls(self.trace, [self.scratch], there)
        return result, [call for call in calls if call.path != str(self.err)]

    def is_log(self, call: Call) -> bool:
        """Is the call about a log, live or archived, one that is to replace it, or the directory it is in?"""
        box = str(self.post.box)
        return call.path in (box, f"{box}/{ARCHIVE}") or call.path.endswith((".jsonl", ".jsonl.new"))

    def disk(self) -> Disk:
        """A disk on which everything is safe."""
        return Disk(self.post.box)

    def move(self, box: Path, fill: int) -> None:
        """Have the mailbox elsewhere, its logs filled up by a foreign line to ``fill`` bytes of their last page."""
        shutil.rmtree(self.post.box)
        self.post.box = box
        self.post.env["AGENT_MAILBOX_DIR"] = str(box)
        for name in LOGS:
            log = self._template / name
            log.write_bytes(log.read_bytes() + b"-" * ((fill - 1 - log.stat().st_size) % 4096) + b"\n")
        box.mkdir()
        self.fresh()

    def killed_before(self, call: Call) -> Verdict:
        """A run that is killed when it is about to make the call."""
        before = self.fresh()
        result = self.run("strace", "-f", "-qq", *call.options("signal=KILL"), *self._log)
        assert result.rc == KILLED, (call, result)
        assert_struck(self.trace, call)
        return Verdict(self.post, self.command, before, result)

    def refused(self, call: Call, error: str, again: bool = False) -> Verdict:
        """A run in which the system refuses the call (``again``: and every later one like it)."""
        before = self.fresh()
        options = call.options(f"error={error}")
        options[-1] += "+" if again else ""
        result = self.run("strace", "-f", "-qq", "--seccomp-bpf", *options, *self._log)
        assert "(INJECTED)" in self.trace.read_text(errors="replace"), (call, result)
        return Verdict(self.post, self.command, before, result)

    @property
    def _log(self) -> tuple[str, str]:
        return ("-o", str(self.trace))


def _limiter(limit: int) -> Callable[[], None]:
    def lower() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    return lower


def why_no_strace() -> str | None:
    """Why strace cannot be used here, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed (apt-get install strace)"
    probe = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", os.devnull, "-e", "inject=getppid:error=EIO", "true"]
    done = subprocess.run(probe, capture_output=True, check=False)
    return None if done.returncode == 0 else f"strace cannot trace here: {done.stderr.decode(errors='replace').strip()}"
