"""The door to Agent Teams: a client's own teams, read into the mailbox and written to from it."""
