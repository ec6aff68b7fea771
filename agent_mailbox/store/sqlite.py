"""SQLite's binding without the modules that it imports for one cache.

Belongs here: importing ``_sqlite3``. Its initialization asks ``functools`` for ``lru_cache``, to keep each connection's
statements. ``functools`` costs three times as much as SQLite itself, and a look-up by id as little as both together.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as binding
    from collections.abc import Callable
    from typing import Any

__all__ = ["binding"]
FUNCTOOLS = "functools"


def _lru_cache(maxsize: int) -> Callable[[Callable[..., Any]], Any]:
    """Return what ``functools.lru_cache`` does, of which the binding reads no statistics."""
    from _functools import _lru_cache_wrapper as wrapper  # type: ignore[import-not-found]

    return lambda function: wrapper(function, maxsize, False, tuple)


def _imported() -> Any:
    if FUNCTOOLS in sys.modules or "_sqlite3" in sys.modules:
        import _sqlite3

        return _sqlite3
    standin = type(sys)(FUNCTOOLS)
    standin.__dict__["lru_cache"] = _lru_cache
    sys.modules[FUNCTOOLS] = standin
    try:
        import _sqlite3
    finally:
        if sys.modules.get(FUNCTOOLS) is standin:
            del sys.modules[FUNCTOOLS]
    return _sqlite3


if not TYPE_CHECKING:
    try:
        binding = _imported()
    except (ImportError, AttributeError):  # this interpreter was built without it, or its binding asks for more
        try:
            import _sqlite3 as binding
        except ImportError:
            binding = None
