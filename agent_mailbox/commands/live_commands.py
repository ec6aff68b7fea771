"""The commands ``statusline``, ``tail`` and ``top``.

Belongs here: parsing them, and ending them. ``status_line`` makes the line, ``fleet_view`` the fleet.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..cli import mail_output, output, render
from ..cli.group import cli
from ..cli.options import App, everyones_option, pass_app, seconds_option, session_option, with_option
from ..core.message_reads import Reads
from ..errors import MailboxError
from ..mailbox.followed_mail import FollowedMail
from ..mailbox.selection import Selection, chooses
from ..store.files import paths
from ..store.files.watch import Watch
from . import fleet_view, standing_verbs, status_line

if TYPE_CHECKING:
    from ..core.records import Message


@cli.command()
@session_option
@pass_app
def statusline(app: App, /) -> None:
    """Print a line for a client's status line.

    It has unread mail, the requests that wait for you, and the task that the session holds. The client's
    JSON on standard input names the session. Nothing is marked as read. `agent-mailbox setup` puts it into Claude
    Code, if you have no other line there.

    \b
    Example: agent-mailbox statusline --session otter
    """
    if app.named is None and sys.stdin is not None and not sys.stdin.isatty():
        app.named = status_line.named_session()
    found = status_line.look_up(app.mailbox, app.reading_session(app.mailbox))
    app.print_answer(f"{found.text}\n", found.spell_json())


@cli.command()
@session_option
@everyones_option
@with_option
@click.option(
    "-n",
    "--lines",
    "earlier",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Begin with the N newest messages.",
)
@pass_app
def tail(app: App, /, everyones: bool, with_address: str | None, earlier: int) -> None:
    """Show mail as it comes, a line for each message.

    That is mail which you send, or may see; `show ID` has the text. Nothing is marked as read. With --json each line
    is a document.

    \b
    Example: agent-mailbox tail --all -n 20
    """
    box = app.mailbox
    me = None if everyones else standing_verbs.who_or_all(app, box)
    if with_address is not None:
        app.queries.check_party(with_address)
    selection = Selection(reader=me or "", address=with_address or "")
    with Watch([box.directory]) as changes, FollowedMail(box.logs) as followed:
        first, reads = app.queries.history(me, with_address=with_address, limit=earlier) if earlier else ([], Reads())
        chooses(selection, box.logs.read_roster())  # it tells of an address that is none
        shown = {message.id for message in first}
        app.write_answer("")  # raises if there is no output
        try:
            for message in first:
                _print_message(app, message, reads)
            while not output.is_left():
                paths.check(box.directory)
                for message in followed.read_news():
                    if message.id not in shown and chooses(selection, box.logs.read_roster())(message):
                        _print_message(app, message, Reads())
                changes.wait(None, *output.list_pipes())
        except MailboxError as error:
            if not error.code.startswith("output") or not output.is_left():
                raise
            sys.stdout = None  # its reader left


def _print_message(app: App, message: Message, reads: Reads) -> None:
    roster = app.mailbox.logs.read_roster()
    app.print_answer(
        render.message_line(message, roster, app.painter, app.columns),
        mail_output.message_json(message, reads, app.mailbox.directory),
    )


@cli.command()
@click.option("--once", is_flag=True, help="Print it once, as it does where the output is no terminal.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="Show at most N agents, those seen last.",
)
@seconds_option("--interval", 2.0, "Seconds between two looks while nothing is written.", 0.1)
@pass_app
def top(app: App, /, once: bool, limit: int, interval: float) -> None:
    """Show the agents that are there, live.

    Each has its unread mail, its task, and when it sees mail. The key q ends it. The first line counts your own mail,
    and the requests that wait for you. --json prints it once.

    \b
    Example: agent-mailbox top --once
    """
    view = fleet_view.FleetView(app, limit)
    if once or app.json or not fleet_view.is_interactive():
        text = "" if app.json else "".join(f"{line}\n" for line in view.list_lines())
        app.print_answer(text, view.spell_json() if app.json else None)
    else:
        fleet_view.show_live(view, interval)
