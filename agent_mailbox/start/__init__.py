"""Starting fast: the hot verbs without click, and the files that they are started from. ``launch`` begins it."""
