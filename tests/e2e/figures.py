"""The tables that benchmarks with the real client write into a document: under what they were measured, and where."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.shown import version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

END = "<!-- to here -->\n"


def table(lines: Sequence[str], rounds: int) -> str:
    """The lines of a table, and what it was measured with."""
    where = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    with_what = f"{rounds} each, client {version(CLAUDE_CODE)}, CPython {platform.python_version()}, {where}."
    return "\n".join([*lines, "", with_what, ""])


def write(document: Path, begin: str, text: str) -> None:
    """Put the table into its place: from the line ``begin`` to ``END``."""
    before, _, rest = document.read_text(encoding="utf-8").partition(begin)
    document.write_text(before + begin + text + END + rest.partition(END)[2], encoding="utf-8")
