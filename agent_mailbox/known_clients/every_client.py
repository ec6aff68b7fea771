"""Every client we know, and what follows from all of them together.

Belongs here: the one list. To add a client, write its module and name it here.
"""

from __future__ import annotations

from .claude_code import CLAUDE_CODE
from .codex import CODEX
from .copilot_cli import COPILOT_CLI
from .cursor_cli import CURSOR_CLI
from .gemini_cli import GEMINI_CLI
from .mcp_client import MCP_CLIENT
from .opencode import OPENCODE

INSTALLED = (CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE, COPILOT_CLI)
"""The clients that ``install`` knows."""
CLIENTS = (*INSTALLED, CURSOR_CLI)
"""All whose processes and files are told apart. If two could be meant by a call, the first one is."""
KNOWN = (*INSTALLED, MCP_CLIENT)
"""All whose sessions can have their mail."""
