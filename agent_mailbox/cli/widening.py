"""The question before what widens: allow, approve, a looser mode, a lead, an installation that goes.

Belongs here: the one place that asks. A command calls it behind its own checks, and says what it widens, or nothing.
The question is for the person alone: a session's right is judged elsewhere, and a program decides nothing. Whatever
the person starts may be an agent's work, a git hook or a Makefile. So only a command that the person types goes
without a question."""

from __future__ import annotations

import os
import termios
from typing import TYPE_CHECKING

from ..core import frame
from ..core.text import neutral
from ..errors import Refused
from ..identity import terminals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .context import Context

TERMINAL = "/dev/tty"
HINT = "type the command at the prompt of your own shell, or decide in the console"
CODE = "not_confirmed"
MOST = 1024
"""Bytes of an answer."""


def check_widening(app: Context, says: Callable[[], str]) -> None:
    """Ask the person if another program than their shell started a command that widens; raise ``Refused`` for a no.

    ``says``: what it would widen, or nothing.
    """
    if needs_question(app) and (what := says()):
        ask_person([f"This widens what agents may do: {what}."], "Do it?")


def needs_question(app: Context) -> bool:
    """Return whether the person's command may be a planted program's: then ``--yes`` counts for nothing."""
    return app.caller.is_person and not terminals.is_typed(app.environ)


def why_unasked(app: Context) -> str:
    """Return why a caller that is not the person cannot be asked."""
    return "an agent's session runs this" if app.is_session else app.caller.why


def ask_person(lines: Sequence[str], question: str, brief: str = "") -> None:
    """Ask on the terminal itself, whatever the standard streams are; raise ``Refused`` unless the answer is yes.

    ``brief``: what is asked, for one line, where there is no terminal.
    """
    if (held := terminals.terminal_holder()) is not None:
        who = f"{neutral(held.name)} (process {held.pid})"
        raise _refused_error(f"{who} holds this terminal, and could answer in your place")
    try:
        fd = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise _refused_error(f"this is asked at a terminal: {neutral(brief or ' '.join(lines))[:2000]}") from None
    try:
        if os.tcgetpgrp(fd) != os.getpgrp():  # also fails for a terminal that is not this process's own
            raise _refused_error("this runs in the background, where nobody can be asked")
        by = (
            ""
            if terminals.is_typed(os.environ)
            else frame.some([f"{neutral(one.name)} (process {one.pid})" for one in terminals.starting_programs()], 5)
        )
        told = [*lines, f"This command was started by {by}."] if by else lines
        termios.tcflush(fd, termios.TCIFLUSH)  # what was typed before does not answer
        os.write(fd, "".join(f"{neutral(line)}\n" for line in told).encode() + f"{question} [y/N] ".encode())
        said = os.read(fd, MOST)
    except OSError as error:
        raise _refused_error(f"the terminal cannot be asked: {error.strerror}") from None
    finally:
        os.close(fd)
    if said.strip().lower() not in (b"y", b"yes"):
        raise Refused("nothing changed: you did not confirm it", "run it again, and answer y", code=CODE)


def _refused_error(why: str) -> Refused:
    return Refused(f"nothing changed: {why}", HINT, code=CODE)
