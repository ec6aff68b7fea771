"""``hook EVENT``: what a client calls. Reads its JSON, answers in its format, never fails it."""

from __future__ import annotations

import os
import sys

import click

from ..claude import hook as hooks
from ..core.text import neutral, shell_quoted
from ..errors import MailboxError, NoMailbox, Refused, StorageFailed
from ..mailbox import Mailbox
from ..store import places
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
    except Exception as error:  # a hook never breaks a session, whatever happens to it
        known = error if isinstance(error, MailboxError) else StorageFailed(f"{type(error).__name__}: {error}")
        _complain(known, aloud=name != "SessionEnd")
    return 0


def _complain(error: MailboxError, aloud: bool) -> None:
    """One line on stderr and, unless it was stdout that failed, one for the person."""
    try:
        click.echo(f"agent-mailbox: {neutral(error.what)}", err=True)
        if error.code.startswith("output"):
            sys.stdout = None
        elif aloud:
            write_out(hooks.trouble(error))
    except (OSError, MailboxError):
        sys.stdout = None


def _answer(app: Context, name: str) -> None:
    data = sys.stdin.buffer.read(hooks.MAX_INPUT + 1) if sys.stdin is not None else b""
    call = hooks.parse(name, data, app.environ, _here())
    try:
        place = locate(app.directory, app.environ, call.cwd)
    except NoMailbox:
        return
    if not place.named and not places.recorded(place.directory, app.environ):
        click.echo(f"agent-mailbox: {place.directory} is not one your `agent-mailbox init` made; ignored", err=True)
        return
    mailbox = Mailbox(place.directory, wait=hooks.LOCK_WAIT)
    start = program(app.environ.get("PATH", ""))
    if app.directory:
        start += f" --dir {shell_quoted(mailbox.directory)}"
    hooks.answer(hooks.Hook(call=call, mailbox=mailbox, environ=app.environ, program=start, write=write_out))


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # the directory is gone
        return os.path.sep


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
