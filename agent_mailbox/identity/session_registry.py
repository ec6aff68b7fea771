"""The client's registry of its sessions: a file a process, rewritten at every change (Claude Code 2.1.329, seen live).

Belongs here: where it is, what one file says (``sessionId``, ``status``), and which sessions a word of their process
keeps from our hooks. The client may change it any time; what is missing there is unknown, never guessed.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import BadLine
from ..known_clients.every_client import USUAL
from ..store.files import system
from ..store.files.small_files import list_names, read_if_possible
from ..store.user_state import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MOST = 1 << 16


def registry_directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the registry, which holds ``PID.json``."""
    return system.join(USUAL.find_home(environ), "sessions")


def read_entry(path: str) -> tuple[str | None, str | None]:
    """Return the session that a file names, and its status, each None if unknown."""
    entry = codec.parse(read_if_possible(path, _MOST, through_links=True) or b"", _MOST, ours=False)
    if isinstance(entry, BadLine):  # none, or read during a write: another change follows
        return None, None
    session, status = entry.get("sessionId"), entry.get("status")
    return session if isinstance(session, str) else None, status if isinstance(status, str) else None


def find_unhooked(sessions: Collection[str]) -> dict[str, str]:
    """Return, for those of these sessions that run without our hooks, the word of the command line that does that."""
    directory, found = registry_directory(system.environment()), {}
    for name in list_names(directory):
        pid, _, kind = name.partition(".")
        if kind == "json" and pid.isascii() and pid.isdigit():
            session, _ = read_entry(system.join(directory, name))
            if session in sessions and (word := USUAL.skips_hooks(processes.words(int(pid)))):
                found[str(session)] = word
    return found
