"""The fields and files of a form that a browser sends in parts (RFC 7578), and keeping the files in the mailbox.

Belongs here: what is taken of such a body. One that has too much, or is wrong, is refused.
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

from ..core import attachments, codec
from ..core.records import Record
from ..errors import Malformed
from ..store.attachments import attachment_files
from .desk import Looking

PARTED = "multipart/form-data"
MOST_PARTS = 64
"""Fields of a form, and its files."""
_ESCAPED = {"%22": '"', "%0D": "\r", "%0A": "\n"}
"""The characters that browsers escape in the names of files (WHATWG HTML, 4.10.21.8)."""


class UploadedFile(Record):
    """A file as the browser sent it: its name there, and its bytes."""

    name: str
    content: bytes


async def split_form(request: Request) -> tuple[dict[str, str], list[UploadedFile]]:
    """Return the fields of a form in parts, of a repeated field the last, and its files. Raises ``Malformed``."""
    fields: dict[str, str] = {}
    files: list[UploadedFile] = []
    try:
        async with request.form(max_files=MOST_PARTS, max_fields=MOST_PARTS) as form:
            for name, value in form.multi_items():
                if isinstance(value, str):
                    fields[name] = value
                elif value.filename or value.size:
                    files.append(UploadedFile(_unescape(value.filename or ""), await value.read()))
    except HTTPException as error:
        why = error.detail.rstrip(".").lower()
        hint = f"send at most {attachments.MOST} files with one message"
        raise Malformed(f"the form was not understood, so nothing was done: {why}", hint) from error
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
