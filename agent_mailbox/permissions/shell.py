"""A shell's text as the simple commands in it, seen through quotes, compounds, substitutions and here-documents.

Belongs here: the grammar of honest commands. Pure. Nothing is expanded: a word that holds ``$X`` keeps it. The callers
(``own_commands``, ``rules``) decide what a command means. An example: ``A=1 x "y z" <f && $(w)`` holds ``Simple(["A=1",
"x", "y z"], [], ["f"], [])``, and ``w``.
"""

from __future__ import annotations

import re
from itertools import dropwhile

from ..core.records import Record
from .quoting import CLOSE, EXPANDING, MANY, ONE, OPEN, SET, Word, expanded_form, form_of, make_word, may_compute

MAX_DEPTH = 20
"""Substitutions within each other: no honest command has more, and Python's stack ends somewhere."""
MAX_TEXT = 1 << 17
"""Characters of a text. Linux starts no program with a longer word, and a client does not wait for a long look."""
SPACE = " \t\r"
BREAKS = ";&|()\n"
ENDS = f"{SPACE}{BREAKS}<>"
JOINED = "\\\n"
"""A continued line: shells drop these two characters, even within an operator."""
_PARAMETER = re.compile(r"[@*#?!-]|[0-9]|\w+", re.ASCII)
_BACKTICKED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ANSI_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ANSI_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|(.))", re.DOTALL
)
_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OPERATORS = ("<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">")
_LEADING = ("if", "then", "else", "elif", "while", "until", "do", "{", "!", "time", "coproc")
"""Words behind which a command begins."""
_COMPOUND = ("for", "select", "case", "function")
_NAMING = ("declare", "typeset", "local", "read", "unset", "mapfile", "readarray")
_NAMING_BY = {"printf": "-v", "test": "-v", "[": "-v", "wait": "-p"}
"""Builtins that compute the place in an array that a word names, these behind an option."""


class Unreadable(ValueError):
    """The text is not shell, or more than this grammar knows: one that shells read differently, or that only
    obfuscation writes. The caller fails closed."""


class ShellCommand(Record):
    """One simple command. ``words`` are unquoted, assignments (``NAME=value``) first; ``inputs`` come from
    here-documents and here-strings; ``sources`` are files it reads (``<``), ``targets`` files it writes (``>``)."""

    words: list[str]
    inputs: list[str]
    sources: list[str]
    targets: list[str]

    @property
    def computes(self) -> bool:
        """Return whether it may run what a variable or a text holds, or set one.

        An expansion may (``quoting.may_compute``), and so may a builtin: ``read 'a[$(w)]'``."""
        texts = (*self.words, *self.inputs, *self.sources, *self.targets)
        return any(map(may_compute, texts)) or _names_place(self.words)


def is_setting(word: str) -> bool:
    """Return whether a word before a command sets a variable (``NAME=``, ``NAME+=``, ``NAME[0]=``)."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.removesuffix("+").partition("[")[0].isidentifier()


def _names_place(words: list[str]) -> bool:
    """Return whether a builtin may be given a place in an array, or makes an integer, whose every value is computed."""
    name, *rest = [*dropwhile(lambda one: is_setting(one) or one in ("builtin", "command"), words)] or [""]
    option = _NAMING_BY.get(name)
    if name not in _NAMING and not (option and any(one.startswith(option) for one in rest)):
        return False
    return any(
        (one[:1] == "-" and "i" in one) or {"[", ONE, MANY} & set(form_of(one).partition("=")[0]) for one in rest
    )


def _count_leading(words: list[str]) -> int:
    """Return the number of leading words that only say how the rest runs."""
    first = words[0] if words else ""
    compound = words[2:3] != [] and words[2] in (*_LEADING, *_COMPOUND)
    if first == "function" or (first == "coproc" and compound) or (first == "time" and words[1:2] == ["-p"]):
        return 2
    return 3 if first in ("for", "select") and compound else first in _LEADING


def simple_commands(text: str, depth: int = 0) -> list[ShellCommand]:
    """Return every simple command in the text, substitutions included. Raises ``Unreadable``."""
    if len(text) > MAX_TEXT:
        raise Unreadable("too long")
    reader = _Reader(text, depth)
    reader.read_commands("")
    return reader.found


def _escaped_character(found: re.Match[str]) -> str:
    """Return the character for a backslash sequence in ``$'…'``."""
    octal, *others, plain = found.groups()
    if plain is not None:
        return _ESCAPES.get(plain, plain)
    digits = next(filter(None, others), None)
    number = int(octal, 8) % 256 if digits is None else int(digits, 16) % 0x110000
    if not number:
        raise Unreadable("a character that ends a text")
    return chr(number)


class _Reader:
    """One pass over a text, and the place reached in it (``at``)."""

    def __init__(self, text: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable("too deep")
        self.text = text
        self.at = 0
        self.depth = depth
        self.found: list[ShellCommand] = []
        self._cases = 0
        self._form: list[str] = []
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
            elif char == "(" and one.words in ([], ["for"]) and self._read_arithmetic():
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
                word = self._read_word()
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

    def _read_substitution(self) -> None:
        """Read a substitution, from behind its parenthesis."""
        inner = _Reader(self.text, self.depth + 1)
        inner.at = self.at
        inner.read_commands(")")
        self.at = inner.at
        self.found += inner.found

    # -- redirections -------------------------------------------------------------------------------------------------

    def _read_redirection(self, one: ShellCommand) -> None:
        if self.text.startswith(("<(", ">("), self.at):
            self.at += 2
            self._read_substitution()
            return
        operator = next(o for o in _OPERATORS if self.text.startswith(o, self.at))
        self.at += len(operator)
        self._refuse_joined()
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        target = self._read_word()
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
                inner._read_dollar(quoted=True)
            elif char == "`":
                inner._read_backticks()
            else:
                inner.at += 1
        self.found += inner.found

    # -- words --------------------------------------------------------------------------------------------------------

    def _read_word(self) -> Word:
        """Return the word that begins here, without its quotes and unexpanded."""
        parts: list[str] = []
        self._form = []
        while self.at < len(self.text) and (char := self.text[self.at]) not in ENDS:
            parts.append(self._read_piece(char))
        form = "".join(self._form)
        return make_word("".join(parts), expanded_form(form) if {OPEN, CLOSE, SET} & set(form) else form)

    def _certain_text(self, text: str) -> str:
        """Return the text, which is so in the word's form as well."""
        self._form.append(text)
        return text

    def _read_piece(self, char: str) -> str:
        """Return the next piece of a word: a character, or all that is quoted or substituted."""
        if char == "\\":
            self.at += 2
            following = self.text[self.at - 1 : self.at]
            return self._certain_text("" if following == "\n" else following)
        if char == "'":
            start, end = self.at + 1, self.text.find("'", self.at + 1)
            if end < 0:
                raise Unreadable("no second '")
            self.at = end + 1
            return self._certain_text(self.text[start:end])
        if char == '"':
            return self._read_double_quoted()
        if char == "$":
            return self._read_dollar()
        if char == "`":
            return self._read_backticks()
        self.at += 1
        self._form.append(EXPANDING.get(char, char))
        return char

    def _refuse_joined(self) -> None:
        """Refuse an operator that goes on in the next line: only obfuscation writes that."""
        if self.text.startswith(JOINED, self.at):
            raise Unreadable("an operator in two lines")

    def _read_double_quoted(self) -> str:
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(parts)
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                parts.append(
                    self._certain_text(
                        {"\n": ""}.get(following, following if following in '"\\$`' else char + following)
                    )
                )
                self.at += 2
            elif char == "$":
                parts.append(self._read_dollar(quoted=True))
            elif char == "`":
                parts.append(self._read_backticks(quoted=True))
            else:
                parts.append(self._certain_text(char))
                self.at += 1
        raise Unreadable('no second "')

    def _read_dollar(self, *, quoted: bool = False) -> str:
        """Pass over a substitution; returns its text."""
        start, before = self.at, len(self._form)
        self.at += 1
        self._refuse_joined()
        following = self.text[self.at : self.at + 1]
        if following == "$":
            self._form.append(MANY)
            return "$"
        if following == "(":
            if not self._read_arithmetic():
                self.at += 1
                self._read_substitution()
        elif following == "{":
            self._read_braces(quoted=quoted)
        elif following == "[":
            raise Unreadable("arithmetic in its old form")
        elif following == "'" and not quoted:
            return self._read_ansi_quoted()
        elif following == '"' and not quoted:
            return self._read_double_quoted()
        elif name := _PARAMETER.match(self.text, self.at):
            self.at = name.end()
        else:
            return self._certain_text("$")
        text = self.text[start : self.at]
        is_many = not quoted or text[1] == "@" or text.startswith("${@") or "[@]" in text
        self._form[before:] = [MANY if is_many else ONE]
        return text

    def _read_arithmetic(self) -> bool:
        """Pass over ``((…))``, and read the commands within; returns whether it was there."""
        if not self.text.startswith(("((", f"({JOINED}"), self.at):
            return False
        level = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "'\"$`\\":
                self._read_piece(char)
                continue
            self.at += 1
            level += (char == "(") - (char == ")")
            if char == ")" and level == 1:
                if self.text[self.at : self.at + 1] != ")":
                    raise Unreadable("parentheses that may be arithmetic, or commands")
                self.at += 1
                return True
        raise Unreadable("no ))")

    def _read_braces(self, *, quoted: bool) -> None:
        """Pass over ``${…}``, and read the commands within."""
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "}":
                self.at += 1
                return
            if char == "'" and quoted:
                raise Unreadable("an apostrophe in quoted ${…}, which shells read differently")
            if char == "$":
                self._read_dollar(quoted=quoted)
            else:
                self._read_piece(char)
        raise Unreadable("no }")

    def _read_ansi_quoted(self) -> str:
        found = _ANSI_QUOTED.match(self.text, self.at)
        if found is None:
            raise Unreadable("no second '")
        self.at = found.end()
        return self._certain_text(_ANSI_ESCAPE.sub(_escaped_character, found[1]))

    def _read_backticks(self, *, quoted: bool = False) -> str:
        """Read a substitution in backticks; returns its text."""
        found = _BACKTICKED.match(self.text, self.at)
        if found is None:
            raise Unreadable("no second `")
        self._form.append(ONE if quoted else MANY)
        self.at = found.end()
        self.found += simple_commands(re.sub(r"\\([`\\$])", r"\1", found[1]), self.depth + 1)
        return found[0]
