"""The judge of one mailbox on several simulated machines.

Belongs here: the promises. The judge knows what was acknowledged and shown, and reads the disks by its own eyes. It
holds:

- Whatever was acknowledged, or durably queued, is on every machine in the end, once.
- It is shown once in the whole space to those it was for, but for a kill between showing and record.
- Role mail goes to one holder in the whole space.
- In the end all machines have the same records. The ordered ones are in the same order, unless a disk failed, or the
  engine lost records, which come back at another place; lines of other programs stay where they fell.
- Role mail that was given back is shown again.
- Who ended for good is dead on every machine, and nobody else is.
- What is proven on a machine of a line's writer is true (``machines_proofs``).

If the engine lost a claim, two may hold that mail (docs/internals/shared-mailbox.md), so role mail of before is not
judged. If it lost mail that waits on its sender's machine, who had it may be shown it again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.space_seals import is_ignored, unsealed
from agent_mailbox.store.files import system
from tests.simulation.machines import NAMES
from tests.simulation.telling import BROKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.machines import Machine, Machines
    from tests.simulation.process import Process

SHOWN, READ, MAYBE = "shown", "read", "maybe"
"""A showing that goes on; one that was recorded; one that ended before somebody was told that it is recorded."""
MOVING = ("fault", "faint", "short", "full", "power")
"""What may have a sealed line written at another place than it was sealed for: the next rotation puts it last."""


class Letter:
    """A message as its sender meant it."""

    def __init__(self, message_id: str, sender: str, to: str, text: str) -> None:
        self.id = message_id
        self.sender = sender
        self.to = to
        self.text = text
        self.acknowledged = False
        self.released = False
        self.queued = self.may_be_twice = False
        """Does it wait for the engine? Was its record lost meanwhile?"""
        self.showings = self.owed = 0
        """How often it was shown, and how often it must be: once more when it was given back."""
        self.readers: tuple[str, ...] = ()
        """Those whom it is for and who were registered as it was sent."""


class Session:
    """An agent, and the machine on which it lives."""

    def __init__(self, session_id: str, machine: Machine, roles: tuple[str, ...]) -> None:
        self.id = session_id
        self.machine = machine
        self.roles = roles
        self.registered = False
        self.acted: int | None = None
        """When its last command ended, or later; while one goes on that is not known."""

    def gets(self, letter: Letter) -> bool:
        return letter.sender != self.id and letter.to in (self.id, "all", *(f"role:{role}" for role in self.roles))


class Judge:
    """The promises of one mailbox on many machines."""

    def __init__(self, world: Machines) -> None:
        self.world = world
        self.breaches: list[str] = []
        self.letters: dict[str, Letter] = {}
        self.given: dict[tuple[str, str], tuple[str, Process | None]] = {}
        """(session, message) to what became of it, and by which process."""
        self.shown = self.acknowledged = self.checks = 0
        self.sessions: list[Session] = []
        self.trusting: set[tuple[str, str]] = set()
        """Machines, each with one that the person there lets speak."""
        self.dead: set[str] = set()
        """Sessions that ended for good, as somebody was told."""
        self.forbidden: dict[str, str] = {}
        """Sessions, each with the last rule that a person set it."""
        self.fading: set[str] = set()
        """Mail that ends by its mode's time: whom it is shown to is held to the texts (``machines_tasks``)."""
        self.attached: dict[str, bytes] = {}
        """The files of acknowledged mail, by their stored names."""
        self.alone: dict[bytes, Machine] = {}
        """Lines of which no other machine may hear."""
        self.holders: dict[str, tuple[Machine, dict[str, list[str]]]] = {}
        """What the first machine said of who has each message."""
        self.given_up: set[Machine] = set()
        """Machines that the person of another one gave up: what they record may come too late."""
        self.edited: set[Machine] = set()
        """Machines where a program changed a line in its place."""
        self.is_fading = False
        """Does anything end by its mode's time?"""
        self.is_rewritten = self.is_damaged = self.is_beset = self.is_late = self.is_scattered = False
        """Did the engine lose records? Has it a damaged one, which it keeps until it is purged? Does somebody lie, or
        copy lines? Did a person confide late? Do other programs write, or had a machine mail before it joined?
        Such lines stay where they fell."""
        world.told_of_power = self._power

    def breach(self, what: str) -> None:
        """Note a broken promise."""
        self.breaches.append(what)
        self.world.tell(f"{BROKEN}{what}")

    def letter(self, process: Process, machine: Machine, sender: str, to: str) -> Letter:
        """A message that somebody is about to send on a machine, to those whom that machine can know."""
        text = f"number {len(self.letters) + 1} of {sender}"
        found = Letter(uuid_of(f"{process.chance.getrandbits(128):032x}", "4"), sender, to, text)
        joined = {one for one in self.world.machines if one.joined and machine.joined}
        known = [s for s in self.sessions if s.registered and s.machine in joined | {machine}]
        found.readers = tuple(s.id for s in known if s.gets(found))
        self.letters[found.id] = found
        return found

    def lost(self) -> None:
        """The engine is about to lose records."""
        self.is_rewritten = True
        archived = {one for machine in self.world.machines if machine.joined for one in self.archived(machine)}
        for letter in self.letters.values():
            letter.may_be_twice = letter.may_be_twice or (letter.queued and letter.id not in archived)
            letter.released = letter.released or letter.to.startswith("role:") or letter.may_be_twice
            letter.owed = 0

    def gives_up(self, machine: Machine) -> None:
        """The person of another machine is about to give this one up: what its sessions were offered may go back.

        Nothing more that it says is proven there."""
        self.is_late = True
        self.given_up.add(machine)
        theirs = {session.id for session in self.sessions if session.machine is machine}
        for who, message_id in self.given:
            letter = self.letters[message_id]
            if who in theirs and letter.to.startswith("role:"):
                letter.released, letter.owed = True, 0

    def _power(self, machine: Machine) -> None:
        for session in self.sessions:
            if session.machine is machine:
                self._doubt(session.id, None)

    def interrupted(self, process: Process) -> None:
        """A process has ended: whether its last showing was recorded is not known."""
        self._doubt(None, process)

    def _doubt(self, session: str | None, process: Process | None) -> None:
        for (who, message_id), (state, by) in self.given.items():
            if state == SHOWN and (who == session or (by is process and process is not None)):
                self.given[who, message_id] = MAYBE, None

    def show(self, me: Session, items: Sequence[Item], process: Process) -> None:
        """A session is shown mail."""
        if items:
            self.world.tell(f"{process.name} shows {me.id} {[item.message.id[:8] for item in items]}")
        for item in items:
            message = item.message
            if message.type != "message" or message.id in self.fading:
                continue
            self.shown += 1
            letter = self.letters.get(message.id)
            if letter is not None:
                letter.showings += 1
            if letter is None or letter.text != message.content:
                self.breach(f"{me.id} is shown {message.id}, which nobody sent so")
                continue
            if not me.gets(letter):
                self.breach(f"{me.id} is shown {message.id}, which is for {letter.to}")
            before, by = self.given.get((me.id, message.id), (MAYBE, None))
            is_hurt = before == SHOWN and by is not None and by.faults  # it failed to record it, and goes on to its end
            if before != MAYBE and not is_hurt and not letter.released:
                self.breach(f"{me.id} is shown {message.id} twice: it was {before}")
            if letter.to.startswith("role:") and not letter.released:
                for (who, other), (state, _) in self.given.items():
                    if other == message.id and who != me.id and state != MAYBE:
                        self.breach(f"{message.id} for {letter.to} is shown to {me.id}, and was {state} by {who}")
            self.given[me.id, message.id] = SHOWN, process
        system.time_ns()  # a call, at which the process may be killed: shown, and not recorded

    def recorded(self, me: Session, process: Process) -> None:
        """What the process showed is recorded."""
        for key, (state, by) in self.given.items():
            if by is process and key[0] == me.id and state == SHOWN:
                self.given[key] = READ, None

    def is_odd(self) -> bool:
        """Did the engine lose anything, or somebody write who is none of ours?"""
        odd = self.is_rewritten, self.is_damaged, self.is_beset, self.is_scattered, self.edited, self.given_up
        return any(odd)

    # -- in the end ---------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """All is calm, and everyone looked: compare."""
        for letter in self.letters.values():
            if letter.acknowledged and not self.edited:
                self._reached(letter)
        if self.edited:
            return
        held = [self._held(machine) for machine in self.world.machines]
        for machine, other in zip(self.world.machines[1:], held[1:], strict=True):
            for what, lines in other.items():
                self.checks += 1
                if lines != held[0][what]:
                    apart = [line for line in (*held[0][what], *lines) if (line in lines) != (line in held[0][what])]
                    self.breach(f"{machine.name} and {NAMES[0]} differ in {what}: {apart[:2] or 'their order'}")
        for machine in self.world.machines:
            self._strange(machine)

    def _reached(self, letter: Letter) -> None:
        readers = letter.readers
        seen = [who for who in readers if (who, letter.id) in self.given]
        if (readers and not seen) or (len(seen) < len(readers) and not letter.to.startswith("role:")):
            self.breach(f"{letter.id} to {letter.to} was acknowledged, and shown to {seen} of {[*readers]}")
        if letter.to.startswith("role:") and letter.showings < letter.owed:
            self.breach(f"{letter.id} to {letter.to} was given back, and not shown again")
        for machine in self.world.machines:
            self.checks += 1
            count = sum(
                f'"id":"{letter.id}"'.encode() in line and self.alone.get(line) is not machine
                for line in self._lines(machine, "messages", archived=True)
            )
            if not self.is_odd() and any(f'"id":"{letter.id}"'.encode() in line for line in self._unsent(machine)):
                self.breach(f"{letter.id} was acknowledged, and {machine.name} says that it can never be sent")
            if count != 1 and not (letter.may_be_twice and count == 2):
                self.breach(f"{letter.id} was acknowledged, and is {count} times on {machine.name}")

    def _strange(self, machine: Machine) -> None:
        """No file is where none of ours puts one."""
        for path, _ in machine.disk.files(solid=False):
            directory, _, name = path.rpartition("/")
            if directory == f"/{machine.name}" or (directory.endswith("-archive") and name.count(".") > 2):
                self.breach(f"{path} is a file of nobody's")

    def held_by(self, machine: Machine, holders: dict[str, list[str]]) -> None:
        """What a machine says of who has read each message, or holds it."""
        first = self.holders.setdefault("", (machine, holders))
        apart = [one for one, said in holders.items() if said != first[1][one]]
        if apart and not (self.is_rewritten or self.is_beset or self.edited):
            said = [found[apart[0]] for found in (holders, first[1])]
            self.breach(f"{machine.name} and {first[0].name} differ in who has {apart[0]}: {said}")

    def told(self, machine: Machine, states: dict[str, str]) -> None:
        """What a machine says of all agents."""
        self.checks += 1
        if self.is_beset or self.edited:
            return
        for who in self.dead:
            if states.get(who) != "dead":
                self.breach(f"{who} ended for good, and is {states.get(who)} on {machine.name}")
        for session in self.sessions:
            if session.registered and states.get(session.id) not in ("alive", "frozen"):
                self.breach(f"{session.id} lives, and is {states.get(session.id)} on {machine.name}")

    def archived(self, machine: Machine) -> list[str]:
        """The ids of messages that a machine has archived."""
        live = {*self._lines(machine, "messages")}
        gone = [line for line in self._lines(machine, "messages", archived=True) if line not in live]
        return [one for one in self.letters if any(f'"id":"{one}"'.encode() in line for line in gone)]

    def _lines(self, machine: Machine, kind: str, *, archived: bool = False) -> list[bytes]:
        """The lines of a machine. One that any machine ignores counts once on each.

        It tells of another machine's session, and is ignored until that machine brings it back. That machine's own copy
        has no such mark, whoever wrote it there."""
        doubtful = {unsealed(line) for one in self.world.machines for line in self._raw(one, kind) if is_ignored(line)}
        lines, found = self._raw(machine, kind, archived=archived), list[bytes]()
        heeded = {unsealed(line) for line in lines if not is_ignored(line)}
        for line in (unsealed(line) for line in lines if unsealed(line) not in heeded or not is_ignored(line)):
            if _is_whole(line) and not (line in doubtful and line in found):
                found.append(line)
        return found

    def _unsent(self, machine: Machine) -> list[bytes]:
        """What a machine says of mail that another message kept from being sent."""
        found = (inode for path, inode in machine.disk.files(solid=False) if path.endswith("/engine/unsent"))
        return [bytes(inode.data) for inode in found]

    def _raw(self, machine: Machine, kind: str, *, archived: bool = True) -> list[bytes]:
        ends = {"messages": ("mailbox.jsonl",), "reads": ("-reads.jsonl",), "roster": ("roster.jsonl",)}[kind]
        found: list[bytes] = []
        for path, inode in machine.disk.files(solid=False):
            name = path.rpartition("/")[2]
            is_archive = "/agent-mailbox-archive/" in path
            is_month = is_archive and name[:4].isdecimal()
            fits = name.endswith(ends) or (kind == "messages" and is_month and not name.endswith("-reads.jsonl"))
            if path.startswith(f"/{machine.name}/m/") and fits and (archived or not is_archive):
                found += bytes(inode.data).split(b"\n")
        return found

    def _held(self, machine: Machine) -> dict[str, list[bytes]]:
        """The records of a machine, as they must be on each: ordered ones in their order, the others sorted."""
        reads = self._lines(machine, "reads")
        decided = [line for line in reads if json.loads(line).get("event") == "claim"]
        in_order = sorted if self.is_rewritten or self.is_scattered or self.world.befell(*MOVING) else list
        found = {
            "messages": in_order(self._lines(machine, "messages")),
            "decisions": in_order(decided),
            "owned": sorted(line for line in reads if line not in decided),
            "roster": sorted(self._lines(machine, "roster")),
        }
        if (
            self.is_fading
        ):  # by the clock of one machine it may have ended, and be archived, before it does by another's
            found = {"roster": found["roster"]}
        for kind in ("messages", "reads", "roster"):
            found[f"{kind} with archived ones"] = sorted(self._lines(machine, kind, archived=True))
        if machine in self.given_up:  # a record that the release overtook stays there
            for what in found.keys() & {"owned", "reads with archived ones"}:
                found[what] = [line for line in found[what] if line in self.world.said]
        if self.alone:
            found = {
                what: [one for one in lines if self.alone.get(one) is not machine] for what, lines in found.items()
            }
        if self.is_beset:  # copies stay where they fell, and standing orders where they stand, each with its reads
            return {what: sorted({*lines}) for what, lines in found.items() if what not in ("messages", "owned")}
        if any(letter.may_be_twice for letter in self.letters.values()):
            return {what: sorted({*lines}) for what, lines in found.items()}
        return found


def _is_whole(line: bytes) -> bool:
    """Return whether a line is a record: a power failure may leave a torn one, which nobody removes."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
