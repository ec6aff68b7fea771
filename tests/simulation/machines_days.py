"""What days and an engine that is away ask of several machines: mail that waits for it, sessions that fall silent.

Belongs here: batches that wait on their sender's machine, what a session is told of them, and what the judge asks of
them, of one look, and of a steward. It asks by the binding texts: mail that waits is shown as queued, to nobody as
mail, and never as what can never be sent; who is silent for a day is frozen by its own machine's steward; a look that
nobody disturbs shows all that is in the order. Also what keeps a machine's copy up: its replicator, and its steward.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from agent_mailbox.core import proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.roster import ALIVE
from agent_mailbox.errors import Refused
from agent_mailbox.space import joining_space, replicator
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy import bundled_lines
from agent_mailbox.space.order.order import MESSAGES
from agent_mailbox.store.files import system
from agent_mailbox.upkeep import steward
from tests.simulation import upkeep
from tests.simulation.disk import SECOND
from tests.simulation.machines import SILENCE
from tests.simulation.machines_stage import desk_of, space_of
from tests.simulation.machines_sweeps import MachineSweep
from tests.simulation.stage import LASTING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_mailbox.mailbox.mailbox import Mailbox
    from agent_mailbox.space.copy.replica import Replica
    from tests.simulation.machines import Machine
    from tests.simulation.machines_deeds import Deed
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process


DAY = 24 * 3600 * SECOND
ATTACKS = ("", "held", "is killed", "is killed", "is killed half way", "faints", "fails")


def batch(stage: Stage, process: Process, me: Session) -> None:
    """Send two or three messages in one go."""
    others = [other.id for other in stage.judge.sessions if other is not me]
    letters = []
    for _ in range(2 + int(process.chance.random() * 2)):
        to = ("all", "role:dev", *others)[int(process.chance.random() * (2 + len(others)))]
        letters.append(stage.judge.letter(process, me.machine, me.id, to))
    drafts = [Draft(sender=me.id, to=(one.to,), content=one.text, ttl_hours=LASTING, id=one.id) for one in letters]
    for letter, sent in zip(letters, desk_of(stage, me).send_all(drafts), strict=True):
        letter.acknowledged, letter.queued = True, bool(sent.queued)
        stage.judge.acknowledged += 1


def ask_waiting(stage: Stage, process: Process, me: Session) -> None:
    """Ask which mail waits here for the engine; it alone is told of as queued."""
    desk, judge = desk_of(stage, me), stage.judge
    before = stage.world.calls - process.calls
    told = desk.unsent()
    there = {one.id for one in judge.letters.values() if (MESSAGES, one.id) in stage.world.space.ids}
    if before != stage.world.calls - process.calls or not me.machine.joined or judge.is_rewritten:
        return
    mine = {other.id for other in judge.sessions if other.machine is me.machine}
    wanted = {one.id for one in judge.letters.values() if one.queued and one.sender in mine and one.id not in there}
    if missing := wanted - {*told}:
        judge.breach(f"{min(missing)} waits on {me.machine.name}, and is not told of as queued")
    for letter_id in wanted:
        if not desk.find(letter_id).queued:
            judge.breach(f"{letter_id} waits on {me.machine.name}, and is shown as sent")


def offline(deed: Deed) -> None:
    """The link of a machine is cut until somebody mends it."""
    deed.me.machine.away_until = deed.world.now + SILENCE


def shows_all(stage: Stage, process: Process, me: Session, shown: Iterable[str]) -> None:
    """One look that nobody disturbs shows all that was in the order for a session as its replicator last caught up."""
    judge, known = stage.judge, {*shown}
    if not process.in_peace or not me.machine.joined or judge.is_odd():
        return
    for letter in judge.letters.values():
        is_mine = me.gets(letter) and not letter.to.startswith("role:") and me.id in letter.readers
        is_there = letter.acknowledged and stage.world.space.ids.get((MESSAGES, letter.id), inf) <= me.machine.heard
        if is_mine and is_there and letter.id not in known and (me.id, letter.id) not in judge.given:
            judge.breach(f"{me.id} looks, and is not shown {letter.id}, which was sent before")


def sees_silent(stage: Stage, machine: Machine, desk: Mailbox) -> None:
    """Behind a steward of a machine: none of its sessions that was silent for a day is alive."""
    roster, busy = desk.logs.read_roster(), {one.name.rpartition(" ")[2] for one in stage.world.living()}
    signs = desk.logs.last_seen()  # the power may have taken one: then nobody tells the session from another machine's
    for session in stage.judge.sessions:
        behind = machine.foremost - machine.offset  # its clock was set back: less time went by on it
        is_silent = session.acted is not None and stage.world.now - session.acted > DAY + behind
        is_ours = session.machine is machine and (session.id in signs or not machine.failures)
        if is_ours and is_silent and session.id not in busy and roster.state(session.id) == ALIVE:
            stage.judge.breach(f"{session.id} was silent for a day, and the steward of {machine.name} leaves it alive")


COMMANDS = {"batch": batch, "ask_waiting": ask_waiting}
DEEDS = {"offline": offline}
SWEEPS = {
    "mail that waits for its engine": MachineSweep(
        2,
        "mend.each offline.a batch.a send.a? batch.a? ask_waiting.a back.a / "
        "mend.a|send.a|check.a|batch.a|replicate.a send.b? / "
        "ask_waiting.a mend.a ask_waiting.a mend.each check.all",
        ATTACKS,
        network=0.1,
        rounds=4,
    ),
    "a machine that was away for long": MachineSweep(
        1.5,
        "mend.each offline.b batch.a send.a batch.a send.a? back.b mend.b check.b / "
        "check.b|mend.b|hook.b send.a|batch.a / "
        "mend.each check.all",
        ATTACKS,
        rounds=4,
        sessions=2,
    ),
}


def run_steward(stage: Stage, process: Process, me: Session) -> None:
    """The steward of a machine, from cron."""
    steward.run_upkeep(stage.desk(me.machine, proofs.STEWARD), stage.max_live)


def keep_up(stage: Stage, process: Process, machine: Machine) -> None:
    """The steward of a machine that slept."""
    if machine.joined:
        steward.run_upkeep(desk := stage.desk(machine, proofs.STEWARD), stage.max_live)
        sees_silent(stage, machine, desk)


def replicate(stage: Stage, process: Process, me: Session) -> None:
    """The replicator of a machine runs for some turns, unless one runs already."""
    turns = 1 + int(process.chance.random() * 6)
    copy = spaces.open_replica(stage.desk(me.machine, proofs.TERMINAL).logs, space_of(me.machine))
    left = iter(range(turns))
    ours = replicator.Replicator(copy, lambda _: None, lambda _: None)
    ours.run(lambda: next(left, None) is None, system.sleep)


def settle(stage: Stage, process: Process, machine: Machine) -> None:
    """In the end: the replicator of a machine after its connection broke."""
    copy = _mended(stage, machine)
    if not stage.judge.edited and not stage.judge.is_damaged:
        with copy.machine_lock():
            bundled_lines.compare_with_order(copy)


def tidy(stage: Stage, process: Process, machine: Machine) -> None:
    """The last runs of the steward leave nothing that is finished. An answer of an earlier month than its request's
    follows that by the second one."""
    desk = stage.desk(machine, proofs.STEWARD)
    if upkeep.find_left(desk, 0) and (left := upkeep.find_left(desk, 0)):
        stage.judge.breach(f"{machine.name}'s steward leaves {left}, which are finished")


def _mended(stage: Stage, machine: Machine) -> Replica:
    """What a replicator does as it starts, and as its connection is back."""
    copy, end = (
        spaces.open_replica(stage.desk(machine, proofs.TERMINAL).logs, space_of(machine)),
        stage.world.space.end(),
    )
    with copy.machine_lock():
        try:
            joining_space.judge_waiting(copy)
        except Refused:
            if machine not in stage.judge.edited:
                raise
        copy.catch_up()
        if copy.look_closer():
            copy.catch_up()
    machine.heard = end
    return copy


def mend(stage: Stage, process: Process, me: Session) -> None:
    """The replicator of a machine starts, and ends soon."""
    if me.machine.joined:
        _mended(stage, me.machine)


def blind(stage: Stage, process: Process, me: Session) -> None:
    """The same on an installation without the library that verifies."""
    process.is_blind = True
    mend(stage, process, me)
