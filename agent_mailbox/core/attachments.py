"""Attachments of a message: files in the mailbox by their SHA-256, URLs, and what a peer sent within its message.

Belongs here: the shape of an entry, and the line that tells a reader of it. ``store.attachments.attachment_files``
keeps the files. The values in mail are other people's, of any shape; an entry that is no attachment is skipped. An
entry of ours::

    {"type": "file", "name": "plan.png", "mime_type": "image/png", "size": 48211, "sha256": "9f86…",
     "path": "attachments/9f86….png"}

``path`` follows from the digest and the name, so that no line can name another file. Entries of type ``url`` and
``inline`` are the swarm protocol's. A peer's ``inline`` bytes become a file; one that was not kept says why in
``not_kept``. In a mailbox that several machines share, a file may be on its way: ``awaited`` says so to those who show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .records import Record
from .text import term

if TYPE_CHECKING:
    from collections.abc import Callable

    from .records import Message

DIRECTORY = "attachments"
"""The directory of the files, in the mailbox."""
MOST = 8
"""Files of one message."""
LONGEST = 80
"""Characters of a name that are shown, and of one that is kept."""
_NOT_KEPT = "not_kept"
_HEX = frozenset("0123456789abcdef")
_SUFFIX = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_MOST_SUFFIX = 8
_AWAY, _IS_AWAY = "not_here_yet", object()
_SAID = ("type", "name", "mime_type", "content", "not_kept")
"""The keys of an entry that is no file of the mailbox, as programs get it."""
_WEB = ("https://", "http://")
_ABSOLUTE = "absolute_path"
"""The key of a file's whole path; in output alone, never in a line of the log."""


class AttachmentFile(Record):
    """A file that a message names: its name for people, its type (RFC 6838), its bytes, its digest in hex."""

    name: str
    mime_type: str
    size: int
    sha256: str

    @property
    def stored(self) -> str:
        """Return the name of the file in the mailbox's directory of attachments."""
        return stored(self.sha256, self.name)

    def entry(self) -> dict[str, Any]:
        """Return the entry that names the file in a message."""
        given = {"name": self.name, "mime_type": self.mime_type, "size": self.size, "sha256": self.sha256}
        return {"type": "file", **given, "path": f"{DIRECTORY}/{self.stored}"}


def stored(sha256: str, name: str) -> str:
    """Return the name under which a file is kept: its digest, and its suffix, by which readers know its kind."""
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    is_usual = 0 < len(suffix) <= _MOST_SUFFIX and _SUFFIX.issuperset(suffix)
    return f"{sha256}.{suffix}" if is_usual else sha256


def is_stored(name: str) -> bool:
    """Return whether ``stored`` can give this name."""
    digest, dot, suffix = name.partition(".")
    return _is_digest(digest) and stored(digest, f"x{dot}{suffix}") == name


def aside(unique: bytes) -> str:
    """Return the name of a file that is not whole yet, by eight bytes."""
    return f".{unique.hex()}~"


def is_kept(name: str) -> bool:
    """Return whether ``stored`` or ``aside`` can give this name."""
    is_aside = len(name) == len(aside(bytes(8))) and name[0] == "." and name[-1] == "~"
    return (is_aside and _HEX.issuperset(name[1:-1])) or is_stored(name)


def files(message: Message) -> list[AttachmentFile]:
    """Return the files in the mailbox that a message names; other and wrong entries are passed by."""
    return [file for entry in list_entries(message) if (file := _file(entry)) is not None]


def _file(entry: dict[str, Any]) -> AttachmentFile | None:
    name, mime, size, digest = (entry.get(key) for key in ("name", "mime_type", "size", "sha256"))
    if entry.get("type") != "file" or not isinstance(name, str) or not isinstance(mime, str):
        return None
    if type(size) is not int or size < 0 or not isinstance(digest, str) or not _is_digest(digest):
        return None
    file = AttachmentFile(name, mime, size, digest)
    return file if entry.get("path") == f"{DIRECTORY}/{file.stored}" else None


def located(message: Message, directory: str, is_there: Callable[[AttachmentFile], bool]) -> list[dict[str, Any]]:
    """Return the attachments for programs, in known keys: each file of the mailbox with its ``absolute_path``, or as
    ``not_here_yet``.

    Those keys and ``path`` are this mailbox's word alone, and a name is one of a file: a program may follow them
    without a look. A sender's own are left out, and so is what is no attachment. ``directory``: the mailbox's path;
    empty adds none. ``is_there``: whether the file itself is at its place.
    """
    return [_located(entry, directory, is_there) for entry in list_entries(message)]


def _located(entry: dict[str, Any], directory: str, is_there: Callable[[AttachmentFile], bool]) -> dict[str, Any]:
    kept = _file(entry)
    if kept is not None:
        shown = kept.replace(name=plain_name(kept.name)).entry() | {"path": f"{DIRECTORY}/{kept.stored}"}
        if entry.get(_AWAY) is _IS_AWAY:
            shown[_AWAY] = True
        elif directory and is_there(kept):
            shown[_ABSOLUTE] = f"{directory.rstrip('/')}/{DIRECTORY}/{kept.stored}"
        return shown
    shown = {key: value for key in _SAID if isinstance(value := entry.get(key), str)}
    if "name" in shown:
        shown["name"] = plain_name(shown["name"])
    if entry.get("type") != "inline" and not shown.get("content", "").lower().startswith(_WEB):
        shown.pop("content", None)
    return shown


def plain_name(path: str) -> str:
    """Return the last part of a path, which leads nowhere, as readers can show it. It keeps the end of a long one."""
    last = path.replace("\\", "/").rpartition("/")[2]
    shown = "".join(c if c.isprintable() else "?" for c in last)[-LONGEST:].encode("utf-8", "replace").decode()
    return "attachment" if shown.strip(". ") == "" else shown


def awaited(message: Message, are_here: Callable[[AttachmentFile], bool]) -> Message:
    """Return the message with each file that is not here yet marked, for showing. The mail's own marks count for
    nothing."""
    if not isinstance(message.attachments, list):
        return message
    marked = [
        {**entry, _AWAY: _IS_AWAY}
        if isinstance(entry, dict) and (file := _file(entry)) and not are_here(file)
        else entry
        for entry in message.attachments
    ]
    return message.replace(attachments=marked)


def lines(message: Message, directory: str = "") -> list[str]:
    """Return a line for each attachment; ``directory``: the mailbox's path, before the path of a file in it."""
    place = f"{directory.rstrip('/')}/" if directory else ""
    said = []
    for entry in list_entries(message):
        if (file := _file(entry)) is not None:
            named = f"{_name(file.name)} ({_kind(file.mime_type)}, {size_of(file.size)})"
            is_away = entry.get(_AWAY) is _IS_AWAY
            said.append(f"{named}: " + ("not here yet" if is_away else f"{place}{DIRECTORY}/{file.stored}"))
        elif entry.get("type") == "inline" and isinstance(why := entry.get(_NOT_KEPT), str):
            named = f"{_name(str(entry.get('name')))} ({_kind(entry.get('mime_type'))})"
            said.append(f"{named}: not kept, {term(why, LONGEST)}")
        elif entry.get("type") in ("url", "inline") and isinstance(content := entry.get("content"), str):
            kind = _kind(entry.get("mime_type"))
            said.append(
                f"{term(content, 4 * LONGEST)} ({kind})"
                if entry["type"] == "url"
                else f"{kind}, {size_of(len(content) * 3 // 4)}, within the message"
            )
    shown = [f"Attached: {text}" for text in said[:MOST]]
    return [*shown, *([f"Attached: {len(said) - MOST} more"] if len(said) > MOST else [])]


def not_kept(name: str, mime_type: str, why: str) -> dict[str, Any]:
    """Return the entry of a peer's file that this mailbox has not kept."""
    return {"type": "inline", "name": name, "mime_type": mime_type, _NOT_KEPT: why}


def size_of(size: int) -> str:
    """Return a number of bytes as people read it: ``812 B``, ``47 KiB``, ``3.1 MiB``."""
    if size < 1024:
        return f"{size} B"
    return f"{size // 1024} KiB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MiB"


def list_entries(message: Message) -> list[dict[str, Any]]:
    """Return a message's attachments of every type, as they were given."""
    given = message.attachments if isinstance(message.attachments, list) else []
    return [entry for entry in given if isinstance(entry, dict)]


def _is_digest(text: str) -> bool:
    return len(text) == 64 and _HEX.issuperset(text)


def _name(text: str) -> str:
    return term(text, LONGEST) if text.strip() else "a file without a name"


def _kind(given: Any) -> str:
    return term(given, LONGEST) if isinstance(given, str) and given else "of unknown type"
