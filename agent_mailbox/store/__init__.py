"""The one floor that touches mailbox files and locks."""
