"""The runs that are too long for every push, and the table of how each last ended."""
