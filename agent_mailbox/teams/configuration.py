"""A team's ``config.json`` as a value: its members, its lead. Pure: bytes in, values out.

Invalid parts come back as ``Unfit``; the valid ones count.
"""

from __future__ import annotations

import json
from typing import Any

from ..clients.foreign_fields import Unfit, kind_of, refuse_constant, text_under
from ..core.records import Record

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
