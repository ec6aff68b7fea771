"""What runs inside the benchmarks' child processes: ``python -m scripts.benchmarks.worker JOB ARGUMENT…``.

Belongs here: everything that needs a process of its own because its memory, its locks or its pace is what counts.
Each job prints one JSON document. It is the one module that reaches behind the facade, to the poll.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.core.compose import Draft
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.log.stamps import EVERYONE, StampFiles
from agent_mailbox.store.polling.poll import Poll

if TYPE_CHECKING:
    from collections.abc import Callable

LINE = b'{"id":"' + b"x" * 340 + b'"}\n'
"""A raw append's line: as long as a stored message of the throughput test."""
SETTLING = 4.0
"""Seconds after which a log's time is older than any tick, so that a poll need not look at its end again."""
BODY = "Throughput: " + "the schema of the ledger has changed, please migrate. " * 2


def _poll(box: Mailbox, session_id: str) -> Poll:
    return Poll(box.logs, session_id, box.config)


def prime(directory: str, *session_ids: str) -> dict[str, int]:
    """Have the sessions read everything there is for them, so that nothing is left."""
    box = Mailbox(directory)
    return {session_id: box.deliver(session_id, list) for session_id in session_ids}


def measure_poll(directory: str, session_id: str) -> dict[str, float]:
    """Microseconds of a poll with nothing new: the median over batches, each batch's mean."""
    box = Mailbox(directory)
    box.deliver(session_id, list)  # comes to the logs' end, and keeps that
    time.sleep(SETTLING)
    if _poll(box, session_id).unread(box.now()):
        raise SystemExit("there is something new")
    batches = []
    for _ in range(200):
        started = time.perf_counter()
        for _ in range(20):
            _poll(box, session_id).unread(box.now())
        batches.append((time.perf_counter() - started) / 20)
    return {"us": statistics.median(batches) * 1e6, "low": min(batches) * 1e6}


def remove_stamps(scratch: str, count: str) -> dict[str, float]:
    """Milliseconds to remove so many quiet stamps: the median of several times."""
    taken = []
    for turn in range(5):
        stamp_files = StampFiles(str(Path(scratch, f"stamps-{turn}", ".cache")), str(Path(scratch, "state")))
        for number in range(int(count)):
            stamp_files.stamp(f"session-{number}", 0)
        started = time.perf_counter()
        stamp_files.disturb(EVERYONE)
        taken.append(time.perf_counter() - started)
        shutil.rmtree(Path(scratch, f"stamps-{turn}"))
    return {"ms": statistics.median(taken) * 1e3}


def rebuild(directory: str, session_id: str) -> dict[str, float]:
    """Seconds and peak MiB of a poll after everything derived is gone."""
    shutil.rmtree(Path(directory, ".cache"), ignore_errors=True)
    before = _peak_mib()
    box = Mailbox(directory)
    started = time.perf_counter()
    poll = _poll(box, session_id)
    poll.unread(box.now())
    poll.save()
    return {"seconds": time.perf_counter() - started, "mib": _peak_mib(), "mib_before": before}


def _peak_mib() -> float:
    """The most memory this process ever held. (Linux: by VmHWM, since ru_maxrss begins at the parent's size.)"""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def write(directory: str, name: str, count: str) -> dict[str, float]:
    """Durable sends one after the other, once the barrier falls."""
    box = Mailbox(directory)
    draft = Draft(sender=name, to=("role:role-00",), content=BODY)
    return _at_once(int(count), lambda: box.send(draft))


def raw(path: str, _name: str, count: str) -> dict[str, float]:
    """Bare appends under a lock, synced after unlocking: what the disk gives."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)

    def append() -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, LINE)
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.fdatasync(fd)

    return _at_once(int(count), append)


def _at_once(count: int, do: Callable[[], object]) -> dict[str, float]:
    """Do it ``count`` times after the parent closed our standard input; when it began and ended (one clock for all)."""
    print("ready", flush=True)
    sys.stdin.buffer.read()
    started = time.perf_counter()
    for _ in range(count):
        do()
    return {"started": started, "ended": time.perf_counter()}


def load(directory: str, rate: str, seconds: str, *session_ids: str) -> dict[str, float]:
    """Others' mail: ``rate`` times a second one mails the next, who checks; until stdin ends or ``seconds`` passed."""
    box = Mailbox(directory)
    os.set_blocking(0, False)
    for session_id in session_ids:
        box.deliver(session_id, list)
    print("ready", flush=True)
    started, done = time.monotonic(), 0
    while time.monotonic() < started + float(seconds) and not _closed():
        sender, reader = (session_ids[(done + k) % len(session_ids)] for k in (0, 1))
        box.send(Draft(sender=sender, to=(reader,), content=BODY))
        box.deliver(reader, list)
        done += 1
        time.sleep(max(0.0, started + done / float(rate) - time.monotonic()))
    return {"done": done, "seconds": time.monotonic() - started}


def _closed() -> bool:
    try:
        return os.read(0, 1) == b""
    except BlockingIOError:
        return False


JOBS: dict[str, Callable[..., object]] = {
    "prime": prime,
    "poll": measure_poll,
    "stamps": remove_stamps,
    "rebuild": rebuild,
    "write": write,
    "raw": raw,
    "load": load,
}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])), flush=True)
