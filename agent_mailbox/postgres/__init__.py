"""The order of a space kept by PostgreSQL, by ``psycopg``, which an extra brings."""
