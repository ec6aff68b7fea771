"""The proofs that a mailbox's record gives the readers of a log.

Belongs here: weighing a line's seal at its place, and counting the deciding lines (``custody`` keeps the record). A
record is given what is proven of its writer.
"""

from __future__ import annotations

from ...core import proofs
from ...core.proofs import SEALED, Seal
from ...core.records import USER
from .custody import LogEnd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    from ...core.records import Message, Proof, Read
    from .custody import Kept

    Place = tuple[int, bytes]
    R = TypeVar("R", Message, Read)


class ProofView:
    """The record's word on the lines of one log, at one moment, for a reader that takes them in order.

    ``trusted`` is off if the logs do not continue what our writers left: then nothing is proven. ``path``: the log's.
    """

    def __init__(self, kept: Kept, entry: LogEnd | None = None, path: str = "") -> None:
        self.kept = kept
        self._path = path
        self._entry = entry
        self._trusted = None if entry is None else True
        self.count, self.digest = 0, b"-"
        self._differs = False
        self._adopted: frozenset[bytes] | None = None

    @property
    def entry(self) -> LogEnd:
        """Return the log's end as it was left, and what of the log is proven."""
        if self._entry is None:
            self._entry = self.kept.entry_at(self._path) if self._path else self.kept.entry()
        return self._entry

    @property
    def trusted(self) -> bool:
        """Return whether the logs continue what our writers left, as far as noticed."""
        if self._trusted is None:
            self._trusted = self.kept.custody.broken() is None
        return self._trusted

    def proof(self, line: bytes, position: int | None = None) -> Proof | None:
        """Return what is proven of a line's writer; without a ``position`` (archived mail) the place does not count."""
        said = self.said(line, position)
        return said if said is None or said == proofs.BEFORE or proofs.proves(said) else None

    def bare_word(self, line: bytes, position: int | None = None) -> Proof | None:
        """Return whose word the line is, if it is another machine's or a gateway's and proves nothing of anybody here;
        None for any other line."""
        said = self.said(line, position)
        return said if proofs.is_bare_word(said) or proofs.is_carried(said) else None

    def waits(self, line: bytes, position: int) -> bool:
        """Return whether the line, as we wrote it there, has a seal of another machine that does not count yet."""
        said = self.said(line, position)
        return said is not None and said.kind == proofs.WAITS

    def said(self, line: bytes, position: int | None) -> Proof | None:
        """Return what the line's seal says, if it is one of ours; None for a line without one."""
        if not self.trusted:
            return proofs.BEFORE
        seal = proofs.parse_seal(line)
        if seal is not None and self._is_ours(seal):
            return seal.proof if position is None or self._is_in_place(seal, position) else None
        if position is None or position >= self.entry.base:
            return None
        if self._is_adopted(line):
            return proofs.ADOPTED
        return proofs.BEFORE if position < self.entry.before else None

    def is_misplaced(self, line: bytes, position: int) -> bool:
        """Return whether the line was sealed by us, and written again elsewhere."""
        return proofs.proves(self.said(line, None)) and not proofs.proves(self.said(line, position))

    def read(self, line: bytes, position: int) -> Proof | None:
        """Return what is proven of the next line's writer, and count the line if it decides."""
        proof = self.proof(line, position)
        if proof is not None and proof != proofs.BEFORE and self.kept.decides(line):
            from .keys import digest

            self.count, self.digest = self.count + 1, digest(self.digest, line)
            if self.count == self.entry.count and self.digest != self.entry.digest:
                self._differs = True
            if self.count > self.entry.count and position < self.entry.size:
                self._differs = True  # more of them than there were, and none was added since
        return proof

    def follows(self, fd: int, noticed: LogEnd | None = None) -> bool:
        """Return whether the open log continues what was left, and keep the entry that it continues: one that was
        ``noticed`` before, if there is one."""
        entry = noticed or self.kept.checked(fd)
        if entry is not None:
            self._entry = entry
        return entry is not None

    @property
    def counted(self) -> tuple[int, int, bytes] | None:
        """Return how far the log was read, for ``resume``; None if nothing is proven."""
        return (self.entry.generation, self.count, self.digest) if self.trusted else None

    def begin(self) -> None:
        """Begin at the log's first line."""
        self.count, self.digest, self._differs = 0, b"-", False

    def resume(self, generation: int, count: int, digest: bytes) -> bool:
        """Go on at another view's place in the same log; return whether that was of this generation and true."""
        if not self.trusted or generation != self.entry.generation or count > self.entry.count:
            return False
        self.count, self.digest = count, digest
        self._differs = count == self.entry.count and digest != self.entry.digest
        return not self._differs

    def is_whole(self) -> bool:
        """Return whether every deciding line was read as it was left, and perhaps later ones."""
        return not self._differs and self.count >= self.entry.count

    def _is_ours(self, seal: Seal) -> bool:
        key = self.kept.custody.key
        if key is None or seal.key_id != key.id:
            return False
        return key.mac(self.kept.custody.id, self.kept.name.encode(), seal.signed) == seal.mac

    def _is_in_place(self, seal: Seal, position: int) -> bool:
        if seal.generation == self.entry.generation:
            return seal.position == position
        return seal.generation < self.entry.generation and position < self.entry.base

    def _is_adopted(self, line: bytes) -> bool:
        if self._adopted is None:
            self._adopted = self.kept.custody.adopted()
        return bool(self._adopted) and self.kept.custody.adoption(self.kept.name, line) in self._adopted


def counted(kept: Kept, lines: Iterable[Place], generation: int, base: int) -> LogEnd:
    """Return an entry (without inode, size and checksum) for the lines below ``base`` of a new generation."""
    view = ProofView(kept, LogEnd(generation=generation, base=base))
    for position, line in lines:
        view.read(line, position)
    return LogEnd(generation=generation, base=base, count=view.count, digest=view.digest)


def weigh_message(message: Message, view: ProofView | None, line: bytes, position: int | None) -> Message:
    """Return the message with what is proven of its writer, if that can matter.

    It matters for control, for the person's words and the steward's, for notes, and for replies, which settle requests.
    It is told to programs of any mail."""
    if message.type == "control" or message.sender == USER:
        proof = None if view is None else view.proof(line, position)  # the person may have adopted it
    elif message.thread is not None or message.sender in proofs.OURS or message.type == "note":
        proof = view.proof(line, position) if view is not None and SEALED in line else None
    else:
        told = view is not None and view.kept.custody.weighs_mail
        return message.replace(written_by=add_proof(message, view, line, position).proof) if told else message
    if proof is None and view is not None and SEALED in line:
        proof = view.bare_word(line, position)
    return message if proof is None else message.replace(proof=proof)


def mark_foreign_word(message: Message, view: ProofView | None, line: bytes, position: int | None) -> Message:
    """Return the message, of which nothing is proven, as another machine's word if it is that.

    It names that machine if its sender is none of that one's (``bare_word``); else it waits for the person's word."""
    said = view.said(line, position) if view is not None and SEALED in line else None
    is_foreign = proofs.is_bare_word(said) or (said is not None and said.kind == proofs.WAITS)
    return message.replace(proof=said) if is_foreign else message


def weigh_read(read: Read, view: ProofView | None, line: bytes, position: int | None) -> Read:
    """Return the read with what is proven of its writer, or with whose word it is of its own sessions."""
    said = view.said(line, position) if view is not None and SEALED in line else None
    return read if said is None or (said.kind == proofs.WAITS and said.machine is None) else read.replace(proof=said)


def add_proof(record: R, view: ProofView | None, line: bytes, position: int | None) -> R:
    """Return the record with what is proven of its writer."""
    proof = view.proof(line, position) if view is not None and SEALED in line else None
    return record if proof is None else record.replace(proof=proof)
