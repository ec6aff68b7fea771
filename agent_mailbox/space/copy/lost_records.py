"""Bringing back into the order what its engine lost: every machine's files are a second copy.

Belongs here: finding the lines that were in the order and are there no more, publishing them in bundles, and taking in
such a bundle. A server whose file was damaged may drop thousands of records as it starts, without a word, and give
their positions to others. So a copy keeps the digest of the last record that it took in, and how many positions have
none.

A bundle of this kind names a log in place of an archive's file. A machine that has a line already, live or archived,
does not write it again. So any number of machines may restore the same at once. Agents whose lives were retold come
back as a steward's decision: with what is archived of them, and what is told in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import codec
from ...core.records import BadLine, Message
from ...core.space_seals import is_ignored
from ...store.archive.archive import ROSTER as EVENTS
from ...store.files import system
from ...store.log.stamps import EVERYONE
from ...store.log.unordered import digest, unsealed
from ..order.bundles import WHOLE, Bundle, pack_bundle, records_of, unpack_bundle
from ..order.order import ARCHIVE, CLAIMS, KINDS, MESSAGES, ROSTER, is_known
from ..order.waiting_lines import taken_back
from ..trust.space_judge import Judged
from . import following

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..local_copy import LocalCopy
    from ..trust.space_judge import SpaceJudge


def restore_lost(copy: LocalCopy) -> int:
    """Publish what the order lost, under the machine's lock, after a look; return how many records. Reads them all.

    The ends of the logs are noted first. Lines behind them came meanwhile, by another process, and were not lost."""
    ends = {kind: part.end for kind, part in copy.parts.items()}
    present, bundled = set[bytes](), set[bytes]()
    if copy.judge is not None:
        copy.judge.prepare_judging(copy.logs)
    for record in copy.all_records():
        if record.damaged or not is_known(record):
            continue
        bundle = unpack_bundle(record.line) if record.log == ARCHIVE else None
        if bundle is None:
            present.add(digest(unsealed(record.line)))
        else:
            present.update(map(digest, (*_heeded_lines(copy, bundle, record.machine), *bundle.told)))
            bundled.update(map(digest, bundle.lines if bundle.file not in KINDS else ()))
    count, mark = 0, system.urandom(8).hex()  # what comes back twice differs: see ``passed``
    for retold in _retold_bundles(copy, bundled):
        copy.order.append_lines(ARCHIVE, [pack_bundle(retold, mark)])
        present.update(map(digest, (*retold.lines, *retold.told)))
        bundled.update(map(digest, retold.lines))
        count += 1
    for kind in KINDS:
        for one in records_of(kind, _lost_lines(copy, kind, present, ends[kind]), mark):
            copy.order.append_lines(ARCHIVE, [one])
            count += 1
    return count + following.hand_over(copy, bundled)  # a record alone does not tell that its line is archived


def _heeded_lines(copy: LocalCopy, bundle: Bundle, machine: str) -> Iterator[bytes]:
    """Yield the lines of a bundle, but for those about this machine's sessions that another ``machine`` brought back.

    A machine that joins later ignores them in that one's name. So this machine brings them back, too."""
    judge = copy.judge if machine != copy.order.machine and bundle.file in (ROSTER, CLAIMS) else None
    return (line for line in bundle.lines if judge is None or not judge.is_ours_alone(machine, bundle.file, line))


def _retold_bundles(copy: LocalCopy, bundled: set[bytes]) -> Iterator[Bundle]:
    """Yield the decisions to retell the dead that are lost, some agents in each.

    A line of a retold life may be one that the agent had: by itself it would be left out, or the dead would rise."""
    lost: dict[str, list[bytes]] = {}
    since = dict[str, int]()
    for _, line in copy.archive.roster_log().lines():
        event = codec.roster_event(line)
        if not isinstance(event, BadLine) and digest(unsealed(line)) not in bundled:
            lost.setdefault(event.session_id, []).append(unsealed(line))
            since[event.session_id] = max(event.timestamp + 1, since.get(event.session_id, 0))
    told: dict[str, list[bytes]] = {}
    for _, line in copy.parts[ROSTER].ordered() if lost else ():
        event = codec.roster_event(line)
        if not isinstance(event, BadLine) and event.session_id in lost:
            told.setdefault(event.session_id, []).append(line)
    group, size = list[str](), 0
    for who in (*told, None):
        own = 0 if who is None else sum(map(len, (*lost[who], *told[who])))
        if group and (who is None or size + own > WHOLE):
            gone, life = ([line for one in group for line in lines[one]] for lines in (lost, told))
            yield Bundle(EVENTS, tuple(gone), tuple(life), max(since[one] for one in group))
            group, size = [], 0
        if who is not None:
            group.append(who)
            size += own


def _lost_lines(copy: LocalCopy, kind: str, present: set[bytes], end: int) -> Iterator[bytes]:
    """Yield the lines before ``end`` that were in the order.

    A message whose id another one has, archived or not, never was. Neither was a read that a release behind it
    took back, or it must not be any more (``taken_back``)."""
    ordered = [(at, line) for at, line in copy.parts[kind].ordered() if at < end]
    late = {at: line for at, line in ordered if digest(line) not in present and _is_record(kind, line)}
    over = (
        taken_back(copy.parts[kind].log.lines(), copy.parts[kind].log.view(), late) if kind == CLAIMS and late else ()
    )
    lines = [line for at, line in late.items() if at not in over]
    ids = set[str | None]()
    if kind == MESSAGES and lines:
        ids.update(_message_id_of(line) for _, line in ordered if digest(line) in present)
        ids.update(map(_message_id_of, copy.archive.mentioning({_message_id_of(line) or "" for line in lines})))
    for line in lines:
        if _message_id_of(line) in ids:
            continue
        if kind == MESSAGES:
            ids.add(_message_id_of(line))
        yield line


def take_back(copy: LocalCopy, bundle: Bundle, machine: str) -> None:
    """Write the lines of such a bundle that this machine does not have, live or archived, or ignores so far.

    The ``machine`` whose bundle it is tells of its own sessions alone, as in every record."""
    part = copy.parts[bundle.file]
    for line in bundle.lines:
        part.strike(digest(line))
    copy.filed.look()
    live = {digest(unsealed(line)) for _, line in part.log.lines() if not is_ignored(line)}
    wanted = {key: line for line in bundle.lines if (key := digest(line)) not in live and not copy.filed.has(key)}
    lines = [line for line in wanted.values() if _is_record(bundle.file, line)]
    if lines:
        judge = copy.judge if machine != copy.order.machine else None
        if judge is not None:
            judge.prepare_judging(copy.logs)
        judged = [_judge_restored(judge, machine, bundle.file, line) for line in lines]
        part.log.append([one.line + b"\n" for one in judged], EVERYONE, [one.proof for one in judged])
        part.look()
        for line in lines:
            part.strike(digest(line))


def _judge_restored(judge: SpaceJudge | None, machine: str, kind: str, line: bytes) -> Judged:
    found = Judged(line, None)
    return found if judge is None else judge.judge_unproven(machine, kind, found, restored=True)


def _is_record(kind: str, line: bytes) -> bool:
    decode = {MESSAGES: codec.message, ROSTER: codec.roster_event}.get(kind, codec.read)
    return not isinstance(decode(line), BadLine)


def _message_id_of(line: bytes) -> str | None:
    message = codec.message(line)
    return message.id if isinstance(message, Message) else None
