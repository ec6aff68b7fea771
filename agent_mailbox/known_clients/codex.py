"""Codex. Its hooks have Claude Code's shape; the person must trust each, and before a tool it takes only a refusal."""

from __future__ import annotations

from .known_client import (
    BEFORE_TOOL,
    BELL,
    BELL_TIMEOUT,
    FILES,
    PERMISSION,
    PERMIT,
    PERMIT_TIMEOUT,
    KnownClient,
    Wanted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .known_client import Wording


PATCH = "apply_patch"
"""Its tool that writes files, any number of them by one text."""
FILE_TOOLS = f"{PATCH}|mcp__.*"
"""The tools that write files: its own, and all of MCP servers."""


def is_rollout(path: str, session_id: str) -> bool:
    """Return whether it keeps the session's own conversation there; a subagent's has another session's name."""
    name = path.rpartition("/")[2]
    return name.startswith("rollout-") and name.endswith(f"-{session_id}.jsonl")


def _is_calling(session_id: str, obj: Mapping[str, Any], _: Mapping[str, str]) -> bool:
    path = obj.get("transcript_path")
    return "turn_id" in obj or (isinstance(path, str) and is_rollout(path, session_id))


def _wanted_hooks() -> Sequence[Wanted]:
    return (
        *(Wanted(event, event) for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")),
        Wanted(BEFORE_TOOL, BEFORE_TOOL, "Bash"),
        Wanted(BEFORE_TOOL, PERMIT, None, PERMIT_TIMEOUT),
        Wanted(BEFORE_TOOL, FILES, FILE_TOOLS),
        Wanted(PERMISSION, PERMISSION, None, PERMIT_TIMEOUT),
        Wanted("UserPromptSubmit", BELL, None, BELL_TIMEOUT, "async"),
        Wanted("SessionEnd", "SessionEnd", None, 3),  # its maximum; it complains about more at every start
    )


def _extra_files(wording: Wording) -> Mapping[str, str]:
    """Return the tasks as skills, to be asked for by name only: one that offers itself is listed in every conversation.
    And the rules of the commands that it runs outside its sandbox, where the mailbox is."""
    import json
    import shlex

    found = {}
    for name, (about, text) in wording.tasks.items():
        found[f"skills/{name}/SKILL.md"] = f"---\nname: {name}\ndescription: {about}\n---\n{text}"
        found[f"skills/{name}/agents/openai.yaml"] = "policy:\n  allow_implicit_invocation: false\n"
    # A pattern allows every command that begins with it: `roster retire` would retire anybody.
    patterns = [[*shlex.split(wording.program), *words.split()] for words in wording.free]
    rules = "".join(f'prefix_rule(pattern={json.dumps(words)}, decision="allow")\n' for words in patterns)
    return {**found, "rules/agent-mailbox.rules": rules}


CODEX = KnownClient(
    name="codex",
    title="Codex",
    word="codex",
    package="@openai/codex",
    program="codex",
    seen_with=("0.169.0",),
    session_variable="CODEX_SESSION_ID",  # a subagent's commands: its parent's
    processes=("codex",),
    scripts=("/@openai/codex/",),
    has_launcher=True,
    is_started=True,
    server=("app-server", "unix://"),
    calls=_is_calling,
    hooks=_wanted_hooks,
    only_denies=True,
    conversation="rollout",
    trusts_hooks=True,
    patch_tool=PATCH,
    is_own_file=is_rollout,
    directory=".codex",
    home_variable="CODEX_HOME",
    settings=("hooks.json", "hooks.json"),
    memory="AGENTS.md",
    guarded=("hooks.json", "config.toml"),
    hook_files=("config.toml",),
    files=_extra_files,
    frees_mail=True,
    about="""Install hooks, two skills, an AGENTS.md section, and rules. The skills are
    $bye and $checkpoint, the rules let plain mail commands run unasked.

    Shows a diff first and is idempotent. Everything goes into DIR/.codex and DIR/AGENTS.md, or with --user into
    CODEX_HOME (default: ~/.codex). The hooks contain a path of this machine, so do not commit them. Codex silently
    skips hooks until you trust them: start codex and enter /hooks.
    """,
    after="Codex runs only hooks that you trust, and `codex exec` skips others silently: start codex, trust these when"
    " it asks or by /hooks, and trust the project; repeat it whenever they change",
    limits={
        "permit": "a lead changes commands; any other call that it changes the model is told to make",
        "guard": "a hook that nobody trusted does not run",
        "wake when idle": "from its first prompt on, where Codex's background server runs it; not after Escape",
    },
)
