"""A peer's files: the bytes within a message become files of the mailbox, as those that are attached here.

Belongs here: which of them are kept, and the reason for each that is not. Name, type, digest and bytes are the peer's,
or a relay's. The size is counted here. A file is durable before the line that names it; without such a line the steward
removes it.
"""

from __future__ import annotations

from hashlib import sha256
from mimetypes import guess_extension
from typing import Any

from ..core import attachments
from ..core.records import Message
from ..errors import BadData, Refused
from ..store.attachments import attachment_files
from .protocol import wire

MANY = f"a message brings at most {attachments.MOST} files"
DAMAGED = "its bytes do not match its digest"
UNREADABLE = "its content is no base64"
LARGE = f"it is over {attachments.size_of(attachment_files.MOST_BYTES)}"
FULL = "the mailbox has no room for files from elsewhere"


def keep_attachments(directory: str, message: Message) -> Message:
    """Return a verified message with its bytes kept as files; raise ``StorageFailed``.

    A file that cannot be kept stays a name with the reason: it must not hold up the text.
    """
    given = message.attachments or []
    if not any(entry["type"] == "inline" for entry in given):
        return message
    left = attachment_files.room(directory, attachment_files.MOST_FOREIGN)
    entries: list[dict[str, Any]] = []
    files = 0
    for entry in given:
        if entry["type"] == "inline":
            files += 1
            entry = _keep_attachment(directory, entry, left) if files <= attachments.MOST else _not_kept(entry, MANY)
            left -= max(entry.get("size", 0), attachment_files.LEAST_COUNTED)
        entries.append(entry)
    return message.replace(attachments=entries)


def _keep_attachment(directory: str, entry: dict[str, Any], left: int) -> dict[str, Any]:
    try:
        data = wire.decode_base64(entry["content"])
    except ValueError:
        return _not_kept(entry, UNREADABLE)
    if entry.get("sha256") not in (None, sha256(data).hexdigest()):
        return _not_kept(entry, DAMAGED)
    try:
        return attachment_files.put(directory, _file_name_of(entry), [data], left).entry()
    except BadData:
        return _not_kept(entry, LARGE)
    except Refused:
        return _not_kept(entry, FULL)


def _not_kept(entry: dict[str, Any], why: str) -> dict[str, Any]:
    return attachments.not_kept(_file_name_of(entry), entry["mime_type"], why)


def _file_name_of(entry: dict[str, Any]) -> str:
    """Return the peer's name for a file, or one by its type."""
    return entry.get("name") or f"attachment{guess_extension(entry['mime_type']) or ''}"
