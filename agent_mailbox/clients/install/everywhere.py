"""Out of every client at once: the places that we know of, and what stays on the machine behind an uninstallation.

Belongs here: finding these places. We know the user's own settings, the file of each installation (``FileRecords``),
the projects of the user's mailboxes, and one directory that the caller names.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from ...known_clients.every_client import CLIENTS
from ...store.files import paths
from .. import places
from . import foreign_files as files
from . import installation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..places import Target


def every_target(here: str, environ: Mapping[str, str]) -> list[Target]:
    """Return every place that may hold an installation of ours, each once."""
    recorded = files.FileRecords(environ).recorded_paths()
    projects = [here, *(_project_of(mailbox) for mailbox in paths.trusted(environ))]
    for path in recorded:  # .codex/skills/NAME/agents/openai.yaml has the longest way
        projects += islice(places.directories_above(path), 5)
    found: dict[str, Target] = {}
    for client in CLIENTS:
        in_projects = (places.project_target(client, one) for one in dict.fromkeys(projects) if os.path.isdir(one))
        for target in (places.user_target(client, environ), *in_projects):
            found.setdefault(target.settings, target)
    return [target for target in found.values() if _may_be_there(target, recorded)]


def _project_of(mailbox: str) -> str:
    """Return the project of a mailbox: the directory above it, or above the repository's own that holds it."""
    above = os.path.dirname(mailbox)
    return os.path.dirname(above) if os.path.basename(above) == ".git" else above


def _may_be_there(target: Target, recorded: list[str]) -> bool:
    base, memory = os.path.realpath(target.base), os.path.realpath(target.memory)
    return os.path.isdir(base) or any(path == memory or path.startswith(f"{base}/") for path in recorded)


def leftover_plan(environ: Mapping[str, str], done: list[str]) -> installation.InstallPlan:
    """Return the plan for files that no target explains, such as of another ``CLAUDE_CONFIG_DIR``. One that is as we
    left it becomes what it was; any other is left, but for those that are ``done``."""
    records = files.FileRecords(environ)
    changes, left = [], []
    moved: dict[str, str] = {}
    for path in (one for one in records.recorded_paths() if one not in done):
        data, entry = files.read_foreign(path), records.find_record(path)
        if (gone := _missing_project(os.path.dirname(path))) is not None:
            moved[gone] = "it is not there any more; if it was moved, run `agent-mailbox uninstall --all` in it"
        if entry is not None and (data is None or files.checksum_of(data) in entry.written):
            changes.append(files.Change(path, data, None if data is None else entry.original, None))
        else:
            left.append((path, "it was edited; take out of it by hand what names agent-mailbox"))
    return installation.InstallPlan(tuple(changes), (*left, *moved.items()), removes=True)


def _missing_project(directory: str) -> str | None:
    """Return the project above a directory that is missing: the highest one that is not there; None if it is there."""
    missing = [place for place in (directory, *places.directories_above(directory)) if not os.path.isdir(place)]
    return missing[-1] if missing else None


def own_mailboxes(environ: Mapping[str, str]) -> list[str]:
    """Return the user's mailboxes, which stay on this machine."""
    return [box for box in dict.fromkeys(paths.trusted(environ)) if paths.is_mailbox(box)]
