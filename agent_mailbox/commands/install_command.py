"""``install`` and ``uninstall``: put our hooks, commands and rules into a client's files, and remove them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING

import click

from ..cli import reserved, widening
from ..cli.group import CommandGroup, cli
from ..cli.options import App, json_option, pass_app, several_options
from ..clients import places, texts
from ..clients.checks import settings
from ..clients.checks.hook_sources import installed_settings
from ..clients.install import installation as installer
from ..clients.install.foreign_files import FileRecords
from ..core.text import neutral, neutral_lines, typed
from ..errors import Malformed, NoMailbox, Refused
from ..known_clients.claude_code import CLAUDE_CODE
from ..known_clients.cursor_cli import CURSOR_CLI
from ..known_clients.every_client import CLIENTS, INSTALLED
from ..mailbox.open_mailbox import locate_mailbox
from ..store.files import paths
from .client_list import list_clients
from .hook_command import program_call
from .uninstall_all import uninstall_all

HOST = re.compile(r"(\*\.)?[\w-]+(\.[\w-]+)*", re.ASCII)
"""A host as the client's sandbox names it: a name, or ``*.`` and a name for its subdomains."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..clients.places import Target
    from ..known_clients.known_client import KnownClient


class ClientsToInstall(CommandGroup):
    """The clients to install into. Earlier versions knew one more."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name == CURSOR_CLI.name:
            raise Refused(
                f"nothing is installed into {CURSOR_CLI.title}: its hooks were never run with it",
                "give it its mail by MCP: add `agent-mailbox mcp` to the servers in its mcp.json",
            )
        return super().get_command(ctx, name)


@cli.group(cls=ClientsToInstall)
@click.option(
    "--list",
    is_flag=True,
    expose_value=False,
    callback=list_clients,
    help="List the clients: what each can do, its limits, and which settings here call us.",
)
@json_option("Print the list as JSON.")
def install() -> None:
    """Set up a client to show its sessions their mail.

    A client without hooks can run `agent-mailbox mcp` for its mail. This command never installs that server: with
    hooks mail comes by itself and costs less.

    \b
    Example: agent-mailbox install claude-code --user
    """


@cli.group(invoke_without_command=True, no_args_is_help=True)
@click.option(
    "--all", "everything", is_flag=True, help="Undo every `install` of yours that we know of, in every client."
)
@click.option(
    "--state",
    is_flag=True,
    help="With --all: also delete your own records of all mailboxes. No mailbox is deleted, but nothing in one is"
    " proven any more, and no session stays bound.",
)
@click.option("--dry-run", is_flag=True, help="With --all: show the diff, but change nothing.")
@json_option("Print the result as JSON.")
@click.pass_context
def uninstall(ctx: click.Context, everything: bool, state: bool, dry_run: bool) -> int | None:
    """Remove from a client's files what `install` put there.

    Run it before you remove the package: then no hook is left that calls it.

    \b
    Example: agent-mailbox uninstall --all
    """
    if ctx.invoked_subcommand is None and everything:
        app = ctx.ensure_object(App)
        reserved.check_reserved(app, ("uninstall",), ["uninstall"], {"state": state})
        records = ", and your records go: nobody stays bound" if state else ""
        what = f"uninstall for every client: no lead and no rule of ours holds your sessions{records}"
        widening.check_widening(app, lambda: "" if dry_run else what)
        return uninstall_all(app, state=state, dry_run=dry_run)
    if ctx.invoked_subcommand is None or everything or state or dry_run:
        hint = "name a client, or pass --all without one; options of a client stand behind its name"
        raise Malformed("uninstall what?", hint, code="usage")
    return None


_shared_options = several_options(
    click.option("--project", metavar="DIR", help="For sessions started in DIR (default: the current directory)."),
    click.option("--user", is_flag=True, help="For all your sessions."),
    click.option("--dry-run", is_flag=True, help="Show the diff, but change nothing."),
)
"""The options that ``install`` and ``uninstall`` share."""


def _target_of(app: App, client: KnownClient, project: str | None, user: bool) -> Target:
    if user and project is not None:
        raise Malformed("--project and --user exclude each other", "pass one of them", code="usage")
    return places.user_target(client, app.environ) if user else places.project_target(client, project or os.getcwd())


def _install_into(app: App, target: Target, dry_run: bool, bounds: installer.Bounds = installer.UNBOUND) -> None:
    plan = installer.plan_installation(target, app.environ, find_program(app), bounds)
    nothing = "already installed; nothing to change\n"
    rules = "mail commands run unasked" + (f", and reach {', '.join(bounds.hosts)}" if bounds.hosts else "")
    widens = f"install for {_whose_sessions(target)}: {rules}"
    _carry_out(app, plan, dry_run, nothing, widens, after=target.client.after)


def _whose_sessions(target: Target) -> str:
    return f"sessions in {target.project}" if target.project else "all your sessions"


def find_program(app: App) -> str:
    """Return how an agent starts this program; warn if its name is not on the ``PATH``."""
    word = program_call(app.environ.get("PATH", ""))
    if word != "agent-mailbox":
        app.give_warning(
            f"agent-mailbox is not on your PATH, as the commands need; link {word} into one of its directories"
        )
    return word


def _uninstall_from(app: App, client: KnownClient, project: str | None, user: bool, dry_run: bool) -> None:
    target, word = _target_of(app, client, project, user), program_call(app.environ.get("PATH", ""))
    plan = installer.plan_removal(target, app.environ, word, _mailbox_of(app, target) or "")
    nothing = f"not installed in {neutral(target.base)}; nothing to change\n"
    if others := FileRecords(app.environ).recorded_paths():  # another directory, or all sessions instead of a project
        nothing += f"ours elsewhere: {neutral(others[0])}; `agent-mailbox uninstall --all` takes out all\n"
    widens = f"uninstall for {_whose_sessions(target)}: no lead and no rule of ours holds them"
    _carry_out(app, plan, dry_run, nothing, widens, forget=True)


@install.command("claude-code")
@_shared_options
@click.option(
    "--force",
    is_flag=True,
    help="Install even if another installation covers these sessions; each hook then runs twice.",
)
@click.option(
    "--closed",
    is_flag=True,
    help="Have the client ask before every tool with effects; hooks answer for sessions with a lead.",
)
@click.option(
    "--sandbox", is_flag=True, help="Have the client run commands in its sandbox, out of reach of the mailbox files."
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="A host that sandboxed commands may reach; repeat for several.",
)
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
    """Install hooks, two commands, a CLAUDE.md section, and rules. The commands are /bye and /checkpoint; the rules let
    plain mail commands run unasked.

    Shows a diff first, keeps the rest of these files, and is idempotent. The hooks go into
    DIR/.claude/settings.local.json, or with --user into settings.json of CLAUDE_CONFIG_DIR (default: ~/.claude).

    With --closed the client asks before every tool with effects, and hooks answer for sessions with a lead. So a tool
    that a policy denies is blocked even if a hook fails. A session without a lead asks its person.

    With --sandbox, commands may write only to the project (except its mailbox), and reach only the hosts you name.
    Plain mail commands, each on its own, run outside the sandbox.

    If another installation (--user or a plugin) covers these sessions, --closed and --sandbox add only their bounds.

    \b
    Example: agent-mailbox install claude-code --project ~/shop --sandbox
    """
    target = _target_of(app, CLAUDE_CODE, project, user)
    may_be_covered = bool(target.project) and not force and not settings.is_there(target)
    alone = may_be_covered and (closed or sandbox) and bool(settings.other_sources(target, app.environ))
    if not alone:
        _refuse_twice(app, target, force)
    if hosts and not sandbox:
        raise Malformed("--host has no effect without --sandbox", "add --sandbox", code="usage")
    bounds = installer.Bounds(asks=texts.FLOOR if closed else (), sandbox=sandbox, hosts=tuple(hosts), alone=alone)
    if wrong := [host for host in hosts if not HOST.fullmatch(host)]:
        raise Malformed(
            f"not a host name: {wrong[0]!r}", "write example.org, or *.example.org for its subdomains", code="usage"
        )
    if sandbox:
        _refuse_without_sandbox(app)
        own = installer.own_places(app.environ, os.path.dirname(target.base))
        bounds = bounds.replace(kept=(_kept_mailbox(app, target), *own))
    _install_into(app, target, dry_run, bounds)


def _mailbox_of(app: App, target: Target) -> str | None:
    """Return the mailbox of the target's sessions, if there is one."""
    try:
        start = target.project or os.getcwd()
        directory, _ = locate_mailbox(app.directory, app.environ, start)
    except NoMailbox:
        return None
    return os.path.realpath(directory)


def _kept_mailbox(app: App, target: Target) -> str:
    """Return the mailbox that sandboxed commands must not reach."""
    if not target.project:
        raise Malformed("--sandbox protects one project's mailbox and excludes --user", "pass --project DIR instead")
    found, project = _mailbox_of(app, target), target.project
    own = typed(os.path.join(project, paths.DATA))
    if found is None:
        raise NoMailbox("the project has no mailbox yet", f"run `agent-mailbox init {own}`, then repeat this command")
    if f"{project}/".startswith(f"{found}/"):
        raise Refused(
            f"the mailbox contains the project, so the sandbox cannot protect it: {found}",
            f"leave --sandbox out; it protects a mailbox below the project, as {own} would be",
        )
    return found


SANDBOX_NEEDS = {"bwrap": "bubblewrap", "socat": "socat"}
"""The programs that the client's sandbox runs on Linux, and their packages."""


def _refuse_without_sandbox(app: App) -> None:
    """Raise ``Refused`` if the sandbox's programs are missing: the client would not start."""
    missing = [program for program in SANDBOX_NEEDS if shutil.which(program, path=app.environ.get("PATH")) is None]
    if missing and sys.platform == "linux":
        packages = " ".join(SANDBOX_NEEDS[program] for program in missing)
        raise Refused(
            f"the client's sandbox needs {' and '.join(missing)}, which is not installed",
            f"run `apt-get install {packages}`, then repeat this command",
        )


def _refuse_twice(app: App, target: Target, force: bool) -> None:
    """Raise ``Refused``, or warn, if every hook would run twice: that slows each tool call and shows no more mail.

    Renewing an installation, and adding one for all sessions beside one for some, is allowed.
    """
    covering = settings.covering_sources(target, app.environ)
    if force or not covering or settings.is_there(target):
        for other in settings.other_sources(target, app.environ):
            name, way_out = settings.source_name(other), settings.way_out(other)
            app.give_warning(f"every hook runs twice, also from {name}; to keep one: {way_out}")
        return
    where = " and ".join(map(settings.source_name, covering))
    ways = " or ".join(map(settings.way_out, covering))
    raise Refused(
        f"another installation already covers these sessions: {where}",
        f"nothing is left to do; to install here instead, first {ways}; --force lets every hook run twice",
    )


def _installer_command(client: KnownClient) -> None:
    @install.command(client.name, help=client.about)
    @_shared_options
    @pass_app
    def install_client(app: App, /, project: str | None, user: bool, dry_run: bool) -> None:
        target = _target_of(app, client, project, user)
        _warn_of_twice(app, target)
        _install_into(app, target, dry_run)


def _warn_of_twice(app: App, target: Target) -> None:
    """Warn if the same sessions call us from another place, too."""
    here = target.project or os.getcwd()
    scope = "--user" if target.project else f"--project {typed(here)}"
    for path in installed_settings(target.client, here, app.environ):
        if path != os.path.realpath(target.settings):
            app.give_warning(
                f"every hook runs twice, also from {path};"
                f" to keep one: `agent-mailbox uninstall {target.client.name} {scope}`"
            )


def _uninstaller_command(client: KnownClient) -> None:
    @uninstall.command(client.name)
    @_shared_options
    @pass_app
    def uninstall_client(app: App, /, project: str | None, user: bool, dry_run: bool) -> None:
        _uninstall_from(app, client, project, user, dry_run)

    deed = f"Undo `agent-mailbox install {client.name}`"
    if not client.is_installed:
        deed = f"Remove what an earlier version installed into {client.title}"
    uninstall_client.help = f"""{deed}.

    Restores a file byte for byte if it was not edited since; removes only our parts from any other.
    """


for _client in INSTALLED:
    if _client is not CLAUDE_CODE:  # which has options of its own
        _installer_command(_client)
for _client in CLIENTS:
    _uninstaller_command(_client)


def _carry_out(
    app: App,
    plan: installer.InstallPlan,
    dry_run: bool,
    nothing: str,
    widens: str,
    *,
    forget: bool = False,
    after: str = "",
) -> None:
    """Show the diff, ask, carry the plan out, report. The diff comes first, to explain an error. ``widens``: what it
    lets agents do more; ``after``: the person's next step after a change."""
    shown = "".join(f"{line}\n" for line in neutral_lines(installer.plan_diff(plan)))
    if not app.json:
        app.write_answer(shown or nothing)
    for path, why in plan.left:
        app.give_warning(f"left unchanged: {path}: {why}")
    changed = [change.path for change in plan.changes if change.after != change.before]
    if not dry_run:
        widening.check_widening(app, lambda: widens if changed else "")
        changed = installer.carry_out(plan, app.environ)
        changed += installer.forget_shim(app.environ) if forget else []
    value = {
        "changed": changed,
        "left": [{"path": path, "why": why} for path, why in plan.left],
        "dry_run": dry_run,
        "diff": shown,
        **({"next": after} if after and changed else {}),
    }
    told = [
        *(f"{'changed' if os.path.lexists(path) else 'removed'} {neutral(path)}" for path in changed),
        *([f"next: {after}"] if after and changed else []),
    ]
    app.print_done("" if dry_run else "".join(f"{line}\n" for line in told), value)
