"""The log's control messages: their sense, and their effects on mail."""
