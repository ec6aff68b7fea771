"""The commands that make and maintain a mailbox: init, steward, doctor, backup, restore, export.

Each imports its own needs lazily: the lock library loads as long as eight interpreter starts, and tests a temporary
directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from ..cli import mail_output, new_place, render, values, widening
from ..cli.group import cli
from ..cli.options import App, pass_app
from ..cli.output import write_bytes
from ..config import own_config
from ..core import instant, proofs
from ..core.attention import Notice
from ..core.text import neutral, typed
from ..errors import Malformed, NoMailbox, NotFound, Refused
from ..known_clients.every_client import USUAL
from ..mailbox.mailbox import Mailbox
from ..space import space_words
from ..store.files import mounts, paths
from ..store.user_state import creation, own_files
from . import exporting
from .hook_command import answer_hook

if TYPE_CHECKING:
    from ..core.findings import Repaired
    from ..upkeep.backup import Backup


ALLOWS = "Let the rules of logs that were cut or replaced allow again, too; else that is a second question."


@cli.command()
@click.argument("where", metavar="[DIR]", required=False)
@click.option("--git", "in_git", is_flag=True, help="Make it in .git/agent-mailbox of the repository around DIR.")
@click.option("--here", is_flag=True, help="Make it although another mailbox covers that place.")
@click.option("--forget", is_flag=True, help="Forget one that is gone: commands there use the next one above.")
@click.option(
    "--adopt", is_flag=True, help="Trust the mailbox's unsealed lines: leads, policies and decisions in them count."
)
@click.option("--yes", is_flag=True, help="With --adopt, typed at the prompt: let them count without a question.")
@click.option("--allows", is_flag=True, help=ALLOWS)
@pass_app
def init(
    app: App, where: str | None, in_git: bool, here: bool, forget: bool, adopt: bool, yes: bool, allows: bool
) -> None:
    """Make a mailbox, by default in data/ of the project. Idempotent.

    DIR defaults to --dir, else to AGENT_MAILBOX_DIR. If sessions there use a mailbox already, it is named, and without
    --here none is made. A new one holds a .gitignore, so that git passes by its files.

    With --git all worktrees and submodules of the repository share the mailbox, and no checkout, pull or `git clean`
    touches it.

    With --adopt you confirm a mailbox from an earlier version or from elsewhere. Until then its unsealed lines may
    restrict agents, but allow them nothing.

    \b
    Example: agent-mailbox init --git
    """
    place = new_place.meant_place(app, where, in_git)
    if forget:
        creation.forget(place, app.environ)
        app.print_done(f"forgot {neutral(place)}\n", {"ok": True, "forgot": place})
        return
    was_there = paths.is_mailbox(place)
    known = was_there and paths.recorded(place, app.environ)
    if not was_there:
        _refuse_making(app, place, adopt=adopt, here=here, again=_command_again(app, where, in_git))
    made = creation.create(place, app.environ)
    if adopt:
        _confirm_and_trust(app, made, adopt=True, yes=yes, allows=allows)
        return
    if was_there and not known:
        look = app.complete_command("history --all")
        app.give_warning(f"{made} was {creation.CAME_ALONG}; look at it: `{look}`")
    doubt = mounts.doubt(made)
    if doubt is not None:
        app.give_warning(f"{made} {doubt}")
    if not known and paths.is_there(settings := os.path.join(made, paths.CONFIG)):
        app.give_warning(f"{settings} counts as the mailbox's settings from now on; `agent-mailbox doctor` checks them")
    if not known and not own_files.is_hidden_from_git(made):
        app.give_warning(f"{own_files.SEEN_BY_GIT}; `{own_files.hiding_command(made)}` adds the rules")
    app.print_done(
        f"mailbox at {neutral(made)}{' exists already; nothing changed' if known else ''}\n"
        + ("" if known else space_words.describe_return(made, app.environ, is_made=True)),
        {"dir": made},
    )
    if not app.json and sys.stdout is not None and sys.stdout.isatty():
        app.write_answer(NEXT)


def _command_again(app: App, where: str | None, in_git: bool) -> str:
    """Return the command, as it was given, with ``--here``."""
    words = [*(["--dir", app.directory] if app.directory and not where else []), *([where] if where else [])]
    return " ".join(["agent-mailbox init", *map(typed, words), *(["--git"] if in_git else []), "--here"])


def _refuse_making(app: App, place: str, *, adopt: bool, here: bool, again: str) -> None:
    """Raise the error of an ``init`` that is not to make a mailbox."""
    new_place.refuse_session(app, place)
    if adopt:
        found = new_place.covering_mailbox(place)
        hint = f"name the one you mean: `agent-mailbox init --adopt {typed(found)}`" if found else "name one: --dir DIR"
        raise NoMailbox(f"no mailbox to adopt at {place}", hint)
    if not here:
        new_place.refuse_second(place, again)


NEXT = f"""next: {f"agent-mailbox install {USUAL.name} --user":61}show sessions their mail
      agent-mailbox roster register --session-id ID --role ROLE    register a shell as a session
"""
"""The two commands that most people run after ``init``."""


def _confirm_and_trust(app: App, directory: str, *, adopt: bool, yes: bool, allows: bool) -> None:
    """Show what would count, and ask; then trust the logs as they are, and print which leads, modes and rules count.

    The rules that a log which was brought back would allow take a second word."""
    from ..upkeep import adoption
    from . import confirming

    seen = confirming.preview_trust(directory, adopt=adopt)
    is_sure = not widening.needs_question(app)
    if (seen.why or seen.adopted) and not (yes and is_sure):
        confirming.ask_to_trust(seen)
    again = allows if yes and is_sure else bool(seen.withheld) and ((allows and is_sure) or confirming.ask_again(seen))
    withheld = () if again else seen.withheld
    done = adoption.trust_logs(Mailbox(directory, prove=None), adopt=adopt, seen=seen, withheld=withheld)
    lines = [f"mailbox at {directory}"] if adopt else []
    lines += [f"{done.why}; you confirmed the logs as they are"] if done.why else []
    lines += [] if adopt or done.why else ["nothing was to confirm: the logs continue what our writers left"]
    lines += [f"confirmed {mail_output.count_noun(done.adopted, 'unsealed line')}"] if adopt else []
    lines += confirming.rules_of(done)
    told = [one for one in withheld if one.said]
    lines += [f"not allowed again: {one.said}: {app.complete_command(one.command)}" for one in told]
    value = {"ok": True, "dir": directory, "why": done.why, "adopted": done.adopted, "standing": list(done.standing)}
    value["withheld"] = [{"agent": one.session_id, "allow": list(one.allow), "mode": one.mode or None} for one in told]
    app.print_done("".join(f"{neutral(line)}\n" for line in lines), value)


@cli.command()
@click.option("--test", is_flag=True, help="Send a test notice, whatever waits.")
@pass_app
def notify(app: App, /, test: bool) -> int:
    """Send the notices that are due, of what waits for you. The ways are those of `[notify]` in your own configuration.

    The console does the same at each change, and the steward with each run. Exit 1 if a way failed.
    """
    from ..upkeep import notify as notices

    if app.is_session:
        raise Refused("a session does not reach the person elsewhere", "mail to `user` is told by itself")
    if test:
        ways = notices.tell_notice(app.mailbox, Notice("agent-mailbox", "This is a test: notices reach you.", 0))
        if not ways:
            raise NotFound(notices.NO_WAY, f"set one under [notify] in {own_config.own_config_path()}")
        looked = notices.Looked(ways)
    else:
        looked = notices.notify_if_due(app.mailbox)
    lines = [f"{way}: {neutral(error) or 'told'}" for way, error in looked.ways.items()]
    value = {"waiting": looked.waiting, "ways": dict(looked.ways)}
    app.print_done("\n".join(lines or [looked.why or "nothing to tell now"]) + "\n", value)
    return int(any(looked.ways.values()))


@cli.group()
def steward() -> None:
    """Archive old mail and sweep the roster: the regular maintenance."""


@steward.command()
@click.option(
    "--max-live",
    type=click.IntRange(min=0),
    metavar="N",
    help="Archive finished mail if more than N messages are live.",
)
@click.option("--trust-clock", is_flag=True, help="Run although the clock is far from every time in the mailbox.")
@pass_app
def run(app: App, max_live: int | None, trust_clock: bool) -> None:
    """Archive finished mail, and sweep the roster. It freezes or retires silent sessions, and verifies the mailbox.

    Refuses and moves nothing if the clock is a day away from every time in the mailbox. After a day in which it ran
    steadily it is believed; with --trust-clock you confirm it at once.
    """
    from ..upkeep import steward as stewards

    app.proves = lambda _: proofs.STEWARD  # it does the same for every caller
    report = stewards.run_upkeep(app.mailbox, max_live, trust_clock=trust_clock)
    lines = [
        f"archived {report.archived}, kept {report.kept} ({report.pending} not yet delivered)",
        f"froze {report.frozen}, retired {report.retired}",
    ]
    text = "\n".join(lines) + "\n" + "".join(render.problem_text(p, app.complete_hint) for p in report.problems)
    problems = [render.problem_json(p, app.complete_hint) for p in report.problems]
    app.print_done(text, {**report.__dict__, "problems": problems})


@steward.command()
@click.option("--install", is_flag=True, help="Add the line to your crontab, unless it is there.")
@pass_app
def crontab(app: App, install: bool) -> None:
    """Print the cron line that runs the steward every hour."""
    from ..upkeep import crontab as timer

    line = timer.crontab_line(app.mailbox.directory)
    if not install:
        app.print_answer(f"{line}\n", {"line": line})
        return
    is_new = timer.install_crontab(line)
    app.print_done(f"{'' if is_new else 'already in your crontab: '}{line}\n", {"line": line})


@cli.command()
@click.option(
    "--repair",
    is_flag=True,
    help="Repair file modes, torn lines (kept in a .torn file beside the log) and wrong derived files.",
)
@click.option("--trust", is_flag=True, help="Confirm logs that were cut or replaced: they count as they are now.")
@click.option("--yes", is_flag=True, help="With --trust, typed at the prompt: let them count without a question.")
@click.option("--allows", is_flag=True, help=ALLOWS)
@pass_app
def doctor(app: App, repair: bool, trust: bool, yes: bool, allows: bool) -> int:
    """Check the whole mailbox, and name its problems. It looks at logs, archive, derived files, file modes, hooks, and
    the gateway to other machines.

    Exits with 3 if it finds problems: data that is lost, hidden, open to other users or misread, or a mailbox that
    takes no writes. A harmless or passing condition, such as a silent session or a network disk, is a note and leaves
    exit code 0.
    """
    if trust:
        _confirm_and_trust(app, app.mailbox.directory, adopt=False, yes=yes, allows=allows)
        return 0
    from ..clients.checks import settings
    from ..swarm import home_checks
    from ..upkeep import doctor as doctors

    done: list[str] = []
    repaired: list[dict[str, str | None]] = []

    def note_repaired(one: Repaired) -> None:
        done.append(f"repaired {neutral(one.file)}: {neutral(one.done)}\n")
        repaired.append({"file": one.file, "done": one.done, "kept": one.kept})

    if repair:
        doctors.repair_safely(app.mailbox, note_repaired)
    found = [
        *doctors.examine_mailbox(app.mailbox, app.environ),
        *settings.check_settings(app.mailbox.directory, app.environ),
        *home_checks.examine_gateway(app.mailbox.directory, app.mailbox.now()),
    ]
    problems = [p for p in found if not p.note]
    notes = [p for p in found if p.note]
    text = "".join(done) + "".join(render.problem_text(p, app.complete_hint) for p in found)
    text += "" if problems else f"no {'other ' if done else ''}problems found\n"
    value: dict[str, Any] = {
        "ok": not problems,
        "problems": [render.problem_json(p, app.complete_hint) for p in problems],
    }
    value |= {"repaired": repaired} if repair else {}
    app.print_answer(
        text, value | ({"notes": [render.problem_json(p, app.complete_hint) for p in notes]} if notes else {})
    )
    return 3 if problems else 0


@cli.command()
@click.argument("file", type=click.Path())
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--verify", is_flag=True, help="Only verify FILE, byte by byte; this needs no mailbox.")
@pass_app
def backup(app: App, file: str, force: bool, verify: bool) -> None:
    """Write a snapshot of the mailbox to FILE. Agents may go on working. A read-only mailbox can be backed up, too.

    FILE is a tar of the logs, the archive and the configuration with their SHA-256 sums, verified after writing. Use
    `agent-mailbox restore FILE` to make a mailbox from it.
    """
    from ..upkeep import backup as backups

    if file == "-" and not verify:
        raise Malformed("a backup goes to a file, not to standard output", "run `agent-mailbox backup mailbox.tar`")
    made = backups.verify_backup(file) if verify else backups.write_backup(app.mailbox, file, force=force)
    size = sum(made.sizes.values())
    text = f"{neutral(made.file)}: {len(made.sizes)} files, {size} bytes, of {instant.text(made.made)}\n"
    value = {"file": made.file, "files": len(made.sizes), "bytes": size, "made": instant.text(made.made)}
    value["settings"] = [*made.settings]
    if verify:
        app.print_answer(text + _settings_lines(made), value)
    else:
        app.print_done(text, value)


def _settings_lines(made: Backup) -> str:
    """Return the settings that a backup brings, as lines of text."""
    return "".join(f"it sets {line}\n" for line in made.settings)


@cli.command()
@click.argument("file", type=click.Path())
@click.argument("where", metavar="[DIR]", required=False)
@click.option("--alone", is_flag=True, help="Restore a machine of a space, too, as a mailbox of this machine alone.")
@pass_app
def restore(app: App, file: str, where: str | None, alone: bool) -> None:
    """Make a mailbox from the backup FILE.

    DIR defaults as for `agent-mailbox init`. Verifies FILE first, and overwrites nothing. Prints the settings that it
    brings; `agent-mailbox backup --verify FILE` prints them before.
    """
    from ..upkeep import restoring
    from . import confirming

    place = where or new_place.wanted_place(app)
    restoring.check_backup(file, place)
    if where is None and not paths.is_mailbox(place):
        new_place.refuse_second(place, f"agent-mailbox restore {typed(file)} {typed(os.path.realpath(place))}")
    widening.check_widening(app, lambda: f"the mailbox of {file}, its leads and rules come into use")
    made = restoring.restore_backup(file, place, app.environ, alone=alone)
    directory = os.path.realpath(place)
    value = {"dir": directory, "files": len(made.sizes), "made": instant.text(made.made), "settings": [*made.settings]}
    text = f"mailbox at {neutral(directory)}, as it was {instant.text(made.made)}\n{_settings_lines(made)}"
    if confirming.preview_trust(directory, adopt=True).standing:
        text += "its leads and rules bind agents; to let its permissions count, too: agent-mailbox init --adopt"
        text += f" {typed(where or app.directory or directory)}\n"
    app.print_done(text + space_words.describe_return(directory, app.environ), value)


@cli.command(prints_json=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted(exporting.FORMATS)),
    default="jsonl",
    show_default=True,
    help="jsonl: one record per line; mbox: for mail programs; entities: ontology statements.",
)
@click.option(
    "--since", metavar="T", help="Only events since then: a time such as 2026-03-16T14:30Z, or an age such as 24h."
)
@pass_app
def export(app: App, form: str, since: str | None) -> None:
    """Write the whole history to standard output. Archived mail is included.

    \b
    Example: agent-mailbox export --format mbox > mail.mbox
    """
    from ..mailbox import mail_stream

    start = values.parse_since(since, app.mailbox.now())
    app.mailbox.weigh_mail()
    mail, roster = mail_stream.stream(app.mailbox), app.mailbox.logs.read_roster()
    parts = exporting.FORMATS[form](mail, roster, instant.FIRST if start is None else start)
    at_terminal = sys.stdout is not None and sys.stdout.isatty()
    _write_parts(exporting.neutral_parts(parts) if at_terminal else parts)


_PIECE = 1 << 16
"""Bytes of a history that are written at once."""


def _write_parts(parts: Iterable[bytes]) -> None:
    """Write any number of parts; raises as ``write_bytes`` does."""
    waiting = bytearray()
    for part in parts:
        waiting += part
        if len(waiting) >= _PIECE:
            write_bytes(bytes(waiting))
            waiting.clear()
    write_bytes(bytes(waiting))


@cli.command(prints_json=False)
@click.argument("event")
@pass_app
def hook(app: App, event: str) -> int:
    """Answer a client's hook call. It reads JSON from standard input, and writes the answer to standard output.

    EVENT is SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, PostToolBatch,
    Stop, StopFailure, PreCompact or SessionEnd.
    """
    return answer_hook(event, app.directory)
