"""The files that a shell's text may name, and the directories in which it may name them.

Belongs here: the words of a text and of each text within it that a shell may run, and the way of its ``cd``s. Pure.
``command_forms`` knows which texts those are; ``rules`` compares what is found here with a rule.

An example: ``cd a && sh -c 'cd b; cat "x"'`` names ``x``, in the call's directory, ``a``, ``b`` and ``a/b``.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from . import command_forms, directory_changes, patterns, shell

if TYPE_CHECKING:
    from .patterns import Where

MAX_NAME = 4096
"""Characters of a file's path: no system that we run on takes more."""
MAX_PLACES = 20
"""Directories of a text that are followed: looking at each costs time."""
_ANYWHERE = f"/{patterns.ANY}"
_UNKNOWN = frozenset("$`{")
_EXPANSION = re.compile(r"[$`](?:.*(?:[`)}]|\$[\w@*]*)|[\w@*]*)", re.DOTALL)
"""The part of a word that only the running shell knows: from the first expansion to the last."""
_LOOP = re.compile(r"(?:^|[;&)}\n])[^\S\n]*done\b")
_LATER = re.compile(r"\bfunction\s+([\w-]+)|(?<![\w-])([\w-]+)\s*\(\s*\)|\balias\s+([\w-]+)=|\b(trap)\s")
"""A definition, by its name; what it holds runs where it is called. ``trap`` runs a text later. Each run of letters is
looked at once: a long one would take minutes, and no client waits for the hook so long."""
_CODE = str.maketrans(dict.fromkeys("'\"`,;:()[]{}<>|&=\\", " "))
"""The signs between a name and the code around it: ``open('x')``, ``HEAD:x``, ``--from=x``."""


class NamedFiles:
    """The findings in a text of a call. ``places``: where its commands may run, by their directories. Any word counts:
    which programs read or write is unknown."""

    def __init__(self, text: str, call: Where) -> None:
        """Read the text. Raises ``Unreadable`` where it is uncertain what runs."""
        self.places = {call.cwd: call}
        self._call = call
        self._names: dict[str, None] = {}
        self._read_at: dict[tuple[str, bool], int] = {}
        self._commands: dict[str, list[shell.ShellCommand]] = {}
        self._handed: dict[int, list[command_forms.HandedText]] = {}
        for _ in range(_count_runs(text)):
            self._read(text, 0, sure=True)

    @property
    def names(self) -> list[str]:
        """The names, from the home where a variable says so."""
        return [_as_path(name) for name in self._names if 0 < len(name) <= MAX_NAME]

    def _read(self, text: str, depth: int, *, sure: bool) -> None:
        """Read a text that a shell may run. ``sure``: it is no data."""
        if self._read_at.get((text, sure)) == len(self.places):
            return  # it was read, and no place is new since
        if depth > command_forms.MAX_DEPTH:
            if sure:
                raise shell.Unreadable("too deep")
            return
        self._read_at[text, sure] = len(self.places)
        if is_new := text not in self._commands:  # it may be read as often as there are places
            self._commands[text] = shell.simple_commands(text)
        found = self._commands[text]
        piped = any(map(command_forms.is_piped, found))
        for simple in found:
            if is_new:
                self._add_names(simple)
            steps = directory_changes.directories_after if sure else directory_changes.directory_after
            for to in dict.fromkeys((*directory_changes.directories_for(simple.words), *steps(simple.words))):
                self._add_places(to)
            if id(simple) not in self._handed:
                texts = sorted(command_forms.handed_texts(simple, piped=piped), key=lambda one: one.sure)
                self._handed[id(simple)] = [*{one.text: one for one in texts}.values()]  # of equal texts the sure one
            for handed in self._handed[id(simple)]:
                self._read_handed(handed, depth + 1)

    def _read_handed(self, handed: command_forms.HandedText, depth: int) -> None:
        try:
            self._read(handed.text, depth, sure=handed.sure)
        except shell.Unreadable:
            if handed.sure:
                raise  # else it is no text of a shell: a message, most likely

    def _add_places(self, to: str) -> None:
        """Add where a step leads from each place before. Any earlier step may not count: it failed, was not run, or was
        in a subshell that has ended."""
        path = _as_path(to)
        ways = {patterns.absolute_path(path, start) for start in self.places.values()} - self.places.keys()
        if len(self.places) + len(ways) > MAX_PLACES:
            ways = {_ANYWHERE}
        elif path in (directory_changes.UNKNOWN, "*"):
            ways.add(_ANYWHERE)
        self.places.update({cwd: self._call.replace(cwd=cwd) for cwd in ways})

    def _add_names(self, simple: shell.ShellCommand) -> None:
        words = simple.words[1:]
        if simple.words and shell.is_setting(simple.words[0]):
            value = _at_home(simple.words[0].partition("=")[2])
            words += [value] * _UNKNOWN.isdisjoint(value)  # else the variable is judged where it is used
        for word in (*words, *simple.sources, *simple.targets, *simple.inputs):
            plain = [*word.split(), *word.translate(_CODE).split()]
            self._names.update(dict.fromkeys((word, *plain, *(part[1:] for part in plain if part[0] == "@"))))


def _count_runs(text: str) -> int:
    """Return how many times a part of the text may run, at most: each may begin where the one before it ended."""
    if _LOOP.search(text):
        return MAX_PLACES
    names = {found[found.lastindex or 0] for found in _LATER.finditer(text)}
    counts = Counter(re.findall(r"[\w-]+", text)) if names else Counter[str]()
    return min(1 + sum(counts[name] - (name != "trap") for name in names), MAX_PLACES)


def _as_path(word: str) -> str:
    """Return the path without the usual variables, and with ``patterns.ANY`` for what only the running shell knows.

    A word of which nothing is known is one name here: else each ``echo $X`` would name every file.
    """
    known = _EXPANSION.sub(patterns.ANY, _at_home(word))
    if "/" not in known or not known.strip(f"/{patterns.ANY}"):
        return re.sub(f"{patterns.ANY}(/{patterns.ANY})*/*", "*", known)
    return f"/{known}" if known[0] == patterns.ANY else known


def _at_home(word: str) -> str:
    """Return the path without the usual variables."""
    for name, stands_for in (("$HOME", "~"), ("${HOME}", "~"), ("$PWD", "."), ("${PWD}", ".")):
        if word == name or word.startswith(f"{name}/"):
            return stands_for + word[len(name) :]
    return word
