"""The fields and files of a form that a browser sends in parts (RFC 7578), and keeping the files in the mailbox.

Belongs here: taking such a body apart. One that is wrong has no fields, and its action says what is missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..core import attachments, codec
from ..core.records import Record
from ..errors import Malformed
from ..store.attachments import attachment_files

if TYPE_CHECKING:
    from .desk import Looking

PARTED = "multipart/form-data"
MOST_PARTS = 64
"""Parts of a body: the fields of a form, and its files."""
_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})"?')
_NAME = re.compile(r'[; ]name="([^"]*)"')
_FILENAME = re.compile(r'[; ]filename="([^"]*)"')
_ESCAPED = {"%22": '"', "%0D": "\r", "%0A": "\n"}
"""The characters that browsers escape in the names of parts (WHATWG HTML, 4.10.21.8)."""


class UploadedFile(Record):
    """A file as the browser sent it: its name there, and its bytes."""

    name: str
    content: bytes


def split_form(body: bytes, content_type: str) -> tuple[dict[str, str], list[UploadedFile]]:
    """Return the fields of a body, of a repeated field the last, and its files; nothing of a body that is wrong."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return {}, []
    mark = b"--" + found[1].encode("latin-1", "replace")
    fields: dict[str, str] = {}
    files: list[UploadedFile] = []
    parts = body.split(mark)[1:]
    if len(parts) > MOST_PARTS:
        return {}, []
    for part in parts:
        head, _, content = part.removeprefix(b"\r\n").removesuffix(b"\r\n").partition(b"\r\n\r\n")
        try:
            said = head.decode()
            name, filename = _NAME.search(said), _FILENAME.search(said)
            if name is None:
                continue  # the end of the body
            if filename is None:
                fields[_unescape(name[1])] = content.decode()
            elif filename[1] or content:
                files.append(UploadedFile(_unescape(filename[1]), content))
        except UnicodeDecodeError:
            return {}, []
    return fields, files


def _unescape(name: str) -> str:
    for escaped, plain in _ESCAPED.items():
        name = name.replace(escaped, plain)
    return name


def keep_files(now: Looking, files: list[UploadedFile]) -> str:
    """Keep files in the mailbox; return the entries that name them, as a JSON object.

    Raises ``Malformed`` for too many."""
    if len(files) > attachments.MOST:
        raise Malformed(f"too many attachments: {len(files)}", f"send at most {attachments.MOST} with one message")
    kept = [attachment_files.put(now.mailbox.directory, one.name or "file", [one.content]) for one in files]
    return codec.dumps({"files": [file.entry() for file in kept]})
