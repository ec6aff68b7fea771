"""The pages with a generated part: which they are, and how that part is put behind what people wrote.

Belongs here: the marker lines. Everything behind the one, or between the two others, is the program's.
"""

from __future__ import annotations

from pathlib import Path

from scripts.client_runs import matrix

from . import commands, configuration

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MARKER = "<!-- `scripts/docs` writes everything below from the program; edit what is above -->\n"
GENERATED = {"commands.md": commands.text, "configuration.md": configuration.text}
BEGIN, END = "<!-- `scripts/docs` writes this from what tests showed -->\n", "<!-- to here -->\n"
WITHIN = {"clients.md": matrix.text}


def renewed(name: str) -> str:
    """Return a page as it must be: what people wrote, and what the program says where its marker is."""
    page = (DOCS / name).read_text(encoding="utf-8")
    if name in WITHIN:
        before, begin, rest = page.partition(BEGIN)
        _, end, after = rest.partition(END)
        if not end:
            raise SystemExit(f"docs/{name}: the lines around its table are missing: {BEGIN}")
        return f"{before}{begin}{WITHIN[name]()}{end}{after}"
    written, marker, _ = page.partition(MARKER)
    if not marker:
        raise SystemExit(f"docs/{name}: the marker line is missing: {MARKER}")
    return f"{written}{MARKER}\n{GENERATED[name]()}"


def stale() -> list[str]:
    """Return the pages that are not what they must be."""
    return [name for name in (*GENERATED, *WITHIN) if renewed(name) != (DOCS / name).read_text(encoding="utf-8")]


def write() -> None:
    """Write the pages that are stale."""
    for name in stale():
        (DOCS / name).write_text(renewed(name), encoding="utf-8")
