"""The mailbox itself: opening it, sending, delivering, changing the roster, receipts, queries, one facade for all."""
