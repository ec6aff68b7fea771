"""Lines of other programs cost what they are: a session reads on from where it stood, unless an id is twice."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.core import codec
from agent_mailbox.core.records import Message, Read
from agent_mailbox.store.log.stamps import StampFiles
from agent_mailbox.store.polling import foreign_lines
from agent_mailbox.store.projection import index_keys, open_ends
from agent_mailbox.store.user_state import creation
from tests.door import switches
from tests.steps import steps
from tests.store.history import delivered

if TYPE_CHECKING:
    from pathlib import Path

ME, OTHER = "ann", "bob"


def mailbox(place: Path, messages: int) -> Mailbox:
    """A mailbox in which two sessions are up to date, with a table of the ids."""
    place.mkdir()
    box = Mailbox(creation.create(str(place / "box"), {switches.STATE: str(place)}))
    for who in (ME, OTHER):
        box.register(Registration(session_id=who), who)
    box.send_all([Draft(sender=OTHER, to=(ME,), content=f"old {n}") for n in range(messages)])
    for who in (ME, OTHER):
        delivered(box, who)
    if max(size for _, size in box.logs.ends()[:2]) > foreign_lines.NEAR:
        open_ends.keep_up(box.logs)
    return box


def foreign(box: Mailbox, *ids: str, to: str = ME) -> None:
    """Another program appends messages."""
    lines = [Message(id=i, sender="zed", recipients=(to,), timestamp=box.now(), content=f"foreign {i}") for i in ids]
    with open(box.logs.messages.path, "ab") as file:
        file.write(b"".join(map(codec.spell_message, lines)))


def epoch(box: Mailbox) -> int:
    left = box.logs.stamp_files.ended(box.logs.messages.path)
    assert left is not None
    return left[2]


@pytest.fixture(params=["scan", "table"])
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Mailbox:
    """A mailbox that is small, or counts as large."""
    if request.param == "table":
        monkeypatch.setattr(foreign_lines, "NEAR", 0)
    return mailbox(tmp_path / "one", 3)


def test_a_damaged_note_of_the_log_s_end_hides_no_second_line_of_an_id(box: Mailbox) -> None:
    """One digit says that our writer got far beyond: then nothing behind would be another program's."""
    first = box.send(Draft(sender=ME, to=(ME,), content="a note to oneself")).message.id
    assert delivered(box, OTHER) == []
    note = os.path.join(box.directory, ".cache", "ends", "agent-mailbox")
    with open(note, "r+b") as file:
        said = bytearray(file.read())
        said[29] ^= 1
        file.seek(0)
        file.write(said)
    foreign(box, first, to="all")
    assert delivered(box, OTHER) == []


@pytest.mark.parametrize("via", [None, "role:dev", "project:sun"])
def test_another_program_s_release_frees_a_claim_under_any_word(tmp_path: Path, via: str | None) -> None:
    """The mail had been dropped by who is shown it now."""
    box = mailbox(tmp_path / "one", 0)
    for who in (ME, OTHER):
        box.register(Registration(session_id=who, tags=("role:dev",)), who)
    box.register(Registration(session_id="zed"), "zed")
    sent = box.send(Draft(sender="zed", to=("role:dev",), content="who can?")).message.id
    read = Read(message_id=sent, session_id=OTHER, timestamp=box.now(), event="read", via="role:dev")
    with open(box.logs.reads.path, "ab") as file:
        file.write(codec.spell_read(read))
        file.flush()
        assert delivered(box, ME) == []
        file.write(codec.spell_read(read.replace(event="release", via=via, timestamp=box.now())))
    assert delivered(box, ME) == ["who can?"]


def test_new_ids_leave_every_session_where_it_stood(box: Mailbox) -> None:
    """Messages of another program with new ids make no session begin again. They may stand between lines of our own
    writers."""
    before = epoch(box)
    foreign(box, "x-1", "x-2")
    box.send(Draft(sender=OTHER, to=(ME,), content="ours"))
    foreign(box, "x-3", to="all")
    assert delivered(box, ME) == ["foreign x-1", "foreign x-2", "ours", "foreign x-3"]
    assert delivered(box, OTHER) == ["foreign x-3"]
    assert epoch(box) == before
    assert delivered(box, ME) == delivered(box, OTHER) == []


@pytest.mark.parametrize("length", [9000, 10], ids=["shorter", "longer"])
def test_a_second_line_where_a_killed_writer_was_about_to_write_is_shown_once(box: Mailbox, length: int) -> None:
    """The writer noted where its line would end; the other program's line is shorter than it, or longer."""
    old, path = next(iter(box.state().messages)), box.logs.messages.path
    there = os.stat(path)
    box.logs.stamp_files.leave(path, there.st_ino, there.st_size + length, epoch(box), there.st_size)
    foreign(box, old)
    assert delivered(box, ME) == []
    foreign(box, "x-1")
    assert delivered(box, ME) == ["foreign x-1"]


def test_a_writer_at_work_has_no_session_begin_again(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll saw a part of its line, and waits for the log: then all of it is there."""
    before = epoch(box)
    box.send(Draft(sender=OTHER, to=(ME,), content="ours"))
    monkeypatch.setattr(StampFiles, "epoch", lambda *_: None)
    assert delivered(box, ME) == ["ours"]
    assert epoch(box) == before


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


def test_an_id_that_stands_twice_and_that_nobody_read_has_all_begin_again(box: Mailbox) -> None:
    """No record tells of it: its first line does, in the table or the log."""
    before = epoch(box)
    for is_second in (False, True):
        foreign(box, "x-1", to="nobody")
        assert delivered(box, ME) == []
        assert (epoch(box) != before) == is_second


def test_a_torn_end_is_not_read_on_from(box: Mailbox) -> None:
    """A line that another program appends to half a line is no line of its own. A session gets only the lines behind
    it."""
    with open(box.logs.messages.path, "ab") as file:
        file.write(b'{"id":"torn')
    assert delivered(box, ME) == []
    foreign(box, "x-1")
    foreign(box, "x-2")
    assert delivered(box, ME) == ["foreign x-2"]


def test_a_poll_from_nothing_makes_no_projection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derived files that are gone are no line of another program; the table would take twice the poll's own time."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = mailbox(tmp_path / "one", 3)
    shutil.rmtree(tmp_path / "one/box/.cache")
    assert delivered(box, ME) == []
    assert not (tmp_path / "one/box/.cache" / index_keys.FILE).exists()
    foreign(box, "x-1")
    assert delivered(box, ME) == ["foreign x-1"]
    assert (tmp_path / "one/box/.cache" / index_keys.FILE).exists()


def assert_begins_again_once(box: Mailbox) -> None:
    """A foreign line that no table tells of has the session begin again; the next one finds a table."""
    before = epoch(box)
    foreign(box, "x-1")
    assert delivered(box, ME) == ["foreign x-1"]
    after = epoch(box)
    assert after != before
    foreign(box, "x-2")
    assert delivered(box, ME) == ["foreign x-2"]
    assert epoch(box) == after


def test_without_a_table_a_large_mailbox_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: nobody builds one while others wait for the lock, and the session that read it all leaves one."""
    box = mailbox(tmp_path / "one", 3)
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    monkeypatch.setattr(foreign_lines, "LAG", 500)
    assert_begins_again_once(box)


SPELLINGS = ('{"id":"%s",', '{"id" : "%s",', '{"thread":null,"id":"%s",', '{"id":"\\u0078-1",')


@pytest.mark.parametrize("spelt", SPELLINGS)
def test_an_id_is_known_however_another_program_spells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelt: str
) -> None:
    """The table holds the id that the line is decoded to."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = mailbox(tmp_path / "one", 1)
    line = (
        spelt.replace("%s", "x-1")
        + '"sender":"zed","recipient":"ann","timestamp":"2999-03-16T09:00:00Z","content":"a"}'
    )
    with open(box.logs.messages.path, "a") as file:
        file.write(line + "\n")
    assert delivered(box, ME) == ["a"]
    foreign(box, "x-1")
    assert delivered(box, ME) == []


def test_what_was_taken_in_bit_by_bit_holds_every_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids are of messages that nobody reads: a record would tell, too."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = mailbox(tmp_path / "one", 2)
    before = epoch(box)
    for turn in range(5):
        foreign(box, f"x-{turn}", to="nobody")
        assert delivered(box, ME) == []
        assert epoch(box) == before
    for turn in range(5):
        foreign(box, f"x-{turn}", to="nobody")
        assert delivered(box, ME) == []
        assert epoch(box) != before
        before = epoch(box)


def test_an_older_projection_lacks_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A projection that a backup brought back takes in the lines that it lacks."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = mailbox(tmp_path / "one", 2)
    table = tmp_path / "one/box/.cache" / index_keys.FILE
    older, at = table.read_bytes(), table.stat().st_mtime_ns
    foreign(box, "x-0", to="nobody")  # a record of it would tell, too
    assert delivered(box, ME) == []
    table.write_bytes(older)
    os.utime(table, ns=(at, at))
    before = epoch(box)
    foreign(box, "x-0", to="nobody")
    assert delivered(box, ME) == []
    assert epoch(box) != before


def test_what_is_new_costs_the_same_in_a_mailbox_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New lines of another program cost the same in a mailbox of any size. They do so for the session that meets them
    first, and for the next one."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    taken = []
    for size in (20, 200):
        box = mailbox(tmp_path / str(size), size)
        foreign(box, "x-1", "x-2", to="all")
        taken.append([steps(lambda who=who: delivered(box, who)) for who in (ME, OTHER)])  # noqa: B023 - called at once
    (first, next_one), (first_of_many, next_of_many) = taken
    assert first_of_many < first * 1.2
    assert next_of_many < next_one * 1.2
