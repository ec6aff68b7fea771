"""``task``: what is to be done, by whom, and how far it is. ``handover``: what a session holds, to one who takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..cli import task_output, values, verbs
from ..cli.group import cli
from ..cli.options import App, complete_address, pass_app, session_option, writer_option
from ..clients import team_tasks
from ..control import handing_over, leasing, task_offers
from ..control.task_views import TaskView, TaskViews
from ..control.tasking import Tasking
from ..control_plane import control_log, task_reports
from ..core.control import messages
from ..core.records import USER
from ..core.text import typed
from ..errors import Malformed
from ..mailbox import arrivals
from ..store.files import system

PHASES = tuple(phase for phase in messages.PHASES if phase != "done")


@cli.group()
def task() -> None:
    """Add tasks, claim them, and say how far they are.

    A task for an agent is assigned to it. One for a role or a tag is open, and exactly one agent claims it. TASK is the
    id of a task, or a unique beginning of it.
    """


_which = click.argument("task_id", metavar="TASK")


def _desk(app: App, what: str) -> tuple[Tasking, str]:
    desk = Tasking(app.mailbox)
    return desk, app.deciding_session(desk.box, what)


def _reported(app: App, desk: Tasking, found: TaskView) -> None:
    value = {"task": task_output.task_json(found), "already": found.already}
    app.print_done(task_output.step_text(app, found, desk.box), value)


@task.command()
@click.option("--to", "to", multiple=True, metavar="ADDR", required=True, help="An agent, role:NAME or a tag.")
@click.option("--title", metavar="TEXT", required=True, help="A short name for the task.")
@click.option("--body", metavar="TEXT", help="The instructions; - reads standard input, @FILE a file.")
@click.option("--context", metavar="TEXT", default="", help="Facts that help: files, decisions, earlier tries.")
@click.option("--after", multiple=True, metavar="TASK", help="A task that must be done before; repeat it for several.")
@click.option("--ack-by", metavar="TIME", help="When it should be done: 2026-03-16T14:30:00Z, or 24h from now.")
@click.option("--plan-required", is_flag=True, help="Allow nothing irreversible before a plan is approved.")
@click.option(
    "--task-id", "request_id", metavar="ID", default="", help="The task's id, for a retry (default: a new one)."
)
@writer_option
@pass_app
def add(app: App, /, to: Sequence[str], body: str | None, ack_by: str | None, **given: Any) -> None:
    """Add a task for an agent, or for whoever of a role or tag claims it.

    \b
    Example: agent-mailbox task add --to role:worker --title "Fix the date filter"
    """
    desk, me = _desk(app, "the task")
    payload = messages.TaskAssignment(
        instructions="" if body is None else values.read_body(app, body),
        ack_by=values.parse_deadline("--ack-by", ack_by, desk.box.now()),
        **given,
    )
    added = desk.add_task(me, verbs.split_recipients(to), payload)
    task_output.warn_of_none(app, desk.views, added)
    app.print_done(task_output.step_text(app, added, desk.box), {"task": task_output.task_json(added)})


@task.command("list")
@click.option("--mine", is_flag=True, help="Only those that I hold.")
@click.option("--open", "is_open", is_flag=True, help="Only those that I could claim now.")
@click.option("--to", metavar="ADDR", help="Only those for this agent, role or tag.")
@click.option("--all", "everything", is_flag=True, help="Those that are done or cancelled, too.")
@session_option
@pass_app
def list_tasks(app: App, /, mine: bool, is_open: bool, to: str | None, everything: bool) -> None:
    """List the tasks, oldest first. Each has its state, its holder, or what it waits for.

    Tasks of a client's own team stand behind them while a bridge serves that team. They are only shown.
    """
    desk = Tasking(app.mailbox)
    me = app.reading_session(desk.box) if mine else app.looking_session()
    if me:
        task_reports.tell(desk.box, me)
    found = desk.tasks_for(desk.views.tasks(me, everything=everything), to)
    if mine:
        found = [one for one in found if one.is_mine]
    if is_open:
        found = [one for one in found if one.is_open_to_me or (me in ("", USER) and one.state == "open")]
    theirs = [] if mine or is_open else team_tasks.served_tasks(desk.box, app.environ)
    theirs = [one for one in theirs if (everything or one.state != "done") and to in (None, one.tag)]
    value = {"tasks": [*map(task_output.task_json, found), *map(task_output.team_task_json, theirs)]}
    lines = [task_output.team_task_line(app, one) for one in theirs]
    app.print_answer(app.fold_framed(task_output.list_text(app, found, desk.box, lines)), value)


@task.command()
@click.argument("task_id", metavar="[TASK]", required=False)
@click.option("--next", "is_next", is_flag=True, help="Claim the oldest that is open to me.")
@click.option("--to", metavar="ADDR", help="With --next: only one for this role or tag.")
@click.option("--for", "holder", metavar="AGENT", help="Give it to this agent: as its adder, its lead or the person.")
@session_option
@pass_app
def claim(app: App, /, task_id: str | None, is_next: bool, to: str | None, holder: str | None) -> None:
    """Claim a task. From then on it is yours alone, and you see what it says."""
    if (task_id is None) != is_next:
        raise Malformed("TASK or --next is missing" if task_id is None else "--next goes without TASK",
                        "name a task of `agent-mailbox task list`, or take the next with --next")  # fmt: skip
    if to is not None and not is_next:
        raise Malformed("--to goes with --next", "leave it out, or give the task to an agent with --for")
    if holder is not None and is_next:
        raise Malformed("--for goes with TASK", "name the task")
    desk, me = _desk(app, "the claim")
    found = desk.claim_next_task(me, to) if task_id is None else desk.claim_task(me, task_id, holder or "")
    value = {"task": task_output.task_json(found, whole=True), "already": found.already}
    task_output.warn_of_kept(app, desk.views, found)
    if not found.is_mine:
        app.print_done(task_output.step_text(app, found, desk.box), value)
        return
    leased, said = leasing.lease_for(desk.box, me, found, system.getcwd())
    text = task_output.whole_text(app, found, desk.box) + said
    lost = app.out_in_full(app.fold_framed(text), {**value, "leased": leased})
    if lost is not None:
        raise lost
    desk.read_assignment(me, found)


@task.command()
@_which
@click.option("--phase", type=click.Choice(PHASES), required=True, help="How far it is.")
@click.option("--message", metavar="TEXT", default="", help="What you found, or what blocks you.")
@session_option
@pass_app
def progress(app: App, /, task_id: str, phase: str, message: str) -> None:
    """Say how far a task of yours is. Your lead hears of it only if it is blocked."""
    desk, me = _desk(app, "the report")
    _reported(app, desk, desk.report(me, task_id, phase, message))


@task.command()
@_which
@click.option("--summary", metavar="TEXT", required=True, help="What was done; - reads standard input, @FILE a file.")
@click.option("--artifact", "artifacts", multiple=True, metavar="TEXT", help="A file or link that it made; repeatable.")
@click.option("--error", "errors", multiple=True, metavar="TEXT", help="What went wrong; repeat it for several.")
@session_option
@pass_app
def done(app: App, /, task_id: str, summary: str, artifacts: Sequence[str], errors: Sequence[str]) -> None:
    """Say that a task of yours is done. Those that waited for it are open then. The answer names your next one.

    \b
    Example: agent-mailbox task done task-91c5 --summary "the filter takes UTC"
    """
    desk, me = _desk(app, "the report")
    text = values.read_body(app, summary)
    found = desk.report(me, task_id, "done", text, artifacts=artifacts, errors=errors)
    following = task_offers.list_open(desk.box, me)
    told, value = task_output.done_answer(app, found, following, desk.box)
    if app.print_done(told, value):
        task_offers.note_next(desk.box, me, following)


@task.command()
@_which
@click.option("--reason", metavar="TEXT", required=True, help="Why, in a sentence.")
@session_option
@pass_app
def drop(app: App, /, task_id: str, reason: str) -> None:
    """Give a task back. It is open again. Its adder and its holder's lead may take it back so."""
    desk, me = _desk(app, "giving a task back")
    _reported(app, desk, desk.drop_task(me, task_id, reason))


@task.command()
@_which
@click.option("--reason", metavar="TEXT", default="", help="Why, in a sentence.")
@session_option
@pass_app
def cancel(app: App, /, task_id: str, reason: str) -> None:
    """Cancel a task of yours. That is one that you, or an agent that you lead, added or holds."""
    desk, me = _desk(app, "cancelling a task")
    found, waiting = desk.cancel_task(me, task_id, reason)
    for one in waiting:
        app.give_warning(f"{one} waits for it, and stays blocked: `agent-mailbox task cancel {one}`, or add it again")
    _reported(app, desk, found)


@task.command()
@_which
@session_option
@pass_app
def show(app: App, /, task_id: str) -> None:
    """Show a task: what it says, its state, and its history."""
    desk, me = Tasking(app.mailbox), app.looking_session()
    found = desk.views.task(task_id, me)
    history = control_log.history(desk.box, found.task.id)
    text = task_output.whole_text(app, found, desk.box, history)
    value = {"task": {**task_output.task_json(found, whole=True), "history": task_output.history_json(history)}}
    app.print_answer(app.fold_framed(text), value)


@cli.command()
@click.option(
    "--to",
    "to",
    multiple=True,
    metavar="ADDR",
    help="An agent, role:NAME or a tag (default: your role, else your lead).",
    shell_complete=complete_address,
)
@click.option("--body", metavar="TEXT", default="", help="What the next one must know; - reads standard input, @FILE.")
@writer_option
@pass_app
def handover(app: App, /, to: Sequence[str], body: str) -> None:
    """Hand over what you hold, to one who claims it.

    Do so before your context is full, or as you leave. The command lists your tasks, debts, questions, leases and
    notes, and your tree's branch and changed files. Exactly one claims the handover, and holds your tasks from then on.

    \b
    Example: agent-mailbox handover --to role:worker --body "The parser is done"
    """
    box = app.mailbox
    me = app.deciding_session(box, "the handover")
    text = values.read_body(app, body) if body else ""
    words = verbs.split_recipients(to)
    sent, made = handing_over.hand_over(box, me, words, text, handing_over.describe_tree(system.getcwd()))
    arrival = arrivals.find_arrival(box, sent.message, sent.delivery, box.logs.read_roster())
    value = {**verbs.sent_json(sent, arrival, box.directory), "task": task_output.task_json(made, whole=True)}
    task_output.warn_of_none(app, TaskViews(box), made)
    task_output.warn_of_kept(app, TaskViews(box), made)
    show = app.complete_command(f"task show {typed(made.task.id)}")
    app.print_done(f"{task_output.step_text(app, made, box)}  {show}\n", value)
