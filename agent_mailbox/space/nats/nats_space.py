"""A space in NATS: asking JetStream about it, and its files in a stream of their own.

Belongs here: the calls, what the server's errors mean, and the mapping of files to subjects. A part of a file is the
last message of its subject:

    mbxf.SPACE.MACHINE.DIGEST.NUMBER

A part is replaced by publishing there again. So a machine takes back what it shipped with no right to remove anything:
an empty message without a count of parts means nothing. Part 0 comes last, and names that count.
"""

from __future__ import annotations

from ...core import codec
from ...errors import Unavailable
from ..order.order import Moved, NoSpace
from ..order.space_files import MOST_PARTS, check_names, checksum_of, parts_of
from . import server_settings
from .connection import API, Publication
from .server_words import bytes_at, header_value, number_at, object_at, parse_object, text_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from .connection import NatsConnection, ServerAnswer

_FULL = (10023, 10047, 10077)
"""The server's codes for a disk, or a limit, that is reached."""
_WRONG_SEQUENCE, _NO_STREAM, _NO_MESSAGE = (10071, 10164), 10059, 10037
_PARTS, _SUM = "Mailbox-Parts", "Mailbox-Sum"


class NatsSpace:
    """One machine's way to the calls of JetStream about a space, and to its files."""

    def __init__(self, connection: NatsConnection, space: str, machine: str) -> None:
        check_names(space, machine)
        self.connection = connection
        self.space = space
        self.machine = machine
        self._files = f"MBXF_{space}"

    def call_api(self, call: str, body: object) -> dict[str, Any]:
        data = b"" if body is None else codec.dumps(body).encode()
        return self.require_success(self.connection.ask_each([Publication(f"{API}{call}", data)])[0])

    def require_success(self, answer: ServerAnswer) -> dict[str, Any]:
        """Return what the engine answered; raise its complaint."""
        found = parse_object(answer.data)
        error = found.get("error")
        if error is None:
            return found
        code, said = (error.get("err_code"), error.get("description")) if isinstance(error, dict) else (0, error)
        if code == _NO_STREAM:
            raise NoSpace(f"engine has no such space: {self.space}")
        if code in _WRONG_SEQUENCE:
            raise Moved(f"log has moved: {said}", "look again")
        if code in _FULL:
            raise Unavailable(f"engine is full: {said}", "make room on the servers; nothing was lost")
        raise Unavailable(f"engine refuses: {said} ({code})", "`agent-mailbox engine doctor` looks closer")

    # -- attached files -----------------------------------------------------------------------------------------------

    def make_place_of_files(self) -> None:
        """Make the stream of the files unless it is there; raise ``Refused`` for one that was made otherwise."""
        try:
            found = self.call_api(f"STREAM.INFO.{self._files}", None)
        except NoSpace:
            wanted = server_settings.of_files(self.space, self.connection.info)
            found = self.call_api(f"STREAM.CREATE.{self._files}", wanted)
        server_settings.refuse_strange(found, f"mbxf.{self.space}.>")

    def ship_file(self, digest: str, data: bytes) -> None:
        parts = parts_of(data)
        first, *others = ({_PARTS: str(len(parts)), _SUM: checksum_of(part)} for part in parts)
        for number, head in enumerate(others, 1):
            self._put_part(digest, number, parts[number], head)
        self._put_part(digest, 0, parts[0], first)

    def take_back(self, digest: str) -> None:
        """Put nothing in place of each part that this machine shipped; the first of them first."""
        head, _ = self._get_part(self.machine, digest, 0)
        for number in range(_part_count(head)):
            self._put_part(digest, number, b"", {})

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        place = 1
        while found := self._get_message({"seq": place, "next_by_subj": f"mbxf.{self.space}.*.{digest}.0"}):
            place = number_at(found, "seq", place) + 1
            _, _, machine, *_ = (*text_at(found, "subject").split("."), "", "", "")
            count = _part_count(bytes_at(found, "hdrs"))
            parts = [self._get_part(machine, digest, number) for number in range(count)]
            if parts and all(_part_count(head) == count for head, _ in parts):
                yield b"".join(part for _, part in parts)

    def _put_part(self, digest: str, number: int, data: bytes, head: dict[str, str]) -> None:
        subject = f"mbxf.{self.space}.{self.machine}.{digest}.{number}"
        self.require_success(self.connection.ask_each([Publication(subject, data, head)])[0])

    def _get_part(self, machine: str, digest: str, number: int) -> tuple[bytes, bytes]:
        found = self._get_message({"last_by_subj": f"mbxf.{self.space}.{machine}.{digest}.{number}"})
        return bytes_at(found, "hdrs"), bytes_at(found, "data")

    def _get_message(self, what: dict[str, object]) -> dict[str, Any]:
        """Return a message by its leader's word; empty if there is none, or no file was ever shipped."""
        asked = Publication(f"{API}STREAM.MSG.GET.{self._files}", codec.dumps(what).encode())
        answer = self.connection.ask_each([asked])[0]
        is_none = is_missing(answer, (_NO_MESSAGE, _NO_STREAM))
        return {} if is_none else object_at(self.require_success(answer), "message")


def _part_count(head: bytes) -> int:
    """Return how many parts a file has by its first one's head; 0 if there is no file."""
    said = header_value(head, _PARTS.encode())
    return int(said) if said.isdigit() and len(said) < 4 and int(said) <= MOST_PARTS else 0


def is_missing(answer: ServerAnswer, codes: Sequence[int] = (_NO_MESSAGE,)) -> bool:
    """Return whether there is no record there, by one of the server's codes."""
    error = parse_object(answer.data).get("error")
    return isinstance(error, dict) and error.get("err_code") in codes
