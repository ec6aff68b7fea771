"""Export the whole history as JSON Lines, mbox or ontology statements: message by message, as it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from heapq import heappop, heappush
from typing import Any

import orjson

from ..cli import mail_output
from ..core import codec, instant, proofs
from ..core.message_reads import Reads
from ..core.records import Message
from ..core.roster import Roster
from ..core.text import ascii_json, neutral, neutral_lines

Mail = Iterable[tuple[Message, Reads]]
"""Messages, oldest first, each with its reads."""


def export_jsonl(mail: Mail, _: Roster, since: int) -> Iterator[bytes]:
    """Yield canonical records with ``read_by``, one per line; ``since`` in ms, as below."""
    for message, reads in mail:
        if message.timestamp >= since:
            yield _json_line(mail_output.message_json(message, reads))


def _json_line(value: dict[str, Any]) -> bytes:
    try:
        document = orjson.dumps(value).decode()
    except TypeError:  # a number of more digits than it keeps
        document = codec.dumps(value, -codec.MAX_DEPTH)
    return ascii_json(document).encode() + b"\n"


def export_mbox(mail: Mail, _: Roster, since: int) -> Iterator[bytes]:
    """Yield an mbox file (RFC 4155), by the rule of mboxrd.

    A line of ``>`` and ``From`` gets one ``>`` more, and a text one newline. So each text can be had back.
    """
    for message, _reads in mail:
        if message.timestamp >= since:
            yield _mbox_message(message)


def _mbox_message(message: Message) -> bytes:
    when = datetime.fromtimestamp(message.timestamp / 1000, UTC)
    mail = EmailMessage(policy=SMTP.clone(linesep="\n", utf8=True))
    mail["From"] = _address_of(message.sender)
    mail["To"] = ", ".join(_address_of(a) for a in message.recipients)
    mail["Date"] = format_datetime(when)
    if message.expires_at is not None:
        mail["Expires"] = format_datetime(datetime.fromtimestamp(message.expires_at / 1000, UTC))
    mail["Message-ID"] = f"<{_local_part(message.id)}@agent-mailbox>"
    if message.subject:
        mail["Subject"] = neutral(message.subject)
    if message.thread:
        mail["In-Reply-To"] = f"<{_local_part(message.thread)}@agent-mailbox>"
    mail["X-Agent-Mailbox-Proof"] = neutral(proofs.told(message) or "none")
    mail["MIME-Version"] = "1.0"
    mail["Content-Type"] = 'text/plain; charset="utf-8"'
    mail["Content-Transfer-Encoding"] = "8bit"
    first = f"From {_local_part(message.sender)}@agent-mailbox {when:%a %b %d %H:%M:%S %Y}\n"
    body = re.sub(r"^(>*From )", r">\1", message.content, flags=re.MULTILINE)
    return first.encode() + mail.as_bytes() + body.encode() + b"\n\n"


def _local_part(word: str) -> str:
    """Return an address's local part; replace unusual characters, so that no id can forge a header."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._+-") else "_" for c in word) or "_"


def _address_of(word: str) -> str:
    return f"{_local_part(word)}@agent-mailbox"


def export_entities(mail: Mail, roster: Roster, since: int) -> Iterator[bytes]:
    """Yield statements of the ontology mapping, each with the instant it became true.

    A message is a situation; its sender and recipients are actors, its content the materialization. The recipients of
    role, tag and broadcast mail are its actual readers, stated when they read. So a librarian that resumes from the
    last ``at`` misses none.
    """
    readers: list[tuple[int, int, int, str, str]] = []  # those who read later than the mail that came by

    def reads_until(at: int, number: int) -> Iterator[bytes]:
        while readers and readers[0][:2] < (at, number):
            when, _, _, message_id, reader = heappop(readers)
            if when >= since:
                yield _statement_line(_belonging_statement(message_id, f"agent:{reader}", "actor"), when)

    for number, (message, reads) in enumerate(mail):
        yield from reads_until(message.timestamp, number)
        direct = (one for one in message.recipients if roster.mode(one) == "direct")
        stated = dict.fromkeys([message.sender, *direct])  # the actors that the message itself names
        if message.timestamp >= since:
            yield from (
                _statement_line(statement, message.timestamp) for statement in _message_statements(message, stated)
            )
        for place, read in enumerate(reads.of(message.id)):
            if read.session_id not in stated:
                stated[read.session_id] = None
                at = max(read.timestamp, message.timestamp)
                heappush(readers, (at, number, place, message.id, read.session_id))
    while readers:
        yield from reads_until(readers[0][0] + 1, 0)


def _message_statements(message: Message, actors: Iterable[str]) -> Iterator[dict[str, Any]]:
    yield {"entity": _situation_id(message.id), "type": "situation"}
    yield from (_belonging_statement(message.id, f"agent:{actor}", "actor") for actor in actors)
    yield {
        **_belonging_statement(message.id, f"message-content:{message.id}", "materialization"),
        "content": message.content,
    }


def _situation_id(message_id: str) -> str:
    return f"situation:mailbox-msg-{message_id}"


def _belonging_statement(message_id: str, entity: str, quality: str) -> dict[str, Any]:
    return {"entity": entity, "belongs-to": _situation_id(message_id), "quality": quality}


def _statement_line(statement: dict[str, Any], at: int) -> bytes:
    return _json_line({**statement, "at": instant.text(at)})


def neutral_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts of a history for a terminal: no text of others moves its cursor, or forges a line."""
    for part in parts:
        lines = neutral_lines(part.decode("utf-8", "replace"))
        yield "".join(f"{line}\n" for line in [*lines, *([""] if part.endswith(b"\n\n") else [])]).encode()


FORMATS: dict[str, Callable[[Mail, Roster, int], Iterator[bytes]]] = {
    "jsonl": export_jsonl,
    "mbox": export_mbox,
    "entities": export_entities,
}
