"""Tasks and short-lived mail between several machines, and what a second reading of the rules says of them.

Belongs here: these commands, and both questions. Nothing of the product answers them: ``tests.judge`` reads the order
itself, or the lines of one machine's copy.

- Each machine tells of every task the state and the holder that the order has, also once tasks were handed over.
- One look that nobody disturbs shows a session what is unread on its machine's copy. Mail without a time of its own
  ends by its mode's: to all after 4 hours, to one after 24, to a tag after 72, to a role never.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent_mailbox.control import handing_over
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import messages
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import NotFound, Refused
from agent_mailbox.space.order.order import MESSAGES, ROSTER
from agent_mailbox.store.log.unordered import unsealed
from tests.judge.deciding import Decisions, Task, Word
from tests.judge.lines import HOURS, Facts, read_time
from tests.judge.mail import Judge
from tests.simulation.machines_stage import box_of, desk_of
from tests.simulation.machines_sweeps import MachineSweep
from tests.simulation.second_judge import read_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_mailbox.core.records import Proof
    from tests.simulation.machines import Machine, Machines
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process

PROJECT = "project:p"


def _one(process: Process, several: Iterable[str]) -> str:
    found = [*several]
    return found[int(process.chance.random() * len(found))] if found else ""


def _taker(stage: Stage, process: Process, me: Session) -> str:
    return _one(process, ("role:dev", "role:ops", *(other.id for other in stage.judge.sessions if other is not me)))


def add_task(stage: Stage, process: Process, me: Session) -> None:
    """Add a task for one session, or for whoever of a role claims it."""
    stage.count += 1
    payload = messages.TaskAssignment(request_id=f"task-{stage.count:04}", title="T")
    stage.judge.is_fading = True  # as what the steward tells of it
    with suppress(Refused, NotFound):  # nobody has the role yet
        Tasking(desk_of(stage, me)).add_task(me.id, [_taker(stage, process, me)], payload)


def claim_task(stage: Stage, process: Process, me: Session) -> None:
    """Claim the next task."""
    with suppress(Refused, NotFound):
        Tasking(desk_of(stage, me)).claim_next_task(me.id)


def end_task(stage: Stage, process: Process, me: Session) -> None:
    """Tell that a task is done, or begun, give it back, or cancel it: one's own, or any."""
    desk = Tasking(desk_of(stage, me))
    views = desk.views.tasks(me.id)
    name = _one(process, [one.task.id for one in views if one.is_mine] or [one.task.id for one in views])
    what = _one(process, ("done", "verifying", "drop", "cancel"))
    if not name:
        return
    with suppress(Refused, NotFound):
        if what == "drop":
            desk.drop_task(me.id, name, "r")
        elif what == "cancel":
            desk.cancel_task(me.id, name, "r")
        else:
            desk.report(me.id, name, what, "s")


def hand_over(stage: Stage, process: Process, me: Session) -> None:
    """Hand over all that the session holds."""
    with suppress(Refused, NotFound):
        handing_over.hand_over(desk_of(stage, me), me.id, [_taker(stage, process, me)])


def tag(stage: Stage, process: Process, me: Session) -> None:
    """A session takes the tag of a project."""
    desk_of(stage, me).register(Registration(session_id=me.id, roles=me.roles, tags=(PROJECT,)), me.id)


def fade(stage: Stage, process: Process, me: Session) -> None:
    """Send mail that has no time of its own."""
    stage.count += 1
    to = _one(process, ("all", PROJECT, _taker(stage, process, me)))
    letter = uuid_of(f"{process.chance.getrandbits(128):032x}", "4")
    stage.judge.fading.add(letter)
    stage.judge.is_fading = True
    desk_of(stage, me).send(Draft(sender=me.id, to=(to,), content=f"fades {stage.count}", id=letter))


# -- what the texts say -----------------------------------------------------------------------------------------------


def looks(stage: Stage, process: Process, me: Session, shown: Iterable[str]) -> None:
    """Hold one look to the texts. Role mail that another took a step with is asked for elsewhere. What ended by another
    machine's clock may be archived here ahead of its end by this one's."""
    machine = me.machine
    if not (process.in_peace and machine.joined and stage.judge.fading) or stage.judge.is_odd():
        return
    facts = read_facts(machine.disk, box_of(machine), HOURS)
    first = max(other.offset for other in stage.world.machines) - machine.offset
    judge, later = (
        Judge(facts, datetime.fromtimestamp((stage.world.wall() + ahead) / 1e9, UTC)) for ahead in (0, first)
    )
    takers = {(line["message_id"], line["reader_session_id"]) for line in facts.reads}
    others = {message for message, who in takers if who != me.id}
    of_roles = {mail.id for mail in judge.mail if any(judge.mode(one) == "role" for one in mail.to)}
    asked = shown, judge.unread(me.id), later.unread(me.id)
    told, unread, lasting = ({*ids} - (others & of_roles) for ids in asked)
    more, less = sorted(told - unread), sorted(lasting - told)
    if more or less:
        stage.judge.breach(f"{me.id} is shown, and not by the texts: {more}; by the texts alone: {less}")


def tasks(stage: Stage, process: Process, machine: Machine) -> None:
    """Hold what a machine tells of each task to the order."""
    if not stage.trusted or stage.judge.is_odd() or stage.judge.is_late or stage.world.overtaken:
        return
    words = [*_words(stage.world)]
    if any(word.by is None for word in words):
        return  # its machine alone may know who wrote it
    judge, views = Decisions(_roster(stage.world), words), Tasking(stage.desk(machine, None)).views
    live = {view.task.id for view in views.tasks(everything=True)}
    for name, task in judge.tasks.items():
        months = [f"{word.at:%Y-%m}" for word in words if word.said["requestId"] == name]
        if name not in live and months != sorted(months):
            continue  # by a clock of another month; the archive keeps months, and the order within each
        stage.judge.checks += 1
        try:
            view = views.task(name)
        except NotFound:
            stage.judge.breach(f"{machine.name} does not know {name}")
            continue
        told, said = (view.task.state, view.holder or None), (_state(task), judge.holder(task))
        if told != said:
            stage.judge.breach(f"{machine.name} says of {name}: {told}; the order says {said}")


def _state(task: Task) -> str:
    if task.state != "open" or task.holder is None:
        return task.state
    return "claimed" if task.begun else "assigned"


def _roster(world: Machines) -> Facts:
    return Facts(roster=[json.loads(record.line) for record in world.space.records if record.log == ROSTER])


def _words(world: Machines) -> Iterator[Word]:
    """All that was said of tasks, in its order."""
    for record in world.space.records:
        if record.log == MESSAGES and b'"type":"control"' in record.line and b"task_" in record.line:
            line = json.loads(record.line)
            said = json.loads(line["content"])
            to, sender = line["recipient"], line["sender"]
            by = sender if all(_proofs(world, record.line)) else None
            first = to if isinstance(to, str) else to[0]
            yield Word(line["id"], read_time(line["timestamp"]), sender, by, first, said)


def _proofs(world: Machines, line: bytes) -> list[Proof | None]:
    return [proof for _, proof in world.said.get(unsealed(line), ())]


COMMANDS = {one.__name__: one for one in (add_task, claim_task, end_task, hand_over, tag, fade)}
MET = ("", "held", "held before it publishes", "both held before they ask", "is killed")
TRUSTED = MachineSweep(1.5, "", MET, trusted=("all",), network=0.1, sessions=2, rounds=5)
"""Machines that trust each other, with two sessions each: what is told of tasks hangs on no machine's word alone."""
SWEEPS = {
    "tasks": TRUSTED._replace(
        words="add_task.a add_task.b? mend.each claim_task.a? mend.each / "
        "claim_task.a|end_task.a|add_task.a then? claim_task.b|end_task.b / "
        "end_task.a? mend.each claim_task.b? end_task.b mend.each"
    ),
    "tasks handed over": TRUSTED._replace(
        words="add_task.b mend.each claim_task.a add_task.b? mend.each claim_task.a / "
        "hand_over.a then? claim_task.b|end_task.a|hand_over.a / "
        "mend.each claim_task.b claim_task.a? mend.each end_task.b? mend.each"
    ),
    "mail of each mode's time": TRUSTED._replace(
        words="tag.a mend.each fade.a fade.b fade.a? mend.each night check.a mend.each / "
        "fade.a|check.b|run_steward.a check.a|run_steward.b / "
        "mend.each night? mend.each check.all",
        network=0.0,
        rounds=6,
    ),
}
