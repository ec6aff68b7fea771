"""Option values that need reading: a text, a file, hours, an instant.

Belongs here: parsing a value, and refusing a malformed one. The commands use it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import codec, compose, instant
from ..core.attachments import MOST, AttachmentFile
from ..core.records import BadLine
from ..errors import BadData, Malformed, Refused
from ..store.attachments import attachment_files
from ..store.files import standard_input
from ..store.user_state import work_trees
from .options import App


def read_body(app: App, given: str | None) -> str:
    """Return the text of ``--body``: itself, standard input (``-``) or a file (``@FILE``), less one final newline."""
    if given is None:
        raise Malformed("the body is missing", "pass --body TEXT, --body - (standard input) or --body @FILE")
    if given != "-" and not given.startswith("@"):
        return given
    data = read_source(app, given.removeprefix("@") if given != "-" else "-", "body", app.mailbox.config.max_content)
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadData(
            f"the body is not UTF-8: byte {error.start}", "convert it with iconv, or send the file's path"
        ) from None


def json_object(app: App, given: str | None) -> dict[str, Any] | None:
    """Return the JSON object of ``--input``: its text, standard input for ``-``, a file for ``@FILE``."""
    if given is None:
        return None
    value = codec.parse(read_body(app, given).encode("utf-8", "surrogateescape"), ours=False, once=True)
    if isinstance(value, BadLine):
        raise Malformed(
            f"--input: {value.reason}", 'give the tool\'s input as a JSON object, for Bash {"command": "…"}'
        )
    return value


STANDARD = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
"""Other names of standard input."""


def read_source(app: App, source: str, what: str, limit: int) -> bytes:
    """Return the bytes of standard input (``-``) or of a file.

    Raises ``BadData`` if ``what`` it holds is over ``limit`` bytes, ``Refused`` if an agent names a file outside its
    project.
    """
    try:
        if source == "-" or source in STANDARD:
            data = standard_input.read_all(limit + 2)
        else:
            with open(source, "rb") as file:
                if app.is_session:
                    _refuse_outside(app, source, file.fileno())
                data = file.read(limit + 2)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        at = "; send a text that begins with @ by --body -" if what == "body" else ""
        hint = "pass the text as --body TEXT" if source == "-" else f"check the path{at}"
        named = "standard input" if source == "-" else source or "a file without a name"
        raise Malformed(f"cannot read {named}: {reason}", hint) from None
    if len(data.removesuffix(b"\n")) > limit:
        raise BadData(
            f"the {what} is over the limit of {limit} bytes", "write it to a file and send its path", code="too_large"
        )
    return data.removeprefix(codec.BOM)


def attach_files(app: App, given: Sequence[str]) -> list[dict[str, Any]]:
    """Keep copies of the files in the mailbox; return the entries that name them.

    Raises ``Malformed`` for what is no readable file, ``Refused`` for an agent's file outside its project, and as
    ``store.attachments.attachment_files.put`` does.
    """
    if len(given) > MOST:
        raise Malformed(f"too many attachments: {len(given)}", f"send at most {MOST} with one message")
    return [_keep_file(app, source).entry() for source in given]


def _keep_file(app: App, source: str) -> AttachmentFile:
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Malformed(
            f"cannot read the attachment {source or 'without a name'}: {reason}", "check the path"
        ) from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Malformed(f"the attachment is no file: {source}", "attach a file, such as an archive of a directory")
        if app.is_session:
            _refuse_outside(app, source, fd)
        return attachment_files.put(app.mailbox.directory, os.path.realpath(source), attachment_files.chunks_of(fd))
    finally:
        os.close(fd)


def _refuse_outside(app: App, source: str, fd: int) -> None:
    """Raise ``Refused`` if an agent sends a file outside its project, which its person may have denied it.

    Permission rules let ``send`` run unasked. The opened file is judged, so that swapping a link does not help.
    """
    real = os.path.realpath(source)
    try:
        same = os.path.samestat(os.stat(real, follow_symlinks=False), os.fstat(fd))
    except OSError:  # a pipe that the shell made, or a deleted file
        same = False
    if same and any(f"{real}/".startswith(f"{root.rstrip('/')}/") for root in project_directories(app)):
        return
    raise Refused(
        f"an agent may not send a file from outside its project: {source}",
        "pass text itself with --body - and a here-document; copy a file to attach into the project",
    )


def project_directories(app: App) -> list[str]:
    """Return the session's project directories: the mailbox's repository, else its parent, and the working directory's
    repository. A repository that contains the home directory does not count."""
    box = os.path.realpath(app.mailbox.directory)
    home = os.path.realpath(os.path.expanduser("~"))
    roots = [root for start in (box, os.getcwd()) if (root := work_trees.top(start))]
    found = roots if work_trees.top(box) else [*roots, os.path.dirname(box)]
    return [root for root in found if root != "/" and not f"{home}/".startswith(f"{root}/")]


def parse_hours(given: str | None) -> int | None:
    """Return ``--ttl-hours`` as a number; raises ``Malformed``."""
    if given is None:
        return None
    try:
        found: Any = int(given)
    except ValueError:
        found = given  # check_ttl raises for it
    compose.check_ttl(found)
    return int(found)


def parse_span(given: str, units: Mapping[str, float], plain: str, hint: str) -> float:
    """Return a time such as ``30m``. ``units``: the length of one of each; a number without a unit is in ``plain``."""
    number, unit = (given[:-1], given[-1]) if given[-1:] in units else (given, plain)
    try:
        if number.isascii():
            return float(number) * units[unit]
    except ValueError:
        pass
    raise Malformed(f"not a time: {given!r}", hint)


def parse_since(given: str | None, now: int) -> int | None:
    """Return ``--since`` in ms: an RFC 3339 instant, or an age such as ``24h``; raises ``Malformed``."""
    return None if given is None else _parse_instant(given, now, -1)


def parse_expiry(given: str | None, now: int) -> int | None:
    """Return ``--expires-at`` in ms: an RFC 3339 instant, or a time from now such as ``24h``; raises ``Malformed``."""
    return None if given is None else _parse_instant(given, now, 1)


def parse_deadline(option: str, given: str | None, now: int) -> int | None:
    """Return the same for an option by which something is to be done. Raise ``Malformed`` also for a time that is past,
    or more than a century off."""
    until = parse_expiry(given, now)
    if until is not None and until <= now:
        raise Malformed(f"{option} is past: {given!r}", "name a time to come, such as 24h")
    if until is not None and compose.is_over_a_century_away(until, now):
        raise Malformed(f"{option} is over a century away: {given!r}", "name a time to come, such as 24h")
    return until


def _parse_instant(given: str, now: int, sign: int) -> int:
    units = {"m": 60_000, "h": instant.HOUR, "d": instant.DAY}
    number = given[:-1]
    if number.isascii() and number.isdigit() and len(number) < 10 and given[-1:] in units:
        return now + sign * int(number) * units[given[-1]]
    try:
        return instant.parse(given)
    except ValueError:
        raise Malformed(f"not a time: {given!r}", "write 2026-03-16T14:30:00Z, 2026-03-16, 90m, 24h or 7d") from None
