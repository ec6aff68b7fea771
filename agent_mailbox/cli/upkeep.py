"""Making and keeping a mailbox: init, steward, doctor, backup, restore, export.

What only one of these needs is imported by it: the lock library takes eight interpreter starts to load, and looks for
room in a temporary directory as it does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from ..core import instant, proofs
from ..core.text import neutral
from ..errors import NotFound
from ..store import creation, mounts, paths
from . import exporting, mail_output, render, values
from .group import Commands, cli
from .hook_command import answer
from .options import App, Verb, pass_app


@cli.command(cls=Verb)
@click.argument("where", metavar="[DIR]", required=False)
@click.option("--git", "in_git", is_flag=True, help="In the repository's own directory, where no checkout reaches.")
@click.option("--adopt", is_flag=True, help="Confirm what stands there unsealed: leads, policies and decisions count.")
@pass_app
def init(app: App, where: str | None, in_git: bool, adopt: bool) -> None:
    """Make a mailbox: DIR, else --dir, else AGENT_MAILBOX_DIR, else data/ here. Again is no error.

    With --git it is .git/agent-mailbox of the repository that DIR (default: here) is in, for all its worktrees and
    submodules: no checkout, pull or `git clean` reaches it.

    With --adopt you confirm a mailbox of an earlier version, or one that came from elsewhere: its unsealed lines bind
    agents until then, and free nobody.
    """
    made = creation.create(_place_in_git(where or os.getcwd()) if in_git else where or _wanted_place(app), app.environ)
    if adopt:
        _trust(app, made, adopt=True)
        return
    doubt = mounts.doubt(made)
    if doubt is not None:
        app.warn(f"{made} {doubt}")
    app.out(f"mailbox at {neutral(made)}\n", {"dir": made})
    if not app.json:
        app.nothing(NEXT)


NEXT = """next: agent-mailbox install claude-code --user                     sessions see their mail
      agent-mailbox roster register --session-id ID --role ROLE    a shell is a session, too
"""
"""The two commands that most people run after ``init``."""


def _trust(app: App, directory: str, *, adopt: bool) -> None:
    """Take the logs as they are, and tell what counts now."""
    from ..mailbox.facade import Mailbox
    from ..upkeep import adoption

    done = adoption.trust(Mailbox(directory, prove=None), adopt=adopt)
    lines = [f"{done.why}; you have looked"] if done.why else []
    lines += [f"confirmed {mail_output.plural(done.adopted, 'unsealed line')}"] if adopt else []
    lines += [*done.standing] or ["no agent is under a lead, a mode or rules"]
    value = {"ok": True, "dir": directory, "why": done.why, "adopted": done.adopted, "standing": list(done.standing)}
    app.done("".join(f"{neutral(line)}\n" for line in lines), value)


def _place_in_git(start: str) -> str:
    """Return where the mailbox of the repository is that a directory is in; raises ``NotFound`` outside one."""
    here = os.path.realpath(start)
    while (common := paths.common_directory(here)) is None:
        if here == os.path.dirname(here):
            raise NotFound(f"{start} is in no git repository", "`git init` makes one; without --git it is data/")
        here = os.path.dirname(here)
    return os.path.join(common, paths.IN_GIT)


def _wanted_place(app: App) -> str:
    """Where a mailbox is to be made: the place named, else ``data/`` of the repository's main worktree, so that all its
    worktrees share it; else ``data/`` here."""
    named = app.directory or app.environ.get("AGENT_MAILBOX_DIR")
    if named:
        return named
    here = os.getcwd()
    return os.path.join(paths.main_worktree(here) or here, paths.DATA)


@cli.group(cls=Commands)
def steward() -> None:
    """Upkeep: archive, roster sweep, verification."""


@steward.command(cls=Verb)
@click.option("--max-live", type=click.IntRange(min=0), metavar="N", help="Archive when more than N messages are live.")
@pass_app
def run(app: App, max_live: int | None) -> None:
    """Archive finished mail, sweep the roster, verify."""
    from ..upkeep import steward as stewards

    app.proves = lambda _: proofs.STEWARD  # whoever starts it, it does the same
    report = stewards.run(app.mailbox, max_live)
    lines = [
        f"archived {report.archived}, kept {report.kept} ({report.pending} still to be delivered)",
        f"froze {report.frozen}, retired {report.retired}",
    ]
    text = "\n".join(lines) + "\n" + "".join(render.problem_text(p) for p in report.problems)
    value = {
        "archived": report.archived,
        "kept": report.kept,
        "pending": report.pending,
        "frozen": report.frozen,
        "retired": report.retired,
        "problems": [render.problem_json(p) for p in report.problems],
    }
    app.out(text, value)


@steward.command(cls=Verb)
@click.option("--install", is_flag=True, help="Put the line into your crontab, once.")
@pass_app
def crontab(app: App, install: bool) -> None:
    """The cron line that runs the steward every hour."""
    from ..upkeep import steward as stewards

    line = stewards.crontab_line(app.mailbox)
    if install and not stewards.install_crontab(line):
        app.out(f"already in your crontab: {line}\n", {"line": line})
        return
    app.out(f"{line}\n", {"line": line})


@cli.command(cls=Verb)
@click.option(
    "--repair",
    is_flag=True,
    help="Mend modes and torn lines (the original file is kept beside); remove derived files that disagree.",
)
@click.option("--trust", is_flag=True, help="You looked at logs that were cut or replaced: they count as they are.")
@pass_app
def doctor(app: App, repair: bool, trust: bool) -> int:
    """Verify everything: logs, archive, derived files, permissions, hooks, the files of its gateway to other machines.

    Exit 3 if there are problems: something is lost, hidden, open to others or read wrong. What passes by itself or is
    no damage (a silent session, a clock that jumped, a network disk) is a note and leaves exit 0.
    """
    if trust:
        _trust(app, app.mailbox.directory, adopt=False)
        return 0
    from ..clients.checks import settings
    from ..swarm import home_checks
    from ..upkeep import doctor as doctors

    found = [
        *(doctors.repair(app.mailbox, app.environ) if repair else doctors.examine(app.mailbox, app.environ)),
        *settings.examine(app.mailbox.directory, app.environ),
        *home_checks.examine(app.mailbox.directory, app.mailbox.now()),
    ]
    problems = [p for p in found if not p.note]
    notes = [p for p in found if p.note]
    text = "".join(map(render.problem_text, found)) + ("" if problems else "nothing wrong\n")
    value = {"ok": not problems, "problems": [render.problem_json(p) for p in problems]}
    app.out(text, value | ({"notes": [render.problem_json(p) for p in notes]} if notes else {}))
    return 3 if problems else 0


@cli.command(cls=Verb)
@click.argument("file", type=click.Path())
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--verify", is_flag=True, help="Only check FILE, byte by byte; needs no mailbox.")
@pass_app
def backup(app: App, file: str, force: bool, verify: bool) -> None:
    """Write the mailbox into FILE, as it is at this moment, while everyone works on.

    FILE is a tar of the logs, the archive and the configuration with their SHA-256, verified after writing; `restore`
    makes a mailbox of it.
    """
    from ..upkeep import backup as backups

    made = backups.verify(file) if verify else backups.write(app.mailbox, file, force=force)
    size = sum(made.sizes.values())
    text = f"{neutral(made.file)}: {len(made.sizes)} files, {size} bytes, of {instant.text(made.made)}\n"
    value = {"file": made.file, "files": len(made.sizes), "bytes": size, "made": instant.text(made.made)}
    (app.out if verify else app.done)(text, value)


@cli.command(cls=Verb)
@click.argument("file", type=click.Path())
@click.argument("where", metavar="[DIR]", required=False)
@pass_app
def restore(app: App, file: str, where: str | None) -> None:
    """Make a mailbox of the backup FILE: DIR, chosen as by `init`, with everyone's mail as it was.

    FILE is verified first; nothing that is there is overwritten.
    """
    from ..upkeep import backup as backups

    made = backups.restore(file, where or _wanted_place(app), app.environ)
    directory = os.path.realpath(where or _wanted_place(app))
    value = {"dir": directory, "files": len(made.sizes), "made": instant.text(made.made)}
    text = f"mailbox at {neutral(directory)}, as it was {instant.text(made.made)}\n"
    app.done(f"{text}its leads and rules bind; to have its permissions count: agent-mailbox init --adopt\n", value)


@cli.command(cls=Verb, prints_json=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted(exporting.FORMATS)),
    default="jsonl",
    show_default=True,
    help="jsonl: records; mbox: for mail readers; entities: statements for an ontology.",
)
@click.option("--since", metavar="T", help="Only what happened from then on; resumes an export.")
@pass_app
def export(app: App, form: str, since: str | None) -> None:
    """The whole history, live and archived, to standard output."""
    start = values.since(since, app.mailbox.now())
    _write(exporting.FORMATS[form](app.library.everything(), start or 0))


def _write(parts: Iterable[bytes]) -> None:
    sys.stdout.flush()
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


@cli.command(cls=Verb, prints_json=False)
@click.argument("event")
@pass_app
def hook(app: App, event: str) -> int:
    """Answer a client's hook, its JSON on standard input.

    EVENT is SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, Stop, PreCompact or SessionEnd.
    """
    return answer(event, app.directory)
