"""The projection: what the logs hold, as tables that answer questions. Derived, and may be deleted at any time.

Belongs here: the database file (``projection``), taking lines in (``intake``), the numbers in it (``index_keys``). The
questions are in ``lookup``, which finds messages, in ``open_ends`` and in ``untaken_mail``.
"""
