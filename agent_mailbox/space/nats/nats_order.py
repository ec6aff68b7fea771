"""The order of a space as one JetStream stream.

Belongs here: the mapping of the order to subjects, sequences and expectations. A record's subject names the space, the
machine that published it, and its log; a message's also the digest of its id:

    mbx.SPACE.MACHINE.roster        mbx.SPACE.MACHINE.messages.DIGEST
    mbx.SPACE.MACHINE.claims        mbx.SPACE.MACHINE.reads
    mbx.SPACE.MACHINE.archive       mbx.SPACE.MACHINE.passed

So an account that may publish below ``mbx.SPACE.MACHINE`` alone proves its machine. A position is the sequence in the
stream. An expectation is the last sequence on ``mbx.SPACE.*.LOG``; a message expects none on ``mbx.SPACE.*`` and its
digest. Both need server 2.12 or later, and so do atomic batches.
"""

from __future__ import annotations

import os
import time

from ...core import codec
from ...core.proofs import is_machine
from ...errors import Refused, Unavailable
from ..order.order import (
    ARCHIVE,
    MESSAGES,
    Moved,
    NoSpace,
    Ordered,
    Taken,
    check_size,
    is_reads,
    of_another_form,
    reads_of,
)
from ..order.space_files import checksum_of, digest_of_id
from . import server_settings
from .connection import API, NEWS, NatsConnection, Publication, ServerAnswer
from .nats_space import NatsSpace, is_missing
from .server_words import bytes_at, header_value, number_at, object_at, parse_object, text_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

WINDOW = 200
"""Records that are asked for at once, of the leader."""
FEW, BATCH = 20, 1000
"""Records from which on the nearest server is asked, and the most that it sends at once."""
AT_ONCE = 50_000
"""Positions up to which a log is removed at once: the server answers in time."""
LOOKS = 5.0
"""Seconds after which a waiting machine looks, whatever it heard."""
PAUSES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
"""Seconds between looks for a record that was heard of."""
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_WHOLE = "Nats-Expected-Last-Sequence"
_SUM = "Mailbox-Sum"
_MARK = _SUM.encode()
_GONE = (10043, 10057, 10037)
"""The server's answers to a removal of what is not there."""


class NatsOrder(NatsSpace):
    """One machine's way to a space in NATS; see ``space.order.order.SpaceOrder``."""

    def __init__(self, connection: NatsConnection, space: str, machine: str) -> None:
        super().__init__(connection, space, machine)
        self._last = 0
        """The position of the last record when the leader was asked."""

    @property
    def stream(self) -> str:
        return f"MBX_{self.space}"

    # -- the stream ---------------------------------------------------------------------------------------------------

    def make_unless_there(self) -> bool:
        """Make the space, and the place of its files, unless they are there; return whether the space was made.

        A cluster keeps it three times. Raises ``Refused`` for an old server."""
        try:
            self.stream_info()
            is_new = False
        except NoSpace:
            self._refuse_old()
            self.call_api(f"STREAM.CREATE.{self.stream}", server_settings.of_records(self.space, self.connection.info))
            is_new = True
        self.make_place_of_files()
        return is_new

    def stream_info(self) -> dict[str, Any]:
        """Return the stream's configuration and state.

        Raises ``NoSpace``, and ``Refused`` if it was made such that a machine could write as another."""
        found = self.call_api(f"STREAM.INFO.{self.stream}", None)
        self._refuse_old()
        server_settings.refuse_strange(found, f"mbx.{self.space}.>")
        return found

    def _refuse_old(self) -> None:
        if server_settings.is_old(said := str(self.connection.info.get("version", ""))):
            raise Refused(f"engine is too old: nats-server {said or '?'}", "run nats-server 2.12 or later")

    def take_name(self, owner: str) -> str:
        subject = f"mbx.{self.space}.{self.machine}.joined"
        one = Publication(subject, owner.encode(), {_EXPECTED: "0", _SUM: checksum_of(owner.encode())})
        try:
            self.require_success(self.connection.ask_each([one])[0])
            return owner
        except Moved:
            answer = self.connection.ask_each([self._get_request({"last_by_subj": subject})])[0]
            found = object_at(self.require_success(answer), "message")  # without one it is nobody's: no answer
            return bytes_at(found, "data").decode("utf-8", "replace")

    def joined_machines(self) -> list[str]:
        asked = {"subjects_filter": f"mbx.{self.space}.*.joined"}
        found = object_at(self.call_api(f"STREAM.INFO.{self.stream}", asked), "state")
        words = (subject.split(".") for subject in object_at(found, "subjects"))
        return sorted(one[2] for one in words if len(one) == 4 and is_machine(one[2]))

    def of_log(self, log: str, after: int = 0) -> Iterator[Ordered]:
        """Yield all records of a log behind a position, in order: one question for each."""
        place = after
        while (record := self._next_record(place, self._subjects_of(log))) is not None:
            place = record.position
            if record.log == log and not record.damaged:
                yield record

    def _subjects_of(self, log: str) -> str:
        """Return the subjects of a log of all machines."""
        return f"mbx.{self.space}.*.{log}{'.*' if log == MESSAGES else ''}"

    # -- the order ----------------------------------------------------------------------------------------------------

    def last_position(self) -> int:
        return number_at(object_at(self.stream_info(), "state"), "last_seq")

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        check_size(lines)
        if not lines:
            return self.last_position()
        names = [f"{log}.{digest_of_id(one)}" for one in ids] or ["reads" if is_reads(log) else log] * len(lines)
        heads = [{_SUM: checksum_of(line)} for line in lines]
        if ids:
            for name, head in zip(names, heads, strict=True):
                head |= {_EXPECTED: "0", f"{_EXPECTED}-Subject": f"mbx.{self.space}.*.{name}"}
        elif expect is not None and log == ARCHIVE:
            heads[0][_WHOLE] = str(expect)
        elif expect is not None:
            own = f"mbx.{self.space}.{self.machine}.reads"
            filtered = own if is_reads(log) else f"mbx.{self.space}.*.{log}"
            heads[0] |= {_EXPECTED: str(expect), f"{_EXPECTED}-Subject": filtered}
        try:
            return number_at(self.require_success(self._publish_batch(names, lines, heads)), "seq", 1)
        except Moved as moved:
            for message_id in ids:
                self._refuse_taken(message_id)
            if ids:  # no record has it: a leader without its peers counts what it took and could not keep
                raise Unavailable(f"engine did not answer: {moved.what}", moved.hint) from None
            raise

    def _publish_batch(
        self, names: Sequence[str], lines: Sequence[bytes], heads: Sequence[dict[str, str]]
    ) -> ServerAnswer:
        """Publish lines on subjects of this machine, several as one atomic batch; return the answer to the last."""
        if len(lines) > 1:
            batch = os.urandom(16).hex()
            for number, head in enumerate(heads, 1):
                head |= {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
            heads[-1]["Nats-Batch-Commit"] = "1"
        own = f"mbx.{self.space}.{self.machine}"
        all_of_it = zip(names, lines, heads, strict=True)
        *others, last = (Publication(f"{own}.{name}", line, head) for name, line, head in all_of_it)
        if others:
            self.connection.publish_unanswered(others)
        return self.connection.ask_each([last])[0]

    def _refuse_taken(self, message_id: str) -> None:
        subject = f"mbx.{self.space}.*.{MESSAGES}.{digest_of_id(message_id)}"
        answer = self.connection.ask_each([self._get_request({"last_by_subj": subject})])[0]
        if found := object_at(parse_object(answer.data), "message"):
            raise Taken(message_id, number_at(found, "seq", 1))

    def read_after(self, after: int, most: int) -> list[Ordered]:
        """Return the first records behind a position, in order. If there is at most one, that is one question."""
        found: list[Ordered] = []
        if after + most <= self._last:  # as a machine joins: for these the leader need not be asked how far they go
            self._read_on(found, after + 1, self._last, most)
        if len(found) < most:
            after = found[-1].position if found else after
            asked = [self._next_request(place) for place in (after, after + 1)[: most - len(found)]]
            first, *others = self.connection.ask_each(asked)
            if (record := self._record_from(first, after)) is not None:
                found.append(record)
                if others and not is_missing(others[0]):
                    self._last = self.last_position()
                    self._read_on(found, found[-1].position + 1, self._last, most)
        return found

    def _read_on(self, found: list[Ordered], place: int, last: int, most: int) -> None:
        """Read from a place on, up to the last that the leader knows.

        The nearest server answers a batch. It may lack the newest records, or have lost some: for those that it does
        not have, the leader is asked one by one."""
        while place <= last and len(found) < most:
            wanted = min(most - len(found), last + 1 - place)
            records = self._read_batch(place, last, wanted) if wanted > FEW else {}
            end = place + (min(wanted, WINDOW) if not records else max(records) + 1 - place)
            missing = [seq for seq in range(place, end) if seq not in records]
            while missing:
                answers = self.connection.ask_each([self._get_request({"seq": seq}) for seq in missing[:WINDOW]])
                asked = zip(missing, answers, strict=False)
                there = [one for seq, answer in asked if (one := self._record_from(answer, seq - 1)) is not None]
                records |= {record.position: record for record in there}
                missing = missing[WINDOW:]
                if missing and not there:  # where records were removed, many are: where do they go on?
                    record = self._next_record(missing[0] - 1)
                    missing = [seq for seq in missing if record is not None and seq >= record.position]
            found += [record for _, record in sorted(records.items())]
            place = end

    def _read_batch(self, place: int, last: int, most: int) -> dict[int, Ordered]:
        """Return records between two places, as the nearest server has them, by their position."""
        asked = codec.dumps({"seq": place, "batch": min(most, BATCH)}).encode()
        found: dict[int, Ordered] = {}
        for head, line in self.connection.ask_for_several(Publication(f"{API}DIRECT.GET.{self.stream}", asked)):
            said, subject = header_value(head, b"Nats-Sequence"), header_value(head, b"Nats-Subject")
            if not said.isdigit() or len(said) >= 20 or (seq := int(said)) < place:
                raise of_another_form()
            if seq <= last:
                found[seq] = _make_ordered(seq, subject.decode("utf-8", "replace"), head, line)
        return found

    def _get_request(self, what: dict[str, object]) -> Publication:
        return Publication(f"{API}STREAM.MSG.GET.{self.stream}", codec.dumps(what).encode())

    def _next_request(self, after: int, subjects: str = "") -> Publication:
        return self._get_request({"seq": after + 1, "next_by_subj": subjects or f"mbx.{self.space}.>"})

    def _next_record(self, after: int, subjects: str = "") -> Ordered | None:
        """Return the first record behind a position, by the leader's word; None if there is none."""
        return self._record_from(self.connection.ask_each([self._next_request(after, subjects)])[0], after)

    def _record_from(self, answer: ServerAnswer, after: int) -> Ordered | None:
        """Return the record of an answer; None if there is none.

        It is behind a position: else nobody who reads on would end."""
        if is_missing(answer):
            return None
        found = object_at(self.require_success(answer), "message")
        seq, subject = number_at(found, "seq", after + 1), text_at(found, "subject")
        return _make_ordered(seq, subject, bytes_at(found, "hdrs"), bytes_at(found, "data"))

    def wait_for_record(self, after: int, seconds: float) -> bool:
        """Return whether there is a record behind the position, waiting for one at most that long.

        A server tells of a record as it comes, a little before it may be read."""
        deadline = time.monotonic() + seconds
        while True:
            if seconds > 0:
                self.connection.listen_on(f"mbx.{self.space}.>")
            if self._next_record(after) is not None:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self.connection.has_heard(min(left, LOOKS)):
                for pause in PAUSES:
                    if self._next_record(after) is not None:
                        return True
                    time.sleep(pause)

    def count_holes(self) -> int:
        state = object_at(self.stream_info(), "state")
        return number_at(state, "last_seq") - number_at(state, "messages")

    def remove_records(self, positions: Sequence[int]) -> None:
        """Remove records for ever; see ``SpaceOrder.remove_records``. The server writes nothing over them."""
        for start in range(0, len(positions), WINDOW):
            asked = [codec.dumps({"seq": seq, "no_erase": True}).encode() for seq in positions[start : start + WINDOW]]
            call = f"{API}STREAM.MSG.DELETE.{self.stream}"
            for answer in self.connection.ask_each([Publication(call, body) for body in asked]):
                if not is_missing(answer, _GONE):
                    self.require_success(answer)

    def remove_through(self, log: str, position: int) -> None:
        """Remove all records of a log up to a position for ever; see ``SpaceOrder.remove_through``."""
        own = f"mbx.{self.space}.{log.removeprefix(reads_of(''))}.reads"
        subjects = own if is_reads(log) else self._subjects_of(log)
        for end in (*range(AT_ONCE, position, AT_ONCE), position):
            self.call_api(f"STREAM.PURGE.{self.stream}", {"filter": subjects, "seq": end + 1})

    # -- what machines tell of themselves, and nobody keeps -----------------------------------------------------------

    def tell_machines(self, word: bytes) -> None:
        """Tell the machines that listen at this moment."""
        self.connection.publish_unanswered([Publication(f"{NEWS}{self.space}.{self.machine}", word)])

    def latest_words(self) -> dict[str, bytes]:
        self.connection.listen_on(f"{NEWS}{self.space}.*")
        found = {subject.rpartition(".")[2]: word for subject, word in self.connection.news.items()}
        self.connection.news.clear()
        return {machine: word for machine, word in found.items() if is_machine(machine)}

    def close(self) -> None:
        self.connection.close()


def open_order(
    url: str, space: str, machine: str, credential: str | None = None, authority: str | None = None, wait: float = 5.0
) -> NatsOrder:
    """Return the way of a machine to a space; connects at the first call."""
    return NatsOrder(NatsConnection(url, credential, authority, wait), space, machine)


def _make_ordered(seq: int, subject: str, head: bytes, line: bytes) -> Ordered:
    words = subject.split(".")
    known = header_value(head, _MARK)
    if not known or len(words) < 4 or not is_machine(words[2]):
        return Ordered(seq, "", b"", "")  # a stranger's
    machine, log = words[2], words[3]
    return Ordered(
        seq, reads_of(machine) if log == "reads" else log, line, machine, known != checksum_of(line).encode()
    )
