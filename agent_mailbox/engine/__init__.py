"""One mailbox on many machines: joining a space, the replicator, leaving."""
