"""The doctor: what is wrong in a mailbox, each in one line with its place, and the few repairs that are safe.

Belongs here: the order of looking (``examine``; what is looked at stands in the modules of that name), and mending
(``repair``). Mended are only modes, derived files that answer wrongly, which go, and lines that are provably torn;
there the original is moved aside first. A repair that is killed is repeated; nothing is mended twice.
"""

from __future__ import annotations

import os

from ...core import codec, instant
from ...core.records import BadLine
from ...errors import StorageFailed
from ...store import index as search_index
from ...store import paths, rotation
from ...store.lines import chunks
from ...store.lock import FileLock
from ...store.log import Log
from . import agent_checks, archive_checks, derived_checks, log_checks, place_checks, proof_checks, torn_lines
from .findings import CHMOD, REMOVE_DERIVED, REMOVE_TORN, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...mailbox.facade import Mailbox


def examine(
    mailbox: Mailbox, environ: Mapping[str, str] | None = None, *, archived: bool = True, alone: bool = False
) -> Iterator[Problem]:
    """Everything wrong with the mailbox, and what is worth a note.

    Without ``archived`` the records of the archive are not looked at, only its checksums; ``alone`` says that the
    caller keeps stewards away, so that whatever looks unfinished is.
    """

    def at_work() -> bool:
        return not alone and rotation.at_work(mailbox.archive)

    for part in (
        place_checks.examine(mailbox, environ),
        proof_checks.examine(mailbox),
        log_checks.examine(mailbox, archived=archived, at_work=at_work),
        archive_checks.examine(mailbox, at_work),
        derived_checks.examine(mailbox),
        agent_checks.examine(mailbox),
    ):
        try:
            yield from part
        except StorageFailed as error:  # of one file; the others are looked at all the same
            yield Problem(mailbox.directory, None, f"{error.what}; {error.hint}".removesuffix("; "))


def problems(found: Iterator[Problem]) -> list[Problem]:
    """Those that need somebody."""
    return [problem for problem in found if not problem.note]


def repair(mailbox: Mailbox, environ: Mapping[str, str] | None = None) -> list[Problem]:
    """Mend what is safe to mend; returns what remains. ``Busy`` beside a steward."""
    with rotation.alone(mailbox.archive, mailbox.logs.wait):
        found = list(examine(mailbox, environ, alone=True))
        for problem in found:
            if problem.repair == CHMOD:
                _close(problem.file)
            elif problem.repair == REMOVE_DERIVED:
                _remove_derived(mailbox, problem.file)
        for path in dict.fromkeys(p.file for p in found if p.repair == REMOVE_TORN):
            _without_torn_lines(_log(mailbox, path), instant.text(mailbox.now()))
    return list(examine(mailbox, environ))


def _close(path: str) -> None:
    try:
        os.chmod(path, 0o700 if os.path.isdir(path) else 0o600)
    except OSError as error:
        raise paths.storage_failed("change the mode of", path, error) from None


def _remove_derived(mailbox: Mailbox, path: str) -> None:
    """Whoever needs it makes it anew."""
    lock = mailbox.logs.cache(search_index.LOCK) if path == mailbox.logs.cache(search_index.FILE) else None
    try:
        if lock is None:
            os.unlink(path)
        else:
            with FileLock(lock, mailbox.logs.wait):  # nobody searches in it then
                os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise paths.storage_failed("remove", path, error) from None


# -- torn lines -------------------------------------------------------------------------------------------------------


def _log(mailbox: Mailbox, path: str) -> Log:
    """The log at a path, one of the live ones with all that its writers leave behind."""
    live = (mailbox.logs.messages, mailbox.logs.reads, mailbox.logs.roster)
    return next((log for log in live if log.path == path), Log(path))


def _without_torn_lines(log: Log, when: str) -> None:
    """Replace the log by one without its torn lines, under its lock; the original is kept as ``.damaged-…``."""
    with log.held() as held:
        size = os.fstat(held.fd).st_size

        def lines(misplaced: bool) -> Iterator[bytes]:
            whole = _whole_lines(held.fd, size)
            return (line for at, line in whole if held.is_misplaced(at, line) == misplaced)

        held.replace(lines(False), size, _aside(log.path, when, held.fd), lines(True))


def _aside(path: str, when: str, fd: int) -> str | None:
    """A name to keep the original under; None if a repair that was killed has kept it already."""
    directory, name = os.path.split(path)
    here = os.fstat(fd)
    for other in os.listdir(directory):
        if other.startswith(f"{name}.damaged-"):
            there = os.lstat(os.path.join(directory, other))
            if (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev):
                return None
    return f"{path}.damaged-{when.replace(':', '')}"


def _whole_lines(fd: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The lines that are not torn, without newlines, with their positions, as they stand and however long, read a chunk
    at a time."""
    rest = b""
    position = 0
    for chunk in chunks(fd, 0, size):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if line and not _is_torn(line):
                yield position, line
            position += len(line) + 1
    if rest and not _is_torn(rest):
        yield position, rest


def _is_torn(line: bytes) -> bool:
    return isinstance(codec.parse(line), BadLine) and torn_lines.is_torn(line)
