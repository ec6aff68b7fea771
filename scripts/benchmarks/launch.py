"""How the measured programs are started: the one place to change when a launcher does.

Belongs here: command lines, environments, what a client hands a hook. Must not know what is measured, or how.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from tests.door import switches

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = sys.executable
BARE = (PYTHON, "-I", "-S", "-c", "pass")
LEAN = (PYTHON, "-I", "-S", switches.MAIN)
"""The launcher without site-packages, for the plain forms of the hot verbs."""
CONSOLE = (f"{switches.DOOR}/bin/agent-mailbox",)
"""The command, which is judged: with the switches of tests, so that no figure counts on the user's own records."""
LAUNCHERS = {"lean": LEAN, "console": CONSOLE}
PLAIN = (PYTHON, str(Path(__file__).with_name("plain.py")))
WORKER = (PYTHON, "-m", "scripts.benchmarks.worker")
SHIM = str(ROOT / "hooks" / "agent-mailbox-hook")
SHELLS = {"dash": ("dash",), "bash": ("bash",), "busybox": ("busybox", "sh")}
BEGIN, PROMPT = "SessionStart", "UserPromptSubmit"

_APPEND = (
    "import fcntl, os, sys\n"
    "fd = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND | os.O_CREAT)\n"
    "fcntl.flock(fd, fcntl.LOCK_EX)\n"
    "os.write(fd, b'x' * 300 + b'\\n')\n"
    "fcntl.flock(fd, fcntl.LOCK_UN)\n"
    "os.fdatasync(fd)\n"
)
FLOOR_SEND = (PYTHON, "-I", "-S", "-c", _APPEND)
"""The least a durable send in Python can be: lock, write, unlock, sync."""


def shells() -> dict[str, tuple[str, ...]]:
    """The shells of this machine that the shim is meant for, as the beginning of a command line."""
    found = {name: shutil.which(words[0]) for name, words in SHELLS.items()}
    return {name: (path, *SHELLS[name][1:]) for name, path in found.items() if path}


def shim(scratch: Path) -> str:
    """A copy of the shim that starts what is measured."""
    made = scratch / "agent-mailbox-hook"
    if not made.exists():
        baked = f"\npython={PYTHON} main={switches.MAIN} "
        made.write_text(Path(SHIM).read_text(encoding="utf-8").replace("\npython= main= ", baked, 1), encoding="utf-8")
        made.chmod(0o700)
    return str(made)


def environment(scratch: Path) -> dict[str, str]:
    """A home of its own, the measured program first on the PATH, nothing else of the caller's."""
    path = os.pathsep.join([f"{switches.DOOR}/bin", str(Path(PYTHON).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    home = {"HOME": str(scratch), switches.STATE: str(scratch / ".local/state/agent-mailbox"), "TMPDIR": str(scratch)}
    return {"PATH": path, "LANG": "C.UTF-8", **home}


def command_environment(scratch: Path, directory: Path) -> dict[str, str]:
    """For the command line: the mailbox by its variable."""
    return {**environment(scratch), "AGENT_MAILBOX_DIR": str(directory)}


def hook_environment(scratch: Path, directory: Path, session_id: str) -> dict[str, str]:
    """As the client sets it for a hook, which finds the mailbox below the project."""
    client = {"CLAUDE_CODE_SESSION_ID": session_id, "CLAUDE_PROJECT_DIR": str(directory.parent), "CLAUDECODE": "1"}
    return {**environment(scratch), **client}


def hook_input(directory: Path, session_id: str, event: str) -> bytes:
    """What the client writes to a hook's standard input."""
    project = str(directory.parent)
    call = {
        "session_id": session_id,
        "transcript_path": f"{project}/transcript.jsonl",
        "cwd": project,
        "permission_mode": "default",
        "hook_event_name": event,
    }
    more = {BEGIN: {"source": "startup"}, PROMPT: {"prompt": "Please look at the failing test and say what you think."}}
    return json.dumps({**call, **more[event]}).encode()
