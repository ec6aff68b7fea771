"""The log of the order that tells how far each machine has followed the steward's decisions.

Belongs here: the lines of that log, and the machine that is furthest behind. Each line says one thing, and has a
``mark``, so that it is like no other. By its last record a copy tells whether the order is still the same.

    {"applied":812}    this machine has archived what was decided up to there
    {"gave_up":"M"}    the person gave up machine M: nobody waits for it until it says more; if it lives, it does
    {"took_over":"K"}  another mailbox has this machine's name from now on, and the key with fingerprint K
    {"purged":700}     records up to there may be removed from now on
    {"damaged":13}     a record is not what was published: who has it brings it back
"""

from __future__ import annotations

from ...core import codec
from ...store.files import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self

    from .order import Ordered


def followed_line(applied: int) -> bytes:
    """Return a machine's line: it has archived what was decided up to a position."""
    return _make_line("applied", applied)


def gave_up(machine: str) -> bytes:
    """Return the line that gives up a machine."""
    return _make_line("gave_up", machine)


def took_over(fingerprint: str) -> bytes:
    """Return the line by which another mailbox takes a machine's name over, with its key."""
    return _make_line("took_over", fingerprint)


def purged_line(floor: int) -> bytes:
    """Return the line that comes ahead of removing records."""
    return _make_line("purged", floor)


def damaged_line(position: int) -> bytes:
    """Return the line that tells of a damaged record."""
    return _make_line("damaged", position)


def _make_line(what: str, said: int | str) -> bytes:
    return codec.dumps({what: said, "mark": system.urandom(8).hex()}).encode()


def damaged_position(line: bytes) -> int | None:
    """Return the position of the damaged record that the line tells of, if it does."""
    found = _parse_line(line).get("damaged")
    return found if type(found) is int else None


def given_up(line: bytes) -> str | None:
    """Return the machine that the line gives up, if it does."""
    return _text_of(_parse_line(line), "gave_up")


def new_key(line: bytes) -> str | None:
    """Return the fingerprint of the key with which the line takes its machine's name over, if it does."""
    return _text_of(_parse_line(line), "took_over")


def is_purge(line: bytes) -> bool:
    """Return whether the line comes ahead of removing records."""
    return "purged" in _parse_line(line)


def _parse_line(line: bytes) -> dict[str, Any]:
    said = codec.parse(line)
    return said if isinstance(said, dict) else {}


def _text_of(said: dict[str, Any], what: str) -> str | None:
    found = said.get(what)
    return found if isinstance(found, str) else None


class FollowProgress:
    """The machines, and how far each has followed, by the records of the log in order."""

    def __init__(self, gone: set[str] | None = None, keys: dict[str, str] | None = None) -> None:
        self.applied: dict[str, int] = {}
        self.gone = set[str]() if gone is None else gone
        """Those that were given up, and said nothing since. These two may be known from earlier records."""
        self.keys = dict[str, str]() if keys is None else keys
        """The fingerprint of the key with which each name was taken over last."""
        self.position = 0
        """That of the last record that was taken in."""
        self.latest: dict[str, int] = {}
        """The position of the last record of each kind: earlier ones tell nothing more."""

    def take_records(self, records: Iterable[Ordered]) -> Self:
        """Take in the next records of the log; return this."""
        for record in records:
            self.take_record(record)
        return self

    def take_record(self, record: Ordered) -> None:
        """Take in the next record of the log; one of another form counts for nothing."""
        self.position = record.position
        said = _parse_line(record.line)
        machine, key, applied = _text_of(said, "gave_up"), _text_of(said, "took_over"), said.get("applied")
        if machine is not None:
            self.gone.add(machine)
            self.latest[f"gave_up {machine}"] = record.position
        elif key is not None:
            self.gone.discard(record.machine)
            self.keys[record.machine] = key
            self.latest[f"took_over {record.machine}"] = record.position
        elif type(applied) is int:
            self.gone.discard(record.machine)
            self.applied[record.machine] = applied
            self.latest[f"applied {record.machine}"] = record.position
        elif "purged" in said:
            self.latest["purged"] = record.position

    def common_floor(self, machines: Iterable[str]) -> int:
        """Return up to where all of the machines have followed, those that were given up left out."""
        return min((self.applied.get(machine, 0) for machine in machines if machine not in self.gone), default=0)
