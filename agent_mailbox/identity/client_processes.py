"""Telling a client's process from others: by its name, its program, its script, and by what it leaves to its children.

Belongs here: what one process shows. ``identity.callers`` concludes who calls.
"""

from __future__ import annotations

from ..known_clients.every_client import CLIENTS
from ..store.files import system
from ..store.user_state import processes
from . import client_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..known_clients.known_client import KnownClient
    from ..store.user_state.processes import Process

MARKS = (
    *(*client_variables.SESSIONS, *client_variables.HOOKS),
    *(*client_variables.MARKS, *client_variables.PROCESSES),
)
"""Variables that clients set for all they start."""
NAMES = tuple([name for client in CLIENTS for name in client.processes])
_RUNTIMES = ("node", "nodejs", "bun", "deno")
_SCRIPTS = tuple([part for client in CLIENTS for part in client.scripts])
_VERSIONS = tuple([part for client in CLIENTS for part in client.directories])


def is_client(process: Process) -> bool:
    """Return whether the process runs a client we know, by its name, its program, or the script it runs."""
    if process.name in NAMES:
        return True
    path = processes.executable(process.pid)
    base = _program_name(path)
    if base in NAMES or any(part in path for part in _VERSIONS):
        return True
    if base not in _RUNTIMES:
        return False
    script = next(iter(_script_words(process)), "")
    return system.basename(script) in NAMES or any(part in script for part in _SCRIPTS)


def is_server(pid: int) -> bool:
    """Return whether the process is a client's own server, which runs the sessions of all the user's terminals."""
    client = _client_with_server(pid)
    return client is not None and {*client.server} <= {*processes.words(pid)}


def _client_with_server(pid: int) -> KnownClient | None:
    name = system.basename(processes.executable(pid))
    return next((client for client in CLIENTS if client.server and name in client.processes), None)


def is_service(process: Process) -> bool:
    """Return whether the process runs sessions in the background, and no agent started it: such a service has the
    variables of whoever did."""
    said = tuple(
        _script_words(process)[1:] if _executable_name(process) in _RUNTIMES else processes.words(process.pid)[1:]
    )
    if not any(said[: len(words)] == words for client in CLIENTS for words in client.services):
        return False
    started = processes.variables(process.pid)
    return started is not None and is_client(process) and not client_marks(started)


def is_launcher(process: Process, client: Process) -> bool:
    """Return whether the process only starts a client's program, and runs no tools: npm's Codex is a script. Gemini CLI
    starts itself again with more memory, by the same words. A terminal of Codex starts its background server, if none
    runs."""
    if is_server(client.pid) and (kind := _client_with_server(process.pid)) is not None:
        return not {"exec", kind.server[0]} & {*processes.words(process.pid)}
    base = _executable_name(client)
    ran = _script_words(process)
    if _executable_name(process) not in _RUNTIMES or not ran:
        return False
    if base in _RUNTIMES:
        base = system.basename(ran[0])
        if ran != _script_words(client):
            return False
    kind = next((one for one in CLIENTS if one.has_launcher and base in one.processes), None)
    return kind is not None and (system.basename(ran[0]) == base or any(part in ran[0] for part in kind.scripts))


def _executable_name(process: Process) -> str:
    return _program_name(processes.executable(process.pid))


def _program_name(path: str) -> str:
    """Return a program's name by its path."""
    return system.basename(path).removesuffix(".exe")


def _script_words(process: Process) -> list[str]:
    """Return the script that an interpreter runs, and its words; without the interpreter's own options."""
    words = processes.words(process.pid)
    start = next((place for place, word in enumerate(words) if place and not word.startswith("-")), len(words))
    return words[start:]


def client_marks(environ: Mapping[str, str]) -> list[str]:
    """Return the variables of clients that the environment has."""
    return [name for name in dict.fromkeys(MARKS) if environ.get(name)]


def started_by_client(process: Process) -> str:
    """Return why an ancestor may be the child of a client that is gone; empty if it is none. The environment of another
    user's process (``login``, ``sshd``) is unreadable and says nothing. Nor does that of a container's first process,
    which has more rights than those below it."""
    started = processes.variables(process.pid)
    if started is None:
        if processes.is_whole(process):
            return ""
        return f"process {process.pid} above it cannot be read" if processes.is_ours(process.pid) else ""
    if not (found := client_marks(started)):
        return ""
    start = " ".join(["env", *(f"-u {name}" for name in found), process.name])
    return (
        f"process {process.pid} above it ({process.name}) was started by a client, whose {' and '.join(found)} it has;"
        f" if it is yours, start it again without: `{start}`"
    )
