"""Unread and sent mail as text and as JSON: the output of the hot verbs.

Belongs here: both renderings of ``check`` and ``send``, and what all renderers share. ``render`` prints the rest;
``core.frame`` frames the mail itself.
"""

from __future__ import annotations

from ..core import codec, frame, instant, proofs
from ..core.address import BROADCAST, TAG
from ..core.codec import message_object
from ..core.roster import DEAD
from ..core.text import ascii_json, is_utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..core.claims import Reads
    from ..core.inbox import Item
    from ..core.reach import Arrival, Reach
    from ..core.records import Message
    from ..core.roster import Roster

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


def count_noun(count: int, what: str) -> str:
    """Return a count with its noun: ``1 message``, ``2 messages``."""
    return f"{count} {what}" + ("" if count == 1 else "s")


def message_json(message: Message, reads: Reads | None = None, box: str = "") -> dict[str, Any]:
    """Return a message by its canonical keys, with ``read_by`` from the reads, and the ``proof`` of its writer (null:
    nothing proves who that was). ``box``: the mailbox's path, for the paths of attachments."""
    if not reads:
        return _whole_object(message, message.read_by, box)
    from ..core.claims import readers  # whoever sends folds no mail

    return _whole_object(message, tuple(readers(message, reads)), box)


def _whole_object(message: Message, read_by: tuple[str, ...], box: str) -> dict[str, Any]:
    if message.attachments is not None:
        from ..core import attachments  # rare in mail
        from ..store.attachments import attachment_files

        found = attachments.located(message, box, lambda file: attachment_files.is_there(box, file))
        message = message.replace(attachments=found)
    return {**message_object(message, read_by, whole=True), "proof": proofs.told(message)}


def item_json(item: Item, box: str) -> dict[str, Any]:
    """Return an unread message as ``check --json`` prints it; ``box`` as above."""
    expires = None if item.expires_at is None else instant.text(item.expires_at)
    note = {"control": item.note} if item.message.type == "control" else {}
    whole = _whole_object(item.message, item.read_by, box)
    return {**whole, "mode": item.mode, "expires_at": expires, **note}


def check_json(session_id: str, items: Sequence[Item], more: int, box: str) -> dict[str, Any]:
    """Return the document of ``check --json``; ``box``: the mailbox's path."""
    return {"session": session_id, "messages": [item_json(i, box) for i in items], "count": len(items), "more": more}


def check_pieces(
    session_id: str,
    items: Sequence[Item],
    texts: Sequence[str],
    more: int,
    roster: Roster,
    style: Style,
    command: Callable[[str], str],
) -> list[str]:
    """Return the text of ``check``, a piece for each of the ``texts``; the last has the command to answer. ``command``
    completes the next commands."""
    blocks = [[text] for text in texts]
    head = f"{count_noun(len(items), 'unread message')} for {frame.name_of(session_id, roster)}"
    blocks[0].insert(0, style(head, "dim") + "\n")
    chat = [item for item in items if item.message.type != "control"]  # a reply does not answer control
    last = blocks[-1]
    answered = next((item for item in chat if not _is_dead(item.message.sender, roster)), None)
    if answered is not None:
        wide = " (--all: everyone it was for)" if _has_others(answered) else ""
        reply = command(f'reply {frame.short_typed(answered.message.id)} --body "…"')
        last.append(f"Reply{wide}: {reply}")
    elif chat:
        last.append(f"Nobody can be answered: {frame.name_of(chat[0].message.sender, roster)} is dead")
    if more:
        last.append(f"{more} more: {command('check')}")
    return ["\n".join(block) + "\n" for block in blocks]


def _is_dead(sender: str, roster: Roster) -> bool:
    """Return whether the sender is dead, and no agent has its place: a reply to it is refused."""
    return roster.state(sender) == DEAD and not roster.heirs(sender)


def _has_others(item: Item) -> bool:
    """Return whether the message may have other readers, whom an answer to its sender alone would not reach."""
    return len(item.message.recipients) > 1 or item.mode in (TAG, BROADCAST)


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
