"""Notes of where each session works: its mailbox, its directory, its client, the file of its conversation.

Belongs here: the notes, among the user's own records. The shell guard reads a note's first line, the mailbox. A session
notes what its client told it, so nothing else follows from a note than where to look.
"""

from __future__ import annotations

from ...core.records import Record
from ...errors import StorageFailed
from ..files import system
from ..files.small_files import read_file, read_if_possible, replace_file


class Whereabouts(Record):
    """A session's places, each empty if unknown. ``mailbox`` is also empty if ``AGENT_MAILBOX_DIR`` names it, since
    that may name another for the session's next start."""

    mailbox: str = ""
    directory: str = ""
    client: str = ""
    conversation: str = ""


def note(session_id: str, where: Whereabouts, state: str) -> None:
    """Note where a session works; if that fails, the shell guard just says "maybe". ``state``: the user's records."""
    path = f"{state}/sessions/{session_id}"
    mailbox = where.mailbox and system.real_directory(where.mailbox)  # as stamps name it (``stamps``)
    lines = [line.replace("\n", " ") for line in (mailbox, where.directory, where.client, where.conversation)]
    data = b"".join(system.encoded(line) + b"\n" for line in lines)
    if read_if_possible(path) == data:
        return
    try:
        system.make_directory(system.dirname(path), parents=0o755)
        replace_file(path, data, durable=False)
    except (OSError, StorageFailed):
        pass


def of(session_id: str, state: str) -> Whereabouts | None:
    """Return where a session works, as its last start told; None if none did."""
    if "/" in session_id:
        return None
    try:
        lines = (read_file(f"{state}/sessions/{session_id}") or b"").decode("utf-8").split("\n")
    except (StorageFailed, ValueError):
        return None
    return Whereabouts(*lines[:-1][:4])
