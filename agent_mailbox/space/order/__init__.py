"""The order that all machines agree on, and what waits to enter it."""
