"""The program: its commands, and the one boundary where errors become text and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from .. import __version__
from ..core.text import near, neutral
from ..errors import MailboxError, Malformed, StorageFailed
from . import render
from .context import Context
from .output import write_out


class Commands(click.Group):
    """A group that knows aliases, and what a misspelt command may have meant."""

    aliases: dict[str, str] = {"read": "check"}  # noqa: RUF012 - click's classes are configured by such attributes

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return super().get_command(ctx, self.aliases.get(name, name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            meant = near(args[0], self.list_commands(ctx))
            hint = f"did you mean {' or '.join(meant)}?" if meant else f"`{ctx.command_path} --help` lists them"
            raise Malformed(f"no command {args[0]!r}", hint, code="usage")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="The mailbox directory (else AGENT_MAILBOX_DIR, else found from here upwards).",
)
@click.version_option(__version__, prog_name="agent-mailbox")
@click.pass_context
def cli(ctx: click.Context, directory: str | None) -> None:
    """Durable mail between coding-agent sessions on one machine.

    Mail goes to an agent (id, name or id prefix), a role, a tag such as project:NAME, or all.

    \b
    Exit codes: 0 done, 1 refused or nothing there, 2 malformed argument,
    3 bad data, 4 busy, 5 storage failed.

    \b
    Shell completion: eval "$(_AGENT_MAILBOX_COMPLETE=bash_source agent-mailbox)"
    (zsh_source and fish_source likewise).
    """
    ctx.obj = Context(directory)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Every error leaves through here."""
    from . import hook, mail, roster, upkeep  # noqa: F401 - each registers its commands

    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        result = cli.main(args=arguments, prog_name="agent-mailbox", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:  # the boundary: whatever it is, it leaves as one line and an exit code
        if os.environ.get("AGENT_MAILBOX_DEBUG"):
            raise
        return _report(_known(error), "--json" in arguments)


def _known(error: Exception) -> MailboxError:
    """Any error as one of the family."""
    if isinstance(error, MailboxError):
        return error
    if isinstance(error, click.UsageError):
        hint = f"`{error.ctx.command_path} --help` explains it" if error.ctx else ""
        return Malformed(error.format_message(), hint, code="usage")
    if isinstance(error, click.ClickException):
        return Malformed(error.format_message(), code="usage")
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        code = "output" if isinstance(error, BrokenPipeError) or not error.filename else "storage"
        return StorageFailed(
            f"the system refused{where}: {error.strerror}", "see that it is there and yours", code=code
        )
    return StorageFailed(
        f"unexpected {type(error).__name__}: {error}",
        "this is a defect of agent-mailbox; AGENT_MAILBOX_DEBUG=1 shows where",
        code="internal",
    )


def _report(error: MailboxError, as_json: bool) -> int:
    """Say what went wrong: a line and a hint on stderr, and under ``--json`` a document on stdout, unless it was
    stdout that failed."""
    what, hint = neutral(error.what).rstrip("."), neutral(error.hint)
    try:
        click.echo(f"error: {what}" + (f"\nhint: {hint}" if hint else ""), err=True)
        if error.code.startswith("output"):
            sys.stdout = None
        elif as_json:
            write_out(render.json({"error": {"code": error.code, "message": what, "hint": hint}}))
    except (OSError, MailboxError):
        sys.stdout = None  # nobody listens; the exit code still tells
    return error.exit_code
