"""The rules for keeping mail."""
