"""The machines that are believed: keys, and judging a record."""
