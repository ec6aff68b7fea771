"""Export the whole history as JSON Lines, mbox or ontology statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from ..core import instant
from ..core.inbox import MailState
from ..core.records import Message
from ..core.text import neutral
from .mail_output import message_json


def jsonl(state: MailState, since: int) -> Iterator[bytes]:
    """Yield canonical records with ``read_by``, one per line; ``since`` in ms, as below."""
    for message in state.messages.values():
        if message.timestamp >= since:
            yield orjson.dumps(message_json(message, state.reads)) + b"\n"


def mbox(state: MailState, since: int) -> Iterator[bytes]:
    """Yield an mbox file (RFC 4155; quotes body lines that begin with ``From``)."""
    for message in state.messages.values():
        if message.timestamp >= since:
            yield _mail(message)


def _mail(message: Message) -> bytes:
    from email.message import EmailMessage  # slow to load
    from email.policy import SMTP
    from email.utils import format_datetime

    when = datetime.fromtimestamp(message.timestamp / 1000, UTC)
    mail = EmailMessage(policy=SMTP.clone(linesep="\n", utf8=True))
    mail["From"] = _box(message.sender)
    mail["To"] = ", ".join(_box(a) for a in message.recipients)
    mail["Date"] = format_datetime(when)
    mail["Message-ID"] = f"<{_local(message.id)}@agent-mailbox>"
    if message.subject:
        mail["Subject"] = neutral(message.subject)
    if message.thread:
        mail["In-Reply-To"] = f"<{_local(message.thread)}@agent-mailbox>"
    mail.set_content(message.content, charset="utf-8", cte="8bit")
    body = mail.as_bytes().replace(b"\nFrom ", b"\n>From ")
    return (
        f"From {_local(message.sender)}@agent-mailbox {when:%a %b %d %H:%M:%S %Y}\n".encode()
        + body.rstrip(b"\n")
        + b"\n\n"
    )


def _local(word: str) -> str:
    """Return an address's local part; replace unusual characters, so that no id can forge a header."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._+-") else "_" for c in word) or "_"


def _box(word: str) -> str:
    return f"{_local(word)}@agent-mailbox"


def entities(state: MailState, since: int) -> Iterator[bytes]:
    """Yield statements of the ontology mapping, each with the instant it became true.

    A message is a situation; its sender and recipients are actors, its content the materialization. The recipients of
    role, tag and broadcast mail are its actual readers, stated when they read. So a librarian that resumes from the
    last ``at`` misses none.
    """
    statements: list[tuple[int, dict[str, Any]]] = []
    for message in state.messages.values():
        statements += _statements(message, state)
    statements.sort(key=lambda pair: pair[0])
    for at, statement in statements:
        if at >= since:
            yield orjson.dumps({**statement, "at": instant.text(at)}) + b"\n"


def _statements(message: Message, state: MailState) -> Iterator[tuple[int, dict[str, Any]]]:
    situation = f"situation:mailbox-msg-{message.id}"

    def belongs(entity: str, quality: str) -> dict[str, Any]:
        return {"entity": entity, "belongs-to": situation, "quality": quality}

    yield message.timestamp, {"entity": situation, "type": "situation"}
    yield message.timestamp, belongs(f"agent:{message.sender}", "actor")
    stated = {message.sender}
    for address in message.recipients:
        if state.roster.mode(address) == "direct" and address not in stated:
            stated.add(address)
            yield message.timestamp, belongs(f"agent:{address}", "actor")
    material = {**belongs(f"message-content:{message.id}", "materialization"), "content": message.content}
    yield message.timestamp, material
    for read in state.reads.of(message.id):
        if read.session_id not in stated:
            stated.add(read.session_id)
            yield max(read.timestamp, message.timestamp), belongs(f"agent:{read.session_id}", "actor")


FORMATS: dict[str, Callable[[MailState, int], Iterator[bytes]]] = {"jsonl": jsonl, "mbox": mbox, "entities": entities}
