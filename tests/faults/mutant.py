"""What a mutant is."""

from __future__ import annotations


class Mutant:
    """A protection, how it is taken out of one file, and the tests that must miss it."""

    def __init__(self, without: str, file: str, *patches: tuple[str, str], tests: str) -> None:
        self.without = without
        self.file = f"agent_mailbox/{file}"
        self.patches = patches
        self.tests = tests.split(" and ")
