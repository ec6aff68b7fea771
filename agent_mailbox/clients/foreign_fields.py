"""Files that another program wrote, and perhaps rewrites meanwhile. Read only.

Belongs here: their values, of which invalid ones are reported, never raised; their bytes, and a stamp that shows a
change. Nothing here takes a lock.
"""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, Any

from ..core import codec
from ..core.records import BadLine, Record
from ..store.files.small_files import read_if_possible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_SETTINGS = 4 << 20
"""Bytes read of a settings file: a person wrote it."""


def read_object(path: str, most: int = MAX_SETTINGS) -> dict[str, Any]:
    """Return the object in a file; empty if it cannot be read, has more than ``most`` bytes, or has another form."""
    found = codec.parse(read_if_possible(path, most, through_links=True) or b"", most, ours=False)
    return {} if isinstance(found, BadLine) else found


def rules_of(settings: Mapping[str, Any], key: str) -> list[Any]:
    """Return the rules by which a client's settings allow or ask; none if they have another shape."""
    permissions = settings.get("permissions")
    rules = permissions.get(key) if isinstance(permissions, dict) else None
    return rules if isinstance(rules, list) else []


class Unfit(Record):
    """An invalid part: its place in the array (None: the whole file), and why."""

    place: int | None
    reason: str


def list_unfit(unfit: tuple[Unfit, ...]) -> Iterator[str]:
    """Yield a line for each invalid part."""
    for one in unfit:
        yield one.reason if one.place is None else f"entry {one.place + 1}: {one.reason}"


def refuse_constant(word: str) -> Any:
    """Refuse, for ``json``, the constants of Python that JSON lacks (``NaN``, ``Infinity``)."""
    raise ValueError(f"{word} is not JSON")


def kind_of(value: Any) -> str:
    """Return a value's type, in words."""
    if value is None:
        return "null"
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "something else")


def text_under(value: Mapping[str, Any], key: str) -> str | None:
    """Return the text under a key; a value of another type counts as absent."""
    found = value.get(key)
    return clean_text(found) or None if isinstance(found, str) else None


def clean_text(text: str) -> str:
    """Return text that UTF-8 can hold: JavaScript's may have half surrogates. NUL, which our mail never has, goes,
    too."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


# -- files that another program rewrites meanwhile --------------------------------------------------------------------


MAX_FILE = 64 << 20
"""Most bytes of an inbox that are read: far more than any the client still gets through."""
_RACY = 100_000_000
"""Nanoseconds: a file written so lately may change again under the same time, so its stamp is not trusted."""
_TRIES = 5

Stamp = tuple[int, int, int]


class Content(Record):
    """A file as it was read. ``stamp``: (inode, mtime in ns, size); None: read it again next time."""

    data: bytes
    stamp: Stamp | None


def stamp_of(path: str) -> Stamp | None:
    """Return a stamp that shows whether a file changed, by ``stat``; None if missing, or if it may change unnoticed."""
    try:
        at = os.stat(path)
    except OSError:
        return None
    return None if _is_fresh(at) else (at.st_ino, at.st_mtime_ns, at.st_size)


def _is_fresh(at: os.stat_result) -> bool:
    return abs(time.time_ns() - at.st_mtime_ns) < _RACY


def read_content(path: str, most: int = MAX_FILE) -> Content | None:
    """Return a regular file's bytes; None if unreadable. One written to meanwhile is read again; ``format`` takes a
    half-written one."""
    content = None
    for _ in range(_TRIES):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError):
            return content
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode) or before.st_size > most:
                return None
            with open(fd, "rb", closefd=False) as file:
                data = file.read(most)
            after = os.fstat(fd)
        except OSError:
            return content
        finally:
            os.close(fd)
        same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data)
        stamp = (after.st_ino, after.st_mtime_ns, after.st_size)
        content = Content(data, stamp if same and not _is_fresh(after) else None)
        if same:
            break
    return content
