"""The commands that read mail or settle it: ``check_mail``, ``show_status``, ``show_message``, ``history``,
``acknowledge_message`` and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ..cli import folding, mail_output, render, show_verbs, values, verbs
from ..cli.group import cli
from ..cli.options import App, Seconds, everyones_option, pass_app, session_option, with_option
from ..core import frame
from ..core.records import USER
from ..core.text import neutral
from . import check_verb, standing_verbs


def _limit_option(default: int, told: str = "Show only the newest; 0 shows all.") -> Callable[[Any], Any]:
    """Return the option of how many messages are shown."""
    return click.option(
        "--limit", metavar="N", type=click.IntRange(min=0), default=default, show_default=True, help=told
    )


@cli.command()
@session_option
@click.option("--peek", is_flag=True, help="Show the mail, but leave it unread and write nothing.")
@_limit_option(20, "Show at most this many messages; 0 shows all.")
@pass_app
def check(app: App, /, peek: bool, limit: int) -> None:
    """Show your unread mail, and mark it as read.

    A message is read once whoever reads the output took it: `check | head -7` leaves the rest unread. Below a client a
    check shows some 25,000 characters at once.

    \b
    Example: agent-mailbox check --limit 5
    """
    check_verb.check_mail(app, app.mailbox, peek, limit)


@cli.command()
@session_option
@click.option(
    "--cost", is_flag=True, help="Also show the tokens that your mail took, by sender and mode, and those of wakes."
)
@pass_app
def status(app: App, /, cost: bool) -> None:
    """Show your unread mail, the acks you owe, your dead letters."""
    standing_verbs.show_status(app, app.mailbox, cost=cost)


@cli.command()
@click.argument("message_id", metavar="ID")
@click.option("--at", metavar="N", type=click.IntRange(min=0), default=0, help="Begin at this character of the text.")
@pass_app
def show(app: App, /, message_id: str, at: int) -> None:
    """Show one message with its receipts. It names the agents that it reaches now. ID may be a unique prefix.

    Below a client a text is shown in parts of some 25,000 characters; each names the command for the next.

    Receipts: offered (shown to a client's session), read (shown to another), seen (the model continued after it), ack
    (dealt with), release (given back).

    A receipt "by title" is of the title alone, or of a text that was cut.
    """
    show_verbs.show_message(app, app.mailbox, message_id, at)


@cli.command()
@click.argument("message_id", metavar="ID")
@click.option("--full", is_flag=True, help="Leave nothing out at a terminal, either.")
@pass_app
def thread(app: App, /, message_id: str, full: bool) -> None:
    """Show the whole thread of message ID. Receipts and archived messages are included.

    A terminal shows the beginning of a long text, and the first and the last messages of a long thread.
    """
    chain, reads = app.queries.thread(message_id)
    messages = [app.mailbox.here(message) for message in chain]
    roster, box = app.mailbox.logs.read_roster(), app.mailbox.directory
    stages, unsent = {m.id: reads.stages(m.id) for m in messages}, app.mailbox.unsent()
    blocks = [
        [*render.message_text(m, roster, app.painter, box), *render.stages_text(stages[m.id], roster, unsent.get(m.id))]
        for m in messages
    ]
    found = [mail_output.message_json(m, reads, box) | mail_output.unsent_json(unsent.get(m.id)) for m in messages]
    value = {"messages": found, "receipts": stages}
    if app.columns is not None and not full:
        words = [frame.short_typed(m.id) for m in messages]
        app.print_answer(folding.fold_thread(blocks, words, app.fold_framed, app.complete_command), value)
        return
    show_verbs.print_and_note(app, app.mailbox, "\n\n".join(map("\n".join, blocks)) + "\n", value, messages, reads)


@cli.command()
@session_option
@with_option
@click.option(
    "--since",
    metavar="T",
    help="Only mail since then: a time such as 2026-03-16T14:30Z, or an age such as 90m, 24h or 7d.",
)
@_limit_option(50)
@everyones_option
@pass_app
def history(app: App, /, with_address: str | None, since: str | None, limit: int, everyones: bool) -> None:
    """List the mail you sent and received. Archived mail is included; the newest is last.

    \b
    Example: agent-mailbox history --with role:reviewer --since 24h
    """
    me = None if everyones else standing_verbs.who_or_all(app, app.mailbox)
    start = values.parse_since(since, app.mailbox.now())
    nothing = "no mail"
    if me == USER:
        nothing = "no mail of yours (`agent-mailbox history --all` lists everyone's)"
    elif me is not None and app.mailbox.logs.read_roster().get(me) is None:
        nothing = f"no mail, and no agent {neutral(me)} is known (`agent-mailbox roster list` shows all)"
    asked = show_verbs.one_more(limit)
    found, reads = app.queries.history(me, with_address=with_address, since=start, limit=asked)
    show_verbs.list_messages(app, app.mailbox, found, reads, limit, nothing)


@cli.command()
@click.argument("query", nargs=-1, required=True)
@_limit_option(show_verbs.SEARCH_LIMIT)
@pass_app
def search(app: App, /, query: Sequence[str], limit: int) -> None:
    """Find messages that contain every word of QUERY. Archived ones are included; the newest is last.

    Matches whole words of the subject, body and sender, regardless of case and accents. 'terra*' also finds terraform.
    """
    show_verbs.search_messages(app, app.mailbox, " ".join(query), limit)


@cli.command()
@click.argument("message_id", metavar="ID")
@session_option
@pass_app
def ack(app: App, /, message_id: str) -> None:
    """Acknowledge message ID. It tells its sender that you have dealt with it."""
    verbs.acknowledge(app, app.mailbox, message_id)


@cli.command()
@click.argument("message_id", metavar="ID")
@session_option
@pass_app
def release(app: App, /, message_id: str) -> None:
    """Give message ID back. It becomes unread again; another holder of its role may take it."""
    verbs.give_back(app, app.mailbox, message_id)


@cli.command("dead-letters")
@session_option
@click.option("--all", "everyones", is_flag=True, help="Show everyone's, not only yours.")
@click.option(
    "--waiting",
    is_flag=True,
    help="Show instead the mail you sent that waits for nobody: no agent has that name or role.",
)
@click.option(
    "--since",
    metavar="T",
    help="Only mail since then, as in `history` (default: all live mail, and 30 days of the archive).",
)
@_limit_option(standing_verbs.DEAD_LETTERS)
@pass_app
def dead_letters(app: App, /, everyones: bool, waiting: bool, since: str | None, limit: int) -> None:
    """List your dead letters, newest last. That is mail to or from you that expired, or whose recipient died, unread.

    The steward tells each sender once, by mail, before it archives them. `status` counts those that are not archived.
    """
    show = standing_verbs.show_waiting if waiting else standing_verbs.dead_letters
    start = values.parse_since(since, app.mailbox.now())
    show(app, app.mailbox, everyones=everyones, since=start, limit=limit)


@cli.command()
@session_option
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Give up after S seconds (default: wait for ever).")
@pass_app
def wait(app: App, /, timeout: float | None) -> int:
    """Wait for unread mail. Exits with 0 when you have some, with 1 at the time-out."""
    me = app.reading_session(app.mailbox)
    if app.named is not None and app.mailbox.logs.read_roster().get(me) is None:
        app.give_warning(f"no agent {me} is known, and this waits for its mail: `agent-mailbox roster list` shows all")
    unread = app.queries.wait(me, timeout)
    app.print_answer(f"{mail_output.count_noun(unread, 'unread message')}\n" if unread else "", {"unread": unread})
    return 0 if unread else 1
