"""Foreign lines of every kind: the next check shows each message for the session, and shows none twice."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_mailbox import Draft, Mailbox
from agent_mailbox.core.address import route
from agent_mailbox.core.codec import MAX_LINE
from agent_mailbox.store.log.logs import parse_messages
from tests.store.history import mailbox

if TYPE_CHECKING:
    from agent_mailbox.core.inbox import Item

ME, OTHER = "ann", "bob"
NOON = 1_773_662_400_000


def spelt(message_id: str, to: str, at: str, form: int) -> bytes:
    """One message as some program writes it: compact, with spaces, escaped, with its keys in another order."""
    fields = {"id": message_id, "sender": "zed", "recipient": to, "timestamp": at, "content": "é\n" + message_id}
    if form == 0:
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    if form == 1:
        return json.dumps(dict(reversed(fields.items()))).encode() + b"\r\n"
    if form == 2:
        return json.dumps(fields).encode("utf-16") + b"\n"
    older = {"from": "zed", "to": to, "body": "é", "id": message_id, "timestamp": at}
    return json.dumps(older, ensure_ascii=False).encode("latin-1" if form == 4 else "utf-8") + b"\n"


LINES = st.builds(
    spelt,
    st.sampled_from([f"id-{n}" for n in range(2)]),
    st.sampled_from([ME, OTHER, "all"]),
    st.sampled_from(["2026-03-16T12:00:00Z", "2999-01-01T00:00:00Z", "2026-03-16 13:00:00.5+01:00", "noon"]),
    st.integers(0, 4),
)
ODD = st.sampled_from(
    [b"\n", b"\xff\xfe\n", b"{}\n", b'{"id":"id-1",', b"\0" * 9, b"[" * 99 + b"\n", b"x" * (MAX_LINE + 2) + b"\n"]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), LINES | ODD),
        st.tuples(st.just("torn"), LINES),
        st.tuples(st.just("bytes"), LINES),
        st.sampled_from([("check", b""), ("send", b""), ("back", b""), ("again", b"")]),
    ),
    min_size=1,
    max_size=12,
)


class Scene:
    """A mailbox on a file system whose times are whole seconds, all of them one second."""

    def __init__(self, root: str) -> None:
        self.now = NOON
        self.box = mailbox(root, lambda: self.now)
        self.log = self.box.logs.messages.path
        self.shown: list[str] = []

    def foreign(self, data: bytes) -> None:
        """Append without the lock, within the tick of all other writes."""
        with open(self.log, "ab") as file:
            file.write(data)
        os.utime(self.log, (NOON // 1000, NOON // 1000))

    def check(self) -> None:
        """Show the mail; then each message for the session was shown, once."""

        def show(items: list[Item]) -> list[Item]:
            self.shown += [item.message.id for item in items]
            return items

        self.box.deliver(ME, show)
        os.utime(self.log, (NOON // 1000, NOON // 1000))
        reader = self.box.logs.read_roster().reader(ME)
        mail = parse_messages(self.box.logs.messages.lines())
        mine = {i for i, m in mail.items() if m.sender != ME and route(m.recipients, reader) is not None}
        assert len(set(self.shown)) == len(self.shown)
        assert set(self.shown) == mine

    def does(self, step: str, data: bytes) -> None:
        if step == "append":
            self.foreign(data)
        elif step == "torn":
            self.foreign(data[: len(data) // 2])
        elif step == "bytes":
            for at in range(len(data)):
                self.foreign(data[at : at + 1])
                if at % 40 == 0:
                    self.check()
        elif step == "again":
            Mailbox(self.box.directory).peek(ME)
        elif step == "send":
            self.box.send(Draft(sender=OTHER, to=(ME,), content="ours"))
        elif step == "back":
            self.now -= 60_000
        self.check()


TWICE = [spelt("id-0", to, "2026-03-16T12:00:00Z", 0) for to in (OTHER, ME)]
"""Another's message, and one for us with the same id, which does not count."""


@example([("append", line) for line in TWICE])
@example([("bytes", TWICE[1]), ("torn", TWICE[0]), ("send", b""), ("append", TWICE[0]), ("back", b"")])
@given(STEPS)
@settings(max_examples=12)
def test_the_next_check_shows_what_another_program_wrote_and_nothing_twice(steps: list[tuple[str, bytes]]) -> None:
    """Torn, oversize, doubled, in other encodings, byte by byte; while the clock goes back."""
    with tempfile.TemporaryDirectory() as root:
        scene = Scene(root)
        scene.check()
        for step, data in steps:
            scene.does(step, data)
