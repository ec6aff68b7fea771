"""Whole processes, timed in pairs with a bare interpreter.

Belongs here: spawning, waiting, the order of a round, the arithmetic of paired ratios. On a shared machine seconds
mean little; a process and a bare interpreter started right before it meet the same weather, so their ratio does.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from .launch import BARE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PATIENCE = 300
"""Seconds after which a child counts as hung: far more than the plain scheme takes for a million messages."""
BUDGET = 60.0
"""Seconds a group of subjects may go on beyond its ``LEAST`` rounds: slow subjects get fewer."""
LEAST = 3
SLOW = 1.0
"""Seconds of a subject that is warm after one run instead of two."""


class Failed(Exception):
    """A subject that did not do what it was timed for: its figure would mean nothing."""


@dataclass(frozen=True)
class Subject:
    """One command line to time; ``before`` restores its state outside the timed part, ``expect`` judges its output."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdin: bytes = b""
    before: Callable[[], object] = lambda: None
    expect: Callable[[bytes], bool] = lambda _: True
    size: int = 0
    agents: int = 0
    how: str = ""


@dataclass
class Timed:
    """What the rounds of one subject gave: its seconds, and those of the bare interpreter before each."""

    subject: Subject
    seconds: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Times of the subject in bare starts, round by round."""
        return [mine / bare for mine, bare in zip(self.seconds, self.bare, strict=True)]


@dataclass(frozen=True)
class Spread:
    """A median and the range from the 10th to the 90th percentile."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median and the 10-90 % range of some values."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(statistics.median(ordered), ordered[round(last * 0.1)], ordered[round(last * 0.9)])


def run_once(argv: tuple[str, ...], env: Mapping[str, str], stdin: bytes = b"") -> tuple[float, bytes]:
    """(seconds, standard output) of one process; raises ``Failed`` unless it ends with 0. What has input is a hook: a
    client calls it, and no other command is below that one."""
    return _client().submit(_call_hook, argv, env, stdin).result() if stdin else _run(argv, env, stdin)


@cache
def _client() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, multiprocessing.get_context("fork"))


def _call_hook(argv: tuple[str, ...], env: Mapping[str, str], stdin: bytes) -> tuple[float, bytes]:
    return _run(argv, {**env, "CLAUDE_PID": str(os.getpid())}, stdin)


def _run(argv: tuple[str, ...], env: Mapping[str, str], stdin: bytes) -> tuple[float, bytes]:
    """See ``run_once``. Input waits whole in a socket before the start and output is read from a file after the end, so
    neither costs the parent a turn. The socket pair is of this process, which proves a hook's call.
    """
    give, given = socket.socketpair()
    with given:
        with give:
            give.sendall(stdin)
        with tempfile.TemporaryFile() as taken:
            actions = [(os.POSIX_SPAWN_DUP2, given.fileno(), 0), (os.POSIX_SPAWN_DUP2, taken.fileno(), 1)]
            started = time.perf_counter()
            pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
            with _bounded(pid):
                _, status = os.waitpid(pid, 0)
            seconds = time.perf_counter() - started
            taken.seek(0)
            output = taken.read()
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise Failed(f"{' '.join(argv)} ended with {code}")
    return seconds, output


@contextmanager
def _bounded(pid: int) -> Iterator[None]:
    """Kill the child, which is ours, if it outlives our patience."""

    def give_up(_signal: int, _frame: object) -> None:
        os.kill(pid, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def paired(subjects: Sequence[Subject], rounds: int) -> list[Timed]:
    """Time the subjects in turns, each right after a bare interpreter, beginning with another one each round."""
    timed = [Timed(subject) for subject in subjects]
    for subject in subjects:
        if _one(subject) < SLOW:
            _one(subject)
    deadline = time.monotonic() + BUDGET
    for turn in range(rounds):
        if turn >= LEAST and time.monotonic() > deadline:
            break
        first = turn % len(timed) if timed else 0
        for one in (*timed[first:], *timed[:first]):
            one.subject.before()
            one.bare.append(run_once(BARE, one.subject.env)[0])
            one.seconds.append(_one(one.subject, restore=False))
    return timed


def _one(subject: Subject, *, restore: bool = True) -> float:
    if restore:
        subject.before()
    seconds, output = run_once(subject.argv, subject.env, subject.stdin)
    if not subject.expect(output):
        raise Failed(f"{subject.name} ({subject.how}) answered {output[:300]!r}")
    return seconds


def works(argv: tuple[str, ...], env: Mapping[str, str]) -> bool:
    """Does the command line run at all? (its complaints are not shown)"""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    try:
        pid = os.posix_spawn(argv[0], argv, env, file_actions=quiet)
    except OSError:
        return False
    with _bounded(pid):
        return os.waitpid(pid, 0)[1] == 0


_WITNESS = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                     file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
print(os.wait4(pid, 0)[2].ru_maxrss)
"""


def peak_mib(argv: tuple[str, ...], env: Mapping[str, str]) -> float:
    """Most memory a process held at once, in MiB, by a small witness: a child's figure begins at its parent's size."""
    _, output = run_once((*BARE[:-1], _WITNESS, *argv), env)
    return int(output) / (1 << 20 if sys.platform == "darwin" else 1 << 10)
