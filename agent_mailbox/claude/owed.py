"""What a session is reminded of where its context was lost or left for a while: who it is, what it owes, what it asked.

Belongs here: the words, and which lines of the logs can matter to them (a session is not to wait for every line of a
long history to be decoded). What is owed is ``core.inbox``. A session that owes nothing and waits for nothing is told
nothing.
"""

from __future__ import annotations

from ..core import frame, inbox
from ..core.claims import Reads
from ..core.inbox import State
from ..core.text import clipped, neutral
from ..store.logs import parse_messages, parse_reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from ..core.records import Message
    from ..desk import Desk

MOST = 5
"""Messages named in each list: enough to go on, and ``status`` has the rest."""
TITLE = 60


def lines(desk: Desk, session_id: str, program: str) -> list[str]:
    """The reminder, empty if there is nothing to be reminded of."""
    state, now = _state(desk, session_id), desk.now()
    owed, asked = inbox.obligations(session_id, state), inbox.unanswered(session_id, state)
    told = []
    if owed:
        told += [f"You owe an answer ({program} reply ID, or ack ID):", *_list(owed, state, now, program, "from")]
    if asked:
        told += ["You asked, and nobody answered yet:", *_list(asked, state, now, program, "to")]
    return [_identity(session_id, state), *told] if told else []


def _state(desk: Desk, session_id: str) -> State:
    """As much of the live logs as decides what the session owes and asked: what asks for an ack and its replies, the
    session's own reads, and everybody's acks and releases."""
    logs = desk.logs
    roster = logs.read_roster()
    asking = parse_messages(_with(logs.messages.lines(), (b'"ack"',)))
    asking = {i: m for i, m in asking.items() if m.ack}
    if not asking:
        return State({}, Reads(), roster, desk.config.ttls)
    replies = parse_messages(line for line in _with(logs.messages.lines(), (b'"thread"',)) if _answers(line, asking))
    telling = (b'"ack"', b'"release"', *(i.encode() for i in roster.lineage(session_id)))
    reads = Reads(parse_reads(_with(logs.reads.lines(), telling)))
    return State(asking | replies, reads, roster, desk.config.ttls)


def _with(lines: Iterator[tuple[int, bytes]], words: Sequence[bytes]) -> Iterator[bytes]:
    """The lines that hold one of the words; those that may spell it otherwise, too."""
    return (line for _, line in lines if b"\\u" in line or any(word in line for word in words))


def _answers(line: bytes, asking: Container[str]) -> bool:
    """May the line be a reply to one of these? No, if it is as our writers spell it and names none of them."""
    thread = line.partition(b'"thread":')[2]
    return not thread.startswith(b"null") and (
        thread[:1] != b'"' or b"\\" in thread or thread[1:].partition(b'"')[0].decode("utf-8", "replace") in asking
    )


def _identity(session_id: str, state: State) -> str:
    agent = state.roster.get(session_id)
    roles = f" ({', '.join(frame.roles_of(agent))})" if agent and agent.roles else ""
    return f"agent-mailbox: this session is {frame.name_of(session_id, state.roster)}{roles}"


def _list(messages: Sequence[Message], state: State, now: int, program: str, way: str) -> list[str]:
    shown = []
    for m in messages[-MOST:]:
        who = frame.sender_of(m, state.roster) if way == "from" else frame.target_of(m, state.roster)
        stale = inbox.staleness(m, state, now)
        title = clipped(neutral(m.subject or m.content[: 4 * TITLE]), TITLE).replace('"', "'")
        shown.append(f'{frame.short(m.id)} {way} {who}: "{title}"' + (f" ({stale})" if stale else ""))
    more = len(messages) - len(shown)
    return [*shown, *([f"{more} more: {program} status"] if more else [])]
