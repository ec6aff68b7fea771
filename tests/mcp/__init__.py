"""The MCP server, by clients of its own."""
