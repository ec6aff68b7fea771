"""Mail that a reader has not seen yet: cursor, quiet stamp, offers."""
