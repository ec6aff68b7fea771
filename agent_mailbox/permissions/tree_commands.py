"""The commands of git in a shell's text that change a whole work tree: whoever else works there loses its footing.

Belongs here: which commands those are, and in which trees each may act. Pure. If the text does not tell the tree, each
directory counts that it names. A variable or an alias of the person's own goes unseen, as does a script.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..core.records import Record
from . import directory_changes, shell
from .command_forms import SHELLS, forms_of_commands, program_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    IsFile = Callable[[str], bool]

VERBS = ("checkout", "switch", "reset", "stash", "rebase", "clean", "worktree", "restore", "bisect", "pull")
"""The shim looks for the same words."""
_VALUED = ("-c", "--namespace", "--config-env", "--attr-source", "--super-prefix")
_ALIASES = {"co": "checkout", "sw": "switch"}
"""Names by which many people call two of them."""
_NESTS = ("(", "`", "||")
_UNKNOWN = frozenset("$`*?[{")
_HARMLESS_STASHES = ("list", "show", "create", "store")
_SETTING = re.compile(r"\bGIT_(?:WORK_TREE|DIR)=[\"']?([^\s\"';&|]+)")
MOST = 20
"""Commands of a text, and places of each; no honest one has more."""


class TreeCommand(Record):
    """One such command: its words in short, and a directory of the tree in which it acts."""

    words: str
    directory: str


def find_tree_commands(text: str, here: str, home: str, is_file: IsFile) -> list[TreeCommand]:
    """Return the commands of a text that starts in ``here``; an unreadable text has none. ``is_file`` tells branches
    from files."""
    if "git" not in text:
        return []
    try:
        return list(dict.fromkeys(_found(text, here, home, is_file)))[:MOST]
    except shell.Unreadable:
        return []


def _found(text: str, here: str, home: str, is_file: IsFile) -> Iterator[TreeCommand]:
    places = [here, *(_tree_of_setting(_joined(here, name, home)) for name in _SETTING.findall(text))]
    nests = any(mark in text for mark in _NESTS)
    for words in forms_of_commands(text):
        name = program_name(words[0]) if words else ""
        nests = nests or name in SHELLS
        changed = directory_changes.directory_after(words)
        changed += directory_changes.directories_for(words) if name == "env" else []
        for directory in changed:
            more = [] if _UNKNOWN & set(directory) or directory == directory_changes.UNKNOWN else [
                _joined(one, directory, home) for one in places
            ]  # fmt: skip
            places = [*dict.fromkeys([*more, *(places if nests or not more or name == "env" else ())])]
            del places[MOST // 2 : -MOST // 2]  # the furthest stay, and the nearest: subshells double them each time
        if name == "git":
            yield from _of_git(words[1:], places, home, is_file)


def _of_git(words: Sequence[str], places: Sequence[str], home: str, is_file: IsFile) -> Iterator[TreeCommand]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        option, equals, given = word.partition("=")
        if option in ("-C", "--work-tree", "--git-dir"):
            directory = given if equals else value
            places = [_joined(one, directory, home) for one in places]
            places = [_tree_of_setting(one) for one in places] if option == "--git-dir" else places
        at += 2 if word in ("-C", "--work-tree", "--git-dir", *_VALUED) else 1
    if at >= len(words):
        return
    verb, arguments = _ALIASES.get(words[at], words[at]), words[at + 1 :]
    for place in places:
        if verb == "worktree":
            operands = [one for one in arguments if not one.startswith("-")]
            if operands[:1] in (["remove"], ["move"]) and len(operands) > 1:
                yield TreeCommand(f"git worktree {operands[0]}", _joined(place, operands[1], home))
        elif verb in VERBS and _is_whole(verb, arguments, _looking(is_file, place, home)):
            yield TreeCommand(f"git {verb}", place)


def _looking(is_file: IsFile, place: str, home: str) -> IsFile:
    return lambda name: is_file(_joined(place, name, home))


def _is_whole(verb: str, arguments: Sequence[str], is_file: IsFile) -> bool:
    """Return whether a command may change more than the files that it names."""
    if {"-h", "--help"} & {*arguments}:
        return False
    end = arguments.index("--") if "--" in arguments else len(arguments)
    operands = [one for one in arguments[:end] if not one.startswith("-")]
    named = arguments[end + 1 :]
    options = [one for one in arguments[:end] if one.startswith("-")]
    if verb in ("switch", "bisect"):
        return bool(arguments) and operands[:1] not in (["log"], ["view"], ["visualize"])
    if verb == "rebase":
        return not {"--show-current-patch", "--edit-todo"} & {*options}
    if verb == "pull":
        return any(one in ("-r", "--rebase") or one.startswith("--rebase=") for one in options)
    if verb == "clean":
        return not any(one == "--dry-run" or (one[:2] != "--" and "n" in one) for one in options)
    if verb == "stash":
        deed, operands = (operands[0], operands[1:]) if operands else ("push", operands)
        if deed in _HARMLESS_STASHES:
            return False
        return deed != "push" or _all(named or operands)
    if named:
        return _all(named)
    if verb == "restore":
        return _all(operands)
    if verb == "reset":
        return len(operands) < 2 and not (operands and is_file(operands[0]))
    return bool(arguments) and not (operands and is_file(operands[-1]))  # checkout


def _all(paths: Sequence[str]) -> bool:
    """Return whether one of the paths means a whole tree; no path is all."""
    return not paths or any(one.rstrip("/") in (".", "..", ":", "", "*", ":/*") or one == ":/" for one in paths)


def _joined(place: str, name: str, home: str) -> str:
    if name == "~" or name.startswith("~/"):
        return home + name[1:]
    return name if name.startswith("/") else f"{place}/{name}"


def _tree_of_setting(path: str) -> str:
    return path.removesuffix("/").removesuffix("/.git") or "/"
