"""Teams on the disk, as we read them: configurations, inboxes, the lead's process.

Belongs here: the places in a team's directory (observed with 2.1.329), and what ``config.json`` says: its members, its
lead. Its invalid parts come back as ``Unfit``; the valid ones count. Everything here only reads, and takes no lock, as
the client's own readers.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..clients.foreign_fields import Unfit, kind_of, read_content, refuse_constant, text_under
from ..clients.team_tasks import team_names
from ..core.records import Record
from ..errors import Ambiguous, NotFound
from ..store.files.small_files import list_names
from ..store.user_state import processes
from . import format as form
from .format import Inbox

LEAD = "team-lead"
"""The lead's name in every team seen so far; ``config.json`` may give another."""


class TeamMember(Record):
    """A member, as the team's configuration has it."""

    name: str
    agent_id: str | None = None
    agent_type: str | None = None
    color: str | None = None
    cwd: str | None = None


class TeamConfiguration(Record):
    """A team by its configuration; ``unfit`` tells its invalid parts."""

    name: str
    lead_name: str = LEAD
    lead_session: str | None = None
    lead_pid: int | None = None
    members: tuple[TeamMember, ...] = ()
    unfit: tuple[Unfit, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the members' names, the lead's among them."""
        return tuple(member.name for member in self.members)


def find_team(where: str, wanted: str) -> TeamConfiguration:
    """Return the team of that name, or led by that session (its id, or a beginning of at least 6 characters).

    Raise ``NotFound``, or ``Ambiguous`` if a beginning fits several.
    """
    known = team_names(where)
    if wanted in known:
        return load_team(where, wanted)
    teams = [load_team(where, name) for name in known]
    led = [team for team in teams if team.lead_session == wanted]
    led = led or [t for t in teams if len(wanted) >= 6 and (t.lead_session or "").startswith(wanted)]
    if len(led) > 1:
        raise Ambiguous(
            f"session id fits the leads of {len(led)} teams: {wanted!r}",
            f"name one of {', '.join(team.name for team in led)}",
        )
    if not led:
        raise NotFound(f"team not found in {where}: {wanted!r}", "list all with `agent-mailbox teams list`")
    return led[0]


def load_team(where: str, name: str) -> TeamConfiguration:
    """Return the team of a directory; with an unreadable configuration it has no members, and says why."""
    content = read_content(config_path(where, name))
    if content is None:
        return TeamConfiguration(name, unfit=(Unfit(None, "no config.json"),))
    return parse_team(content.data, name)


def config_path(where: str, name: str) -> str:
    """Return the path of a team's configuration."""
    return os.path.join(where, name, "config.json")


def inbox_path(where: str, name: str, member: str) -> str:
    """Return the path of a member's inbox."""
    return os.path.join(where, name, "inboxes", f"{member}.json")


def inbox_names(where: str, name: str) -> list[str]:
    """Return the names of those who have inboxes."""
    found = list_names(os.path.join(where, name, "inboxes"))
    return [file.removesuffix(".json") for file in found if file.endswith(".json") and len(file) > 5]


def read_inbox(where: str, name: str, member: str) -> Inbox:
    """Return a member's inbox as it is now; a missing one is empty, and not whole."""
    content = read_content(inbox_path(where, name, member))
    return Inbox(whole=False) if content is None else form.parse_inbox(content.data)


def has_ended(where: str, team: TeamConfiguration) -> bool:
    """Return whether the team is over: its configuration is removed, or its lead's process gone."""
    return not os.path.exists(config_path(where, team.name)) or not _is_lead_alive(where, team)


def _is_lead_alive(where: str, team: TeamConfiguration) -> bool:
    """Return whether the lead's process lives; True if unknown (another host, or name space)."""
    content = read_content(config_path(where, team.name))
    if content is None or team.lead_pid is None:
        return True
    try:
        process = json.loads(content.data)["leadProcess"]
        space, born = str(process["pidSpace"]), str(process["procStart"])
        if not space.endswith(os.readlink("/proc/self/ns/pid")):
            return True
    except (OSError, ValueError, LookupError, TypeError):
        return True
    return processes.lives(team.lead_pid, born) is not False


def parse_team(data: bytes, name: str) -> TeamConfiguration:
    """Return the team whose ``config.json`` holds the bytes; its directory's ``name`` counts."""
    try:
        config = json.loads(data.decode("utf-8"), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        return TeamConfiguration(name, unfit=(Unfit(None, f"config.json is not JSON: {error}"),))
    if not isinstance(config, dict):
        return TeamConfiguration(name, unfit=(Unfit(None, f"config.json is {kind_of(config)}"),))
    listed = config.get("members")
    members: dict[str, TeamMember] = {}
    unfit: list[Unfit] = [] if isinstance(listed, list) else [Unfit(None, "config.json lists no members")]
    for place, value in enumerate(listed if isinstance(listed, list) else ()):
        member = _parse_member(value)
        if isinstance(member, str):
            unfit.append(Unfit(place, f"member: {member}"))
        else:
            members.setdefault(member.name, member)
    lead_id = text_under(config, "leadAgentId")
    lead = next((m.name for m in members.values() if lead_id and m.agent_id == lead_id), None)
    process = config.get("leadProcess")
    pid = process.get("pid") if isinstance(process, dict) else None
    return TeamConfiguration(
        name=name,
        lead_name=lead or (lead_id or LEAD).partition("@")[0] or LEAD,
        lead_session=text_under(config, "leadSessionId"),
        lead_pid=pid if type(pid) is int and pid > 0 else None,
        members=tuple(members.values()),
        unfit=tuple(unfit),
    )


def _parse_member(value: Any) -> TeamMember | str:
    if not isinstance(value, dict):
        return f"not an object but {kind_of(value)}"
    name = text_under(value, "name")
    if name is None:
        return "no name"
    if "/" in name or name in (".", ".."):
        return "its name is invalid as a file's"
    more = {"agent_id": "agentId", "agent_type": "agentType", "color": "color", "cwd": "cwd"}
    return TeamMember(name, **{field: text_under(value, key) for field, key in more.items()})
