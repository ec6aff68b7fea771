"""Claude Code. It has hooks for everything we do, and the others are measured by it."""

from __future__ import annotations

from .known_client import (
    AFTER_TOOL,
    AFTER_TOOLS,
    BEFORE_TOOL,
    BELL,
    BELL_TIMEOUT,
    FILES,
    PERMISSION,
    PERMIT,
    PERMIT_TIMEOUT,
    STOP_FAILURE,
    KnownClient,
    Wanted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .known_client import Wording
SESSION = "CLAUDE_CODE_SESSION_ID"
SERVED = "CLAUDE_JOB_DIR"
"""Set for a session that its background service runs (``claude --bg``, ``/bg``)."""
COMMANDS = "Bash|Monitor"
"""The tools that run commands, which the guard sees; a hook costs every call it sees."""
FILE_TOOLS = "Write|Edit|MultiEdit|NotebookEdit|mcp__.*"
"""The tools that write files: the client's own, and all of MCP servers. They have a hook of their own."""
BATCHES = (2, 1, 119)
"""The first version with an event behind all calls of tools, also those that failed. Earlier ones may take no settings
at all that name an event they do not know."""
QUOTA_ENDS = ("rate_limit", "billing_error", "account_on_hold")
"""Errors of the API with which a quota ends (``StopFailure``). A limit that passes by itself has the first, too."""
PASSING = "not your usage limit"
"""The client's words for that (2.1.329)."""
BELLS = ("SessionStart", "UserPromptSubmit")
"""The events with which a doorbell starts: a session's life, and every turn, even one that ends without a Stop."""
HOOKLESS = ("--bare", "--safe-mode", "--restricted")
"""Words with which it reads none of the settings that hold our hooks."""
ACTING = (
    *("Bash", "Edit", "Write", "NotebookEdit", "WebFetch", "WebSearch", "Agent", "Skill", "mcp__*"),
    *("EnterWorktree", "ExitWorktree", "Workflow", "CronCreate", "CronDelete", "RemoteTrigger", "SendMessage"),
    *("Artifact", "ClaudeDesign", "Projects", "PushNotification", "SendFeedback"),
)
"""The tools that act (``sdk-tools.d.ts`` of 2.1.329)."""


def is_attended(environ: Mapping[str, str]) -> bool:
    """Return whether a person sits at the client that calls us, or may come back to it in the background. The shim asks
    the same before a doorbell."""
    is_here = environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0" or bool(environ.get(SERVED))
    return environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and is_here


def skips_hooks(words: Sequence[str]) -> str:
    """Return the word by which it calls no hook of ours (2.1.329, seen live); empty if there is none."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, is_joined, value = word.partition("=")
        given = value if is_joined else following
        is_narrow = name == "--setting-sources" and not {"project", "local"} <= {*given.split(",")}
        if name in HOOKLESS or is_narrow or (name == "--settings" and "disableAllHooks" in given):
            return name
    return ""


def _is_calling(session_id: str, _: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Return whether it calls. Another client below it inherits its variables, but they name another session."""
    return "CLAUDECODE" in environ and environ.get(SESSION) in (None, "", session_id)


def _wanted_hooks() -> Sequence[Wanted]:
    plain = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")
    return (
        *(Wanted(event, event) for event in plain),
        Wanted(AFTER_TOOLS, AFTER_TOOLS, since=BATCHES, other=AFTER_TOOL),
        Wanted(STOP_FAILURE, STOP_FAILURE, "|".join(QUOTA_ENDS), since=BATCHES),
        Wanted(BEFORE_TOOL, BEFORE_TOOL, COMMANDS),
        Wanted(PERMISSION, PERMISSION, None, PERMIT_TIMEOUT),
        Wanted(BEFORE_TOOL, PERMIT, None, PERMIT_TIMEOUT),
        Wanted(BEFORE_TOOL, FILES, FILE_TOOLS),
        *(Wanted(event, BELL, None, BELL_TIMEOUT) for event in BELLS),
    )


def _extra_files(wording: Wording) -> Mapping[str, str]:
    """Return its commands. It lists in every conversation those that it may run by itself; these only a person runs."""
    return {
        f"commands/{name}.md": f"---\ndescription: {about}\ndisable-model-invocation: true\n---\n{text}"
        for name, (about, text) in wording.tasks.items()
    }


CLAUDE_CODE = KnownClient(
    name="claude-code",
    title="Claude Code",
    word="claude",
    package="@anthropic-ai/claude-code",
    program="claude",
    seen_with=("2.1.329",),
    session_variable=SESSION,  # a subagent's commands: its parent's
    process_variable="CLAUDE_PID",
    export_variable="CLAUDE_ENV_FILE",
    project_variable="CLAUDE_PROJECT_DIR",
    teams_variable="CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS",
    marks=("CLAUDECODE",),
    processes=("claude",),
    scripts=("/@anthropic-ai/claude-code/",),
    directories=("/claude/versions/",),  # the client's own installer names the program by its version
    services=(("daemon", "run"), ("--bg-pty-host",)),
    service_variable=SERVED,
    askers_variable="CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
    is_attended=is_attended,
    skips_hooks=skips_hooks,
    is_started=True,
    makes_trees=True,
    calls=_is_calling,
    hooks=_wanted_hooks,
    stop="context",
    conversation="transcript",
    wake_tokens=178,
    quota_ends=QUOTA_ENDS,
    passing=PASSING,
    acting=ACTING,
    directory=".claude",
    home_variable="CLAUDE_CONFIG_DIR",
    settings=("settings.local.json", "settings.json"),
    memory="CLAUDE.md",
    guarded=("settings.json", "settings.local.json", "plugins/"),
    managed=("/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json"),
    state_file=".claude.json",
    plans="~/.claude/plans/*.md",
    has_plugins=True,
    beside=(".mcp.json", ".claude.json"),
    # `!` in a text, and hooks of its own; its shell reads the last two before each command (2.1.329, seen live)
    running=("skills/", "commands/", "agents/", "hooks/", "session-env/", "shell-snapshots/"),
    files=_extra_files,
    has_rules=True,
    status_line="statusLine",
    frees_mail=True,
    limits={"wake when idle": "at a terminal; `claude -p` ends with its turn"},
)
