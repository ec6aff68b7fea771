"""The order of the records of one mailbox that several machines share.

Belongs here: what the mailbox asks of an engine (``TotalOrder``), its errors, and a record. So does how long somebody
in a hurry waits (``Hurry``). Must not know any engine, nor what a line says.
``tests/engine/conformance.py`` holds every order to this page.

One space has one order. Each record has a position in it, a log, a line, and the machine that published it. Positions
grow, and may have gaps. The logs of the order are:

    MESSAGES    messages; each line has an id, which only one record of the log may have, as long as it is there
    ROSTER      roster events
    CLAIMS      claims and releases of mail
    reads_of(M) reads, acks, and what the sessions of machine M saw, in the order in which M's file has them
    ARCHIVE     decisions of a steward: lines that all machines archive (``Bundle``)
    PASSED      how far each machine has followed those, and whom the person gave up (``FollowProgress``)

An expectation on ``ARCHIVE`` is one on the whole order: nothing at all was appended since the steward looked.
"""

from __future__ import annotations

from _thread import _local  # as in ``store.locks.lock``

from ...core import codec
from ...core.proofs import is_machine
from ...core.records import BadLine, Message, Record
from ...errors import BadData, Busy, Malformed, Refused
from ...errors import Unavailable as Unavailable
from ...store.files import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Protocol, Self

    from ...core.records import Read, RosterEvent
else:
    Protocol = object

MESSAGES, ROSTER, CLAIMS = "messages", "roster", "claims"
ARCHIVE, PASSED = "archive", "passed"
KINDS = (ROSTER, MESSAGES, CLAIMS)
"""The logs of a mailbox. The roster comes first: it says whose the mail is."""
DECIDED = ("claim", "release")
"""The events of the reads log that the order decides; all others belong to their machine."""
JOINED = "joined"
"""The log of a record that tells of a machine which joined; it has no line for the mailbox."""
START = "start its server, or look at the tunnel and the port between"
"""The hint about an engine that is out of reach."""
PAGE = 1000
"""Records that are read at once."""
MOST = 500
"""Lines of one append: it is one atomic batch, of which an engine takes only so many."""
WIDEST = 512 << 10
"""Bytes of one append, for the same reason."""
PART = 256 << 10
"""Bytes of one part of a file, likewise."""
MOST_PARTS = 64
"""Parts of one file: as many as the largest has (``attachment_files.MOST_BYTES``)."""
QUIET, WORD = 0.05, 0.2
"""Seconds after which who says nothing is asked for a word, and until it comes: an engine may be so far away."""
SILENT = QUIET + WORD
"""Seconds for which an engine that works says nothing at all."""
ANSWERED = 2.0
"""Seconds for which a caller in a hurry waits for the answer to a question, while the engine gives signs of life."""
APPLIED, GAVE_UP, TOOK_OVER, PURGED, DAMAGED = "applied", "gave_up", "took_over", "purged", "damaged"
_FORMS: dict[str, type] = {GAVE_UP: str, TOOK_OVER: str, APPLIED: int, PURGED: int, DAMAGED: int}


class Ordered(Record):
    """One record of the order. ``line`` has no newline. ``machine`` is who published it, as the engine proves it.

    ``damaged``: the line is not what was published, by its checksum. ``log`` is empty for another program's message."""

    position: int
    log: str
    line: bytes
    machine: str
    damaged: bool = False

    @property
    def kind(self) -> str:
        """Return the log of a mailbox that has it: one has the claims, and the reads of all machines."""
        return self.log if self.log in (MESSAGES, ROSTER) else CLAIMS

    @property
    def is_decision(self) -> bool:
        """Return whether it is a steward's decision, or about one, which no log of a mailbox has."""
        return self.log in (ARCHIVE, PASSED)


class Bundle(Record):
    """Lines (without newlines and seals) of an archive's file, which are one record of ``ARCHIVE``.

    ``told``: the roster events in their place. ``since``: the instant (ms) before which they leave out frozen spans."""

    file: str
    lines: tuple[bytes, ...]
    told: tuple[bytes, ...] = ()
    since: int = 0


class Moved(Busy):
    """Another record came into the log since the caller looked: look and decide again (exit 4)."""


class NoSpace(Unavailable):
    """The engine answers, and does not have the space: it was never made, or was lost. Mail waits for it."""

    code = "no_space"
    mend = "`agent-mailbox engine join` makes it again, and the machines bring back what they have"


class NoServer(Unavailable):
    """The address is nobody's, or another program's, which is known at once. Waiting does not change it."""


class HeldUp(Unavailable):
    """The engine answers, and takes no records: another program keeps what each needs. Somebody has to end that."""

    code = "held"


class Displaced(Unavailable):
    """This machine was given up, and another mailbox has its name. Its mail waits until it joins under another."""

    code = "displaced"

    def __init__(self, machine: str) -> None:
        super().__init__(
            f"this machine was given up, and another mailbox has its name now: {machine}",
            "run `agent-mailbox engine leave`, and join with another --machine: what waits here goes out then",
        )


class Taken(Refused):
    """A record with that id is in the order, at ``position``. Nothing was appended."""

    code = "taken"

    def __init__(self, message_id: str, position: int) -> None:
        super().__init__(f"id is in the order already: {message_id}", "", code="taken")
        self.id = message_id
        self.position = position


class TotalOrder(Protocol):
    """One total order, shared by all machines of a space. Any call may raise ``Unavailable``.

    ``machine`` is the name under which this one publishes."""

    machine: str

    def last_position(self) -> int:
        """Return the position of the last record; 0 if there is none. Whatever was acknowledged before counts."""

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        """Append the lines (without newlines) to a log, all or none, nothing between; return the last one's position.

        When it returns, they are as durable as the engine makes anything. ``ids`` has one id a line, or none. Raises
        ``Taken`` if the log has a record with one of them. ``expect`` is the position of the log's last record as the
        caller knows it (0: none); raises ``Moved`` if the log has a later one. On ``ARCHIVE`` it is ``last_position()``
        as the caller knows it: raises ``Moved`` if any log has a later record. Raises ``BadData`` for more than
        ``MOST`` lines or ``WIDEST`` bytes, and ``Unavailable``: then all or nothing may have been appended.
        """

    def read_after(self, after: int, most: int) -> Sequence[Ordered]:
        """Return the first records behind a position, in order: at most ``most``; fewer only if there are no more.

        Whatever was acknowledged to anybody before the call is found: read your writes."""

    def count_holes(self) -> int:
        """Return how many positions up to ``last_position`` have no record, not even one of a stranger."""


class SpaceOrder(TotalOrder, Protocol):
    """An order that an engine keeps: with what only some ask of it, what machines tell of themselves, and files."""

    def make_unless_there(self) -> None:
        """Make the space unless it is there."""

    def take_name(self, owner: str) -> str:
        """Take the machine's name for an owner unless it is taken; return whose it is."""

    def joined_machines(self) -> list[str]:
        """Return the machines that joined, sorted."""

    def of_log(self, log: str, after: int = 0) -> Iterator[Ordered]:
        """Yield all records of a log behind a position, in order, but for those that are damaged."""

    def wait_for_record(self, after: int, seconds: float) -> bool:
        """Return whether there is a record behind the position, waiting for one at most that long."""

    def remove_records(self, positions: Sequence[int]) -> None:
        """Remove records for ever; there may be none at some of the positions. ``last_position`` stays as it is.

        Raises ``Refused`` if this way to the space may not."""

    def remove_through(self, log: str, position: int) -> None:
        """Do the same with all records of a log up to a position, in a fraction of the time."""

    def tell_machines(self, word: bytes) -> None:
        """Tell the other machines something of this one; only the last word of each counts, and it may be lost."""

    def latest_words(self) -> dict[str, bytes]:
        """Return the last word of each machine, this one too, that came since the question before, once."""

    def ship_file(self, digest: str, data: bytes) -> None:
        """Give the space a file with that SHA-256, in this machine's name; complete and durable when this returns.

        To ship it again changes nothing."""

    def take_back(self, digest: str) -> None:
        """Remove the file that this machine shipped; others' stay."""

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        """Yield what machines shipped as that file, each complete; nothing says that it is that."""

    def close(self) -> None:
        """Close the connection; the next call opens one."""


def all_records(order: TotalOrder) -> Iterator[Ordered]:
    after = 0
    while records := order.read_after(after, PAGE):
        yield from records
        after = records[-1].position


def parts_of(data: bytes) -> list[bytes]:
    return [data[start : start + PART] for start in range(0, len(data), PART)] or [b""]


def check_names(*names: str) -> None:
    """Raise ``Malformed`` for a name of a space, or of a machine, that could say something else to an engine."""
    for name in names:
        if not is_machine(name):
            raise Malformed(f"name is not lower-case letters, digits and -: {name}", "choose another")


def digest_of_id(message_id: str) -> str:
    """Return the short form of a message's id: a foreign program may choose any text."""
    return checksum_of(message_id.encode("utf-8", "surrogatepass"), 32)


def checksum_of(data: bytes, digits: int = 16) -> str:
    """Return the checksum that goes with what is kept in an engine."""
    from hashlib import sha256  # who finds no engine is spared OpenSSL

    return sha256(data).hexdigest()[:digits]


def of_another_form() -> Unavailable:
    return Unavailable(
        "engine's answer has another form", "is it the right one? `agent-mailbox engine doctor` looks closer"
    )


def reads_of(machine: str) -> str:
    return f"reads.{machine}"


def is_reads(log: str) -> bool:
    return log.startswith("reads.")


def is_known(record: Ordered) -> bool:
    """Return whether the mailbox knows the record's log, and a file can hold its line; all others are passed over."""
    is_line = 0 < len(record.line) <= WIDEST and b"\n" not in record.line
    return has_known_log(record) and (is_line or record.is_decision or record.damaged)


def has_known_log(record: Ordered) -> bool:
    """Return whether the mailbox has the record's log, or the steward decides by it."""
    return record.is_decision or record.log in (MESSAGES, ROSTER, CLAIMS) or is_reads(record.log)


def decode_line(log: str, line: bytes) -> Message | Read | RosterEvent | BadLine:
    """Return what a line of a log of the order, or of a mailbox, says."""
    if log == MESSAGES:
        return codec.message(line)
    return codec.roster_event(line) if log == ROSTER else codec.read(line)


def id_of(line: bytes) -> str:
    """Return the id of a message's line; empty if it is none."""
    message = codec.message(line)
    return message.id if isinstance(message, Message) else ""


def check_size(lines: Sequence[bytes]) -> None:
    if len(lines) > MOST:
        raise BadData(f"batch is too long for the engine: {len(lines)} lines", f"send at most {MOST} at once")
    if (size := sum(map(len, lines))) > WIDEST:
        raise BadData(f"batch is too large for the engine: {size} bytes", f"send at most {WIDEST} bytes at once")


def spell_word(what: str, said: int | str) -> bytes:
    return codec.dumps({what: said, "mark": system.urandom(8).hex()}).encode()


def read_word(line: bytes) -> tuple[str, Any]:
    """Return what a line of ``PASSED`` says (``FollowProgress``), and of what; an empty word for another form."""
    said = codec.parse(line)
    found = said if isinstance(said, dict) else {}
    return next(((what, found[what]) for what, kind in _FORMS.items() if type(found.get(what)) is kind), ("", None))


class FollowProgress:
    """The machines, and how far each has followed a steward's decisions, by the records of ``PASSED`` in order.

    Each line says one thing, and has a ``mark``, so that it is like no other. By the last record of the order a copy
    tells whether it is still the same.

        {"applied":812}    this machine has archived what was decided up to there
        {"gave_up":"M"}    the person gave up machine M, or had it leave: nobody waits for it until it says more; if it
                           lives, it does
        {"took_over":"K"}  another mailbox has this machine's name from now on, and the key with fingerprint K
        {"purged":700}     records up to there may be removed from now on
        {"damaged":13}     a record is not what was published: who has it brings it back
    """

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
        """Take in the next records of the log, of which one of another form counts for nothing; return this."""
        for record in records:
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
        return self


class _Bound(_local):
    """The monotonic instant until which this thread waits; None: it is in no hurry. ``heard``: see ``Hurry``."""

    until: float | None = None
    heard: Callable[[], None] | None = None


_bound = _Bound()


class Hurry:
    """Bound the questions of a ``with`` block by so many seconds; None: as before.

    ``heard`` is called at each answer: a question may need several."""

    def __init__(self, seconds: float | None, heard: Callable[[], None] | None = None) -> None:
        self._seconds = seconds
        self._heard = heard

    def __enter__(self) -> None:
        self._before = _bound.until, _bound.heard
        if self._seconds is not None:
            _bound.until = deadline(self._seconds)
        if self._heard is not None:
            _bound.heard = self._heard

    def __exit__(self, *_: object) -> None:
        _bound.until, _bound.heard = self._before


def note_answer() -> None:
    if _bound.heard is not None:
        _bound.heard()


def deadline(seconds: float) -> float:
    """Return the monotonic instant until which an answer is waited for."""
    wanted = system.monotonic() + seconds
    return wanted if _bound.until is None else min(wanted, _bound.until)


def is_hurried() -> bool:
    return _bound.until is not None


def seconds_left() -> float | None:
    return None if _bound.until is None else max(_bound.until - system.monotonic(), 0.0)
