"""The program: runs one command, and reports its errors in the house's form.

Belongs here: that, and which module has a command. Each module registers its own commands when it is imported. One
command needs one module: all of them take longer to import than most commands take to run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click

from ..cli import boundary, meant
from ..cli.group import SECTIONS, cli
from ..cli.options import App
from ..cli.output import reader_left, unwritten
from ..core.misspelt import nearly
from ..errors import Malformed
from ..store.files import system

_WHO = ("--session", "--from", "--session-id")
"""The options that name the session. Each command takes one; an error about another names the right one."""
_NUMBERS = (
    (r"is not a valid (integer|float)( range)?", "is no number"),
    (r"is not in the range x>=(\S+?)\.?$", r"is less than \1"),
    (r"is not in the range (\S+?)<=x<=(\S+?)\.?$", r"is not from \1 to \2"),
)
"""Click's words about a number, and ours."""
_COMPLETE = "_AGENT_MAILBOX_COMPLETE"
_SHELLS = [f"{shell}_{what}" for shell in ("bash", "zsh", "fish") for what in ("source", "complete")]
"""The variable by which a shell asks for completions, and what may be in it."""


def load_command(name: str) -> None:
    """Import the module of a command; an unknown name has none."""
    match name:
        case "send" | "reply":
            from . import send_commands as send_commands
        case "roster" | "mute" | "unmute":
            from . import roster_commands as roster_commands
        case "install" | "uninstall":
            from . import install_command as install_command
        case "help":
            from . import help_command as help_command
        case "setup" | "up" | "down":
            from . import setup_command as setup_command
        case "hook" | "init" | "steward" | "doctor" | "backup" | "restore" | "export" | "notify":
            from . import upkeep as upkeep
        case "control" | "task" | "handover" | "note" | "approve" | "deny" | "pending":
            from . import control_commands as control_commands
        case "statusline" | "tail" | "top":
            from . import live_commands as live_commands
        case "lease":
            from . import lease_commands as lease_commands
        case "watch":
            from . import watch_commands as watch_commands
        case "teams":
            from . import teams_commands as teams_commands
        case "swarm":
            from ..swarm import swarm_commands as swarm_commands
            from ..swarm import swarm_mail_commands as swarm_mail_commands
            from ..swarm import swarm_state_commands as swarm_state_commands
        case "engine":
            from . import engine_commands as engine_commands
        case "console":
            from . import console_command as console_command
        case "mcp":
            from . import mcp_command as mcp_command
        case name if name in SECTIONS["Mail"]:
            from . import mail as mail


def load_all() -> None:
    """Import every command's module."""
    for names in SECTIONS.values():
        for name in names:
            load_command(name)


cli.load = load_command


def _in_our_words(said: str) -> str:
    """Return click's words about a number as ours."""
    for theirs, ours in _NUMBERS:
        said = re.sub(theirs, ours, said)
    return said


def _usage_error(error: click.UsageError, arguments: Sequence[str]) -> Malformed:
    """Return click's usage error as ours."""
    said = _in_our_words(error.format_message())
    hint = f"`{error.ctx.command_path} --help` shows the usage" if error.ctx else ""
    options = [option for param in error.ctx.command.params for option in param.opts] if error.ctx else []
    who = next((option for option in options if option in _WHO), None)
    if isinstance(error, click.NoSuchOption) and error.option_name in _WHO and who is not None:
        said, hint = f"no such option: {error.option_name!r}", f"name your session with {who} here"
    elif isinstance(error, click.NoSuchOption) and (other := meant.meant_option(error)) is not None:
        said, hint = f"no such option: {error.option_name!r}", f"did you mean {other}?"
    elif isinstance(error, click.NoSuchOption):  # click proposes --json for --since
        near = nearly(error.option_name, [option for option in options if option.startswith("--")])
        said = f"no such option: {error.option_name!r}"
        others = [] if near or error.ctx is None else meant.commands_with(error.option_name, error.ctx)
        hint = f"did you mean {' or '.join(near)}?" if near else f"leave it out; {hint}"
        hint = f"leave it out; it is an option of `{'`, `'.join(others)}`" if others else hint
        if not near and not others and (whole := meant.whole_command(error, arguments)) is not None:
            hint = f"to search for it, run `{whole}`"
    elif (whole := meant.whole_command(error, arguments)) is not None:
        hint = f"run `{whole}`"
    return Malformed(said, hint, code="usage")


def main(arguments: Sequence[str]) -> int:
    """Run one command; return the exit code."""
    app = App()
    unparsed = False

    def run_command() -> int:
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
            raise _usage_error(error, arguments) from None
        except click.ClickException as error:
            raise Malformed(error.format_message(), "", code="usage") from None
        except click.Abort as stopped:
            if isinstance(stopped.__cause__, EOFError):  # click takes it for the end of what is typed
                raise stopped.__cause__ from None
            return 130
        except OSError as error:
            if error.filename is None:
                _flush_output()  # click's own output, such as a help text: what it could not write fails again
            raise
        except SystemExit as done:  # click exits so after completion
            if done.code:  # 1: the reader is gone, or the shell is unknown
                _refuse_unknown_shell()
                raise reader_left() from None
            return 0
        _flush_output()
        return result if isinstance(result, int) else 0

    try:
        return run_command()
    except (Exception, KeyboardInterrupt) as error:
        as_json = (app.json and not app.answered) or (unparsed and "--json" in arguments)
        return boundary.report_failure(error, as_json, app)


def _refuse_unknown_shell() -> None:
    """Raise ``Malformed`` for a shell that click does not complete: it would end without a word."""
    said = system.environment().get(_COMPLETE, "")
    if said and said not in _SHELLS:
        hint = f"set it to {', '.join(word for word in _SHELLS if word.endswith('_source'))}, or unset it"
        raise Malformed(f"{_COMPLETE} is for bash, zsh and fish: {said!r}", hint)


def _flush_output() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise reader_left() from None
    except OSError as error:
        raise unwritten(f"cannot write the output: {error.strerror}") from None
