"""Bundles: lines of one archived log as one record of the order, compressed.

Belongs here: their form on the wire. A bundle says that its lines are archived in a file, everywhere. It keeps them for
a machine that joins later: their own records may be removed then. Another machine's bundle is untrusted: it names only
files of an archive, and unpacks to ``LARGEST`` bytes at most.
"""

from __future__ import annotations

import zlib

from ...core import codec
from ...core.records import Record
from ...store.archive.archive import ROSTER
from .order import KINDS, WIDEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

READS_END = "-reads.jsonl"
WHOLE = 1 << 20
"""Bytes of lines that are put into one bundle, unless a single line is longer."""
LARGEST = 2 << 20
"""Bytes that a bundle may unpack to."""


class Bundle(Record):
    """Lines (without newlines and seals) of an archive's file. ``told``: the roster events in their place; ``since``:
    the instant (ms) before which they may leave out frozen spans."""

    file: str
    lines: tuple[bytes, ...]
    told: tuple[bytes, ...] = ()
    since: int = 0


def pack_bundle(bundle: Bundle, mark: str = "") -> bytes:
    """Return the bundle as the line of a record; with a ``mark`` it is like no other."""
    head = codec.dumps({"file": bundle.file, "told": len(bundle.told), "since": bundle.since, "mark": mark}).encode()
    return zlib.compress(b"\n".join((head, *bundle.told, *bundle.lines)))


def unpack_bundle(line: bytes) -> Bundle | None:
    """Return the bundle of a record; None if it has another form, or is too large."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(line, LARGEST)
    except zlib.error:
        return None
    first, *lines = text.split(b"\n")
    head = codec.parse(first)
    if not unpacking.eof or not isinstance(head, dict):
        return None
    file, told, since = head.get("file"), head.get("told"), head.get("since")
    if not isinstance(file, str) or not is_file(file) or type(told) is not int or type(since) is not int or told < 0:
        return None
    return Bundle(file, tuple(lines[told:]), tuple(lines[:told]), since)


def is_file(name: str) -> bool:
    """Return whether an archive may have a file of that name, or a log has it, to which lost lines come back."""
    month, rest = name[:7], name[7:]
    is_month = month[:4].isdecimal() and month[4:5] == "-" and month[5:].isdecimal() and month.isascii()
    return name in (ROSTER, *KINDS) or (len(month) == 7 and is_month and rest in (".jsonl", READS_END))


def in_parts(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in groups of some ``WHOLE`` bytes; one that is larger is alone."""
    group: list[T] = []
    size = 0
    for item in items:
        own = size_of(item)
        if group and size + own > WHOLE:
            yield group
            group, size = [], 0
        group.append(item)
        size += own
    if group:
        yield group


def records_of(file: str, lines: Iterable[bytes], mark: str = "") -> Iterator[bytes]:
    """Yield records for the lines of a file, each small enough to be appended alone. ``mark``: see ``pack_bundle``.

    A line that no bundle can hold is left out."""
    todo = [*in_parts((line for line in lines if len(line) < WIDEST), lambda line: len(line) + 1)][::-1]
    while todo:
        group = todo.pop()
        record = pack_bundle(Bundle(file, tuple(group)), mark)
        if len(record) <= WIDEST:
            yield record
        elif len(group) > 1:
            half = len(group) // 2
            todo += [group[half:], group[:half]]
