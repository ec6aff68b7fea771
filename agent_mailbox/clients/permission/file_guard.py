"""PreToolUse of the tools that write files: none of them writes a mailbox, the user's own records, or what guards them.

Belongs here: which of a tool's inputs are paths, and whether a path leads to a file of ours, by its real place. The
shim decides most calls by builtins; this decides the rest, by the same rule. It does not restrict reading.
"""

from __future__ import annotations

import os
import stat

from ...core.records import BadLine
from ...store import paths, user_state
from . import tool_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

WHY = (
    "this file is the mailbox's own, or guards it. Mail is sent by `agent-mailbox send`; rules and settings are the"
    " person's to change."
)
UNREAD = "the file that this call writes is unclear"
_KEYS = ("file_path", "notebook_path", "path")
_MCP = "mcp__"
_MOST = 200
"""Strings of one call to check as paths; a call with more is refused unread."""
_LONGEST = 4096
"""Bytes of a path at most (Linux's PATH_MAX)."""


def answer(call: dict[str, Any] | BadLine, here: str, environ: Mapping[str, str]) -> str:
    """Return the client's answer to a call: a refusal, or nothing. A call that cannot be read is refused."""
    try:
        why = UNREAD if isinstance(call, BadLine) else _refusal(call, here, environ)
    except Exception:  # a failing hook fails open
        why = UNREAD
    return refusal(why) if why else ""


def refusal(why: str) -> str:
    """Return the answer that keeps the tool from running."""
    told = f'"permissionDecision": "deny", "permissionDecisionReason": "agent-mailbox: {why}"'
    return f'{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", {told}}}}}\n'


def _refusal(call: Mapping[str, Any], here: str, environ: Mapping[str, str]) -> str:
    tool, given, cwd = call.get("tool_name"), call.get("tool_input"), call.get("cwd")
    if not isinstance(tool, str) or not isinstance(given, dict):
        return UNREAD
    bases = [cwd if isinstance(cwd, str) and cwd.startswith("/") else here, here]
    if tool.startswith(_MCP):
        named = [*_strings(given)]
        bases += [name for name in named if name.startswith("/") and os.path.isdir(name)]
    else:
        named = [value for key in _KEYS if isinstance(value := given.get(key), str)]
        named += tool_files.of(tool, given)
    if len(named) > _MOST or len(bases) > _MOST:
        return UNREAD
    guarded = Guarded(environ)
    places = {os.path.join(base, _plain(name)) for name in named for base in dict.fromkeys(bases)}
    return WHY if any(map(guarded.holds, places)) else ""


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a tool's input that could be a path."""
    if isinstance(value, str):
        if value and "\0" not in value and len(value.encode("utf-8", "surrogatepass")) <= _LONGEST:
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _plain(name: str) -> str:
    """Return the path a server may make of a text: of a URL, of one that begins with the home directory."""
    if name.startswith("file://"):
        from urllib.parse import unquote

        return "/" + unquote(name.removeprefix("file://")).partition("/")[2]
    return os.path.expanduser(name) if name.startswith("~") else name


class Guarded:
    """The directories and files that no tool writes."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        state = user_state.directory(environ)
        named = environ.get("AGENT_MAILBOX_DIR")
        self._directories = [state, *paths.trusted(environ), *([named] if named else [])]
        self._files = installed(state)
        self._known = {place for place in map(_identity, self._directories) if place}

    def holds(self, path: str) -> bool:
        """Return whether the path leads to one of them, through any links; the file need not exist."""
        real = os.path.realpath(path)
        roots = (os.path.realpath(directory) for directory in self._directories)
        if real in self._files or any(f"{real}/".startswith(f"{root.rstrip('/')}/") for root in roots):
            return True
        return self._is_below(real) or self._is_linked(real)

    def _is_below(self, real: str) -> bool:
        """Return whether it is below one by identity: a file system may know one directory by several names."""
        while True:
            if _identity(real) in self._known:
                return True
            if real == os.path.dirname(real):
                return False
            real = os.path.dirname(real)

    def _is_linked(self, real: str) -> bool:
        """Return whether it is a hard link to one of our files."""
        try:
            there = os.lstat(real)
        except (OSError, ValueError):
            return False
        if not stat.S_ISREG(there.st_mode):
            return False
        if any(_identity(file) == (there.st_dev, there.st_ino) for file in self._files):
            return True
        return there.st_nlink > 1 and (there.st_dev, there.st_ino) in self._identities()

    def _identities(self) -> set[tuple[int, int]]:
        every = (os.path.join(at, name) for top in self._directories for at, _, names in os.walk(top) for name in names)
        return {place for place in map(_identity, every) if place}


def installed(state: str) -> list[str]:
    """Return the installed shims (``install`` records them). A list that cannot be read is not an empty one: raise
    ``StorageFailed``."""
    lines = (paths.content(os.path.join(state, paths.SHIMS)) or b"").split(b"\n")
    return [os.fsdecode(line) for line in lines if line]


def record(state: str, shims: Iterable[str]) -> None:
    """Record the installed shims."""
    path = os.path.join(state, paths.SHIMS)
    text = b"".join(os.fsencode(shim) + b"\n" for shim in dict.fromkeys(shims))
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        aside = f"{path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(aside, flags, 0o600), "wb") as file:
            file.write(text)
        os.replace(aside, path)
    except OSError as error:
        raise paths.storage_failed("write", path, error) from None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        there = os.stat(path)
    except (OSError, ValueError):
        return None
    return there.st_dev, there.st_ino
