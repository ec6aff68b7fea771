"""Maintain a mailbox: the steward, backups, adoption, extras and the doctor."""
