"""The clients an installation knows: where each looks for what, and by what names. A table; no file is touched here.

Belongs here: the differences between them. Observed with Claude Code 2.1.329, Codex 0.169.0, Gemini CLI 0.61.0 and
OpenCode 1.18.33. The first three take hooks of one shape, and answers of one shape, under our names for the events.
OpenCode takes a plugin, which calls the same hooks.

A project's hooks name a program by its path on this machine. Claude Code has a settings file for the person alone; the
others have only the one that a team may share.
"""

from __future__ import annotations

import os

from ...core.records import Record
from ...errors import NotFound
from ..hooks.hook_events import BEFORE_TOOL, HOOKS
from . import texts
from .hook_entries import BELL, BELL_TIMEOUT, FILES, PERMISSION, PERMIT, PERMIT_TIMEOUT, TIMEOUT, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BELLS = ("SessionStart", "UserPromptSubmit")
"""The events with which a doorbell starts: a session's life, and every turn, even one that ends without a Stop."""


class InstallTarget(Record):
    """A client. ``word`` tells the shim whose hook it is. ``hooks`` were seen to work with it. ``files``: the files all
    ours, by their place below its directory; made from how an agent starts our program, and whether for all
    sessions. ``memory`` is empty if ours is one of these files. ``config``: the name of its directory below the
    user's configuration, if it is there. ``is_plugin``: its settings file is all ours, a plugin."""

    name: str
    word: str
    hooks: Sequence[Wanted]
    variable: str | None
    home: str
    directory: str
    settings: tuple[str, str]
    memory: str
    files: Callable[[str, bool], Mapping[str, str]]
    rules: Callable[[str], Sequence[str]]
    after: str = ""
    config: str = ""
    is_plugin: bool = False

    @property
    def events(self) -> dict[str, str]:
        """Return its names for those events of ours that it waits for."""
        return {wanted.on: wanted.event for wanted in self.hooks if not wanted.is_bell}


class Target(Record):
    """A place where a client looks: its settings, its memory, and the directory of its other files."""

    client: InstallTarget
    base: str
    settings: str
    memory: str
    user: bool


def project(client: InstallTarget, directory: str) -> Target:
    """Return a project's files. Raises ``NotFound`` if there is no such directory."""
    if not os.path.isdir(directory):
        raise NotFound(f"no directory {directory}", "--project names the directory the client is started in")
    directory = os.path.realpath(directory)
    base = os.path.join(directory, client.directory)
    return Target(client, base, os.path.join(base, client.settings[0]), os.path.join(directory, client.memory), False)


def user(client: InstallTarget, environ: Mapping[str, str]) -> Target:
    """Return the user's files, for every project."""
    base = os.path.abspath(user_directory(client, environ))
    return Target(client, base, os.path.join(base, client.settings[1]), os.path.join(base, client.memory), True)


def user_directory(client: InstallTarget, environ: Mapping[str, str]) -> str:
    """Return the client's directory of the user."""
    if client.config:
        above = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or "/", ".config")
        return os.path.join(above, client.config)
    named = environ.get(client.variable) if client.variable else None
    return named or os.path.join(environ.get(client.home) or environ.get("HOME") or "/", client.directory)


CLAUDE_CODE = InstallTarget(
    name="claude-code",
    word="",
    hooks=(
        *(
            Wanted(event, event, texts.MATCHERS.get(event), PERMIT_TIMEOUT if event == PERMISSION else TIMEOUT)
            for event in HOOKS
        ),
        Wanted(BEFORE_TOOL, PERMIT, None, PERMIT_TIMEOUT),
        Wanted(BEFORE_TOOL, FILES, texts.FILE_TOOLS),
        *(Wanted(event, BELL, None, BELL_TIMEOUT) for event in BELLS),
    ),
    variable="CLAUDE_CONFIG_DIR",
    home="HOME",
    directory=".claude",
    settings=("settings.local.json", "settings.json"),
    memory="CLAUDE.md",
    files=lambda _, __: {f"commands/{name}": text for name, text in texts.COMMANDS.items()},
    rules=texts.rules,
)
CODEX = InstallTarget(
    name="codex",
    word="codex",
    hooks=(
        *(Wanted(event, event) for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")),
        Wanted(BEFORE_TOOL, BEFORE_TOOL, "Bash"),
        Wanted(BEFORE_TOOL, PERMIT, None, PERMIT_TIMEOUT),
        Wanted(PERMISSION, PERMISSION, None, PERMIT_TIMEOUT),
        Wanted("SessionEnd", "SessionEnd", None, 3),  # its maximum; it complains about more at every start
    ),
    variable="CODEX_HOME",
    home="HOME",
    directory=".codex",
    settings=("hooks.json", "hooks.json"),
    memory="AGENTS.md",
    files=lambda program, _: {**texts.skills(), "rules/agent-mailbox.rules": texts.codex_rules(program)},
    rules=lambda _: (),
    after="Codex runs only hooks that you trust, and `codex exec` skips others silently: start codex, trust these when"
    " it asks or by /hooks, and trust the project; repeat it whenever they change",
)
GEMINI = InstallTarget(
    name="gemini",
    word="gemini",
    # Without SessionStart: its context would come before the first prompt. That prompt is lost when the session is
    # resumed, and a command in it does not run. The first BeforeAgent registers as well.
    hooks=tuple(
        Wanted(theirs, ours, None, TIMEOUT * 1000)
        for theirs, ours in (
            ("BeforeAgent", "UserPromptSubmit"),
            ("AfterTool", "PostToolUse"),
            ("AfterAgent", "Stop"),
            ("SessionEnd", "SessionEnd"),
        )
    ),
    variable=None,
    home="GEMINI_CLI_HOME",
    directory=".gemini",
    settings=("settings.json", "settings.json"),
    memory="GEMINI.md",
    files=texts.gemini_files,
    rules=lambda _: (),
    after="Gemini CLI runs a project's hooks only where you trust the folder",
)
OPENCODE = InstallTarget(
    name="opencode",
    word="opencode",
    hooks=tuple(
        Wanted(theirs, ours)
        for theirs, ours in (
            ("chat.message", "SessionStart"),
            ("chat.message", "UserPromptSubmit"),
            ("tool.execute.before", BEFORE_TOOL),
            ("tool.execute.before", PERMIT),
            ("tool.execute.before", FILES),
            ("tool.execute.after", "PostToolUse"),
            ("session.idle", "Stop"),
            ("session.idle", BELL),
            ("dispose", "SessionEnd"),
        )
    ),
    variable=None,
    home="HOME",
    directory=".opencode",
    config="opencode",
    settings=("plugins/agent-mailbox.js", "plugins/agent-mailbox.js"),
    is_plugin=True,
    memory="",
    files=lambda _, __: texts.opencode_files(),
    rules=lambda _: (),
    after="OpenCode reads plugins as it starts: start it again where it runs",
)
CLIENTS = (CLAUDE_CODE, CODEX, GEMINI, OPENCODE)
