"""Files that mail carries, and conversations as files."""
