"""Carrying out a retention plan: move finished mail to its month, start fresh logs with the rest.

Belongs here: the order of the steps, which makes a killed run resumable. So does sealing lines that waited for the
person's word: that puts a fresh log in the same place.

- First, under the archive's lock and those of both logs, append the moved lines to their months, except lines already
  there. Sync, and seal them in the manifest.
- Second, write the rest aside, sync, rename it over the messages log.
- Third, do the same with the reads log.

After a kill behind the first step, the next run skips the archived lines. After a kill behind the second, the reads of
the moved mail are still in the live log, and the next run moves them.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ...core import codec, instant
from ...core.inbox import InboxState
from ...core.message_reads import Reads
from ...core.records import BadLine, Record
from ...errors import Busy, Refused, StorageFailed
from ..files import system
from ..files.lines import boundary, chunks, lines_of
from ..files.small_files import OpenFile, Storing, open_file
from ..locks.holder import holder_at
from ..log.logs import parse_messages, parse_reads
from ..log.replacement import Replaced, clear_leftover, put_back
from ..log.unordered import digest, unsealed
from .archive import LOCK, Archive
from .manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...core.keeping.retention import RetentionPlan
    from ...core.records import Proof
    from ..log.log import HeldLog, Log
    from ..log.logs import Logs
    from ..log.proof_view import Place, ProofView
    from .archived_digests import ArchivedDigests

    Judge = Callable[[int, bytes, ProofView], tuple[bytes, Proof] | None]
    """Is asked about each line in turn, with its position; returns its content and the proof that it gets, or None."""

LAST_RUN = "steward"
"""The derived file whose time is that of the steward's last run."""


class Rotated(Record):
    """A run's result: messages moved, live afterwards, and of those still to be delivered; the logs it replaced."""

    archived: int
    kept: int
    pending: int
    replaced: tuple[Replaced, ...] = ()


class SharedOrder(Record):
    """The order of machines that share a mailbox: ``has(log, position)`` tells whether a line is in it.

    Other lines are not moved, since nobody else has them yet. ``filed``: the archive's lines."""

    has: Callable[[Log, int], bool]
    filed: ArchivedDigests


@contextmanager
def alone(archive: Archive, wait: float) -> Iterator[None]:
    """Hold the maintenance lock for a ``with`` block; raise ``Busy`` if another process keeps it ``wait`` seconds."""
    from portalocker import LockException  # 30 ms, only for maintenance

    path = system.join(archive.directory, LOCK)
    with Storing("make", path):
        system.make_directory(archive.directory)
        system.close(open_file(path, system.O_WRONLY | system.O_CREAT))
    lock = system.library_lock(path, wait)
    try:
        lock.acquire()
    except LockException:
        holder = holder_at(path).replace(" by ", ": ", 1)
        raise Busy(
            f"another steward, backup or repair is at work in {archive.directory}{holder}",
            "wait for it, then try again",
        ) from None
    try:
        yield
    finally:
        lock.release()


def at_work(archive: Archive) -> bool:
    """Return whether a process maintains the mailbox at this moment."""
    if not system.exists(system.join(archive.directory, LOCK)):
        return False
    try:
        with alone(archive, 0):
            return False
    except Busy:
        return True
    except StorageFailed:
        return False  # the path holds no lock file


def rotate(
    logs: Logs,
    archive: Archive,
    ttls: Mapping[str, float | None],
    decide: Callable[[InboxState], RetentionPlan],
    order: SharedOrder | None = None,
) -> Rotated:
    """Move what ``decide`` says; the caller is ``alone``. ``order``: if several machines share the mailbox."""
    manifest = Manifest(archive)
    manifest.seal()  # an older version's months, before others have to wait for it
    with logs.messages.held() as messages, logs.reads.held() as reads:
        refuse_broken(logs)
        clear_leftover(messages)
        clear_leftover(reads)
        message_lines, messages_size = raw_lines(messages)
        read_lines, reads_size = raw_lines(reads)
        state = InboxState(
            messages=parse_messages(message_lines, messages.view()),
            reads=Reads(parse_reads(read_lines, reads.view())),
            roster=logs.read_roster(),
            ttls=ttls,
        )
        plan = decide(state)
        months = {i: instant.month(state.messages[i].timestamp) for i in plan.move}
        named = {one for _, line in read_lines if (one := _read_id(line)) is not None}
        months |= archive.month_of(named - state.messages.keys())  # archived already, or foreign
        moved, kept = _split(message_lines, months, _message_id, logs.messages, order)
        moved_reads, kept_reads = _split(read_lines, months, _read_id, logs.reads, order)
        for name in archive.files():
            drop_torn_copy(archive.file(name), (line for _, line in (*message_lines, *read_lines)))
        filed = None if order is None else order.filed
        for month, lines in moved.items():
            add_missing(archive.log(month), lines, filed)
        for month, lines in moved_reads.items():
            add_missing(archive.reads_log(month), lines, filed)
        manifest.seal()
        replaced = [put_back(messages, kept, messages_size)] if moved else []
        replaced += [put_back(reads, kept_reads, reads_size)] if moved_reads else []
    left = len(state.messages) - len(plan.move)
    return Rotated(archived=len(plan.move), kept=left, pending=plan.pending, replaced=tuple(replaced))


def reseal(logs: Logs, log: Log, judge: Judge) -> tuple[int, Replaced | None]:
    """Seal the lines of a log for which ``judge`` returns a proof, each at its place; return how many those are, and
    the fresh log. As when the steward moves mail, a kill leaves the old log or the new one.

    Raises ``Refused`` for a mailbox that is not as it was left: the person must see it unchanged."""
    with log.held() as held:
        refuse_broken(logs)
        clear_leftover(held)
        view = held.view()
        if view is None:
            return 0, None
        lines, size = raw_lines(held)
        fresh, done = [], 0
        for position, line in lines:
            found = judge(position, line, view)
            if found is not None:
                content, proof = found
                line = view.kept.sealed([content + b"\n"], [proof], position, view.entry.generation)[0][:-1]
                done += 1
            fresh.append((position, line))
        return done, put_back(held, fresh, size, before=view.entry.before) if done else None


def refuse_broken(logs: Logs) -> None:
    """Refuse to move lines of a log that does not continue what our writers left: the person must see it unchanged."""
    for log in (logs.messages, logs.reads, logs.roster):
        log.attentively(partial(_every_line, logs.directory))
    if logs.custody is not None and (why := logs.custody.broken()) is not None:
        raise Refused(
            f"{logs.directory} is not as it was left: {why}",
            "look at it, then run `agent-mailbox doctor --trust`",
            code="broken",
        )


def _every_line(directory: str, fd: int, view: ProofView | None) -> None:
    """Count the deciding lines, and note the replacement of a steward that was killed before it could."""
    if view is None:
        return
    if view.trusted and view.entry.generation != view.kept.entry().generation:
        with Storing("note the new logs of", directory):
            system.sync_directory(directory)  # that steward may have died before: the old log would be another file
            view.kept.follow(view.entry)
    for position, line in lines_of(fd, 0, boundary(fd, system.fstat(fd).st_size)):
        view.read(line, position)


def raw_lines(log: HeldLog) -> tuple[list[Place], int]:
    """Return every line as it is, however long or foreign, with its position, and how many bytes were read."""
    content = b"".join(chunks(log.fd, size=1 << 24))
    found, position = [], 0
    for line in content.split(b"\n"):
        if line:
            found.append((position, line))
        position += len(line) + 1
    return found, len(content)


def _message_id(line: bytes) -> str | None:
    record = codec.message(line)
    return None if isinstance(record, BadLine) else record.id


def _read_id(line: bytes) -> str | None:
    record = codec.read(line)
    return None if isinstance(record, BadLine) else record.message_id


def _split(
    lines: Iterable[Place],
    months: Mapping[str, str],
    id_of: Callable[[bytes], str | None],
    log: Log,
    order: SharedOrder | None,
) -> tuple[dict[str, list[bytes]], list[Place]]:
    """Return the lines that go to each month, and the lines that stay, with their positions.

    Foreign lines always stay, and those that the order does not have."""
    moved: dict[str, list[bytes]] = {}
    kept = []
    for position, line in lines:
        month = months.get(id_of(line) or "")
        if month is None or (order is not None and not order.has(log, position)):
            kept.append((position, line))
        else:
            moved.setdefault(month, []).append(line)
    return moved, kept


def add_missing(log: Log, lines: Iterable[bytes], filed: ArchivedDigests | None = None) -> None:
    """Append the missing lines, and sync all of them: a killed run may have written them and died before its sync.

    ``filed`` spares reading the log if it is known to have none of them."""
    lines = [*lines]
    with log.held() as held:
        known = None if filed is None else filed.of(log)
        is_new = known is not None and known.isdisjoint(digest(unsealed(line)) for line in lines)
        there = {} if is_new else {line: position for position, line in held.lines()}
        held.append(line + b"\n" for line in lines if line not in there)
        held.sync((there[line], line) for line in lines if line in there)


def drop_torn_copy(log: Log, live: Iterable[bytes]) -> None:
    """Cut off the torn end that a killed run left: it must begin a line that is still live, or be all of it.

    A live line is replaced only after its archived copy is whole.
    """
    fd = log.open()
    if fd is None:
        return
    with OpenFile(fd):
        size = system.fstat(fd).st_size
        if size == 0 or system.pread(fd, 1, size - 1) == b"\n":
            return
    with log.held() as held:
        size = system.fstat(held.fd).st_size
        end = boundary(held.fd, size)
        torn = system.pread(held.fd, size - end, end)
        if any(line.startswith(torn) for line in live):
            system.ftruncate(held.fd, end)
