"""The person's word on the other machines of a space: whose key is whose, and for whom each may speak.

Belongs here: that file. It decides what counts, so it is in the user's own record of the mailbox, and only the person's
commands write it.
"""

from __future__ import annotations

from ...core import codec
from ...core.machine_rights import Rights
from ...errors import BadData
from ...store.files import system
from ...store.files.small_files import read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "trust"


def load_rights(directory: str) -> dict[str, Rights]:
    """Return the rights of each machine; raise ``BadData`` for a file of another form."""
    return _read_file(directory)[0]


def is_applied(directory: str) -> bool:
    """Return whether the lines that were here before the last change were judged again by it."""
    return _read_file(directory)[1]


def save_rights(directory: str, rights: Mapping[str, Rights], *, applied: bool) -> None:
    """Keep the rights durably."""
    told = {
        machine: {"fingerprint": one.fingerprint, "user": one.user, "sessions": list(one.sessions)}
        for machine, one in sorted(rights.items())
    }
    system.make_directory(directory)
    body = codec.dumps({"machines": told, "applied": applied}).encode()
    replace_file(system.join(directory, FILE), body + b"\n")


def _read_file(directory: str) -> tuple[dict[str, Rights], bool]:
    path = system.join(directory, FILE)
    text = read_file(path)
    if text is None:
        return {}, True
    found = codec.parse(text)
    try:
        if isinstance(found, dict):
            told = {
                machine: Rights(str(one["fingerprint"]), one["user"] is True, tuple(map(str, one["sessions"])))
                for machine, one in found["machines"].items()
            }
            return told, found["applied"] is True
    except (KeyError, TypeError, AttributeError):
        pass
    raise BadData(f"record of the machines' rights has another form: {path}", "move it away, and say them again")
