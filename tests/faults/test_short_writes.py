"""Where only a part of a write arrives, the rest follows, or what arrived is taken back; half a line never merges."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults import commands
from tests.faults.evidence import Evidence
from tests.faults.faults import EXHAUSTIVE, TRIED, sample, share
from tests.faults.verdict import KILLED, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.commands import Command
    from tests.faults.faults import Call, Case

SHIM = Path(__file__).with_name("half.c")
PARTS = ("one", "half", "but-one") if EXHAUSTIVE else ("half",)
DEATHS = PARTS if EXHAUSTIVE else ("but-one",)
PAGE = 4096


@pytest.fixture(scope="session")
def half(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that writes halves, compiled here and now."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (apt-get install gcc libc6-dev)")
    library = tmp_path_factory.mktemp("half") / "half.so"
    done = subprocess.run(
        [compiler, "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o", library, SHIM, "-ldl"],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"the C compiler does not work: {done.stderr.decode(errors='replace').splitlines()[:1]}")
    return str(library)


def partly(half: str, call: Call | None, takes: str, then: str) -> dict[str, str]:
    """The environment in which a write (None: every one) takes only a part."""
    shim = {"LD_PRELOAD": half, "FAULT_NUMBER": str(call.number if call else 0), "FAULT_TAKES": takes}
    return {**shim, "FAULT_THEN": then, **({"FAULT_FILE": call.path} if call else {})}


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", commands.ALL, ids=repr)
def test_every_write_takes_only_a_part(
    command: Command, half: str, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """The command goes on until everything is written, and is as good as any."""
    case = case_of(command)
    for takes in PARTS:
        before = case.fresh()
        result = case.run(env=partly(half, None, takes, "go"))
        Verdict(case.post, command, before, result).all(fails=False)
    tally(command, "short writes", len(PARTS))


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", TRIED, ids=repr)
@pytest.mark.parametrize("then", ["refuse", "die"])
def test_a_part_is_written_and_then_no_more(
    command: Command,
    then: str,
    half: str,
    case_of: Callable[[Command], Case],
    tally: Callable[[object, str, int], None],
) -> None:
    """Refused the rest, the command takes back what arrived and fails; killed, it leaves half a line, on its own."""
    case = case_of(command)
    calls = share(sample([call for call in case.calls() if call.name == "write"]), command, then == "die")
    parts = DEATHS if then == "die" else PARTS
    for call in calls:
        for takes in parts:
            before = case.fresh()
            result = case.run(env=partly(half, call, takes, then))
            assert (result.rc == KILLED) == (then == "die"), (call, result)
            try:
                is_note = call.path.endswith("~")  # of the record, replaced as a whole
                fails = then == "refuse" and (case.is_log(call) or is_note)
                verdict = Verdict(case.post, command, before, result)
                verdict.all(
                    fails=fails if then == "refuse" and call.path != str(case.out) else None, torn=then == "die"
                )
            except AssertionError as problem:
                raise AssertionError(f"{takes} of {call}, then {then}: {problem}") from problem
    tally(command, "cut short" if then == "refuse" else "killed within", len(calls) * len(parts))


@pytest.mark.parametrize("command", TRIED, ids=repr)
def test_files_may_not_grow(
    command: Command, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """A command succeeds or fails as a whole at every limit on the size of a file (RLIMIT_FSIZE)."""
    case = case_of(command)
    size = os.path.getsize(case.post.file(command.log))
    room = range(0, 300, 5 if EXHAUSTIVE else 60)
    limits = [0, 64, 512, 2048, 100_000] if command.steward else [0, *(size + more for more in room)]
    failures = 0
    for limit in limits:
        before = case.fresh()
        result = case.run(limit=limit)
        failures += result.rc == 5 or bool(command.hook and result.stderr)
        try:
            Verdict(case.post, command, before, result).all()
        except AssertionError as problem:
            raise AssertionError(f"at most {limit} bytes, {size} stood there: {problem}") from problem
    assert failures, "no limit was ever met"
    tally(command, "file size limit", len(limits))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.decode(errors='replace').strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("command", TRIED, ids=repr)
def test_the_file_system_is_full(
    command: Command, small: Path, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """A command loses nothing on a file system that is full or nearly full. Its repetition completes the work once
    there is room."""
    case = case_of(command)
    case.move(small / "box", PAGE - 60)
    failures, rooms = 0, range(12 if EXHAUSTIVE else 4)
    for pages in rooms:
        before = case.fresh()
        ballast = small / "ballast"
        _fill(ballast, small, pages)
        result = case.run()
        ballast.unlink()
        failures += result.rc == 5 or bool(command.hook and result.stderr)
        try:
            Verdict(case.post, command, before, result).all()
        except AssertionError as problem:
            raise AssertionError(f"{pages} pages left: {problem}") from problem
    assert failures, "the file system was never full"
    tally(command, "file system full", len(rooms))


def _fill(ballast: Path, place: Path, pages: int) -> None:
    left = os.statvfs(place)
    with ballast.open("wb") as file:
        file.write(b"\1" * ((left.f_bavail - pages) * left.f_frsize))
    assert os.statvfs(place).f_bavail == pages


def test_the_limits_are_felt_by_the_witness(case_of: Callable[[Command], Case]) -> None:
    """The claims above can fail: a record that is taken out of a log is missed."""
    case = case_of(commands.SEND)
    before = Evidence(case.post.box)
    log = case.post.file(commands.SEND.log)
    log.write_bytes(log.read_bytes().replace(b"number 00000009", b"number 0000000X"))
    result = case.run()
    with pytest.raises(AssertionError, match="changed"):
        Verdict(case.post, commands.SEND, before, result).all()
