"""A line was shown, and then the power took it, for its sync had failed. Sent again under its id it stays read."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Registration, StorageFailed
from agent_mailbox.core import codec
from agent_mailbox.core.records import Message
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.store.files import system
from agent_mailbox.store.log.stamps import StampFiles
from agent_mailbox.store.polling import foreign_lines
from agent_mailbox.store.user_state import creation
from tests.door import switches
from tests.store.history import delivered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ME, OTHER, SENDER = "ann", "bob", "zed"
LOST = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(params=["scan", "table"])
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Mailbox:
    """A mailbox that is small, or counts as large, whose two readers were shown what is lost since."""
    if request.param == "table":
        monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = Mailbox(creation.create(str(tmp_path / "box"), {switches.STATE: str(tmp_path)}))
    for who in (ME, OTHER, SENDER):
        box.register(Registration(session_id=who, roles=("dev",) if who != SENDER else ()), who)
    box.send(Draft(sender=SENDER, to=("all",), content="old"))
    for who in (ME, OTHER):
        delivered(box, who)
    return box


def send(box: Mailbox, to: str) -> None:
    box.send(Draft(sender=SENDER, to=(to,), content="lost", id=LOST))


def take_in(box: Mailbox, to: str) -> None:
    box.take_in([Message(LOST, SENDER, (to,), box.now(), "lost")])


def foreign(box: Mailbox, to: str) -> None:
    with open(box.logs.messages.path, "ab") as file:
        file.write(codec.spell_message(Message(LOST, SENDER, (to,), box.now(), "lost")))


def lose(box: Mailbox, to: str, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    """Send mail that is shown and then lost; return the mailbox as the machine finds it when it starts again."""
    path = box.logs.messages.path
    size = os.stat(path).st_size

    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(system, "fdatasync", fails)
        with pytest.raises(StorageFailed):
            send(box, to)
    assert delivered(box, ME) == ["lost"]
    os.truncate(path, size)
    shutil.rmtree(box.logs.derived)  # what is older than the machine's start counts for nothing
    again = Mailbox(box.directory)
    for who in (ME, OTHER):
        assert delivered(again, who) == []
    return again


@pytest.mark.parametrize("to", ["all", "role:dev"])
@pytest.mark.parametrize("repeat", [send, take_in, foreign])
def test_mail_that_was_lost_is_not_shown_again(
    box: Mailbox, monkeypatch: pytest.MonkeyPatch, repeat: Callable[[Mailbox, str], None], to: str
) -> None:
    """A session that read mail before it was lost does not see it again. Other sessions see it only if it was for all.
    All later mail is shown as before."""
    box = lose(box, to, monkeypatch)
    repeat(box, to)
    assert delivered(box, ME) == []
    assert delivered(box, OTHER) == (["lost"] if to == "all" else [])
    box.send(Draft(sender=SENDER, to=("all",), content="later"))
    foreign(box, "all")
    for who in (ME, OTHER):
        assert delivered(box, who) == ["later"]


def test_a_repetition_behind_a_foreign_line_is_not_shown_again(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are looked at by the next poll."""
    box = lose(box, "all", monkeypatch)
    with open(box.logs.messages.path, "ab") as file:
        file.write(codec.spell_message(Message("x-1", SENDER, ("all",), box.now(), "foreign")))
    send(box, "all")
    assert delivered(box, ME) == ["foreign"]
    assert delivered(box, OTHER) == ["foreign", "lost"]


@pytest.mark.parametrize("repeat", [send, take_in])
def test_a_new_id_has_nobody_begin_again(box: Mailbox, repeat: Callable[[Mailbox, str], None]) -> None:
    """A message with a new id makes no session begin again, nor does its repetition."""
    left = box.logs.stamp_files.ended(box.logs.messages.path)
    repeat(box, ME)
    assert delivered(box, ME) == ["lost"]
    send(box, ME)
    now = box.logs.stamp_files.ended(box.logs.messages.path)
    assert left is not None
    assert now is not None
    assert left[2] == now[2]


class Meanwhile(StampFiles):
    """Stamps by which something happens once a poll has opened the logs."""

    def __init__(self, box: Mailbox, happens: Callable[[], object]) -> None:
        super().__init__(box.logs.derived)
        self._happens = [happens]

    def epoch(self, path: str, fd: int, end: int) -> int | None:
        while self._happens:
            self._happens.pop()()
        return super().epoch(path, fd, end)


@pytest.mark.parametrize("polled", [False, True], ids=["alone", "beside another process of its session"])
@pytest.mark.parametrize("more", [False, True], ids=["last", "with a line behind it"])
@pytest.mark.parametrize("repeat", [send, foreign])
def test_a_poll_that_began_before_the_repetition_does_not_have_the_next_show_it(
    box: Mailbox, monkeypatch: pytest.MonkeyPatch, repeat: Callable[[Mailbox, str], None], *, more: bool, polled: bool
) -> None:
    """It has the logs as they were, and finds the note of the log as it is. It keeps its place, for mail is left.

    The clock does not move: a place that another poll reached later would not count."""
    box = lose(box, "all", monkeypatch)
    now = box.now()
    box.send(Draft(sender=SENDER, to=(ME,), content="left"))
    other = Mailbox(box.directory, clock=lambda: now)
    box.now = lambda: now

    def looked(reader: Mailbox) -> list[str]:
        return [item.message.content for item in reader.part(Delivery).look(ME)]

    def happens() -> None:
        repeat(other, "all")
        if more:
            other.send(Draft(sender=SENDER, to=(OTHER,), content="more"))
        if polled:
            assert looked(other) == ["left"]

    box.logs.stamp_files = Meanwhile(box, happens)
    assert looked(box) == ["left"]
    assert delivered(other, ME) == ["left"]
