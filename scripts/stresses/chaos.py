"""What happens to everybody: signals to processes, damage to derived files.

Belongs here: doing it, and keeping count. Who and when is ``director``'s to decide. Nothing but ``.cache`` and the
pointer files is damaged: the logs are the truth, and what breaks them is written by ``foreign``.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    import subprocess


class Sleepers:
    """The processes that were stopped and are to go on."""

    def __init__(self) -> None:
        self._until: list[tuple[float, subprocess.Popen[bytes]]] = []
        self.spans: list[tuple[float, float]] = []

    def stop(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Stop a process for a time."""
        now = time.monotonic()
        process.send_signal(signal.SIGSTOP)
        self._until.append((now + seconds, process))
        self.spans.append((now, now + seconds))

    def wake(self, *, everybody: bool = False) -> None:
        """Let those go on whose time has come."""
        now = time.monotonic()
        for until, process in self._until:
            if everybody or until <= now:
                process.send_signal(signal.SIGCONT)
        self._until = [] if everybody else [pair for pair in self._until if pair[0] > now]

    def asleep(self, process: subprocess.Popen[bytes]) -> bool:
        """Is it to stay stopped?"""
        return any(sleeper is process for _, sleeper in self._until)

    def slept_within(self, start: float, end: float) -> bool:
        """Was any process stopped at some moment between the two?"""
        return any(begun < end and ended > start for begun, ended in self.spans)


def derived(box: Path, pointers: Path) -> list[Path]:
    """The derived files that may be damaged. A stamp may only go: making one up is forging, not damage."""
    found = []
    for top in (box / ".cache", pointers):
        for directory, _, names in os.walk(top):
            found += [Path(directory, name) for name in names if not directory.endswith(("quiet", "unbound"))]
    return sorted(found)


def damage(box: Path, pointers: Path, pick: random.Random) -> str:
    """Damage or delete derived files in one way of several; returns which."""
    how = pick.choice(("everything", "stamps", "delete", "truncate", "flip", "noise", "stale", "stale"))
    chance = pick.random()
    if how in ("everything", "stamps"):
        shutil.rmtree(box / ".cache" / ("quiet" if how == "stamps" else ""), ignore_errors=True)
        return how
    files = derived(box, pointers)
    if files:
        try:
            _spoil(files[int(chance * len(files))], how, pick)
        except OSError:
            pass  # somebody deleted it at this moment
    return how


def _spoil(path: Path, how: str, pick: random.Random) -> None:
    kept = path.with_name(f"{path.name}.kept")
    if path.suffix == ".kept" or how == "delete":
        path.unlink()
        return
    if how == "stale" and not kept.exists():
        shutil.copy2(path, kept)
        return
    content = kept.read_bytes() if how == "stale" else path.read_bytes()
    place = int(pick.random() * len(content))
    with path.open("r+b") as file:
        if how == "truncate":
            file.truncate(place)
        elif how == "flip" and content:
            file.seek(place)
            file.write(bytes([content[place] ^ 1 << pick.randrange(8)]))
        elif how == "noise":
            file.write(pick.randbytes(min(len(content) + 10, 4096)))
        elif how == "stale":
            file.write(content)
            file.truncate()
    if how == "stale":  # with its time, so that the seal fits: an old truth, not a broken one
        at = kept.stat().st_mtime_ns
        os.utime(path, ns=(at, at))
