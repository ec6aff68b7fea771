"""``hook EVENT``: what a client calls. Reads its JSON, answers in its format, never fails it."""

from __future__ import annotations

import os
import sys

import click

from ..claude import hook as hooks
from ..errors import MailboxError, NoMailbox, Refused
from ..mailbox import Mailbox
from ..store import paths
from .context import Context, Verb, locate
from .main import cli
from .output import write_out

pass_context = click.make_pass_decorator(Context)


@cli.command(cls=Verb, prints_json=False)
@click.argument("event")
@pass_context
def hook(app: Context, event: str) -> int:
    """Answer a client's hook: SessionStart, UserPromptSubmit, Stop or SessionEnd, its JSON on standard input."""
    name = hooks.canonical(event)
    if name is None:
        # Not exit 2: to the client that would mean "block".
        click.echo(f"error: no hook for {event!r}\nhint: one of {', '.join(hooks.HANDLERS)}", err=True)
        return 1
    try:
        _answer(app, name)
    except (NoMailbox, Refused) as error:
        click.echo(f"agent-mailbox: {error.what}", err=True)
    except MailboxError as error:
        if name != "SessionEnd":
            write_out(hooks.trouble(error))
        click.echo(f"agent-mailbox: {error.what}", err=True)
    return 0


def _answer(app: Context, name: str) -> None:
    call = hooks.parse(name, sys.stdin.buffer.read(), app.environ, os.getcwd())
    try:
        place = locate(app.directory, app.environ, call.cwd)
    except NoMailbox:
        return
    if not place.named and not paths.recorded(place.directory, app.environ):
        click.echo(f"agent-mailbox: {place.directory} is not one your `agent-mailbox init` made; ignored", err=True)
        return
    mailbox = Mailbox(place.directory, wait=hooks.LOCK_WAIT)
    start = program(app.environ.get("PATH", ""))
    hooks.answer(hooks.Hook(call=call, mailbox=mailbox, environ=app.environ, program=start, write=write_out))


def program(path: str) -> str:
    """How an agent starts this program: its name if that is on the PATH, else how it was started here."""
    found = os.path.abspath(sys.argv[0])
    name = os.path.basename(found)
    for directory in path.split(os.pathsep):
        if os.access(os.path.join(directory, "agent-mailbox"), os.X_OK):
            return "agent-mailbox"
    if name == "agent-mailbox" and os.access(found, os.X_OK):
        return found
    return f"{sys.executable} -m agent_mailbox"
