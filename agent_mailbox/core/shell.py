"""A shell's text as the simple commands in it, seen through quotes, compounds, substitutions and here-documents.

Belongs here: the grammar, as far as somebody who hides nothing writes it. Pure. Nothing is expanded: a word that holds
``$X`` keeps it. What a command means is the business of who asks (``claude.commands``, ``core.rules``).
"""

from __future__ import annotations

from .records import Record

MAX_DEPTH = 20
"""Substitutions within each other: more is no honest command, and Python's own stack ends somewhere."""
_SPACE = " \t\r"
_BREAKS = ";&|()\n"
_ENDS = f"{_SPACE}{_BREAKS}<>"
_OPERATORS = ("<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">")
_LEADING = ("if", "then", "else", "elif", "while", "until", "do", "{", "!", "time", "coproc")
"""Words behind which a command begins."""


class Unreadable(ValueError):
    """The text is no shell's, or more than this grammar knows."""


class Simple(Record):
    """One simple command: its words without their quotes, those that set a variable for it (``NAME=value``) first, and
    the texts it is handed on standard input (here-documents, here-strings), and the files it is redirected from
    (``<``) and to (``>``)."""

    words: list[str]
    inputs: list[str]
    sources: list[str]
    targets: list[str]


def commands(text: str, depth: int = 0) -> list[Simple]:
    """Every simple command in the text, also within substitutions. Raises ``Unreadable``."""
    reader = _Reader(text, depth)
    reader.read("")
    return reader.found


class _Reader:
    """One pass over a text; ``at`` is where it stands."""

    def __init__(self, text: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable("too deep")
        self.text = text
        self.depth = depth
        self.at = 0
        self.found: list[Simple] = []
        self._waiting: list[tuple[str, bool, bool, list[str]]] = []

    def read(self, end: str) -> None:
        """Commands up to the character that ends them (empty: the end of the text), which is consumed."""
        one = Simple([], [], [], [])
        opened = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == end and not opened:
                self._finish(one)
                self.at += 1
                return
            if char in _SPACE:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                self._comment()
            elif char in _BREAKS:
                self._finish(one)
                one = Simple([], [], [], [])
                self.at += 1
                opened += {"(": 1, ")": -1 if opened else 0}.get(char, 0)
                if char == "\n":
                    self._here_documents()
            elif char in "<>":
                self._redirection(one)
            else:
                start = self.at
                word = self._word()
                numbers = self.text[self.at : self.at + 1] in ("<", ">") and self.text[start : self.at].isdigit()
                one.words.extend([] if numbers else [word])
        if end:
            raise Unreadable(f"no {end}")
        self._finish(one)
        self._here_documents()

    def _finish(self, one: Simple) -> None:
        while one.words and one.words[0] in _LEADING:
            del one.words[0]
        if one.words or one.inputs or one.sources or one.targets:
            self.found.append(one)  # a here-document's text comes into its list later

    def _comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    # -- words --------------------------------------------------------------------------------------------------------

    def _word(self) -> str:
        parts: list[str] = []
        while self.at < len(self.text) and (char := self.text[self.at]) not in _ENDS:
            parts.append(self._piece(char))
        return "".join(parts)

    def _piece(self, char: str) -> str:
        if char == "\\":
            self.at += 2
            following = self.text[self.at - 1 : self.at]
            return "" if following == "\n" else following
        if char == "'":
            return self._until("'")
        if char == '"':
            return self._double()
        if char == "$":
            return self._dollar()
        if char == "`":
            return self._backticks()
        self.at += 1
        return char

    def _until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Unreadable(f"no second {quote}")
        found = self.text[self.at + 1 : end]
        self.at = end + 1
        return found

    def _double(self) -> str:
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(parts)
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                parts.append({"\n": ""}.get(following, following if following in '"\\$`' else char + following))
                self.at += 2
            elif char == "$":
                parts.append(self._dollar(quoted=True))
            elif char == "`":
                parts.append(self._backticks())
            else:
                parts.append(char)
                self.at += 1
        raise Unreadable('no second "')

    def _dollar(self, *, quoted: bool = False) -> str:
        start = self.at
        following = self.text[start + 1 : start + 2]
        if self.text.startswith("$((", start):
            self._balanced("(", ")")
        elif following == "(":
            self.at += 2
            self._nested()
        elif following == "{":
            self._balanced("{", "}")
        elif following == "'" and not quoted:
            return self._ansi()
        elif following == '"' and not quoted:
            self.at += 1
            return self._double()
        else:
            self.at += 1
        return self.text[start : self.at]

    def _nested(self) -> None:
        inner = _Reader(self.text, self.depth + 1)
        inner.at = self.at
        inner.read(")")
        self.at = inner.at
        self.found += inner.found

    def _balanced(self, opening: str, closing: str) -> None:
        """``${…}`` and ``$((…))``: to where it ends; commands within it count."""
        level = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 1
            elif char == "'" and closing == "}":
                self._until("'")
                continue
            elif char == "`":
                self._backticks()
                continue
            elif self.text.startswith("$(", self.at) and not self.text.startswith("$((", self.at):
                self.at += 2
                self._nested()
                continue
            level += (char == opening) - (char == closing)
            self.at += 1
            if not level and char == closing:
                return
        raise Unreadable(f"no {closing}")

    def _ansi(self) -> str:
        self.at += 2
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "'":
                return "".join(parts)
            if char == "\\":
                char = self.text[self.at : self.at + 1]
                char = {"n": "\n", "t": "\t"}.get(char, char)
                self.at += 1
            parts.append(char)
        raise Unreadable("no second '")

    def _backticks(self) -> str:
        start = self.at
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != "`":
            if self.text[self.at] == "\\" and self.text[self.at + 1 : self.at + 2] in ("`", "\\", "$"):
                self.at += 1
            parts.append(self.text[self.at : self.at + 1])
            self.at += 1
        if self.at >= len(self.text):
            raise Unreadable("no second `")
        self.at += 1
        self.found += commands("".join(parts), self.depth + 1)
        return self.text[start : self.at]

    # -- redirections -------------------------------------------------------------------------------------------------

    def _redirection(self, one: Simple) -> None:
        if self.text.startswith(("<(", ">("), self.at):
            self.at += 2
            self._nested()
            return
        operator = next(o for o in _OPERATORS if self.text.startswith(o, self.at))
        self.at += len(operator)
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        target = self._word()
        if operator == "<<<":
            one.inputs.append(target)
        elif operator in ("<<", "<<-"):
            raw = self.text[start : self.at]
            self._waiting.append((target, operator == "<<-", not set(raw) & set("'\"\\"), one.inputs))
        elif not (operator.endswith("&") and (target.isdigit() or target == "-")):
            (one.sources if operator[0] == "<" else one.targets).append(target)

    def _here_documents(self) -> None:
        for end, tabs, expanded, inputs in self._waiting:
            lines: list[str] = []
            while self.at < len(self.text):
                newline = self.text.find("\n", self.at)
                newline = len(self.text) if newline < 0 else newline
                line = self.text[self.at : newline]
                self.at = newline + 1
                if (line.lstrip("\t") if tabs else line) == end:
                    break
                lines.append(line)
            body = "\n".join(lines)
            inputs.append(body)
            if expanded:
                self._within(body)
        self._waiting.clear()

    def _within(self, body: str) -> None:
        """The substitutions in a here-document; other characters mean nothing there, quotes neither."""
        inner = _Reader(body, self.depth + 1)
        while inner.at < len(body):
            char = body[inner.at]
            if char == "\\":
                inner.at += 2
            elif char == "$":
                inner._dollar(quoted=True)
            elif char == "`":
                inner._backticks()
            else:
                inner.at += 1
        self.found += inner.found
