"""A bridge killed before any of its system calls: its successor completes the work, and nothing comes twice."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.faults import faults
from tests.helpers import PATIENCE, READS, begin_again
from tests.teams.client import Locked, fetch
from tests.teams.samples import native
from tests.teams.test_bridge import bridge, transcript
from tests.teams.test_import import told_to_send

if TYPE_CHECKING:
    from pathlib import Path

    from tests.teams.conftest import Teams

CALLS = ("write", "pwrite64", "renameat2", "rename", "unlink", "mkdir", "rmdir", "ftruncate", "utimensat")
"""Who is killed before a sync leaves what it leaves killed before the next of these, or at its end."""
SENT = [f"bridged {n}." for n in range(3)]


def traced(teams: Teams, *options: str) -> int:
    """A look of the bridge under strace: how it ended."""
    log = teams.scratch / "trace"
    program = (sys.executable, "-B", "-m", "agent_mailbox", "teams", "bridge", "t", "--once")
    done = subprocess.run(
        ["strace", "-f", "-qq", "-y", "-s", "0", "-o", log, *options, *program],
        env=teams.environ(),
        cwd=teams.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in (0, -9, 137), done
    return done.returncode


def world(teams: Teams, template: Path) -> None:
    """The mailbox and the client as they were."""
    for name in ("box", "home"):
        shutil.rmtree(teams.scratch / name)
        shutil.copytree(template / name, teams.scratch / name, symlinks=True)
    begin_again(teams.box, teams.env)
    (teams.scratch / "delivered").unlink(missing_ok=True)
    for path in teams.root.rglob("*.json"):
        teams.age(path)


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


@pytest.mark.parametrize("client_first", [True, False])
def test_killed_before_any_system_call_everything_arrives_once(teams: Teams, client_first: bool) -> None:
    """Whether the client fetches before the successor comes, or after: all of ours, plain, once; what was native is
    mirrored once; and everything has its receipt."""
    reason = faults.why_no_strace()
    if reason:
        pytest.skip(reason)
    teams.make("t", "ann")
    log = transcript(teams)
    bridge(teams)
    teams.put("t", "ann", native("team-lead", "native", 1))
    said = "".join(json.dumps(line) + "\n" for line in told_to_send(1, "ann", "native"))
    (log.parent.parent.parent / "lead-session.jsonl").write_text(said)
    for text in SENT:
        teams.send("bob", "team:t/ann", text)
    template = teams.scratch / "template"
    for name in ("box", "home"):
        shutil.copytree(teams.scratch / name, template / name, symlinks=True)
    kills: Counter[str] = Counter()
    for name in CALLS:
        for number in itertools.count(1):  # how many there are differs from run to run: until there is none to kill at
            if not faults.EXHAUSTIVE and number > 1 and number % 2 != client_first:
                continue  # the other case has it
            world(teams, template)
            if traced(teams, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}") == 0:
                break
            kills[name] += 1
            got = settled(teams, log, client_first=client_first)
            ours = [re.sub(r"^\[agent-mailbox [^\]]*\]\n\| ", "", text) for text in got if "[agent-mailbox" in text]
            assert sorted(ours) == SENT, (name, number, got)
            assert not any("possibly repeated" in text for text in got), (name, number)
            assert got.count("native") == 1
            assert [m["content"] for m in teams.mirrored()] == ["native"], (name, number)
            seen = [r["message_id"] for r in teams.objects(READS) if r.get("event") == "seen"]
            assert len(seen) == len(set(seen)) == len(SENT), (name, number)
    assert all(kills[name] for name in ("mkdir", "write", "renameat2", "rename", "rmdir")), kills
