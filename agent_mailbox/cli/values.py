"""What the values of options mean, where that is more than a word: a text, a file, hours, an instant.

Belongs here: reading a value, and refusing one that means nothing. What is done with it: the commands.
"""

from __future__ import annotations

import sys
from typing import Any

from ..core import compose, instant
from ..errors import BadData, Malformed
from .options import App


def body(app: App, given: str | None) -> str:
    """The text of ``--body``: itself, standard input for ``-``, a file for ``@FILE``, less one trailing newline."""
    if given is None:
        raise Malformed("no body", "give --body TEXT, - for standard input, or @FILE")
    if given != "-" and not given.startswith("@"):
        return given
    data = read(given.removeprefix("@") if given != "-" else "-", "body", app.mailbox.config.max_content)
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadData(f"the body is not UTF-8 (byte {error.start})", "convert it, or send the file's path") from None


def read(source: str, what: str, limit: int) -> bytes:
    """Standard input for ``-``, else the file; ``BadData`` if ``what`` it holds is over ``limit`` bytes."""
    try:
        if source == "-":
            if sys.stdin is None:
                raise Malformed("there is no standard input", "give the text as an argument")
            data = sys.stdin.buffer.read(limit + 2)
        else:
            with open(source, "rb") as file:
                data = file.read(limit + 2)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Malformed(f"cannot read {source}: {reason}", "a text that begins with @ goes through --body -") from None
    if len(data.removesuffix(b"\n")) > limit:
        raise BadData(
            f"the {what} has more than {limit} bytes", "write it to a file and send its path", code="too_large"
        )
    return data


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
