"""Every client we know, and what follows from all of them together.

Belongs here: the one list. To add a client, write its module and name it in ``INSTALLED``.
"""

from __future__ import annotations

from .claude_code import CLAUDE_CODE
from .codex import CODEX
from .copilot_cli import COPILOT_CLI
from .cursor_cli import CURSOR_CLI
from .gemini_cli import GEMINI_CLI
from .known_client import KnownClient
from .opencode import OPENCODE

USUAL = CLAUDE_CODE
"""The client whose hooks all others are measured by: a call that tells no client is taken for its."""
INSTALLED = (CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE, COPILOT_CLI)
"""The clients that ``install`` knows."""
CLIENTS = (*INSTALLED, CURSOR_CLI)
"""All whose processes and files are told apart. If two could be meant by a call, the first one is."""
SESSION_KEYS = tuple(dict.fromkeys([client.session_key for client in CLIENTS]))
"""The keys by which a call's JSON may name the session, the usual one first."""
STARTED = {client.word: client for client in CLIENTS if client.is_started}
"""The clients that `up` can start, by their words."""
PATCH_TOOLS = tuple([client.patch_tool for client in CLIENTS if client.patch_tool])
MCP_CLIENT = KnownClient(
    name="mcp",
    title="MCP clients",
    about="Any client that takes MCP servers gets tools for its mail. The person adds `agent-mailbox mcp` to its"
    " configuration; `install` never does.",
)
"""Any other client: ``agent-mailbox mcp`` gives it tools, and no hook brings it mail."""
KNOWN = (*INSTALLED, MCP_CLIENT)
"""All whose sessions can have their mail."""


def find_client(word: str) -> KnownClient | None:
    """Return the client of that word; None if it is none we know."""
    return next((client for client in CLIENTS if client.word == word), None)
