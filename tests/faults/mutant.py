"""A mutant: the package without one of its protections. Belongs here: the rows of the tables ``tests/*/mutants.md``.

A row says what is taken away, from which function, by which operator (``tests.faults.operators``), and which tests must
notice; ``simulation`` if its worlds must, too. A fifth cell says why no world can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.faults import operators, scopes
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Mutant(NamedTuple):
    """A protection, how it is taken out of the scope that ``at`` names, and the tests that must miss it."""

    without: str
    at: str
    operator: str
    tests: tuple[str, ...]
    part: str
    """The heading of its table."""
    is_simulated: bool
    """Whether the simulation must notice, too."""
    outside: str = ""
    """Why it cannot, where somebody might expect it."""

    @property
    def file(self) -> str:
        """The file that it changes, from the checkout's root."""
        return str(scopes.find(ROOT, self.at).path.relative_to(ROOT))

    def apply(self, root: Path) -> None:
        """Take the protection out of a copy of the package below ``root``."""
        (root / self.file).write_text(self.patched(), encoding="utf-8")

    def patched(self) -> str:
        """The text of its file without the protection. Raises ``LookupError`` where it is not there."""
        scope = scopes.find(ROOT, self.at)
        return operators.text_without(scope.source, scope.node, self.operator)


def read_mutants() -> list[Mutant]:
    """Return the rows of all tables, in their order."""
    return [mutant for table in sorted((ROOT / "tests").glob("*/mutants.md")) for mutant in _rows(table)]


def _rows(table: Path) -> Iterator[Mutant]:
    part = ""
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            part = line[3:]
        elif line.startswith("| ") and not line.startswith(("| taken away", "| ---")):
            without, at, operator, tests, *outside = line[2:].removesuffix(" |").split(" | ")
            named = tests.split(" and ")
            paths = tuple(f"tests/{test}" for test in named if test != "simulation")
            yield Mutant(without, at.strip("`"), operator.strip("`"), paths, part, "simulation" in named, *outside)
