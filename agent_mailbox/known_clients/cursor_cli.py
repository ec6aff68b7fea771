"""Cursor CLI, **not run**: it is in no package registry. Its hooks are as Cursor documents them
(cursor.com/docs/hooks), less what reports from its users contradict.

Documented are also ``additional_context`` behind a tool's result, and at the start. Reports say that the editor drops
both, and mail that a client drops is lost. So mail goes by ``stop`` alone, whose ``followup_message`` nobody disputes.
One event that it does not know voids the whole file, by a report: only documented ones stand here.
"""

from __future__ import annotations

from .known_client import BEFORE_TOOL, KnownClient, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .known_client import Wording
SESSION = "conversation_id"
"""The key of its JSON that names the session. ``session_id`` is the same, and is documented for few events."""
ANSWERS = ".cursor"
"""The shim adds this to an event: the answer is to have Cursor's form. Cursor can run Claude Code's hooks, too."""


def _calls(session_id: str, obj: Mapping[str, Any], _: Mapping[str, str]) -> bool:
    """Return whether it calls, by the JSON: the programs that it starts inherit its variables."""
    return obj.get(SESSION) == session_id and isinstance(obj.get("cursor_version"), str)


def _hooks() -> Sequence[Wanted]:
    return (
        Wanted("sessionStart", "SessionStart"),
        Wanted("preToolUse", BEFORE_TOOL, "Shell"),
        Wanted("stop", "Stop"),
        Wanted("sessionEnd", "SessionEnd"),
    )


def _files(wording: Wording) -> Mapping[str, str]:
    """Return the tasks as skills, which only a person runs, and the section: a rule of the project. It reads no
    rules of the user from files, so there the section is a skill that the model may take."""
    skills = {
        f"skills/{name}/SKILL.md": (
            f"---\nname: {name}\ndescription: {about}\ndisable-model-invocation: true\n---\n{text}"
        )
        for name, (about, text) in wording.tasks.items()
    }
    about = "Mail from other agents, and how to answer it. Use it when agent mail is shown or waits."
    if wording.is_for_user:
        head, path = f"name: agent-mailbox\ndescription: {about}\n", "skills/agent-mailbox/SKILL.md"
    else:
        head, path = f"description: {about}\nalwaysApply: true\n", "rules/agent-mailbox.mdc"
    return {**skills, path: f"---\n{head}---\n{wording.section}\n"}


CURSOR_CLI = KnownClient(
    name="cursor",
    title="Cursor CLI",
    word="cursor",
    program="cursor-agent",
    marks=("CURSOR_AGENT",),
    processes=("cursor-agent",),
    scripts=("/cursor-agent/versions/",),
    calls=_calls,
    hooks=_hooks,
    only_denies=True,
    is_flat=True,
    directory=".cursor",
    settings=("hooks.json", "hooks.json"),
    guarded=("hooks.json", "mcp.json"),
    files=_files,
    about="""Install hooks, the skills /bye and /checkpoint, and a rule for the model. Not run with the client.

    Written by Cursor's documentation alone. Shows a diff first and is idempotent. Everything goes into DIR/.cursor, or
    with --user into ~/.cursor. The hooks contain a path of this machine, so do not commit them.
    """,
    after="Cursor runs a project's hooks only where you trust the workspace",
    limits={
        "start": "it is told how much mail waits: the editor was reported to drop what the hook at the start says",
        "stop": "the mail is the next prompt, five times at most; `cursor-agent -p` was reported to skip that hook",
        "guard": "for shell commands; a hook that fails lets them run",
    },
)
