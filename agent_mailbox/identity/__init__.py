"""The caller: the process above this one, the session that it runs, the person at a terminal, or a program."""
