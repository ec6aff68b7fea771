"""The door for Claude Code: its hooks' JSON in, its hooks' JSON out. See its hooks reference for the format."""
