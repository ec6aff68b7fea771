"""The order of a space as one JetStream stream, and its files as another.

Belongs here: the mapping of both to subjects, sequences and expectations, and what the server's errors mean. A record's
subject names the space, the machine that published it, and its log; a message's also the digest of its id:

    mbx.SPACE.MACHINE.roster        mbx.SPACE.MACHINE.messages.DIGEST
    mbx.SPACE.MACHINE.claims        mbx.SPACE.MACHINE.reads
    mbx.SPACE.MACHINE.archive       mbx.SPACE.MACHINE.passed
    mbxf.SPACE.MACHINE.DIGEST.NUMBER    a part of a file

So an account that may publish below ``mbx.SPACE.MACHINE`` alone proves its machine. A position is the sequence in the
stream. An expectation is the last sequence on ``mbx.SPACE.*.LOG``; a message expects none on ``mbx.SPACE.*`` and its
digest. Both need server 2.12 or later, and so do atomic batches.

A part is the last message of its subject. So a machine takes back what it shipped with no right to remove anything: an
empty message without a count of parts means nothing. Part 0 comes last, and names that count.
"""

from __future__ import annotations

import os
import time

from ...core import codec
from ...core.proofs import is_machine
from ...core.text import neutral
from ...errors import Refused, Unavailable
from ..order import order as orders
from ..order.order import ARCHIVE, MESSAGES, Moved, NoSpace, Ordered, Taken, is_reads, reads_of
from .connection import API, NEWS, NatsConnection, Publication, ServerAnswer
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
_SUM, _PARTS = "Mailbox-Sum", "Mailbox-Parts"
_FULL = (10023, 10047, 10077)
"""The server's codes for a disk, or a limit, that is reached."""
_WRONG_SEQUENCE, _NO_STREAM, _NO_MESSAGE = (10071, 10164), 10059, 10037
LIMITS = ("max_msgs", "max_bytes", "max_age", "max_msgs_per_subject")
"""The settings that would have the server remove records, or refuse them."""
_RIGHTS = {"allow_direct", "allow_atomic", "deny_delete", "deny_purge"}
_KEEPING = {"retention", "discard", "storage", "num_replicas", "duplicate_window", "compression", "placement"}
_NAMES = {"name", "description", "metadata", "subjects", "max_consumers", "max_msg_size", "consumer_limits"}
_HARMLESS = {*_NAMES, *LIMITS, *_RIGHTS, *_KEEPING}
"""The settings by which no record comes from elsewhere, goes elsewhere, or is replaced by its publisher. A stream may
write in any name what it takes from elsewhere: one that a machine made so would pass its records off as another's."""
LASTING: dict[str, Any] = {"storage": "file", "retention": "limits", "discard": "new"}
REPLICAS = 3
"""Copies of a space in a cluster: two of them answer for it."""
_GONE = (10043, 10057, _NO_MESSAGE)
"""The server's answers to a removal of what is not there."""


class NatsOrder:
    """One machine's way to a space in NATS; see ``space.order.order.SpaceOrder``."""

    def __init__(self, connection: NatsConnection, space: str, machine: str) -> None:
        orders.check_names(space, machine)
        self.connection = connection
        self.space = space
        self.machine = machine
        self.stream, self._files = f"MBX_{space}", f"MBXF_{space}"
        self._last = 0
        """The position of the last record when the leader was asked."""

    def call_api(self, call: str, body: object) -> dict[str, Any]:
        data = b"" if body is None else codec.dumps(body).encode()
        return self.require_success(self.connection.ask_one(f"{API}{call}", data))

    def require_success(self, answer: ServerAnswer) -> dict[str, Any]:
        """Return what the engine answered; raise its complaint."""
        found = parse_object(answer.data)
        error = found.get("error")
        if error is None:
            return found
        code, said = (error.get("err_code"), error.get("description")) if isinstance(error, dict) else (0, error)
        if code == _NO_STREAM:
            raise NoSpace(f"engine has no such space: {self.space}", NoSpace.mend)
        if code in _WRONG_SEQUENCE:
            raise Moved(f"log has moved: {said}", "look again")
        if code in _FULL:
            raise Unavailable(f"engine is full: {said}", "make room on the servers; nothing was lost")
        raise Unavailable(f"engine refuses: {said} ({code})", "`agent-mailbox engine doctor` looks closer")

    def _get_request(self, what: dict[str, object], stream: str = "") -> Publication:
        """Return the question for a message, by its leader's word."""
        return Publication(f"{API}STREAM.MSG.GET.{stream or self.stream}", codec.dumps(what).encode())

    def _get_message(self, what: dict[str, object], stream: str = "") -> dict[str, Any]:
        """Return a message; empty if there is none, or no such stream."""
        answer = self.connection.ask_each([self._get_request(what, stream)])[0]
        is_none = _is_missing(answer, (_NO_MESSAGE, _NO_STREAM))
        return {} if is_none else object_at(self.require_success(answer), "message")

    def make_unless_there(self) -> None:
        try:
            self.stream_info()
        except NoSpace:
            self.connection.refuse_old()
            self._make_stream(self.stream, f"mbx.{self.space}.>", allow_atomic=True, allow_direct=True)
        subjects = f"mbxf.{self.space}.>"
        try:
            found = self.call_api(f"STREAM.INFO.{self._files}", None)
        except NoSpace:
            found = self._make_stream(self._files, subjects, max_msgs_per_subject=1)  # of each part the last counts
        refuse_strange(found, subjects)

    def _make_stream(self, name: str, subjects: str, **more: object) -> dict[str, Any]:
        replicas = REPLICAS if self.connection.info.get("cluster") else 1
        wanted = {"name": name, "subjects": [subjects], "num_replicas": replicas, "duplicate_window": 0}
        return self.call_api(f"STREAM.CREATE.{name}", {**LASTING, **wanted, **more})

    def stream_info(self) -> dict[str, Any]:
        """Return the stream's state and settings; raise ``Refused`` for such that a machine could write as another."""
        found = self.call_api(f"STREAM.INFO.{self.stream}", None)
        self.connection.refuse_old()
        refuse_strange(found, f"mbx.{self.space}.>")
        return found

    def take_name(self, owner: str) -> str:
        subject, said = f"mbx.{self.space}.{self.machine}.joined", owner.encode()
        try:
            self.require_success(
                self.connection.ask_one(subject, said, {_EXPECTED: "0", _SUM: orders.checksum_of(said)})
            )
            return owner
        except Moved:
            found = self.call_api(f"STREAM.MSG.GET.{self.stream}", {"last_by_subj": subject})
            return bytes_at(object_at(found, "message"), "data").decode("utf-8", "replace")

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
        return f"mbx.{self.space}.*.{log}{'.*' if log == MESSAGES else ''}"

    def last_position(self) -> int:
        return number_at(object_at(self.stream_info(), "state"), "last_seq")

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        orders.check_size(lines)
        if not lines:
            return self.last_position()
        names = [f"{log}.{orders.digest_of_id(one)}" for one in ids] or ["reads" if is_reads(log) else log] * len(lines)
        heads = [{_SUM: orders.checksum_of(line)} for line in lines]
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
                asked = {"last_by_subj": f"mbx.{self.space}.*.{MESSAGES}.{orders.digest_of_id(message_id)}"}
                answer = self.connection.ask_each([self._get_request({**asked})])[0]
                if found := object_at(parse_object(answer.data), "message"):
                    raise Taken(message_id, number_at(found, "seq", 1)) from None
            if ids:  # no record has it: a leader without its peers counts what it took and could not keep
                raise Unavailable(f"engine did not answer: {moved.what}", moved.hint) from None
            raise

    def _publish_batch(
        self, names: Sequence[str], lines: Sequence[bytes], heads: Sequence[dict[str, str]]
    ) -> ServerAnswer:
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
                if others and not _is_missing(others[0]):
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
        for one in self.connection.ask_for_several(Publication(f"{API}DIRECT.GET.{self.stream}", asked)):
            said, subject = header_value(one.head, b"Nats-Sequence"), header_value(one.head, b"Nats-Subject")
            if not said.isdigit() or len(said) >= 20 or (seq := int(said)) < place:
                raise orders.of_another_form()
            if seq <= last:
                found[seq] = _make_ordered(seq, subject.decode("utf-8", "replace"), one.head, one.data)
        return found

    def _next_request(self, after: int, subjects: str = "") -> Publication:
        return self._get_request({"seq": after + 1, "next_by_subj": subjects or f"mbx.{self.space}.>"})

    def _next_record(self, after: int, subjects: str = "") -> Ordered | None:
        """Return the first record behind a position, by the leader's word; None if there is none."""
        return self._record_from(self.connection.ask_each([self._next_request(after, subjects)])[0], after)

    def _record_from(self, answer: ServerAnswer, after: int) -> Ordered | None:
        """Return the record of an answer; None if there is none."""
        if _is_missing(answer):
            return None
        found = object_at(self.require_success(answer), "message")
        # It is behind the position: else nobody who reads on would end.
        seq, subject = number_at(found, "seq", after + 1), text_at(found, "subject")
        return _make_ordered(seq, subject, bytes_at(found, "hdrs"), bytes_at(found, "data"))

    def wait_for_record(self, after: int, seconds: float) -> bool:
        """See ``SpaceOrder``. A server tells of a record as it comes, a little before it may be read."""
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
        for start in range(0, len(positions), WINDOW):
            asked = [codec.dumps({"seq": seq, "no_erase": True}).encode() for seq in positions[start : start + WINDOW]]
            call = f"{API}STREAM.MSG.DELETE.{self.stream}"
            for answer in self.connection.ask_each([Publication(call, body) for body in asked]):
                if not _is_missing(answer, _GONE):
                    self.require_success(answer)

    def remove_through(self, log: str, position: int) -> None:
        own = f"mbx.{self.space}.{log.removeprefix(reads_of(''))}.reads"
        subjects = own if is_reads(log) else self._subjects_of(log)
        for end in (*range(AT_ONCE, position, AT_ONCE), position):
            self.call_api(f"STREAM.PURGE.{self.stream}", {"filter": subjects, "seq": end + 1})

    def tell_machines(self, word: bytes) -> None:
        self.connection.publish_unanswered([Publication(f"{NEWS}{self.space}.{self.machine}", word)])

    def latest_words(self) -> dict[str, bytes]:
        self.connection.listen_on(f"{NEWS}{self.space}.*")
        found = {subject.rpartition(".")[2]: word for subject, word in self.connection.news.items()}
        self.connection.news.clear()
        return {machine: word for machine, word in found.items() if is_machine(machine)}

    # -- attached files -----------------------------------------------------------------------------------------------

    def ship_file(self, digest: str, data: bytes) -> None:
        parts = orders.parts_of(data)
        for number in reversed(range(len(parts))):
            head = {_PARTS: str(len(parts)), _SUM: orders.checksum_of(parts[number])}
            self._put_part(digest, number, parts[number], head)

    def take_back(self, digest: str) -> None:
        head, _ = self._get_part(self.machine, digest, 0)
        for number in range(_part_count(head)):
            self._put_part(digest, number, b"", {})

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        asked = {"next_by_subj": f"mbxf.{self.space}.*.{digest}.0"}
        place = 1
        while found := self._get_message({"seq": place, **asked}, self._files):
            place = number_at(found, "seq", place) + 1
            _, _, machine, *_ = (*text_at(found, "subject").split("."), "", "", "")
            count = _part_count(bytes_at(found, "hdrs"))
            parts = [self._get_part(machine, digest, number) for number in range(count)]
            if parts and all(_part_count(head) == count for head, _ in parts):
                yield b"".join(part for _, part in parts)

    def _put_part(self, digest: str, number: int, data: bytes, head: dict[str, str]) -> None:
        subject = f"mbxf.{self.space}.{self.machine}.{digest}.{number}"
        self.require_success(self.connection.ask_one(subject, data, head))

    def _get_part(self, machine: str, digest: str, number: int) -> tuple[bytes, bytes]:
        found = self._get_message({"last_by_subj": f"mbxf.{self.space}.{machine}.{digest}.{number}"}, self._files)
        return bytes_at(found, "hdrs"), bytes_at(found, "data")

    def close(self) -> None:
        self.connection.close()


def _part_count(head: bytes) -> int:
    """Return how many parts a file has by its first one's head; 0 if there is no file."""
    said = header_value(head, _PARTS.encode())
    return int(said) if said.isdigit() and len(said) < 4 and int(said) <= orders.MOST_PARTS else 0


def _is_missing(answer: ServerAnswer, codes: Sequence[int] = (_NO_MESSAGE,)) -> bool:
    error = parse_object(answer.data).get("error")
    return isinstance(error, dict) and error.get("err_code") in codes


def _make_ordered(seq: int, subject: str, head: bytes, line: bytes) -> Ordered:
    words = subject.split(".")
    known = header_value(head, _SUM.encode())
    if not known or len(words) < 4 or not is_machine(words[2]):
        return Ordered(seq, "", b"", "")  # a stranger's
    machine, log = words[2], words[3]
    return Ordered(
        seq, reads_of(machine) if log == "reads" else log, line, machine, known != orders.checksum_of(line).encode()
    )


def refuse_strange(found: dict[str, Any], subject: str) -> None:
    """Raise ``Refused`` for a stream, as the server describes it, that has other subjects or does more."""
    config = object_at(found, "config")
    strange = sorted(key for key, value in config.items() if value and key not in _HARMLESS)
    if config.get("subjects") != [subject]:
        strange.append("subjects")
    if strange:
        raise Refused(
            f"stream of the space was not made by agent-mailbox: {', '.join(map(neutral, strange))}",
            "who runs the servers deletes it; then `agent-mailbox engine join` makes it from the machines' files",
        )
