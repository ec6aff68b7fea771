"""docs/commands.md from click: each command with its arguments, options and help.

Belongs here: reading click's objects, not its formatted help, so neither a terminal's width nor click's version counts.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

import click

from agent_mailbox.cli.group import CommandGroup, cli
from agent_mailbox.commands import main as registered

from .markdown import anchor, code, paragraph, plain, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM = "agent-mailbox"
SHARED = ("--dir", "--json")
"""Options of every command, which the page names once."""


def text() -> str:
    """Return the generated part of the page: an overview, then every command by the sections of the help."""
    registered.load_all()
    parts = []
    for title, names in cli.sections.items():
        parts += [f"## {title}", _overview(names)]
        for name in names:
            parts += _entry(name, cli.commands[name])
    return "\n\n".join(parts) + "\n"


def _overview(names: Sequence[str]) -> str:
    rows = [(f"[`{name}`](#{anchor(f'{PROGRAM} {name}')})", _short(cli.commands[name])) for name in names]
    return table(("command", "does"), rows)


def _entry(name: str, command: click.Command) -> Iterator[str]:
    """Yield the blocks of a command, or of a group and all its commands."""
    yield f"### `{PROGRAM} {name}`"
    if not isinstance(command, click.Group):
        yield from _command((name,), command, ())
        return
    yield from _help(command)
    if alone := [option for option in _own(command) if option.help]:
        yield "Without a further command:\n\n" + _options(alone)
    leaves = list(_leaves(command, (name,)))
    everywhere = _everywhere([leaf for _, leaf in leaves])
    if everywhere:
        yield "All of them take:\n\n" + _options(everywhere)
    for path, leaf in leaves:
        yield f"#### `{PROGRAM} {' '.join(path)}`"
        yield from _command(path, leaf, [option.opts for option in everywhere])


def _leaves(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _leaves(command, (*path, name))
        else:
            yield (*path, name), command


def _everywhere(commands: Sequence[click.Command]) -> list[click.Option]:
    """Return the options, beside the shared ones, that all commands of a group have, with the same help."""
    first, *others = map(_own, commands)
    told = [{(*option.opts, option.help) for option in options} for options in others]
    return [option for option in first if others and all((*option.opts, option.help) in there for there in told)]


def _own(command: click.Command) -> list[click.Option]:
    """Return a command's options, but for those that every command has."""
    return [p for p in command.params if isinstance(p, click.Option) and not {*SHARED} & {*p.opts}]


def _command(path: tuple[str, ...], command: click.Command, told: Sequence[list[str]]) -> Iterator[str]:
    """Yield a command's usage, help and options, but for the options that its group told."""
    options = [option for option in _own(command) if option.opts not in told]
    yield f"```text\n{_usage(path, command, options)}\n```"
    yield from _help(command)
    other = [alias for alias, name in CommandGroup.aliases.items() if (name,) == path]
    if other:
        yield f"Also spelt `{PROGRAM} {other[0]}`."
    if options:
        yield _options(options)
    if not any("--json" in p.opts for p in command.params):
        yield "Takes no `--json`."


def _usage(path: tuple[str, ...], command: click.Command, options: Sequence[click.Option]) -> str:
    needed = [f"{option.opts[0]} {_value(option)}" for option in options if option.required]
    optional = ["[OPTIONS]"] if len(needed) < len(options) else []
    arguments = [_value(p) for p in command.params if isinstance(p, click.Argument)]
    return " ".join((PROGRAM, *path, *needed, *optional, *arguments))


def _value(parameter: click.Parameter) -> str:
    """Return how a parameter's value is written in a usage line."""
    if parameter.metavar:
        return parameter.metavar
    if isinstance(parameter, click.Argument):
        word = "|".join(parameter.type.choices) if isinstance(parameter.type, click.Choice) else _name(parameter)
        word = word + ("…" if parameter.nargs == -1 else "")
        return word if parameter.required else f"[{word}]"
    if isinstance(parameter.type, click.Choice):
        return "|".join(parameter.type.choices)
    return "N" if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType) else "TEXT"


def _name(parameter: click.Parameter) -> str:
    return str(parameter.name).upper()


def _help(command: click.Command) -> Iterator[str]:
    """Yield the paragraphs of a command's help; those that click must not wrap keep their lines."""
    for block in inspect.cleandoc(command.help or "").split("\n\n"):
        if block.startswith("\b\n"):
            yield "```text\n" + block.removeprefix("\b\n") + "\n```"
        elif block:
            yield paragraph(block)


def _short(command: click.Command) -> str:
    said = command.get_short_help_str(sys.maxsize)
    return plain(said.removesuffix("."))


def _options(options: Sequence[click.Option]) -> str:
    return table(("option", "meaning"), [(_spelling(option), _meaning(option)) for option in options])


def _spelling(option: click.Option) -> str:
    words = ", ".join(option.opts)
    return code(words if option.is_flag else f"{words} {_value(option)}")


def _meaning(option: click.Option) -> str:
    said = plain(option.help or "")
    marks = [
        "required" if option.required else "",
        "may be repeated" if option.multiple and "repeat" not in said else "",
        _bounds(option),
        _default(option) if "default" not in said else "",
    ]
    told = ", ".join(mark for mark in marks if mark)
    return f"{said} ({told})" if told else said


def _bounds(option: click.Option) -> str:
    least, most = getattr(option.type, "min", None), getattr(option.type, "max", None)
    if not least:
        return ""
    return f"at least {least:g}" if most is None else f"{least:g} to {most}"


def _default(option: click.Option) -> str:
    value = option.default
    if option.is_flag or option.multiple or value == "" or not isinstance(value, str | int | float):
        return ""
    return f"default: `{value if isinstance(value, str) else format(value, 'g')}`"
