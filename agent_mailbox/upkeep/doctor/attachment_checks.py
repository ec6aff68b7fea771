"""Check the attachments: each file that a live message names is there, as its digest says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import codec
from ...core.attachments import files
from ...core.findings import Problem
from ...core.frame import short
from ...core.records import BadLine
from ...space import exchanged_files
from ...store.attachments import attachment_files
from ...store.files import system

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.attachments import AttachmentFile
    from ...mailbox.mailbox import Mailbox


def check_attachments(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield the files that are missing or damaged, each once; the mailbox has no other copy."""
    seen = exchanged_files.awaited_files(mailbox.logs)
    for message_id, file in _named_files(mailbox):
        if file.stored not in seen and attachment_files.read(mailbox.directory, file) is None:
            path = attachment_files.place(mailbox.directory, file.stored)
            what = "is damaged" if system.exists(path) else "is missing"
            yield Problem(path, None, f"{what}: an attachment of {short(message_id)}; ask its sender for it again")
        seen.add(file.stored)


def _named_files(mailbox: Mailbox) -> Iterator[tuple[str, AttachmentFile]]:
    for _, line in mailbox.logs.messages.lines():
        message = codec.message(line) if b"sha256" in line else None
        if message is not None and not isinstance(message, BadLine):
            yield from ((message.id, file) for file in files(message))
