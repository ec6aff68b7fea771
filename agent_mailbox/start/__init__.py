"""Starting fast: the hot verbs without click, and the bundles that ``launch`` loads."""
