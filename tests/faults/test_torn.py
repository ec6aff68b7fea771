"""Whatever a crash left at the end of a log, the next command works, and the records before and after stay whole."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.faults import commands, world
from tests.faults.evidence import LOGS, Evidence, unchanged
from tests.faults.faults import EXHAUSTIVE, TRIED
from tests.faults.verdict import Verdict
from tests.helpers import MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.commands import Command
    from tests.faults.faults import Case

LAST = {
    MESSAGES: world.message(world.message_id(200), "ann", "role:absent", 60, subject="“last” €"),
    READS: world.read(world.message_id(201), "zed", 60, "role:absent"),
    ROSTER: world.agent("zed", "domain:€", ago=60),
}
"""The line of a log that a crash cut; nobody of the world is concerned by it."""
HOLES = (1, 2, 511, 512, 4095, 4096)


def ends(line: bytes) -> Iterator[tuple[str, bytes]]:
    """What may be left of a last line: every beginning, and holes of zeros behind, within and in the place of it."""
    cuts = range(1, len(line) + 1)
    for cut in cuts if EXHAUSTIVE else {*cuts[:3], *cuts[::23], *cuts[-3:]}:
        yield f"{cut} bytes cut off", line[:-cut]
    middle = len(line) // 2
    for hole in HOLES:
        yield f"{hole} zeros after the line", line + bytes(hole)
        yield f"{hole} zeros after half the line", line[:middle] + bytes(hole)
        yield f"{hole} zeros within the line", line[:middle] + bytes(hole) + line[middle:]
        yield f"{hole} zeros in a line of their own", bytes(hole) + b"\n"


def judge(case: Case, command: Command, log: str, left: bytes) -> None:
    """Run the command on a mailbox whose log ends so, and ask the witness."""
    case.fresh()
    with case.post.file(log).open("ab") as file:
        file.write(left)
    before = Evidence(case.post.box)
    result = case.post.call(*command.words, stdin=command.stdin)
    Verdict(case.post, command, before, result).all(fails=False, torn=True)


@pytest.mark.parametrize("log", LOGS)
def test_a_torn_tail(log: str, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]) -> None:
    """Cut at any byte, or zeroed: each of the commands in turn."""
    alike = {command.steward: command for command in commands.ALL}  # each kind has another mailbox
    cases = {is_steward: case_of(command) for is_steward, command in alike.items()}
    tails = list(ends(LAST[log]))
    for command, (what, left) in zip(itertools.cycle(commands.ALL), tails, strict=False):
        try:
            judge(cases[command.steward], command, log, left)
        except AssertionError as problem:
            raise AssertionError(f"{what}, then {command}: {problem}") from problem
    tally("each in turn", f"torn {log}", len(tails))


@pytest.mark.parametrize("command", TRIED, ids=repr)
def test_a_torn_tail_before_each_command(
    command: Command, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """Half a line, a line without its newline, and a hole, in each log."""
    case = case_of(command)
    for log in LOGS:
        line = LAST[log]
        for left in (line[: len(line) // 2], line[:-1], line[:20] + bytes(100), bytes(4096)):
            judge(case, command, log, left)
    tally(command, "torn tails", 4 * len(LOGS))


@pytest.mark.parametrize("log", LOGS)
def test_holes_of_every_length(
    log: str, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """One after the other, a record written behind each: every record is whole, and every reader is shown it once."""
    case = case_of(commands.SEND_PLAIN)
    case.post.register("hal")
    before = Evidence(case.post.box)
    lengths = range(1, 4097, 1 if EXHAUSTIVE else 273)
    shown = []
    for length in lengths:
        with case.post.file(log).open("ab") as file:
            file.write(bytes(length))
        if log == ROSTER:
            case.post.register("hal", "--tags", f"domain:d{length}")
        else:
            case.post.send("dee", "hal", f"behind {length}")
            shown += [m["content"] for m in case.post.ok("check", "--session", "hal", "--limit", "0")["messages"]]
    after = Evidence(case.post.box)
    unchanged(before, after, rewritten=False)
    if log == ROSTER:
        told = [record.get("tags", []) for record in after.records(ROSTER) if record["session_id"] == "hal"]
        assert told == [[], *([f"domain:d{length}"] for length in lengths)]
    else:
        wanted = [f"behind {length}" for length in lengths]
        assert [text for text in shown if text.startswith("behind")] == wanted
        sent = [record.get("content", "") for record in after.records(MESSAGES)]
        assert [text for text in sent if text.startswith("behind")] == wanted
    tally("each in turn", f"holes in {log}", len(lengths))
