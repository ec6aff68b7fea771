"""Two renderers: text for people and agents, JSON for programs. Plain functions from values to strings.

Belongs here: layout and colour of everything but mail itself (``core.frame``), and the JSON shapes of the contract.
"""

from __future__ import annotations

import orjson

from ..core import frame, instant
from ..core.claims import readers
from ..core.codec import message_object
from ..core.text import ascii_json, clipped, neutral

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from ..core.claims import Reads
    from ..core.inbox import Delivery, Item
    from ..core.records import Message, Read
    from ..core.roster import Agent, Roster
    from ..doctor import Problem

    Style = Callable[[str, str], str]

_CODES = {
    "id": "36",
    "sender": "1",
    "subject": "1",
    "dim": "2",
    "alive": "32",
    "frozen": "34",
    "dead": "31",
    "warning": "33",
}


def coloured(text: str, style: str) -> str:
    """The style of a terminal (ECMA-48 SGR)."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and style in _CODES else text


def json(value: Any) -> str:
    """One JSON document, on one line, harmless to a terminal."""
    return ascii_json(orjson.dumps(_small(value)).decode()) + "\n"


def _small(value: Any) -> Any:
    """The value with integers beyond 64 bits as floats, which is what JSON readers make of them."""
    if isinstance(value, dict):
        return {key: _small(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_small(item) for item in value]
    return float(value) if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64 else value


def table(
    rows: Iterable[Sequence[str]],
    head: Sequence[str] = (),
    styles: Sequence[Sequence[str]] = (),
    style: Style = frame.plain,
) -> list[str]:
    """Aligned columns, two spaces apart; the last one ragged. ``styles`` gives a style per cell, row by row."""
    rows = [tuple(row) for row in rows]
    if not rows:
        return []
    everything = [tuple(head), *rows] if head else rows
    widths = [max(len(row[i]) for row in everything) for i in range(len(everything[0]))]

    def line(cells: Sequence[str], paint: Sequence[str]) -> str:
        parts = [
            style(cell.ljust(width), paint[i] if i < len(paint) else "")
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    lines = [line(head, ["dim"] * len(head))] if head else []
    return lines + [line(row, styles[i] if i < len(styles) else ()) for i, row in enumerate(rows)]


def plural(count: int, what: str) -> str:
    """``1 message``, ``2 messages``."""
    return f"{count} {what}" + ("" if count == 1 else "s")


# -- mail -------------------------------------------------------------------------------------------------------------


def message_json(message: Message, reads: Reads | None = None) -> dict[str, Any]:
    """A message in the canonical keys, ``read_by`` filled from the reads."""
    return message_object(message, tuple(readers(message, reads)) if reads else message.read_by, whole=True)


def item_json(item: Item) -> dict[str, Any]:
    """An unread message as ``check`` gives it."""
    expires = None if item.expires_at is None else instant.text(item.expires_at)
    return {**message_object(item.message, item.read_by, whole=True), "mode": item.mode, "expires_at": expires}


def check_json(session_id: str, items: Sequence[Item], more: int) -> dict[str, Any]:
    """What ``check --json`` gives."""
    return {"session": session_id, "messages": [item_json(i) for i in items], "count": len(items), "more": more}


def check_text(session_id: str, items: Sequence[Item], more: int, roster: Roster, style: Style) -> str:
    """What ``check`` shows: every message in its frame, and the one command to answer with."""
    lines = [style(f"{plural(len(items), 'unread message')} for {frame.name_of(session_id, roster)}", "dim"), ""]
    for item in items:
        lines += [*frame.item(item, roster, style), ""]
    if items:
        lines.append(f'Reply: agent-mailbox reply {frame.short(items[0].message.id)} --body "…"')
    if more:
        lines.append(f"{more} more: agent-mailbox check")
    return "\n".join(lines) + "\n"


def delivery_json(delivery: Delivery, warnings: Sequence[str]) -> dict[str, Any]:
    """Where a sent message goes."""
    return {"agents": list(delivery.agents), "waiting_for": list(delivery.waiting_for), "warnings": list(warnings)}


def sent_text(message: Message, delivery: Delivery, roster: Roster, style: Style) -> str:
    """What a sender is told."""
    lines = [f"sent {style(frame.word(message.id), 'id')} to {frame.target_of(message, roster)}"]
    if delivery.agents:
        lines.append(f"  will see it now: {_some([frame.name_of(a, roster) for a in delivery.agents])}")
    if delivery.waiting_for:
        waiting = [frame.word(w) if ":" in w else frame.name_of(w, roster) for w in delivery.waiting_for]
        lines.append(f"  waits for: {_some(waiting)}")
    if not delivery.agents and not delivery.waiting_for:
        lines.append("  nobody is there to see it now; whoever matches before it expires will")
    return "\n".join(lines) + "\n"


def _some(words: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


def messages_text(messages: Sequence[Message], reads: Reads, roster: Roster, style: Style) -> str:
    """A list of messages, one line each."""
    rows, styles = [], []
    for m in messages:
        seen = readers(m, reads)
        read = f"read by {_some([frame.name_of(s, roster) for s in seen], 3)}" if seen else "unread"
        title = clipped(_title(m), 50)
        way = f"{frame.name_of(m.sender, roster)} → {frame.target_of(m, roster)}"
        rows.append((frame.short(m.id), frame.when(m.timestamp), clipped(way, 44), title, read))
        styles.append(("id", "dim", "sender", "", "dim"))
    return "".join(line + "\n" for line in table(rows, styles=styles, style=style))


def dead_letters_text(letters: Sequence[tuple[Message, str]], roster: Roster, style: Style) -> str:
    """Dead letters, one line each."""
    rows = [
        (frame.short(m.id), frame.when(m.timestamp), reason, frame.target_of(m, roster), clipped(_title(m), 50))
        for m, reason in letters
    ]
    return "".join(f"{line}\n" for line in table(rows, styles=[("id", "dim", "warning")] * len(rows), style=style))


def _title(message: Message) -> str:
    return neutral(message.subject or message.content)


def message_text(message: Message, roster: Roster, style: Style) -> list[str]:
    """One message in full, as lines."""
    head = [
        f"{style(frame.word(message.id), 'id')}, {frame.when(message.timestamp)}",
        f"From: {style(frame.sender_of(message, roster), 'sender')}",
        f"To: {frame.target_of(message, roster)}",
    ]
    said = ", ".join(frame.notes(message))
    return [*head, *([f"Note: {said}"] if said else []), *frame.body(message, style)]


def receipt_json(read: Read) -> dict[str, Any]:
    """One line of the reads log about a message."""
    return {
        "session_id": read.session_id,
        "event": read.event,
        "timestamp": instant.text(read.timestamp),
        "as": read.via,
    }


def receipts_text(records: Sequence[Read], roster: Roster) -> list[str]:
    """Who did what to a message, when, as lines."""
    return table(
        (
            frame.when(r.timestamp),
            r.event,
            frame.name_of(r.session_id, roster),
            f"as {frame.word(r.via)}" if r.via else "",
        )
        for r in records
    )


# -- agents -----------------------------------------------------------------------------------------------------------


def agent_json(agent: Agent, seen: int | None) -> dict[str, Any]:
    """An agent as the roster commands give it."""
    return {
        "session_id": agent.session_id,
        "name": agent.name,
        "tags": list(agent.tags),
        "state": agent.state,
        "last_seen": None if seen is None else instant.text(seen),
        "lead": agent.lead,
        "continues": list(agent.continues),
        "registered": instant.text(agent.registered),
    }


def agents_text(agents: Sequence[tuple[Agent, int]], style: Style) -> str:
    """The roster as a table."""
    rows = [
        (
            a.state,
            frame.word(a.name) if a.name else "-",
            frame.word(a.session_id),
            frame.when(seen),
            " ".join(map(frame.word, a.tags)),
        )
        for a, seen in agents
    ]
    styles = [(a.state, "sender", "id", "dim") for a, _ in agents]
    return "".join(
        f"{line}\n" for line in table(rows, ("state", "name", "session", "last seen", "tags"), styles, style)
    )


def agent_text(agent: Agent, seen: int, style: Style) -> str:
    """One agent, a fact a line."""
    rows = [
        ("session", frame.word(agent.session_id)),
        ("name", frame.word(agent.name) if agent.name else "-"),
        ("state", style(agent.state, agent.state) + (f" ({neutral(agent.reason)})" if agent.reason else "")),
        ("last seen", frame.when(seen)),
        ("tags", " ".join(map(frame.word, agent.tags)) or "-"),
        ("lead", frame.word(agent.lead) if agent.lead else "-"),
    ]
    rows += [("continues", ", ".join(map(frame.word, agent.continues)))] if agent.continues else []
    return "".join(f"{line}\n" for line in table(rows))


# -- upkeep -----------------------------------------------------------------------------------------------------------


def problem_json(problem: Problem) -> dict[str, Any]:
    """What the doctor found."""
    return {"file": problem.file, "line": problem.line, "what": problem.what, "repair": problem.repair}


def problem_text(problem: Problem) -> str:
    """The same in one line, as compilers write it."""
    place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
    mend = " (doctor --repair mends it)" if problem.repair else ""
    return f"{neutral(place)}: {neutral(problem.what)}{mend}\n"
