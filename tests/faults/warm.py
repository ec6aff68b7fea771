"""A pytest that has collected its tests once, and runs some of them in a forked process, again and again.

Belongs here: the collection, the fork, its watch, and a changed source in place of the one that is imported. A test
that starts an interpreter of its own meets the source as it is.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import tempfile
from functools import _lru_cache_wrapper
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis.internal.charmap import charmap

from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Work = Callable[["Warm"], None]

ENDLESS_SECONDS = 15
"""Of the processor, after which one test has no end."""
PROCESSES = 2 * len(os.sched_getaffinity(0))
"""Many tests wait, and others go on."""
PATIENCE = 300
"""Seconds without a word from a forked process, after which it waits for ever."""
MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
OF_IMPORT = ("__package__", "__file__", "__spec__", "__path__")
PLAIN = (int, str, bytes, float, type(None))
ENDLESS = "no end: "


class Warm:
    """The collected tests, each by its name."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.items: dict[str, pytest.Item] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do the work in place of running all tests. A browser's driver does not outlive a fork.

        Drawn texts need a table of all characters. Where none is kept, each fork would make its own, and take its tests
        for dear ones.
        """
        charmap()
        items = (item for item in session.items if isinstance(item, pytest.Function))
        self.items = {item.nodeid: item for item in items if "chromium" not in item.fixturenames}
        self._work(self)
        return True

    def first_failure(self, tests: Iterable[str], before: Callable[[], None]) -> str:
        """Return the first of the tests that fails behind ``before``, or has no end; empty if none does."""
        chosen = [self.items[name] for name in tests]

        def run(tell: Callable[[str], None]) -> None:
            try:
                before()
            except LookupError:
                tell("")
                return
            for item, after in zip(chosen, [*chosen[1:], None], strict=True):
                tell(f"{ENDLESS}{item.nodeid}")
                signal.setitimer(signal.ITIMER_PROF, ENDLESS_SECONDS)
                if not passes(item, after):
                    tell(item.nodeid)
                    item.session._setupstate.teardown_exact(None)  # ends the servers that tests share
                    return
            tell("")

        return in_a_fork(run)


def start(rooms: Iterable[str], work: Work) -> None:
    """Collect the tests of these rooms, then do the work."""
    words = ["-q", "-s", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=drawn"]
    pytest.main([*words, f"--rootdir={ROOT}", *(str(ROOT / "tests" / room) for room in rooms)], plugins=[Warm(work)])


def passes(item: pytest.Item, after: pytest.Item | None = None) -> bool:
    """Run a test with its fixtures, and return whether no part of it failed."""
    failed = list[Any]()

    class Reports:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            failed.extend([report] if report.failed else [])

    plugins, reports = item.config.pluginmanager, Reports()
    plugins.register(reports)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
    finally:
        plugins.unregister(reports)
    return not failed


def in_parallel(run: Callable[[int], None]) -> None:
    """Run in so many forked processes, each with its number, and wait for all."""
    children = list[int]()
    for number in range(PROCESSES):
        child = os.fork()
        if not child:
            try:
                run(number)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def in_a_fork(run: Callable[[Callable[[str], None]], None]) -> str:
    """Run in a forked process of its own group, which ends with it, and with its tests' directories: another one would
    remove what it finds. Return the last word that it told; where it goes silent, or dies, the last one before."""
    with tempfile.TemporaryDirectory(dir=MEMORY, ignore_cleanup_errors=True) as scratch:
        return _last_word(run, scratch)


def _last_word(run: Callable[[Callable[[str], None]], None], scratch: str) -> str:
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = scratch
        _be_alone(run, theirs)
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], PATIENCE)[0] and (more := os.read(ours, 65536)):
        said = (said + more)[-65536:]
    os.close(ours)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(child, 0)
    words = said.decode().split("\n")
    return words[-2] if len(words) > 1 else f"{ENDLESS}its import"


def _be_alone(run: Callable[[Callable[[str], None]], None], to: int) -> None:
    """Be the forked process; it has no terminal, and leaves nothing behind in this one."""
    leave = os._exit
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.set_inheritable(to, False)
        me = os.getpid()

        def tell(word: str) -> None:
            if os.getpid() == me:
                os.write(to, f"{word}\n".encode())

        run(tell)
    finally:
        leave(0)


def put_in_place(path: Path, text: str) -> None:
    """Have this process run a file of the package as ``text`` has it: each of its functions gets the other's code.

    What the module made of them while it was imported stays as it is. What they remembered is forgotten.

    Raises:
        LookupError: it cannot.
    """
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    there = import_module(name)  # some are imported when they are needed
    other = ModuleType(name)
    vars(other).update({key: value for key, value in vars(there).items() if key in OF_IMPORT})
    old = _functions(vars(there), path)
    exec(compile(text, str(path), "exec"), vars(other))
    new = _functions(vars(other), path)
    for key in old.keys() & new.keys():
        for one, two in zip(old[key], new[key], strict=False):
            if len(one.__code__.co_freevars) != len(two.__code__.co_freevars):
                raise LookupError(f"{key} is no function of the same closure")
            one.__code__ = two.__code__
            one.__defaults__ = _renewed(one.__defaults__, two.__defaults__)
            one.__kwdefaults__ = _renewed(one.__kwdefaults__, two.__kwdefaults__)
    forget_answers()


def forget_answers() -> None:
    """Have each function of the package that remembers its answers forget them."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("agent_mailbox"):
            for thing in vars(module).values():
                if isinstance(thing, _lru_cache_wrapper):
                    thing.cache_clear()


def _renewed(old: Any, new: Any) -> Any:
    """Return defaults, the new ones where they are plain values: another object might be looked for by identity."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: value for key, value in new.items() if key in old and isinstance(value, PLAIN)}
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        return tuple(two if isinstance(two, PLAIN) else one for one, two in zip(old, new, strict=True))
    return old


def _functions(space: dict[str, Any], path: Path) -> dict[str, list[FunctionType]]:
    """Return the functions of a module by their dotted names, several of one name in the order of their lines."""
    gc.unfreeze()  # else what a process froze that began to serve is hidden
    found: dict[str, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__globals__ is space and thing.__code__.co_filename == str(path):
            found.setdefault(thing.__code__.co_qualname, []).append(thing)
    for several in found.values():
        several.sort(key=lambda one: one.__code__.co_firstlineno)
    return found
