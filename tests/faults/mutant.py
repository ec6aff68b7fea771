"""A mutant: the package without one of its protections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults import scopes
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path


class Mutant:
    """A protection, how it is taken out of the one scope that ``at`` names, and the tests that must miss it."""

    def __init__(self, without: str, at: str, *patches: tuple[str, str], tests: str) -> None:
        self.without = without
        self.at = at
        self.patches = patches
        self.tests = tests.split(" and ")

    @property
    def file(self) -> str:
        """The file that it changes, from the checkout's root."""
        return str(scopes.find(ROOT, self.at).path.relative_to(ROOT))

    def apply(self, root: Path) -> None:
        """Take the protection out of the package below ``root``. Raises ``LookupError`` where a patch does not fit."""
        path, text = self.patched(root)
        path.write_text(text, encoding="utf-8")

    def patched(self, root: Path) -> tuple[Path, str]:
        """The file of it and its text without the protection. Raises ``LookupError`` where a patch does not fit."""
        scope = scopes.find(root, self.at)
        before, text, after = scope.parts()
        for old, new in self.patches:
            if text.count(old) != 1:
                raise LookupError(f"{self.at} holds {old!r} {text.count(old)} times: write the mutant anew")
            text = text.replace(old, new)
        return scope.path, before + text + after
