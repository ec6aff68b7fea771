"""Making and keeping a mailbox: init, steward, doctor, export."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from .. import doctor as doctors
from ..core.text import neutral
from ..store import paths, places
from . import exporting, render
from .hook import answer
from .mail import parse_since
from .main import Commands, cli
from .options import App, Verb, pass_app


@cli.command(cls=Verb)
@click.argument("where", metavar="[DIR]", required=False)
@pass_app
def init(app: App, where: str | None) -> None:
    """Make a mailbox: DIR, else --dir, else AGENT_MAILBOX_DIR, else data/ here. Again is no error."""
    directory = where or app.directory or app.environ.get("AGENT_MAILBOX_DIR") or _default_place()
    made = places.create(directory, app.environ)
    app.out(f"mailbox at {neutral(made)}\n", {"dir": made})


def _default_place() -> str:
    """``data/`` of the repository's main worktree, so that all its worktrees share it; else ``data/`` here."""
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
    from .. import steward as stewards  # the lock library looks for room in a temporary directory when it is loaded

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
    from .. import steward as stewards

    line = stewards.crontab_line(app.mailbox)
    if install and not stewards.install_crontab(line):
        app.out(f"already in your crontab: {line}\n", {"line": line})
        return
    app.out(f"{line}\n", {"line": line})


@cli.command(cls=Verb)
@click.option("--repair", is_flag=True, help="Mend modes and torn lines; the original file is kept beside.")
@pass_app
def doctor(app: App, repair: bool) -> int:
    """Verify logs, archive, permissions and configuration; exit 3 if something is wrong."""
    problems = doctors.repair(app.mailbox) if repair else list(doctors.examine(app.mailbox))
    text = "".join(map(render.problem_text, problems)) or "nothing wrong\n"
    app.out(text, {"ok": not problems, "problems": [render.problem_json(p) for p in problems]})
    return 3 if problems else 0


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
    start = parse_since(since, app.mailbox.now())
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
    """Answer a client's hook: SessionStart, UserPromptSubmit, Stop or SessionEnd, its JSON on standard input."""
    return answer(event, app.directory)
