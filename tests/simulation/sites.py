"""Where commands ask the system: aims are drawn from the places that they came to, a rare one as often as a common one.

Belongs here: learning the places as a world runs, and drawing from them. A number of a call says little: of a hundred
calls of a command sixty read. The first round of a sweep (``sweeps``) teaches the places of its commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_mailbox.store.files.system import LOCK_UN, O_WRONLY

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random
    from types import CodeType, FrameType

    from tests.simulation.process import Process


CALLS = (
    *("open", "close", "dup", "read", "pread", "write", "pwrite", "ftruncate", "fsync", "fdatasync", "fstat", "stat"),
    *("lstat", "access", "utime", "chmod", "mkdir", "rmdir", "unlink", "rename", "replace", "link", "listdir"),
    *("scandir", "readlink", "flock", "flock_within", "monotonic", "time_ns", "booted", "sleep", "sched_yield"),
    *("watched", "readable", "urandom", "getpid", "geteuid", "getcwd", "kill", "sysconf", "home", "real_path"),
    *("absolute", "at_home", "stream", "library_lock", "marks", "statvfs"),
)
"""The calls that the simulation answers. Any other that the product made would end the run."""
SILENT = {
    *("booted", "getpid", "geteuid", "getcwd", "sysconf", "home", "real_path", "absolute", "at_home", "stream"),
    *("library_lock", "marks", "statvfs"),
}
"""Those of them at which nothing can happen: they tell a constant, or consist of other calls."""
LOOKS = ("stat", "lstat", "scandir")
"""Calls that look at a name. They fail where our code makes them: a shell's test cannot tell that from "not newer"."""
CAN_FAIL = ("write", "pwrite", "open", "pread", "rename", "unlink", "mkdir", "listdir", "link", "ftruncate", *LOOKS)
"""Calls that are made to fail, beside the syncs."""
DOUBTED = {"rename", "link", "fsync", "fdatasync"}
"""Calls behind which a power failure takes something else than before."""
PURE = {"register_at_fork", "fspath", "WIFEXITED", "WEXITSTATUS"}
"""Functions of that module that the simulation leaves as they are."""


Site = tuple[str | int, ...]
"""A call, the file that it opens in the mailbox, and the lines of the product that led to it: the innermost three."""
SYNCS = {"fsync", "fdatasync"}
CHANGES = {"write", "pwrite", "ftruncate", "rename", "unlink", "link", "mkdir", "utime", "flock", "open"}
TURNING = {"rename", "replace", "link", "ftruncate"}
"""Behind these a process is half way, for so many calls:"""
HALF_WAY = 5
AIMED: dict[str, tuple[tuple[float, set[str]], ...]] = {
    "fault": ((0.65, SYNCS), (1.0, {*CAN_FAIL})),
    "faint": ((1.0, SYNCS),),
    "short": ((1.0, {"write", "pwrite"}),),
    "brim": ((1.0, {"write"}),),
    "kill": ((0.4, SYNCS), (0.75, CHANGES)),
    "power": ((0.4, SYNCS), (0.75, CHANGES)),
    "park": ((0.15, SYNCS), (0.5, CHANGES)),
}
"""Which calls are aimed at, by what shall befall them: shares that add up; the rest are any calls."""
BEHIND, MISSED, BETWEEN, BESIDE, LOCKING = "behind", "missed", "between", "beside", "locking"
UNMADE = "unmade"
DERIVED, DERIVING = "derived", "deriving"
"""Behind a kind: it befalls the process half way; or right behind a call that failed, as of a file that is not there:
what it learned may be old by then; or right behind a log that is not there; or before it opens a second file beside a
first one: they may not fit by then; or before it takes a lock: what it looked at may be old by then; or before it reads
from a derived file that it opened, or begins to write one: others may have written it by then."""
CALLED = {
    "reading": {"open", "pread", "listdir"},
    "looking": {"open", "pread", "listdir", *LOOKS},
    "dating": {"utime"},
    "noting": {"pwrite"},
    "syncing": SYNCS,
    "asking": {"ask", "publish"},
    "publishing": {"publish"},
}
"""The same by the call alone: where it reads, or also where it looks at a name, or dates a file, which may seal it, or
notes something where something was, or syncs, or asks an engine or appends there (``machines``)."""
EACH_TIME = {"faults": "fault"}
"""What befalls each call at a place, and not one of them: some answers count after a second look alone."""
CACHE = "/.cache/"
LOG = ".jsonl"
MISSING = 3
"""For so many calls."""
NEAR = 4
"""So many calls behind one of a function are beside it, and two before it."""
DEPTH = 3
OTHER, OURS, NAMED = 0, 1, 2
"""Of functions: outside the product, or in its doors; in the product; one that is named."""
DOORS = ("store/files/system.py", "store/locks/lock.py")
"""Modules through which all of them ask."""


def function_name(file: str, name: str) -> str:
    """Return the name of a function of a file: by its module and its own name, wherever the module is."""
    return f"{file.rpartition('/')[2].removesuffix('.py')}.{name}"


class Sites:
    """The places that each command of a world came to."""

    def __init__(self, beside: Collection[str] = ()) -> None:
        self._beside = beside
        """Functions, ``log.HeldLog.append``, beside which half of the places are drawn."""
        self._codes: dict[int, int] = {}
        self._alive: list[CodeType] = []
        """These functions, so that no other gets the number of one."""
        self._known: dict[tuple[str, bool], dict[Site, int]] = {}
        """By command, and whether in peace: how often each place was come to, in the order of the first time."""
        self._near: dict[str, set[Site]] = {
            where: set() for where in (BEHIND, MISSED, UNMADE, BETWEEN, BESIDE, LOCKING, DERIVED, DERIVING)
        }
        """Places near something else that the process did (``BEHIND`` and so on)."""

    def meet(self, process: Process, call: str, frame: FrameType | None, words: tuple[Any, ...]) -> Site:
        """Note the place of a call, and return it."""
        found: list[str | int] = [call]
        if call == "open" and words[0].count("/") == 2:  # the logs are opened in one place
            found.append(words[0])
        left, near, codes = DEPTH, False, self._codes
        while frame is not None and left:
            code = frame.f_code
            what = codes.get(id(code))
            if what is None:
                what = self._learn(code)
            if what:
                found += id(code), frame.f_lineno
                left -= 1
                near = near or what == NAMED
            frame = frame.f_back
        site = tuple(found)
        known = self._known.setdefault((process.command, process.world.quiet), {})
        if site not in known:
            known[site] = 0
            self._look_at(process, call, words, site)
        known[site] += 1
        if near:
            process.beside = NEAR
            self._near[BESIDE].update(process.stamp_files)
        if process.beside:
            process.beside -= 1
            self._near[BESIDE].add(site)
        process.stamp_files = (*process.stamp_files[-1:], site)
        if call in TURNING:
            process.half_way = HALF_WAY
        elif process.half_way:
            process.half_way -= 1
            self._near[BEHIND].add(site)
        if call == "open" and process.opened + 2 >= process.calls:
            self._near[BETWEEN].add(site)
        if call == "flock" and not words[1] & LOCK_UN:
            self._near[LOCKING].add(site)
        process.opened = process.calls if call == "open" else process.opened
        if process.missing:
            process.missing -= 1
            self._near[MISSED].add(site)
            if process.missing == MISSING - 1 and any(map(_opens_log, process.stamp_files[:-1])):
                self._near[UNMADE].add(site)
        return site

    def _learn(self, code: CodeType) -> int:
        """Tell functions of the product outside its doors; comprehensions differ between Pythons."""
        _, inside, file = code.co_filename.rpartition("/agent_mailbox/")
        kind = OURS if inside and file not in DOORS and code.co_name[0] != "<" else OTHER
        if inside and function_name(file, code.co_qualname) in self._beside:
            kind = NAMED
        self._alive.append(code)
        self._codes[id(code)] = kind
        return kind

    def _look_at(self, process: Process, call: str, words: tuple[Any, ...], site: Site) -> None:
        """Note what can be told of a new place: is it about a derived file?"""
        if call == "open":
            if CACHE in words[0] and words[1] & O_WRONLY:
                self._near[DERIVING].add(site)
        elif call == "pread" and (file := process.files.get(words[0])) is not None and CACHE in file.path:
            self._near[DERIVED].add(site)

    def knows(self, command: str) -> bool:
        """Return whether the command ran."""
        return (command, False) in self._known or (command, True) in self._known

    def draw(self, command: str, what: str, chance: Random) -> tuple[Site, int] | None:
        """Draw a place for what shall befall a command, and which time it is meant there; None if none is known."""
        known = self._known.get((command, False)) or self._known.get((command, True), {})
        kind, _, where = what.partition(" ")
        drawn = chance.random()
        aimed = [(1.0, SYNCS)] if kind == "fault" and where else AIMED.get(kind, ())
        aimed = [(1.0, CALLED[where])] if where in CALLED else aimed
        aimed = () if where in (DERIVED, DERIVING) else aimed
        wanted = next((calls for share, calls in aimed if drawn < share), None)
        there = [site for site in known if wanted is None or site[0] in wanted]
        if where in self._near:
            there = [site for site in there if site in self._near[where]] or there
        if self._beside and chance.random() < 0.5:
            there = [site for site in there if site in self._near[BESIDE]] or there
        if not there:
            return None
        if chance.random() < 0.5:  # those that few processes came to: what is done once, and after a failure
            site = chance.choices(there, [1 / known[site] for site in there])[0]
        else:
            site = there[int(chance.random() * len(there))]
        return site, 1 if chance.random() < 0.85 else 2 + int(chance.random() * 3)


def _opens_log(site: Site) -> bool:
    """Return whether a log is opened at the place."""
    call, *rest = site
    return call == "open" and bool(rest) and str(rest[0]).endswith(LOG)
