"""Files as the system gives them: its calls, paths, lines, what is watched."""
