"""The order that all machines agree on: asking an engine for it, and what its records say."""
