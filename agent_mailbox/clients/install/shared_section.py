"""A section that a client finds in another's file: GitHub Copilot CLI reads a project's ``AGENTS.md``, too.

Belongs here: what becomes of Copilot's own file of the section, as Codex's comes and goes. A model is told once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...known_clients.codex import CODEX
from ...known_clients.copilot_cli import COPILOT_CLI, SECTION_FILE
from . import foreign_files as files
from . import merge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...known_clients.known_client import Wording
    from ..places import Target


def is_told(target: Target, name: str = SECTION_FILE) -> bool:
    """Return whether Codex's file of the project tells Copilot's sessions there already what the file of that name
    would."""
    if not target.project or target.client is not COPILOT_CLI or name != SECTION_FILE:
        return False
    text = files.read_foreign(os.path.join(target.project, CODEX.memory)) or b""
    return merge.BEGIN.encode() in text


def spared_file(target: Target, records: files.FileRecords) -> Iterator[files.Change]:
    """Yield the removal of Copilot's file of the section, which nobody edited, where Codex's tells the same."""
    if not target.project or not (target.client is CODEX or is_told(target)):
        return
    path = _own_file(target)
    data, entry = files.read_foreign(path), records.find_record(path)
    if data is not None and entry is not None and files.checksum_of(data) in entry.written:
        yield files.Change(path, data, entry.original, None)


def missing_file(target: Target, records: files.FileRecords) -> str:
    """Return the path of Copilot's file of the section, if its hooks are installed in the project without it; else
    nothing. Codex's goes."""
    path, hooks = _own_file(target), _own_file(target, COPILOT_CLI.settings[0])
    is_installed = target.project and target.client is CODEX and records.find_record(hooks) is not None
    return path if is_installed and not os.path.exists(path) else ""


def own_text(wording: Wording) -> str:
    """Return the text of Copilot's file of the section."""
    return COPILOT_CLI.files(wording)[SECTION_FILE]


def _own_file(target: Target, name: str = SECTION_FILE) -> str:
    return os.path.realpath(os.path.join(target.project, COPILOT_CLI.directory, name))
