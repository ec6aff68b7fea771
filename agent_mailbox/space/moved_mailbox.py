"""A mailbox that was moved away from its place, and so out of its space.

Belongs here: finding the record of its earlier place by its logs, and what the person does then. The record decides at
its place alone, so a mailbox at another one is in no space until it joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.text import typed
from ..store.files import paths, system
from ..store.files.small_files import open_file, read_file
from ..store.log import custody
from . import space as spaces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.log.custody import Custody
    from ..store.log.logs import Logs
    from .space import Space


def describe_move(logs: Logs, environ: Mapping[str, str]) -> str:
    """Return that the mailbox was moved out of its space, and what puts it back; empty if it was not."""
    if spaces.space_of(logs) is not None:
        return ""
    for place in custody.places(environ):
        record = None if paths.is_mailbox(place) else custody.find(place, paths.state_directory(environ))
        space = spaces.space_in(record) if record is not None and _is_of(record, logs) else None
        if space is not None:
            was = f"it was machine {space.machine} of space {space.space} at {typed(place)}, and is in no space here"
            forget = f"agent-mailbox engine forget {space.machine}"
            join = _command_to_join(space, logs.directory)
            return f"{was}: move it back; or run `{forget}` on another machine, then here `{join}`"
    return ""


def _is_of(record: Custody, logs: Logs) -> bool:
    """Return whether one of the logs continues what the record says of its own, wherever that was."""
    for log in (logs.messages, logs.reads, logs.roster):
        entry = custody.read_entry(read_file(record.path(system.basename(log.path).removesuffix(".jsonl"))) or b"")
        if entry is None or not entry.size:
            continue
        try:
            fd = open_file(log.path, system.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            if entry.replace(inode=system.fstat(fd).st_ino).continues(fd):  # a copy is another file
                return True
        finally:
            system.close(fd)
    return False


def _command_to_join(space: Space, directory: str) -> str:
    given = {
        "--space": space.space,
        "--machine": space.machine,
        "--credential": space.credential,
        "--authority": space.authority,
        "--dir": directory,
    }
    words = (f" {name} {typed(value)}" for name, value in given.items() if value is not None)
    return f"agent-mailbox engine join {typed(space.url)}{''.join(words)}"
