"""PostgreSQL as a shared order."""
