"""What a process was told, in a file of its own outside the mailbox.

Belongs here: writing a note so that it outlives ``kill -9`` (it is with the kernel before the next thing is done), and
reading the notes of a process that may have been killed in the middle of one.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any


class Journal:
    """The notes of one process."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note(self, op: str, **more: object) -> None:
        """One note, written at once."""
        os.write(self._fd, json.dumps({"op": op, **more}).encode() + b"\n")


def notes(path: Path) -> Iterator[dict[str, Any]]:
    """The notes in a file, the last one left out if it is not whole."""
    if path.exists():
        for line in path.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)
