"""The pages with a generated part: which they are, and how that part is put behind what people wrote.

Belongs here: the marker line. Everything behind it is the program's.
"""

from __future__ import annotations

from pathlib import Path

from . import commands, configuration

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MARKER = "<!-- `scripts/docs` writes everything below from the program; edit what is above -->\n"
GENERATED = {"commands.md": commands.text, "configuration.md": configuration.text}


def renewed(name: str) -> str:
    """Return a page as it must be: what people wrote, the marker, what the program says."""
    page = (DOCS / name).read_text(encoding="utf-8")
    written, marker, _ = page.partition(MARKER)
    if not marker:
        raise SystemExit(f"docs/{name}: the marker line is missing: {MARKER}")
    return f"{written}{MARKER}\n{GENERATED[name]()}"


def stale() -> list[str]:
    """Return the pages that are not what they must be."""
    return [name for name in GENERATED if renewed(name) != (DOCS / name).read_text(encoding="utf-8")]


def write() -> None:
    """Write the pages that are stale."""
    for name in stale():
        (DOCS / name).write_text(renewed(name), encoding="utf-8")
