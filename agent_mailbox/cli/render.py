"""Render values as text for people and agents, and as JSON for programs.

Belongs here: pure functions for the layout and the JSON shapes. ``core.frame`` frames the mail itself.
"""

from __future__ import annotations

from ..core import frame, instant
from ..core.address import is_remote
from ..core.frame import shown_reason, shown_state
from ..core.message_reads import ACKED, OFFERED, READ, SEEN, TITLE_SEEN, by_title
from ..core.reach import list_reach
from ..core.records import USER
from ..core.text import clipped, neutral

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..core.awaited import Owing
    from ..core.cost import Cost
    from ..core.findings import Problem
    from ..core.message_reads import Reads
    from ..core.reach import Reach
    from ..core.records import Message, Read
    from ..core.roster import Agent, Roster
    from .mail_output import Style


def table_lines(
    rows: Iterable[Sequence[str]], head: Sequence[str] = (), styles: Sequence[str] = (), style: Style = frame.plain
) -> list[str]:
    """Return rows as aligned columns, two spaces apart, the last one ragged. ``styles``: one per column; a column of
    states (``state``) has each state's own."""
    rows = [tuple(row) for row in rows]
    if not rows:
        return []
    everything = [tuple(head), *rows] if head else rows
    widths = [max(map(len, column)) for column in zip(*everything, strict=True)]
    widths[-1] = 0
    if style is frame.plain:  # a roster may have ten thousand rows
        layout = "  ".join(f"%-{width}s" for width in widths)
        return [(layout % row).rstrip() for row in everything]
    paints = (*styles, *[""] * len(widths))

    def align_cells(cells: Sequence[str], paints: Sequence[str]) -> str:
        cut = zip(cells, widths, paints, strict=False)
        return "  ".join(style(c.ljust(width), c if paint == "state" else paint) for c, width, paint in cut).rstrip()

    lines = [align_cells(head, ["dim"] * len(head))] if head else []
    return lines + [align_cells(row, paints) for row in rows]


def table_text(rows: Iterable[Sequence[str]], styles: Sequence[str] = (), style: Style = frame.plain) -> str:
    """Return the same as text."""
    return "".join(f"{line}\n" for line in table_lines(rows, styles=styles, style=style))


# -- mail -------------------------------------------------------------------------------------------------------------


TITLE, LEAST_TITLE = 50, 20
"""Characters of a title in a list: if the line's width is unknown, and the minimum."""


def messages_text(
    messages: Sequence[Message],
    reads: Reads,
    roster: Roster,
    style: Style,
    columns: int | None = None,
    unsent: Mapping[str, str] | None = None,
) -> str:
    """Return messages, one line each; titles take the rest of ``columns`` characters. ``unsent``: see
    ``OpenMailbox.unsent``."""
    rows: list[tuple[str, ...]] = []
    for m in messages:
        stages = dict.fromkeys(m.read_by, READ) | reads.stages(m.id)
        read = _furthest_text(stages, roster) or (unsent or {}).get(m.id, "unread")
        rows.append((frame.short(m.id), frame.when(m.timestamp), clipped(_way_of(m, roster), 44), _title_of(m), read))
    room = TITLE
    if columns is not None and rows:
        room = max(columns - sum(max(len(row[i]) + 2 for row in rows) for i in (0, 1, 2, 4)), LEAST_TITLE)
    clipped_rows = [(*row[:3], clipped(row[3], room), row[4]) for row in rows]
    return table_text(clipped_rows, ("id", "dim", "sender", "", "dim"), style)


def message_line(message: Message, roster: Roster, style: Style, columns: int | None = None) -> str:
    """Return a message that just came as one line; its title takes the rest of ``columns``."""
    cells = (frame.short(message.id), frame.when(message.timestamp), clipped(_way_of(message, roster), 44))
    title = _title_of(message)
    if columns is not None:
        title = clipped(title, max(columns - sum(len(cell) + 2 for cell in cells), LEAST_TITLE))
    painted = zip((*cells, title), ("id", "dim", "sender", ""), strict=True)
    return "  ".join(style(cell, colour) for cell, colour in painted) + "\n"


def _furthest_text(stages: Mapping[str, str], roster: Roster) -> str:
    """Return how far a message came, and with whom; empty if nobody was shown it.

    That is what is true of all who were shown its text, else of the others."""
    for group in ((READ, SEEN, ACKED), (TITLE_SEEN,), (OFFERED,)):
        least = min((stage for stage in stages.values() if stage in group), key=group.index, default=None)
        if least is not None:
            names = [frame.name_of(who, roster) for who, stage in stages.items() if stage in group]
            return f"{_words_between(least)} {frame.some(names, 3)}"
    return ""


def _words_between(stage: str) -> str:
    """Return the words between a stage and its reader."""
    return {OFFERED: "offered to", TITLE_SEEN: "title seen by"}.get(stage, f"{stage} by")


def dead_letters_text(letters: Sequence[tuple[Message, str]], roster: Roster, style: Style) -> str:
    """Return dead letters, one line each."""
    rows = [
        (frame.short(m.id), frame.when(m.timestamp), reason, _way_of(m, roster), clipped(_title_of(m), TITLE))
        for m, reason in letters
    ]
    return table_text(rows, ("id", "dim", "warning"), style)


def waiting_text(messages: Sequence[Message], now: int, roster: Roster, style: Style) -> str:
    """Return the mail that waits for nobody, one line each."""
    rows = [
        (frame.short(m.id), spell_age(now - m.timestamp), frame.target_of(m, roster), clipped(_title_of(m), TITLE))
        for m in messages
    ]
    return table_text(rows, ("id", "dim", "warning"), style)


def leaving_text(kept: Sequence[Message], cut_off: Collection[str], now: int, roster: Roster, style: Style) -> str:
    """Return what becomes of mail and sessions as this machine leaves its space."""
    names = frame.some([frame.name_of(who, roster) for who in cut_off])
    text = f"sessions of other machines get no more mail from here: {names}\n" if cut_off else ""
    if kept:
        text += "not sent, and mail of this mailbox alone until it joins again:\n"
        text += waiting_text(kept, now, roster, style)
    return text


def spell_age(millis: int) -> str:
    """Return how long ago something was, in its largest unit: ``3 d``, ``5 h``, ``2 min``, ``just now``."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if millis >= size:
            return f"{millis // size} {unit}"
    return "just now"


MOST_MISSING = 10
"""Messages without every ack that a status lists."""


def missing_text(
    rows: Sequence[tuple[Message, Sequence[Owing]]], now: int, roster: Roster, style: Style
) -> Iterator[str]:
    """Yield a line for each of the newest messages that lack an ack: its age, and who owes it."""
    cells = [
        (frame.short(m.id), spell_age(now - m.timestamp), clipped(_title_of(m), 40), owing_text(owed, roster))
        for m, owed in rows[-MOST_MISSING:]
    ]
    yield from table_lines(cells, styles=("id", "dim", "", "warning"), style=style)
    if len(rows) > MOST_MISSING:
        yield f"and {len(rows) - MOST_MISSING} older ones (--json lists all)"


def owing_text(owed: Sequence[Owing], roster: Roster) -> str:
    """Return who owes an ack, and which of them have read the mail; a swarm tells neither."""

    def describe_known(one: Owing) -> str:
        return "no swarm tells of reading or acks" if is_remote(one.who) else one.stage or "unread"

    return frame.some([f"{frame.party(one.who, roster)} ({describe_known(one)})" for one in owed])


def owing_json(owed: Sequence[Owing]) -> list[dict[str, Any]]:
    """Return who owes an ack, for JSON: an agent, or the address of mail that nobody took. ``read`` is None if nobody
    here can know."""
    return [{"who": one.who, "read": None if is_remote(one.who) else bool(one.stage)} for one in owed]


def _way_of(message: Message, roster: Roster) -> str:
    return f"{frame.named(message, roster)} → {frame.target_of(message, roster)}"


def _title_of(message: Message) -> str:
    if message.type == "control":
        from ..core.showing import message_frame  # rare in mail

        return message_frame.control(message, "")[0].removeprefix(frame.BAR)
    return neutral(message.subject or message.content)


def message_text(message: Message, roster: Roster, style: Style, box: str) -> list[str]:
    """Return the lines of one whole message; ``box``: the mailbox's path."""
    from ..core.showing import message_frame  # lists have no bodies

    head = [
        f"{style(frame.short(message.id), 'id')}, {frame.when(message.timestamp)}",
        f"From: {style(frame.sender_of(message, roster), 'sender')}",
        f"To: {frame.target_of(message, roster)}",
    ]
    said = ", ".join(frame.notes(message))
    return [*head, *([f"Note: {said}"] if said else []), *message_frame.body(message, style, box)]


def receipts_json(records: Sequence[Read]) -> list[dict[str, Any]]:
    """Return a message's receipts for JSON; ``by_title``: that is all its reader had."""
    titles = by_title(records)
    return [
        {
            "session_id": read.session_id,
            "event": read.event,
            "timestamp": instant.text(read.timestamp),
            "as": read.via,
            "by_title": read in titles,
        }
        for read in records
    ]


def receipts_text(
    message: Message, reach: Reach, records: Sequence[Read], roster: Roster, unsent: str = ""
) -> list[str]:
    """Return the lines of a message's way: sent or ``unsent``, the agents it reaches or waits for, its receipts."""
    titles = by_title(records)
    rows = [(frame.when(message.timestamp), unsent or "sent", frame.named(message, roster), "")]
    rows += [("", *row, "") for row in list_reach(reach, lambda a: frame.party(a, roster))]
    rows += [
        (
            frame.when(r.timestamp),
            (OFFERED if r.event == "read" and r.nonce else r.event) + (" by title" if r in titles else ""),
            frame.name_of(r.session_id, roster),
            f"as {frame.party(r.via, roster)}" if r.via and r.via != r.session_id else "",
        )
        for r in records
    ]
    return table_lines(rows)


def stages_text(stages: Mapping[str, str], roster: Roster, unsent: str | None) -> list[str]:
    """Return a line with each reader's latest receipt, or that it is ``unsent``, if it is or there is any."""
    said = [unsent] if unsent else []
    said += [f"{_words_between(stage)} {frame.name_of(who, roster)}" for who, stage in stages.items()]
    return [f"Receipts: {frame.some(said)}"] if said else []


def costs_text(costs: Sequence[Cost], roster: Roster, wakes: int, spent: int) -> list[str]:
    """Return the cost of mail as lines; the wakes took ``spent`` tokens."""
    total = sum(cost.tokens for cost in costs)
    rows = [(str(c.tokens), str(c.messages), c.mode, frame.name_of(c.sender, roster)) for c in costs]
    return [
        f"tokens that hooks spent on mail: {total}; on wakes ({wakes}): {spent}",
        *table_lines(rows, ("tokens", "messages", "mode", "from")),
    ]


# -- agents -----------------------------------------------------------------------------------------------------------


def agent_json(agent: Agent, seen: int | None, gone: Collection[str]) -> dict[str, Any]:
    """Return an agent for JSON; ``seen`` in ms. ``gone``: the agents whose client's process ended."""
    return {
        "session_id": agent.session_id,
        "name": agent.name,
        "tags": list(agent.tags),
        "state": shown_state(agent, gone),
        "last_seen": None if seen is None else instant.text(seen),
        "lead": agent.lead,
        "continues": list(agent.continues),
        **({"muted": list(agent.muted)} if agent.muted else {}),
        "registered": None if agent.session_id == USER else instant.text(agent.registered),
    }


def agents_text(
    agents: Sequence[tuple[Agent, int]],
    gone: Collection[str],
    style: Style,
    facts: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the roster as a table; some agents are ``gone``. ``facts``: each one's lead, when it sees mail, a task."""
    minutes = {seen // 60_000: seen for _, seen in agents}
    told = {minute: frame.when(seen) for minute, seen in minutes.items()}
    shorts: dict[str, int] = {}
    for agent, _ in agents:
        short = frame.short_session(agent.session_id)
        shorts[short] = shorts.get(short, 0) + 1
    rows = []
    for agent, seen in agents:
        tags = " ".join(frame.words([*agent.tags]))
        short = frame.short_session(agent.session_id)
        session = short if shorts[short] == 1 else frame.whole_id(agent.session_id)  # Codex's of a minute begin alike
        more = () if facts is None else facts[agent.session_id]
        state = shown_state(agent, gone)
        rows.append((state, frame.bare_name(agent), session, told[seen // 60_000], *more, tags))
    columns = () if facts is None else ("lead", "sees mail", "task")
    head = ("state", "name", "session", "last seen", *columns, "tags")
    return "\n".join([*table_lines(rows, head, ("state", "sender", "id", "dim"), style), ""])


def agent_text(agent: Agent, seen: int | None, gone: Collection[str], style: Style, roster: Roster) -> str:
    """Return one agent, one fact per line; ``seen`` in ms, None for the person."""
    state, why = shown_state(agent, gone), neutral(shown_reason(agent, gone))
    short = frame.short_session(agent.session_id)
    is_only = sum(frame.short_session(one.session_id) == short for one in roster.mentioning(short.casefold())) < 2
    rows = [
        ("session", short if is_only else frame.whole_id(agent.session_id)),
        ("name", frame.bare_name(agent)),
        ("state", style(state, state) + (f" ({why})" if why else "")),
        ("last seen", "- (the person, not an agent with a heartbeat)" if seen is None else frame.when(seen)),
        ("tags", " ".join(map(frame.word, agent.tags)) or "-"),
        ("lead", frame.name_of(agent.lead, roster) if agent.lead else "-"),
    ]
    for what, others in (("muted", agent.muted), ("continues", agent.continues)):
        rows += [(what, ", ".join(frame.name_of(one, roster) for one in others))] if others else []
    return table_text(rows)


# -- upkeep -----------------------------------------------------------------------------------------------------------


def problem_json(problem: Problem, hint: Callable[[str], str]) -> dict[str, Any]:
    """Return a finding of the doctor for JSON; ``hint`` completes the commands in it."""
    return {"file": problem.file, "line": problem.line, "what": hint(problem.what), "repair": problem.repair}


def problem_text(problem: Problem, hint: Callable[[str], str]) -> str:
    """Return a finding as one line: ``file:line: problem``; ``hint`` as above."""
    place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
    mend = hint(" (fix: `agent-mailbox doctor --repair`)").replace("`", "") if problem.repair else ""
    kind = "note: " if problem.note else ""
    return f"{neutral(place)}: {kind}{neutral(hint(problem.what))}{mend}\n"
