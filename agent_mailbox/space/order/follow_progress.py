"""The log of the order that tells how far each machine has followed the steward's decisions.

Belongs here: the lines of that log, and the machine that is furthest behind. Each line says one thing, and has a
``mark``, so that it is like no other. By its last record a copy tells whether the order is still the same.

    {"applied":812}    this machine has archived what was decided up to there
    {"gave_up":"M"}    the person gave up machine M, or had it leave: nobody waits for it until it says more; if it
                       lives, it does
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


APPLIED, GAVE_UP, TOOK_OVER, PURGED, DAMAGED = "applied", "gave_up", "took_over", "purged", "damaged"
_FORMS: dict[str, type] = {GAVE_UP: str, TOOK_OVER: str, APPLIED: int, PURGED: int, DAMAGED: int}


def spell_word(what: str, said: int | str) -> bytes:
    """Return the line that says one of these things."""
    return codec.dumps({what: said, "mark": system.urandom(8).hex()}).encode()


def read_word(line: bytes) -> tuple[str, Any]:
    """Return which of these things the line says, and of what; an empty word for a line of another form."""
    said = codec.parse(line)
    if isinstance(said, dict):
        for what, kind in _FORMS.items():
            if type(said.get(what)) is kind:
                return what, said[what]
    return "", None


class FollowProgress:
    """The machines, and how far each has followed, by the records of the log in order."""

    def __init__(self, gone: set[str] | None = None, keys: dict[str, str] | None = None) -> None:
        self.applied: dict[str, int] = {}
        self.gone = set[str]() if gone is None else gone
        """Those that left or were given up, and said nothing since. These two may be known from earlier records."""
        self.keys = dict[str, str]() if keys is None else keys
        """The fingerprint of the key with which each name was taken over last."""
        self.position = 0
        """That of the last record that was taken in."""
        self.latest: dict[tuple[str, str], int] = {}
        """The position of the last word of each kind about a machine: earlier ones tell nothing more."""

    def take_records(self, records: Iterable[Ordered]) -> Self:
        """Take in the next records of the log; return this."""
        for record in records:
            self.take_record(record)
        return self

    def take_record(self, record: Ordered) -> None:
        """Take in the next record of the log; one of another form counts for nothing."""
        self.position, machine = record.position, record.machine
        what, said = read_word(record.line)
        if what == GAVE_UP:
            self.gone.add(machine := said)
        elif what == TOOK_OVER:
            self.gone.discard(machine)
            self.keys[machine] = said
        elif what == APPLIED:
            self.gone.discard(machine)
            self.applied[machine] = said
        if what and what != DAMAGED:
            self.latest[what, "" if what == PURGED else machine] = record.position
