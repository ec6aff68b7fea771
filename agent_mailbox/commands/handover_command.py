"""``handover``: what a session holds, to one who takes it over."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..cli import task_output, values, verbs, work_tree
from ..cli.group import cli
from ..cli.options import App, CommandWithOptions, complete_address, pass_app, session_option
from ..control import handing_over
from ..control.task_views import TaskViews
from ..mailbox import arrivals
from ..store.files import system


@cli.command(cls=CommandWithOptions)
@click.option(
    "--to",
    "to",
    multiple=True,
    metavar="ADDR",
    help="An agent, role:NAME or a tag (default: your role, else your lead).",
    shell_complete=complete_address,
)
@click.option("--body", metavar="TEXT", default="", help="What the next one must know; - reads standard input, @FILE.")
@session_option
@pass_app
def handover(app: App, /, to: Sequence[str], body: str, session: str | None) -> None:
    """Hand over what you hold, to one who claims it.

    Do so before your context is full, or as you leave. The command lists your tasks, debts, questions, leases and
    notes, and your tree's branch and changed files. Exactly one claims the handover, and holds your tasks from then on.

    \b
    Example: agent-mailbox handover --to role:worker --body "The parser is done"
    """
    box = app.mailbox
    me = app.deciding_session(session, box, "the handover")
    text = values.read_body(app, body) if body else ""
    words = verbs.split_recipients(to)
    sent, made = handing_over.hand_over(box, me, words, text, work_tree.describe_tree(system.getcwd()))
    arrival = arrivals.find_arrival(box, sent.message, sent.delivery, box.logs.read_roster())
    value = {**verbs.sent_json(sent, arrival, box.directory), "task": task_output.task_json(made, whole=True)}
    task_output.warn_of_none(app, TaskViews(box), made)
    task_output.warn_of_kept(app, TaskViews(box), made)
    app.print_done(task_output.added_text(app, made, box), value)
