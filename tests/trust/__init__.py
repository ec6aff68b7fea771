"""Attacks on who may decide: each was done once, and each fails without the protection that it is about."""
