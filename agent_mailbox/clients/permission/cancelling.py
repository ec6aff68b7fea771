"""Waiting within a hook that its client may cancel.

Belongs here: what the client's SIGTERM does meanwhile.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Cancelled(BaseException):
    """The client cancelled the hook."""


class Cancelling:
    """A block in which the client's SIGTERM ends the wait alone. One that comes while the request is being written is
    held back, or nobody would give that request up."""

    def __enter__(self) -> Cancelling:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self._handler = signal.signal(signal.SIGTERM, self._raise_cancelled)
        return self

    def run_until_cancelled(self, do: Callable[[], T]) -> T:
        """Return the result. Raises ``Cancelled`` if the client ends the hook before, or ended it already."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        try:
            return do()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    @staticmethod
    def _raise_cancelled(*_: object) -> None:
        raise Cancelled
