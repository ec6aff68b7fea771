"""The runs of the real clients: what they showed, and ``scripts/clients``."""
