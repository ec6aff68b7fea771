"""Acknowledged is durable: after each acknowledgement, each change of names and each power failure.

Belongs here: this promise, what the judge knows at all, and its own eyes: it reads logs with ``json``, never through
the product. Further promises are in ``judge_showings``, and in ``judge``, which is all of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.simulation.places import ARCHIVE, BOX
from tests.simulation.telling import BROKEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.disk import Inode
    from tests.simulation.letters import Letter, Session
    from tests.simulation.process import Process
    from tests.simulation.world import World


Fact = tuple[str, ...]


class Durable:
    """What was acknowledged, held against the platter."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.breaches: list[str] = []
        self.about: set[str] = set()
        """The ids that told and expected answers differ by: what a story is about."""
        self.rich: set[str] = set()
        """Messages that the second judge alone judges."""
        self.disturbed = -1
        """The last call at which a process ended badly, or beside others: it may have left a claim of role mail."""
        self.letters: dict[str, Letter] = {}
        self.sessions: dict[str, Session] = {}
        self.given: dict[tuple[str, str], tuple[str, Process | None]] = {}
        """(session, message) to what became of it, and by which process."""
        self.answers: list[tuple[str, ...]] = []
        """Each showing: the session, and the beginnings of the texts."""
        self.appended: set[str] = set()
        """What foreign programs appended whole since the last power failure."""
        self.doubled: set[bytes] = set()
        """Lines that foreign programs wrote more than once."""
        self.founded: int | None = None
        """The call at which somebody was told that the mailbox is made."""
        self.torn = self.strange = False
        """Did a foreign program leave a torn line? Did one write a record about mail?"""
        self.steward_died = -1
        """The last call at which a steward was killed: it may not have fetched what was written beside it."""
        self.watches: dict[int, set[str]] = {}
        """For each guard that looks at this moment: the messages that its session waits for."""
        self.shown = self.acknowledged = self.checks = 0
        self.facts: dict[Fact, int] = {}
        self._kept: dict[int, tuple[int, Inode, set[Fact]]] = {}
        self._lines: dict[bytes, Fact | None] = {}

    def breach(self, what: str) -> None:
        """Note a broken promise."""
        self.breaches.append(what)
        self.world.tell(f"{BROKEN}{what}")

    def has_strangers(self) -> bool:
        """Did programs write that know no lock? Their lines may stand anywhere, also before those of ours."""
        return self.strange or bool(self.doubled) or any(letter.foreign for letter in self.letters.values())

    def acknowledge(self, *facts: Fact) -> None:
        """Something was confirmed: it must be durable now, and for ever."""
        if self.founded is None:
            return  # nobody was told yet that the mailbox is made, and its own name may be lost
        self.acknowledged += 1
        for fact in facts:
            self.facts[fact] = self.world.calls
        self.durable()

    def recorded_by(self, session: Session, message_id: str, event: str) -> None:
        """A session was told that it dealt with a message: in its own name, or in that of one it continues."""
        facts = [("record", message_id, who, event) for who in session.line]
        there = self.found(BOX) if len(facts) > 1 else {*facts}
        self.acknowledge(next((fact for fact in facts if fact in there), facts[0]))

    def durable(self) -> None:
        """Would everything that was acknowledged survive a power failure at this moment, at its worst?"""
        if not self.facts:
            return
        self.checks += 1
        for solid in (True, False):
            found = self._found(solid_names=solid)
            lost = [fact for fact in self.facts if fact not in found]
            if lost:
                how = "with" if not solid else "without"
                self.breach(f"{_told(lost[0])} was acknowledged and is not durable ({how} the changes of names)")
                for fact in lost:
                    del self.facts[fact]

    def survives(self, when: str) -> None:
        """Is everything there that was acknowledged, after a power failure?"""
        found = self._found(solid_names=False)
        lost = [fact for fact in self.facts if fact not in found]
        if lost:
            self.breach(f"{_told(lost[0])} was acknowledged and is lost {when}")
        for letter in self.letters.values():
            if letter.stored and letter.acked is not None and not self.has_file(letter, letter.stored):
                self.breach(f"the file that {letter.id} brings is lost {when}")

    def _found(self, *, solid_names: bool) -> set[Fact]:
        found: set[Fact] = set()
        for path, inode in self._logs(solid_names=solid_names):
            kept = self._kept.get(id(inode))
            if kept is None or kept[0] != inode.version or kept[1] is not inode:
                facts = set(self._parsed(bytes(inode.solid), path))
                kept = self._kept[id(inode)] = inode.version, inode, facts
            found |= kept[2]
        return found

    def found(self, place: str) -> set[Fact]:
        """Everything in the logs of another mailbox, as processes see it."""
        found: set[Fact] = set()
        for path, inode in self.world.disk.files(solid=False):
            if path.startswith(f"{place}/") and path.endswith(".jsonl"):
                found.update(self._parsed(bytes(inode.data), path))
        return found

    def _logs(self, *, solid_names: bool) -> Iterator[tuple[str, Inode]]:
        root = self.world.disk.root
        box = (root.solid_entries if solid_names else root.entries).get(BOX[1:])
        if box is None:
            return
        names = box.solid_entries if solid_names else box.entries
        for name, inode in names.items():
            if inode.is_directory and name == "agent-mailbox-archive":
                for below, there in (inode.solid_entries if solid_names else inode.entries).items():
                    if below.endswith(".jsonl"):
                        yield f"{ARCHIVE}/{below}", there
            elif name in ("agent-mailbox.jsonl", "agent-mailbox-reads.jsonl", "agent-roster.jsonl"):
                yield f"{BOX}/{name}", inode

    def _parsed(self, data: bytes, path: str) -> Iterator[Fact]:
        for line in data.split(b"\n"):
            if line not in self._lines:
                self._lines[line] = self._fact(line)
            fact = self._lines[line]
            if fact is not None:
                yield fact

    def _fact(self, line: bytes) -> Fact | None:
        try:
            said = json.loads(line)
        except ValueError:
            return None
        if not isinstance(said, dict):
            return None
        if "message_id" in said and "reader_session_id" in said:
            return "record", said["message_id"], said["reader_session_id"], said.get("event", "read")
        if "id" in said and "sender" in said:
            letter = self.letters.get(said["id"])
            if letter is not None and said.get("content") != letter.content:
                self.breach(f"{said['id']} holds another text than was sent")
            return "message", said["id"]
        return ("agent", said["session_id"]) if "session_id" in said else None

    def _says(self, line: bytes) -> bool:
        """Is the line a message or a record? Torn lines may be the same."""
        fact = self._lines[line] if line in self._lines else self._fact(line)
        return fact is not None

    def has_file(self, letter: Letter, place: str) -> bool:
        """Is the file that a letter brings at that place, whole?"""
        try:
            return bytes(self.world.kernel.look_up(place).data) == letter.content.encode()
        except OSError:
            return False


def _told(fact: Fact) -> str:
    if fact[0] == "record":
        return f"the {fact[3]} of {fact[1]} by {fact[2]}"
    return f"the {fact[0]} {fact[1]}"
