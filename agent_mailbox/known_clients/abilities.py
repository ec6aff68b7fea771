"""The abilities that a client's sessions can have: one table, read off each client's module.

Belongs here: their names and what each means. ``install --list`` names them, and the real clients' tests show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.records import Record
from .known_client import AFTER_TOOL, AFTER_TOOLS, BEFORE_TOOL, BELL, FILES, PERMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from .known_client import KnownClient


class Ability(Record):
    """One ability. ``means``: what a session then has, for people. ``has`` tells, from a client's module, whether the
    client has it."""

    means: str
    has: Callable[[KnownClient], bool]


def _by_hook(*events: str) -> Callable[[KnownClient], bool]:
    return lambda client: any(wanted.event in events for wanted in client.hooks())


def _is_installed(client: KnownClient) -> bool:
    return client.is_installed


ABILITIES = {
    "start": Ability("the hook at its start registers it and shows its mail", _by_hook("SessionStart")),
    "prompt": Ability("mail comes beside a prompt", _by_hook("UserPromptSubmit")),
    "between tools": Ability("mail comes between two tool calls of a turn", _by_hook(AFTER_TOOL, AFTER_TOOLS)),
    "stop": Ability("mail at the end of a turn is answered in one more", _by_hook("Stop")),
    "wake when idle": Ability("mail wakes it while nothing runs", _by_hook(BELL)),
    "end": Ability("its end is told, and it is frozen", _by_hook("SessionEnd")),
    "once": Ability("resumed, it is shown nothing again", _is_installed),
    "role once": Ability("another holder of its role is not shown what it claimed", _is_installed),
    "seen": Ability("its conversation proves what its model saw", lambda client: bool(client.conversation)),
    "own session": Ability("its agent's commands know their session", _is_installed),
    "own name": Ability("a command in another's name refuses to run", _is_installed),
    "guard": Ability("a hook stops a command that would send a file unasked", _by_hook(BEFORE_TOOL)),
    "guard files": Ability("no tool writes the mailbox's files", _by_hook(FILES)),
    "permit": Ability("its lead denies one tool call and approves another", _by_hook(PERMIT)),
    "plain mail unasked": Ability("plain mail commands run unasked", lambda client: client.frees_mail),
    "tasks": Ability("`/bye` reaches the model as the person asks for it", _is_installed),
    "clean uninstall": Ability("`uninstall` restores its files byte for byte, a person's own hooks too", _is_installed),
    "tools": Ability("it reads and answers its mail by MCP tools", lambda client: not client.is_installed),
}
"""Each ability by its name, in the order in which lists have them."""


def abilities_of(client: KnownClient) -> tuple[str, ...]:
    """Return the names of what a client's sessions can have."""
    return tuple(name for name, ability in ABILITIES.items() if ability.has(client))
