"""What machines did with their mail means the same on each, in whatever order their records came together.

A machine's file has the decisions in the order of the space, its own records where they fell, and those of others where
they came. Sessions follow the protocol: a claim precedes a role's mail, and what a session did before a decision of its
machine is in the order before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis import given, settings

from agent_mailbox.core import message_reads
from agent_mailbox.core.records import Message, Read
from agent_mailbox.core.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGES = ("m1", "m2")
SESSIONS = ("a", "b", "c")
"""Each on a machine of its own."""
FOR = ("role:dev", "a")
MAIL = {i: Message(id=i, sender="user", recipients=FOR, timestamp=0, content="x") for i in MESSAGES}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Read], dict[str, list[tuple[int, Read]]]]:
    """The decisions, and each session's own records with the number of decisions that its file had before each.

    A record of its own is shipped before the session's next decision, and perhaps not until long after."""
    decided: list[Read] = []
    owned: dict[str, list[tuple[int, Read]]] = {who: [] for who in SESSIONS}
    holds: dict[str, str | None] = dict.fromkeys(MESSAGES)
    for time in range(draw(st.integers(0, 12))):
        message, who = draw(st.sampled_from(MESSAGES)), draw(st.sampled_from(SESSIONS))
        event = draw(st.sampled_from(("claim", "read", "seen", "ack", "release", "direct")))
        nonce = draw(st.sampled_from((None, "n1", "n2")))
        if event == "claim" and holds[message] is None:
            decided.append(Read(message, who, time, "claim", "role:dev"))
            holds[message] = who
        elif event == "release" and holds[message] == who:
            decided.append(Read(message, who, time, "release"))
            holds[message] = None
        elif event == "direct":
            owned[who].append((len(decided), Read(f"d-{message}", who, time, "read", who, nonce)))
        elif event in ("read", "seen", "ack") and holds[message] == who:
            owned[who].append((len(decided), Read(message, who, time, event, "role:dev", nonce)))
    return decided, owned


@st.composite
def files(draw: st.DrawFn, history: tuple[list[Read], dict[str, list[tuple[int, Read]]]]) -> list[Read]:
    """The records as one machine's file may have them: others' own records come as late as the protocol allows."""
    decided, owned = history
    latest = {who: _latest(decided, who, records) for who, records in owned.items()}
    places: list[list[Read]] = [[] for _ in range(len(decided) + 1)]
    for who in draw(st.permutations(SESSIONS)):
        at = 0
        for (earliest, record), end in zip(owned[who], latest[who], strict=True):
            at = draw(st.integers(max(at, earliest), max(at, earliest, end)))
            places[at].append(record)
    return list(_merged(decided, places))


def _latest(decided: list[Read], who: str, records: list[tuple[int, Read]]) -> list[int]:
    """The most decisions that may come before each record: it is in the order before its session's next one."""
    own = [n for n, one in enumerate(decided) if one.session_id == who]
    return [min((n for n in own if n >= earliest), default=len(decided)) for earliest, _ in records]


def _merged(decided: list[Read], places: list[list[Read]]) -> Iterator[Read]:
    for n, there in enumerate(places):
        yield from there
        yield from decided[n : n + 1]


@settings(max_examples=5 * settings().max_examples)
@given(st.data())
def test_files_of_two_machines_mean_the_same(data: st.DataObject) -> None:
    """Readers, holders, stages, acks and claims do not depend on how the machines' records were interleaved."""
    history = data.draw(histories())
    one, other = (message_reads.Reads(data.draw(files(history))) for _ in range(2))
    for message in (*MESSAGES, *(f"d-{i}" for i in MESSAGES)):
        mail = MAIL.get(message, MAIL["m1"].replace(id=message))
        assert sorted(message_reads.readers(mail, one)) == sorted(message_reads.readers(mail, other))
        assert message_reads.holder(mail, one, Roster()) == message_reads.holder(mail, other, Roster())
        assert one.stages(message) == other.stages(message)
        assert one.claim(message) == other.claim(message)
        for who in SESSIONS:
            assert one.acked(mail, [who]) == other.acked(mail, [who])
            assert one.released(message, [who]) == other.released(message, [who])
