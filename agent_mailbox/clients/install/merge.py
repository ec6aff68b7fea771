"""Our part of files that belong to others: put in, taken out. Pure: text in, text out.

Belongs here: where our part goes in a settings file, how it is written with few changes, our section of a memory file.
It refuses a merge that would lose something. Must not touch files (``foreign_files`` does).

``hook_entries`` says which hooks are ours.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core import codec
from ...core.records import Record
from ...errors import BadData
from ..foreign_fields import kind_of, refuse_constant, rules_of
from . import commented
from .hook_entries import calls_us, is_covering, is_group, is_ours, make_group, part_called

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from ...known_clients.known_client import Wanted

    T = TypeVar("T", dict[str, Any], list[Any])

BEGIN, END = "<!-- agent-mailbox:begin -->", "<!-- agent-mailbox:end -->"
ALLOW, ASK = "allow", "ask"
_BOM = "\ufeff"


class Ours(Record):
    """Our part of the settings: hooks, each with its command, and other settings, whose lists are merged with
    theirs. ``flat``: the hooks stand in no groups, and this is the key of a hook's seconds."""

    hooks: Sequence[tuple[Wanted, str]]
    more: Mapping[str, Any]
    flat: str = ""


class Form(Record):
    """The format of a settings file, as far as writing keeps it. ``indent`` None: all on one line. ``text``: the file
    itself, if it has comments."""

    indent: str | None = "  "
    spaced: bool = True
    ascii: bool = False
    newline: str = "\n"
    head: str = ""
    tail: str = "\n"
    text: str = ""


# -- a settings file as text ------------------------------------------------------------------------------------------


def parse_settings(path: str, data: bytes, *, comments: bool = False) -> tuple[dict[str, Any], Form]:
    """Return the settings and their form; an empty file, or one of comments alone, has no settings. ``comments``: the
    client accepts them.

    Raises ``BadData`` for what the client would not take either, and for a key that occurs twice: one would be lost.
    """

    def object_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if (key := codec.repeated_key(pairs)) is not None:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        return dict(pairs)

    def finite(word: str) -> float:
        if float(word) - float(word) != 0:
            raise ValueError(f"the number {word[:20]} is out of range")
        return float(word)

    try:
        text = data.decode("utf-8")
        body = text.removeprefix(_BOM)
        plain = commented.blanked(body) if comments else body
        if not plain.strip():
            newline = newline_of(text)
            head = text.rstrip() + newline if body.strip() else text[: len(text) - len(body)]
            return {}, Form(head=head, newline=newline, tail=newline)
        settings = json.loads(plain, object_pairs_hook=object_once, parse_constant=refuse_constant, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise _refuse_change(path, f"it is not JSON: {error}") from None
    return _require(path, "the whole", settings, dict), _form_of(text).replace(text=text if plain != body else "")


def write_settings(settings: Mapping[str, Any], form: Form, before: Mapping[str, Any] | None = None) -> bytes:
    """Return the settings as a file of that form. ``before``: what they were; a file with comments keeps its text."""
    if form.text and before is not None:
        text = commented.edited(form.text.removeprefix(form.head), before, settings)
        return (form.head + text).encode("utf-8", "surrogatepass")
    separators = None if form.spaced or form.indent is not None else (",", ":")
    text = json.dumps(settings, indent=form.indent, separators=separators, ensure_ascii=form.ascii)
    text = form.head + text.replace("\n", form.newline) + form.tail
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair: JSON can spell it, UTF-8 cannot
        return write_settings(settings, form.replace(ascii=True))


def _form_of(text: str) -> Form:
    whole = text.removeprefix(_BOM)
    body = whole.strip()
    lines = [line for line in body.splitlines()[1:] if line.strip()]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))] if lines else None
    if not body.strip("{} \t\r\n"):
        indent = Form.indent
    return Form(
        indent=indent,
        spaced='": ' in body or ":" not in body,
        ascii=text.isascii() and "\\u" in text,
        newline=newline_of(text),
        head=text[: len(text) - len(whole)],
        tail=whole[len(whole.rstrip()) :],
    )


def newline_of(text: str) -> str:
    """Return a file's line ending, by its first line."""
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"


def _refuse_change(path: str, what: str) -> BadData:
    return BadData(f"cannot change {path}: {what}", "nothing was changed; correct the file, then repeat the command")


def _require(path: str, what: str, value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise _refuse_change(path, f"{what} is not {kind_of(kind())}")
    return value


# -- settings: put in, taken out --------------------------------------------------------------------------------------


def merge_ours(path: str, settings: Mapping[str, Any], ours: Ours) -> dict[str, Any]:
    """Return the settings with ours in them, once each, in the place of an earlier installation's; all else stays where
    it was. Raises ``BadData`` if the settings have another shape than the client's."""
    result = dict(settings)
    hooks = dict(_require(path, "hooks", result.get("hooks", {}), dict))
    for wanted, command in ours.hooks:
        if not wanted.on:
            continue  # this version of the client has no event for it
        groups = _require(path, f"hooks.{wanted.on}", hooks.get(wanted.on, []), list)
        hooks[wanted.on] = _with_hook(groups, wanted, command, ours.flat)
    for other in dict.fromkeys(wanted.other for wanted, _ in ours.hooks if wanted.other in hooks):
        _put_value(hooks, other, _without_hooks(hooks[other]))
    if ours.hooks:
        result["hooks"] = hooks
    return _lay_over(path, "", result, ours.more)


def without_exclusions(settings: Mapping[str, Any], is_one: Callable[[Any], bool]) -> dict[str, Any]:
    """Return the settings without some of the commands that run outside the sandbox."""
    result = dict(settings)
    sandbox = result.get("sandbox")
    if not isinstance(sandbox, dict):
        return result
    excluded = sandbox.get("excludedCommands")
    if isinstance(excluded, list) and any(map(is_one, excluded)):
        result["sandbox"] = {**sandbox, "excludedCommands": [word for word in excluded if not is_one(word)]}
    return result


def _lay_over(path: str, what: str, there: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(there)
    for key, value in ours.items():
        name = f"{what}.{key}" if what else key
        if isinstance(value, dict):
            if value := _lay_over(path, name, _require(path, name, result.get(key, {}), dict), value):
                result[key] = value
        elif isinstance(value, list):
            if value:
                items = _require(path, name, result.get(key, []), list)
                result[key] = [*items, *(item for item in value if item not in items)]
        else:
            result[key] = value
    return result


def _with_hook(groups: list[Any], wanted: Wanted, command: str, flat: str) -> list[Any]:
    """Return the groups with our hook in the place of an earlier one, else at the end; a person's own that does it
    counts. ``flat``: see ``Ours``; each entry is then as a group of one hook, for all calls."""

    def hooks_in(one: Any) -> list[Any]:
        return [one] if flat else one["hooks"] if is_group(one) else []

    def covers(one: Any) -> bool:
        return bool(flat) or is_covering(one, wanted.matcher)

    every = ((one, hook) for one in groups for hook in hooks_in(one) if part_called(hook) == wanted.part)
    there = any(calls_us(hook) and not is_ours(hook) and covers(one) for one, hook in every)
    kept: list[Any] = []
    for one in groups:
        inner = []
        for hook in hooks_in(one):
            if not is_ours(hook) or part_called(hook) != wanted.part:
                inner.append(hook)
            elif not there and covers(one):
                inner.append({**hook, "command": command})
                there = True
        if flat:
            kept += inner
        elif inner or not hooks_in(one):
            kept.append({**one, "hooks": inner} if inner else one)
    return kept if there else [*kept, make_group(wanted, command, flat)]


def without_ours(settings: Mapping[str, Any], is_ours_by: Callable[[str, Any], bool]) -> dict[str, Any]:
    """Return the settings without our hooks and rules (``is_ours_by`` gets their key), nor what that leaves empty."""
    result = dict(settings)
    hooks = result.get("hooks")
    if isinstance(hooks, dict):
        kept = {event: _without_hooks(groups) for event, groups in hooks.items()}
        _put_value(result, "hooks", {event: groups for event, groups in kept.items() if groups or not hooks[event]})
    for key in (ALLOW, ASK):
        result = without_rules(result, key, partial(is_ours_by, key))
    return result


def without_rules(settings: Mapping[str, Any], key: str, is_one: Callable[[Any], bool]) -> dict[str, Any]:
    """Return the settings without some of the rules under ``key``, nor what that leaves empty."""
    result = dict(settings)
    if any(is_one(rule) for rule in rules_of(result, key)):
        fewer = dict(result["permissions"])
        _put_value(fewer, key, [rule for rule in rules_of(result, key) if not is_one(rule)])
        _put_value(result, "permissions", fewer)
    return result


def without_settings(settings: Mapping[str, Any], ours: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without ours, unless they were there ``before``, nor what that leaves empty."""
    result = dict(settings)
    for key, value in ours.items():
        if key not in result:
            continue
        there, was = result[key], before.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            _put_value(result, key, without_settings(there, value, was if isinstance(was, dict) else {}))
        elif isinstance(value, list) and isinstance(there, list):
            kept = was if isinstance(was, list) else []
            _put_value(result, key, [item for item in there if item not in value or item in kept])
        elif there == value and key not in before:
            del result[key]
        elif there == value:
            result[key] = was
    return result


def _without_hooks(groups: Any) -> Any:
    if not isinstance(groups, list):
        return groups
    kept = []
    for one in groups:
        if not is_group(one) and is_ours(one):
            continue
        inner = [hook for hook in one["hooks"] if not is_ours(hook)] if is_group(one) else None
        if inner is None or len(inner) == len(one["hooks"]):
            kept.append(one)
        elif inner:
            kept.append({**one, "hooks": inner})
    return kept


def _put_value(table: dict[str, Any], key: str, value: Any) -> None:
    """Put the value in the key's place; remove the key if the value is empty and the old one was not."""
    if value or not table[key]:
        table[key] = value
    else:
        del table[key]


# -- our section of a memory file -------------------------------------------------------------------------------------


def with_section(path: str, text: str, section: str) -> str:
    """Return the text with ``section`` between our markers: where they are, else at the end.

    Raises ``BadData`` if only one of the markers is there: the text behind it might not be ours.
    """
    newline = newline_of(text)
    block = newline.join([BEGIN, *section.splitlines(), END])
    before, found, after = _split_section(path, text)
    if found:
        return before + block + without_section(path, after)
    gap = "" if not text or text.endswith(newline * 2) else newline if text.endswith("\n") else newline * 2
    return text + gap + block + newline


def without_section(path: str, text: str) -> str:
    """Return the text without our sections, and the empty line before each. Raises as above."""
    before, found, after = _split_section(path, text)
    while found:
        newline = newline_of(text)
        after = after.removeprefix(newline)
        if before.endswith(newline * 2) or before == newline:
            before = before[: -len(newline)]
        text = before + after
        before, found, after = _split_section(path, text)
    return text


def _split_section(path: str, text: str) -> tuple[str, bool, str]:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if bool(begin) != bool(end) or (not begin and END in text):
        raise _refuse_change(path, f"only one of {BEGIN} and {END} is there")
    return before, bool(begin), after
