"""Installing into a client's files, and out of them."""
