"""GitHub Copilot CLI. Its hooks take Claude Code's names for events and tools; their answers have another shape."""

from __future__ import annotations

from .known_client import BEFORE_TOOL, FILES, PERMIT, PERMIT_TIMEOUT, KnownClient, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .known_client import Wording
MARK = "COPILOT_CLI"
FILE_TOOLS = "Write|Edit"
"""The tools that write files, by its names for hooks. Those of MCP servers have names that tell nothing."""
SECTION_FILE = "instructions/agent-mailbox.instructions.md"
"""The file that tells the model about its mailbox."""
PARENT = "parent_agent_id"
"""The key by which the JSON of a subagent's hook names whose subagent it is; ``session_id`` is the subagent's own."""


def events_file(session_id: str, environ: Mapping[str, str]) -> str:
    """Return the file in which it keeps the session; empty if none can be named. Only a turn's end is told it."""
    home = COPILOT_CLI.find_home(environ)
    return f"{home}/session-state/{session_id}/events.jsonl" if home[:1] == "/" and "/" not in session_id else ""


def _is_calling(_: str, obj: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Return whether it calls. Every client below it inherits its variable: it is asked last."""
    return MARK in environ and isinstance(obj.get("timestamp"), str)


def _wanted_hooks() -> Sequence[Wanted]:
    return (
        *(Wanted(event, event) for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")),
        Wanted(BEFORE_TOOL, BEFORE_TOOL, "Bash"),
        Wanted(BEFORE_TOOL, FILES, FILE_TOOLS),
        Wanted(BEFORE_TOOL, PERMIT, None, PERMIT_TIMEOUT),  # last: it runs them one by one, and this one may wait
        Wanted("SessionEnd", "SessionEnd"),
    )


def _extra_files(wording: Wording) -> Mapping[str, str]:
    """Return the tasks as skills, which only a person runs, and the section, as an instruction for all files."""
    skills = {
        f"skills/{name}/SKILL.md": (
            f"---\nname: {name}\ndescription: {about}\ndisable-model-invocation: true\n---\n{text}"
        )
        for name, (about, text) in wording.tasks.items()
    }
    return {**skills, SECTION_FILE: f'---\napplyTo: "**"\n---\n{wording.section}\n'}


COPILOT_CLI = KnownClient(
    name="copilot",
    title="GitHub Copilot CLI",
    word="copilot",
    package="@github/copilot",
    program="copilot",
    seen_with=("1.0.102",),
    session_variable="COPILOT_AGENT_SESSION_ID",
    marks=(MARK,),
    processes=("copilot",),
    scripts=("/@github/copilot/",),
    has_launcher=True,
    calls=_is_calling,
    parent_key=PARENT,
    path_key="path",
    tells_time=True,
    shows_start=False,  # resumed, it may forget
    hooks=_wanted_hooks,
    only_denies=True,
    conversation="events",
    find_conversation=events_file,
    erases_turns=True,
    is_flat=True,
    time_key="timeoutSec",
    directory=".github",
    home_variable="COPILOT_HOME",
    home_directory=".copilot",
    settings=("hooks/agent-mailbox.json", "hooks/agent-mailbox.json"),
    guarded=("hooks/",),
    hook_files=("hooks/*.json",),
    running=("agents/", "extensions/"),  # agents with hooks of their own, since 1.0.97; programs that it starts
    files=_extra_files,
    about="""Install hooks, two skills, and an instruction for the model. The skills are /bye
    and /checkpoint.

    Shows a diff first and is idempotent. Everything goes into files of its own in DIR/.github, or with --user into
    COPILOT_HOME (default: ~/.copilot). The hooks contain a path of this machine, so do not commit them.
    """,
    after="Copilot CLI runs a project's hooks only where you trust the folder: start copilot there, or pass"
    " --trust-folder to `copilot -p`",
    limits={
        "permit": "a lead changes commands; any other call that it changes the model is told to make",
        "start": "the mail comes beside the first prompt: it may forget what the hook at the start says",
        "stop": "the mail is the next prompt",
        "guard files": "not for the tools of MCP servers",
        "tasks": "at a terminal; `copilot -p /bye` passes the words on as they are",
    },
)
