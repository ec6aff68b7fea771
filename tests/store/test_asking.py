"""The state narrowed to what asks and answers: the same obligations as the whole state gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import obligations
from agent_mailbox.core.expiry import DEFAULT_TTL
from agent_mailbox.store.logs import Logs
from tests.helpers import MESSAGES, READS, ROSTER, stamp

if TYPE_CHECKING:
    from pathlib import Path

WHO = ("ann", "bob", "cat")
IDS = ("m1", 'm"2', "m\\3", "m4", "é5")


def lines(data: st.DataObject) -> tuple[list[bytes], list[bytes]]:
    """Messages and reads as several programs spell them."""

    def spelt(record: dict[str, Any]) -> bytes:
        separators = data.draw(st.sampled_from([(",", ":"), (", ", ": ")]))
        return json.dumps(record, separators=separators, ensure_ascii=data.draw(st.booleans())).encode()

    messages = []
    for message_id in IDS:
        record: dict[str, Any] = {
            "id": message_id,
            "sender": data.draw(st.sampled_from(WHO)),
            "recipient": data.draw(st.sampled_from([*WHO, "all"])),
            "timestamp": stamp(),
            "content": data.draw(st.sampled_from(['"ack"', '"thread":null', "x"])),
        }
        if data.draw(st.booleans()):
            record["thread"] = data.draw(st.sampled_from([None, *IDS]))
        if data.draw(st.booleans()):
            record["ack"] = data.draw(st.booleans())
        messages.append(spelt(record))
    reads = [
        spelt(
            {
                "message_id": data.draw(st.sampled_from(IDS)),
                "reader_session_id": data.draw(st.sampled_from(WHO)),
                "timestamp": stamp(),
                "event": data.draw(st.sampled_from(["read", "ack", "release", "seen"])),
            }
        )
        for _ in range(data.draw(st.integers(0, 8)))
    ]
    return messages, reads


@given(data=st.data())
def test_what_is_owed_and_asked_is_the_same(data: st.DataObject, tmp_path_factory: Any) -> None:
    """However the lines are spelt, and whatever their texts hold."""
    box: Path = tmp_path_factory.mktemp("box")
    messages, reads = lines(data)
    for name, content in ((MESSAGES, messages), (READS, reads), (ROSTER, [])):
        (box / name).write_bytes(b"".join(line + b"\n" for line in content))
    logs = Logs(str(box))
    whole, narrow = logs.state(DEFAULT_TTL), logs.asking(DEFAULT_TTL)
    for who in WHO:
        for question in (obligations.obligations, obligations.unanswered):
            assert question(who, narrow) == question(who, whole)
            for message in question(who, whole):
                assert obligations.staleness(message, narrow, 0) == obligations.staleness(message, whole, 0)
