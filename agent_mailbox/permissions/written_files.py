"""The files that a shell's text names as written: what a lease can know of a command before it runs.

Belongs here: redirections, and the programs that write the files they name. Pure. Nothing is expanded: a word with
``$`` or a pattern names no file here. A program that opens files of its own, such as a formatter or ``make``, goes
unseen, and so does every path within its input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import shell
from .command_forms import MAX_DEPTH, SHELLS, WRAPPERS, program_name, without_assignments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MOST = 50
"""Files of one text; no honest command names more one by one."""
_UNKNOWN = set("$`*?[{")


def files_written(text: str, here: str) -> list[str]:
    """Return the absolute paths that the text's commands write, started in ``here``; unreadable text has none."""
    try:
        return list(dict.fromkeys(_files_written_by(text, here, 0)))[:MOST]
    except shell.Unreadable:
        return []


def _files_written_by(text: str, here: str | None, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    for simple in shell.simple_commands(text):
        words = _behind_wrappers(without_assignments(simple.words))
        named = [*simple.targets, *_files_named_by(words)]
        yield from filter(None, (_absolute_name(name, here) for name in named))
        if words and program_name(words[0]) in SHELLS:
            for inner in words[1:]:
                if not inner.startswith("-"):
                    yield from _files_written_by(inner, here, depth + 1)
        elif words[:1] in (["cd"], ["pushd"]) and len(words) > 1:
            here = _absolute_name(words[-1], here)


def _absolute_name(name: str, here: str | None) -> str | None:
    if not name or _UNKNOWN & set(name) or "\0" in name or name.startswith(("~", "/dev/")):
        return None
    return name if name.startswith("/") else f"{here}/{name}" if here is not None else None


def _behind_wrappers(words: list[str]) -> list[str]:
    while words and program_name(words[0]) in WRAPPERS and program_name(words[0]) not in SHELLS:
        words = words[1:]
        while words and (words[0][:1] == "-" or words[0][:1].isdigit() or shell.is_setting(words[0])):
            words = words[1:]
    return words


def _files_named_by(words: Sequence[str]) -> list[str]:
    """Return the files that a program writes by its words."""
    if not words:
        return []
    name, arguments = program_name(words[0]), words[1:]
    if name == "git" and arguments and arguments[0] in ("checkout", "restore", "rm", "mv"):
        return _operands_of(arguments[1:])
    return _PROGRAMS[name](arguments) if name in _PROGRAMS else []


def _operands_of(arguments: Sequence[str]) -> list[str]:
    if "--" in arguments:
        end = arguments.index("--")
        return [*_operands_of(arguments[:end]), *arguments[end + 1 :]]
    return [word for word in arguments if not word.startswith("-")]


def _copied_files(arguments: Sequence[str]) -> list[str]:
    """Return the target, and each file in it if it is a directory; of ``-t DIRECTORY`` as well."""
    named, target = _operands_of(arguments), None
    for place, word in enumerate(arguments[:-1]):
        if word in ("-t", "--target-directory"):
            target = arguments[place + 1]
    sources = [one for one in named if one != target] if target is not None else named[:-1]
    target = named[-1] if target is None and named else target
    return [] if target is None else [target, *(f"{target}/{program_name(source)}" for source in sources)]


def _moved_files(arguments: Sequence[str]) -> list[str]:
    """Return the same with the sources, which are gone after it."""
    return [*_operands_of(arguments), *_copied_files(arguments)]


def _edited_files(arguments: Sequence[str]) -> list[str]:
    """Return the files that ``sed`` or ``perl`` edits in place: all operands but the script."""
    short = [word for word in arguments if word.startswith("-") and not word.startswith("--")]
    if not any("i" in word for word in short) and not any(word.startswith("--in-place") for word in arguments):
        return []
    given = {place + 1 for place, word in enumerate(arguments) if word.startswith("-") and word[-1:] in ("e", "f", "E")}
    named = [word for place, word in enumerate(arguments) if not word.startswith("-") and place not in given]
    return named if given else named[1:]


_PROGRAMS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    **dict.fromkeys(("tee", "rm", "unlink", "truncate", "touch", "shred"), _operands_of),
    **dict.fromkeys(("cp", "ln", "install"), _copied_files),
    "mv": _moved_files,
    **dict.fromkeys(("sed", "perl"), _edited_files),
    "dd": lambda arguments: [word.removeprefix("of=") for word in arguments if word.startswith("of=")],
    "patch": lambda arguments: _operands_of(arguments)[:1],
}
