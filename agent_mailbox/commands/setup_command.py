"""``setup``: a mailbox, and hooks in every client that is found, behind one question.

Belongs here: what is set up, in which order, its words, and taking it back. ``install`` and ``init`` do the parts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import click

from ..cli import new_place, widening
from ..cli.group import cli
from ..cli.options import App, pass_app
from ..clients import places
from ..clients.checks import settings
from ..clients.checks.hook_sources import installed_settings
from ..clients.install import everywhere, status_setting
from ..clients.install import installation as installer
from ..core import frame
from ..core.records import Record
from ..core.text import neutral, neutral_lines, typed
from ..errors import MailboxError, Refused
from ..identity import callers
from ..known_clients import abilities
from ..known_clients.every_client import INSTALLED
from ..store.files import paths, system
from ..store.files.small_files import Storing
from ..store.locks.lock import FileLock
from ..store.user_state import creation, own_files
from ..upkeep import crontab, extras
from . import console_command
from . import up_command as up_command  # the commands of a first day
from .install_command import find_program
from .uninstall_all import uninstall_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..clients.places import Target
    from ..known_clients.known_client import KnownClient

SHOWN = 5
"""Files of a client that are named before the question; ``--diff`` shows all."""
MISSING = (
    "no client is found on your PATH: install one, then repeat this command; `agent-mailbox help mcp` is for others,"
    " `agent-mailbox roster register --session-id ID --role ROLE` for a shell"
)
LINES = {
    status_setting.NEW: "its status line: unread mail, what waits for you, the task (--no-statusline leaves it out)",
    status_setting.KEPT: "its status line: yours stays; `agent-mailbox statusline` prints what you may add to it",
}
"""The words about a client's status line."""
UNASKED = "pass --yes to set it up without a question, or --dry-run to look"


class ClientSetup(Record):
    """A client that is found. ``plan`` is None if something else calls us for its sessions: ``covered`` names it, or
    what is wrong with its files. ``code``: the exit code of that. ``line``: the word for its status line."""

    target: Target
    plan: installer.InstallPlan | None
    covered: str = ""
    line: str = ""
    code: int = 0

    @property
    def changed(self) -> list[str]:
        """Return the paths of the files that would change."""
        return [one.path for one in self.plan.changes if one.before != one.after] if self.plan else []

    def left_alone(self, error: MailboxError) -> ClientSetup:
        """Return the client with what is wrong, and what to do: the others are set up all the same."""
        return self.replace(plan=None, covered=f"left alone: {error.what}; {error.hint}", code=error.exit_code)


@cli.command()
@click.argument("where", metavar="[DIR]", required=False)
@click.option("--project", is_flag=True, help="Set up the clients for sessions of this project alone.")
@click.option("--git", "in_git", is_flag=True, help="Make the mailbox in .git, where all worktrees share it.")
@click.option("--no-statusline", "without_line", is_flag=True, help="Leave the client's status line out.")
@click.option("--diff", is_flag=True, help="Show every line that would change, and change nothing.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Do it without a question.")
@click.option("--remove", is_flag=True, help="Take it back: clients, timer, and the mailbox if it never held mail.")
@pass_app
def setup(
    app: App,
    /,
    where: str | None,
    project: bool,
    in_git: bool,
    without_line: bool,
    diff: bool,
    dry_run: bool,
    yes: bool,
    remove: bool,
) -> int:
    """Set up a mailbox here, and hooks in each client found. It shows what it will do, and asks once.

    DIR is the mailbox (default: the one in use here, else data/ of the project). Run it again after you install
    another client. `init` and `install` do the parts.

    \b
    Example: agent-mailbox setup
    """
    if remove:
        return _remove(app, _place(app, where, in_git), dry_run=dry_run or diff, diff=diff)
    place = _place(app, where, in_git)
    is_new = not paths.is_mailbox(place)
    word = find_program(app)
    found = [_look(app, client, word, project=project, line=not without_line) for client in _found(app)]
    state = "" if is_new else "there already" if paths.recorded(place, app.environ) else creation.CAME_ALONG
    lines = [*_told(place, found, state)]
    if dry_run or diff:
        plans = (one.plan for one in found if one.plan)
        shown = "".join(f"{line}\n" for plan in plans for line in neutral_lines(installer.plan_diff(plan)))
        text = shown if diff else "".join(f"{line}\n" for line in lines)
        app.print_answer(
            text or (f"{lines[0]}\n" if is_new else "nothing to change\n"),
            _value(place, found, [], is_new=is_new) | {"dry_run": True, "diff": shown},
        )
    else:
        changes = is_new or place not in paths.trusted(app.environ) or any(one.changed for one in found)
        if changes or not app.caller.is_person:
            _ask(app, lines, found, yes=yes)
        place = creation.create(place, app.environ)
        changed: list[str] = []
        found = [_install(app, one, word, changed) if one.plan else one for one in found]
        _finish(app, place, found, changed, is_new=is_new)
    return max((one.code for one in found), default=0)


def _place(app: App, where: str | None, in_git: bool) -> str:
    """Return the mailbox: the one named, the one that covers this place, or a new one's place."""
    place = new_place.meant_place(app, where, in_git)
    if not paths.is_mailbox(place):
        new_place.refuse_session(app, place)
        if where is None and not in_git and (covering := new_place.covering_mailbox(place)):
            return covering
        new_place.refuse_second(place, f"agent-mailbox init {typed(place)} --here")
    return os.path.realpath(place)


def _found(app: App) -> Iterator[KnownClient]:
    path = app.environ.get("PATH", "")
    yield from (client for client in INSTALLED if client.program and shutil.which(client.program, path=path))


def _look(app: App, client: KnownClient, word: str, *, project: bool, line: bool) -> ClientSetup:
    """Return what is to become of a client's files; one that cannot be read or merged is told and left."""
    here = os.getcwd()
    ours, target = places.project_target(client, here), places.user_target(client, app.environ)
    there = installed_settings(client, here, app.environ)
    if project or there == (os.path.realpath(ours.settings),) != (os.path.realpath(target.settings),):
        target = ours  # the project's own are renewed: with the user's, each hook would run twice in it
    elsewhere = [path for path in there if path != os.path.realpath(target.settings)]
    if client.has_plugins:
        elsewhere = [settings.source_name(source) for source in settings.covering_sources(target, app.environ)]
    if elsewhere:
        return ClientSetup(target, None, f"hooks are installed already, in {frame.some(elsewhere, 2)}")
    one = ClientSetup(target, None, line=status_setting.offered_line(target, app.environ) if line else "")
    try:
        return one.replace(plan=_plan(app, one, word))
    except MailboxError as error:
        return one.left_alone(error)


def _plan(app: App, one: ClientSetup, word: str) -> installer.InstallPlan:
    return installer.plan_installation(one.target, app.environ, word, line=one.line == status_setting.NEW)


def _install(app: App, one: ClientSetup, word: str, changed: list[str]) -> ClientSetup:
    """Install into one client, and add to ``changed``; return what became of it. The plan is made again: the client
    before it wrote the shim, which they share."""
    try:
        plan = _plan(app, one, word)
        for path, why in plan.left:
            app.give_warning(f"left unchanged: {path}: {why}")
        changed += installer.carry_out(plan, app.environ)
    except MailboxError as error:
        return one.left_alone(error)
    return one


def _told(place: str, found: list[ClientSetup], state: str) -> Iterator[str]:
    """Yield the lines that say what will be done. ``state``: of a mailbox that is there."""
    is_hidden = own_files.is_hidden_from_git(place)
    about_git = "left out of git" if is_hidden else f"{own_files.SEEN_BY_GIT}: `{own_files.hiding_command(place)}`"
    yield f"mailbox: {place}, {state or f'new, and {about_git}'}"
    for one in found:
        base = os.path.join(one.target.base, "")
        names = [path.removeprefix(base) for path in one.changed if path.startswith(base)]
        does = [f"{frame.some(names, SHOWN)} in {one.target.base}"] if names else []
        does += [path for path in one.changed if not path.startswith(base)]
        yield f"{one.target.client.title}: {', '.join(does) or one.covered or 'set up already'}"
        yield from [f"  {LINES[one.line]}"] if one.line and does else []
    if not found:
        yield MISSING
    yield "`agent-mailbox setup --diff` shows every line; `agent-mailbox setup --remove` takes it back"


def _ask(app: App, lines: list[str], found: list[ClientSetup], *, yes: bool) -> None:
    """Ask the person once; raise ``Refused`` if they say no, or if nobody can be asked."""
    is_sure = yes and not widening.needs_question(app)
    if is_sure:
        return
    if not app.caller.is_person:
        raise Refused(f"nothing changed: nobody can be asked here: {widening.why_unasked(app)}", UNASKED)
    follows = " Agents then run mail commands without asking you." if any(one.plan for one in found) else ""
    widening.ask_person(lines, f"Set it up?{follows}")


def _finish(app: App, place: str, found: list[ClientSetup], changed: list[str], *, is_new: bool) -> None:
    value = _value(place, found, changed, is_new=is_new)
    lines = [f"mailbox at {neutral(place)}{'' if is_new else ' (it was there)'}"]
    for one in found:
        lines += [f"{one.target.client.title}: {one.covered or ('set up' if one.changed else 'set up already')}"]
        lines += [f"  {one.target.client.after}"] if one.changed and one.target.client.after else []
    called = [one.target.client for one in found if not one.code]
    lines += ["", *_try(called[0])] if called else [] if found else [MISSING]
    app.print_done("".join(f"{line}\n" for line in lines), value | {"dry_run": False})


def _try(client: KnownClient) -> Iterator[str]:
    """Yield what to type next, and what comes of it."""
    yield f"Try it: start `{client.program}` in two terminals of this project."
    yield "`agent-mailbox roster list` has their names."
    yield "Tell one of them: ask NAME by agent-mailbox what it works on. NAME is the other one."
    yield (
        "The message wakes the other one, and it answers."
        if "wake when idle" in abilities.abilities_of(client)
        else "The other one is shown the message with its next prompt, and answers."
    )
    yield "See both: `agent-mailbox history --all`. Your page: `agent-mailbox console`."
    if extras.find_missing(console_command.NEEDED):
        yield f"Your page needs more packages: `{extras.command_to_add('console')}`."
    if shutil.which("crontab"):
        yield "Archive old mail each hour: `agent-mailbox steward crontab --install`."


def _value(place: str, found: list[ClientSetup], changed: list[str], *, is_new: bool) -> dict[str, object]:
    return {
        "dir": place,
        "new": is_new,
        "clients": [
            {
                "client": one.target.client.name,
                "directory": one.target.base,
                "files": one.changed,
                "covered": one.covered or None,
                "statusline": one.line or None,
                "next": one.target.client.after or None,
            }
            for one in found
        ],
        "changed": changed,
    }


def _remove(app: App, place: str, *, dry_run: bool, diff: bool) -> int:
    """Take a setup back. A mailbox that was used stays, and so do the records that prove its mail."""
    place = os.path.realpath(place)
    goes = paths.is_mailbox(place) and _is_unused(place)
    others = [box for box in everywhere.own_mailboxes(app.environ) if box != place]
    if not dry_run:
        widening.check_widening(
            app, lambda: "uninstall for every client: no lead and no rule of ours holds your sessions"
        )
        if crontab.remove_crontab(place):
            app.give_warning("the line that ran the steward hourly is gone from your crontab")
        goes = goes and _remove_unused(place)
        if goes and paths.recorded(place, app.environ):
            creation.forget(place, app.environ)
    state = goes and not others and app.caller.kind != callers.PROGRAM
    return uninstall_all(app, state=state, dry_run=dry_run, diff=diff, mailbox=place if goes else "")


# -- taking away a mailbox that nobody used ---------------------------------------------------------------------------


def _is_unused(directory: str) -> bool:
    """Return whether a mailbox holds nothing but what ``init`` makes: no mail, no session, no settings. Beside a
    project's files ``config.toml`` may be the project's, and stays."""
    ours = own_files.sure_paths(directory)
    if not own_files.is_shared(directory) and paths.CONFIG in os.listdir(directory):
        ours.append(os.path.join(directory, paths.CONFIG))
    remade = (os.path.join(directory, paths.CACHE), os.path.join(directory, paths.GITIGNORE))
    return not any(os.lstat(file).st_size for path in ours if not path.startswith(remade) for file in _files(path))


def _files(path: str) -> list[str]:
    if not system.is_own_directory(path):
        return [path]
    return [os.path.join(above, name) for above, names in system.tree(path) for name in names]


def _remove_unused(directory: str) -> bool:
    """Remove a mailbox unless it is used; return whether it went. A project's files beside it stay.

    Under the lock of its messages, and by a renaming: a ``send`` beside it is in a mailbox that stays, or it fails.
    """
    with Storing("remove", directory):
        with FileLock(os.path.join(directory, paths.MESSAGES)):
            if not _is_unused(directory):
                return False
            aside = _put_aside(directory)
        shutil.rmtree(aside)
    return True


def _put_aside(directory: str) -> str:
    """Move a mailbox out of its place; return where to. A directory stays that others use: a project, a shell."""
    if not own_files.is_shared(directory) and not f"{os.getcwd()}/".startswith(f"{directory}/"):
        aside = f"{directory}.removed"
        os.rename(directory, aside)
        return aside
    ours = own_files.sure_paths(directory)
    aside = tempfile.mkdtemp("", f"{paths.MESSAGES}.removed-", directory)
    for number, path in enumerate(ours):
        os.rename(path, os.path.join(aside, str(number)))
    return aside
