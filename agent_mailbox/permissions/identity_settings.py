"""What a shell's words do to the variables that tell commands of ours who they are.

Belongs here: which variables, and how they are set anew or taken away. Whether that matters: ``commands``.
"""

from __future__ import annotations

from ..identity import client_variables
from . import shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES = (client_variables.OURS, client_variables.CLAUDE, client_variables.CODEX)
_MARKS = (*VARIABLES, client_variables.GEMINI, "CLAUDECODE")
"""What tells that a terminal is an agent's: without any of these it would be the person's."""
_TAKING = {"unset": ("",), "env": ("-u", "--unset"), "export": ("-n",), "declare": ("+x",), "typeset": ("+x",)}
"""Programs that take variables away, each with the beginnings of the options by which it does."""
_EMPTYING = {"-i", "-", "--ignore-environment"}
"""Options by which ``env`` takes all of them away."""


def sets(word: str) -> bool:
    """Does the word set one of those that name a session?"""
    return shell.is_setting(word) and word.startswith(VARIABLES)


def taken(words: Sequence[str]) -> list[str]:
    """What the words take away, as if it were set to nothing."""
    for number, word in enumerate(words):
        program, rest = word.rpartition("/")[2], words[number + 1 :]
        if program == "env" and not _EMPTYING.isdisjoint(rest):
            return [f"{client_variables.CLAUDE}="]
        if program in _TAKING and any(one.startswith(_TAKING[program]) for one in rest):
            return [f"{name}=" for name in _MARKS if any(one.endswith(name) for one in rest)]
    return []
