"""OpenCode. It takes a plugin (``clients/agent-mailbox.js``), which calls the same hooks as the other clients."""

from __future__ import annotations

from .known_client import BEFORE_TOOL, BELL, FILES, PERMIT, KnownClient, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .known_client import Wording
SESSION = "OPENCODE_SESSION_ID"
"""Our plugin sets it for the agent's commands, and for our hooks; the client itself names no session."""


def _is_calling(session_id: str, _: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    return environ.get(SESSION) == session_id


def _wanted_hooks() -> Sequence[Wanted]:
    return (
        Wanted("chat.message", "SessionStart"),
        Wanted("chat.message", "UserPromptSubmit"),
        Wanted("tool.execute.before", BEFORE_TOOL),
        Wanted("tool.execute.before", PERMIT),
        Wanted("tool.execute.before", FILES),
        Wanted("tool.execute.after", "PostToolUse"),
        Wanted("session.idle", "Stop"),
        Wanted("session.idle", BELL),
        Wanted("dispose", "SessionEnd"),
    )


def _extra_files(wording: Wording) -> Mapping[str, str]:
    """Return its commands, and the section, which its plugin names as an instruction. Its ``AGENTS.md`` would hide a
    project's ``CLAUDE.md`` from it."""
    tasks = {
        f"commands/{name}.md": f"---\ndescription: {about}\n---\n{text}"
        for name, (about, text) in wording.tasks.items()
    }
    return {**tasks, "agent-mailbox.md": f"{wording.section}\n"}


OPENCODE = KnownClient(
    name="opencode",
    title="OpenCode",
    word="opencode",
    package="opencode-ai",
    program="opencode",
    seen_with=("1.18.33",),
    session_variable=SESSION,
    process_variable="OPENCODE_PID",
    marks=("OPENCODE",),
    processes=("opencode",),
    scripts=("/opencode-ai/",),
    is_started=True,
    calls=_is_calling,
    hooks=_wanted_hooks,
    only_denies=True,
    stop="",  # its turn is over, and no answer prolongs it
    directory=".opencode",
    below_config="opencode",
    settings=("plugins/agent-mailbox.js", "plugins/agent-mailbox.js"),
    guarded=("plugins/", "plugin/", "opencode.json", "opencode.jsonc"),
    beside=("opencode.json", "opencode.jsonc"),
    hook_files=("plugins/*", "plugin/*", "opencode.json", "opencode.jsonc"),
    running=("command/", "commands/"),
    is_plugin=True,
    files=_extra_files,
    frees_mail=True,
    about="""Install a plugin, two commands, and a section for the model. The plugin calls our
    hooks; the commands are /bye and /checkpoint.

    Shows a diff first and is idempotent. Everything goes into files of its own in DIR/.opencode, or with --user into
    opencode in XDG_CONFIG_HOME (default: ~/.config). The plugin contains a path of this machine, so do not commit it.
    """,
    after="OpenCode reads plugins as it starts: start it again where it runs",
    limits={
        "permit": "a lead changes commands; any other call that it changes the model is told to make",
        "stop": "mail starts a turn of its own",
        "wake when idle": "from a session's first prompt on; `opencode run` ends with its turn",
    },
)
