"""Refused a system call, a command says so and nothing is lost; a sync that failed is never an acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults import commands
from tests.faults.faults import EXHAUSTIVE, TRIED, sample, share

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.commands import Command
    from tests.faults.faults import Call, Case

ALWAYS = {"write": ("ENOSPC",), "fsync": ("EIO",), "fdatasync": ("EIO",), "rename": ("EIO",)}
"""What is tried of mailbox files without the exhaustive run."""
EVERYTHING = {
    "write": ("EIO", "ENOSPC", "EDQUOT", "EINTR"),
    "fsync": ("EIO", "ENOSPC", "EDQUOT", "EINTR"),
    "fdatasync": ("EIO", "ENOSPC", "EDQUOT", "EINTR"),
    "rename": ("EIO", "ENOSPC", "EDQUOT"),
    "openat": ("EIO", "ENOSPC", "EMFILE", "EACCES"),
    "ftruncate": ("EIO",),
    "mkdir": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "utimensat": ("EIO",),
    "flock": ("ENOLCK", "EINTR"),
}
RETRIED = {"write", "fsync", "fdatasync"}
"""Calls that Python makes again when a signal interrupted them."""


def wanted(case: Case) -> list[tuple[Call, str]]:
    """Which calls are to fail, and how."""
    errors = EVERYTHING if EXHAUSTIVE else ALWAYS
    calls = share(sample([call for call in case.calls() if EXHAUSTIVE or case.is_log(call)]), case.command, 1)
    return [(call, error) for call in calls for error in errors.get(call.name, ())]


def must_fail(case: Case, call: Call, error: str) -> bool | None:
    """Must the command report it? None: it may do either."""
    if error == "EINTR":
        return False if call.name in RETRIED else None
    if case.is_log(call) and call.name in ALWAYS:
        return True
    return False if "/.cache/" in call.path and call.name != "unlink" else None


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", commands.ALL, ids=repr)
def test_refused_a_system_call(
    command: Command, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """The command fails with exit code 5 if it was a log that could not be written or synced (a hook complains), names
    the id to repeat it with, and its repetition completes it. What is derived may fail without anyone noticing."""
    case = case_of(command)
    cases = wanted(case)
    for call, error in cases:
        try:
            case.refused(call, error).all(fails=must_fail(case, call, error))
        except AssertionError as problem:
            raise AssertionError(f"{error} from {call}: {problem}") from problem
    tally(command, "refused", len(cases))


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", [c for c in TRIED if c.reads is None and c.again == c.words], ids=repr)
@pytest.mark.parametrize("how", ["killed before it", "refused it"])
def test_what_was_not_synced_is_synced_by_the_repetition(
    command: Command, how: str, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """After a sync that did not happen the repetition finds its record there; it syncs it before it says so, and before
    a log is replaced that what is there was taken from."""
    case = case_of(command)
    calls = case.calls()
    chosen = sample([call for call in calls if call.name in ("fsync", "fdatasync")])
    if not EXHAUSTIVE and len(chosen) > 1:  # the other way has those between
        chosen = share(chosen[how == "killed before it" :: 2], command, 0)
    syncs = [n for n, call in enumerate(calls) if call in chosen]
    assert syncs
    for n in syncs:
        case.killed_before(calls[n]) if how == "killed before it" else case.refused(calls[n], "EIO")
        disk = case.disk()
        disk.follow(calls[:n])
        result, repetition = case.traced()
        assert result.rc == 0 or "dead" in result.stderr, result
        try:
            disk.follow(repetition)
            assert not disk.at_risk(), f"{disk.at_risk()} could still be lost"
        except AssertionError as problem:
            raise AssertionError(f"{how}: {calls[n]}: {problem}") from problem
    tally(command, "sync repeated", len(syncs))


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", commands.ALL, ids=repr)
def test_nothing_is_acknowledged_that_a_power_failure_could_take(
    command: Command, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """When the command says that it is done, every log and the name of every new file is synced."""
    case = case_of(command)
    calls = case.calls()
    disk = case.disk()
    said = next((n for n, call in enumerate(calls) if call.path == str(case.out)), len(calls))
    if command.reads is None:
        disk.follow(calls[:said])
        assert not disk.at_risk(), f"{disk.at_risk()} could still be lost"
    disk.follow(calls[said:] if command.reads is None else calls)
    assert not disk.at_risk(), f"{disk.at_risk()} could still be lost"
    tally(command, "synced before done", 1)


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("how", ["killed before it", "refused it"])
def test_what_is_written_to_a_log_whose_name_was_not_synced_is_safe(
    how: str, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """The steward replaced a log, and did not live to sync the directory: whoever writes to the new log next does it,
    or a power failure would bring the old one back, without what was acknowledged."""
    case = case_of(commands.STEWARD)
    calls = case.calls()
    of_logs = [n for n, call in enumerate(calls) if call.name == "fsync" and call.path == str(case.post.box)]
    syncs = [n for n in of_logs if calls[n - 1].name == "rename"]
    followers = (commands.SEND, commands.ACK, commands.UPDATE)
    for n, follower in zip(syncs, followers, strict=True):
        case.killed_before(calls[n]) if how == "killed before it" else case.refused(calls[n], "EIO")
        disk = case.disk()
        disk.follow(calls[:n])
        for words in (["check", "--session", "gil"], follower.words):  # a poll on the way must not cover it up
            result, more = case.traced(words)
            assert result.rc == 0, result
            disk.follow(more)
        assert not disk.at_risk(), f"{how}: {calls[n]}, then {follower}: {disk.at_risk()} could be lost"
    tally(commands.STEWARD, "sync repeated", len(syncs))
