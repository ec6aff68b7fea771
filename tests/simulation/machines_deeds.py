"""What befalls a space between commands: its engine, a machine's record, programs of others, a machine that lies.

Belongs here: one function for each such deed. Nobody of ours is at work meanwhile. An engine may lose the end of its
order, records in its middle, or be put back to an earlier state; a record may be damaged; the person may purge it. A
machine may lose its own record of how far it is. Other programs write into a machine's mailbox, without our locks and
keys. A machine that lies has a key of its own, which the person confirmed, and somebody may have the credential of an
honest machine without its key. Nothing that they say may be proven anywhere (``machines_proofs``).
"""

from __future__ import annotations

import zlib
from random import Random
from typing import TYPE_CHECKING

from agent_mailbox.core import codec, compose, proofs, space_seals
from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import message_text
from agent_mailbox.core.control import messages as orders
from agent_mailbox.core.records import USER, RosterEvent
from agent_mailbox.space import joining_space
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy import bundled_lines
from agent_mailbox.space.order.order import ARCHIVE, CLAIMS, MESSAGES, PASSED, ROSTER, Ordered, reads_of
from agent_mailbox.space.trust.machine_keys import MachineKey
from agent_mailbox.store.files import paths, system
from agent_mailbox.store.log.unordered import unsealed
from tests.engine.memory_order import MemoryOrder
from tests.simulation.disk import SECOND
from tests.simulation.machines_stage import box_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.space_seals import SpaceSeal
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage

LIAR = "liar"
VERDICT = b',"seal":"1 '
"""What a machine's own seal begins with, behind another one's."""


class Deed:
    """A deed at its place in the run: who it is about, and its chance."""

    def __init__(self, stage: Stage, place: int, me: Session) -> None:
        self.stage = stage
        self.world = stage.world
        self.space = stage.world.space
        self.judge = stage.judge
        self.me = me
        self.place = place
        self.chance = Random(f"deed {stage.world.seed} {place}")

    def one_of(self, several: Sequence[str]) -> str:
        return several[int(self.chance.random() * len(several))]

    def id(self) -> str:
        return uuid_of(f"{self.chance.getrandbits(128):032x}", "4")

    def now(self) -> int:
        """The instant, in ms, on that machine."""
        self.world.at = self.me.machine
        return self.world.wall() // 1_000_000


# -- the engine -------------------------------------------------------------------------------------------------------


def mark(deed: Deed) -> None:
    """The engine is as it will be again."""
    deed.stage.marked = len(deed.space.records)


def rewind(deed: Deed) -> None:
    """The engine is put back to where it was."""
    deed.judge.lost()
    deed.space.lose(deed.stage.marked)


def lose_end(deed: Deed) -> None:
    """The engine loses the last records of its order, and gives their positions to others."""
    deed.judge.lost()
    count = len(deed.space.records)
    near = count - 1 - int(deed.chance.random() * 6)
    deed.space.lose(max(near if deed.chance.random() < 0.6 else int(deed.chance.random() * count), 0))


def lose_middle(deed: Deed) -> None:
    """The engine loses records of one log; its end stays."""
    deed.judge.lost()
    log = deed.one_of((MESSAGES, MESSAGES, ROSTER, CLAIMS, ARCHIVE, reads_of(deed.me.machine.name)))
    there = [record.position for record in deed.space.records[:-1] if record.log == log]
    deed.space.remove(there[-1 - int(deed.chance.random() * 3) :])


def strangers(deed: Deed) -> None:
    """Another machine writes mail of its own, perhaps where lost records were."""
    for _ in range(1 + int(deed.chance.random() * 4)):
        draft = Draft(sender="east-1", to=("east-1",), content="of another machine", id=deed.id())
        line = compose.stored_line(compose.message(draft, ("east-1",), draft.id or "", deed.now()))
        deed.space.append("east", MESSAGES, [line.rstrip(b"\n")], [draft.id or ""], None)


def damage(deed: Deed) -> None:
    """A record of the engine is not what was published: a machine that comes to it is told so."""
    there = [n for n, one in enumerate(deed.space.records) if one.log not in (PASSED, ARCHIVE)][-4:]
    if there:
        deed.judge.lost()
        deed.judge.is_damaged = True
        place = there[int(deed.chance.random() * len(there))]
        record = deed.space.records[place]
        line = record.line[:9] + bytes([record.line[9] ^ 1]) + record.line[10:]
        deed.space.records[place] = record.replace(line=line, damaged=True)


def purge(deed: Deed) -> None:
    """The person removes what all machines archived."""
    machines = [machine.name for machine in deed.world.machines if machine.joined]
    keeper = MemoryOrder(deed.space, machines[0])
    _at(deed, lambda: joining_space.purge_records(keeper, joining_space.plan_purge(keeper, machines), keeper))  # type: ignore[arg-type] # it removes alone


# -- a machine --------------------------------------------------------------------------------------------------------


def outage(deed: Deed) -> None:
    """A machine loses its power."""
    deed.world.off = deed.me.machine
    deed.world.power_off()
    deed.world.off = None


def cut(deed: Deed) -> None:
    """A machine's link is cut for a while."""
    deed.me.machine.away_until = deed.world.now + int(deed.chance.random() ** 2 * 120 * SECOND)


def unheard(deed: Deed) -> None:
    """The next append of a machine arrives, and its answer does not; then its link is cut."""
    deed.me.machine.is_unheard = True


def back(deed: Deed) -> None:
    """The link is again."""
    deed.me.machine.away_until, deed.me.machine.is_unheard = 0, False


def clock(deed: Deed) -> None:
    """Somebody sets a machine's clock."""
    if not deed.world.profile.power and "power" not in deed.world.profile.aims:
        ahead = int((deed.chance.random() * 6 - 3) * 3600)
        deed.me.machine.offset += ahead * SECOND
        deed.world.tell(f"the clock of {deed.me.machine.name} goes on by {ahead} seconds")


def lose_state(deed: Deed) -> None:
    """A machine loses its record of how far it is."""

    def remove() -> None:
        path = spaces.record_of(deed.stage.desk(deed.me.machine, None).logs).path(spaces.PLACE, "state")
        if system.exists(path):
            system.unlink(path)

    _at(deed, remove)


def _at(deed: Deed, work: Callable[[], None]) -> None:
    """Do something by the calls of a machine, in peace."""
    if not deed.me.machine.joined:
        return
    before, deed.world.quiet = deed.world.quiet, True
    deed.world.begin(deed.me.machine, f"{deed.place} deed", lambda _: work())
    while deed.world.living() and deed.world.turn():
        pass
    (process,) = deed.world.processes
    deed.world.processes, deed.world.quiet = [], before
    if process.error is not None:
        raise process.error


# -- other programs ---------------------------------------------------------------------------------------------------


def _append(deed: Deed, name: str, line: bytes) -> None:
    fd = system.open(f"{box_of(deed.me.machine)}/{name}", system.O_WRONLY | system.O_APPEND | system.O_CREAT)
    system.write(fd, line.rstrip(b"\n") + b"\n")
    system.close(fd)


def foreign_archived(deed: Deed) -> None:
    """A program writes mail under an id that archived mail has: nobody else hears of it."""
    taken = deed.judge.archived(deed.me.machine)
    if taken:
        draft = Draft(sender="cron", to=("cron",), content=f"not {deed.place}", id=deed.one_of(taken))
        line = compose.stored_line(compose.message(draft, ("cron",), draft.id or "", deed.now()))
        deed.judge.alone[line.rstrip(b"\n")] = deed.me.machine
        _at(deed, lambda: _append(deed, paths.MESSAGES, line))


def foreign_event(deed: Deed) -> None:
    """A program writes that a session has another lead."""
    line = codec.spell_event(RosterEvent("update", deed.me.id, deed.now(), lead="kim"))
    deed.judge.is_beset = True
    _at(deed, lambda: _append(deed, paths.ROSTER, line))


def foreign_copy(deed: Deed) -> None:
    """A program copies lines that other machines sealed."""
    deed.judge.is_beset = True

    def copy() -> None:
        logs = deed.stage.desk(deed.me.machine, None).logs
        for log in (logs.roster, logs.messages):
            found = [line for _, line in log.lines() if b'"seal":"2 ' in line and _may_be_twice(log.path, line)]
            if found:
                _append(deed, log.path.rpartition("/")[2], found[int(deed.chance.random() * len(found))])

    _at(deed, copy)


def foreign_seal(deed: Deed) -> None:
    """A program writes what a machine sealed and never published, though the person may believe that machine.

    Perhaps it puts this machine's verdict on another line behind it."""
    deed.judge.is_beset = True
    who, is_judged = f"{LIAR}-{deed.place}", deed.chance.random() < 0.5
    line = codec.spell_event(RosterEvent("register", who, deed.now()))
    line = _signed(deed, line, proofs.of_session(who), ROSTER)

    def write() -> None:
        logs = deed.stage.desk(deed.me.machine, None).logs
        verdicts = [one[one.rfind(VERDICT) :] for _, one in logs.roster.lines() if VERDICT in one]
        known = verdicts[int(deed.chance.random() * len(verdicts))] if verdicts and is_judged else b"}"
        _append(deed, paths.ROSTER, line[:-1] + known)

    _at(deed, write)


def _may_be_twice(path: str, line: bytes) -> bool:
    return path.endswith(paths.ROSTER) or b'"type":"control"' in line


def edit(deed: Deed) -> None:
    """A program blanks a line that decides: from then on nothing is proven there, until the person has looked."""

    def blank() -> None:
        log = deed.stage.desk(deed.me.machine, None).logs.roster
        for position, line in log.lines():
            if b'"seal":"1 ' in line and deed.me.id.encode() in line:
                fd = system.open(log.path, system.O_RDWR)
                system.pwrite(fd, b" " * len(line), position)
                system.close(fd)
                deed.judge.edited.add(deed.me.machine)
                return

    _at(deed, blank)


# -- who lies ---------------------------------------------------------------------------------------------------------


def key_of(seed: int, number: int) -> MachineKey:
    """The keys of the machine that lies: the person confirmed the first."""
    return MachineKey(Random(f"liar {seed} {number}").randbytes(32))


def lie(deed: Deed) -> None:
    """Somebody puts into the order what nobody of ours said so."""
    deed.judge.is_beset = True
    kinds = [_plainly, _by_another_key, _in_anothers_name, _by_anothers_seal, _changed, _of_others, _bundled]
    kinds += [_as_the_person] if deed.stage.trusted != "user" else [_unseen, _unseen]
    kinds[int(deed.chance.random() * len(kinds))](deed)


def replay(deed: Deed) -> None:
    """Somebody publishes again what a machine sealed once."""
    found = [
        r for r in deed.space.records if _sealed(r) is not None and (r.log == ROSTER or b'"type":"control"' in r.line)
    ]
    if found:
        deed.judge.is_beset = True
        record = found[int(deed.chance.random() * len(found))]
        _put(deed, record.log, record.line, record.machine)


def _put(deed: Deed, log: str, line: bytes, machine: str = LIAR) -> None:
    """Put a record into the order, past all that would refuse it."""
    deed.space.records.append(Ordered(deed.space.end() + 1, log, line.rstrip(b"\n"), machine))


def _sealed(record: Ordered) -> SpaceSeal | None:
    return None if record.damaged else space_seals.of(record.line)


def _order(deed: Deed, sender: str) -> bytes:
    """An order that allows a session something."""
    policy = message_text.written(orders.PolicyUpdate(allow=("Bash",), timestamp=1))
    draft = Draft(sender=sender, to=(deed.me.id,), content=policy, type="control", id=deed.id())
    return compose.stored_line(compose.message(draft, (deed.me.id,), draft.id or "", deed.now())).rstrip(b"\n")


def _signed(deed: Deed, line: bytes, proof: str, log: str = MESSAGES, machine: str = LIAR, key: int = 1) -> bytes:
    signer = key_of(deed.world.seed, key)
    number = deed.world.now // 1000 + 10**16
    begun = space_seals.begun(line.rstrip(b"\n"), machine, number, signer.public, proof)
    return space_seals.ended(begun, signer.sign_bytes(space_seals.covered("team", log, begun)))


def _plainly(deed: Deed) -> None:
    """Without any seal, or with half of one."""
    line = _order(deed, USER)
    _put(deed, MESSAGES, line if deed.chance.random() < 0.5 else line[:-1] + b',"seal":"2 north"}')


def _as_the_person(deed: Deed) -> None:
    """As the person, by a machine that may not."""
    _put(deed, MESSAGES, _signed(deed, _order(deed, USER), proofs.TERMINAL))


def _of_others(deed: Deed) -> None:
    """Of a session that lives elsewhere."""
    _put(deed, MESSAGES, _signed(deed, _order(deed, deed.me.id), proofs.of_session(deed.me.id)))


def _by_another_key(deed: Deed) -> None:
    """By a key that nobody confirmed, of a session of its own."""
    who = f"liar-{deed.place}"
    line = codec.spell_event(RosterEvent("register", who, deed.now()))
    _put(deed, ROSTER, _signed(deed, line, proofs.of_session(who), ROSTER, key=2))


def _in_anothers_name(deed: Deed) -> None:
    """With a seal that names another machine."""
    line, name = _order(deed, deed.me.id), deed.me.machine.name
    _put(deed, MESSAGES, _signed(deed, line, proofs.of_session(deed.me.id), machine=name))


def _by_anothers_seal(deed: Deed) -> None:
    """What another machine sealed, in its own name."""
    found = [r for r in deed.space.records if _sealed(r) is not None and r.log == ROSTER]
    if found:
        record = found[int(deed.chance.random() * len(found))]
        _put(deed, record.log, record.line)


def _changed(deed: Deed) -> None:
    """With the credential of an honest machine, and a signature that is none."""
    found = [r for r in deed.space.records if r.machine == deed.me.machine.name and _sealed(r) is not None]
    seal = _sealed(found[-1]) if found else None
    if seal is not None:
        line, proof = _order(deed, deed.me.id), proofs.of_session(deed.me.id)
        begun = space_seals.begun(line, seal.machine, seal.number + 1, seal.key, proof)
        _put(deed, MESSAGES, space_seals.ended(begun, seal.signature), seal.machine)


def _unseen(deed: Deed) -> None:
    """A proof that no machine sees itself."""
    proof = (f"north/{proofs.TERMINAL}", proofs.ADOPTED, proofs.WAITS)[int(deed.chance.random() * 3)]
    _put(deed, MESSAGES, _signed(deed, _order(deed, USER), proof))


def _bundled(deed: Deed) -> None:
    """A bundle that names a file which no archive has."""
    name = deed.one_of(("../../x.jsonl", "MANIFEST.jsonl", "2026-01.jsonl/x", "../agent-mailbox.jsonl"))
    head = codec.dumps({"file": name, "told": 0, "since": 0, "mark": ""}).encode()
    _put(deed, ARCHIVE, zlib.compress(head + b"\n" + _order(deed, USER)))


def bundle_orders(deed: Deed) -> None:
    """A machine says that the orders of all are archived."""
    deed.judge.is_beset = True
    lines = [unsealed(r.line) for r in deed.space.records if r.log == MESSAGES and b'"type":"control"' in r.line]
    for one in bundled_lines.records_of("2026-01.jsonl", lines):
        _put(deed, ARCHIVE, one)


DEEDS: dict[str, Callable[[Deed], None]] = {
    one.__name__: one
    for one in (
        mark, rewind, lose_end, lose_middle, strangers, damage, purge, outage, cut, unheard, back, clock, lose_state,
        foreign_archived, foreign_event, foreign_copy, foreign_seal, edit, lie, replay, bundle_orders,
    )
}  # fmt: skip
