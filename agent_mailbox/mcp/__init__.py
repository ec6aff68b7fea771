"""The MCP server: five tools on standard input and output, for clients without hooks."""
