"""The control plane on a mailbox: requests, orders, tasks, notices; the log of all, and their effects."""
