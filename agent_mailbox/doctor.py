"""The doctor: what is wrong in a mailbox, each in one line with its place, and the few repairs that are safe.

Belongs here: looking (``examine``) and mending (``repair``). Mended are only modes, and lines that are provably torn;
the original is moved aside first.
"""

from __future__ import annotations

import json
import os
import stat

from . import config
from .core import codec, instant
from .core.codec import MAX_LINE
from .core.records import BadLine, Record
from .errors import MailboxError
from .store import paths
from .store.log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .core.records import Message
    from .mailbox import Mailbox


class Problem(Record):
    """One thing that is wrong: the file, the line number (1 is the first; None: the file as such), what, and the
    repair (``chmod``, ``remove torn line``, or None where a person must decide)."""

    file: str
    line: int | None
    what: str
    repair: str | None = None


def examine(mailbox: Mailbox) -> Iterator[Problem]:
    """Everything wrong with the mailbox."""
    yield from _modes(mailbox)
    try:
        config.load(mailbox.directory)
    except MailboxError as error:
        yield Problem(file=mailbox.logs.path(paths.CONFIG), line=None, what=error.what)
    logs = mailbox.logs
    live: dict[str, Message] = {}
    yield from _messages(logs.messages, live)
    yield from _lines(logs.reads, codec.read)
    yield from _lines(logs.roster, codec.roster_event)
    archive = mailbox.archive
    for month in archive.months():
        yield from _messages(archive.log(month), {}, month, live)
        yield from _lines(archive.reads_log(month), codec.read)
    for name in _leftovers(mailbox.directory):
        yield Problem(file=name, line=None, what="left by an interrupted archive run; the next run replaces it")


def _modes(mailbox: Mailbox) -> Iterator[Problem]:
    """Files and directories that others may reach; the mailbox directory itself may be one that was there before."""
    for directory, _, files in os.walk(mailbox.directory):
        closed = 0o022 if directory == mailbox.directory else 0o077
        names = (os.path.join(directory, name) for name in files if not name.startswith(".git"))
        for path, forbidden in [(directory, closed), *((name, 0o077) for name in names)]:
            try:
                mode = stat.S_IMODE(os.lstat(path).st_mode)
            except OSError:
                continue
            if mode & forbidden and not os.path.islink(path):
                yield Problem(file=path, line=None, what=f"others may reach it (mode {mode:04o})", repair="chmod")


def _lines(log: Log, decode: Callable[[bytes], object]) -> Iterator[Problem]:
    for number, line in _numbered(log):
        record = decode(line)
        if isinstance(record, BadLine):
            yield _bad(log.path, number, line, record)


def _numbered(log: Log) -> Iterator[tuple[int, bytes]]:
    """(line number, line), empty lines counted but not given."""
    number, reached = 1, 0
    for position, line in log.lines():
        number += _newlines(log.path, reached, position)
        reached = position
        yield number, line


def _newlines(path: str, start: int, end: int) -> int:
    count = 0
    with open(path, "rb") as file:
        file.seek(start)
        while start < end and (chunk := file.read(min(1 << 20, end - start))):
            count += chunk.count(b"\n")
            start += len(chunk)
    return count


def _bad(path: str, number: int, line: bytes, bad: BadLine) -> Problem:
    if is_torn(line):
        return Problem(file=path, line=number, what=f"torn: {bad.reason}", repair="remove torn line")
    return Problem(file=path, line=number, what=f"not a record: {bad.reason}")


def is_torn(line: bytes) -> bool:
    """Is the line provably the remains of one of our own writes: a record cut short, or a hole of zeros?

    Cut short means that JSON was still expected where the line ends. A whole line that is no record is somebody's.
    """
    whole = line.rstrip(b"\0")
    if not whole:
        return True
    if len(line) > MAX_LINE or not whole.startswith(b'{"'):
        return False
    try:
        json.loads(whole.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error.pos >= len(error.doc) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return len(whole) < len(line)


def _messages(
    log: Log, seen: dict[str, Message], month: str | None = None, live: dict[str, Message] | None = None
) -> Iterator[Problem]:
    for number, line in _numbered(log):
        message = codec.message(line)
        if isinstance(message, BadLine):
            yield _bad(log.path, number, line, message)
            continue
        first = seen.setdefault(message.id, message)
        if first is not message:
            same = first.replace(timestamp=0) == message.replace(timestamp=0)
            what = "written twice" if same else "found again with another body; the first written counts"
            yield Problem(file=log.path, line=number, what=f"id {message.id} {what}")
        if month is not None and instant.month(message.timestamp) != month:
            yield Problem(
                file=log.path, line=number, what=f"message of {instant.month(message.timestamp)} in another month"
            )
        if live is not None and message.id in live:
            yield Problem(
                file=log.path,
                line=number,
                what=f"id {message.id} is live too: an archive run was interrupted, the next one completes it",
            )


def _leftovers(directory: str) -> list[str]:
    names = (paths.MESSAGES, paths.READS, paths.ROSTER)
    return [p for p in (os.path.join(directory, f"{name}.new") for name in names) if os.path.exists(p)]


def repair(mailbox: Mailbox) -> list[Problem]:
    """Mend what is safe to mend; returns what remains. Torn lines go, the file as it was stays beside it."""
    found = list(examine(mailbox))
    for problem in found:
        if problem.repair == "chmod":
            os.chmod(problem.file, 0o700 if os.path.isdir(problem.file) else 0o600)
    for path in dict.fromkeys(p.file for p in found if p.repair == "remove torn line"):
        _without_torn_lines(path, instant.text(mailbox.now()))
    return list(examine(mailbox))


def _without_torn_lines(path: str, when: str) -> None:
    """Replace the log by one without its torn lines, under its lock; the original is kept as ``.damaged-…``."""
    with Log(path).held() as log:
        size = os.fstat(log.fd).st_size
        lines = os.pread(log.fd, size, 0).split(b"\n")
        kept = [line for line in lines if line and not (isinstance(codec.parse(line), BadLine) and is_torn(line))]
        log.replace(kept, size, keep_as=f"{path}.damaged-{when.replace(':', '')}")
