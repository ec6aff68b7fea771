"""The files in which clients keep their sessions' conversations, read from their ends.

Belongs here: which file is a session's. It names that file itself, so only a plain file of the person's own counts,
under the session's own id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import session_steps
from ...errors import StorageFailed
from ..files import lines, system
from ..files.small_files import OpenFile, open_file

if TYPE_CHECKING:
    from ...core.session_steps import Step

LATEST = 2 << 20
"""Bytes of a conversation's end that are read: some hundred steps, in some milliseconds."""
MOST = 200
"""Steps that are told, the latest."""


def latest(path: str, session_id: str, most: int = LATEST) -> list[Step] | None:
    """Return the steps in the last ``most`` bytes, the latest last; None if there is no such file of this session's."""
    place, _, name = path.rpartition("/")
    is_rollout = name.startswith("rollout-") and name.endswith(f"-{session_id}.jsonl")
    if not place.startswith("/") or not (is_rollout or name == f"{session_id}.jsonl"):
        return None
    try:
        fd = open_file(path, system.O_RDONLY)
    except (OSError, ValueError, StorageFailed):
        return None
    try:
        with OpenFile(fd):
            there = system.fstat(fd)
            if there.st_uid != system.geteuid():
                return None
            told = session_steps.of_rollout if is_rollout else session_steps.of_transcript
            return told(line for _, line in lines.lines_of(fd, max(there.st_size - most, 0), there.st_size))[-MOST:]
    except OSError:
        return None
