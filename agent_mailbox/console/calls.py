"""A tool call's input as a person reviews it: an edit as a diff, a command as a command, every other field by its name.

Belongs here: from the input to parts of text, and JSON as one reads and edits it. The parts leave nothing out, and no
two different texts look the same. Only a line feed ends a line; an escape shows each character that does not print.
Templates escape the texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

from ..core import codec
from ..core.control.summary import QUESTIONS
from ..core.records import Record
from ..core.text import ascii_json, visible

MOST_COMPARED = 40_000
"""Pairs of lines that are compared; a larger change is shown as its old text and its new one. Comparing may take the
third power of the lines."""
SAME, GONE, NEW = " ", "-", "+"
_WRITES = {"Write": "content", "NotebookEdit": "new_source"}
"""The field of a tool's input that is a new text, by tool."""


class Run(Record):
    """Lines of a text that share a ``sign`` (of a diff; empty in a text that is no diff)."""

    sign: str
    text: str


class CallPart(Record):
    """A field of the input, or the difference that two fields make: ``label``, whether it is a diff, its text."""

    label: str
    is_diff: bool
    runs: tuple[Run, ...]

    @property
    def numbers(self) -> str:
        """Return the number of each line of a diff: of a gone line that in the old text, else that in the new one."""
        old, new, found = 0, 0, []
        for run in self.runs:
            for _ in range(run.text.count("\n")):
                old, new = old + (run.sign != NEW), new + (run.sign != GONE)
                found.append(old if run.sign == GONE else new)
        return "\n".join(map(str, found))


def parts_of_call(tool: str, given: Mapping[str, Any]) -> tuple[CallPart, ...]:
    """Return the whole input of a call in the order it is given."""
    if tool in _LISTS:
        name, word, fits, parts = _LISTS[tool]
        listed = given.get(name)
        if isinstance(listed, list) and listed and all(map(fits, listed)):
            rest = {key: value for key, value in given.items() if key != name}
            each = (parts(one, f"{word} {number} of {len(listed)}: ") for number, one in enumerate(listed, 1))
            return (*_field_parts(rest), *chain.from_iterable(each))
    if tool == "Edit" and _is_edit(given):
        return tuple(_edit_part(given))
    written = _WRITES.get(tool)
    return tuple(
        CallPart(_name_field(key), True, _mark_lines(NEW, value.split("\n")))
        if key == written and isinstance(value, str)
        else _field_part(key, value)
        for key, value in given.items()
    )


def _is_edit(given: Any) -> bool:
    texts = [given.get(key) for key in ("old_string", "new_string")] if isinstance(given, dict) else [None]
    return all(isinstance(text, str) for text in texts)


def _edit_part(given: Mapping[str, Any], prefix: str = "") -> Iterator[CallPart]:
    rest = {key: value for key, value in given.items() if key not in ("old_string", "new_string")}
    yield from _field_parts(rest, prefix)
    runs = _diff_lines(given["old_string"].split("\n"), given["new_string"].split("\n"))
    yield CallPart(f"{prefix}the change", True, tuple(runs))


def _is_question(given: Any) -> bool:
    """Return whether it is one with choices, none of them empty: an empty one would have no part."""
    options = given.get("options") if isinstance(given, dict) else None
    return isinstance(options, list) and options != [] and all(isinstance(one, dict) and one for one in options)


def _question_parts(given: Mapping[str, Any], prefix: str = "") -> Iterator[CallPart]:
    """Yield a question that the model asks the person, and each choice."""
    yield from _field_parts({key: value for key, value in given.items() if key != "options"}, prefix)
    for number, option in enumerate(given["options"], 1):
        texts = [text for text in option.values() if isinstance(text, str)]
        if [*option] == ["label", "description"] and len(texts) == 2 and "\n" not in texts[0]:
            yield CallPart(f"{prefix}choice {number}", False, _plain_runs("\n".join(texts)))
        else:
            yield from _field_parts(option, f"{prefix}choice {number}: ")


_LISTS: Mapping[str, tuple[str, str, Callable[[Any], bool], Callable[[Any, str], Iterator[CallPart]]]] = {
    "MultiEdit": ("edits", "edit", _is_edit, _edit_part),
    QUESTIONS: ("questions", "question", _is_question, _question_parts),
}
"""The field of a tool's input that is a list: what one of it is called, which ones it may have, and their parts."""


def _field_parts(given: Mapping[str, Any], prefix: str = "") -> Iterator[CallPart]:
    return (_field_part(key, value, prefix) for key, value in given.items())


def _field_part(key: str, value: Any, prefix: str = "") -> CallPart:
    return CallPart(prefix + _name_field(key), False, _plain_runs(value))


def _plain_runs(value: Any) -> tuple[Run, ...]:
    text = "\n".join(map(_escape_line, value.split("\n"))) if isinstance(value, str) else pretty_json(value)
    return (Run("", text),)


def _name_field(key: str) -> str:
    """Return the label of a field that was given: in quotes if it could look like one of ours, which are several
    words."""
    shown = _escape_line(key)
    return shown if re.fullmatch(r"[\w.-]+", shown) else f'"{shown}"'


def _diff_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    """Yield the runs of lines that are the same, gone or new."""
    begin = _common_length(old, new)
    end = _common_length(old[begin:][::-1], new[begin:][::-1])
    yield from _mark_lines(SAME, old[:begin])
    old_core, new_core = old[begin : len(old) - end], new[begin : len(new) - end]
    if len(old_core) * len(new_core) > MOST_COMPARED:
        changes = [(0, len(old_core), 0, len(new_core), False)]
    else:
        found = SequenceMatcher(None, old_core, new_core, autojunk=False).get_opcodes()
        changes = [(i1, i2, j1, j2, tag == "equal") for tag, i1, i2, j1, j2 in found]
    for i1, i2, j1, j2, is_same in changes:
        if is_same:
            yield from _mark_lines(SAME, old_core[i1:i2])
        else:
            yield from _mark_lines(GONE, old_core[i1:i2])
            yield from _mark_lines(NEW, new_core[j1:j2])
    yield from _mark_lines(SAME, old[len(old) - end :])


def _common_length(these: Sequence[str], those: Sequence[str]) -> int:
    """Return how many lines at the beginning are the same."""
    different = (place for place, (one, other) in enumerate(zip(these, those, strict=False)) if one != other)
    return next(different, min(len(these), len(those)))


def _mark_lines(sign: str, lines: Sequence[str]) -> tuple[Run, ...]:
    return (Run(sign, "".join(f"{sign} {_escape_line(line)}\n" for line in lines)),) if lines else ()


def _escape_line(line: str) -> str:
    """Return a line with everything that does not print as an escape, white space other than spaces and tabs too."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        char if char == "\t" else visible(char) if not char.isspace() else _escape_character(char) for char in line
    )


def _escape_character(char: str) -> str:
    return char if char == " " else f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def pretty_json(value: Any, indent: str = "") -> str:
    """Return JSON for a person to read and edit, one short value per line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        rows = [
            f"{inner}{ascii_json(codec.dumps(str(key)))}: {pretty_json(item, inner)}" for key, item in value.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + pretty_json(item, inner) for item in value) + f"\n{indent}]"
    return ascii_json(codec.dumps(value, -codec.MAX_DEPTH))


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; for Python 1 is true."""
    return codec.dumps(one, -codec.MAX_DEPTH) == codec.dumps(other, -codec.MAX_DEPTH)


def place_of_error(text: str) -> str:
    """Return where a text stops being JSON, and why; empty if it is JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        return ""
    return ""
