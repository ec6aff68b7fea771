"""Mail that would leave this machine: who may send it, and what must stay.

Belongs here: the checks before such mail is stored, and the signs of a secret. The gateway asks for the same signs
before it carries a line, whoever wrote that.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from ..core import codec, proofs
from ..core.address import is_remote, swarm_of
from ..core.attachments import files, list_entries, size_of
from ..core.records import USER
from ..core.text import typed
from ..errors import Refused
from ..store.attachments import attachment_files
from . import mailbox_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.attachments import AttachmentFile
    from ..core.records import Message, Proof
    from ..core.roster import Roster

ALLOWED = "may_leave"
"""The key of a message whose secret its writer means to send. It counts only if the person provably wrote it."""
MOST_INLINE = 96 * 1024
"""Characters of all attachments within a message: a gateway takes 256 KiB, and the text has 64 KiB of that."""
_FORMS = {
    "private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\bAGE-SECRET-KEY-1[A-Z0-9]{40,}",
    "JSON Web Token": r"\beyJ[\w-]{8,500}\.eyJ[\w-]{8,4000}\.[\w-]{8,}",
    "password in a URL": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@?#]{1,100}:[^\s/:@?#]{1,100}@[\w\[]",
    "AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "Anthropic key": r"\bsk-ant-[\w-]{20,}",
    "OpenAI key": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200}T3BlbkFJ[\w-]{20,}",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60,})",
    "GitLab token": r"\bgl(?:pat|dt|rt|soat)-[\w-]{20,}",
    "Google key": r"\bAIza[\w-]{35}\b",
    "Hugging Face token": r"\bhf_[A-Za-z]{34}\b",
    "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "PyPI token": r"\bpypi-AgE[\w-]{50,}",
    "SendGrid key": r"\bSG\.[\w-]{22}\.[\w-]{43}\b",
    "Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}",
    "Stripe key": r"\b[rs]k_live_[A-Za-z0-9]{20,}",
    "Telegram token": r"\b\d{8,10}:AA[\w-]{33}\b",
}
"""The published forms of secrets, each with a prefix of its own: a guess would hold up talk about code.

detect-secrets knows fewer of these. It would bring two network libraries, and half a second at each such send.
"""


def check(message: Message, roster: Roster, proof: Proof | None, directory: str) -> None:
    """Raise ``Refused`` for mail to a swarm that its sender has not joined, or that looks like a secret.

    ``proof``: the proof of its writer; only the person may insist. ``directory``: the mailbox's.
    """
    # First: nobody joins what is not there.
    mailbox_gateway.check_reachable(filter(is_remote, message.recipients), roster, directory)
    _check_joined(message, roster)
    attached(message, directory)
    if not is_allowed(message, proof) and (found := secret_in(message, directory)):
        raise Refused(
            f"message holds what looks like a secret: {found}",
            "remove it; only the person may insist, with `agent-mailbox send --allow-secret`",
            code="secret",
        )


def is_allowed(message: Message, proof: Proof | None) -> bool:
    """Return whether the person provably wrote that the message may leave."""
    return (message.extra or {}).get(ALLOWED) is True and proofs.is_person(proof)


def _check_joined(message: Message, roster: Roster) -> None:
    sender = roster.get(message.sender)
    for word in filter(is_remote, message.recipients):
        alias, _ = swarm_of(word) or ("", "")
        if message.sender != USER and (sender is None or f"swarm:{alias}" not in sender.tags):
            raise Refused(
                f"sender has not joined swarm:{alias}: {message.sender}",
                f"run `agent-mailbox swarm join {typed(alias)} --session {typed(message.sender)}`",
                code="not_joined",
            )


def attached(message: Message, directory: str) -> list[dict[str, Any]]:
    """Return the attachments as another machine gets them: a file's bytes within the message (swarm protocol).

    Raise ``Refused`` for files that are too large for that, or that are not there.
    """
    found = [entry for entry in list_entries(message) if entry.get("type") != "file"]
    for file, data in _files(message, directory):
        if data is None:
            raise Refused(f"the attachment is not as it was sent: {file.name}", "send it again with --attach")
        told = {"name": file.name, "mime_type": file.mime_type, "sha256": file.sha256}
        found.append({"type": "inline", **told, "content": b64encode(data).decode()})
    if any(file.size > MOST_INLINE for file in files(message)) or sum(map(len, map(codec.dumps, found))) > MOST_INLINE:
        raise Refused(
            f"the attachments are too large for another machine: over {size_of(MOST_INLINE * 3 // 4)}",
            "put them where their reader can fetch them, and send --ref url:URL",
            code="too_large",
        )
    return found


def _files(message: Message, directory: str) -> Iterator[tuple[AttachmentFile, bytes | None]]:
    """Yield the files with their bytes; without those of one that is too large to leave."""
    for file in files(message):
        yield file, attachment_files.read(directory, file) if file.size <= MOST_INLINE else b""


def secret_in(message: Message, directory: str) -> str:
    """Return the kind of secret that the message seems to hold, or a file with it; empty if none."""
    beside = [codec.dumps(value) for value in (message.references, message.attachments, message.metadata) if value]
    beside += [(data or b"").decode("utf-8", "replace") for _, data in _files(message, directory)]
    text = "\n".join((message.subject or "", message.content, *beside))
    return next((kind for kind, form in _FORMS.items() if re.search(form, text)), "")
