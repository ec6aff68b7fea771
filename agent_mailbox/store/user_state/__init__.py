"""The user's own state, in no mailbox: bindings, processes of clients, places."""
