"""``install`` and ``uninstall``: our hooks, commands and rules in a client's files, and out of them."""

from __future__ import annotations

import os
import re
import shutil
import sys

import click

from ..clients.install import client_table as clients
from ..clients.install import installation as installer
from ..clients.install import texts
from ..core.text import neutral, neutral_lines
from ..errors import Malformed, NoMailbox, Refused
from .group import Commands, cli
from .hook_command import program
from .mailbox_place import locate
from .options import App, Verb, pass_app

HOST = re.compile(r"(\*\.)?[\w-]+(\.[\w-]+)*", re.ASCII)
"""A host as the client's sandbox has them: a name, or with ``*.`` those below it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..clients.install.client_table import InstallTarget, Target


@cli.group(cls=Commands)
def install() -> None:
    """Make a client's sessions see their mail by themselves."""


@cli.group(cls=Commands)
def uninstall() -> None:
    """Take out of a client's files what `install` put in."""


def _said(command: Any) -> Any:
    """The options both share."""
    for option in reversed(
        [
            click.option("--project", metavar="DIR", help="For the sessions started in DIR (default: here)."),
            click.option("--user", is_flag=True, help="For all your sessions."),
            click.option("--dry-run", is_flag=True, help="Only show the diff."),
        ]
    ):
        command = option(command)
    return command


def _target(app: App, client: InstallTarget, project: str | None, user: bool) -> Target:
    if user and project is not None:
        raise Malformed("--project and --user exclude each other", "name one of them", code="usage")
    return clients.user(client, app.environ) if user else clients.project(client, project or os.getcwd())


def _install(app: App, target: Target, dry_run: bool, bounds: installer.Bounds = installer.UNBOUND) -> None:
    word = program(app.environ.get("PATH", ""))
    if word != "agent-mailbox":
        app.warn(
            f"agent-mailbox is not on your PATH, where the commands look for it; link {word} into a directory there"
        )
    plan = installer.installation(target, app.environ, word, bounds)
    _carry_out(app, plan, dry_run, "installed already; nothing to change\n", after=target.client.after)


def _uninstall(app: App, client: InstallTarget, project: str | None, user: bool, dry_run: bool) -> None:
    word = program(app.environ.get("PATH", ""))
    target = _target(app, client, project, user)
    plan = installer.removal(target, app.environ, word, _mailbox(app, target) or "")
    _carry_out(app, plan, dry_run, "not installed; nothing to change\n", forget=True)


@install.command("claude-code", cls=Verb)
@_said
@click.option("--force", is_flag=True, help="Also where the same sessions call us already: each hook then runs twice.")
@click.option("--closed", is_flag=True, help="Have the client itself ask about all that acts: for led sessions.")
@click.option(
    "--sandbox", is_flag=True, help="Have the client run commands in its sandbox, without a way to the mailbox."
)
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="A host they reach out of it; repeat for several.")
@pass_app
def install_claude_code(
    app: App,
    /,
    project: str | None,
    user: bool,
    dry_run: bool,
    force: bool,
    closed: bool,
    sandbox: bool,
    hosts: Sequence[str],
) -> None:
    """Put hooks, /bye and /checkpoint, a section of CLAUDE.md, and rules for the plain mail commands into place.

    Keeps everything else in these files; run again, it changes nothing, or what is out of date. Shows a diff first.
    Hooks go into DIR/.claude/settings.local.json, which is yours alone, or with --user into ~/.claude/settings.json
    (CLAUDE_CONFIG_DIR counts).

    With --closed the client's own rules ask about every tool that acts, and our hooks answer for sessions that have a
    lead: what a policy denies does not run even where a hook fails. Sessions without a lead ask their person.

    With --sandbox what commands do inside is bounded, too: they write the project alone, not its mailbox, and reach the
    hosts you name. Plain mail commands, each on its own, run outside; every other command of ours does not.

    Where the sessions call us already (by --user, or a plugin), --closed and --sandbox put in these bounds alone.
    """
    target = _target(app, clients.CLAUDE_CODE, project, user)
    alone = _is_bounded_alone(app, target, force, closed or sandbox)
    if not alone:
        _refuse_twice(app, target, force)
    if hosts and not sandbox:
        raise Malformed("--host is for the sandbox", "add --sandbox", code="usage")
    bounds = installer.Bounds(asks=texts.FLOOR if closed else (), sandbox=sandbox, hosts=tuple(hosts), alone=alone)
    if wrong := [host for host in hosts if not HOST.fullmatch(host)]:
        raise Malformed(
            f"{wrong[0]!r} is no host", "such as example.org, or *.example.org for those below", code="usage"
        )
    if sandbox:
        _refuse_without_sandbox(app)
        bounds = bounds.replace(mailbox=_kept_mailbox(app, target))
    _install(app, target, dry_run, bounds)


def _mailbox(app: App, target: Target) -> str | None:
    """The mailbox of the target's sessions, if there is one."""
    try:
        place = locate(app.directory, app.environ, os.getcwd() if target.user else os.path.dirname(target.base))
    except NoMailbox:
        return None
    return os.path.realpath(place.directory)


def _kept_mailbox(app: App, target: Target) -> str:
    """The mailbox that commands are to be kept from."""
    if target.user:
        raise Malformed("--sandbox is for a project, whose mailbox commands are kept from", "leave --user out")
    found, project = _mailbox(app, target), os.path.dirname(target.base)
    if found is None:
        raise NoMailbox("there is no mailbox yet to keep commands from", "`agent-mailbox init`, then repeat this")
    if f"{project}/".startswith(f"{found}/"):
        raise Refused(
            f"the mailbox {found} is the directory that commands work in",
            "have one below the project: `agent-mailbox init data`",
        )
    return found


def _is_bounded_alone(app: App, target: Target, force: bool, bounded: bool) -> bool:
    """Return whether only bounds are to be put in: the project's sessions call us already, from elsewhere."""
    from ..clients.checks import settings  # the doctor's, with its lock library

    if force or target.user or not bounded or settings.is_there(target):
        return False
    return bool(settings.elsewhere(target, app.environ))


SANDBOX_NEEDS = {"bwrap": "bubblewrap", "socat": "socat"}
"""The programs the client's sandbox runs on Linux, and the packages they are in."""


def _refuse_without_sandbox(app: App) -> None:
    """A client that is told to use its sandbox and cannot refuses to start."""
    missing = [program for program in SANDBOX_NEEDS if shutil.which(program, path=app.environ.get("PATH")) is None]
    if missing and sys.platform == "linux":
        packages = " ".join(SANDBOX_NEEDS[program] for program in missing)
        raise Refused(
            f"the client's sandbox needs {' and '.join(missing)}, and would not start without",
            f"install the package: `apt-get install {packages}`, then repeat this",
        )


def _refuse_twice(app: App, target: Target, force: bool) -> None:
    """Twice costs every prompt and tool call a second start, for nothing: mail is shown once. What is there already
    may be renewed; and what is for all sessions is worth having beside what is for some."""
    from ..clients.checks import settings  # the doctor's, with its lock library

    others = settings.elsewhere(target, app.environ)
    if not others:
        return
    where = " and ".join(map(settings.name, others))
    if force or target.user or settings.is_there(target):
        for other in others:
            app.warn(
                f"every hook runs twice, here and by {settings.name(other)}; once is enough: {settings.way_out(other)}"
            )
        return
    ways = " or ".join(map(settings.way_out, others))
    raise Refused(
        f"these sessions call us already, by {where}: every hook would run twice",
        f"there is nothing to do; to have it here instead, first {ways}; --force installs all the same",
    )


@install.command("codex", cls=Verb)
@_said
@pass_app
def install_codex(app: App, /, project: str | None, user: bool, dry_run: bool) -> None:
    """Put hooks, skills $bye and $checkpoint, a section of AGENTS.md, and rules for plain mail commands into place.

    As for Claude Code. Everything goes into DIR/.codex and DIR/AGENTS.md, or with --user into ~/.codex (CODEX_HOME
    counts). The hooks name a place on your machine. Codex skips hooks until you trust them, `codex exec` without
    a word: start codex, enter /hooks.
    """
    _install(app, _target(app, clients.CODEX, project, user), dry_run)


@install.command("gemini", cls=Verb)
@_said
@pass_app
def install_gemini(app: App, /, project: str | None, user: bool, dry_run: bool) -> None:
    """Put hooks, /bye and /checkpoint, and a section of GEMINI.md into place; with --user also policies for the plain
    mail commands.

    As for Claude Code. Everything goes into DIR/.gemini and DIR/GEMINI.md, or with --user into ~/.gemini
    (GEMINI_CLI_HOME counts). The hooks name a place on your machine.
    """
    _install(app, _target(app, clients.GEMINI, project, user), dry_run)


def _uninstaller(client: InstallTarget) -> None:
    @uninstall.command(client.name, cls=Verb)
    @_said
    @pass_app
    def uninstall_client(app: App, /, project: str | None, user: bool, dry_run: bool) -> None:
        _uninstall(app, client, project, user, dry_run)

    uninstall_client.help = f"""Undo `install {client.name}`.

    A file that nobody edited since is as it was before, byte for byte; any other loses only what is ours.
    """


for _client in clients.CLIENTS:
    _uninstaller(_client)


def _carry_out(
    app: App, plan: installer.InstallPlan, dry_run: bool, nothing: str, *, forget: bool = False, after: str = ""
) -> None:
    """Show, do, tell. The diff comes first so that who sees something go wrong knows what it was about; ``after`` is
    what is left to the person once something changed."""
    shown = "".join(f"{line}\n" for line in neutral_lines(installer.diff(plan)))
    if not app.json:
        app.print(shown or nothing)
    for path, why in plan.left:
        app.warn(f"left alone: {path}: {why}")
    changed = [change.path for change in plan.changes if change.after != change.before]
    if not dry_run:
        changed = installer.carry_out(plan, app.environ)
        changed += installer.forget_shim(app.environ) if forget else []
    value = {
        "changed": changed,
        "left": [{"path": path, "why": why} for path, why in plan.left],
        "dry_run": dry_run,
        "diff": shown,
        **({"next": after} if after and changed else {}),
    }
    told = [*(f"changed {neutral(path)}" for path in changed), *([f"next: {after}"] if after and changed else [])]
    app.done("" if dry_run else "".join(f"{line}\n" for line in told), value)
