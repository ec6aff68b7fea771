"""Changes that a shell's words make to the variables that identify a session.

Belongs here: which variables, and how words set or remove them. ``own_commands`` decides whether that matters.
"""

from __future__ import annotations

from ..identity import client_variables
from . import shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES = (client_variables.OURS, *client_variables.SESSIONS)
_MARKS = (*VARIABLES, *client_variables.MARKS)
"""Variables that mark a terminal as an agent's: without them it would be the person's."""
_TAKING = {"unset": ("",), "env": ("-u", "--unset"), "export": ("-n",), "declare": ("+x",), "typeset": ("+x",)}
"""Programs that remove variables, each with the prefixes of the options by which it does."""
_EMPTYING = {"-i", "-", "--ignore-environment"}
"""Options by which ``env`` removes all of them."""


def sets(word: str) -> bool:
    """Return whether the word sets a variable that names a session."""
    return shell.is_setting(word) and word.startswith(VARIABLES)


def taken(words: Sequence[str]) -> list[str]:
    """Return the removed variables, each as if it were set to nothing (``NAME=``)."""
    for number, word in enumerate(words):
        program, rest = word.rpartition("/")[2], words[number + 1 :]
        if program == "env" and not _EMPTYING.isdisjoint(rest):
            return [f"{client_variables.SESSIONS[0]}="]
        if program in _TAKING and any(one.startswith(_TAKING[program]) for one in rest):
            return [f"{name}=" for name in _MARKS if any(one.endswith(name) for one in rest)]
    return []
