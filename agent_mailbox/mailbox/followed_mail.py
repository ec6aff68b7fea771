"""Mail as it comes, each message once.

Belongs here: reading on in the live log. The steward may replace it, and then the rest of the old one is read first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import codec
from ..core.records import Message
from ..store.files import system
from ..store.files.lines import LinePlace
from ..store.log.logs import end_of
from ..store.log.proof_view import weigh_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.log.logs import Logs


class FollowedMail:
    """The messages that came since it was made, for a ``with`` block."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._fd = logs.messages.open()
        self._place = LinePlace()
        if self._fd is not None:
            self._place.inode, self._place.position = end_of(self._fd)

    def __enter__(self) -> FollowedMail:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            system.close(self._fd)

    def read_news(self) -> Iterator[Message]:
        """Yield the messages since the last call, in the order of the log."""
        yield from self._read_on()
        if self._logs.messages.is_at_path(self._fd):
            return
        self._place = LinePlace()  # all of the old one
        known = {message.id for message in self._read_on()}
        if self._fd is not None:
            system.close(self._fd)
        self._fd, self._place = self._logs.messages.open(), LinePlace()
        yield from (message for message in self._read_on() if message.id not in known)

    def _read_on(self) -> Iterator[Message]:
        if self._fd is None:
            return
        view = self._logs.messages.view()
        for at, line in self._place.lines(self._fd):
            message = codec.message(line)
            if isinstance(message, Message):
                yield weigh_message(message, view, line, at)
