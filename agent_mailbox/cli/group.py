"""The group that every command registers with: aliases, help by sections, guesses at misspelt commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import click

from .. import __version__
from ..errors import Malformed
from . import meant
from .options import App, CommandWithOptions

SECTIONS = {
    "Mail": (
        *("send", "check", "reply", "ack", "release", "show", "thread", "history", "search", "status"),
        *("dead-letters", "wait", "tail"),
    ),
    "People": ("roster", "top", "mute", "unmute", "console", "statusline", "notify"),
    "Coordination": ("approve", "deny", "pending", "task", "handover", "note", "control", "lease", "watch", "teams"),
    "Setting up": ("setup", "up", "down", "init", "install", "uninstall", "hook", "mcp", "help"),
    "Upkeep": ("steward", "doctor", "backup", "restore", "export"),
    "Other machines": ("engine", "swarm"),
}
"""All commands, by subject."""
FIRST = (
    *("setup", "up", "send", "check", "reply", "status", "search"),
    *("task", "note", "approve", "deny", "console", "doctor", "help"),
)
"""The commands of a first week: the program's help lists these, and ``help --all`` the others."""


class CommandGroup(click.Group):
    """A group with aliases and sections; it suggests commands for a misspelt one."""

    aliases: dict[str, str] = {"read": "check"}  # noqa: RUF012 - click's classes are configured by such attributes
    sections: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - as above; none: one list
    command_class = CommandWithOptions
    load: Callable[[str], object] = staticmethod(str)  # none to load
    """Has a command register; the program's sets this, and the sections then name all its commands."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = self.aliases.get(name, name)
        if name not in self.commands:
            self.load(name)
        return super().get_command(ctx, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for names in self.sections.values() for name in names) or super().list_commands(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per command."""
        for title, listed in (self.sections or {"Commands": tuple(self.list_commands(ctx))}).items():
            self._write_section(ctx, formatter, title, listed)

    def _write_section(
        self, ctx: click.Context, formatter: click.HelpFormatter, title: str, listed: Iterable[str]
    ) -> None:
        shown = [(name, command) for name in listed if (command := self.get_command(ctx, name)) is not None]
        with formatter.section(title):  # the first sentence of each one's help is written to fit on a line
            formatter.write_dl([(name, one.get_short_help_str(sys.maxsize).removesuffix(".")) for name, one in shown])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = meant.meant_command(args[0], ctx, self.list_commands(ctx))
            raise Malformed(f"unknown command: {args[0]!r}", hint, code="usage")
        return super().resolve_command(ctx, args)


CommandGroup.group_class = CommandGroup


class Program(CommandGroup):
    """The program itself: its help lists the commands of a first week."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line for each of these, and where the others are."""
        self._write_section(ctx, formatter, "Commands", FIRST)
        formatter.write_paragraph()
        formatter.write_text("All commands, by subject: agent-mailbox help --all")


class DefaultCommands(CommandGroup):
    """A group that runs its ``default`` command if its first word is no command of its own."""

    def __init__(self, *args: Any, default: str, **given: Any) -> None:
        super().__init__(*args, **given)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="The mailbox directory (default: AGENT_MAILBOX_DIR, else the nearest one from here upwards).",
)
@click.version_option(__version__, prog_name="agent-mailbox")
@click.pass_context
def cli(ctx: click.Context, directory: str | None) -> None:
    """Durable mail between coding-agent sessions on one machine.

    Send mail to an agent (by id, name or id prefix), to a role, to a tag such as project:NAME, or to all.

    \b
    Exit codes: 0 done, 1 refused or not found, 2 malformed argument,
    3 bad data, 4 busy, 5 storage failed.

    \b
    Shell completion: eval "$(_AGENT_MAILBOX_COMPLETE=bash_source agent-mailbox)"
    (or zsh_source, fish_source).
    """
    ctx.ensure_object(App).directory = directory


cli.sections = SECTIONS
