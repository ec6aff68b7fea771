"""The commands ``engine``: one mailbox on many machines."""

from __future__ import annotations

import os
import signal
import threading

import click

from ..cli.group import Commands, cli
from ..cli.options import App, Verb, pass_app
from ..core.text import neutral
from ..mailbox import space as spaces
from ..mailbox.space import Space
from ..store import system
from ..store.lock import FileLock
from . import joining_space, replicator, space_checks
from .joining_space import SpaceStanding


@cli.group(cls=Commands)
def engine() -> None:
    """One mailbox on many machines: a NATS server orders, the files stay."""


@engine.command(cls=Verb)
@click.argument("url", metavar="URL")
@click.option("--space", required=True, metavar="NAME", help="The space that the machines share; made if it is new.")
@click.option("--machine", required=True, metavar="NAME", help="This machine's name in it, as no other has it.")
@click.option("--credential", metavar="FILE", help="A file (mode 0600) with a token, or a user and a password.")
@click.option("--authority", metavar="FILE", help="The certificate that the server's must follow from.")
@pass_app
def join(app: App, /, url: str, space: str, machine: str, credential: str | None, authority: str | None) -> None:
    """Put this mailbox into a space: publish what is here, take in what is there.

    URL is nats://HOST:PORT or tls://HOST:PORT; commas separate several servers of one cluster. To join twice changes
    nothing. Without --credential mail is as open as the server is.

    \b
    Example: agent-mailbox engine join nats://127.0.0.1:4222 --space team --machine laptop --credential token
    """
    credential, authority = (None if path is None else os.path.abspath(path) for path in (credential, authority))
    found = joining_space.join(app.mailbox.logs, Space(url, space, machine, credential, authority))
    app.out(f"joined {found.space} as {found.machine}: {found.applied} records\n", _value(found))


@engine.command(cls=Verb)
@pass_app
def leave(app: App, /) -> None:
    """Leave the space. The files stay as they are: a mailbox of this machine alone."""
    found = joining_space.leave(app.mailbox.logs)
    rest = f"; {found.waiting} lines were never published: {neutral(found.trouble)}" if found.waiting else ""
    app.out(f"left {found.space}{rest}\n", _value(found))


@engine.command(cls=Verb)
@pass_app
def status(app: App, /) -> None:
    """Show the space, how far this machine's copy is, and what waits here."""
    found = joining_space.standing(app.mailbox.logs)
    lines = [
        f"space      {found.space} as {found.machine}, {neutral(found.url)}",
        f"engine     {neutral(found.trouble) or 'answers'}",
        f"replicator {'runs' if found.serving else 'does not run: agent-mailbox engine serve'}",
        f"records    {found.applied} of {found.records} are here",
        f"waiting    {found.waiting} lines of this machine, {found.queued} sends",
    ]
    if found.unsent:
        lines.append(f"unsent     {found.unsent} messages, whose ids are other messages'")
    app.out("\n".join(lines) + "\n", _value(found))


@engine.command(cls=Verb)
@pass_app
def serve(app: App, /) -> None:
    """Keep this machine's copy up with the space until ended; one process a machine.

    A kill loses nothing: it goes on where it was.
    """
    logs = app.mailbox.logs
    found = joining_space.standing(logs)
    record = spaces.record_of(logs)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    space = spaces.of(logs)
    if space is None:
        return
    with FileLock(system.join(record.path(spaces.PLACE), joining_space.SERVING), 0):
        app.out(f"serving {found.space} as {found.machine}\n", _value(found))
        copy = spaces.opened(logs, space)
        replicator.run(copy, ended.is_set, lambda said: click.echo(neutral(said), err=True), ended.wait)


@engine.command(cls=Verb)
@pass_app
def doctor(app: App, /) -> int | None:
    """Check the space: the server, its stream, every record by its checksum, and this machine's copy of each.

    Exits with 3 if it finds problems. It reads all records.
    """
    problems = list(space_checks.problems(app.mailbox.logs))
    text = "".join(f"{neutral(problem)}\n" for problem in problems) or "no problems found\n"
    app.out(text, {"ok": not problems, "problems": problems})
    return 3 if problems else None


def _value(found: SpaceStanding) -> dict[str, object]:
    return dict(found.__dict__)
