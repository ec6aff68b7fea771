"""The links beside a message's text: its references and attachments, and the bytes of an attached file.

Belongs here: where such a link leads, and as which type a file is served. Both are other people's. A link leads to the
web or to a file of the mailbox. A file is shown as a picture or as plain text, or else saved: no browser runs one.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from starlette.responses import PlainTextResponse, Response

from ..core import attachments, references
from ..core.records import Message, Record
from ..core.text import neutral
from ..store.attachments import attachment_files

PATH = "/attached"
_PICTURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
"""The types that are shown as pictures, by their first bytes: a sender's word does not count."""
_REPO = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


class Linked(Record):
    """A reference (``text``, and its address if it leads to the web), or an attachment (``href`` in the console)."""

    text: str
    href: str = ""
    picture: str = ""
    size: str = ""


def links_of(message: Message) -> tuple[Linked, ...]:
    """Return the references of a message, and then its attachments."""
    given = message.references if isinstance(message.references, list) else []
    told = [Linked(text, web_address(one)) for one in given if (text := references.one(one))]
    return (
        *told[: references.MOST],
        *map(_link_file, attachments.files(message)[: attachments.MOST]),
        *_link_foreign(message),
    )


def conflict_lines(message: Message) -> tuple[str, ...]:
    return tuple(line for line in references.lines(message) if line.startswith("Conflict: "))


def web_address(reference: Any) -> str:
    """Return the web address of a reference; empty if it has none that is safe to follow."""
    kind, repo, url = (reference.get(key) for key in ("type", "repo", "url"))
    if kind == "url" and isinstance(url, str) and url.startswith(("https://", "http://")):
        return url
    if not isinstance(repo, str) or _REPO.fullmatch(repo) is None:
        return ""
    number, sha = reference.get("number"), reference.get("sha")
    if kind in ("github_issue", "github_pr") and type(number) is int:
        return f"https://github.com/{repo}/{'issues' if kind == 'github_issue' else 'pull'}/{number}"
    if kind == "github_commit" and isinstance(sha, str) and _SHA.fullmatch(sha):
        return f"https://github.com/{repo}/commit/{sha}"
    return f"https://github.com/{repo}" if kind == "github_repo" else ""


def _link_file(file: attachments.AttachmentFile) -> Linked:
    name = neutral(file.name)[: attachments.LONGEST]
    href = f"{PATH}?file={file.stored}&name={quote(name, safe='')}"
    return Linked(name, href, href if file.mime_type in _PICTURES else "", attachments.size_of(file.size))


def _link_foreign(message: Message) -> list[Linked]:
    """Return the attachments that are no files of the mailbox, without links: a peer named them."""
    others = [entry for entry in attachments.list_entries(message) if entry.get("type") != "file"]
    lines = attachments.lines(message.replace(attachments=others))
    return [Linked(line.removeprefix("Attached: ")) for line in lines]


def serve_file(directory: str, stored: str, name: str) -> Response:
    """Answer with a file of the mailbox: a picture, plain text, or something to save."""
    data = attachment_files.content(directory, stored) if attachments.is_stored(stored) else None
    if data is None:
        return PlainTextResponse("the mailbox has no such file (yet), or another than was sent\n", 404)
    headers = {"cache-control": "private, max-age=31536000, immutable"}
    for kind, begins in _PICTURES.items():
        if begins.match(data):
            return Response(data, headers=headers, media_type=kind)
    try:
        if b"\0" not in data:
            return PlainTextResponse(data.decode(), headers=headers)
    except UnicodeDecodeError:
        pass
    saved = f"attachment; filename*=UTF-8''{quote(name or 'attachment', safe='')}"
    return Response(data, headers={**headers, "content-disposition": saved}, media_type="application/octet-stream")
