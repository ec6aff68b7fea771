"""A bridge killed before any of its system calls: its successor completes the work, and nothing comes twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from tests.faults.killing import killed
from tests.helpers import READS
from tests.teams.client import Locked, fetch
from tests.teams.samples import native
from tests.teams.test_bridge import bridge, transcript
from tests.teams.test_import import told_to_send

if TYPE_CHECKING:
    from pathlib import Path

    from tests.teams.conftest import Teams

SENT = [f"bridged {n}." for n in range(3)]


def settled(teams: Teams, log: Path, *, client_first: bool) -> list[str]:
    """The client fetches, and successors look, in turn; what was delivered by then. Whatever was killed where: the
    client never waits in vain for its lock."""
    path, delivered = teams.box_of("t", "ann"), teams.scratch / "delivered"
    with Locked(str(path)):
        pass
    for turn in range(4):
        if turn or not client_first:
            bridge(teams)
        fetch(str(path), str(delivered), str(log))
    assert [p.name for p in path.parent.iterdir() if p.suffix != ".json"] == []
    lines = delivered.read_text().splitlines() if delivered.exists() else []
    return [json.loads(line)["text"] for line in lines]


def test_killed_before_any_system_call_everything_arrives_once(teams: Teams) -> None:
    """Whether the client fetches before the successor comes, or after: all of ours, plain, once; what was native is
    mirrored once; and everything has its receipt."""
    teams.make("t", "ann")
    log = transcript(teams)
    bridge(teams)
    teams.put("t", "ann", native("team-lead", "native", 1))
    said = "".join(json.dumps(line) + "\n" for line in told_to_send(1, "ann", "native"))
    (log.parent.parent.parent / "lead-session.jsonl").write_text(said)
    for text in SENT:
        teams.send("bob", "team:t/ann", text)

    def fresh() -> None:
        (teams.scratch / "delivered").unlink(missing_ok=True)
        for path in teams.root.rglob("*.json"):
            teams.age(path)

    kinds: Counter[str] = Counter()
    for number, call in enumerate(killed(teams, "teams", "bridge", "t", "--once", fresh=fresh, every=1)):
        got = settled(teams, log, client_first=number % 2 == 0)
        ours = [re.sub(r"^\[agent-mailbox [^\]]*\]\n\| ", "", text) for text in got if "[agent-mailbox" in text]
        assert sorted(ours) == SENT, (call, got)
        assert not any("possibly repeated" in text for text in got), call
        assert got.count("native") == 1, call
        assert [m["content"] for m in teams.mirrored()] == ["native"], call
        seen = [r["message_id"] for r in teams.objects(READS) if r.get("event") == "seen"]
        assert len(seen) == len(set(seen)) == len(SENT), call
        kinds[call.name if call else "end"] += 1
    assert {"write", "renameat2", "rmdir"} < kinds.keys(), kinds
