"""The site: every page of docs/, README first, as one directory of HTML that needs no server and no network.

Belongs here: calling Sphinx strictly, and seeing that no page loads anything from elsewhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from .pages import DOCS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOME = "README.html"
INDEX = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>agent-mailbox</title>
<meta http-equiv="refresh" content="0; url={HOME}"><a href="{HOME}">agent-mailbox</a></html>
"""
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data)=\"(//|https?:)[^\"]*"
)
_LINKED = re.compile(r"<link\b[^>]*?\bhref=\"(//|https?:)[^\"]*")
_IMPORTED = re.compile(r"(?:@import\s*|\burl\(\s*)[\"']?(//|https?:)[^)\"';]*")
_FOUND = {".html": (_LOADED, _LINKED, _IMPORTED), ".css": (_IMPORTED,)}


def build(target: Path) -> int:
    """Build the site into a directory; return the exit code. A warning is a failure, and so is a resource from
    elsewhere."""
    if target.exists() and any(target.iterdir()) and not (target / HOME).exists():
        print(f"error: not a site, and not empty: {target}\nhint: name another directory", file=sys.stderr)
        return 1
    shutil.rmtree(target, ignore_errors=True)
    words = (sys.executable, "-m", "sphinx", "--builder", "html", "--jobs", "auto", "--quiet", "--conf-dir", str(DOCS))
    strict = ("--fail-on-warning", "--keep-going", "--nitpicky")
    with tempfile.TemporaryDirectory() as trees:
        done = subprocess.run([*words, *strict, "--doctree-dir", trees, str(ROOT), str(target)], check=False)
    if done.returncode:
        return done.returncode
    (target / "index.html").write_text(INDEX, encoding="utf-8")
    found = list(foreign(target))
    for place in found:
        print(f"error: a page loads something from elsewhere: {place}", file=sys.stderr)
    return int(bool(found))


def foreign(site: Path) -> Iterator[str]:
    """Yield what the pages and styles of a site would load from elsewhere."""
    for path in sorted(site.rglob("*")):
        for pattern in _FOUND.get(path.suffix, ()):
            for match in pattern.finditer(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(site)}: {match[0]}"
