"""A client's own files of JSON. Read only.

Belongs here: reading one that need not be there.
"""

from __future__ import annotations

from typing import Any

from ..core import codec
from ..core.records import BadLine
from ..store.files.small_files import read_if_possible


def read_object(path: str, most: int) -> dict[str, Any]:
    """Return the object in a file; empty if it cannot be read, has more than ``most`` bytes, or has another form."""
    found = codec.parse(read_if_possible(path, most, through_links=True) or b"", most, ours=False)
    return {} if isinstance(found, BadLine) else found
