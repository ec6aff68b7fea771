"""Commands about a client's own teams: list, show, inbox, import, bridge, export.

Belongs here: parsing and answering; ``mirror``, ``bridge`` and ``history`` do the work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

import click

from ..cli.group import cli
from ..cli.loading_ahead import load_rooms
from ..cli.options import App, Seconds, pass_app, seconds_option
from ..clients import client
from ..clients.foreign_fields import list_unfit
from ..clients.team_tasks import team_names, teams_directory
from ..core import naming
from ..core.control import summary
from ..core.frame import word
from ..core.text import clipped, neutral, neutral_lines, typed
from ..errors import Malformed, NotFound
from ..known_clients.every_client import USUAL
from ..mailbox.open_mailbox import nobody
from ..teams import bridge, history, team_files
from ..teams import format as form
from ..teams.format import InboxEntry
from ..teams.mirror import Mirror, MirrorStep, retire_members
from ..teams.team_files import TeamConfiguration

_team = click.argument("team", metavar="[TEAM]", required=False)
_interval = seconds_option("--interval", 0.5, "Seconds between looks while nothing changes.", 0.01)


@cli.group()
def teams() -> None:
    """Exchange mail with Claude Code's own Agent Teams.

    TEAM is a team's name, or the session id of its lead. `bridge` and `show` need none if there is only one.
    """


def _meant_team(app: App, wanted: str | None) -> TeamConfiguration:
    """Return the team meant: by name or lead, else the one the calling session leads, else the only one."""
    where = teams_directory(app.environ)
    if wanted is not None:
        return team_files.find_team(where, wanted)
    known = [team_files.load_team(where, name) for name in team_names(where)]
    session = app.environ.get(USUAL.session_variable)
    mine = [team for team in known if session and team.lead_session == session]
    mine = mine or [team for team in known if not team_files.has_ended(where, team)] or known
    if not mine:
        raise NotFound(f"team missing: {where} has none", f"start one in {USUAL.title} ({USUAL.teams_variable}=1)")
    if len(mine) > 1:
        raise Malformed(f"team unclear: {len(mine)} exist", f"name one of {', '.join(word(t.name) for t in mine)}")
    return mine[0]


def _living_team(app: App, wanted: str | None) -> TeamConfiguration:
    """Return the same; if the team is over, name the command for its history."""
    try:
        return _meant_team(app, wanted)
    except NotFound:
        if wanted not in history.mirrored_teams(app.mailbox):
            raise
    raise NotFound(f"team is over: {wanted!r}", f"read its history: `agent-mailbox teams export {typed(wanted)}`")


def _awaited_team(app: App, wanted: str | None, patience: float) -> TeamConfiguration:
    """Return the same, waiting for it to appear while the client that started this lives."""
    until = time.monotonic() + patience
    pid = client.client_number(app.environ)
    while True:
        try:
            return _meant_team(app, wanted)
        except NotFound:
            if time.monotonic() >= until or (pid is not None and not _is_alive(pid)):
                raise
        time.sleep(0.2)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@teams.command("list")
@pass_app
def list_teams(app: App) -> None:
    """List all teams. It also names those that only the mailbox remembers."""
    where = teams_directory(app.environ)
    known = [team_files.load_team(where, name) for name in team_names(where)]
    past = [name for name in history.mirrored_teams(app.mailbox) if name not in {team.name for team in known}]
    lines = [f"{word(t.name)}  {len(t.members)} members, led by {_lead_word(t)}{_over_mark(app, t)}\n" for t in known]
    lines += [f"{word(name)}  over\n" for name in past]
    for one in known:
        _print_problems(app, list_unfit(one.unfit), one.name)
    value = [_team_json(app, t) for t in known] + [{"team": name, "live": False} for name in past]
    app.print_answer("".join(lines) or "no teams\n", {"teams": value})


def _lead_word(team: TeamConfiguration) -> str:
    return word(team.lead_session) if team.lead_session else "an unknown session"


def _over_mark(app: App, team: TeamConfiguration) -> str:
    return "; over, its lead is gone" if team_files.has_ended(teams_directory(app.environ), team) else ""


def _team_json(app: App, team: TeamConfiguration) -> dict[str, Any]:
    return {
        "team": team.name,
        "live": not _over_mark(app, team),
        "lead_session": team.lead_session,
        "members": [
            {
                "name": m.name,
                "address": f"team:{naming.word(team.name)}/{naming.word(m.name)}",
                "session_id": naming.session_id(team.name, m.name),
                "type": m.agent_type,
                "lead": m.name == team.lead_name,
            }
            for m in team.members
        ],
        "problems": list(list_unfit(team.unfit)),
    }


@teams.command()
@_team
@pass_app
def show(app: App, /, team: str | None) -> None:
    """Show a team's members and inboxes. It says how to write to each, and how much is in each inbox."""
    found = _living_team(app, team)
    inboxes = {
        name: team_files.read_inbox(teams_directory(app.environ), found.name, name)
        for name in team_files.inbox_names(teams_directory(app.environ), found.name)
    }
    counts = {name: len(box.entries) for name, box in inboxes.items()}
    problems = [f"inbox {name}: {line}" for name, box in inboxes.items() for line in list_unfit(box.unfit)]
    value = _team_json(app, found)
    for member in value["members"]:
        member["inbox"] = counts.get(member["name"], 0)
    value["problems"] += problems
    lines = [f"{word(found.name)}, led by {_lead_word(found)}{_over_mark(app, found)}"]
    for member in value["members"]:
        kind = "lead" if member["lead"] else neutral(member["type"] or "teammate")
        lines.append(f"  {word(member['address'])}  {kind}, {member['inbox']} in the inbox")
    _print_problems(app, value["problems"], found.name)
    app.print_answer("\n".join(lines) + "\n", value)


@teams.command()
@click.argument("team", metavar="TEAM")
@click.argument("member", metavar="[NAME]", required=False)
@pass_app
def inbox(app: App, /, team: str, member: str | None) -> None:
    """Show a team's inboxes (or NAME's) as they are now. Nothing is changed. `teams export` shows teams that are
    over."""
    found = _living_team(app, team)
    there = team_files.inbox_names(teams_directory(app.environ), found.name)
    if member is not None and member not in (*found.names, *there):
        raise NotFound(
            f"member not found in {found.name}: {member!r}", f"name one of {', '.join(map(word, found.names))}"
        )
    names = there if member is None else [member]
    boxes = {name: team_files.read_inbox(teams_directory(app.environ), found.name, name) for name in names}
    problems = [f"inbox {name}: {line}" for name, box in boxes.items() for line in list_unfit(box.unfit)]
    _print_problems(app, problems, found.name)
    lines = [line for name, box in boxes.items() for entry in box.entries for line in _entry_text(name, entry)]
    value = {
        "team": found.name,
        "inboxes": {name: [_entry_json(entry) for entry in box.entries] for name, box in boxes.items()},
        "problems": {name: list(list_unfit(box.unfit)) for name, box in boxes.items() if box.unfit},
    }
    app.print_answer("\n".join(lines) + "\n" if lines else "nothing\n", value)


def _entry_text(name: str, entry: InboxEntry) -> list[str]:
    state = ", read" if entry.read else ""
    head = f"{word(entry.sender)} → {word(name)}, {clipped(neutral(entry.timestamp), 40)}{state}"
    if entry.protocol is not None:
        return [head, f"| {summary.line(entry.protocol)}"]
    return [head, *(f"| {line}" for line in neutral_lines(entry.text))]


def _entry_json(entry: InboxEntry) -> dict[str, Any]:
    return {
        "from": entry.sender,
        "text": entry.text,
        "timestamp": entry.timestamp,
        "summary": entry.summary,
        "color": entry.color,
        "read": entry.read,
        "msg_id": entry.msg_id,
        "protocol": None if entry.protocol is None else form.catalog_form(entry.protocol),
    }


def _print_problems(app: App, problems: Iterable[str], team: str) -> None:
    for problem in problems:
        app.give_warning(f"team {word(team)}: {problem}")


@teams.command("import")
@_team
@click.option("--follow", is_flag=True, help="Continue until the team is over.")
@_interval
@pass_app
def import_team(app: App, /, team: str | None, follow: bool, interval: float) -> None:
    """Mirror a team's inboxes into the mailbox, each entry once. Its members go into the roster. Without TEAM it is
    done for all teams.

    The team's files stay as they are. Entries that its members consumed count as read.
    """
    app.proves = nobody  # anybody may write the client's files
    where = teams_directory(app.environ)
    known = [_meant_team(app, team).name] if team is not None or follow else team_names(where)
    total: dict[str, MirrorStep] = {}
    for name in known:
        mirror = Mirror(app.mailbox, where, name)
        total[name] = mirror.mirror_once()
        _print_problems(app, total[name].problems, name)
        for _ in bridge.times_to_look(where, name, lambda: interval) if follow else ():
            before, step = total[name], mirror.mirror_once()
            _print_problems(app, [line for line in step.problems if line not in before.problems], name)
            total[name] = MirrorStep(before.new + step.new, before.consumed + step.consumed, step.problems)
            if team_files.has_ended(where, mirror.team):
                break
        if follow or team_files.has_ended(where, mirror.team):
            retire_members(app.mailbox, naming.tag(name))
    if team is None:
        bridge.bury_past(app.mailbox, where)
    lines = [
        f"{word(name)}: {step.new} new, {step.consumed} read by their recipients\n" for name, step in total.items()
    ]
    value = [
        {"team": name, "new": step.new, "read": step.consumed, "problems": list(step.problems)}
        for name, step in total.items()
    ]
    app.print_done("".join(lines) or "no teams\n", {"teams": value})


@teams.command("bridge")
@_team
@click.option("--once", is_flag=True, help="Look once, both ways.")
@click.option("--wait", type=Seconds(min=0), default=0.0, metavar="S", help="Seconds to wait for the team to appear.")
@_interval
@pass_app
def bridge_team(app: App, /, team: str | None, once: bool, wait: float, interval: float) -> None:
    """Carry mail both ways until the team is over. Its inboxes go into the mailbox, its members' unread mail into
    theirs.

    It may be killed and started again at any time. It reports mail that it cannot deliver, which stays unread.
    """
    app.proves = nobody
    where, name = teams_directory(app.environ), _awaited_team(app, team, wait).name
    if not once:
        load_rooms("teams")
    came, went = bridge.run_bridge(
        app.mailbox, where, name, interval, lambda problem: _print_problems(app, [problem], name), once=once
    )
    app.print_done(f"{word(name)}: {came} came in, {went} went out\n", {"team": name, "in": came, "out": went})


@teams.command()
@click.argument("team", metavar="TEAM")
@click.option(
    "--format",
    "style",
    type=click.Choice(("markdown", "json")),
    default="markdown",
    show_default=True,
    help="The format: for people, or for programs (as `--json`).",
)
@pass_app
def export(app: App, /, team: str, style: str) -> None:
    """Print a team's whole history. It is what the mailbox has, also after the team is over."""
    name = _team_name(app, team)
    style = "json" if app.json else style
    if style == "json":
        app.mailbox.weigh_mail()
    mail = history.history_of(app.mailbox, name)
    if not mail:
        raise NotFound(f"team history missing: {team!r}", "bring it in with `agent-mailbox teams import`")
    app.write_answer(history.history_document(name, mail, style, app.mailbox.logs.read_roster()))


def _team_name(app: App, team: str) -> str:
    try:
        return team_files.find_team(teams_directory(app.environ), team).name
    except NotFound:
        return team
