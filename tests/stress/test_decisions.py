"""The judge of the control plane in the stress run: what it would find, it finds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.permission import permit
from scripts.stresses import decisions
from scripts.stresses.evidence import Evidence
from tests.helpers import ARCHIVE, MESSAGES, READS, ROSTER, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALL = "touch p.1"


class Log:
    """A log written by hand, and what a worker's client and others were told."""

    def __init__(self, box: Path) -> None:
        self.box = box
        (box / ARCHIVE).mkdir(parents=True)
        for name in (MESSAGES, READS, ROSTER):
            (box / name).touch()
        self.permits: list[decisions.Permit] = []
        self.told: list[tuple[str, str, str]] = []

    def says(self, sender: str, payload: dict[str, Any], log: str = MESSAGES) -> None:
        """A control message."""
        made = record(sender, "k0", json.dumps({"requestId": "perm-1", **payload}), type="control", seal="1 …")
        with (self.box / log).open("a") as file:
            file.write(json.dumps(made) + "\n")

    def asks(self, command: str = CALL, log: str = MESSAGES) -> None:
        """A worker's request."""
        tool = {"name": "Bash", "input": {"command": command}}
        self.says("k0", {"type": "permission_request", "tool": tool}, log)

    def answers(self, sender: str = "b0", approved: bool = True, log: str = MESSAGES, **more: Any) -> None:
        """Somebody's response."""
        self.says(sender, {"type": "permission_response", "approved": approved, **more}, log)

    def hook(self, decision: str | None, command: str = CALL, changed: Any = None, *, killed: bool = False) -> None:
        """What the client was told."""
        more = {"updatedInput": changed} if changed else {}
        body = {"hookSpecificOutput": {"permissionDecision": decision, **more}}
        said = json.dumps(body) if decision else ""
        self.permits.append(decisions.Permit("k0", command, said, killed=killed))

    def closed(self, event: str, why: str) -> None:
        """What the client was told by a hook that failed, in a session that was bound."""
        self.permits.append(decisions.Permit("k0", CALL, permit.closed(event, why), killed=False))

    def found(self) -> list[str]:
        """What the judge says."""
        return list(decisions.breaches(decisions.cases(Evidence(self.box)), self.permits, self.told))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Nothing was asked."""
    return Log(tmp_path / "box")


def approved(log: Log) -> None:
    """By its lead, with another input, which is what runs."""
    log.asks()
    log.answers(updatedInput={"command": "touch y"})
    log.answers(approved=False)
    log.hook("allow", changed={"command": "touch y"})
    log.told.append(("somebody", "perm-1", "approved"))


def in_the_archive(log: Log) -> None:
    """What is late may stand in the live log."""
    log.asks(log=f"{ARCHIVE}/2026-03.jsonl")
    log.answers(approved=False, log=f"{ARCHIVE}/2026-03.jsonl")
    log.answers()
    log.hook("deny")


def denied_by_policy(log: Log) -> None:
    """Nobody is asked."""
    log.hook("deny", "rm x")


def killed(log: Log) -> None:
    """A client's own rules are what holds then."""
    log.asks()
    log.hook(None, killed=True)


def put_in_what_is_denied(log: Log) -> None:
    """Approved, and denied by the policy all the same."""
    log.asks()
    log.answers(updatedInput={"command": "rm y"})
    log.hook("deny")


def met_a_lock(log: Log) -> None:
    """Somebody was stopped who held it: no is the safe answer."""
    log.closed("PreToolUse", "/box/agent-mailbox.jsonl is locked by pid 7")
    log.closed("PermissionRequest", "/box/agent-mailbox.jsonl is locked")


RIGHT = (approved, in_the_archive, denied_by_policy, killed, put_in_what_is_denied, met_a_lock)


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.__name__)
def test_what_is_right_is_found_right(log: Log, right: Callable[[Log], None]) -> None:
    """The judge can say yes."""
    right(log)
    assert log.found() == []


def allowed_unasked(log: Log) -> None:
    """Nobody was asked."""
    log.hook("allow")


def allowed_when_denied(log: Log) -> None:
    """Its lead said no."""
    log.asks()
    log.answers(approved=False)
    log.hook("allow")


def allowed_by_a_forgery(log: Log) -> None:
    """Another lead, a stranger and the worker itself said yes."""
    log.asks()
    for sender in ("b1", "zed-0", "k0"):
        log.answers(sender)
    log.hook("allow")


def allowed_too_late(log: Log) -> None:
    """Its time was over before."""
    log.asks()
    log.answers("k0", False, cause="timeout")
    log.answers()
    log.hook("allow", killed=True)


def allowed_otherwise(log: Log) -> None:
    """Not with the input that the lead put in."""
    log.asks()
    log.answers(updatedInput={"command": "touch y"})
    log.hook("allow")


def allowed_against_the_policy(log: Log) -> None:
    """Whatever its lead says."""
    log.asks("rm x")
    log.answers()
    log.hook("allow", "rm x")


def let_through(log: Log) -> None:
    """Said nothing."""
    log.asks()
    log.answers()
    log.hook(None)


def denied_when_approved(log: Log) -> None:
    """Two readers of one answer do not agree."""
    log.asks()
    log.answers()
    log.hook("deny")


def denied_unasked(log: Log) -> None:
    """Neither the policy nor anybody else did."""
    log.hook("deny")


def failed(log: Log) -> None:
    """A defect of ours, however safe what it came to."""
    log.closed("PreToolUse", "TypeError")


def left_open(log: Log) -> None:
    """Denied, and not decided in the log."""
    log.asks()
    log.hook("deny")


def told_otherwise(log: Log) -> None:
    """Who waited beside it heard something else."""
    log.asks()
    log.answers()
    log.told.append(("somebody", "perm-1", "denied"))


FAULTS = (
    *(allowed_unasked, allowed_when_denied, allowed_by_a_forgery, allowed_too_late, allowed_otherwise),
    *(allowed_against_the_policy, let_through, denied_when_approved, denied_unasked, failed),
    *(left_open, told_otherwise),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_found(log: Log, fault: Callable[[Log], None]) -> None:
    """The judge can say no."""
    fault(log)
    assert len(log.found()) == 1
