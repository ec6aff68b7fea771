"""Derived from the logs, and may be lost."""
