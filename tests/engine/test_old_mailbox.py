"""A mailbox with a year of mail joins a space, works there, and leaves: every byte of it is where it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox.store.log.unordered import unsealed
from scripts.benchmarks import launch, world
from tests.helpers import MESSAGES, READS, ROSTER, Program

from .test_commands import Pair

if TYPE_CHECKING:
    from pathlib import Path

LOGS = (MESSAGES, READS, ROSTER)


def test_nothing_differs_but_what_was_written_meanwhile(
    program: Program, server: str, credential: str, tmp_path: Path
) -> None:
    """Live mail, archived mail and the roster: joining and leaving add no byte and change none. What was sent, read and
    acknowledged meanwhile is behind, as on the other machine; a second stay changes nothing."""
    old = world.build(tmp_path, 400, 12)
    program.env |= launch.environment(tmp_path)
    pair = Pair(program, server, credential)
    north = program.scratch / "north"
    north.rename(program.scratch / "unused")
    north.symlink_to(old.directory)
    assert program.run("steward", "run", "--dir", north).rc == 0
    before = _files(old.directory)
    assert any("archive" in name for name in before), "some of the year's mail is in the archive"
    pair.join("north")
    pair.join("south")
    assert _files(old.directory) == before
    first, second = old.sessions[:2]
    pair.ok("south", "roster", "register", "--session-id", "ben")
    sent = [pair.send("south", "--from", "ben", "--to", first, "--body", "to the old machine", "--ack")]
    sent.append(pair.send("north", "--from", second, "--to", "ben", "--body", "from the old machine"))
    shown = [m["id"] for m in pair.ok("north", "check", "--session", first, "--limit", "0")["messages"]]
    assert shown[-1] == sent[0]
    pair.ok("north", "ack", sent[0], "--session", first)
    pair.ok("north", "engine", "leave")
    after = _files(old.directory)
    added = {name: _behind(before.get(name, b""), after[name]) for name in LOGS}
    assert {name: text for name, text in after.items() if name not in LOGS} == {
        name: text for name, text in before.items() if name not in LOGS
    }
    assert [json.loads(line)["id"] for line in added[MESSAGES]] == sent
    assert [json.loads(line)["session_id"] for line in added[ROSTER]] == ["ben"]
    done = [(event["message_id"], event["event"]) for line in added[READS] for event in [json.loads(line)]]
    assert [message for message, event in done if event == "read"] == shown
    assert done[-1] == (sent[0], "ack")
    pair.ok("south", "engine", "leave")
    for name in LOGS:
        everything = [unsealed(line) for line in after[name].splitlines()]
        assert sorted(everything) == sorted(pair.lines("south", name)), name
    pair.join("north")
    pair.ok("north", "engine", "leave")
    assert _files(old.directory) == after


def _files(directory: Path) -> dict[str, bytes]:
    """Every file but derived ones and signs of life."""
    names = {path.relative_to(directory): path for path in directory.rglob("*") if path.is_file()}
    derived = (".cache", "agent-heartbeats")
    return {str(name): path.read_bytes() for name, path in names.items() if name.parts[0] not in derived}


def _behind(before: bytes, after: bytes) -> list[bytes]:
    """The lines behind what was there before, which is as it was."""
    assert after.startswith(before)
    return after[len(before) :].splitlines()
