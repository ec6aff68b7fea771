"""``note``: what everyone with a tag should know."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..cli import note_output, values, verbs
from ..cli.group import cli
from ..cli.options import App, pass_app, session_option, writer_option
from ..mailbox.noting import Noting
from ..store.files import system


@cli.group()
def note() -> None:
    """Keep what everyone on a project or another tag should know.

    A note is nobody's mail: it is never unread, wakes nobody, and stays until it is replaced or dropped. NOTE is the id
    of a note, or a unique beginning of it.
    """


_which = click.argument("note_id", metavar="NOTE")


@note.command()
@click.option("--on", "on", multiple=True, metavar="TAG", help="The tag it is about (default: your project).")
@click.option("--title", metavar="TEXT", required=True, help="What it says, in a few words.")
@click.option("--body", metavar="TEXT", help="The text; - reads standard input, @FILE a file.")
@click.option("--replaces", metavar="NOTE", default="", help="The note whose place it takes.")
@writer_option
@pass_app
def add(app: App, /, on: Sequence[str], title: str, body: str | None, replaces: str) -> None:
    """Add a note for everyone with a tag.

    \b
    Example: agent-mailbox note add --on project:app --title "Tests need redis"
    """
    desk = Noting(app.mailbox)
    me = app.deciding_session(desk.box, "the note")
    text = title if body is None else values.read_body(app, body)
    tags = verbs.split_recipients(on) or on
    made = desk.add_note(me, tags, title, text, replaces, system.getcwd())
    found = desk.all_notes()
    made = found.get(made.message.id, made)
    if replaces and (said := note_output.kept_text(desk.find_note(replaces), made)):
        app.give_warning(said)
    roster = desk.box.logs.read_roster()
    app.print_done(note_output.list_text(app, [made], roster), {"note": note_output.note_json(made)})


@note.command("list")
@click.option("--on", metavar="TAG", help="Only those of this tag.")
@pass_app
def list_notes(app: App, /, on: str | None) -> None:
    """List the current notes, the newest last."""
    desk = Noting(app.mailbox)
    found = desk.notes(on)
    text = note_output.list_text(app, found, desk.box.logs.read_roster())
    app.print_answer(app.fold_framed(text), {"notes": [note_output.note_json(one) for one in found]})


@note.command()
@_which
@pass_app
def show(app: App, /, note_id: str) -> None:
    """Show a note's text."""
    desk = Noting(app.mailbox)
    found = desk.find_note(note_id)
    text = note_output.note_text(app, found, desk.box.logs.read_roster())
    app.print_answer(app.fold_framed(text), {"note": note_output.note_json(found, whole=True)})


@note.command()
@_which
@session_option
@pass_app
def drop(app: App, /, note_id: str) -> None:
    """Take a note of yours from the list. It stays in the log."""
    desk = Noting(app.mailbox)
    ended, again = desk.drop_note(app.deciding_session(desk.box, "dropping a note"), note_id)
    told = "was off the list already: " if again else "dropped "
    text = told + note_output.list_text(app, [ended], desk.box.logs.read_roster())
    app.print_done(text, {"note": note_output.note_json(ended), "already": again})
