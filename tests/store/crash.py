"""Runs a command again and again on copies of a mailbox, killing it at each kind of its steps in turn.

``python -m tests.store.crash BOX OUT WORDS…``: in ``OUT/<n>/box`` stands the mailbox as the command left it when it was
killed, in ``OUT/<n>/stdout`` what it had said by then; the last one ran to its end. It is killed before the last step
of each kind, and where that writes also when half of it arrived; exhaustively at every step. A step is a system call
that changes a file or its durability, or writes output; its kind is its name and the file, where agents, months and
numbers are alike. ``{place}`` in a word is ``OUT/<n>``, into which what is in ``BOX.beside`` is copied.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

from tests.faults.faults import EXHAUSTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STEPS = ("write", "rename", "replace", "link", "unlink", "ftruncate", "fsync", "fdatasync", "mkdir", "utime", "open")
KILLED = 77
COMPACT_ABOVE = 60
"""Stands in for the 1000 roster events above which a roster is retold: the steps are the same, the lines fewer."""
ALIKE = re.compile(r"[^/]*[0-9a-f]{8,}[^/]*|\d+|agent-(mailbox|mailbox-reads|roster)(?=[.~]|$)")
Kind = tuple[str, str]


class Fuse:
    """Ends the process at one of its steps, as ``kill -9`` does: nothing is flushed, nothing is tidied up."""

    def __init__(self, left: float, within: bool) -> None:
        self.left = left
        self.within = within
        self.kinds: list[Kind] = []
        """Of the steps that were taken."""

    def lay(self) -> None:
        """Put itself around every step."""
        from agent_mailbox.store.files import system

        for module in (os, system):
            for name in STEPS:
                if hasattr(module, name):
                    setattr(module, name, self._around(name, getattr(module, name)))

    def _around(self, name: str, real: Any) -> Any:
        def step(*args: Any, **more: Any) -> Any:
            if name == "open" and not (args[1] & os.O_CREAT):
                return real(*args, **more)
            self.kinds.append((name, _named(args[0])))
            self.left -= 1
            if self.left < 0:
                if self.within and name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                os._exit(KILLED)
            return real(*args, **more)

        return step


def _named(file: Any) -> str:
    """Return what a step is about, without what is particular to this run."""
    try:
        path = os.readlink(f"/proc/self/fd/{file}") if isinstance(file, int) else os.fsdecode(file)
    except OSError:
        path = str(file)
    return ALIKE.sub("*", path)


def chosen(kinds: list[Kind]) -> list[tuple[int, bool]]:
    """Choose where to kill a command that takes these steps: at which, and whether within it."""
    places = range(len(kinds)) if EXHAUSTIVE else sorted({kind: n for n, kind in enumerate(kinds)}.values())
    return [(n, within) for n in places for within in (False, True) if not within or kinds[n][0] == "write"]


def loaded() -> Callable[[Sequence[str]], int]:
    """The program's entry with what that imports at its first call: once, before the forks."""
    from agent_mailbox.commands.main import main

    with contextlib.redirect_stdout(io.StringIO()):
        main(["--version"])
    return main


def steps_of(run: Callable[[], int]) -> tuple[list[Kind], int]:
    """Run in a process of its own; return the steps that it took, and how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        fuse = Fuse(float("inf"), within=False)
        out = os.fdopen(write, "w")
        fuse.lay()
        code = run()
        sys.stdout.flush()
        kinds = list(fuse.kinds)
        out.write("".join(f"{name} {path!r}\n" for name, path in kinds))
        out.close()
        os._exit(code)
    os.close(write)
    with os.fdopen(read) as told:
        kinds = [(line.partition(" ")[0], line.partition(" ")[2]) for line in told.read().splitlines()]
    return kinds, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(box: str, out: str, words: list[str]) -> None:
    """Make all the runs: the last is the one that tells the steps."""
    from agent_mailbox.store.archive import roster_compaction
    from agent_mailbox.store.user_state import creation
    from agent_mailbox.upkeep import backup, doctor, restoring, steward  # noqa: F401 - loaded once, before the forks

    main = loaded()
    roster_compaction.COMPACT_ABOVE = COMPACT_ABOVE
    beside = f"{box}.beside" if os.path.isdir(f"{box}.beside") else None

    def started(name: str) -> Callable[[], int]:
        """The command in a place of its own."""
        place = os.path.join(out, name)
        shutil.copytree(box, os.path.join(place, "box"))
        creation.create(os.path.join(place, "box"), os.environ)
        if beside is not None:
            shutil.copytree(beside, place, dirs_exist_ok=True)

        def start() -> int:
            os.dup2(os.open(os.path.join(place, "stdout"), os.O_WRONLY | os.O_CREAT, 0o600), 1)
            os.environ["AGENT_MAILBOX_DIR"] = os.path.join(place, "box")
            return main([word.replace("{place}", place) for word in words])

        return start

    kinds, code = steps_of(started("end"))
    for number, (step, within) in enumerate(chosen(kinds)):
        start = started(f"{number:03}")
        child = os.fork()
        if child == 0:
            Fuse(step, within).lay()
            start()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED, (step, kinds[step])
    sys.exit(code)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3:])
