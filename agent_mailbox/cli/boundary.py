"""The one boundary where errors become text and exit codes, for every parser.

Belongs here: turning any exception into one line, a hint, and under ``--json`` a document. Must not import click;
``main`` translates click's own errors first.
"""

from __future__ import annotations

import sys

from ..core.text import clipped, neutral, typed
from ..errors import MailboxError, Refused, StorageFailed
from ..store.files import system
from ..store.user_state import replaced_program
from . import mail_output
from .output import PATIENCE, write_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .context import Context

_MOST = 2_000
"""Characters of an error: the value that it quotes may be as long as an argument or a line of standard input."""


def as_it_is(text: str) -> str:
    """Return the text: where no command was read, no option is known."""
    return text


def report_failure(error: BaseException, as_json: bool, app: Context) -> int:
    """Report what ended a command of that ``app``, an ``Exception`` or Ctrl-C; return the exit code."""
    if isinstance(error, Exception):
        return report_error(as_mailbox_error(error), as_json, app.complete_hint, app.shorten_ids)
    return 130


def as_mailbox_error(error: Exception) -> MailboxError:
    """Return any error as a ``MailboxError``. ``AGENT_MAILBOX_DEBUG`` raises it instead, for the traceback."""
    from os import environ  # only failures need it

    if environ.get("AGENT_MAILBOX_DEBUG"):
        raise error
    return describe_error(error)


def _is_nowhere() -> bool:
    """Return whether the working directory was removed: no relative path means anything then."""
    try:
        system.getcwd()
    except OSError:
        return True
    return False


def describe_error(error: Exception) -> MailboxError:
    """Return any error as a ``MailboxError``."""
    if isinstance(error, MailboxError):
        return error
    if isinstance(error, FileNotFoundError) and error.filename is None and _is_nowhere():
        return Refused("the working directory is gone", "change to a directory that is there", code="no_directory")
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        code = "output" if isinstance(error, BrokenPipeError) else "storage"
        return StorageFailed(
            f"system call failed{where}: {error.strerror}", "check that the file exists and that you own it", code=code
        )
    if isinstance(error, EOFError) and "marshal" in str(error):
        places = f"{typed(sys.prefix)} {typed(__file__.rpartition('/cli/')[0])}"
        return StorageFailed(
            "Python's cache holds a part of a module: perhaps the disk was full as it was written",
            f"run `find {places} -name '*.pyc' -delete`: Python makes it again",
            code="internal",
        )
    if replaced_program.was_replaced():
        return StorageFailed(
            replaced_program.WHAT,
            "start it again (an MCP server: reconnect it in the client), and look whether it did its work",
            code="internal",
        )
    if isinstance(error, ImportError):
        hint = "run it again in a moment: an upgrade may run; if that fails, install agent-mailbox again"
        return StorageFailed(f"a part of the program is missing: {error}", hint, code="internal")
    return StorageFailed(
        f"unexpected error: {type(error).__name__}: {error}",
        "report this bug with the traceback that AGENT_MAILBOX_DEBUG=1 prints",
        code="internal",
    )


def load_error(error: Exception) -> MailboxError:
    """Return the error of a module that does not load as one of the family; see ``as_mailbox_error``."""
    if isinstance(error, EOFError):
        return as_mailbox_error(error)
    hint = "run it without PYTHONPATH, or install it again"
    if isinstance(error, ModuleNotFoundError) and error.name in ("click", "orjson", "portalocker"):
        hint = (
            f"run `python3 -m pip install click orjson portalocker`, or a Python that has {error.name}: PYTHON script …"
        )
    return as_mailbox_error(
        StorageFailed(f"the program does not load: {type(error).__name__}: {error}", hint, code="internal")
    )


def error_lines(error: MailboxError, complete: Callable[[str], str] = as_it_is) -> tuple[str, str]:
    """Return an error and its hint as lines of text that nothing in them can forge."""
    return clipped(neutral(error.what).rstrip("."), _MOST), neutral(complete(error.hint))


def report_error(
    error: MailboxError,
    as_json: bool,
    complete: Callable[[str], str] = as_it_is,
    shorten: Callable[[str], str] = as_it_is,
) -> int:
    """Print the error and its hint on stderr, and as a document on stdout under ``--json``, unless stdout failed. An
    error without a word is not told. Return the exit code. ``complete`` gives the commands in the hint the options that
    they need, ``shorten`` the ids of agents for people."""
    what, hint = error_lines(error, complete)
    try:
        if sys.stderr is not None and what:
            said = f"error: {what}\n" + (f"hint: {hint}\n" if hint else "")
            sys.stderr.write(said if as_json else shorten(said))
            sys.stderr.flush()
        if error.code.startswith("output"):
            sys.stdout = None
        elif as_json:
            document = {"error": {"code": error.code, "message": what, "hint": hint}}
            write_out(mail_output.json_document(document), PATIENCE)
    except (OSError, MailboxError):
        sys.stdout = None  # nothing reads the text; the exit code still tells
    return error.exit_code
