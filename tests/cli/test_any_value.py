"""Each option and argument of each command, given what no user means: the documented error, and nothing lost."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import click

from agent_mailbox.cli.group import SECTIONS, cli
from agent_mailbox.commands.main import load_all
from tests.helpers import MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers import Post

LOGS = (MESSAGES, READS, ROSTER)
STARTS = {*SECTIONS["Setting up"], "console", "top", "tail", "statusline", "wait", "engine", "notify"} - {"init"}
STARTS |= {"swarm serve", "control wait", "control log", "teams bridge", "teams import", "steward crontab"}
"""Commands that serve, wait, or change a client."""
KNOWN = {"session": "ann", "sender": "ann", "message_id": "MESSAGE", "task_id": "task-a", "to": "ben", "body": "b"}
"""Values of the other parameters with which a command begins."""
HOSTILE = "a\udcff\x1b[2J\n\u202e" + "x" * 9_000
"""An argument that is not UTF-8, forges a line, and is longer than anybody wants to read again."""


def every_command(group: Any = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The commands of the program that end by themselves, with the words that name each."""
    context = click.Context(group)
    for name in group.list_commands(context):
        here, found = (*path, name), group.get_command(context, name)
        if not {name, " ".join(here)} & STARTS:
            yield from every_command(found, here) if isinstance(found, click.Group) else [(here, found)]


def words_for(param: click.Parameter, value: str) -> list[str]:
    """The words that give a parameter a value."""
    return [f"{param.opts[0]}={value}"] if param.param_type_name == "option" else [value]


def values_of(param: click.Parameter, others: dict[str, str]) -> list[str]:
    """The words by which another parameter is given, if it must be or says who calls."""
    choices = getattr(param.type, "choices", ["b"])
    is_given = param.required or param.name in ("session", "sender", "to", "body")
    return words_for(param, others.get(param.name or "", choices[0])) if is_given else []


def test_no_value_of_any_option_ends_a_command_otherwise_than_documented(post: Post) -> None:
    """It is exit 0 to 5, an error with a hint, one JSON document, and no byte that a terminal takes for an order. All
    that was in the logs is there, in its place."""
    load_all()
    post.register("ann", "--tags", "project:x")
    post.register("ben")
    others = {**KNOWN, "message_id": post.send("ben", "ann")}
    post.ok("task", "add", "--to", "ann", "--title", "t", "--task-id", "task-a", "--session", "ben")
    post.check("ann")
    wrong, tried = [], 0
    for path, command in every_command():
        params = [param for param in command.params if not getattr(param, "is_flag", False)]
        for hostile, value in itertools.product(params, (HOSTILE, "")):
            given = [words_for(one, value) if one is hostile else values_of(one, others) for one in params]
            before, tried = [post.file(name).read_bytes() for name in LOGS], tried + 1
            result = post.call(*path, *itertools.chain(*given), *([] if path == ("export",) else ["--json"]))
            said = result.stdout + result.stderr
            error = {} if path == ("export",) else json.loads(result.stdout).get("error", {})
            faults = {
                "code": result.rc not in range(6) or "unexpected error" in said,
                "hint": result.rc > 1 and bool(error) and not (error["message"] and error["hint"]),
                "line": result.rc > 1 and "error: " not in result.stderr,
                "long": len(said) > 40_000,
                "bytes": not {"\x1b", "\u202e", "\udcff"}.isdisjoint(said),
                "lost": any(not post.file(n).read_bytes().startswith(old) for n, old in zip(LOGS, before, strict=True)),
            }
            wrong += [(*path, hostile.name, value[:9], fault, said[:300]) for fault, is_so in faults.items() if is_so]
    assert not wrong
    assert tried > 500
