"""Starting a client's session in the background, by the client's own way or in a window of tmux: a module for each."""
