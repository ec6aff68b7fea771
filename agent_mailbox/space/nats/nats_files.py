"""The files of a space in a JetStream stream of their own.

Belongs here: the mapping of files to subjects. A part of a file is the last message of its subject:

    mbxf.SPACE.MACHINE.DIGEST.NUMBER

A part is replaced by publishing there again. So a machine takes back what it shipped with no right to remove anything:
an empty message without a count of parts means nothing. Part 0 comes last, and names that count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..order.engine_parts import MOST_PARTS, checksum_of, parts_of
from ..order.order import NoSpace
from . import server_settings
from .answers import bytes_at, number_at, text_at
from .connection import Publication, header_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .nats_order import NatsOrder

_PARTS, _SUM = "Mailbox-Parts", "Mailbox-Sum"


class NatsFiles:
    """One machine's way to the files of a space in NATS; see ``space.order.engine_parts.SpaceFiles``."""

    def __init__(self, order: NatsOrder) -> None:
        self._order = order
        self._stream = f"MBXF_{order.space}"

    def make_unless_there(self) -> None:
        """Make the stream unless it is there; raise ``Refused`` for one that was made otherwise."""
        try:
            found = self._order.call_api(f"STREAM.INFO.{self._stream}", None)
        except NoSpace:
            wanted = server_settings.of_files(self._order.space, self._order.connection.info)
            found = self._order.call_api(f"STREAM.CREATE.{self._stream}", wanted)
        server_settings.refuse_strange(found, f"mbxf.{self._order.space}.>")

    def ship_file(self, digest: str, data: bytes) -> None:
        """Give a file to the space."""
        parts = parts_of(data)
        first, *others = ({_PARTS: str(len(parts)), _SUM: checksum_of(part)} for part in parts)
        for number, head in enumerate(others, 1):
            self._put_part(digest, number, parts[number], head)
        self._put_part(digest, 0, parts[0], first)

    def take_back(self, digest: str) -> None:
        """Put nothing in place of each part that this machine shipped; the first of them first."""
        head, _ = self._get_part(self._order.machine, digest, 0)
        for number in range(_part_count(head)):
            self._put_part(digest, number, b"", {})

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        """Yield what machines shipped as that file."""
        place = 1
        while found := self._get_message({"seq": place, "next_by_subj": f"mbxf.{self._order.space}.*.{digest}.0"}):
            place = number_at(found, "seq", place) + 1
            _, _, machine, *_ = (*text_at(found, "subject").split("."), "", "", "")
            count = _part_count(bytes_at(found, "hdrs"))
            parts = [self._get_part(machine, digest, number) for number in range(count)]
            if parts and all(_part_count(head) == count for head, _ in parts):
                yield b"".join(part for _, part in parts)

    def _put_part(self, digest: str, number: int, data: bytes, head: dict[str, str]) -> None:
        subject = f"mbxf.{self._order.space}.{self._order.machine}.{digest}.{number}"
        self._order.require_success(self._order.connection.ask_each([Publication(subject, data, head)])[0])

    def _get_part(self, machine: str, digest: str, number: int) -> tuple[bytes, bytes]:
        found = self._get_message({"last_by_subj": f"mbxf.{self._order.space}.{machine}.{digest}.{number}"})
        return bytes_at(found, "hdrs"), bytes_at(found, "data")

    def _get_message(self, what: dict[str, object]) -> dict[str, Any]:
        """Return a message; empty if there is none, or no file was ever shipped."""
        try:
            return self._order.get_message(self._stream, what)
        except NoSpace:
            return {}


def _part_count(head: bytes) -> int:
    """Return how many parts a file has by its first one's head; 0 if there is no file."""
    said = header_value(head, _PARTS.encode())
    return int(said) if said.isdigit() and len(said) < 4 and int(said) <= MOST_PARTS else 0
