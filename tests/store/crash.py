"""Runs a command again and again on copies of a mailbox, killing it at each of its steps in turn.

``python -m tests.store.crash BOX OUT WHICH WORDS…``: in ``OUT/<n>/box`` stands the mailbox as the command left it when
it was killed at its n-th step, in ``OUT/<n>/stdout`` what it had said by then; the last one ran to its end. ``WHICH``
is ``before`` (a step not taken) or ``within`` (half of what it wrote arrived). A step is a system call that changes a
file or its durability, or writes output. ``{place}`` in a word is ``OUT/<n>``, into which
what is in ``BOX.beside`` is copied.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STEPS = ("write", "rename", "replace", "link", "unlink", "ftruncate", "fsync", "fdatasync", "mkdir", "utime", "open")
KILLED = 77
COMPACT_ABOVE = 60
"""Stands in for the 1000 roster events above which a roster is retold: the steps are the same, the lines fewer."""


class Fuse:
    """Ends the process at the n-th step, as ``kill -9`` does: nothing is flushed, nothing is tidied up."""

    def __init__(self, left: int, within: bool) -> None:
        self.left = left
        self.within = within

    def lay(self) -> None:
        """Put itself around every step."""
        from agent_mailbox.store import system

        for module in (os, system):
            for name in STEPS:
                if hasattr(module, name):
                    setattr(module, name, self._around(name, getattr(module, name)))

    def _around(self, name: str, real: Any) -> Any:
        def step(*args: Any, **more: Any) -> Any:
            if name == "open" and not (args[1] & os.O_CREAT):
                return real(*args, **more)
            self.left -= 1
            if self.left < 0:
                if self.within and name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                os._exit(KILLED)
            return real(*args, **more)

        return step


def loaded() -> Callable[[Sequence[str]], int]:
    """The program's entry with what that imports at its first call: once, before the forks."""
    from agent_mailbox.cli.main import main

    with contextlib.redirect_stdout(io.StringIO()):
        main(["--version"])
    return main


def run(box: str, out: str, within: bool, words: list[str]) -> None:
    """All the runs, from a first step not taken to an end that was reached."""
    from agent_mailbox.store import creation, roster_compaction
    from agent_mailbox.upkeep import backup, doctor, restoring, steward  # noqa: F401 - loaded once, before the forks

    main = loaded()
    roster_compaction.COMPACT_ABOVE = COMPACT_ABOVE
    beside = f"{box}.beside" if os.path.isdir(f"{box}.beside") else None
    step = 0
    while True:
        place = os.path.join(out, f"{step:03}")
        shutil.copytree(box, os.path.join(place, "box"))
        creation.create(os.path.join(place, "box"), os.environ)
        if beside is not None:
            shutil.copytree(beside, place, dirs_exist_ok=True)
        child = os.fork()
        if child == 0:
            fd = os.open(os.path.join(place, "stdout"), os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(fd, 1)
            os.environ["AGENT_MAILBOX_DIR"] = os.path.join(place, "box")
            Fuse(step, within).lay()
            code = main([word.replace("{place}", place) for word in words])
            sys.stdout.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != KILLED:
            sys.exit(code)
        step += 1


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3] == "within", sys.argv[4:])
