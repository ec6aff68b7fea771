"""The MCP server: tools on standard input and output, for clients without hooks."""
