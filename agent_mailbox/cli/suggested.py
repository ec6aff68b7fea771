"""The commands that the program tells people to type: each repeats the options that this one was given.

Belongs here: that rule, for every text of ours. A command that works here works when pasted. Must not import click:
``tests/test_hints.py`` compares the tables with the commands.
"""

from __future__ import annotations

from ..core.text import typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DIR, HOME, SESSION = "--dir", "--home", "--session"
_BEGIN = "`" + "agent-mailbox "
_SENDING = ("send", "reply", "swarm notify", "swarm send")
"""Commands that take their session by ``--from``."""
_ACTING = (
    *("ack", "check", "dead-letters", "history", "mute", "read", "release", "status", "unmute", "wait"),
    *("approve", "deny", "handover", "pending", "note add", "note drop"),
    *("task add", "task cancel", "task claim", "task done", "task drop", "task progress"),
    *("control", "lease", "watch", "swarm create", "swarm join", "swarm leave", "swarm pair"),
)
"""Commands, and groups of commands, that take it by ``--session``."""
_GROUPS = ("control", "engine", "lease", "roster", "steward", "swarm", "teams", "watch")
"""Groups that stand for any of their commands if no word follows."""
_PLACES = {"init": 1, "restore": 2}
"""Commands that may name the mailbox by an argument, each with the words ahead of it."""
_PLACED = ("install", "uninstall")
"""Commands whose place is a project or a user, not a mailbox."""


def complete_commands(text: str, given: Mapping[str, str]) -> str:
    """Return a text of ours in which each command of ours between backticks has the options that were ``given``."""
    if not given or _BEGIN not in text:
        return text
    first, *parts = text.split(_BEGIN)
    pieces = [first]
    for part in parts:
        words, tick, rest = part.partition("`")
        pieces.append(_BEGIN + (with_options(words, given) if tick else words) + tick + rest)
    return "".join(pieces)


def with_options(words: str, given: Mapping[str, str]) -> str:
    """Return a command's words with the options that it takes of those ``given``, ahead of its first option."""
    head, dash, tail = words.partition(" --")
    names = head.split()
    if not names or names[0].startswith("-") or dash + tail == " --help" or (len(names) == 1 and names[0] in _GROUPS):
        return words
    present = words.split()
    if "--for" in present:  # another gives the task
        present.append(SESSION)
    taken = [(option, value) for option, value in _taken_options(names, given) if option not in present]
    added = [f" {option} {typed(value)}" for option, value in taken if option != DIR or not _names_its_place(words)]
    return "".join((head, *added, dash, tail))


def _names_its_place(words: str) -> bool:
    """Return whether a command names its mailbox by an argument: ``init --adopt DIR``, ``restore FILE DIR``."""
    verb = words.partition(" ")[0]
    if verb not in _PLACES:
        return False
    import shlex  # rare in what the program says

    try:
        found = shlex.split(words)
    except ValueError:  # an example that ends within a quote
        found = words.split()
    return sum(not word.startswith("-") for word in found) > _PLACES[verb]


def _taken_options(names: list[str], given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the options that a command takes, with their values."""
    verbs, found = (names[0], " ".join(names[:2])), []
    if SESSION in given and any(verb in _SENDING for verb in verbs):
        found.append(("--from", given[SESSION]))
    elif SESSION in given and any(verb in _ACTING for verb in verbs) and verbs[1] != "lease list":
        found.append((SESSION, given[SESSION]))
    if DIR in given and names[0] not in _PLACED:
        found.append((DIR, given[DIR]))
    if HOME in given and names[0] == "swarm":
        found.append((HOME, given[HOME]))
    return found
