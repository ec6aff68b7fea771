"""The files that a shell's text may name, and the directories in which it may name them.

Belongs here: the words of a text and of each text within it that a shell may run, and the way of its ``cd``s. Pure.
``command_forms`` knows which texts those are; ``rules`` compares what is found here with a rule.

An example: ``cd a && sh -c 'cd b; cat "x"'`` names ``x``, in the call's directory, in ``a`` and in ``a/b``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import command_forms, directory_changes, patterns, shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .patterns import Where

MAX_NAME = 4096
"""Characters of a file's path: no system that we run on takes more."""
MAX_PLACES = 10
"""Directories that one text may change to: looking at each costs time."""
_UNKNOWN = frozenset("$`{")


class NamedFiles:
    """The findings in a text of a call. ``places``: where its commands may run, by their directories. Any word counts:
    which programs read or write is unknown."""

    def __init__(self, text: str, call: Where) -> None:
        """Read the text. Raises ``Unreadable`` where it is uncertain what runs."""
        self.places = {call.cwd: call}
        self._call = call
        self._names: dict[str, None] = {}
        self._ends: dict[tuple[str, str, bool], Where] = {}
        self._still: set[tuple[str, bool]] = set()
        self._moves = 0  # counts the steps, and the texts within that may hold some
        self._read(text, call, 0, sure=True)

    @property
    def names(self) -> list[str]:
        """The names, from the home where a variable says so."""
        return [_at_home(name) for name in self._names if 0 < len(name) <= MAX_NAME]

    def _read(self, text: str, start: Where, depth: int, *, sure: bool) -> Where:
        """Read a text that a shell runs at ``start``; return where it ends. ``sure``: it is no data."""
        key, moves = (text, start.cwd, sure), self._moves
        if (text, sure) in self._still:
            return start
        if key in self._ends or (depth > command_forms.MAX_DEPTH and not sure):
            self._moves += 1
            return self._ends.get(key, start)
        if depth > command_forms.MAX_DEPTH:
            raise shell.Unreadable("too deep")
        self._ends[key] = here = start
        found = shell.simple_commands(text)
        piped = any(map(command_forms.is_piped, found))
        for simple in found:
            self._add_names(simple)
            told = dict.fromkeys(directory_changes.directories_for(simple.words))
            beside = [self._go(to, (start, here)) for to in told]
            for to in _steps(simple.words) if sure else directory_changes.directory_after(simple.words):
                here = self._go(to, (start, here))
            for handed in dict.fromkeys(command_forms.handed_texts(simple, piped=piped)):
                ends = [self._read_handed(handed, place, depth + 1) for place in (here, *beside)]
                here = ends[0] if handed.stays else here
        self._ends[key] = here
        if moves == self._moves:
            self._still.add((text, sure))  # it names the same wherever it runs
        return here

    def _read_handed(self, handed: command_forms.HandedText, place: Where, depth: int) -> Where:
        try:
            return self._read(handed.text, place, depth, sure=handed.sure)
        except shell.Unreadable:
            if handed.sure:
                raise
            return place  # it is no text of a shell: a message, most likely

    def _go(self, to: str, starts: Sequence[Where]) -> Where:
        """Note a directory, also from where the call is: a subshell may have ended. Return it from the last start."""
        self._moves += 1
        for start in (self._call, *starts):
            cwd = patterns.absolute_path(_at_home(to), start)
            self.places.setdefault(cwd, self._call.replace(cwd=cwd))
        if len(self.places) > MAX_PLACES:
            raise RecursionError("too many directories")
        return self.places[cwd]

    def _add_names(self, simple: shell.ShellCommand) -> None:
        words = simple.words[1:]
        if simple.words and shell.is_setting(simple.words[0]):
            value = _at_home(simple.words[0].partition("=")[2])
            words += [value] * _UNKNOWN.isdisjoint(value)  # else the variable is judged where it is used
        for word in (*words, *simple.sources, *simple.targets, *simple.inputs):
            plain = word.replace("=", " ").split()
            self._names.update(dict.fromkeys((word, *plain, *(part[1:] for part in plain if part[0] == "@"))))


def _steps(words: Sequence[str]) -> list[str]:
    """Return the directories to which words change one by one, whatever comes before a ``cd``."""
    goes = [place for place, word in enumerate(words, 1) if command_forms.program_name(word) in ("cd", "pushd")]
    return [next((one for one in words[place:] if one[:1] != "-"), "~") for place in goes]


def _at_home(word: str) -> str:
    """Return the path without the usual variables."""
    for name, stands_for in (("$HOME", "~"), ("${HOME}", "~"), ("$PWD", "."), ("${PWD}", ".")):
        if word == name or word.startswith(f"{name}/"):
            return stands_for + word[len(name) :]
    return word
