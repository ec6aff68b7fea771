"""The stress run in short, and its judge: that what it would find, it finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from scripts.benchmarks import launch
from scripts.stresses import cast
from scripts.stresses.evidence import Evidence
from scripts.stresses.journal import Journal
from scripts.stresses.rules import Account, breaches
from tests.helpers import ARCHIVE, MESSAGES, READS, ROOT, ROSTER, record

if TYPE_CHECKING:
    from pathlib import Path

HAPPENS = ("messages acknowledged", "reads", "commands", "hooks", "kills", "archive runs", "guard: nothing", "denied")
"""What each run has some of, unless the machine is too busy for that."""


@pytest.mark.skipif(not os.access(launch.CONSOLE[0], os.X_OK), reason="agent-mailbox is not installed beside Python")
def test_a_short_run_keeps_every_promise(tmp_path: Path) -> None:
    """Everybody at once, killed and stopped, with a fixed seed: a lot happens, nothing is violated."""
    for seconds in (5, 20, 80):  # a busy machine gets little done in the first
        happened = _run(tmp_path, seconds)
        assert list(tmp_path.iterdir()) == []
        if all(happened[what] > 0 for what in HAPPENS):
            return
    raise AssertionError(happened)


def _run(scratch: Path, seconds: int) -> Counter[str]:
    """A run that keeps every promise: what happened."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.stresses", "--seconds", str(seconds), "--seed", "1", "--json"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout or "{}")
    assert told.get("violations") == [], done.stderr
    assert done.returncode == 0, done.stderr
    return Counter(told["counts"])


class Case:
    """A mailbox and the journals of a run, written by hand."""

    def __init__(self, scratch: Path) -> None:
        self.box, self.path = scratch / "box", scratch / "w0.0.jsonl"
        (self.box / ARCHIVE).mkdir(parents=True)
        for name in (MESSAGES, READS, ROSTER):
            (self.box / name).touch()
        self.journal = Journal(self.path)
        self.killed = False

    def put(self, name: str, *objects: dict[str, Any] | bytes) -> None:
        """Lines of a log."""
        with (self.box / name).open("ab") as file:
            file.writelines(o if isinstance(o, bytes) else json.dumps(o).encode() + b"\n" for o in objects)

    def sent(self, token: str = "t", to: str = "r0", log: str = MESSAGES, **more: Any) -> str:
        """A message that is stored and was acknowledged."""
        made = record("w0", to, cast.body(token, 3), **more)
        self.put(log, made)
        self.journal.note("sent", pairs=[(token, made["id"])])
        return str(made["id"])

    def read(
        self, message_id: str, session: str, event: str = "read", via: str | None = None, log: str = READS
    ) -> None:
        """A line of the reads log."""
        line = {"message_id": message_id, "reader_session_id": session, "timestamp": "2026-03-16", "event": event}
        self.put(log, {**line, **({"as": via} if via else {})})

    def shown(self, session: str, number: int = 1, *, recorded: bool = True) -> None:
        """The session was shown the message."""
        self.journal.note("show", number=number, session=session, tokens=["t"])
        if recorded:
            self.journal.note("recorded", number=number)

    def found(self, **unread: list[str]) -> list[str]:
        """What the judge says of it."""
        if not self.killed:
            self.journal.note("end")
        told = Account()
        told.hear_process(self.path, killed=self.killed)
        everybody = {**{session: [] for session in cast.STEADY}, **unread}
        return list(breaches(Evidence(self.box), told, everybody))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Nothing has happened yet."""
    return Case(tmp_path)


def test_a_run_without_fault_is_found_faultless(case: Case) -> None:
    """Read once; unread still; claimed, given back after, claimed by another; shown again after a kill."""
    first = case.sent()
    case.shown("r0")
    case.read(first, "r0")
    case.sent("u", "r1")
    claimed = case.sent("v", "role:builder")
    case.journal.note("show", number=2, session="c0", tokens=["v"])
    case.journal.note("recorded", number=2)
    case.journal.note("show", number=3, session="c1", tokens=["v"])
    case.journal.note("recorded", number=3)
    for session, event in (("c0", "read"), ("c0", "release"), ("c1", "read")):
        case.read(claimed, session, event, "role:builder")
    case.put(MESSAGES, b'{"id":"' + cast.TORN.encode() + b"\n")
    assert case.found(r1=["u"]) == []


def test_a_show_that_was_killed_may_come_again(case: Case) -> None:
    """Shown and not recorded, by a process that was killed."""
    case.killed = True
    message_id = case.sent()
    case.shown("r0")
    case.read(message_id, "r0")
    case.shown("r0", 2, recorded=False)
    assert case.found() == []


def lost(case: Case) -> None:
    """Acknowledged, and not there."""
    case.journal.note("sent", pairs=[("t", "some-id")])


def doubled(case: Case) -> None:
    """Live and archived."""
    message_id = case.sent()
    case.read(message_id, "r0")
    case.shown("r0")
    case.put(f"{ARCHIVE}/2026-03.jsonl", (case.box / MESSAGES).read_bytes())


def busy_and_there(case: Case) -> None:
    """Refused as busy, and stored."""
    made = record("w0", "nobody", cast.body("t", 3))
    case.put(MESSAGES, made)
    case.journal.note("unsent", tokens=["t"], code="busy", busy=True)


def swallowed(case: Case) -> None:
    """Neither read nor unread."""
    case.sent()


def never_shown(case: Case) -> None:
    """Recorded as read without having been shown."""
    case.read(case.sent(), "r0")


def shown_twice(case: Case) -> None:
    """Shown again by a process that was not killed."""
    case.read(case.sent(), "r0")
    case.shown("r0")
    case.shown("r0", 2)


def two_holders(case: Case) -> None:
    """Claimed by two."""
    message_id = case.sent("t", "role:builder")
    for number, session in enumerate(("c0", "c1")):
        case.shown(session, number)
        case.read(message_id, session, via="role:builder")


def archived_unclaimed(case: Case) -> None:
    """Role mail in the archive, given back."""
    message_id = case.sent("t", "role:nobody", f"{ARCHIVE}/2026-03.jsonl")
    case.shown("x")
    for event in ("read", "release"):
        case.read(message_id, "x", event, "role:nobody", f"{ARCHIVE}/2026-03-reads.jsonl")


def archived_owing(case: Case) -> None:
    """Mail in the archive whose ack is owed."""
    message_id = case.sent("t", "r0", f"{ARCHIVE}/2026-03.jsonl", ack=True)
    case.shown("r0")
    case.read(message_id, "r0", log=f"{ARCHIVE}/2026-03-reads.jsonl")


def merged(case: Case) -> None:
    """A line that nobody tore on purpose."""
    case.put(MESSAGES, b"garbage\n")


def hung(case: Case) -> None:
    """A show without an end, of a process that was not killed."""
    case.read(case.sent(), "r0")
    case.shown("r0")
    case.shown("r0", 2, recorded=False)


FAULTS = (
    *(lost, doubled, busy_and_there, swallowed, never_shown, shown_twice),
    *(two_holders, archived_unclaimed, archived_owing, merged, hung),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_found(case: Case, fault: Any) -> None:
    """The judge can say no."""
    fault(case)
    assert case.found() != []
