"""The tools for tasks and notes: one call of the facade, one answer.

Belongs here: which of the facade's calls each deed is. The texts are those of the commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..cli import note_output, task_output
from ..clients import team_tasks
from ..control import handing_over, leasing, task_offers
from ..control.tasking import Tasking
from ..control_plane import control_log
from ..core.control import messages
from ..errors import Malformed
from ..mailbox.noting import Noting
from ..store.files import system
from .tool_schemas import MOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..control.task_views import TaskView
    from ..mailbox.mailbox import Mailbox
    from .call_context import CallContext

    Given = Mapping[str, Any]


def need(given: Given, *names: str) -> list[str]:
    """Return the arguments that a deed needs; raises ``Malformed`` for one that is missing."""
    for name in names:
        if name not in given:
            raise Malformed(f"{given['do']} lacks an argument: {name!r}", f"pass {name}", code="usage")
    return [given[name] for name in names]


def words_of(given: Given, name: str) -> list[str]:
    """Return the words of an argument that takes several, between commas."""
    return [word.strip() for word in given.get(name, "").split(",") if word.strip()]


def do_task(app: CallContext, box: Mailbox, given: Given) -> None:
    """Do one deed with a task. Receipts of what the client was shown follow the answer."""
    desk, me = Tasking(box), app.acting_session(box)
    text, deed = given.get("body", ""), given["do"]
    if deed == "list":
        return _list_tasks(app, desk, me, given.get("to"))
    if deed == "add":
        title, to = need(given, "title", "to")
        payload = messages.TaskAssignment(title=title, instructions=text, after=tuple(words_of(given, "after")))
        added = desk.add_task(me, [one.strip() for one in to.split(",")], payload)
        task_output.warn_of_none(app, desk.views, added)
        return _tell_step(app, box, added)
    if deed == "claim":
        named = given.get("task")
        view = desk.claim_task(me, named) if named else desk.claim_next_task(me, given.get("to"))
        task_output.warn_of_kept(app, desk.views, view)
        leased, said = leasing.lease_for(box, me, view, system.getcwd())
        text = task_output.whole_text(app, view, box) + said
        app.tell(text, {**_data(view), "leased": leased})
        return desk.read_assignment(me, view)
    if deed == "handover":
        tree = handing_over.describe_tree(system.getcwd())
        made = handing_over.hand_over(box, me, words_of(given, "to"), text, tree)[1]
        task_output.warn_of_none(app, desk.views, made)
        task_output.warn_of_kept(app, desk.views, made)
        return app.tell(task_output.whole_text(app, made, box), _data(made))
    (word,) = need(given, "task")
    if deed == "show":
        view = desk.views.task(word, me)
        history = control_log.history(box, view.task.id)
        data = _data(view)
        data["task"]["history"] = task_output.history_json(history)
        return app.tell(task_output.whole_text(app, view, box, history), data)
    if deed == "cancel":
        return _tell_step(app, box, desk.cancel_task(me, word, text)[0])
    if deed == "drop":
        return _tell_step(app, box, desk.drop_task(me, word, *need(given, "body")))
    if deed == "done":
        view = desk.report(me, word, deed, *need(given, "body"))
        following = task_offers.list_open(box, me)
        app.tell(*task_output.done_answer(app, view, following, box))
        return task_offers.note_next(box, me, following)
    return _tell_step(app, box, desk.report(me, word, need(given, "phase")[0], text))


def _list_tasks(app: CallContext, desk: Tasking, me: str, to: str | None) -> None:
    """Tell the first tasks: ours, and behind them those of a client's own team that a bridge serves. ``to``: only
    those for this address."""
    found = desk.tasks_for(desk.views.tasks(me), to)
    theirs = team_tasks.served_tasks(desk.box, app.environ)
    theirs = [one for one in theirs if one.state != "done" and to in (None, one.tag)]
    more = len(found) + len(theirs) - MOST
    found, theirs = found[:MOST], theirs[: max(MOST - len(found), 0)]
    lines = [task_output.team_task_line(app, one) for one in theirs]
    said = task_output.list_text(app, found, desk.box, lines) + (f"{more} more\n" if more > 0 else "")
    tasks = [*map(task_output.task_json, found), *map(task_output.team_task_json, theirs)]
    app.tell(said, {"tasks": tasks, "more": max(more, 0)})


def _tell_step(app: CallContext, box: Mailbox, view: TaskView) -> None:
    data = {"task": task_output.task_json(view), "already": view.already}
    app.tell(task_output.step_text(app, view, box), data)


def _data(view: TaskView) -> dict[str, Any]:
    return {"task": task_output.task_json(view, whole=True), "already": view.already}


def do_note(app: CallContext, box: Mailbox, given: Given) -> None:
    """Do one deed with a note."""
    desk, me = Noting(box), app.acting_session(box)
    roster, deed = box.logs.read_roster(), given["do"]
    if deed == "list":
        every = desk.notes(given.get("on"))
        found, more = every[-MOST:], len(every[:-MOST])
        said = f"{more} older left out: name a tag with on\n" if more else ""
        said += note_output.list_text(app, found, roster)
        return app.tell(said, {"notes": [note_output.note_json(one) for one in found], "more": more})
    if deed == "add":
        (title,) = need(given, "title")
        made = desk.add_note(
            me, words_of(given, "on"), title, given.get("body", title), old := given.get("note", ""), system.getcwd()
        )
        made = desk.all_notes().get(made.message.id, made)
        if old and (said := note_output.kept_text(desk.find_note(old), made)):
            app.give_warning(said)
    elif deed == "show":
        made = desk.find_note(*need(given, "note"))
        text = note_output.note_text(app, made, roster)
        return app.tell(text, {"note": note_output.note_json(made, whole=True)})
    else:
        made = desk.drop_note(me, *need(given, "note"))[0]
    return app.tell(note_output.list_text(app, [made], roster), {"note": note_output.note_json(made)})
