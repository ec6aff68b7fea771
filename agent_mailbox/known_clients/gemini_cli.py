"""Gemini CLI. It is still served to enterprise accounts and API keys. Its tools have names of its own for hooks."""

from __future__ import annotations

from .known_client import BEFORE_TOOL, FILES, PERMIT, PERMIT_TIMEOUT, TIMEOUT, KnownClient, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .known_client import Wording
HOOK_SESSION = "GEMINI_SESSION_ID"
TOOLS = {
    "run_shell_command": "Bash",
    "write_file": "Write",
    "replace": "Edit",
    "read_file": "Read",
    "read_many_files": "Read",
    "list_directory": "LS",
    "glob": "Glob",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "web_fetch": "WebFetch",
    "google_web_search": "WebSearch",
    "invoke_agent": "Agent",
    "activate_skill": "Skill",
    "write_todos": "TodoWrite",
    "ask_user": "AskUserQuestion",
}
"""The names by which rules and guards know its tools. Any other tool counts as a server's."""


def is_chat(path: str, session_id: str) -> bool:
    """Return whether it keeps the session's own conversation there; a subagent's lies one directory deeper."""
    directory, _, name = path.rpartition("/")
    return directory.endswith("/chats") and name.startswith("session-") and name.endswith(f"-{session_id[:8]}.jsonl")


def _is_calling(session_id: str, _: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    return environ.get(HOOK_SESSION) == session_id


def _wanted_hooks() -> Sequence[Wanted]:
    """Return its hooks, without SessionStart: its context would come before the first prompt. That prompt is lost when
    the session is resumed, and a command in it does not run. The first BeforeAgent registers as well."""
    events = {
        "BeforeAgent": "UserPromptSubmit",
        "AfterTool": "PostToolUse",
        "AfterAgent": "Stop",
        "SessionEnd": "SessionEnd",
    }
    return (
        *(Wanted(theirs, ours, None, TIMEOUT * 1000) for theirs, ours in events.items()),
        Wanted("BeforeTool", BEFORE_TOOL, "run_shell_command", TIMEOUT * 1000),
        Wanted("BeforeTool", FILES, "write_file|replace|save_memory|mcp_.*", TIMEOUT * 1000),
        Wanted("BeforeTool", PERMIT, None, PERMIT_TIMEOUT * 1000),
    )


def _extra_files(wording: Wording) -> Mapping[str, str]:
    """Return its commands and policies; it reads policies of the user alone, not of a project."""
    import json

    found = {
        f"commands/{name}.toml": f"description = \"{about}\"\nprompt = '''\n{text}'''\n"
        for name, (about, text) in wording.tasks.items()
    }
    if wording.is_for_user:
        prefixes = json.dumps([f"{wording.program} {words}" for words in wording.free], ensure_ascii=False)
        rule = f'toolName = "run_shell_command"\ncommandPrefix = {prefixes}\ndecision = "allow"\npriority = 100\n'
        found["policies/agent-mailbox.toml"] = f"[[rule]]\n{rule}"
    return found


GEMINI_CLI = KnownClient(
    name="gemini",
    title="Gemini CLI",
    word="gemini",
    package="@google/gemini-cli",
    program="gemini",
    seen_with=("0.61.0",),
    hook_variable=HOOK_SESSION,
    marks=("GEMINI_CLI",),
    processes=("gemini",),
    scripts=("/@google/gemini-cli/",),
    has_launcher=True,
    calls=_is_calling,
    begins_at_prompt=True,
    drops_errors=True,  # 0.61.0 gives the model the error alone
    hooks=_wanted_hooks,
    only_denies=True,
    conversation="chat",
    is_own_file=is_chat,
    erases_turns=True,
    directory=".gemini",
    above_home="GEMINI_CLI_HOME",
    settings=("settings.json", "settings.json"),
    memory="GEMINI.md",
    guarded=("settings.json", "policies/"),
    hook_files=("extensions/*/hooks/hooks.json",),
    running=("commands/",),
    files=_extra_files,
    has_comments=True,
    frees_mail=True,
    about="""Install hooks, two commands, and a GEMINI.md section. The commands are /bye and
    /checkpoint; with --user there are rules for plain mail commands, too.

    Shows a diff first and is idempotent. Everything goes into DIR/.gemini and DIR/GEMINI.md, or with --user into
    .gemini of GEMINI_CLI_HOME (default: your home). The hooks contain a path of this machine, so do not commit them.
    """,
    after="Gemini CLI runs a project's hooks only where you trust the folder",
    limits={
        "permit": "a lead changes commands; any other call that it changes the model is told to make",
        "once": "resumed, it sends every tool's result twice, and so the mail behind it",
        "plain mail unasked": "with `--user` alone: it reads no policies of a project",
    },
)
