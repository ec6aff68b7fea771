"""Unread and sent mail as text and as JSON: the output of the hot verbs.

Belongs here: both renderings of ``check`` and ``send``, and what all renderers share. ``render`` prints the rest;
``core.frame`` frames the mail itself.
"""

from __future__ import annotations

from ..core import codec, instant, proofs
from ..core.codec import message_object
from ..core.text import ascii_json, is_utf8, neutral
from ..core.text import count_noun as count_noun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..core.inbox import Item
    from ..core.message_reads import Reads
    from ..core.reach import Arrival, Reach
    from ..core.records import Message

    Style = Callable[[str, str], str]

_CODES = {
    "id": "36",
    "sender": "1",
    "subject": "1",
    "dim": "2",
    "alive": "32",
    "frozen": "34",
    "gone": "31",
    "dead": "31",
    "warning": "33",
}


def json_document(value: Any) -> str:
    """Return one JSON document on one line, harmless to a terminal and to strict parsers.

    Half of a surrogate pair becomes U+FFFD; a path that is not UTF-8 has some."""
    document = codec.dumps(value, -codec.MAX_DEPTH)
    if not is_utf8(document):
        document = "".join(["\ufffd" if "\ud800" <= c <= "\udfff" else c for c in document])
    return ascii_json(document) + "\n"


def color_text(text: str, style: str) -> str:
    """Return text in a terminal's style (ECMA-48 SGR)."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and style in _CODES else text


def message_json(message: Message, reads: Reads | None = None, box: str = "") -> dict[str, Any]:
    """Return a message by its canonical keys, with ``read_by`` from the reads, and the ``proof`` of its writer (null:
    nothing proves who that was). ``box``: the mailbox's path, for the paths of attachments."""
    if not reads:
        return _whole_object(message, message.read_by, box)
    from ..core.message_reads import readers  # whoever sends folds no mail

    return _whole_object(message, tuple(readers(message, reads)), box)


def _whole_object(message: Message, read_by: tuple[str, ...], box: str) -> dict[str, Any]:
    if message.attachments is not None:
        from ..core import attachments  # rare in mail
        from ..store.attachments import attachment_files

        found = attachments.located(message, box, lambda file: attachment_files.is_there(box, file))
        message = message.replace(attachments=found)
    return {**message_object(message, read_by, whole=True), "proof": proofs.told(message)}


def unsent_json(unsent: str | None) -> dict[str, bool]:
    """Return for JSON in which way mail is here alone, if it is (``OpenMailbox.unsent``)."""
    return {unsent.replace(" ", "_"): True} if unsent else {}


def item_json(item: Item, box: str) -> dict[str, Any]:
    """Return an unread message as ``check --json`` prints it; ``box`` as above."""
    expires = None if item.expires_at is None else instant.text(item.expires_at)
    note = {"control": item.note} if item.message.type == "control" else {}
    whole = _whole_object(item.message, item.read_by, box)
    return {**whole, "mode": item.mode, "expires_at": expires, **note}


def unclaimed_text(count: int, why: str) -> str:
    """Return that role mail cannot be claimed now, and why; empty without a reason."""
    return f"{count_noun(count, 'message')} for a role cannot be claimed now: {neutral(why)}" if why else ""


def check_json(session_id: str, items: Sequence[Item], more: int, box: str) -> dict[str, Any]:
    """Return the document of ``check --json``; ``box``: the mailbox's path."""
    return {"session": session_id, "messages": [item_json(i, box) for i in items], "count": len(items), "more": more}


def reach_json(delivery: Reach) -> dict[str, Any]:
    """Return whom a message reaches, for JSON."""
    gone = {"gone": list(delivery.gone)} if delivery.gone else {}
    return {"agents": list(delivery.agents), "waiting_for": list(delivery.waiting_for), **gone}


def arrival_json(arrival: Arrival) -> dict[str, Any]:
    """Return when each reader will see a sent message, for JSON, and why."""
    return {
        **reach_json(arrival.reach),
        "now": list(arrival.now),
        "at_next_turn": list(arrival.at_next_turn),
        "when_it_looks": list(arrival.when_it_looks),
        "one_of": list(arrival.reach.one_of),
        "reasons": arrival.reasons,
    }
