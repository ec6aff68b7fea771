"""Every command and their registry, on top of all."""
