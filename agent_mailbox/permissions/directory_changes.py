"""Changes that a shell's words make to where a command of ours looks for its mailbox.

Belongs here: which words change the directory, or are about a variable that names a mailbox. Pure.
``own_questions`` decides whether that matters.
"""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING

from .command_forms import program_name

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES = ("AGENT_MAILBOX_DIR", "AGENT_SWARM_HOME")
"""Variables that name where a command of ours looks."""
_SEARCH = "CDPATH"
_CHANGING, _WRAPPED = ("cd", "pushd", "popd", "chdir"), ("builtin", "command")
_BESIDE = ("-C", "--chdir", "--directory", "--cwd", "--work-dir")
"""Options by which other programs (``env``, ``uv``, ``make``) run a command elsewhere."""
UNKNOWN = "-"
"""A directory that the words do not tell, as ``cd -`` does not."""


def names_mailbox(word: str) -> bool:
    """Return whether the word is about a variable by which a command looks elsewhere."""
    return any(name in word for name in VARIABLES) or word.startswith(f"{_SEARCH}=")


def directories_for(words: Sequence[str]) -> list[str]:
    """Return the directories in which a program is told to run what follows: ``env -C DIR``."""
    found = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        if option in _BESIDE:
            found.append(value if equals else following)
        elif word[:2] == "-C" and word[2:]:
            found.append(word[2:])
    return found


def directory_after(words: Sequence[str]) -> list[str]:
    """Return the directory in which the words leave the shell; none if they leave it where it is."""
    words = [*dropwhile(_WRAPPED.__contains__, words)]
    return directories_after(words)[:1] if words and program_name(words[0]) in _CHANGING else []


def directories_after(words: Sequence[str]) -> list[str]:
    """Return the directories to which words change one by one, whatever comes before a ``cd``."""
    found = []
    for place, word in enumerate(words, 1):
        name = program_name(word)
        if name in _CHANGING:
            stacks = name in ("popd", "pushd")
            signs = ("-", "+") if stacks else ("-",)
            rest = (words[at] for at in range(place, len(words)))  # a copy of it for each ``cd`` would take seconds
            operands = (one for one in rest if one == UNKNOWN or not one.startswith(signs))
            found.append(next(operands, UNKNOWN if stacks else "~"))
    return found
