"""SQLite, without what its module imports and does not need here.

Belongs here: that import. The C part alone costs a fifth of a bare start; ``sqlite3`` adds ``datetime``. It imports
``functools`` for one name, which with its own imports costs twice as much as SQLite. So that name is given to it.
"""

from __future__ import annotations

from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]
from sys import modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as module
    from typing import Any

    Connection = module.Connection

_USER = "functools"


def _imported() -> Any:
    """Return the module; None in an interpreter that was built without it."""
    stands_in = _USER not in modules
    if stands_in:
        modules[_USER] = type(modules["sys"])(_USER)
        modules[_USER].lru_cache = lambda size: lambda ask: _lru_cache_wrapper(ask, size, False, tuple)  # type: ignore[attr-defined]
    try:
        import _sqlite3
    except ImportError:
        return None
    finally:
        if stands_in:
            del modules[_USER]
    return _sqlite3


sqlite3 = _imported()


def connect(path: str) -> Connection:
    """Return an open database. The simulation replaces this: SQLite does its own input and output."""
    found: Connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    return found
