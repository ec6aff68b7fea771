"""A shell's text as the simple commands in it, seen through quotes, compounds, substitutions and here-documents.

Belongs here: the grammar of honest commands. Pure. Nothing is expanded: a word that holds ``$X`` keeps it. The callers
(``own_commands``, ``rules``) decide what a command means. An example: ``A=1 x "y z" <f && $(w)`` holds ``Simple(["A=1",
"x", "y z"], [], ["f"], [])``, and ``w``.
"""

from __future__ import annotations

from ..core.records import Record
from .quoting import BREAKS, JOINED, SPACE, QuotingReader, Unreadable, may_compute

__all__ = ["ShellCommand", "Unreadable", "is_setting", "simple_commands"]

MAX_DEPTH = 20
"""Substitutions within each other: no honest command has more, and Python's stack ends somewhere."""
_OPERATORS = ("<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">")
_LEADING = ("if", "then", "else", "elif", "while", "until", "do", "{", "!", "time", "coproc")
"""Words behind which a command begins."""
_COMPOUND = ("for", "select", "case", "function")


class ShellCommand(Record):
    """One simple command. ``words`` are unquoted, assignments (``NAME=value``) first; ``inputs`` come from
    here-documents and here-strings; ``sources`` are files it reads (``<``), ``targets`` files it writes (``>``)."""

    words: list[str]
    inputs: list[str]
    sources: list[str]
    targets: list[str]

    @property
    def computes(self) -> bool:
        """Return whether one of its expansions may run what a variable holds, or set one (``quoting.may_compute``)."""
        return any(map(may_compute, (*self.words, *self.inputs, *self.sources, *self.targets)))


def is_setting(word: str) -> bool:
    """Return whether a word before a command sets a variable (``NAME=``, ``NAME+=``, ``NAME[0]=``)."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.removesuffix("+").partition("[")[0].isidentifier()


def _count_leading(words: list[str]) -> int:
    """Return the number of leading words that only say how the rest runs."""
    first = words[0] if words else ""
    compound = words[2:3] != [] and words[2] in (*_LEADING, *_COMPOUND)
    if first == "function" or (first == "coproc" and compound) or (first == "time" and words[1:2] == ["-p"]):
        return 2
    return 3 if first in ("for", "select") and compound else first in _LEADING


def simple_commands(text: str, depth: int = 0) -> list[ShellCommand]:
    """Return every simple command in the text, substitutions included. Raises ``Unreadable``."""
    reader = _Reader(text, depth)
    reader.read_commands("")
    return reader.found


class _Reader(QuotingReader):
    """One pass over a text."""

    def __init__(self, text: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable("too deep")
        super().__init__(text)
        self.depth = depth
        self.found: list[ShellCommand] = []
        self._cases = 0
        self._waiting: list[tuple[str, bool, bool, list[str]]] = []

    def read_commands(self, end: str) -> None:
        """Read commands up to and including the character that ends them (empty: the end of the text)."""
        one = ShellCommand([], [], [], [])
        opened = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == end and not opened:
                self._finish_command(one)
                self.at += 1
                if not self._cases:
                    return
                one = ShellCommand([], [], [], [])  # the parenthesis ends a pattern of ``case``
            elif char in SPACE:
                self.at += 1
            elif self.text.startswith(JOINED, self.at):
                self.at += 2
            elif char == "#":
                self._skip_comment()
            elif char == "(" and one.words in ([], ["for"]) and self.read_arithmetic():
                one.words.append("((")
            elif char in BREAKS:
                self._finish_command(one)
                one = ShellCommand([], [], [], [])
                self.at += 1
                opened += {"(": 1, ")": -1 if opened else 0}.get(char, 0)
                if char == "\n":
                    self._here_documents()
            elif char in "<>":
                self._read_redirection(one)
            else:
                start = self.at
                word = self.read_word()
                numbers = self.text[self.at : self.at + 1] in ("<", ">") and self.text[start : self.at].isdigit()
                one.words.extend([] if numbers else [word])
        if end:
            raise Unreadable(f"no {end}")
        self._finish_command(one)
        self._here_documents()

    def _finish_command(self, one: ShellCommand) -> None:
        words = one.words
        while leading := _count_leading(words):
            del words[:leading]
        if words and words[0] in ("case", "esac") and "esac" not in words[1:]:
            self._cases = max(self._cases + (1 if words[0] == "case" else -1), 0)
        if one.words or one.inputs or one.sources or one.targets:
            self.found.append(one)  # the text of a here-document is added later

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def read_substitution(self) -> None:
        """Read a substitution, from behind its parenthesis."""
        inner = _Reader(self.text, self.depth + 1)
        inner.at = self.at
        inner.read_commands(")")
        self.at = inner.at
        self.found += inner.found

    def read_backticks_text(self, text: str) -> None:
        """Read the text of backticks."""
        self.found += simple_commands(text, self.depth + 1)

    # -- redirections -------------------------------------------------------------------------------------------------

    def _read_redirection(self, one: ShellCommand) -> None:
        if self.text.startswith(("<(", ">("), self.at):
            self.at += 2
            self.read_substitution()
            return
        operator = next(o for o in _OPERATORS if self.text.startswith(o, self.at))
        self.at += len(operator)
        self.refuse_joined()
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        target = self.read_word()
        if operator == "<<<":
            one.inputs.append(target)
        elif operator in ("<<", "<<-"):
            raw = self.text[start : self.at]
            self._waiting.append((target, operator == "<<-", not set(raw) & set("'\"\\"), one.inputs))
        elif not (operator.endswith("&") and (target.isdigit() or target == "-")):
            if operator[0] == "<":
                one.sources.append(target)
            if operator != "<":
                one.targets.append(target)

    def _here_documents(self) -> None:
        for end, tabs, expanded, inputs in self._waiting:
            lines: list[str] = []
            while self.at < len(self.text):
                line = self._read_line(joined=expanded)
                if (line.lstrip("\t") if tabs else line) == end:
                    break
                lines.append(line)
            body = "\n".join(lines)
            inputs.append(body)
            if expanded:
                self._read_within(body)
        self._waiting.clear()

    def _read_line(self, *, joined: bool) -> str:
        """Return the line that begins here; ``joined``: with those that a backslash at its end joins."""
        parts: list[str] = []
        while True:
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            parts.append(self.text[self.at : end])
            self.at = end + 1
            if not joined or end >= len(self.text) or not (len(parts[-1]) - len(parts[-1].rstrip("\\"))) % 2:
                return "".join(parts)
            parts[-1] = parts[-1][:-1]

    def _read_within(self, body: str) -> None:
        """Read the substitutions in a here-document; no other character has a meaning there, nor do quotes."""
        inner = _Reader(body, self.depth + 1)
        while inner.at < len(body):
            char = body[inner.at]
            if char == "\\":
                inner.at += 2
            elif char == "$":
                inner.read_dollar(quoted=True)
            elif char == "`":
                inner.read_backticks()
            else:
                inner.at += 1
        self.found += inner.found
