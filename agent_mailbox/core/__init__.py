"""The pure core: every rule of the mailbox, no files, clock, randomness, locks or environment."""
