"""Deterministic simulation: the real code on a simulated machine, every interleaving and fault drawn from one seed."""
