"""Records of a gateway that are JSON and yet lack what they must have: passed by, and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_mailbox.core import instant
from tests.swarm.conftest import Make
from tests.swarm.wirework import now

AT = "2026-03-16T14:30:00.000Z"
SWARM = "00000000-0000-4000-8000-000000000001"
DAMAGED = {
    "ledger.jsonl": (
        {"event": "created", "swarm_id": SWARM, "name": "lost", "alias": "lost", "settings": {}, "at": AT},
        {"event": "identity", "agent_id": "alpha", "at": AT},
        {"event": "joined", "swarm_id": SWARM, "member": {"agent_id": "x"}, "at": AT},
        {"event": "muted", "what": "agent", "id": 7, "at": AT},
        {"event": "kicked", "swarm_id": SWARM, "agent_id": "x", "at": "yesterday"},
        {"event": "left", "swarm_id": SWARM, "agent_id": "x", "at": AT, "announce": [{"content": "no id"}]},
    ),
    "outbox.jsonl": (
        {"event": "queued", "id": "a", "peers": [{"agent_id": "beta"}], "at": AT},
        {"event": "queued", "id": "b"},
        {"event": "delivered", "id": "a", "at": AT},
    ),
    "statuses.jsonl": ({"message_id": "a", "status": "read"},),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_record_that_lacks_a_member_is_passed_by_and_both_doctors_name_its_line(machine: Make, name: str) -> None:
    """No command breaks by it: the records around it count."""
    a = machine("alpha")
    a.ok("swarm", "create", "demo")
    log = Path(a.swarm_home) / name
    before = len(log.read_bytes().splitlines()) if log.exists() else 0
    with log.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in DAMAGED[name])
    log.chmod(0o600)

    a.ok("swarm", "create", "after")

    for words in (("members", "demo"), ("members", "after"), ("status",), ("outbox",), ("inbox",), ("flush",)):
        a.ok("swarm", *words)
    for doctor in (("doctor",), ("swarm", "doctor")):
        told = a.call(*doctor).stdout
        for number in range(before + 1, before + 1 + len(DAMAGED[name])):
            assert f"{name}:{number}" in told


def test_mail_whose_record_lost_its_text_fails_and_its_sender_is_told(machine: Make) -> None:
    """A parcel without a text cannot be carried."""
    a = machine("alpha")
    about = {"event": "queued", "id": SWARM, "from": "user", "at": instant.text(now())}
    parcel = {**about, "swarm_id": SWARM, "recipient": "beta", "type": "message"}
    with (Path(a.swarm_home) / "outbox.jsonl").open("a") as file:
        file.write(json.dumps({**parcel, "peers": [{"agent_id": "beta", "endpoint": "https://b.example"}]}) + "\n")

    a.ok("swarm", "flush")

    assert f"{SWARM} did not reach beta: its record in the outbox has no text" in a.unread_text("user")
