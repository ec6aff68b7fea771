"""``lease``: who works on which files of a project, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..cli import values
from ..cli.group import DefaultCommands, cli
from ..cli.options import App, pass_app, session_option
from ..control.leasing import Leasing
from ..core import frame, instant
from ..core.control import lease_paths
from ..core.text import neutral
from ..errors import Malformed, Refused
from ..store.files import programs, system

if TYPE_CHECKING:
    from ..core.control.leases import Lease

_PATIENCE = 60.0
"""Seconds for git to look through a large tree."""
_UNITS = {"s": 1 / 60, "m": 1, "h": 60}


@cli.group(cls=DefaultCommands, default="take")
def lease() -> None:
    """Lease files that you are going to edit. Other agents are warned before they do.

    `agent-mailbox lease PATH…` is short for `lease take PATH…`. A lease ends by itself, and with its session. It is a
    session's word, and no permission: it keeps others out only if the person's configuration says so.
    """


@lease.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--for", "span", metavar="TIME", default="30m", help="How long: 90s, 30m (default), 2h; 24h at most.")
@click.option("--note", metavar="TEXT", default="", help="What you do there, in a few words.")
@session_option
@pass_app
def take(app: App, /, paths: Sequence[str], span: str, note: str) -> None:
    """Lease files, directories or patterns of a project.

    A pattern has * and ? within a name, and ** for any directories. Exit 1 if another session holds one of them.
    If nothing proves its lease, as a program's, there is only a warning.

    \b
    Example: agent-mailbox lease src/parser 'tests/parser/**' --for 1h
    """
    desk = Leasing(app.mailbox)
    me = app.deciding_session(desk.box, "the lease")
    made = desk.lease(
        me, paths, system.getcwd(), values.parse_span(span, _UNITS, "m", "write it as 90s, 30m or 2h"), note
    )
    for path in paths:
        if not lease_paths.is_wild(path) and not system.exists(path):
            app.give_warning(f"{neutral(path)} is not there: leased as a file; a directory would be {neutral(path)}/**")
    for other in desk.also_leased(me, made):
        app.give_warning(
            f"{neutral(lease_paths.shown(other.project, other.paths))} {desk.said(other)}, too: {desk.ask(other)}"
        )
    app.print_done(f"leased until {frame.when(made.ends)}: {_lease_line(made)}\n", {"leases": [_lease_object(made)]})


@lease.command("list")
@pass_app
def list_leases(app: App, /) -> None:
    """List the leases that hold now, of all sessions."""
    desk = Leasing(app.mailbox)
    found = desk.leases()
    lines = [f"{_lease_line(one)} {desk.said(one)}" for one in found]
    app.print_answer("\n".join(lines or ["no leases"]) + "\n", {"leases": [_lease_object(one) for one in found]})


@lease.command()
@click.argument("lease_id", metavar="ID")
@session_option
@pass_app
def release(app: App, /, lease_id: str) -> None:
    """End a lease: yours, or as its holder's lead or the person. You may repeat it."""
    desk = Leasing(app.mailbox)
    ended, again = desk.release_lease(app.deciding_session(desk.box, "the end of a lease"), lease_id)
    told = "was over already: " if again else "released "
    app.print_done(f"{told}{_lease_line(ended)}\n", {"leases": [_lease_object(ended)], "already": again})


@lease.command()
@click.argument("paths", metavar="[PATH]…", nargs=-1)
@click.option("--staged", is_flag=True, help="Look at the files that git has staged.")
@session_option
@pass_app
def check(app: App, /, paths: Sequence[str], staged: bool) -> int:
    """Look whether another session leases files: exit 1 if one does.

    As a pre-commit hook of git: `agent-mailbox lease check --staged`. A lease that nothing proves, as a program's, is
    only shown.
    """
    if bool(paths) == staged:
        raise Malformed("PATH or --staged is missing" if staged is False else "--staged goes without PATH",
                        "name files, or let git say which are staged")  # fmt: skip
    desk = Leasing(app.mailbox)
    found = desk.held_by_others(_calling_session(app, desk), paths or _staged_files(), system.getcwd())
    lines = [f"{neutral(one.path)} {desk.said(one.lease)}; {desk.ask(one.lease)}" for one in found]
    value = {"leases": [{**_lease_object(one.lease), "path": one.path} for one in found]}
    app.print_answer("\n".join([*lines, ""]), value)
    return int(any(one.lease.proven for one in found))


def _calling_session(app: App, desk: Leasing) -> str:
    """Return the session that asks; a program is none, and all leases are others' to it."""
    try:
        return app.acting_session(desk.box)
    except Refused:
        if app.named is not None:
            raise
        return ""


def _staged_files() -> list[str]:
    """Return the staged files. Git runs this as its hook, so git itself may be run."""
    words = ["git", "-c", "core.fsmonitor=false", "diff", "--cached", "--name-only", "--no-renames", "--no-ext-diff"]
    top = _ask_git(["git", "rev-parse", "--show-toplevel"]).removesuffix("\n")
    names = _ask_git([*words, "-z"], top)
    return [system.join(top, name) for name in names.split("\0") if name]


def _ask_git(words: Sequence[str], directory: str | None = None) -> str:
    try:
        done = programs.ask(words, _PATIENCE, directory=directory)
        why = done.complaint()
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise Refused(f"git does not tell what is staged: {why}", "run it in a worktree of a repository")
    return done.out.decode("utf-8", "surrogateescape")


def _lease_line(one: Lease) -> str:
    return f"{neutral(one.id)}  {neutral(lease_paths.shown(one.project, one.paths))}"


def _lease_object(one: Lease) -> dict[str, Any]:
    return {
        "id": one.id,
        "holder": one.owner,
        "project": one.project,
        "paths": list(one.paths),
        "note": one.note,
        "from": instant.text(one.begins),
        "until": instant.text(one.ends),
        "proven": one.proven,
        "released": one.over,
        "message_id": one.message_id,
    }
