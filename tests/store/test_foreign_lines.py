"""Lines of other programs cost what they are: a session reads on from where it stood, unless an id stands twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.core import codec
from agent_mailbox.core.records import Message
from agent_mailbox.mailbox.queries import Library
from agent_mailbox.store import creation, foreign_lines, user_state
from tests.steps import steps

if TYPE_CHECKING:
    from pathlib import Path

ME, OTHER = "ann", "bob"


def mailbox(place: Path, messages: int) -> Mailbox:
    """A mailbox in which two sessions are up to date, with an index."""
    place.mkdir()
    box = Mailbox(creation.create(str(place / "box"), {user_state.SWITCH: str(place)}))
    for who in (ME, OTHER):
        box.register(Registration(session_id=who), who)
    box.send_all([Draft(sender=OTHER, to=(ME,), content=f"old {n}") for n in range(messages)])
    for who in (ME, OTHER):
        delivered(box, who)
    Library(box).search("old", 1)
    return box


def delivered(box: Mailbox, who: str) -> list[str]:
    shown: list[str] = []
    box.deliver(who, lambda items: shown.extend(item.message.content for item in items) or items)
    return shown


def foreign(box: Mailbox, *ids: str, to: str = ME) -> None:
    """Another program appends messages."""
    lines = [Message(id=i, sender="zed", recipients=(to,), timestamp=box.now(), content=f"foreign {i}") for i in ids]
    with open(box.logs.messages.path, "ab") as file:
        file.write(b"".join(map(codec.message_line, lines)))


def epoch(box: Mailbox) -> int:
    left = box.logs.trail.ended(box.logs.messages.path)
    assert left is not None
    return left[2]


@pytest.fixture(params=["scan", "index"])
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Mailbox:
    """A mailbox that is small, or counts as large."""
    if request.param == "index":
        monkeypatch.setattr(foreign_lines, "NEAR", 0)
    return mailbox(tmp_path / "one", 3)


def test_new_ids_leave_every_session_where_it_stood(box: Mailbox) -> None:
    """Also between lines of our own writers, before anybody looked."""
    before = epoch(box)
    foreign(box, "x-1", "x-2")
    box.send(Draft(sender=OTHER, to=(ME,), content="ours"))
    foreign(box, "x-3", to="all")
    assert delivered(box, ME) == ["foreign x-1", "foreign x-2", "ours", "foreign x-3"]
    assert delivered(box, OTHER) == ["foreign x-3"]
    assert epoch(box) == before
    assert delivered(box, ME) == delivered(box, OTHER) == []


@pytest.mark.parametrize("ids", [["old"], ["x-1", "x-1"], ["x-1", "old", "x-2"]], ids=" ".join)
def test_an_id_that_stands_twice_is_shown_once(box: Mailbox, ids: list[str]) -> None:
    """The first line with it counts, and was read long ago."""
    before, old = epoch(box), next(iter(box.state().messages))
    given = [old if i == "old" else i for i in ids]
    foreign(box, *given)
    assert delivered(box, ME) == [f"foreign {i}" for i in dict.fromkeys(given) if i != old]
    assert epoch(box) != before
    foreign(box, old)
    assert delivered(box, ME) == []


def test_a_torn_end_is_not_read_on_from(box: Mailbox) -> None:
    """What another program appends to half a line is no line of its own."""
    with open(box.logs.messages.path, "ab") as file:
        file.write(b'{"id":"torn')
    assert delivered(box, ME) == []
    foreign(box, "x-1")
    foreign(box, "x-2")
    assert delivered(box, ME) == ["foreign x-2"]


def test_without_an_index_a_large_mailbox_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody builds one while others wait for the lock."""
    box = mailbox(tmp_path / "one", 3)
    (tmp_path / "one/box/.cache/index.sqlite").unlink()
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    before = epoch(box)
    foreign(box, "x-1")
    assert delivered(box, ME) == ["foreign x-1"]
    assert epoch(box) != before
    assert not (tmp_path / "one/box/.cache/index.sqlite").exists()


def test_what_is_new_costs_the_same_in_a_mailbox_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the session that meets it first, and for the next."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    taken = []
    for size in (20, 200):
        box = mailbox(tmp_path / str(size), size)
        foreign(box, "x-1", "x-2", to="all")
        taken.append([steps(lambda who=who: delivered(box, who)) for who in (ME, OTHER)])  # noqa: B023 - called at once
    (first, next_one), (first_of_many, next_of_many) = taken
    assert first_of_many < first * 1.2
    assert next_of_many < next_one * 1.2
