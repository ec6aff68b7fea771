"""The measured sections of docs/internals/reliability.md: ``python -m tests.faults.report TABLE`` writes the matrix.

``TABLE`` is what the tests wrote where ``AGENT_MAILBOX_FAULTS_TABLE`` told them to: a row, a fault, a number of cases.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults import commands
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENT = ROOT / "docs" / "internals" / "reliability.md"
COLUMNS = (
    *("killed", "killed within", "refused", "cut short", "short writes", "file size limit", "file system full"),
    *("sync repeated", "synced before done", "torn tails"),
)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def write_section(name: str, text: str) -> None:
    """Replace what is between the document's two markers of that name."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = DOCUMENT.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"{DOCUMENT} has no markers for {name}")
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def matrix(lines: Sequence[str]) -> str:
    """The number of cases of each command and fault."""
    cases: Counter[tuple[str, str]] = Counter()
    for line in lines:
        row, fault, number = line.split("\t")
        cases[row, fault] += int(number)
    rows = [[f"`{c}`", *(cases[c.name, fault] or "–" for fault in COLUMNS)] for c in commands.ALL]
    sums = [sum(cases[c.name, fault] for c in commands.ALL) for fault in COLUMNS]
    other = [(f"{fault} ({row})", n) for (row, fault), n in sorted(cases.items()) if fault not in COLUMNS]
    text = table(("", *COLUMNS), [*rows, ["all", *sums]])
    return f"{text}\n{table(('further', 'cases'), other)}\n{cases.total()} cases in all; every one passed.\n"


if __name__ == "__main__":
    write_section("matrix", matrix(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()))
