"""What keeps a machine's copy up: its replicator, and its steward.

Belongs here: these commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core import proofs
from agent_mailbox.errors import Refused
from agent_mailbox.space import replicator
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy import lost_records
from agent_mailbox.space.exchanged_files import ExchangedFiles
from agent_mailbox.space.trust import space_trust
from agent_mailbox.store.files import system
from agent_mailbox.upkeep import steward
from tests.simulation import upkeep
from tests.simulation.machines_days import sees_silent
from tests.simulation.machines_stage import space_of

if TYPE_CHECKING:
    from agent_mailbox.space.copy.replica import Replica
    from tests.simulation.machines import Machine
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process


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
    files = ExchangedFiles(copy.logs, spaces.order_in(copy), copy.directory, lambda _: None)
    ours = replicator.Replicator(copy, files, lambda _: None, lambda _: None)
    ours.run(lambda: next(left, None) is None, system.sleep)


def settle(stage: Stage, process: Process, machine: Machine) -> None:
    """In the end: the replicator of a machine after its connection broke."""
    copy = _mended(stage, machine)
    if not stage.judge.edited and not stage.judge.is_damaged:
        with copy.machine_lock():
            lost_records.compare_with_order(copy)


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
            space_trust.judge_waiting(copy)
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
