"""Sessions that wait for mail though their client runs: a word of its command line takes our hooks away.

Belongs here: finding them by the words of a process, which the client's registry names.
"""

from __future__ import annotations

from ..identity.session_registry import read_entry, registry_directory
from ..known_clients.every_client import USUAL
from ..store.files import system
from ..store.user_state import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def find_words(sessions: Collection[str]) -> dict[str, str]:
    """Return, for those of these sessions whose client runs so, the word by which it calls no hook of ours."""
    directory = registry_directory(system.environment())
    try:
        names = system.listdir(directory)
    except OSError:
        return {}
    found = {}
    for name in names:
        pid, _, kind = name.partition(".")
        if kind == "json" and pid.isascii() and pid.isdigit():
            session, _ = read_entry(system.join(directory, name))
            if session in sessions and (word := USUAL.skips_hooks(processes.words(int(pid)))):
                found[str(session)] = word
    return found
