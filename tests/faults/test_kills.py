"""Killed before any of its system calls, a command loses nothing acknowledged, and repeating it completes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.core import codec
from agent_mailbox.core.records import Message
from agent_mailbox.store.archive.manifest import Manifest
from agent_mailbox.upkeep import doctor
from tests.faults.faults import EXHAUSTIVE, TRIED, WHOLE, sample, share
from tests.store.test_manifest import assert_sealed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.commands import Command
    from tests.faults.faults import Case


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("command", TRIED, ids=repr)
def test_killed_before_any_system_call(
    command: Command, case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """Before every call that changes a file or its name, or writes output: killed before a sync, a lock or the opening
    of what is there, a command leaves what it leaves killed before the next of those, or at its end; exhaustively it is
    killed there as well."""
    case, said = case_of(command), set[str]()
    calls = share(sample([call for call in case.calls() if EXHAUSTIVE or call.leaves]), command, 0)
    for call in calls:
        verdict = case.killed_before(call)
        try:
            said |= told_of_steward(Mailbox(str(case.post.box))) if command.steward else set()
            verdict.all()
            if command.steward:
                assert_sealed(case.post.box)
        except AssertionError as error:
            raise AssertionError(f"killed before {call}: {error}") from error
    assert not (command.steward and WHOLE) or said >= {"archived and still live", "left by"}, said
    tally(command, "killed", len(calls))


def told_of_steward(mailbox: Mailbox) -> set[str]:
    """Return what the doctor says of a steward's remains: each file in one line, as interrupted, none as damage. What
    left the live log is sealed."""
    assert list(Manifest(mailbox.archive).damage()) == []
    assert only_copies_outside_seals(mailbox) == []
    found = [p.what for p in doctor.problems_among(doctor.examine_mailbox(mailbox)) if "interrupted" in p.what]
    others = [p for p in doctor.problems_among(doctor.examine_mailbox(mailbox)) if "interrupted" not in p.what]
    assert all(p.what.startswith("not a record") or p.repair == "remove torn line" for p in others), others
    assert all("steward run" in what for what in found), found
    files = [
        p.file for p in doctor.problems_among(doctor.examine_mailbox(mailbox)) if "archived and still live" in p.what
    ]
    assert len(files) == len(set(files)), files
    return {kind for kind in ("archived and still live", "not sealed", "left by") for what in found if kind in what}


def only_copies_outside_seals(mailbox: Mailbox) -> list[str]:
    """Archived messages that are no longer live and not sealed: damage to them would go unnoticed."""
    manifest, live = Manifest(mailbox.archive), mailbox.state().messages
    found = []
    for month in mailbox.archive.months():
        log = mailbox.archive.log(month)
        for position, line in log.lines():
            message = codec.message(line)
            if isinstance(message, Message) and message.id not in live:
                found += [message.id] if position >= manifest.sealed(f"{month}.jsonl") else []
    return found
