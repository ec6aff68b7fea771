"""The entries of a settings file's hooks: which are ours, and what one of ours looks like.

A hook is ours if it calls our shim or our program and does nothing else. One that does more, like setting a variable
first, is the person's own way of calling us. It counts as installed, and we never change it.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ...known_clients.every_client import CLIENTS
from ...known_clients.known_client import EXEC, PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...known_clients.known_client import Wanted

SHIM, PROGRAM = "agent-mailbox-hook", "agent-mailbox"
WORDS = tuple(client.word for client in CLIENTS)
"""The last word of a hook: it tells the shim which client calls. Claude Code's hooks have none."""


def is_ours(hook: Any) -> bool:
    """Return whether the hook only calls us, wherever we were installed."""
    words = words_of(hook)
    words = words[:-1] if words[-1:] and words[-1] in WORDS else words
    return bool(words) and words[1:-1] == (["hook"] if _base_name(words[0]) == PROGRAM else []) and _is_calling(words)


def calls_us(hook: Any) -> bool:
    """Return whether the hook calls us, whatever else it does."""
    return _is_calling(words_of(hook))


def part_called(hook: Any) -> str:
    """Return which of an event's hooks it calls: the doorbell, the one that permits, the one that guards files, or
    (empty) the other."""
    words = {*map(str.lower, words_of(hook)[1:])}
    return next((name for name in PARTS if name.lower() in words), "")


def _is_calling(words: Sequence[str]) -> bool:
    following = [*words[1:], "", ""]
    return any(
        (_base_name(word) == SHIM and (following[number] or len(words) == 1))  # of no event, by an earlier version
        or (_base_name(word) == PROGRAM and following[number] == "hook")
        for number, word in enumerate(words)
    )


def _base_name(word: str) -> str:
    return word.rpartition("/")[2]


def words_of(hook: Any) -> list[str]:
    """Return the words of a hook's command line."""
    command = hook.get("command") if isinstance(hook, dict) else None
    try:
        return without_exec(shlex.split(command)) if isinstance(command, str) else []
    except ValueError:
        return []  # no shell would run it


def without_exec(words: list[str]) -> list[str]:
    """Return the words of a command line without a leading ``exec``."""
    return words[1:] if words[:1] == [EXEC] else words


def is_covering(group: Mapping[str, Any], matcher: str | None) -> bool:
    """Return whether the group's matcher lets through all calls of its event that ``matcher`` does (None: every
    one)."""
    its = group.get("matcher")
    if its in (None, "", "*"):
        return True
    return matcher is not None and isinstance(its, str) and {*matcher.split("|")} <= {*its.split("|")}


def make_group(wanted: Wanted, command: str, flat: str = "") -> dict[str, Any]:
    """Return a group of hooks with only this one. ``flat``: the hook alone, and the key of its seconds."""
    matcher = {"matcher": wanted.matcher} if wanted.matcher else {}
    if flat:
        return {"type": "command", "command": command, **matcher, flat: wanted.timeout}
    stays = {wanted.stays: True} if wanted.is_bell else {}
    return {**matcher, "hooks": [{"type": "command", "command": command, **stays, "timeout": wanted.timeout}]}


def is_group(group: Any) -> bool:
    """Return whether it has the shape of a group of hooks."""
    return isinstance(group, dict) and isinstance(group.get("hooks"), list)
