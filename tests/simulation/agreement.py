"""The simulated system calls and the real ones: the same calls by the same processes, answer by answer.

Belongs here: drawing a trace of calls, making it on the simulated disk and by real processes that are told each call
through a pipe. What is compared: each result, or each error's number. Times are compared as far as ``utime`` set them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.process import Process
from tests.simulation.profile import Profile
from tests.simulation.world import World

if TYPE_CHECKING:
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
        """Make a call."""
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
