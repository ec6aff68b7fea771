"""Starting clients' sessions for a team: the words of each client, and what is said to its server."""
