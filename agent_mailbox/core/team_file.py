"""A team's file, ``team.toml``: its members, what is forbidden by role, the tasks to begin with.

Belongs here: its keys and what is wrong with one. The file comes with a checkout, so it names no program and no
permission: whoever changes it could start one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import BadData, Refused
from .address import check_name, check_role, check_tag
from .records import USER, Record
from .text import near

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

MOST = 32
"""Members of a team."""
LONG = 20_000
"""Characters of a prompt."""
_MEMBER = ("client", "role", "tags", "lead", "model", "prompt", "worktree", "wakes_per_day")
_TASK = ("title", "to", "body")
_PROGRAM = ("command", "args", "program", "env", "allow", "mode", "permissions", "permission_mode", "hosts")


class PlannedMember(Record):
    """A member. ``lead`` is the person, another member's name, or empty. ``worktree``: it works in its own
    checkout. ``wakes_per_day``: how often mail may wake it, if the person's own limit is not lower."""

    name: str
    client: str
    prompt: str
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    lead: str = ""
    model: str = ""
    worktree: bool = False
    wakes_per_day: int | None = None


class FirstTask(Record):
    """A task to begin with."""

    title: str
    to: str
    body: str = ""


class Team(Record):
    """A team, as its file has it. ``denied``: the rules of those who hold a role, by that role."""

    members: tuple[PlannedMember, ...]
    denied: Mapping[str, tuple[str, ...]] = {}
    tasks: tuple[FirstTask, ...] = ()

    def behind_leads(self) -> list[PlannedMember]:
        """Return the members, each behind its lead."""
        left = [*self.members]
        found: list[PlannedMember] = []
        while left:
            names = {one.name for one in left}
            ready = [one for one in left if one.lead not in names]
            if not ready:
                raise Refused(f"{left[0].name} and {left[0].lead} would lead each other", "name another lead")
            found += ready
            left = [one for one in left if one not in ready]
        return found


def parse_team(table: Mapping[str, Any], clients: Collection[str], namespaces: Collection[str]) -> Team:
    """Return the team of a file's table; raise ``BadData`` for what is wrong in it. ``clients``: those that can be
    started."""
    _check_keys(table, ("member", "rules", "task"), "the file")
    entries = _tables(table.get("member"), "member")
    if not 0 < len(entries) <= MOST:
        raise BadData(f"the team has {len(entries)} members", f"write 1 to {MOST} tables such as [member.Ann]")
    members = tuple(_member(name, entry, (*clients,), (*namespaces,)) for name, entry in entries.items())
    names = {one.name for one in members}
    _refuse_alike([*names], {role for one in members for role in one.roles})
    for one in members:
        if one.lead not in ("", USER, *names) or one.lead == one.name:
            raise BadData(f"[member.{one.name}] lead: {one.lead!r} is no other member", "name a member, or user")
    rules = _tables(table.get("rules"), "rules")
    return Team(
        members,
        {check_role(role).removeprefix("role:"): _denied(role, entry) for role, entry in rules.items()},
        _tasks(table, (*namespaces,)),
    )


def _refuse_alike(names: Sequence[str], roles: Collection[str]) -> None:
    """Refuse names of which the second member would be refused after the first was started."""
    for at, name in enumerate(names):
        if name in roles or name.casefold() in [other.casefold() for other in names[:at]]:
            raise BadData(f"[member.{name}]: another member or a role is called so", "choose another name")


def _member(
    name: str, entry: Mapping[str, Any], clients: tuple[str, ...], namespaces: tuple[str, ...]
) -> PlannedMember:
    where = f"[member.{name}]"
    _check_keys(entry, _MEMBER, where)
    client = _text(entry, "client", where)
    if client not in clients:
        raise BadData(f"{where} client: {client!r} cannot be started", f"use one of {', '.join(clients)}")
    worktree = entry.get("worktree", False)
    if not isinstance(worktree, bool):
        raise BadData(f"{where} worktree must be true or false", "correct it")
    wakes = entry.get("wakes_per_day")
    if wakes is not None and (not isinstance(wakes, int) or isinstance(wakes, bool) or wakes < 1):
        raise BadData(f"{where} wakes_per_day must be a whole number above 0", "write wakes_per_day = 20")
    model = _text(entry, "model", where, "")
    if model.startswith("-"):
        raise BadData(f"{where} model: {model!r} is no model", "a model's name begins with a letter")
    return PlannedMember(
        name=check_name(name),
        client=client,
        prompt=_text(entry, "prompt", where, f"You are {name}. Wait for mail: it is shown to you."),
        roles=tuple(check_role(role).removeprefix("role:") for role in _texts(entry, "role", where)),
        tags=tuple(check_tag(tag, namespaces) for tag in _texts(entry, "tags", where)),
        lead=_text(entry, "lead", where, ""),
        model=model,
        worktree=worktree,
        wakes_per_day=wakes,
    )


def _denied(role: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    _check_keys(entry, ("deny",), f"[rules.{role}]")
    return _texts(entry, "deny", f"[rules.{role}]")


def _tasks(table: Mapping[str, Any], namespaces: tuple[str, ...]) -> tuple[FirstTask, ...]:
    entries = table.get("task", [])
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise BadData("task must be tables", "write [[task]] above each")
    return tuple(_task(one, namespaces) for one in entries)


def _task(entry: Mapping[str, Any], namespaces: tuple[str, ...]) -> FirstTask:
    where = "[[task]]"
    _check_keys(entry, _TASK, where)
    task = FirstTask(_text(entry, "title", where), _text(entry, "to", where), _text(entry, "body", where, ""))
    if not task.title.strip() or not task.to.strip() or "," in task.to:
        raise BadData(f"{where} needs a title, and one address in to", 'write title = "…" and to = "role:builder"')
    if ":" in task.to:
        check_tag(task.to, namespaces)
    return task


def _tables(found: object, name: str) -> Mapping[str, Mapping[str, Any]]:
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise BadData(f"{name} must be tables", f"write [{name}.NAME] above each")
    return found


def _check_keys(entry: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in entry:
        if key in _PROGRAM:
            raise BadData(
                f"{where}: {key} has no effect in a team's file, which names no program and no permission",
                "set programs and their arguments under [up] of your own configuration",
            )
        if key not in known:
            meant = near(key, [*known])
            raise BadData(
                f"{where}: unknown key {key!r}", f"did you mean {meant[0]}?" if meant else f"it has {', '.join(known)}"
            )


def _text(entry: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str) or len(value) > LONG or (default is None and not value):
        size = f"{'1 to' if default is None else 'at most'} {LONG} characters"
        raise BadData(f"{where} {key} must be a text of {size}", f'write {key} = "…"')
    if "\0" in value:
        raise BadData(f"{where} {key} has a null character, which no program can be given", "take it out")
    return value


def _texts(entry: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadData(f"{where} {key} must be a list of texts", f'write {key} = ["…"]')
    return tuple(value)


EXAMPLE = """\
# A team for `agent-mailbox up`. It names no program and no permission: these are in your own configuration.
[member.Ann]
client = "{client}"
role = "architect"
prompt = "You are Ann, the architect. Decide what comes to you by mail, and keep the task list in order."

[member.Bob]
client = "{client}"
role = "builder"
lead = "Ann"
prompt = "You are Bob. Take the next task by `agent-mailbox task claim --next`, and ask Ann before a design decision."

[rules.builder]
deny = ["Bash(git push:*)"]

[[task]]
title = "Say hello to the team"
to = "role:builder"
body = "Write Ann one line by mail."
"""
"""A file that works, for a client."""
