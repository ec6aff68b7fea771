"""Unread mail as text for a model: framed, labelled, within a number of tokens.

Belongs here: how much of the mail is shown at once, and in what words. The most urgent comes in full, the rest by
title; mail without room even for its title stays unread. A cut text names the command that shows the rest.
"""

from __future__ import annotations

from ..core import frame, instant, proofs
from ..core.address import MODES, is_remote
from ..core.records import USER, Record
from ..core.text import clipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..core.inbox import Item
    from ..core.records import Message
    from ..core.roster import Roster

PROGRAM = "agent-mailbox"
"""Our program's plain name, by which memory files and skills call it."""
TOKEN = 4
"""Characters that count as one token, as estimates of English usually have it."""
BODY = 1500
"""Characters of one body shown: four hundred tokens tell what a message is about; ``show`` gives the rest."""
FRESH = instant.HOUR
"""Mail younger than this (ms) just came, and has no date."""
NOTED = 3
"""Messages that the person is told of."""
_YOU_ARE = "you are "
_LOOK_BACK = 6
"""Lines in which to look for the end of a sentence, before a text is cut anywhere."""


def count_units(text: str) -> int:
    """Return the length as the client counts it: UTF-16 code units, as in JavaScript strings."""
    return len(text.encode("utf-16", "surrogatepass")) // 2 - 1  # minus the byte order mark


class Told(Record):
    """A delivery's text; the items it shows, in order; by message id the cost of each in tokens. That includes its
    share of the lines around, ours and the client's. ``titles`` are the ids of those that it gives by title."""

    text: str
    items: Sequence[Item]
    tokens: Mapping[str, int]
    titles: Collection[str] = ()


class Sheet(Record):
    """The surroundings of a delivery's text: the roster, the time, how an agent starts our program. ``nonce``
    identifies the delivery in the transcript (empty: it will not be looked for). ``around``: UTF-16 units that the
    client puts around the text. ``box``: the mailbox's path. ``parent`` looks up a message."""

    roster: Roster
    now: int
    program: str
    nonce: str = ""
    around: int = 0
    box: str = ""
    parent: Callable[[str], Message | None] = lambda _: None


def client_frame(event: str, tool: str = "") -> int:
    """Return the UTF-16 units that Claude Code puts around a hook's context (observed with 2.1.329)."""
    name = f"{event}:{tool}" if tool else event
    return count_units(f"{name} hook additional context: ") + (_REMINDER if event == "Stop" else 0)


_REMINDER = len("<system-reminder>\n\n</system-reminder>")
"""Only a turn that goes on at its end has these around the context."""


def render_mail(items: Sequence[Item], page: Sheet, room: int, others: int = 0) -> Told:
    """Return as many ``items`` as text as fit into ``room`` UTF-16 units: at least one. ``others`` more are unread.

    In full: control and high priority first, then direct, role, tag, broadcast. Within a rank each sender's first
    message comes before anyone's second, so that no sender crowds the others out. Mail from other machines comes behind
    that of this one, and its priority counts for nothing: a stranger chose it.
    """
    left = room - _HEAD - 2 * count_units(page.program)
    most = left // 3  # for titles, which keep only what they need of it
    full: dict[str, str] = {}
    is_threaded = False
    for item in _rank_items(items):
        reserve = count_units("\n".join(_render_digest(_others(items, full, item), page, most)[1])) + 1
        block = _render_message(item, page, room if full else left - reserve)
        if full and count_units(block) + 1 > left - reserve:
            break
        full[item.message.id] = block
        is_threaded = is_threaded or item.message.thread is not None
        left -= count_units(block) + 1
    titles, digest = _render_digest(_others(items, full), page, left)
    shown = [item for item in items if item.message.id in full or item.message.id in titles]
    blocks = [full[item.message.id] for item in items if item.message.id in full]
    if is_threaded and len(full) > 1:
        blocks = _join_threads([item for item in items if item.message.id in full], full, page)
    parts = [_head_of(items, page), *blocks, *digest]
    if more := len(items) - len(shown) + others:
        parts.append(f"{more} more unread: {page.program} check")
    asking = [item.message.id for item in shown if item.message.ack and item.message.type != "control"]
    if asking and page.program != PROGRAM:  # else the client's memory file or skill said it once
        parts.append(f'{page.program} reply {frame.short_typed(asking[0])} --body "…"')
    text = "\n".join(parts)
    own = {i: count_units(part) for i, part in (full | titles).items()}
    around = (page.around + count_units(text) - sum(own.values())) // len(own)
    return Told(text, shown, {i: -(-(size + around) // TOKEN) for i, size in own.items()}, titles.keys())


def _join_threads(items: Sequence[Item], full: Mapping[str, str], page: Sheet) -> list[str]:
    """Return the messages with those of one thread together, under one line."""
    from ..core.showing import message_frame, thread_blocks  # answers

    lines: list[str] = []
    for block in thread_blocks.arrange(items, page.parent):
        lines += block.lines()
        for row in block.rows:
            m = row[0].message
            head = message_frame.brief_row_head(row, page.roster, block.told_thread, _spell_time(m, page.now))
            lines.append("\n".join([head, *full[m.id].split("\n")[1:]]))
    return lines


def _others(items: Sequence[Item], full: Collection[str], item: Item | None = None) -> list[Item]:
    """Return the items that are not shown in full, nor the one given, as titles list them."""
    rest = (one for one in items if one is not item and one.message.id not in full)
    return sorted(rest, key=lambda one: is_remote(one.message.sender))


_HEAD = 200
"""Room for the lines around the messages, without the program's name."""


def _head_of(items: Sequence[Item], page: Sheet) -> str:
    # Factual: models are taught to distrust orders in a system's voice, and to take a hook's words for the user's.
    persons = sum(proofs.speaker(m.proof, USER) == USER == m.sender for m in (item.message for item in items))
    return possible_heads(page.nonce)[0 if not persons else 1 if persons == len(items) else 2]


def possible_heads(nonce: str) -> tuple[str, str, str]:
    """Return the first lines that a delivery can have: of agents' mail, the user's, both."""
    mail = f"mail {nonce}".rstrip()
    return f"Agent {mail}", f"User {mail}", f"Agent and user {mail}"


_PLAIN_HEADS = possible_heads("")


def is_delivery(text: str) -> bool:
    """Return whether a text begins as a delivery does, whatever its nonce."""
    first = text.partition("\n")[0]
    return any(first == head or first.rpartition(" ")[0] == head for head in _PLAIN_HEADS)


def introduction(me: str, roster: Roster, program: str) -> str:
    """Return what a new session is told: who it is, who leads it, and how it writes to others."""
    agent = roster.get(me)
    lead = "" if agent is None or agent.lead in (None, USER) else f", led by {frame.name_of(agent.lead, roster)}"
    ways = f'`{program} roster list` shows others, `{program} send --to NAME --body "…"` writes'
    return f"{_YOU_ARE}{frame.identity(me, roster)}{lead}; {ways}"


def alarm(why: str) -> str:
    """Return what a session is told of a log that was cut or replaced."""
    return f"{why}; nothing here counts as proven until your person ran `agent-mailbox doctor --trust`"


def person_notice(items: Sequence[Item], parts: Sequence[str], roster: Roster) -> str:
    """Return one line for the person: who the session is, if it was just told that (in ``parts``), and whose mail came.

    Other people's words are in it, clipped and without control characters."""
    said = [part.partition(";")[0].replace(_YOU_ARE, "this session is ", 1) for part in parts[:1] if _YOU_ARE in part]
    mail = [f"{frame.sender_of(item.message, roster, brief=True)}: {_title_of(item.message)}" for item in items[:NOTED]]
    more = [f"{len(items) - NOTED} more"] if len(items) > NOTED else []
    return "; ".join([*said, *([f"mail from {', '.join([*mail, *more])}"] if mail else [])])


def _rank_items(items: Sequence[Item]) -> list[Item]:
    turns: dict[str, int] = {}
    ranked = []
    for place, item in enumerate(items):
        m = item.message
        remote = is_remote(m.sender)
        urgent = m.priority == "high" and not remote
        rank = 0 if m.type == "control" else 1 if urgent else 2 + MODES.index(item.mode)
        turns[m.sender] = turn = turns.get(m.sender, 0) + 1
        ranked.append((rank, remote, turn, place))
    return [items[place] for *_, place in sorted(ranked)]


def _render_message(item: Item, page: Sheet, room: int) -> str:
    """Return one message; cut its body at a sentence if it is longer than ``BODY`` or the room."""
    from ..core.showing import message_frame  # most hooks show none

    lines = message_frame.brief(item, page.roster, _spell_time(item.message, page.now), page.program, page.box)
    head = 2 if item.message.subject else 1
    limit = max(min(BODY, room - count_units("\n".join(lines[:head])) - count_units(page.program) - 40), 80)
    kept: list[str] = []
    for line in lines[head:]:
        if count_units(line) > limit:
            break
        kept.append(line)
        limit -= count_units(line) + 1
    rest = lines[head + len(kept) :]
    if rest:
        kept = _at_a_sentence([*kept, rest[0][: max(limit, 0) // 2]])
        kept.append(f"(cut; all: {page.program} show {frame.short_typed(item.message.id)})")
    return "\n".join([*lines[:head], *kept])


def _spell_time(message: Message, now: int) -> str:
    return "" if abs(now - message.timestamp) < FRESH else frame.when(message.timestamp)


def _at_a_sentence(lines: list[str]) -> list[str]:
    """Return the lines up to the last end of a sentence; if none is near, all of them with an ellipsis."""
    for back in range(1, min(_LOOK_BACK, len(lines)) + 1):
        line = lines[-back]
        end = max(line.rfind(f"{mark} ") for mark in ".!?:")
        if line.endswith((".", "!", "?", ":")) and back > 1:
            end = len(line) - 1
        if end > 0:
            return [*lines[:-back], line[: end + 1]]
    return [*lines[:-1], f"{lines[-1].rstrip()}…"] if lines[-1].strip(frame.BAR) else lines[:-1]


def _render_digest(items: Sequence[Item], page: Sheet, room: int) -> tuple[dict[str, str], list[str]]:
    """Return the items' titles by id, and their lines, one for each sender and thread, as far as there is room."""
    if not items:
        return {}, []
    head = f"By title; {page.program} show ID gives the text:"
    room -= count_units(head) + 1
    groups: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for item in items:
        m = item.message
        thread = f", thread {frame.short(m.thread)}" if m.thread else ""
        group = f"{frame.sender_of(m, page.roster)}{thread}"
        title = f'{frame.short(m.id)} "{_title_of(m)}"' + (f" {frame.BRIEF_NOTES[1]}" if m.ack else "")
        cost = count_units(title) + 2 + (0 if group in groups else count_units(group) + 2)
        if cost > room:
            break
        room -= cost
        titles[m.id] = title
        groups.setdefault(group, []).append(title)
    return titles, [head, *(f"{group}: {', '.join(entries)}" for group, entries in groups.items())] if titles else []


def _title_of(message: Message) -> str:
    if message.type == "control":
        from ..core.showing import message_frame  # rare in mail

        return clipped(message_frame.control(message, "")[-1].removeprefix(frame.BAR), frame.TITLE).replace('"', "'")
    return frame.title(message)
