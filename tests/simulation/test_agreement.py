"""The simulated disk and locks answer as the real ones do, call by call; and what their comparison found."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.compose import Draft
from tests.simulation import plans, runs, sessions, upkeep
from tests.simulation.choices import Profile
from tests.simulation.disk import Disk
from tests.simulation.judge import Judge
from tests.simulation.kernel import Kernel
from tests.simulation.open_files import OpenFile
from tests.simulation.places import BOX
from tests.simulation.process import Process
from tests.simulation.stage import Stage
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


Call = tuple[int, str, list[Any]]
"""The process, the call, its words. A file is named by its path below the directory, an open file by its place."""
OLD = 10**18
"""Before this (2001) are the times that ``utime`` sets here, behind it those of real changes."""
PROCESSES, PLACES = 3, 3
PATHS = ("a", "a", "a", "a", "b", "b", "c", "d", "d/a", "d/b", "e", "e/a", "a/x", "none/x")
FLAGS = (
    os.O_RDONLY,
    os.O_RDWR,
    os.O_WRONLY | os.O_APPEND,
    os.O_RDWR | os.O_CREAT,
    os.O_RDWR | os.O_CREAT,
    os.O_RDWR | os.O_CREAT | os.O_APPEND,
    os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    os.O_RDONLY | os.O_DIRECTORY,
    os.O_RDWR | os.O_TRUNC,
)
LOCKS = (2 | 4, 2 | 4, 1 | 4, 8)
WEIGHTS = {
    "open": 16, "close": 5, "read": 5, "pread": 4, "write": 10, "pwrite": 4, "ftruncate": 4, "fsync": 1, "fstat": 4,
    "stat": 8, "access": 2, "utime": 5, "mkdir": 4, "rmdir": 2, "unlink": 5, "rename": 7, "link": 4, "listdir": 5,
    "flock": 16, "same": 6, "die": 1,
}  # fmt: skip
WORKER = """
import fcntl, json, os, sys
top, files = sys.argv[1], {}
def told(there):
    kind = there.st_mode & 0o170000
    return [kind, there.st_size if kind == 0o100000 else None, min(there.st_mtime_ns, 10**18)]
def do(call, words):
    if call == "open":
        files[words[0]] = os.open(top + words[1], words[2] | os.O_CLOEXEC, 0o600)
    elif call == "close":
        os.close(files.pop(words[0], 99))
    elif call in ("read", "pread", "ftruncate", "fsync"):
        done = getattr(os, call)(files.get(words[0], 99), *words[1:])
        return done.decode() if isinstance(done, bytes) else None
    elif call in ("write", "pwrite"):
        return getattr(os, call)(files.get(words[0], 99), words[1].encode(), *words[2:])
    elif call == "fstat":
        return told(os.fstat(files.get(words[0], 99)))
    elif call == "same":
        here, there = os.fstat(files.get(words[0], 99)), os.stat(top + words[1])
        return (here.st_ino, here.st_dev) == (there.st_ino, there.st_dev)
    elif call == "flock":
        fcntl.flock(files.get(words[0], 99), words[1])
    elif call == "stat":
        return told(os.stat(top + words[0]))
    elif call == "access":
        return os.access(top + words[0], 0)
    elif call == "utime":
        os.utime(top + words[0], ns=(words[1], words[1]))
    elif call in ("rename", "link"):
        getattr(os, call)(top + words[0], top + words[1])
    elif call == "listdir":
        return sorted(os.listdir(top + words[0]))
    else:
        getattr(os, call)(top + words[0])
for line in sys.stdin:
    try:
        print(json.dumps([0, do(*json.loads(line))]), flush=True)
    except OSError as error:
        print(json.dumps([error.errno, None]), flush=True)
"""
"""What a real process runs."""


def drawn(seed: int, count: int) -> list[Call]:
    """The trace of a seed: which of several processes calls what."""
    chance = Random(f"agreement {seed}")
    trace: list[Call] = []
    files: list[dict[int, str]] = [{} for _ in range(PROCESSES)]
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    while len(trace) < count:
        who, call = chance.randrange(PROCESSES), chance.choices(names, weights)[0]
        there, path = files[who], chance.choice(PATHS)
        if call == "open":
            free = [place for place in range(PLACES) if place not in there]
            if free:
                there[free[0]] = path
                trace.append((who, call, [free[0], path, chance.choice(FLAGS)]))
        elif call == "die":
            there.clear()
            trace.append((who, call, []))
        elif call in ("close", "read", "pread", "write", "pwrite", "ftruncate", "fsync", "fstat", "same", "flock"):
            if there:
                place = chance.choice(sorted(there))
                trace.append((who, call, [place, *_words(call, path, chance)]))
                if call == "close":
                    del there[place]
        else:
            trace.append((who, call, [path, *_words(call, chance.choice(PATHS), chance)]))
    return trace


def _words(call: str, path: str, chance: Random) -> list[Any]:
    text = chr(97 + chance.randrange(26)) * chance.choice((1, 3, 700, 5000))
    size, start = chance.choice((1, 4, 600, 9000)), chance.choice((0, 2, 500, 6000))
    words: dict[str, list[Any]] = {
        "read": [size], "pread": [size, start], "write": [text], "pwrite": [text, start], "ftruncate": [start],
        "same": [path], "flock": [chance.choice(LOCKS)], "utime": [chance.randrange(OLD)], "rename": [path],
        "link": [path],
    }  # fmt: skip
    return words.get(call, [])


def real(trace: list[Call], top: Path) -> list[list[Any]]:
    """What real processes are answered, in a directory of their own."""
    words = [sys.executable, "-I", "-S", "-c", WORKER, f"{top}/"]

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    processes = [started() for _ in range(PROCESSES)]
    answers: list[list[Any]] = []
    try:
        for who, call, said in trace:
            if call == "die":
                _end(processes[who])
                processes[who] = started()
                answers.append([0, None])
                continue
            pipe_in, pipe_out = processes[who].stdin, processes[who].stdout
            assert pipe_in is not None
            assert pipe_out is not None
            pipe_in.write(json.dumps([call, said]) + "\n")
            pipe_in.flush()
            line = pipe_out.readline()
            answers.append(json.loads(line) if line else ["the process ended", call])
    finally:
        for process in processes:
            _end(process)
    return answers


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def simulated(trace: list[Call]) -> list[list[Any]]:
    """What the processes of a simulated machine are answered."""
    world = World(0, Profile(grain=1))
    world.quiet = True
    world.kernel.mkdir(world.spawn("init", lambda _: None), "/top")
    processes = [Simulated(world, number) for number in range(PROCESSES)]
    answers: list[list[Any]] = []
    for who, call, said in trace:
        world.now += 1000
        if call == "die":
            world._bury(processes[who].process)
            processes[who] = Simulated(world, who)
            answers.append([0, None])
            continue
        try:
            answers.append([0, processes[who].do(call, said)])
        except OSError as error:
            answers.append([error.errno, None])
    return answers


class Simulated:
    """A simulated process that makes the calls that it is told."""

    def __init__(self, world: World, number: int) -> None:
        self.process = Process(world, str(number), lambda _: None)
        self.kernel: Any = world.kernel
        self.files: dict[int, int] = {}

    def do(self, call: str, words: list[Any]) -> Any:
        kernel, me, top = self.kernel, self.process, "/top/"
        if call == "open":
            self.files[words[0]] = kernel.open(me, top + words[1], words[2], 0o600)
            return None
        fd = self.files.get(words[0], 99)
        if call == "close":
            self.files.pop(words[0], None)
        if call in ("read", "pread"):
            return getattr(kernel, call)(me, fd, *words[1:]).decode()
        if call in ("write", "pwrite"):
            return getattr(kernel, call)(me, fd, words[1].encode(), *words[2:])
        if call in ("close", "ftruncate", "fsync", "flock"):
            return getattr(kernel, call)(me, fd, *words[1:])
        if call == "fstat":
            return _told(kernel.fstat(me, fd))
        if call == "same":
            here = kernel.fstat(me, fd)
            return bool(here.st_ino == kernel.stat(me, top + words[1]).st_ino)
        return self._named(call, top + words[0], words[1:])

    def _named(self, call: str, path: str, words: list[Any]) -> Any:
        kernel, me = self.kernel, self.process
        if call == "stat":
            return _told(kernel.stat(me, path))
        if call == "access":
            return kernel.access(me, path, 0)
        if call == "utime":
            return kernel.utime(me, path, ns=(words[0], words[0]))
        if call == "listdir":
            return sorted(kernel.listdir(me, path))
        return getattr(kernel, call)(me, path, *(f"/top/{word}" for word in words))


def _told(there: Any) -> list[Any]:
    kind = there.st_mode & 0o170000
    return [kind, there.st_size if kind == 0o100000 else None, min(there.st_mtime_ns, OLD)]


CALLS = 700


@pytest.mark.parametrize("seed", [1, 4])
def test_every_call_is_answered_as_by_the_real_system(seed: int, tmp_path: Path) -> None:
    """Three real processes make the calls of a drawn trace in turn, and are killed at times."""
    trace = drawn(seed, CALLS)
    expected = real(trace, tmp_path)
    numbers = {number for number, _ in expected}
    assert {0, errno.ENOENT, errno.EEXIST, errno.EBADF, errno.ENOTDIR, errno.EISDIR} <= numbers
    different = [one for one in zip(trace, simulated(trace), expected, strict=True) if one[1] != one[2]]
    assert different[:1] == []


def _forgetting(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: None


def _timeless(cut: Callable[..., Any]) -> Callable[..., Any]:
    def kept(disk: Disk, inode: Any, size: int, now: int) -> None:
        before = inode.mtime
        cut(disk, inode, size, now)
        inode.mtime = before

    return kept


@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [(OpenFile, "unlock", _forgetting), (Kernel, "_changed", _forgetting), (Disk, "cut", _timeless)],
)
def test_the_traces_tell_a_world_that_differs(
    place: Any, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks that nobody frees, directories whose time is, files that are cut and look as old as before."""
    trace = drawn(3, 8 * CALLS)
    whole = simulated(trace)
    monkeypatch.setattr(place, name, broken(getattr(place, name)))
    assert simulated(trace) != whole


def test_what_is_written_again_takes_no_stamp_away() -> None:
    """A repeated send writes the log's bytes to their places once more: the note keeps the log's time."""
    world = World(1, Profile())
    world.quiet = True
    stage = Stage(world, Judge(world), 2, 3)
    draft = Draft(sender="agent-0", to=("agent-1",), content="once", id=uuid_of("1" * 32, "4"))
    registered = partial(sessions.register, stage)
    with world:
        for work in (
            lambda _: upkeep.found(stage, _),
            lambda process: registered(process, stage.judge.sessions["agent-0"]),
            lambda process: registered(process, stage.judge.sessions["agent-1"]),
            *[lambda _: stage.desk("agent-0").send(draft)] * 2,
        ):
            process = world.spawn("work", work)
            while world.living() and world.turn():
                pass
            assert process.error is None
        log, note = (
            world.kernel.look_up(f"{BOX}/{name}") for name in ("agent-mailbox.jsonl", ".cache/ends/agent-mailbox")
        )
        assert note.mtime == log.mtime


def test_where_locks_come_and_go_commands_fail_and_nothing_is_lost() -> None:
    """A file system whose lock service is away for a while: no promise is broken."""
    writers = plans.SCENES["writers"]
    drawn = [plans.drill(Random(f"plan {seed}"), Profile(lockless=True), writers) for seed in (3, 4)]
    results = [runs.run(seed, plan=plan, told=True) for seed, plan in enumerate(drawn)]
    assert [result.breaches for result in results] == [[], []]
    assert sum(result.acknowledged for result in results) > 0
    assert any("cannot lock" in line for result in results for line in result.story)


def _busy(process: Process) -> None:
    """Make calls that lock, write, sync, rename and wait, whatever befalls them."""
    do = process.world.doors
    for number in range(200):
        fd = -1
        try:
            fd = do["open"](f"/{number % 4}", os.O_RDWR | os.O_CREAT, 0o600)
            do["flock"](fd, 2 | 4)
            do["write"](fd, b"x" * int(process.chance.random() * 9000))
            do["fsync"](fd)
            do["rename"](f"/{number % 4}", f"/{(number + 1) % 4}")
            do["sleep"](process.chance.random())
        except OSError:
            continue
        finally:
            if fd >= 0:
                do["close"](fd)


def test_a_seed_is_the_same_world_on_every_machine_and_python() -> None:
    """The digest of all calls, choices and faults, of processes that know no product."""
    profile = Profile(ordered=False, kill=0.001, stop=0.01, fault=0.02, short=0.02, full=0.002, power=0.0005, slow=0.01)
    world = World(5, profile)
    for number in range(8):
        world.spawn(f"busy {number}", _busy)
    while world.living() and world.turn():
        pass
    assert {"fault", "short", "power", "kill"} <= world.befallen
    assert f"{world.calls} {world.digest:08x}" == "1461 c9ae2c78"
