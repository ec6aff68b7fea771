"""Waiting within a hook that its client may cancel.

Belongs here: what the client's SIGTERM does meanwhile, and the end of its terminal.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""The client's word, its terminal that closes, and Ctrl+C."""


class Cancelled(BaseException):
    """The client cancelled the hook."""


class Cancelling:
    """A block in which one of ``ENDS`` ends the wait alone. One that comes while the request is being written is
    held back, or nobody would give that request up."""

    def __enter__(self) -> Cancelling:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        heard = (number for number in ENDS if signal.getsignal(number) is not signal.SIG_IGN)
        self._handlers = {number: signal.signal(number, self._raise_cancelled) for number in heard}
        return self

    def run_until_cancelled(self, do: Callable[[], T]) -> T:
        """Return the result. Raises ``Cancelled`` if the client ends the hook before, or ended it already."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
        try:
            return do()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    @staticmethod
    def _raise_cancelled(*_: object) -> None:
        raise Cancelled
