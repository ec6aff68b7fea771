"""What befalls a call: its process is killed or held, the call fails, the disk is full, the power fails.

Belongs here: doing what was chosen (``choices``).
"""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Any
from zlib import crc32

from tests.simulation.choices import Aim
from tests.simulation.disk import SECOND
from tests.simulation.open_files import failed
from tests.simulation.process import Killed
from tests.simulation.sites import CAN_FAIL, LOOKS
from tests.simulation.telling import told_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from tests.simulation.process import Process
    from tests.simulation.world import World

PRODUCT = "/agent_mailbox/"
_asks: dict[CodeType, bool] = {}


def _is_product(frame: FrameType | None) -> bool:
    """Return whether the product makes a call, and not the workload: whether one of its functions is above the door."""
    while frame is not None:
        code = frame.f_code
        asks = _asks.get(code)
        if asks is None:
            _, ours, file = code.co_filename.rpartition(PRODUCT)
            asks = _asks[code] = bool(ours) and file != "store/files/system.py"
        if asks:
            return True
        frame = frame.f_back
    return False


def _can(call: str, kind: str) -> bool:
    """Can that befall the call? A call that cannot fail, or run short, goes on as if nothing had been chosen."""
    writes = "write" in call
    return {"fault": call in CAN_FAIL or "sync" in call, "short": writes, "brim": writes}.get(kind, True)


def _is_steady(call: str, words: tuple[Any, ...], frame: FrameType) -> bool:
    """Is it a look that does not fail: at an open file, or none of the product's?"""
    return call in LOOKS and (isinstance(words[0], int) or not _is_product(frame))


def befall(world: World, process: Process, name: str, words: tuple[Any, ...], chosen: str) -> tuple[Any, ...]:
    """Do what was chosen, and return the words of the call, which may be fewer. Raises what befalls the call."""
    kind, _, text = chosen.partition(" ")
    detail = int(text)
    if kind == "fault" and _is_steady(name, words, sys._getframe(1)):
        return words
    if _can(name, kind):
        world.befallen.add(kind)
        if world.story is not None and kind != "switch":
            at = f"{name}({told_value(words[0], process.files)})" if words else name
            world.tell(f"{process.name} {TOLD[kind].format(at)}")
    world.digest = crc32(chosen.encode(), world.digest)
    if kind in ("short", "brim"):
        if kind == "brim" and "write" in name:  # the disk takes a part of this write, and nothing of the next one
            process.aims = [*process.aims, Aim("fault", name, 1)]
        return _shortened(world, process, name, words, detail)
    KINDS[kind](world, process, name, words, detail)
    if process.dead:
        raise Killed
    return words


def _switch(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    if world.profile.strict:
        process.rank *= world.choices.chance.random()
    world.leave(process)


def _park(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    process.rank = min(0.0, *(p.rank for p in world.processes)) - 1  # until nobody else can go on
    world.leave(process)


def _long(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    _pause(world, process, (10 + detail % 4) * 60 * SECOND)


def _kill(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    world.kill(process)


def _stop(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    process.stopped = True
    _pause(world, process, (detail % 40) * SECOND // 2)


def _slow(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    _pause(world, process, (detail % 1000) * SECOND // 100)


def _pause(world: World, process: Process, time: int) -> None:
    process.is_late = True
    process.wakes = world.now + time
    world.leave(process)
    process.wakes, process.stopped = None, False


def _fault(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    process.faults.add(name)
    if name in ("fsync", "fdatasync"):
        file = process.files.get(words[0])
        process.hurt = True
        world.failures += 1
        if file is not None and file.inode is not None and not file.inode.is_directory and detail % 2:
            world.disk.drop(file.inode)
            file.failures = file.inode.failures
        raise failed(errno.EIO)
    if name in CAN_FAIL:
        process.hurt = True
        world.failures += 1
        number = (errno.EIO, errno.ENOSPC, errno.EMFILE)[detail % 3 if name in ("open", "write") else 0]
        if name == "write" and number == errno.EMFILE:
            number = errno.EDQUOT
        raise failed(number, words[0] if isinstance(words[0], str) else None)


def _faint(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    """Have a sync drop what it was to write, and the process die of that."""
    file = process.files.get(words[0]) if words else None
    if name in ("fsync", "fdatasync") and file is not None and file.inode is not None and not file.inode.is_directory:
        world.failures += 1
        world.disk.drop(file.inode)
    world.kill(process)


def _shortened(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> tuple[Any, ...]:
    if name not in ("write", "pwrite") or len(words[1]) < 2:
        return words
    inode = process.files[words[0]].inode if words[0] in process.files else None
    if name == "pwrite" and inode is not None and words[2] + len(words[1]) <= len(inode.data):
        return words  # nothing can run short: the bytes have their place already
    process.hurt = True
    return words[0], words[1][: 1 + detail % (len(words[1]) - 1)], *words[2:]


def _full(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    world.disk.full = not world.disk.full
    for other in world.processes:
        if not other.ended:
            other.hurt = True


def _jump(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    world.offset += (detail % 21 - 10) * 360 * SECOND


def _power(world: World, process: Process, name: str, words: tuple[Any, ...], detail: int) -> None:
    world.lose_power(process)


KINDS: dict[str, Callable[[World, Process, str, tuple[Any, ...], int], None]] = {
    "switch": _switch, "kill": _kill, "stop": _stop, "fault": _fault, "full": _full, "jump": _jump, "power": _power,
    "slow": _slow, "park": _park, "long": _long, "faint": _faint,
}  # fmt: skip
"""What each does to the world, or raises."""
TOLD = {
    "kill": "is killed before {}", "stop": "is stopped before {}", "slow": "is slow before {}",
    "park": "is held before {} until nobody else can go on", "long": "is held before {} for over ten minutes",
    "fault": "fails at {}", "faint": "dies at {}, which loses what it was to sync", "short": "does a part of {}",
    "brim": "fills the disk by {}, and fails at the next", "full": "finds the disk full, or no longer so, at {}",
    "jump": "has the clock jump at {}", "power": "has the power fail at {}",
}  # fmt: skip
"""How a story tells each."""
