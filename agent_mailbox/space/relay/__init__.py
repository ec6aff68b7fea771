"""The way of commands to an engine through a process that stays."""
