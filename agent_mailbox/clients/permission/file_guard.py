"""PreToolUse of the tools that write files: none of them writes a mailbox, the user's own records, or what guards them.

Belongs here: which of a tool's inputs are paths, and whether a path leads to a file of ours, by its real place. The
shim decides most calls by builtins; this decides the rest, by the same rule. It does not restrict reading.
"""

from __future__ import annotations

import os
import shlex
import stat
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ...core.address import check_id
from ...core.records import BadLine
from ...errors import BadData
from ...known_clients.known_client import FILES
from ...store.files import paths
from ...store.files.small_files import Storing, read_file, replace_file
from ...store.files.system import identity, make_directory
from ...store.log import custody
from .. import client_input, places
from . import tool_files
from .guarded_names import COMMANDS, GuardedNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

WHY = (
    "this file is the mailbox's own, or guards it. Mail is sent by `agent-mailbox send`; rules and settings are the"
    " person's to change."
)
SETTINGS = (
    "this file is the client's own settings, by which it calls agent-mailbox. They are the person's to change: ask for"
    " it."
)
STARTS = (
    "the person's terminal or system runs or reads this file (hooks and settings of git, start files, services), and"
    " this session is bound. Ask the person to change it."
)
RUNNING = (
    "the client runs commands of this file without asking (skills, commands, agents, hooks), and this session is bound."
    " Ask the person to change it."
)
UNREAD = "the file that this call writes is unclear"
_KEYS = ("file_path", "notebook_path", "path")
_MCP = "mcp__"
_MOST = 200
"""Strings of one call to check as paths; a call with more is refused unread."""
_LONGEST = 4096
"""Bytes of a path at most (Linux's PATH_MAX)."""


def answer_call(call: dict[str, Any] | BadLine, here: str, environ: Mapping[str, str]) -> str:
    """Return the client's answer to a call: a refusal, or nothing. A call that cannot be read is refused."""
    try:
        why = UNREAD if isinstance(call, BadLine) else _why_refused(call, here, environ)
    except Exception:  # a failing hook fails open
        why = UNREAD
    return refusal_answer(why) if why else ""


def refusal_answer(why: str) -> str:
    """Return the answer that keeps the tool from running."""
    told = f'"permissionDecision": "deny", "permissionDecisionReason": "agent-mailbox: {why}"'
    return f'{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", {told}}}}}\n'


def _why_refused(call: Mapping[str, Any], here: str, environ: Mapping[str, str]) -> str:
    tool, given, cwd = call.get("tool_name"), call.get("tool_input"), call.get("cwd")
    if not isinstance(tool, str) or not isinstance(given, dict):
        return UNREAD
    bases = [cwd if isinstance(cwd, str) and cwd.startswith("/") else here, here]
    if tool.startswith(_MCP):
        named = [*dict.fromkeys(name for text in _texts_in(given) for name in _paths_in(text))]
        bases += [name for name in named if name.startswith("/") and os.path.isdir(name)]
    else:
        named = [value for key in _KEYS if isinstance(value := given.get(key), str)]
        named += tool_files.written_by_tool(tool, given)
    if len(named) > _MOST or len(bases) > _MOST:
        return UNREAD
    guarded = GuardedFiles(environ)
    bases = [*dict.fromkeys(bases)]
    found = {
        path: os.path.realpath(path) for name in named for path in (os.path.join(b, _plain_path(name)) for b in bases)
    }
    if any(map(guarded.is_guarded, found)):
        return WHY
    names = GuardedNames(bases[:2], environ)
    if any(map(names.is_settings, found.values())):
        return SETTINGS
    if not _is_bound(call, here, environ):
        return ""
    if any(map(names.runs_unasked, found.values())):
        return RUNNING
    return STARTS if any(names.runs_for_the_person(*place) for place in found.items()) else ""


def _is_bound(call: Mapping[str, Any], here: str, environ: Mapping[str, str]) -> bool:
    """Return whether the session that calls is bound; one that cannot be told is, if anybody is."""
    state = paths.state_directory(environ)
    try:
        return paths.is_bound(state, check_id(client_input.parse_call(FILES, call, environ, here).session_id))
    except BadData:
        return bool(paths.bound_sessions(state))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a tool's input that could be a path."""
    if isinstance(value, str):
        if value and "\0" not in value and len(value.encode("utf-8", "surrogatepass")) <= _LONGEST:
            yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(inner)


def _paths_in(text: str) -> Iterator[str]:
    """Yield the paths that a server may find in a text: the text itself, and those of options such as ``--out=/a``.
    An option may stand alone or in a command."""
    yield text
    words = text.split()
    for word in words if len(words) > 1 else [text]:
        option, equals, value = word.partition("=")
        if equals and value and (len(words) == 1 or option.startswith("-") or value.startswith(("/", "~"))):
            yield value
        if word.startswith(("-", "@")) and "/" in word:
            yield word[min(at for at in (word.find("/"), word.find("~")) if at >= 0) :]


def _plain_path(name: str) -> str:
    """Return the path a server may make of a text: of a URL, of one that begins with the home directory."""
    if name[:5].casefold() == "file:":
        rest = unquote(name[5:].partition("?")[0].partition("#")[0])
        return "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest
    return os.path.expanduser(name) if name.startswith("~") else name


class GuardedFiles:
    """The directories and files that no tool writes."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        state = paths.state_directory(environ)
        named = environ.get("AGENT_MAILBOX_DIR")
        self._files = installed_shims(state)
        programs = [place for shim in self._files for place in started_directories(shim)]
        mailboxes = [*paths.trusted(environ), *custody.places(environ), *([named] if named else [])]
        self._walked = [state, paths.configuration_directory(environ), *mailboxes]
        self._directories = [*self._walked, *programs]
        self._known = {place for place in map(identity, self._directories) if place}

    def is_guarded(self, path: str) -> bool:
        """Return whether the path leads to one of them, through any links; the file need not exist."""
        real = os.path.realpath(path)
        roots = (os.path.realpath(directory) for directory in self._directories)
        if (
            real in self._files
            or real.endswith(COMMANDS)
            or any(f"{real}/".startswith(f"{root.rstrip('/')}/") for root in roots)
        ):
            return True
        # by identity: a file system may know one directory by several names
        is_below = any(identity(place) in self._known for place in (real, *places.directories_above(real)))
        return is_below or self._is_linked(real)

    def _is_linked(self, real: str) -> bool:
        """Return whether it is a hard link to one of our files."""
        try:
            there = os.lstat(real)
        except (OSError, ValueError):
            return False
        if not stat.S_ISREG(there.st_mode):
            return False
        it = there.st_dev, there.st_ino
        every = (os.path.join(at, name) for top in self._walked for at, _, names in os.walk(top) for name in names)
        return it in map(identity, self._files) or (there.st_nlink > 1 and it in map(identity, every))


def installed_shims(state: str) -> list[str]:
    """Return the installed shims (``install`` records them). A list that cannot be read is not an empty one: raise
    ``StorageFailed``."""
    lines = (read_file(os.path.join(state, paths.SHIMS)) or b"").split(b"\n")
    return [os.fsdecode(line) for line in lines if line]


def started_directories(shim: str) -> list[str]:
    """Return the directories of what an installed shim starts: the package, and the environment of its Python."""
    try:
        with open(shim, encoding="utf-8", errors="surrogateescape") as file:
            baked = next((line for line in file.read(1 << 12).splitlines() if line.startswith("python=")), "")
    except (FileNotFoundError, NotADirectoryError):
        return []
    said = dict(word.partition("=")[::2] for word in shlex.split(baked))
    package, start = os.path.split(said.get("main", ""))
    environment = os.path.dirname(os.path.dirname(said.get("python", "")))
    found = [package] if start == "__main__.py" else []
    return [*found, *([environment] if os.path.exists(os.path.join(environment, "pyvenv.cfg")) else [])]


def record_shims(state: str, shims: Iterable[str]) -> None:
    """Record the installed shims."""
    path = os.path.join(state, paths.SHIMS)
    text = b"".join(os.fsencode(shim) + b"\n" for shim in dict.fromkeys(shims))
    with Storing("make", state):
        make_directory(state)
    replace_file(path, text, durable=False)
