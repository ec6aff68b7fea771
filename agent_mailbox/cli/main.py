"""The program: one command run, and its errors in our form."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from ..errors import Malformed, StorageFailed
from . import boundary
from .group import cli
from .options import App

_WHO = ("--session", "--from", "--session-id")
"""How commands ask who is speaking; who tries another's spelling is told this one's."""


def _usage(error: click.UsageError) -> Malformed:
    """What click says of wrong words, in our form."""
    said, hint = error.format_message(), f"`{error.ctx.command_path} --help` explains it" if error.ctx else ""
    if error.ctx and isinstance(error, click.NoSuchOption) and error.option_name in _WHO:
        for option in (option for param in error.ctx.command.params for option in param.opts):
            if option in _WHO:  # and not what is spelt alike, which click proposes
                said, hint = f"No such option {error.option_name!r}", f"who you are is said by {option} here"
    return Malformed(said, hint, code="usage")


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    from . import commands  # noqa: F401 - they register

    app = App()
    unparsed = False

    def work() -> int:
        nonlocal unparsed
        try:
            result = cli.main(args=list(arguments), prog_name="agent-mailbox", standalone_mode=False, obj=app)
        except click.exceptions.Exit as done:
            return done.exit_code
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return 2
        except Malformed as error:
            unparsed = error.code == "usage"
            raise
        except click.UsageError as error:
            unparsed = True
            raise _usage(error) from None
        except click.ClickException as error:
            raise Malformed(error.format_message(), code="usage") from None
        except click.Abort:
            return 130
        except SystemExit as done:  # click's way out of completion, and with 1 from a reader that is gone
            if done.code:
                raise StorageFailed("the reader of the output is gone", code="output") from None
            return 0
        _flush()
        return result if isinstance(result, int) else 0

    return boundary.guarded(work, lambda: (app.json and not app.answered) or (unparsed and "--json" in arguments))


def _flush() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        raise StorageFailed(f"cannot write the output: {error.strerror}", code="output") from None
