"""The configurations of a mailbox and of the user, and their file."""
