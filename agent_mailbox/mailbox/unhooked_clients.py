"""Sessions that wait for mail though their client runs: a word of its command line takes our hooks away.

Belongs here: finding them by the words of a process, which the client's registry names. That has a file a process, with
its ``sessionId`` (Claude Code 2.1.329, seen live).
"""

from __future__ import annotations

from ..core import codec
from ..core.records import BadLine
from ..known_clients.every_client import USUAL
from ..store.files import system
from ..store.files.small_files import read_if_possible
from ..store.user_state import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_REGISTRY = "sessions"
_MOST = 1 << 16


def find_words(sessions: Collection[str]) -> dict[str, str]:
    """Return, for those of these sessions whose client runs so, the word by which it calls no hook of ours."""
    directory = system.join(USUAL.find_home(system.environment()), _REGISTRY)
    try:
        names = system.listdir(directory)
    except OSError:
        return {}
    found = {}
    for name in names:
        pid, _, kind = name.partition(".")
        if kind == "json" and pid.isascii() and pid.isdigit():
            entry = codec.parse(read_if_possible(system.join(directory, name)) or b"", _MOST, ours=False)
            session = None if isinstance(entry, BadLine) else entry.get("sessionId")
            if session in sessions and (word := USUAL.skips_hooks(processes.words(int(pid)))):
                found[str(session)] = word
    return found
