"""One mailbox on many machines."""
