"""Many directories are one mailbox: machines that share an order, cut off and killed at any moment.

A state machine drives three to five mailbox directories, each with its own clock and key, with sends, checks, acks,
releases, roster changes and lines of other programs. Meanwhile links are cut, acknowledgements are lost, and processes
die at any write, clocks jump, and machines are given up and come back. After every example the links stand again, and
all machines are compared.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from agent_mailbox import Draft, MailboxError, Request
from agent_mailbox.core import codec, instant, message_reads
from agent_mailbox.core.records import USER, Message, Read
from agent_mailbox.mailbox import absence, open_mailbox
from agent_mailbox.space import joining_space, space_words
from agent_mailbox.space.copy import bundled_lines
from agent_mailbox.space.joining_space import SpaceStanding
from agent_mailbox.space.order.order import reads_of
from agent_mailbox.store.files import system
from agent_mailbox.upkeep import shared_steward

from .memory_order import MemorySpace
from .mortal import Clock, Killed, Machine

if TYPE_CHECKING:
    from agent_mailbox.core.inbox import Item

MACHINES = ("north", "south", "west")
SESSIONS = {machine: (f"{machine}-1", f"{machine}-2") for machine in MACHINES}
HOME = {who: machine for machine, both in SESSIONS.items() for who in both}
EVERYBODY = tuple(HOME)
ROLE, TAG = "role:dev", "project:x"
LOG = "agent-mailbox.jsonl"
shared_steward.COMPACT_ABOVE = 8
SINCE = instant.text(open_mailbox.wall_clock())
machines, sessions = st.sampled_from(MACHINES), st.sampled_from(EVERYBODY)


class Space(RuleBasedStateMachine):
    """See the module."""

    sent = Bundle("sent")

    @initialize(trusting=st.booleans())
    def make(self, trusting: bool) -> None:
        """Make the machines, and register their sessions. ``trusting``: each believes what the others prove."""
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(system, "time_ns", Clock.time_ns)
        self.root = tempfile.mkdtemp()
        self.space = MemorySpace()
        self.machines = {name: Machine(self.root, name, self.space) for name in MACHINES}
        self.trusting, self.apart = trusting, False
        for machine in self.machines.values():
            self.introduce(machine)
        self.chance = random.Random(7)
        self.shown: dict[tuple[str, str], int] = {}
        self.by_role: dict[tuple[str, str], set[str]] = {}
        self.excused: set[str] = set()
        self.acknowledged: dict[str, str] = {}
        self.purged: set[int] = set()
        for who in EVERYBODY:
            tags = (ROLE,) if who.endswith("1") else (ROLE, TAG)
            self.machines[HOME[who]].box.register(Request(session_id=who, tags=tags), who)

    def teardown(self) -> None:
        """Compare everything once the links stand again."""
        if hasattr(self, "machines"):
            try:
                self.compare()
            finally:
                self.patch.undo()
                shutil.rmtree(self.root, ignore_errors=True)

    def introduce(self, machine: Machine) -> None:
        """The person says on a machine that the others may speak for their sessions."""
        if self.trusting:
            machine.trust([other for other in self.machines.values() if other is not machine])

    # -- what happens -------------------------------------------------------------------------------------------------

    @rule(
        target=sent,
        who=sessions,
        to=st.lists(st.sampled_from((*EVERYBODY, ROLE, TAG, "all")), min_size=1, max_size=2, unique=True),
        ack=st.booleans(),
    )
    def send(self, who: str, to: list[str], ack: bool) -> str:
        """Send; an acknowledged message must reach everybody it is for."""
        try:
            message = self.machines[HOME[who]].box.send(Draft(sender=who, to=tuple(to), content="x", ack=ack)).message
        except (MailboxError, Killed):
            return ""
        self.acknowledged[message.id] = who
        return message.id

    @rule(who=sessions, limit=st.sampled_from((1, 9)))
    def check(self, who: str, limit: int) -> None:
        """Check; what is shown is noted."""
        shown: list[Item] = []
        order = self.machines[HOME[who]].order
        self.apart = self.apart or order.mute or not order.reachable  # it may be thawed there, and elsewhere later

        def show(items: list[Item]) -> list[Item]:
            shown.extend(items[:limit])
            return items[:limit]

        try:
            self.machines[HOME[who]].box.deliver(who, show)
        except (MailboxError, Killed):
            self.excused.update(item.message.id for item in shown)
        for item in shown:
            key = (who, item.message.id)
            self.shown[key] = self.shown.get(key, 0) + 1
            if item.claims:
                self.by_role.setdefault((item.message.id, item.via), set()).add(who)

    @rule(who=sessions, message=sent, event=st.sampled_from(("ack", "release")))
    def settle(self, who: str, message: str, event: str) -> None:
        """Ack a message, or give it back."""
        box = self.machines[HOME[who]].box
        try:
            if event == "ack":
                box.ack(message, who)
            else:
                self.excused.add(message)  # it may be shown again, to anybody
                box.release(message, who)
        except (MailboxError, Killed):
            pass

    @rule(who=sessions, name=st.sampled_from(("ann", "ben")))
    def rename(self, who: str, name: str) -> None:
        """Take a name, which only one may have."""
        try:
            self.machines[HOME[who]].box.register(Request(session_id=who, name=name), who)
        except (MailboxError, Killed):
            pass

    @rule(machine=machines, to=sessions)
    def foreign(self, machine: str, to: str) -> None:
        """Another program appends a line."""
        message_id = f"cron-{self.chance.getrandbits(64):016x}"
        line = {
            "id": message_id,
            "sender": "cron",
            "recipient": to,
            "timestamp": SINCE,
            "content": "x",
        }
        with Path(self.machines[machine].box.logs.messages.path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.acknowledged[message_id] = "cron"

    @rule(machine=machines)
    def passing(self, machine: str) -> None:
        """A session comes, works under many names, and ends: its life may be retold in fewer events."""
        who = f"{machine}-{self.chance.getrandbits(32):08x}"
        box = self.machines[machine].box
        try:
            for name in ("cat", "dot", "eve"):
                box.register(Request(session_id=who, name=f"{name}-{who}"), who)
                box.end(who, "freeze", who)
            box.end(who, "retire", who)
        except (MailboxError, Killed):
            pass

    @rule(machine=machines, limit=st.sampled_from((0, 3)))
    def steward(self, machine: str, limit: int) -> None:
        """A steward archives what is finished, and may die."""
        one = self.machines[machine]
        try:
            shared_steward.move_finished(one.box, one.copy, limit, set())
        except (MailboxError, Killed):
            pass

    @rule(machine=machines)
    def purge(self, machine: str) -> None:
        """The person removes from the engine what everybody has archived."""
        order = self.machines[machine].order
        try:
            found = joining_space.plan_purge(order, order.joined_machines())
            joining_space.purge_records(order, found, order)
        except (MailboxError, Killed):
            return
        self.purged.update(found.positions)

    @rule(machine=machines, other=machines)
    def forget(self, machine: str, other: str) -> None:
        """The person gives a machine up, which may come back: its role mail goes back if nothing tells that it was
        seen. Machines that believe nobody do not believe that it is gone, so each would have a roster of its own."""
        if machine == other or not self.trusting:
            return
        shipped = {
            (read.message_id, read.session_id)
            for record in self.space.records
            if record.log == reads_of(other) and isinstance(read := codec.read(record.line), Read)
        }
        for message_id, who in [(one, who) for (one, _), holders in self.by_role.items() for who in holders]:
            if HOME.get(who) == other and (message_id, who) not in shipped:
                self.excused.add(message_id)
        try:
            box, order = self.machines[machine].box, self.machines[machine].order
            absence.give_up(box, joining_space.give_up(box, order, other), USER)
        except (MailboxError, Killed):
            pass

    @rule(machine=machines, hours=st.integers(-9, 9))
    def clock(self, machine: str, hours: int) -> None:
        """A machine's clock jumps: no mail to a session is that old."""
        self.machines[machine].ahead = hours * 3_600_000

    @rule(machine=machines)
    def forget_state(self, machine: str) -> None:
        """A machine's own record is lost: all is compared."""
        Path(self.machines[machine].copy.directory, "state").unlink(missing_ok=True)

    @rule(machine=machines, reachable=st.booleans(), mute=st.booleans())
    def link(self, machine: str, reachable: bool, mute: bool) -> None:
        """Cut or mend a machine's link, or have its acknowledgements lost."""
        self.machines[machine].order.reachable = reachable
        self.machines[machine].order.mute = mute

    @rule(machine=machines, steps=st.integers(0, 12))
    def doom(self, machine: str, steps: int) -> None:
        """Let whatever runs next on a machine die after some steps."""
        self.machines[machine].copy.left = steps

    @rule(machine=machines, limit=st.sampled_from((0, 3)))
    def all_follow(self, machine: str, limit: int) -> None:
        """A steward decides, and every machine that is reached follows."""
        self.steward(machine, limit)
        for name in self.machines:
            self.replicate(name)

    @rule(machine=machines)
    def replicate(self, machine: str) -> None:
        """The replicator runs, and may die."""
        try:
            self.machines[machine].catch_up()
        except (MailboxError, Killed):
            pass
        self.machines[machine].copy.left = None

    # -- what must hold -----------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Mend everything, let everybody check, and compare."""
        for machine in self.machines.values():
            machine.order.reachable, machine.order.mute, machine.copy.left = True, False, None
        for _ in range(2):
            for machine in self.machines.values():
                machine.catch_up(closer=True)
        for who in EVERYBODY:
            self.check(who, 99)
        self.join("east")
        self.steward("north", 0)
        for _ in range(2):
            for machine in self.machines.values():
                machine.catch_up()
        self.purge("south")
        self.join("late")
        self.nothing_is_lost_or_doubled()
        self.all_machines_are_equal()
        self.everybody_has_their_mail()

    def join(self, name: str) -> None:
        """A machine joins at last, and a purge later another one: both have the whole history."""
        self.machines[name] = Machine(self.root, name, self.space)
        self.introduce(self.machines[name])
        self.machines[name].catch_up()

    def nothing_is_lost_or_doubled(self) -> None:
        """Each acknowledged message is once in each machine's log, or in its archive."""
        for machine in self.machines.values():
            live, archived = machine.lines(LOG), machine.archived(".jsonl")
            ids = [*map(_id, live), *map(_id, archived)]
            assert len(ids) == len(set(ids))
            assert set(self.acknowledged) <= set(ids)
            with machine.copy.machine_lock():
                machine.copy.catch_up()
                bundled_lines.compare_with_order(machine.copy)

    def all_machines_are_equal(self) -> None:
        """The machines hold the same records live and archived, the live ones in the same order, and they mean the
        same. A session's return while the engine was away stays where it was on its own machine."""
        held, folded = [], []
        for machine in self.machines.values():
            mail = [line for line in machine.lines(LOG) if b'"cron"' not in line]
            foreign = sorted(line for line in machine.lines(LOG) if b'"cron"' in line)
            lines = machine.lines("agent-mailbox-reads.jsonl")
            decided = [line for line in lines if b'"event":"claim"' in line]
            owned = sorted(line for line in lines if line not in decided)
            archived = [sorted(machine.archived(end)) for end in (".jsonl", "-reads.jsonl", "jsonl")]
            events = machine.lines("agent-roster.jsonl")
            held.append((mail, foreign, sorted(events) if self.apart else events, decided, owned, archived))
            state = machine.box.state()
            roster = state.roster
            folded.append(
                (
                    {i: sorted(message_reads.readers(m, state.reads)) for i, m in state.messages.items()},
                    {i: message_reads.holder(m, state.reads, roster) for i, m in state.messages.items()},
                    {who: (a.name, a.tags, a.state) for who, a in roster.agents.items()},
                )
            )
        for name, other in zip(self.machines, held, strict=True):
            for mine, theirs in zip(held[0], other, strict=True):
                assert mine == theirs, name
        for one in folded:
            assert one == folded[0]

    def everybody_has_their_mail(self) -> None:
        """Nobody missed anything, nobody saw anything twice, and role mail went to one holder in the space."""
        north = self.machines["north"].box
        roster = north.state().roster
        for message_id, message in {**north.state().messages, **north.archive.messages()}.items():
            for who in EVERYBODY:
                count = self.shown.get((who, message_id), 0)
                assert message_id in self.excused or count <= 1
                heirs = {agent.session_id for agent in roster.line(who)}
                if who in message.recipients and message.sender not in heirs:
                    assert any((heir, message_id) in self.shown for heir in heirs)
            if message_id not in self.excused:
                assert len(self.by_role.get((message_id, ROLE), ())) <= 1


def _id(line: bytes) -> str:
    message = codec.message(line)
    assert isinstance(message, Message), line
    return message.id


TestSpace = Space.TestCase
TestSpace.settings = settings(max_examples=15, stateful_step_count=25)


def test_lines_whose_seal_is_wrong_are_told_of_by_their_machine() -> None:
    """The status and the doctor tell how many there were in whose name."""
    found = SpaceStanding("s", "a", "", False, *[0] * 5, "", (), "", (), (), {"west": 2, "east": 1}, ())
    told = [*space_words.describe_wrong_seals(found)]
    assert len(told) == 2
    assert all("whose seal is wrong" in line for line in told)
    assert ["west" in line and "2" in line for line in told] == [True, False]
