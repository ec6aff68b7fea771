"""Children that do a job of ``worker``: asked and answered, or kept running until they are told to stop.

Belongs here: starting them, the barrier at which several begin together, and ending those we started, come what may.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from .launch import ROOT, WORKER, environment
from .timing import PATIENCE, Failed

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self


def ask(scratch: Path, *arguments: str) -> dict[str, Any]:
    """The answer of a job that needs nobody."""
    with Child(scratch, *arguments, waits=False) as child:
        pass
    return child.answer


class Child:
    """A job in a process of its own, for a ``with`` block.

    One that ``waits`` has said it is ready when the block begins; at the block's end its standard input is closed,
    which is its sign, and ``answer`` is there.
    """

    def __init__(self, scratch: Path, *arguments: str, waits: bool = True) -> None:
        self.answer: dict[str, Any] = {}
        self._arguments = arguments
        self._env = environment(scratch)
        self._waits = waits

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [*WORKER, *self._arguments], cwd=ROOT, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if self._waits and self._process.stdout and self._process.stdout.readline() != b"ready\n":
            self._process.kill()
            self._process.wait()
            raise Failed(f"the job {self._arguments[0]} did not begin")
        return self

    def release(self) -> None:
        """Give the sign without waiting for the answer."""
        if self._process.stdin:
            self._process.stdin.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._process.stdin = None
        try:
            output, _ = self._process.communicate(timeout=PATIENCE)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        if self._process.returncode != 0:
            raise Failed(f"the job {self._arguments[0]} ended with {self._process.returncode}")
        self.answer = json.loads(output)
