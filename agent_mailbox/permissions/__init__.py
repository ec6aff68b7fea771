"""Permission rules in a client's syntax, and the shell text that they are held against. Pure, like the core."""
