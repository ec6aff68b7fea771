"""Any other client that takes MCP servers: ``agent-mailbox mcp`` gives it tools, and no hook brings it mail."""

from __future__ import annotations

from .known_client import KnownClient

MCP_CLIENT = KnownClient(
    name="mcp",
    title="MCP clients",
    about="Any client that takes MCP servers gets tools for its mail. The person adds `agent-mailbox mcp` to its"
    " configuration; `install` never does.",
)
