"""Carrying out a retention plan: move what is finished to its month, start fresh logs with the rest.

Belongs here: the order of the steps, which makes a run resumable wherever it was killed. (1) Under the archive's lock
and those of both logs, append what moves to the months, skipping lines already there, and sync. (2) Write the rest
aside, sync, rename over the messages log. (3) The same for the reads log. Killed after 1: the next run skips what is
archived. Killed after 2: the reads of what moved still stand in the live log, and the next run moves them.
"""

from __future__ import annotations

import os

import portalocker

from ..core import codec, instant
from ..core.claims import Reads
from ..core.inbox import State
from ..core.records import BadLine, Record
from ..core.retention import compacted
from ..errors import Busy
from . import paths
from .archive import LOCK, Archive
from .logs import Logs, parse_messages, parse_reads, parse_roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..core.retention import Plan
    from .log import HeldLog, Log

COMPACT_ABOVE = 1000
"""Roster events above which the roster is retold in fewer: the messages' own threshold."""


class Rotated(Record):
    """What a run did: messages moved, live afterwards, and of those still to be delivered."""

    archived: int
    kept: int
    pending: int


def exclusively(archive: Archive, wait: float) -> portalocker.Lock:
    """The lock of whoever maintains the mailbox, for a ``with`` block; see ``busy`` for its error."""
    path = os.path.join(archive.directory, LOCK)
    try:
        os.makedirs(archive.directory, mode=0o700, exist_ok=True)
        os.close(paths.open_file(path, os.O_WRONLY | os.O_CREAT))
    except OSError as error:
        raise paths.storage_failed("make", path, error) from None
    return portalocker.Lock(path, mode="a", timeout=wait, flags=portalocker.LOCK_EX | portalocker.LOCK_NB)


def busy(archive: Archive) -> Busy:
    """The error for ``portalocker.LockException``."""
    return Busy(f"another steward is at work in {archive.directory}", "it will do what you wanted; try again later")


def rotate(logs: Logs, archive: Archive, ttls: Mapping[str, float | None], decide: Callable[[State], Plan]) -> Rotated:
    """Move what ``decide`` says; the caller holds ``exclusively``."""
    with logs.messages.held() as messages, logs.reads.held() as reads:
        message_lines, messages_size = _raw_lines(messages)
        read_lines, reads_size = _raw_lines(reads)
        state = State(
            messages=parse_messages(message_lines),
            reads=Reads(parse_reads(read_lines)),
            roster=logs.read_roster(),
            ttls=ttls,
        )
        plan = decide(state)
        months = {i: instant.month(state.messages[i].timestamp) for i in plan.move}
        months |= archive.month_of(_strays(read_lines, state))
        moved, kept = _split(message_lines, months, _message_id)
        moved_reads, kept_reads = _split(read_lines, months, _read_id)
        for month, lines in moved.items():
            _add(archive.log(month), lines)
        for month, lines in moved_reads.items():
            _add(archive.reads_log(month), lines)
        if moved:
            messages.replace(kept, messages_size)
        if moved_reads:
            reads.replace(kept_reads, reads_size)
    return Rotated(archived=len(plan.move), kept=len(state.messages) - len(plan.move), pending=plan.pending)


def compact_roster(logs: Logs, archive: Archive, since: int) -> int:
    """Retell a long roster in fewer events, the old lines archived; returns how many lines that saved."""
    with logs.roster.held() as roster:
        lines, size = _raw_lines(roster)
        if len(lines) <= COMPACT_ABOVE:
            return 0
        told = [codec.roster_line(event).rstrip(b"\n") for event in compacted(parse_roster(lines), since)]
        if len(told) * 2 > len(lines):
            return 0
        _add(archive.roster_log(), lines)
        roster.replace(told, size)
        return len(lines) - len(told)


def _raw_lines(log: HeldLog) -> tuple[list[bytes], int]:
    """Every line as it stands, however long or foreign, and how many bytes were read."""
    parts = []
    offset = 0
    while part := os.pread(log.fd, 1 << 24, offset):
        parts.append(part)
        offset += len(part)
    return [line for line in b"".join(parts).split(b"\n") if line], offset


def _message_id(line: bytes) -> str | None:
    record = codec.message(line)
    return None if isinstance(record, BadLine) else record.id


def _read_id(line: bytes) -> str | None:
    record = codec.read(line)
    return None if isinstance(record, BadLine) else record.message_id


def _strays(read_lines: Iterable[bytes], state: State) -> set[str]:
    """Ids that reads speak of and that are not live: archived already, or foreign."""
    return {i for i in map(_read_id, read_lines) if i is not None and i not in state.messages}


def _split(
    lines: Iterable[bytes], months: Mapping[str, str], id_of: Callable[[bytes], str | None]
) -> tuple[dict[str, list[bytes]], list[bytes]]:
    """What goes to each month, and what stays (foreign lines always do)."""
    moved: dict[str, list[bytes]] = {}
    kept = []
    for line in lines:
        month = months.get(id_of(line) or "")
        if month is None:
            kept.append(line)
        else:
            moved.setdefault(month, []).append(line)
    return moved, kept


def _add(log: Log, lines: Iterable[bytes]) -> None:
    """Append the lines that are not there yet, and have all of them synced: a run that was killed may have come this
    far before, and have died before its sync."""
    with log.held() as held:
        there = {line for _, line in held.lines()}
        held.append(line + b"\n" for line in lines if line not in there)
        held.sync()
