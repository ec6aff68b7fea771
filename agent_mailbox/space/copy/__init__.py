"""This machine's copy of the shared log."""
