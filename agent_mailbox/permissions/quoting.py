"""A shell's words: quotes, escapes, and where a substitution ends.

Belongs here: what one word is. ``shell`` reads commands and what joins them. A text that shells read differently, or
that only obfuscation writes, is ``Unreadable``: the caller then fails closed.
"""

from __future__ import annotations

SPACE = " \t\r"
BREAKS = ";&|()\n"
ENDS = f"{SPACE}{BREAKS}<>"
JOINED = "\\\n"
"""A continued line: shells drop these two characters, even within an operator."""
_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBERS = {"x": (16, 2), "u": (16, 4), "U": (16, 8)}
"""Base and most digits of a character's number in ``$'…'``, by its letter; without one it is octal."""
_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_NAMING = frozenset(_NAMES)
ONE, MANY = "\0", "\1"
"""In a word's form: a part that only the running shell knows, within one word, or perhaps several words or none."""
_OPEN, _CLOSE, _SET = "\2", "\3", "\4"
"""In a form that is being made: braces, and a bracket, that no quote covers."""
_DIGITS = {8: frozenset("01234567"), 16: frozenset("0123456789abcdefABCDEF")}


_SPECIAL = ("@}", "*}", "?}", "$}", "!}", "-}", "#}")
"""The parameters in ``${…}`` that are no names."""
_PLAIN = ("}", "[@]}", "[*]}", "-", "+", "?", "#", "%", "/", "^", ",", ":-", ":+", ":?")
"""The ends and operators behind a name in ``${…}`` that neither compute nor set."""
_COMPUTING = ("$((", "$(\\\n", "$[", "$~", "$^", "$=")


class Unreadable(ValueError):
    """The text is not shell, or more than this grammar knows."""


class Word(str):
    """A word without its quotes, unexpanded. Its ``form`` has ``ONE`` and ``MANY`` for what is expanded.

    An example: ``"$x"'$y'`` is ``$x$y``, of the form ``ONE`` and ``$y``. ``is_handed``: a program such as ``xargs``
    adds it.
    """

    form: str
    is_handed = False


def make_word(text: str, form: str) -> Word:
    """Return the word of this text and form."""
    word = Word(text)
    word.form = form
    return word


def form_of(word: str) -> str:
    """Return the form of a word: one that no shell read is what it looks like."""
    return word.form if isinstance(word, Word) else word


def may_compute(text: str) -> bool:
    """Return whether an expansion in the text may compute with what a variable holds, or set one.

    A shell runs commands that it finds there. An example: ``echo 'a[$(w)]'; echo ${HOME:_}`` runs ``w``, and so does
    ``echo '$(w)'; echo ${_@P}``: ``_`` is the last word before.
    """
    if any(form in text for form in _COMPUTING):
        return True
    if not all(map(_is_plain, text.split("${")[1:])):
        return True
    return any(part.lstrip(_NAMES)[:1] == "[" and part[0] in _NAMES for part in text.split("$")[1:] if part)


def _is_plain(rest: str) -> bool:
    """Return whether ``${`` before the rest of a text only looks a variable up."""
    if rest.startswith(_SPECIAL):
        return True
    counted = rest.startswith("#")
    named = rest[counted:]
    after = named.lstrip(_NAMES)
    if after == named:
        return False
    if counted or after[:1] == "[":
        return after.startswith(_PLAIN[:3])
    place, closed, _ = after[1:].partition("}")
    return after.startswith(_PLAIN) or bool(after[:1] == ":" and closed and not place.strip(" 0123456789:-"))


class QuotingReader:
    """A text and the place reached in it (``at``). A subclass reads what is within substitutions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._form: list[str] = []

    def read_substitution(self) -> None:
        """Read a substitution, from behind its parenthesis to behind its end."""
        raise NotImplementedError

    def read_backticks_text(self, text: str) -> None:
        """Read the text of backticks."""
        raise NotImplementedError

    def read_word(self) -> Word:
        """Return the word that begins here, without its quotes and unexpanded."""
        parts: list[str] = []
        self._form = []
        while self.at < len(self.text) and (char := self.text[self.at]) not in ENDS:
            parts.append(self.read_piece(char))
        form = "".join(self._form)
        return make_word("".join(parts), _expanded_form(form) if {_OPEN, _CLOSE, _SET} & set(form) else form)

    def _certain_text(self, text: str) -> str:
        """Return the text, which is so in the word's form as well."""
        self._form.append(text)
        return text

    def read_piece(self, char: str) -> str:
        """Return the next piece of a word: a character, or all that is quoted or substituted."""
        if char == "\\":
            self.at += 2
            following = self.text[self.at - 1 : self.at]
            return self._certain_text("" if following == "\n" else following)
        if char == "'":
            return self._certain_text(self._read_until("'"))
        if char == '"':
            return self._read_double_quoted()
        if char == "$":
            return self.read_dollar()
        if char == "`":
            return self.read_backticks()
        self.at += 1
        self._form.append(_EXPANDING.get(char, char))
        return char

    def refuse_joined(self) -> None:
        """Refuse an operator that goes on in the next line: only obfuscation writes that."""
        if self.text.startswith(JOINED, self.at):
            raise Unreadable("an operator in two lines")

    def _read_until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Unreadable(f"no second {quote}")
        found = self.text[self.at + 1 : end]
        self.at = end + 1
        return found

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
                parts.append(self.read_dollar(quoted=True))
            elif char == "`":
                parts.append(self.read_backticks(quoted=True))
            else:
                parts.append(self._certain_text(char))
                self.at += 1
        raise Unreadable('no second "')

    def read_dollar(self, *, quoted: bool = False) -> str:
        """Pass over a substitution; returns its text."""
        start, before = self.at, len(self._form)
        self.at += 1
        self.refuse_joined()
        following = self.text[self.at : self.at + 1]
        if following == "$":
            self._form.append(MANY)
            return "$"
        if following == "(":
            if not self.read_arithmetic():
                self.at += 1
                self.read_substitution()
        elif following == "{":
            self._read_braces(quoted=quoted)
        elif following == "[":
            raise Unreadable("arithmetic in its old form")
        elif following == "'" and not quoted:
            return self._read_ansi_quoted()
        elif following == '"' and not quoted:
            return self._read_double_quoted()
        elif not self._pass_name():
            return self._certain_text("$")
        text = self.text[start : self.at]
        is_many = not quoted or text[1] == "@" or text.startswith("${@") or "[@]" in text
        self._form[before:] = [MANY if is_many else ONE]
        return text

    def _pass_name(self) -> bool:
        """Pass over a parameter's name; returns whether one is there."""
        start = self.at
        if self.text[start : start + 1] in tuple("0123456789@*#?-!"):
            self.at += 1
        else:
            while self.text[self.at : self.at + 1] in _NAMING:
                self.at += 1
        return self.at > start

    def read_arithmetic(self) -> bool:
        """Pass over ``((…))``, and read the commands within; returns whether it was there."""
        if not self.text.startswith(("((", f"({JOINED}"), self.at):
            return False
        level = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "'\"$`\\":
                self.read_piece(char)
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
                self.read_dollar(quoted=quoted)
            else:
                self.read_piece(char)
        raise Unreadable("no }")

    def _read_ansi_quoted(self) -> str:
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "'":
                return self._certain_text("".join(parts))
            parts.append(self._read_escape() if char == "\\" else char)
        raise Unreadable("no second '")

    def _read_escape(self) -> str:
        """Return the character for a backslash sequence in ``$'…'``."""
        char = self.text[self.at : self.at + 1]
        base, most = _NUMBERS.get(char, (8, 3))
        self.at += char in _NUMBERS
        start = self.at
        while self.at < start + most and self.text[self.at : self.at + 1] in _DIGITS[base]:
            self.at += 1
        if self.at > start:
            number = int(self.text[start : self.at], base) % (256 if base == 8 else 0x110000)
            if not number:
                raise Unreadable("a character that ends a text")
            return chr(number)
        self.at += char not in _NUMBERS
        return _ESCAPES.get(char, char)

    def read_backticks(self, *, quoted: bool = False) -> str:
        """Pass over a substitution in backticks; returns its text."""
        start = self.at
        self._form.append(ONE if quoted else MANY)
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
        self.read_backticks_text("".join(parts))
        return self.text[start : self.at]


_EXPANDING = {"*": MANY, "?": MANY, "[": _SET, "{": _OPEN, "}": _CLOSE}
"""Characters that expand where no quote covers them."""


def _expanded_form(form: str) -> str:
    """Return the form with ``MANY`` for braces and brackets that expand; others (``HEAD@{1}``) are characters."""
    begins, _, rest = form.partition(_OPEN)
    inner, close, ends = rest.rpartition(_CLOSE)
    if close and (not inner or "," in inner or ".." in inner):
        form = f"{begins}{MANY}{ends}"
    begins, _, rest = form.replace(_OPEN, "{").replace(_CLOSE, "}").partition(_SET)
    _, close, ends = rest.rpartition("]")
    return f"{begins}{MANY}{ends}" if close else form.replace(_OPEN, "{").replace(_CLOSE, "}").replace(_SET, "[")
