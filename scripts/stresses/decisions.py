"""What must hold of requests, of who decided them, and of what ran by it.

Belongs here: the promises of the control plane, judged by a fold of its own over the plain JSON of the logs: who leads
whom stands in ``cast`` and never changes, so a look at the sender is all it takes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox.clients.permission.permit import UNTOLD

from . import cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from .evidence import Evidence

OPEN, APPROVED, DENIED, TIMED_OUT = "open", "approved", "denied", "timed_out"


class Case:
    """A request as the log has it: what was asked, and the first decision of one who may take it."""

    def __init__(self, sender: str, payload: dict[str, Any], file: str) -> None:
        self.worker, self.files = sender, {file}
        self.command = (payload["tool"].get("input") or {}).get("command", "")
        self.state = OPEN
        self.changed: dict[str, Any] | None = None

    def hear(self, sender: str, payload: dict[str, Any], file: str, *, sealed: bool) -> None:
        """Take in what somebody says to it; without a seal nobody approves, whoever is named."""
        self.files.add(file)
        if self.state != OPEN:
            return
        if payload.get("cause"):
            self.state = TIMED_OUT if sender == self.worker else OPEN
        elif sender in (cast.LED.get(self.worker), "user") and (sealed or not payload["approved"]):
            self.state = APPROVED if payload["approved"] else DENIED
            self.changed = payload.get("updatedInput")


def cases(evidence: Evidence) -> dict[str, Case]:
    """Every request by its id. Of one whose messages went to several months the order is not known: it is left out."""
    found: dict[str, Case] = {}
    for file, sender, payload, sealed in evidence.control.values():
        known = found.get(payload.get("requestId", ""))
        if payload["type"] == "permission_request":
            if known is None:
                found[payload["requestId"]] = Case(sender, payload, file)
        elif payload["type"] == "permission_response" and known is not None:
            known.hear(sender, payload, file, sealed=sealed)
    return {name: case for name, case in found.items() if sum(file[0].isdigit() for file in case.files) < 2}


class Permit:
    """A client's question about one command, and the answer. ``decision`` is None where nothing was said."""

    def __init__(self, session: str, asked: str, said: str, *, killed: bool) -> None:
        self.session, self.asked, self.said, self.killed = session, asked, said, killed
        self.decision, self.changed = _decision(self.said)
        self.failed = self.decision == "deny" and UNTOLD in self.said and "is locked" in self.said
        """Did it meet a lock that somebody held who was stopped? No other failure is excused."""


def _decision(said: str) -> tuple[str | None, Any]:
    try:
        body = json.loads(said)["hookSpecificOutput"]
    except (ValueError, KeyError):
        return None, None
    made = body.get("decision")
    if made is not None:
        return made["behavior"], made.get("updatedInput")
    return body["permissionDecision"], body.get("updatedInput")


def breaches(
    found: Mapping[str, Case], permits: Sequence[Permit], decided: Sequence[tuple[str, str, str]]
) -> Iterator[str]:
    """Every breach."""
    asked = {case.command: (name, case) for name, case in found.items()}
    for permit in permits:
        if (why := _wrong(permit, *asked.get(permit.asked, ("", None)))) is not None:
            yield f"{permit.session} asked for {permit.asked!r} and was told {permit.said.strip()[:300]!r}: {why}"
    for who, name, state in decided:
        if name in found and state not in (OPEN, found[name].state):
            yield f"{who} was told that {name} is {state}, and the log has it {found[name].state}"


def _wrong(permit: Permit, name: str, case: Case | None) -> str | None:
    """What is wrong with the answer to one question."""
    state = case.state if case is not None else None
    if permit.decision == "allow":
        if permit.asked.startswith(cast.DENIED):
            return "its policy denies that"
        if case is None or state != APPROVED:
            return f"{name or 'nobody was asked, and it'} is {state}"
        return None if permit.changed == case.changed else f"the lead wrote {case.changed}"
    if permit.killed or permit.failed:
        return None
    if permit.decision is None:
        return "it is let through unasked"
    if case is None:
        return None if permit.asked.startswith(cast.DENIED) else "nobody was asked"
    if state == OPEN:
        return f"{name} is open still"
    if state == APPROVED and not str((case.changed or {}).get("command", "")).startswith(cast.DENIED):
        return f"{name} was approved"
    return None
