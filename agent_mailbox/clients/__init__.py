"""The door for coding agents' clients (Claude Code first): hooks, permissions, installation, checks, the doorbell."""
