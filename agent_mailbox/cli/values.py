"""What the values of options mean, where that is more than a word: a text, a file, hours, an instant.

Belongs here: reading a value, and refusing one that means nothing. What is done with it: the commands.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from ..core import compose, instant
from ..errors import BadData, Malformed, Refused
from ..store import creation
from .options import App


def body(app: App, given: str | None) -> str:
    """The text of ``--body``: itself, standard input for ``-``, a file for ``@FILE``, less one trailing newline."""
    if given is None:
        raise Malformed("no body", "give --body TEXT, - for standard input, or @FILE")
    if given != "-" and not given.startswith("@"):
        return given
    data = read(app, given.removeprefix("@") if given != "-" else "-", "body", app.mailbox.config.max_content)
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadData(f"the body is not UTF-8 (byte {error.start})", "convert it, or send the file's path") from None


STANDARD = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
"""Other names of standard input."""


def read(app: App, source: str, what: str, limit: int) -> bytes:
    """Standard input for ``-``, else the file; ``BadData`` if ``what`` it holds is over ``limit`` bytes, ``Refused``
    where an agent names a file outside its project."""
    try:
        if source == "-":
            if sys.stdin is None:
                raise Malformed("there is no standard input", "give the text as an argument")
            data = sys.stdin.buffer.read(limit + 2)
        else:
            with open(source, "rb") as file:
                if app.is_session and source not in STANDARD:
                    _refuse_outside(app, source, file.fileno())
                data = file.read(limit + 2)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Malformed(f"cannot read {source}: {reason}", "a text that begins with @ goes through --body -") from None
    if len(data.removesuffix(b"\n")) > limit:
        raise BadData(
            f"the {what} has more than {limit} bytes", "write it to a file and send its path", code="too_large"
        )
    return data


def _refuse_outside(app: App, source: str, fd: int) -> None:
    """Keep an agent from sending a file that its person may have denied it: the rule that lets it send runs unasked.

    The file is judged as it was opened, so that no link that changes meanwhile leads elsewhere.
    """
    real = os.path.realpath(source)
    try:
        same = os.path.samestat(os.stat(real, follow_symlinks=False), os.fstat(fd))
    except OSError:  # a pipe that the shell made, or what is gone by now
        same = False
    if same and any(f"{real}/".startswith(f"{root.rstrip('/')}/") for root in projects(app)):
        return
    raise Refused(
        f"{source} is outside your project: an agent sends no file from there",
        "pass the text itself by `--body -` and a here-document",
    )


def projects(app: App) -> list[str]:
    """Return the projects of a session: the mailbox's (its repository, else the directory it is in), and the repository
    of the working directory. A repository that holds the home directory is none."""
    box = os.path.realpath(app.mailbox.directory)
    home = os.path.realpath(os.path.expanduser("~"))
    roots = [root for start in (box, os.getcwd()) if (root := creation.root(start))]
    found = roots if creation.root(box) else [*roots, os.path.dirname(box)]
    return [root for root in found if root != "/" and not f"{home}/".startswith(f"{root}/")]


def hours(given: str | None) -> int | None:
    """The whole hours of ``--ttl-hours``; raises ``Malformed`` for what is no time to live."""
    if given is None:
        return None
    try:
        found: Any = int(given)
    except ValueError:
        found = given  # which no time to live is, as the check says
    compose.check_ttl(found)
    return int(found)


def since(given: str | None, now: int) -> int | None:
    """The ms that ``--since`` means: an RFC 3339 instant, or a number of m, h or d ago; raises ``Malformed``."""
    if given is None:
        return None
    units = {"m": 60_000, "h": instant.HOUR, "d": instant.DAY}
    number = given[:-1]
    if number.isascii() and number.isdigit() and len(number) < 10 and given[-1:] in units:
        return now - int(number) * units[given[-1]]
    try:
        return instant.parse(given)
    except ValueError:
        raise Malformed(f"{given!r} is no instant", "write 2026-03-16T14:30:00Z, 2026-03-16, or 90m, 24h, 7d") from None
