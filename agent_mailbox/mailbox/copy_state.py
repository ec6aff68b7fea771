"""The file that says how far a machine's copy is.

Belongs here: reading and writing it. ``replica`` says what is in it. It is not synced: an older state, or none, costs a
comparison and no answer.
"""

from __future__ import annotations

from ..core import codec
from ..store import paths, system
from ..store.custody import content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

STATE = "state"


def load(directory: str) -> Mapping[str, Any]:
    """Return what was saved; nothing if there is no file, or a damaged one."""
    checksum, _, body = (content(system.join(directory, STATE)) or b"").partition(b" ")
    found = codec.parse(body) if checksum == b"%08x" % system.checksum(body) else None
    return found if isinstance(found, dict) else {}


def save(directory: str, told: Mapping[str, Any]) -> None:
    """Save a JSON document; raise ``StorageFailed`` if it cannot be written."""
    body = codec.dumps(told).encode()
    path = system.join(directory, STATE)
    flags = system.O_WRONLY | system.O_CREAT | system.O_TRUNC | system.O_CLOEXEC
    try:
        fd = system.open(path + "~", flags, 0o600)
        try:
            system.write_whole(fd, b"%08x " % system.checksum(body) + body)
        finally:
            system.close(fd)
        system.rename(path + "~", path)
    except OSError as error:
        raise paths.storage_failed("write", path, error) from None
