"""The append-only logs: append, read, seal, replace."""
