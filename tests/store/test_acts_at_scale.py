"""Acts on one message in a large mailbox: the index tells where its records are, and no other line is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.core import codec
from agent_mailbox.core.line_forms import may_be_about
from agent_mailbox.core.records import Read
from agent_mailbox.mailbox import mailbox as facade
from agent_mailbox.mailbox.queries import MailQueries
from tests.steps import steps
from tests.store.test_index import mailbox, rotate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mailbox counts as large."""
    monkeypatch.setattr(facade, "NEWS", 0)


def filled(root: Path, count: int) -> tuple[Mailbox, str]:
    """A mailbox with a message that bob read and acked, among others; with an index."""
    box = mailbox(str(root))
    for other in ("bob", "cat"):
        box.deliver(other, lambda items: items)  # makes it known
        drafts = [Draft(sender="amy", to=(other,), content="x", ack=other == "bob")] * (1 if other == "bob" else count)
        box.send_all(drafts)
        box.deliver(other, lambda items: items)
    wanted = next(m.id for m in box.state().messages.values() if m.ack)
    box.ack(wanted, "bob")
    MailQueries(box).keep_index()
    return box, wanted


def record(message_id: str, event: str = "read") -> bytes:
    return codec.spell_read(Read(message_id=message_id, session_id="zed", timestamp=0, event=event))


def check(box: Mailbox, found: facade.FoundMessage, count: int) -> None:
    """What would be written again is what a look through the whole log finds."""
    about = {found.message.id.encode()}
    with box.logs.reads.held() as log:
        whole = [at for at in log.lines() if may_be_about(at[1], about)]
        assert len(whole) == count
        assert facade._about(log, found) == whole


@pytest.mark.parametrize("torn", [b"", b'{"message_id":"'], ids=["whole", "torn"])
def test_the_records_of_a_message_are_found_where_they_are(tmp_path: Path, torn: bytes) -> None:
    """Those that stood when it was looked up, and those since; also in a log that was replaced meanwhile."""
    box, wanted = filled(tmp_path, 5)
    with open(box.logs.reads.path, "ab") as file:
        file.write(torn)
    found = box.find(wanted)
    assert len(found.where[2]) == 2
    check(box, found, 2)
    with open(box.logs.reads.path, "ab") as file:
        file.write((wanted.encode() + b'"}\n' if torn else b"") + record("another") + record(wanted))
    check(box, found, 3 + bool(torn))
    box.send(Draft(sender="amy", to=("bob",), content="pending", thread=wanted))
    rotate(box)
    check(box, found, int(bool(torn)))  # no record, and stays


def test_an_act_costs_the_same_among_many_records(tmp_path: Path) -> None:
    """A repeated ack, and a release, looked through the whole reads log under its lock."""
    cost = []
    for count in (10, 200):
        (tmp_path / str(count)).mkdir()
        box, wanted = filled(tmp_path / str(count), count)
        box.find(wanted)
        cost.append(steps(lambda: (box.ack(wanted, "bob"), box.release(wanted, "bob"))))  # noqa: B023 - called at once
    assert cost[1] < cost[0] * 1.3
