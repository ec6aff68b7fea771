"""Lines of other programs cost what they are: a session reads on from where it stood, unless an id stands twice."""

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
from agent_mailbox.store.projection import asking, id_table, word_table
from agent_mailbox.store.projection.word_table import TWINS, entry
from agent_mailbox.store.user_state import creation
from tests.door import switches
from tests.steps import steps

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
    with box.logs.open() as live:
        foreign_lines.prepare(box.logs, live)
    return box


def delivered(box: Mailbox, who: str) -> list[str]:
    shown: list[str] = []
    box.deliver(who, lambda items: shown.extend(item.message.content for item in items) or items)
    return shown


def foreign(box: Mailbox, *ids: str, to: str = ME) -> None:
    """Another program appends messages."""
    lines = [Message(id=i, sender="zed", recipients=(to,), timestamp=box.now(), content=f"foreign {i}") for i in ids]
    with open(box.logs.messages.path, "ab") as file:
        file.write(b"".join(map(codec.spell_message, lines)))


def epoch(box: Mailbox) -> int:
    left = box.logs.trail.ended(box.logs.messages.path)
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
    box.logs.trail.leave(path, there.st_ino, there.st_size + length, epoch(box), there.st_size)
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


def test_a_poll_from_nothing_makes_no_table_of_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derived files that are gone are no line of another program; the table would take twice the poll's own time."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = mailbox(tmp_path / "one", 3)
    shutil.rmtree(tmp_path / "one/box/.cache")
    assert delivered(box, ME) == []
    assert not (tmp_path / "one/box/.cache" / id_table.TABLE).exists()
    foreign(box, "x-1")
    assert delivered(box, ME) == ["foreign x-1"]
    assert (tmp_path / "one/box/.cache" / id_table.TABLE).exists()


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


@pytest.mark.parametrize("most", [0, 3, 1000])
def test_a_table_that_grew_bit_by_bit_holds_every_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Whether new entries go into the large file, into both or into the small one. They are of messages that nobody
    reads: a record would tell, too."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = mailbox(tmp_path / "one", 2)
    monkeypatch.setattr(id_table, "_is_few", lambda fresh, _: fresh < most)
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


def test_a_small_file_beside_another_large_one_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older large one lacks what the small one takes as known."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    box = mailbox(tmp_path / "one", 2)
    large = tmp_path / "one/box/.cache" / id_table.TABLE
    older, at = large.read_bytes(), large.stat().st_mtime_ns
    for turn, is_few in enumerate((False, True)):
        monkeypatch.setattr(id_table, "_is_few", lambda *_, few=is_few: few)
        foreign(box, f"x-{turn}", to="nobody")  # a record of it would tell, too
        assert delivered(box, ME) == []
    large.write_bytes(older)
    os.utime(large, ns=(at, at))
    before = epoch(box)
    foreign(box, "x-0", to="nobody")
    assert delivered(box, ME) == []
    assert epoch(box) != before


def test_ids_that_share_a_hash_are_not_all_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may choose them; the session then reads everything again."""
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    monkeypatch.setattr(id_table, "entry", lambda _kind, _word, place: place)
    monkeypatch.setattr(id_table.word_table, "entry", lambda _kind, _word, place: place)
    box = mailbox(tmp_path / "one", 0)
    foreign(box, *(f"twin-{n}" for n in range(id_table.TWINS + 1)), to="nobody")  # records would have such hashes, too
    assert delivered(box, ME) == []
    before = epoch(box)
    foreign(box, "x-1")
    assert delivered(box, ME) == ["foreign x-1"]
    assert epoch(box) != before


def test_a_record_that_only_shares_a_hash_has_nobody_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new id that shares a hash with a record makes no session begin again. Each fifteenth id does so by chance,
    beside a million records. Beside many such records a session reads everything again."""
    box = mailbox(tmp_path / "one", TWINS - 1)  # with the record of x-1
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    monkeypatch.setattr(asking, "entry", lambda kind, _word, place: entry(kind, b"", place))
    monkeypatch.setattr(word_table, "entry", lambda kind, _word, place: entry(kind, b"", place))
    with box.logs.open() as live:
        foreign_lines.prepare(box.logs, live)
    before = epoch(box)
    foreign(box, "x-1")
    assert delivered(box, ME) == ["foreign x-1"]
    assert epoch(box) == before
    foreign(box, "x-2")
    assert delivered(box, ME) == ["foreign x-2"]
    assert epoch(box) == before
    foreign(box, "x-3")
    assert delivered(box, ME) == ["foreign x-3"]
    assert epoch(box) != before


def test_nobody_waits_while_records_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of ids is there, and that of records is not: other sessions read everything again, once."""
    box = mailbox(tmp_path / "one", 3)
    monkeypatch.setattr(foreign_lines, "NEAR", 0)
    with box.logs.open() as live:
        foreign_lines.prepare(box.logs, live)
    os.unlink(box.logs.cache(asking.TABLE))
    monkeypatch.setattr(foreign_lines, "LAG", 500)
    assert_begins_again_once(box)


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
