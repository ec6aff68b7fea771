"""Tasks as text and as JSON.

Belongs here: how a task, its history and a list of tasks are shown, and one of a client's own team. A task's text is
other people's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..control import task_offers
from ..core import frame, instant
from ..core.control import message_text, messages, summary
from ..core.control.tasks import BLOCKED
from ..core.text import neutral, typed
from ..known_clients.every_client import USUAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..clients.team_tasks import TeamTask
    from ..control.task_views import TaskView, TaskViews
    from ..core.control.verdicts import Verdict
    from ..core.records import Message
    from ..mailbox.open_mailbox import OpenMailbox
    from .context import Context

    History = Sequence[tuple[Message, Verdict]]

NOTE = re.compile(r"\bnote-[0-9a-f]{4,36}\b")
"""A note that a task's text names."""


def task_json(found: TaskView, *, whole: bool = False) -> dict[str, Any]:
    """Return a task as programs see it; ``whole``: with what it says."""
    task, said = found.task, found.task.payload
    value: dict[str, Any] = {
        "id": task.id,
        "title": task.title,
        "to": task.to[0] if len(task.to) == 1 else list(task.to),
        "state": found.state,
        "holder": found.holder or None,
        "phase": task.phase or None,
        "after": list(task.after),
        "waits_for": list(found.waits_for),
        "waits_for_cancelled": list(found.cancelled),
        "hands": list(task.hands),
        "added_by": task.asker,
        "added": instant.text(task.asked),
        "ack_by": None if said.ack_by is None else instant.text(said.ack_by),
        "message_id": task.message_id,
        "proof": task.proof if task.proven else None,
    }
    if whole:
        value |= {"body": said.instructions, "context": said.context, "plan_required": said.plan_required}
    end = task.answer
    if isinstance(end, messages.TaskCompleted):
        value |= {"summary": end.summary, "artifacts": list(end.artifacts), "errors": list(end.errors)}
    elif isinstance(end, messages.TaskDropped | messages.TaskCancelled):
        value["reason"] = end.reason
    return value


def history_json(history: History) -> list[dict[str, Any]]:
    """Return the messages about a task, each with its outcome."""
    return [
        {
            "id": message.id, "sender": message.sender, "timestamp": instant.text(message.timestamp),
            "type": verdict.kind, "outcome": verdict.outcome, "why": verdict.why or None,
        }
        for message, verdict in history
    ]  # fmt: skip


def state_text(found: TaskView, desk: OpenMailbox) -> str:
    """Return a task's state in a few words: who holds it, how far it is, what it waits for."""
    roster, phase = desk.logs.read_roster(), found.task.phase
    if found.state == BLOCKED:
        ends = dict.fromkeys(found.cancelled, " (cancelled)")
        return f"blocked by {', '.join(neutral(one) + ends.get(one, '') for one in found.waits_for)}"
    if found.state == "open":
        return f"open to {found.name_addressees(roster)}"
    if found.state == "cancelled":
        return "cancelled"
    way = "to" if found.state == "assigned" else "by"
    return f"{found.state}{f' ({phase})' if phase else ''} {way} {frame.name_of(found.holder, roster)}"


def step_text(app: Context, found: TaskView, desk: OpenMailbox) -> str:
    """Return the state of a task after a step, in a line."""
    unheld = "" if found.holder or found.task.is_over else "nobody holds it, and "
    again = f": {unheld}nothing changed" if found.already else ""
    state = f"{'already ' if found.already else ''}{state_text(found, desk)}{again}"
    return f"{app.painter(neutral(found.task.id), 'id')}  {state}\n"


def done_answer(
    app: Context, found: TaskView, following: Sequence[TaskView], desk: OpenMailbox
) -> tuple[str, dict[str, Any]]:
    """Return the answer to whoever ended a task, as text and as data: it names the next one that is open to it."""
    line = f"{task_offers.open_line(following, app.complete_command)}\n" if following else ""
    value = {"task": task_json(found), "already": found.already, "next": following[0].task.id if following else None}
    return step_text(app, found, desk) + line, value


def warn_of_none(app: Context, views: TaskViews, found: TaskView) -> None:
    """Warn of an open task that nobody who is there may claim."""
    if not views.has_taker(found):
        app.give_warning(
            f"nobody who may claim it is there yet: it waits for {' or '.join(map(neutral, found.task.to))}"
        )


def warn_of_kept(app: Context, views: TaskViews, found: TaskView) -> None:
    """Warn of the tasks of a handover that did not pass to who holds it: nothing proves a program's claim."""
    for one in map(views.task, found.hands if found.holder else ()):
        if one.holder not in ("", found.holder):
            keeper = frame.name_of(one.holder, views.box.logs.read_roster())
            give = f"`agent-mailbox task claim {typed(one.task.id)} --for {typed(found.holder)}`"
            app.give_warning(f"{one.task.id} stays with {keeper}; its adder, its lead or the person gives it: {give}")


def list_text(app: Context, found: Sequence[TaskView], desk: OpenMailbox, theirs: Sequence[str] = ()) -> str:
    """Return the tasks, a line each. ``theirs``: the lines of those of a client's own teams."""
    ids = [app.painter(neutral(one.task.id), "id") for one in found]
    states = [f'{state_text(one, desk)}{_wanted(one)}: "{frame.quoted(one.task.title)}"' for one in found]
    lines = [*map("  ".join, zip(ids, states, strict=True)), *theirs]
    return "\n".join(lines or ["no tasks"]) + "\n"


def _wanted(found: TaskView) -> str:
    """Return until when a task that is not over should be done."""
    until = found.task.payload.ack_by
    return "" if until is None or found.task.is_over else f", wanted by {frame.when(until)}"


def whole_text(app: Context, found: TaskView, desk: OpenMailbox, history: History = ()) -> str:
    """Return what a task says, behind the bar, its state, and what its holder does next."""
    task, said, roster = found.task, found.task.payload, desk.logs.read_roster()
    style, command = app.painter, app.complete_command
    by = frame.name_of(task.asker, roster) + ("" if task.proven else " (unverified)")
    lines = [f"{style(neutral(task.id), 'id')}  {state_text(found, desk)}, added by {style(by, 'sender')}"]
    texts = [task.title, said.instructions, said.context]
    lines += [line for text in texts if text for line in frame.barred(text)]
    if said.ack_by is not None:
        lines.append(f"wanted by {frame.when(said.ack_by)}")
    if said.plan_required:
        lines.append(f"a plan comes first: {command('control request plan --body …')}")
    if found.hands:
        lines.append(f"with it: {', '.join(map(neutral, found.hands))}")
    notes = dict.fromkeys(NOTE.findall(" ".join(texts)))
    lines += [f"note: {command(f'note show {note}')}" for note in notes]
    if found.cancelled and not task.is_over:
        waits = ", ".join(map(neutral, found.cancelled))
        ends = command(f"task cancel {typed(task.id)}")
        lines.append(f"it never opens, for it waits for {waits}: {ends}, and add it again without that")
    if history:
        lines += [_step(message, verdict, desk) for message, verdict in history]
    elif found.is_mine:
        which = typed(task.id)
        if desk.prove(found.holder) is not None:
            lines.append(f'then: {command(f"task done {which} --summary")} "…"')
        else:
            lines.append(
                "then: say that it is done in a session of a client with our hooks: nothing proves here who did it"
            )
        lines.append(f'or give it back: {command(f"task drop {which} --reason")} "…"')
        lines.append(f"talk: {command(f'thread {frame.short_typed(task.message_id)}')}")
    return "\n".join(lines) + "\n"


def _step(message: Message, verdict: Verdict, desk: OpenMailbox) -> str:
    who = frame.named(message, desk.logs.read_roster())
    outcome = "" if verdict.outcome in ("applied", "noted") else f" ({verdict.outcome}: {neutral(verdict.why)})"
    told = summary.line(message_text.parse(message.content))
    return f"{frame.when(message.timestamp)}  {who}{outcome} {frame.BAR}{told}"


def team_task_json(one: TeamTask) -> dict[str, Any]:
    """Return a task of a client's own team as programs see it: with the keys of ours, and whose it is."""
    return {
        "id": one.id, "title": one.title, "to": one.tag, "state": one.state, "holder": one.owner or None,
        "phase": None, "after": list(one.waits_for), "waits_for": list(one.waits_for), "hands": [], "added_by": None,
        "added": None, "ack_by": None, "message_id": None, "proof": None, "client": USUAL.name, "body": one.body,
    }  # fmt: skip


def team_task_line(app: Context, one: TeamTask) -> str:
    """Return such a task in a line."""
    by = f" by {neutral(one.owner)}" if one.owner else ""
    state = f"blocked by {', '.join(map(neutral, one.waits_for))}" if one.waits_for else one.state + by
    return f'{app.painter(neutral(one.id), "id")}  {state}, {USUAL.title}\'s own: "{frame.quoted(one.title)}"'
