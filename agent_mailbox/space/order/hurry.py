"""Asking the engine in a hurry: how long somebody waits who can do without an answer.

Belongs here: that bound, and who hears of answers. An engine that works answers a word at once, though a question may
take it longer. So a silent one is away, long before a question is given up.
"""

from __future__ import annotations

from _thread import _local  # as in ``store.locks.lock``

from ...store.files import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

QUIET, WORD = 0.05, 0.2
"""Seconds after which who says nothing is asked for a word, and until it comes: an engine may be so far away."""
SILENT = QUIET + WORD
"""Seconds for which an engine that works says nothing at all."""
WORDS = 4
"""The most words of an engine that a caller in a hurry hears before its answer."""
ANSWERED = 2.0
"""Seconds for which a caller in a hurry waits for the answer to a question, while the engine gives signs of life."""


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
