"""The environment variables by which clients tell their agents' commands whose terminal this is.

Belongs here: their names, and what follows from two. For what a hook is told see ``clients.hooks.hook_events``.
"""

from __future__ import annotations

from ..errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CLAUDE, CODEX, GEMINI = "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "GEMINI_CLI"
"""Claude Code and Codex name the session (a subagent's commands: its parent's); Gemini CLI names none."""
OPENCODE = "OPENCODE_SESSION_ID"
"""Our plugin in OpenCode sets it for the agent's commands, and for our hooks; the client itself names no session."""
SESSIONS = (CLAUDE, CODEX, OPENCODE)
"""The variables that name a session."""
OURS = "AGENT_MAILBOX_SESSION"
ELSE = "pass --session ID (to send and reply: --from ID)"


def session(environ: Mapping[str, str]) -> str | None:
    """Return the session whose agent's terminal this is; None if no client names one.

    Raises ``Malformed`` if the variables name two sessions, or one beside Gemini CLI. A client that another one's agent
    started has the variables of both, in no order; it must not consume its parent's mail.
    """
    named = {value for name in SESSIONS if (value := environ.get(name))}
    if len(named) > 1 or (named and environ.get(GEMINI)):
        what = f"session unclear: a client within a client, and {' and '.join(sorted(named))} may be the outer one's"
        raise Malformed(what, ELSE, code="no_session")
    return next(iter(named), None)


def is_attended(environ: Mapping[str, str]) -> bool:
    """Return whether a person sits at the Claude Code that calls us; the shim asks the same before a doorbell."""
    return environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0"


def are_told(session_id: str, environ: Mapping[str, str]) -> bool:
    """Return whether a session's commands will know their session, by the environment of its hook."""
    if environ.get("GEMINI_SESSION_ID") == session_id:
        return False
    return all(environ.get(name) in (None, "", session_id) for name in (*SESSIONS, GEMINI))
