"""Keeping a mailbox: the steward, backups, adoption, and the doctor."""
