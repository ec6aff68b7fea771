"""Tasks that sessions add, claim, finish, give back and hand over: commands, and what the judge holds them to.

Belongs here: those commands. The judge holds, under kills and failures of power:

- No two sessions are told that they hold one task.
- No task is lost whose adder was told of it.
- A task is shown as done if and only if its holder was told so, or may have been.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.control import handing_over
from agent_mailbox.control.tasking import Tasking
from agent_mailbox.core.control import messages, transitions
from agent_mailbox.errors import NotFound, Refused
from tests.simulation.coordination_told import Task, is_there
from tests.simulation.scene import Scene

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("add_task", "claim_task", "finish_task", "drop_task", "hand_over", "list_tasks")
SCENES = {
    "tasks": Scene(
        2.5,
        "everyone check add_task",
        "claim_task! claim_task! claim_task finish_task drop_task add_task retire register run_steward",
        "everyone claim_task list_tasks finish_task list_tasks",
        least=3,
    ),
    "tasks handed over": Scene(
        1.5,
        "everyone check add_task everyone claim_task",
        "hand_over! claim_task! claim_task finish_task retire run_steward",
        "everyone claim_task list_tasks",
        least=3,
    ),
}


def _address(process: Process, me: Session) -> str:
    """Everyone, or those who share the session's role or tag."""
    return ("all", f"role:{me.role.removeprefix('role:')}", me.tag)[int(process.chance.random() * 3)]


def add_task(stage: Stage, process: Process, me: Session) -> None:
    """Add a task for whoever claims it."""
    if not is_there(me):
        return
    stage.told.added += 1
    payload = messages.TaskAssignment(request_id=f"task-{stage.told.added:04}", title="T")
    try:
        made = Tasking(stage.desk(me.id)).add_task(me.id, [_address(process, me)], payload).task
    except (Refused, NotFound):
        return  # nobody has the role yet
    stage.judge.acknowledge(("message", made.message_id))
    stage.told.tasks[made.id] = Task()


def claim_task(stage: Stage, process: Process, me: Session) -> None:
    """Claim the next task."""
    if not is_there(me):
        return
    desk = Tasking(stage.desk(me.id))
    try:
        view = desk.claim_next_task(me.id)
    except (Refused, NotFound):
        return
    stage.judge.acknowledge(("message", view.task.claim))
    task = stage.told.tasks.get(view.task.id)
    if task is None or me.may_be_dead:
        return
    for who, deaths in task.holders.items():
        other = stage.judge.sessions[who]
        stays = is_there(other) and other.deaths == deaths and not (other.may_be_frozen or other.passings)
        if who not in me.line and stays and not other.may_seem_gone:
            stage.judge.breach(f"{me.id} and {who} both hold {view.task.id}")
    if not process.hurt:
        task.holders[me.id] = me.deaths


def _held(stage: Stage, process: Process, me: Session) -> str:
    """One of the tasks that the session was told it holds; from now on it may hold it no more."""
    mine = [name for name, task in stage.told.tasks.items() if me.id in task.holders]
    found = mine[int(process.chance.random() * len(mine))] if mine else ""
    if found:
        del stage.told.tasks[found].holders[me.id]
    return found


def finish_task(stage: Stage, process: Process, me: Session) -> None:
    """Tell that a task is done."""
    if not is_there(me) or not (name := _held(stage, process, me)):
        return
    task = stage.told.tasks[name]
    task.may_be_done = True
    try:
        view = Tasking(stage.desk(me.id)).report(me.id, name, "done", "s")
    except (Refused, NotFound):
        return
    task.is_done = view.task.state == transitions.DONE
    stage.judge.acknowledge(("message", view.task.answer_id))


def drop_task(stage: Stage, process: Process, me: Session) -> None:
    """Give a task back."""
    if is_there(me) and (name := _held(stage, process, me)):
        try:
            Tasking(stage.desk(me.id)).drop_task(me.id, name, "r")
        except (Refused, NotFound):
            pass


def hand_over(stage: Stage, process: Process, me: Session) -> None:
    """Hand over all that the session holds to whoever claims it."""
    if not is_there(me):
        return
    while _held(stage, process, me):
        pass  # another may have them as soon as this is written
    try:
        sent, view = handing_over.hand_over(stage.desk(me.id), me.id, [_address(process, me)])
    except (Refused, NotFound):
        return
    stage.judge.acknowledge(("message", sent.message.id))
    stage.told.tasks[view.task.id] = Task()


def list_tasks(stage: Stage, _: Process, me: Session) -> None:
    """Look at all tasks."""
    if not is_there(me):
        return
    known = {name: task.is_done for name, task in stage.told.tasks.items()}
    desk = Tasking(stage.desk(me.id))
    shown = {view.task.id: view.state for view in desk.views.tasks(me.id, everything=True)}
    for name, was_done in known.items():
        try:
            state = shown.get(name) or desk.views.find_task(name).state
        except NotFound:
            stage.judge.breach(f"{name} is lost")
            continue
        if was_done and state != transitions.DONE:
            stage.judge.breach(f"{name} was told done, and is {state}")
        if state == transitions.DONE and not stage.told.tasks[name].may_be_done:
            stage.judge.breach(f"{name} is shown as done, and nobody said so")
