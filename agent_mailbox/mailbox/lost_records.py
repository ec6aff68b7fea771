"""Bringing back into the order what its engine lost: every machine's files are a second copy.

Belongs here: finding the lines that were in the order and are there no more, publishing them in bundles, and taking in
such a bundle. A server whose file was damaged may drop thousands of records as it starts, without a word, and give
their positions to others. So a copy keeps the digest of the last record that it took in, and how many positions have
none.

A bundle of this kind names a log in place of an archive's file. A machine that has a line already, live or archived,
does not write it again. So any number of machines may restore the same at once.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import BadLine, Message
from ..store.bundles import records_of, unpacked
from ..store.order import ARCHIVE, CLAIMS, MESSAGES, ROSTER, is_known
from ..store.stamps import EVERYONE
from ..store.unordered import digest, unsealed
from . import following

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.bundles import Bundle
    from .local_copy import LocalCopy

LOGS = (ROSTER, MESSAGES, CLAIMS)


def restore(copy: LocalCopy) -> int:
    """Publish what the order lost, under the machine's lock, after a look; return how many records. Reads them all."""
    present, bundled = set[bytes](), set[bytes]()
    for record in copy.everything():
        if record.damaged or not is_known(record.log):
            continue
        bundle = unpacked(record.line) if record.log == ARCHIVE else None
        if bundle is None:
            present.add(digest(unsealed(record.line)))
        else:
            present.update(map(digest, (*bundle.lines, *bundle.told)))
            bundled.update(map(digest, bundle.lines))
    count = 0
    for kind in LOGS:
        for one in records_of(kind, _lost(copy, kind, present)):
            copy.order.append(ARCHIVE, [one])
            count += 1
    return count + following.hand_over(copy, bundled)  # a record alone does not tell that its line is archived


def _lost(copy: LocalCopy, kind: str, present: set[bytes]) -> Iterator[bytes]:
    """Yield the lines that were in the order. A message whose id another one has never was."""
    lines = [line for _, line in copy.parts[kind].ordered()]
    ids = {_id(line) for line in lines if digest(line) in present} if kind == MESSAGES else set()
    for line in lines:
        if digest(line) in present or not _is_record(kind, line) or _id(line) in ids:
            continue
        if kind == MESSAGES:
            ids.add(_id(line))
        yield line


def take_back(copy: LocalCopy, bundle: Bundle) -> None:
    """Write the lines of such a bundle that this machine does not have, live or archived."""
    part = copy.parts[bundle.file]
    for line in bundle.lines:
        part.strike(digest(line))
    copy.filed.look()
    live = {digest(unsealed(line)) for _, line in part.log.lines()}
    wanted = {key: line for line in bundle.lines if (key := digest(line)) not in live and not copy.filed.has(key)}
    lines = [line for line in wanted.values() if _is_record(bundle.file, line)]
    if lines:
        part.log.append([line + b"\n" for line in lines], EVERYONE)
        part.look()
        for line in lines:
            part.strike(digest(line))


def _is_record(kind: str, line: bytes) -> bool:
    decode = {MESSAGES: codec.message, ROSTER: codec.roster_event}.get(kind, codec.read)
    return not isinstance(decode(line), BadLine)


def _id(line: bytes) -> str | None:
    message = codec.message(line)
    return message.id if isinstance(message, Message) else None
