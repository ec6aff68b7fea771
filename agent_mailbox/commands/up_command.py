"""``up`` and ``down``: a team from its file, started, brought back and ended.

Belongs here: what the person is asked, and what is printed. ``fleet`` starts and ends members; ``core.team_file`` reads
the file.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import tomllib
from typing import TYPE_CHECKING, Any

import click

from ..cli import render, widening
from ..cli.group import cli
from ..cli.options import App, pass_app, seconds_option
from ..clients import starting
from ..control.tasking import Tasking
from ..core import frame, shown_ids, team_file
from ..core.address import ALL
from ..core.control import message_text, messages
from ..core.frame import shown_state
from ..core.records import USER
from ..core.roster import ALIVE
from ..core.text import neutral, typed
from ..errors import BadData, Busy, Malformed, NotFound, Refused
from ..known_clients.every_client import STARTED
from ..mailbox.open_mailbox import OpenMailbox
from ..store.files import small_files, system
from ..store.user_state import team_records
from . import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.roster import Roster
    from ..core.team_file import Team
    from ..store.user_state.team_records import TeamRecord

FILE = "team.toml"
_file = click.argument("file", metavar="[FILE]", default=FILE, required=False)


@cli.command()
@_file
@click.option("--tmux", "in_tmux", is_flag=True, help="Start each member in a window of tmux, not in the background.")
@click.option("--status", is_flag=True, help="Show the members, and start none.")
@click.option("--example", is_flag=True, help="Write a file that works, to begin with.")
@click.option("--yes", is_flag=True, help="Start it without a question.")
@seconds_option("--wait", 60.0, "Seconds to wait until each member is there.")
@pass_app
def up(app: App, /, file: str, in_tmux: bool, status: bool, example: bool, yes: bool, wait: float) -> None:
    """Start the team of FILE, or bring back who is missing.

    FILE is team.toml by default. It shows the team and asks; a file that was changed asks again. Each session keeps
    its name and its mail. `down` ends the team. Programs and their arguments come from [up] of your own configuration,
    never from FILE.

    \b
    Example: agent-mailbox up --example && agent-mailbox up
    """
    path = os.path.abspath(file)
    if example:
        _write_example(app, path)
        return
    data, team = _read_team(app, path)
    if status:
        _print_fleet(app, team, _load_record(app, path, waits=False))
        return
    with _alone(app, path):
        started = _open_fleet(app, path, data, team, in_tmux=in_tmux, yes=yes)
        failed = started.bring_all_up(team)
        there = [member for member in team.members if member.name not in failed]
        for member in started.wait_for_all(there, wait):
            way = "`agent-mailbox setup` installs them, `agent-mailbox doctor` tries them"
            app.give_warning(f"{member.name} has not called its hooks yet: {way}")
        for name in started.former_members(team):
            app.give_warning(f"{name} is not in {path} any more, and runs: `agent-mailbox down {typed(path)}` ends all")
        for member in there:
            started.give_rules(member, team)
        errors = [*failed.values()]
        for error in errors[1:]:
            app.give_warning(f"{error.what}; {error.hint}")
        if errors:
            raise errors[0]
        _begin_work(app.open_desk(OpenMailbox), path, team, started)
    _print_fleet(app, team, started.record, started.tmux_session)


@contextlib.contextmanager
def _alone(app: App, path: str) -> Iterator[None]:
    """Keep other commands off the team: two at once would start each member twice. A signal ends the work as an error
    does, which ends what was started and is in no record."""

    def end(number: int, _: object) -> None:
        raise click.exceptions.Exit(128 + number)

    lock = team_records.lock_team(path, app.environ)
    try:
        lock.take()
    except Busy:
        raise Busy(f"another `up` or `down` is at work on {path}", "run it again when that is done") from None
    heard = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]  # as by nohup
    before = {number: signal.signal(number, end) for number in heard}
    try:
        with lock:
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_fleet(app: App, path: str, data: bytes, team: Team, *, in_tmux: bool, yes: bool) -> fleet.Fleet:
    """Return the team's sessions, once the person agreed to what the file says."""
    if in_tmux and shutil.which("tmux", path=app.environ.get("PATH")) is None:
        raise NotFound("tmux is not on your PATH", "install it, or leave --tmux out: then they run in the background")
    box, record = app.open_desk(OpenMailbox), _load_record(app, path)
    if record.box not in ("", box.directory) and record.members:
        raise Refused(
            f"the team of {path} works with the mailbox {record.box}",
            f"`agent-mailbox up --dir {typed(record.box)} {typed(path)}`",
        )
    programs = {one.client: _program(app, one.client) for one in team.members}
    agreed = team_records.digest(data, repr(sorted(programs.items())).encode(), os.fsencode(box.directory))
    started = fleet.Fleet(app, box, path, record, programs, in_tmux=in_tmux)
    started.check_members(team)
    _refuse_strangers(team, box.logs.read_roster())
    if record.agreed != agreed:
        _ask(app, path, team, programs, yes=yes, has_tasks=record.has_tasks)
        started.keep(agreed=agreed, box=box.directory)
    return started


@cli.command()
@_file
@seconds_option("--wait", 10.0, "Seconds that members have to settle their work.")
@pass_app
def down(app: App, /, file: str, wait: float) -> None:
    """End the team that `up` started from FILE.

    Each member is asked to end. After the wait, its process is ended. `up` brings the same sessions back.
    """
    path = os.path.abspath(file)
    with _alone(app, path):
        record = _load_record(app, path)
        if not record.members:
            raise NotFound(f"no team was started from {path}", "`agent-mailbox up FILE` starts one")
        app.directory = record.box or app.directory  # the person agreed to it with the team
        ended = fleet.Fleet(app, app.open_desk(OpenMailbox), path, record, {}).bring_down(wait)
    for name, how in ended.items():
        if how in (fleet.LEFT, fleet.UNTOLD):
            app.give_warning(f"{name} {how}: what runs it was not started by `up`; end it in its own client")
        if how == fleet.SHARED:
            again = app.complete_command(f"down {typed(path)}")
            app.give_warning(f"{name} {how}: end what `up` did not start, and close its terminals; then `{again}`")
    lines = "".join(f"{neutral(name)}: {how}\n" for name, how in ended.items())
    app.print_done(lines, {"members": [{"name": name, "how": how} for name, how in ended.items()]})


def _load_record(app: App, path: str, *, waits: bool = True) -> TeamRecord:
    return starting.with_lost(team_records.load_record(path, app.environ), path, app.environ, waits=waits)


def _write_example(app: App, path: str) -> None:
    _refuse_directory(path, "--example ")
    found = next((word for word, one in STARTED.items() if shutil.which(one.program)), next(iter(STARTED)))
    if not small_files.make_file(path, team_file.EXAMPLE.replace("{client}", found).encode()):
        raise Refused(f"{path} is there already", f"`agent-mailbox up {typed(path)}` starts it")
    start = "up" if path == os.path.abspath(FILE) else f"up {typed(path)}"
    app.print_done(f"wrote {neutral(path)}\nStart it: {app.complete_command(start)}\n", {"file": path})


def _refuse_directory(path: str, example: str = "") -> None:
    if os.path.isdir(path):
        file = typed(system.join(path, FILE))
        raise Malformed(f"{path} is a directory", f"name the team's file: `agent-mailbox up {example}{file}`")


def _read_team(app: App, path: str) -> tuple[bytes, Team]:
    _refuse_directory(path)
    data = small_files.read_file(path)
    if data is None:
        raise NotFound(f"there is no {path}", f"`agent-mailbox up --example {typed(path)}` writes one")
    try:
        table = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path} is not valid TOML: {error}", "correct it") from None
    team = team_file.parse_team(table, STARTED, app.open_desk(OpenMailbox).config.namespaces)
    for role, rules in team.denied.items():
        try:
            [*map(message_text.check_rule, rules)]
        except ValueError as error:
            raise BadData(f"[rules.{role}] deny: {error}", "write Tool or Tool(what), such as Bash(git:*)") from None
    for one in team.members:
        if one.worktree and not STARTED[one.client].makes_trees:
            raise BadData(
                f"[member.{one.name}] worktree: {STARTED[one.client].title} makes no checkout of its own",
                f"take the line out, or use {' or '.join(word for word, one in STARTED.items() if one.makes_trees)}",
            )
    return data, team


def _program(app: App, client: str) -> tuple[str, ...]:
    """Return how the person starts a client: as their own configuration says, else its program on the ``PATH``."""
    words = app.open_desk(OpenMailbox).own.up.get(client) or (STARTED[client].program,)
    found = shutil.which(words[0], path=app.environ.get("PATH"))
    if found is None:
        raise NotFound(
            f"{STARTED[client].title} is not on your PATH: {words[0]!r}",
            f"install it, or set [up] {client} in your own configuration",
        )
    return (os.path.abspath(found), *words[1:])


def _ask(
    app: App, path: str, team: Team, programs: Mapping[str, tuple[str, ...]], *, yes: bool, has_tasks: bool
) -> None:
    """Show the team and ask the person; raise ``Refused`` if they say no, or if nobody can be asked."""
    if yes and not widening.needs_question(app):
        return
    if not app.caller.is_person:
        why = widening.why_unasked(app)
        raise Refused(f"nothing started: nobody can be asked here: {why}", "run it in your own terminal")
    widening.ask_person([*_told(path, team, programs, has_tasks=has_tasks)], "Start this team?")


def _told(path: str, team: Team, programs: Mapping[str, tuple[str, ...]], *, has_tasks: bool) -> Iterator[str]:
    yield f"{path}, as it is now:"
    for one in team.members:
        said = [*one.roles, f"lead {one.lead}" if one.lead else "", one.model, "own checkout" if one.worktree else ""]
        said += [f"at most {one.wakes_per_day} wakes a day"] if one.wakes_per_day else []
        yield f"  {one.name}: {', '.join(filter(None, [STARTED[one.client].title, *said]))}"
        yield from (f"    {line}" for line in frame.barred(one.prompt))
    for client, words in programs.items():
        yield f"  {STARTED[client].title} is started by: {shlex.join(words)}"
    for role, rules in team.denied.items():
        yield f"  denied to {role}: {', '.join(rules)}"
    if has_tasks:
        yield "  no task: those of the file were added as the team began (`agent-mailbox task add`)"
    for task in team.tasks if not has_tasks else ():
        yield f"  task for {task.to}:"
        yield from (f"    {line}" for line in frame.barred(f"{task.title}\n{task.body}"))


def _refuse_strangers(team: Team, roster: Roster) -> None:
    """Raise ``BadData`` for a task that is for nobody: it would be refused once all members run."""
    known = {word for one in team.members for word in (one.name, *one.roles)} | {ALL, USER}
    for task in team.tasks:
        is_known = ":" in task.to or task.to in known or f"role:{task.to}" in roster.roles_ever
        if not is_known and roster.meant(task.to) is None:
            raise BadData(f"[[task]] to: {task.to!r} is no member, no role and no agent", "name one, or role:NAME")


def _begin_work(box: OpenMailbox, path: str, team: Team, started: fleet.Fleet) -> None:
    """Add the first tasks: once, also if an earlier `up` was ended in between."""
    if not started.record.has_tasks:
        for number, task in enumerate(team.tasks):
            words = repr((number, task.title, task.to, task.body)).encode()
            task_id = f"task-{team_records.digest(os.fsencode(path), words)[:8]}"
            said = messages.TaskAssignment(request_id=task_id, title=task.title, instructions=task.body)
            Tasking(box).add_task(USER, [task.to], said)
        started.keep(has_tasks=True)


def _print_fleet(app: App, team: Team, record: TeamRecord, tmux_session: str = "") -> None:
    """Print the members, each with its session and its state, and how one sees their windows."""
    box = app.open_desk(OpenMailbox)
    roster = box.logs.read_roster()
    rows, told = [], []
    for one in team.members:
        agent = roster.get(fleet.session_of(one, record, roster))
        state = "not started" if agent is None else shown_state(agent, box.gone_of([agent]))
        if agent is not None and state == ALIVE and not app.hosts.hosting(agent.session_id):
            state = "no hook yet"  # its entry is the person's word alone
        lead = frame.name_of(agent.lead, roster) if agent is not None and agent.lead else "-"
        session = frame.word(shown_ids.shorten_ids(agent.session_id, roster.agents)) if agent is not None else "-"
        rows.append((state, one.name, STARTED[one.client].title, session, ", ".join(one.roles) or "-", lead))
        told.append({"name": one.name, "client": one.client, "session_id": agent and agent.session_id, "state": state})
    lines = render.table_lines(rows, ("state", "name", "client", "session", "roles", "lead"))
    lines += [f"see their windows: tmux attach -t {shlex.quote(tmux_session)}"] if tmux_session else []
    value: dict[str, Any] = {"members": told}
    app.print_done("\n".join([*lines, ""]), value)
