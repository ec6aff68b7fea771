"""The entries of a settings file's hooks: which are ours, and what one of ours looks like.

A hook is ours if it calls our shim or our program and does nothing else. One that does more (sets a variable, goes
somewhere first) is the person's own way of calling us: it counts as installed, and nobody changes it.
"""

from __future__ import annotations

from ...core.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SHIM, PROGRAM = "agent-mailbox-hook", "agent-mailbox"
TIMEOUT = 10
"""Seconds the client waits for a hook of ours. Its own limits fit badly: 600 hold up a session behind a dead disk, and
the 1.5 that the hooks of a session's end share may pass before a cold interpreter has started."""
BELL = "Doorbell"
"""What a hook calls that stays behind its event, to wake the session."""
BELL_TIMEOUT = 14 * 24 * 3600
"""Seconds the client leaves a doorbell alone. Its timers take 24 days at most, and end at once above that."""
PERMIT = "Permit"
"""What a hook calls before every tool: may the session do this? Beside the one that looks at what commands of ours are
run as whom, for that one reads what a tool is given, and this one's guard nothing."""
PERMISSION = "PermissionRequest"
"""The event with which the client would ask its person."""
PERMIT_TIMEOUT = 600
"""Seconds the client leaves those two alone, which wait for an answer: its own limit, written down lest it change."""
CLIENTS = ("codex", "gemini")
"""The last word of a hook that tells the shim whose it is."""
FILES = "Files"
"""The command that a hook calls before the tools that write files."""
_PARTS = (BELL, PERMIT, FILES)
_EXEC = "exec"
"""Before a doorbell's command: the client ends what waits beside it with itself, and gives a shell that dies of that a
second and a half, in which its person waits; the doorbell in the shell's place it does not."""


class Wanted(Record):
    """A hook that an installation wants: on which of the client's events it calls which of ours, with what matcher and
    time-out (in the client's unit)."""

    on: str
    event: str
    matcher: str | None = None
    timeout: int = TIMEOUT

    @property
    def is_bell(self) -> bool:
        """Is it a doorbell?"""
        return self.event == BELL

    def command(self, call: str) -> str:
        """The hook's command line, of the one that calls ours."""
        return f"{_EXEC} {call}" if self.is_bell else call

    @property
    def part(self) -> str:
        """Which of the hooks of one event it is."""
        return self.event if self.event in _PARTS else ""


def is_ours(hook: Any) -> bool:
    """A hook that only calls us, from wherever we were installed."""
    words = _words(hook)
    words = words[:-1] if words[-1:] and words[-1] in CLIENTS else words
    return bool(words) and words[1:-1] == (["hook"] if _base(words[0]) == PROGRAM else []) and _calls(words)


def calls_us(hook: Any) -> bool:
    """A hook that calls us, whatever else it does."""
    return _calls(_words(hook))


def part(hook: Any) -> str:
    """Which of the hooks that one event may have it calls: the doorbell, the one that permits, the one that
    guards files, or (empty) the other."""
    words = {*map(str.lower, _words(hook)[1:])}
    return next((name for name in _PARTS if name.lower() in words), "")


def is_bell(hook: Any) -> bool:
    """Is it the doorbell that a hook of ours calls?"""
    return part(hook) == BELL


def _calls(words: Sequence[str]) -> bool:
    following = [*words[1:], "", ""]
    return any(
        (_base(word) == SHIM and following[number]) or (_base(word) == PROGRAM and following[number] == "hook")
        for number, word in enumerate(words)
    )


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _words(hook: Any) -> list[str]:
    import shlex

    command = hook.get("command") if isinstance(hook, dict) else None
    try:
        return called(shlex.split(command)) if isinstance(command, str) else []
    except ValueError:
        return []  # no shell would run it


def called(words: list[str]) -> list[str]:
    """The words of a command line without the one that has the shell make way for it."""
    return words[1:] if words[:1] == [_EXEC] else words


def covers(group: Mapping[str, Any], matcher: str | None) -> bool:
    """Does the group's matcher let all calls of its event through that ``matcher`` does (None: every one)?"""
    its = group.get("matcher")
    if its in (None, "", "*"):
        return True
    return matcher is not None and isinstance(its, str) and {*matcher.split("|")} <= {*its.split("|")}


def group(wanted: Wanted, command: str) -> dict[str, Any]:
    """A group of hooks with nothing but this one."""
    stays = {"asyncRewake": True} if wanted.is_bell else {}
    hook = {"type": "command", "command": command, **stays, "timeout": wanted.timeout}
    return {**({"matcher": wanted.matcher} if wanted.matcher else {}), "hooks": [hook]}


def is_group(group: Any) -> bool:
    """Has it the shape of a group of hooks?"""
    return isinstance(group, dict) and isinstance(group.get("hooks"), list)
