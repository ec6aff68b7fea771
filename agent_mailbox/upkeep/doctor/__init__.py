"""The doctor: find a mailbox's problems, one line and place each, and make the few repairs that are safe.

Belongs here: the order of the checks (``check_uses``; the modules ``…_checks`` make them), and ``repair_safely``. A
repair corrects modes, removes wrong derived files, and removes provably torn lines after keeping them beside the log.
It is idempotent, also after a kill.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core import codec, instant
from ...core.findings import CHMOD, REMOVE_DERIVED, REMOVE_TORN, Problem, Repaired
from ...core.records import BadLine
from ...errors import StorageFailed
from ...store.archive import rotation
from ...store.files import system
from ...store.files.small_files import Storing, storage_failed
from ...store.locks.lock import FileLock
from ...store.log import replacement
from ...store.log.log import Log
from ...store.projection import index_keys
from . import (
    agent_checks,
    archive_checks,
    derived_checks,
    log_checks,
    place_checks,
    proof_checks,
    use_checks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...mailbox.mailbox import Mailbox


def examine_mailbox(
    mailbox: Mailbox, environ: Mapping[str, str] | None = None, *, archived: bool = True
) -> Iterator[Problem]:
    """Yield the mailbox's problems and notes.

    Without ``archived`` only the archive's checksums are checked, not its records, and nothing is tried.
    """
    at_work = partial(rotation.at_work, mailbox.archive)
    told: set[str] = set()
    for part in (
        use_checks.check_uses(mailbox) if archived else iter(()),
        place_checks.check_place(mailbox, environ),
        proof_checks.check_proofs(mailbox),
        log_checks.check_logs(mailbox, archived=archived, at_work=at_work),
        archive_checks.check_archive(mailbox, at_work),
        derived_checks.check_derived(mailbox),
        archive_checks.check_attachments(mailbox),
        agent_checks.check_agents(mailbox),
    ):
        try:
            for problem in part:
                told.add(problem.file)
                yield problem
        except StorageFailed as error:  # in one part; the others are still checked
            if not any(f"{path} " in f"{error.what} ".replace(":", " ") for path in told - {mailbox.directory}):
                yield Problem(mailbox.directory, None, f"{error.what}; {error.hint}".removesuffix("; "))
                told.add(error.what.split()[0])


def problems_among(found: Iterator[Problem]) -> list[Problem]:
    """Return the findings that need action, without notes."""
    return [problem for problem in found if not problem.note]


def repair_safely(mailbox: Mailbox, tell: Callable[[Repaired], None] = lambda _: None) -> None:
    """Make the safe repairs; ``tell`` hears of each thing that was changed, once it is. Raises ``Busy`` while a steward
    runs."""
    with rotation.alone(mailbox.archive, mailbox.logs.wait):
        found = list(examine_mailbox(mailbox))
        for problem in found:
            if problem.repair == CHMOD:
                tell(_close_mode(problem.file))
            elif problem.repair == REMOVE_DERIVED and _remove_derived(mailbox, problem.file):
                tell(Repaired(problem.file, "removed; it is derived, and its next user makes it again"))
        for path in dict.fromkeys(p.file for p in found if p.repair == REMOVE_TORN):
            for one in _without_torn_lines(_log_at(mailbox, path), instant.text(mailbox.now())):
                tell(one)


def _close_mode(path: str) -> Repaired:
    mode = 0o700 if system.is_directory(path) else 0o600
    with Storing("change the mode of", path):
        before = system.stat(path).st_mode & 0o7777
        system.chmod(path, mode)
    return Repaired(path, f"its mode is {mode:o} now, and was {before:o}")


def _remove_derived(mailbox: Mailbox, path: str) -> bool:
    """Remove a derived file, which its next user rebuilds; return whether it was there."""
    is_index = path == mailbox.logs.cache(index_keys.FILE)
    lock = FileLock(mailbox.logs.cache(index_keys.LOCK), mailbox.logs.wait) if is_index else nullcontext()
    try:
        with lock:  # so that no search uses it
            system.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_failed("remove", path, error) from None
    return True


# -- torn lines -------------------------------------------------------------------------------------------------------


def _log_at(mailbox: Mailbox, path: str) -> Log:
    """Return the log at a path; a live one with its stamps and record."""
    live = (mailbox.logs.messages, mailbox.logs.reads, mailbox.logs.roster)
    return next((log for log in live if log.path == path), Log(path))


TORN = ".torn"
"""The end of the name of the file beside a log that keeps what repairs cut from it."""


def _without_torn_lines(log: Log, when: str) -> list[Repaired]:
    """Remove a log's torn lines, under its lock; keep them in the file beside it, with where they were. Return what was
    cut."""
    beside = f"{log.path}{TORN}"
    with log.held() as held:
        lines, size = rotation.raw_lines(held)
        torn = [(at, line) for at, line in lines if _is_torn(line)]
        _keep_torn_lines(Log(beside, log.wait), [kept_record(at, line) for at, line in torn], when)
        replacement.put_back(held, [(at, line) for at, line in lines if not _is_torn(line)], size)
    return [
        Repaired(log.path, f"cut a torn line of {len(line)} bytes at byte {at}; {beside} keeps it", beside)
        for at, line in torn
    ]


def kept_record(position: int, torn: bytes) -> dict[str, Any]:
    """Return what is kept of a torn line: its byte offset in the log, and all its bytes."""
    if not torn.strip(b"\0"):
        return {"position": position, "zeros": len(torn)}
    try:
        return {"position": position, "text": torn.decode()}
    except UnicodeDecodeError:
        return {"position": position, "hex": torn.hex()}


def _keep_torn_lines(beside: Log, torn: Sequence[dict[str, Any]], when: str) -> None:
    """Append what is cut, durably, before it is cut; a killed repair may have kept some of it already."""
    with beside.held() as held:
        there = [codec.parse(line, len(line), ours=False) for _, line in held.lines()]
        known = [{**one, "cut": None} for one in there if isinstance(one, dict)]
        held.append(
            codec.dumps({**one, "cut": when}).encode() + b"\n" for one in torn if {**one, "cut": None} not in known
        )
        held.sync()


def _is_torn(line: bytes) -> bool:
    return isinstance(codec.parse(line), BadLine) and log_checks.is_torn(line)
