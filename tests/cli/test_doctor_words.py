"""The doctor's borders and words: from how many on it says more, which of two causes it names, what it looks at."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.core import codec, instant
from agent_mailbox.core.clocks import ClockDoubt
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.findings import REMOVE_TORN
from agent_mailbox.core.instant import DAY, HOUR
from agent_mailbox.core.records import BadLine, Message, Read
from agent_mailbox.errors import StorageFailed
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.log.custody import Kept
from agent_mailbox.upkeep import backup, doctor
from agent_mailbox.upkeep.doctor import (
    clock_signs,
    derived_checks,
    id_index,
    log_checks,
    obstacles,
    proof_checks,
    use_checks,
)
from agent_mailbox.upkeep.doctor.id_index import CheckedLog
from tests.helpers import ARCHIVE, MESSAGES, READS, ROSTER, record, stamp
from tests.trust.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_mailbox.core.findings import Problem
    from tests.helpers import Post


@pytest.fixture
def box(post: Post) -> Mailbox:
    """A mailbox with two agents and mail between them, of which one message is archived."""
    mailbox = Mailbox(str(post.box))
    for who in ("ann", "bob"):
        mailbox.register(Registration(session_id=who), who)
    mailbox.send(Draft(sender="ann", to=("bob",), content="archived"))
    mailbox.deliver("bob", lambda items: items)
    post.ok("steward", "run", "--max-live", "0")
    mailbox.send(Draft(sender="ann", to=("bob",), content="live"))
    mailbox.deliver("bob", lambda items: items)
    return mailbox


def test_a_clock_s_distance_is_told_in_days_from_three_on() -> None:
    """The doubt is ahead of all signs of life, or somewhere else away from them."""
    start = 1_700_000_000_000
    for hours, said in ((71, "71 hours"), (72, "3 days"), (95, "3 days"), (96, "4 days")):
        for sign, way in ((1, "ahead of"), (-1, "away from")):
            doubt = ClockDoubt(start + sign * hours * HOUR, "", 0, start)
            told = clock_signs.describe_doubt(doubt, [start])
            assert told == f"{said} {way} every time in the mailbox"


@pytest.mark.parametrize(
    ("told", "millis"), [(b"12.34 99.50\n", 12340), (b"", -1), (b"soon", -1), (None, -1), (b"inf 1", -1)]
)
def test_the_time_since_the_start_is_the_first_word_of_what_the_kernel_tells(
    monkeypatch: pytest.MonkeyPatch, told: bytes | None, millis: int
) -> None:
    """The second is how long processors had nothing to do."""
    monkeypatch.setattr(clock_signs, "read_if_possible", lambda *_: told)
    assert clock_signs._uptime_millis() == millis


@pytest.mark.parametrize("left", [{"up": "1"}, {"now": 1.5}, {"steady": True}, {"more": 1}])
def test_a_doubt_of_another_form_is_none(box: Mailbox, left: dict[str, object]) -> None:
    """The file is derived: another version's is forgotten, and the clock is judged again."""
    doubt = ClockDoubt(1, "boot", 2, 3)
    path = box.logs.cache(clock_signs.DOUBT)
    for told, found in ((doubt.__dict__, doubt), ({**doubt.__dict__, **left}, None)):
        clock_signs.small_files.save_derived(path, codec.dumps(told).encode())
        assert clock_signs.doubt_of(box) == found


def test_settings_that_a_backup_brings_are_counted_behind_thirty() -> None:
    """It names so many. A file that is too long is told as that."""
    lines = [f"x{n} = 1" for n in range(32)]
    for count, more in ((30, []), (31, ["and 1 more"]), (32, ["and 2 more"])):
        told = backup.describe_settings("\n".join(["[other]", *lines[:count]]).encode())
        assert [*told[30:]] == more
    long = b"#" * backup.MOST_SHOWN
    assert backup.describe_settings(long) == ()
    assert backup.describe_settings(long + b"#") == ("config.toml is too long to show",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ttl]\nbroadcast = 4\ndirect = 24\n[steward]\nmax_live = 1000\n", ()),
        ("[ttl]\nbroadcast = 40\ndirect = 24\n", ("[ttl] broadcast = 40",)),
        ("[ttl]\nbroadcast = 5\n[steward]\nmax_live = 10\n", ("[ttl] broadcast = 5", "[steward] max_live = 10")),
        ('[ttl]\nbroadcast = "x"\n', ("[ttl] broadcast = x (wrong: it does not count)",)),
        ("\ufeffx = 1", ("[x]  = 1 (wrong: it does not count)",)),
        ('[notify]\nntfy = "x"\n', ("[notify] ntfy = x (ignored: it counts in your own configuration alone)",)),
        ("[", ("config.toml is not valid TOML",)),
    ],
)
def test_a_setting_that_a_backup_brings_is_named_unless_it_is_the_default(text: str, told: tuple[str, ...]) -> None:
    """One that does not count is named with the reason."""
    assert backup.describe_settings(text.encode()) == told


def test_what_a_repair_cuts_is_kept_as_it_was() -> None:
    """Zeros as their number, text as text, and anything else as its bytes."""
    for torn, kept in ((bytes(3), {"zeros": 3}), (b'{"a', {"text": '{"a'}), (b'{"\xff', {"hex": "7b22ff"})):
        assert doctor.kept_record(7, torn) == {"position": 7, **kept}


def test_a_repair_that_fails_is_not_told_as_done(tmp_path: Path) -> None:
    """The file went between the look and the repair."""
    (there := tmp_path / "there").touch(0o644)
    there.chmod(0o644)
    assert doctor._close_mode(str(there)).done.startswith("its mode is 600 now, and was 644")
    with pytest.raises(StorageFailed, match="cannot change the mode of"):
        doctor._close_mode(str(tmp_path / "gone"))


def test_a_torn_line_is_cut_only_behind_what_was_sealed() -> None:
    """One that was torn before it was archived is a note; a newer version's event is left alone."""
    log = CheckedLog("/x", lambda: iter(()), "2026-01", 4)
    torn, bad = b'{"id": "a', BadLine("not JSON")
    found = [log_checks.bad_line(log, number, torn, bad) for number in (4, 5)]
    assert [(one.note, one.repair == REMOVE_TORN) for one in found] == [(True, False), (False, True)]
    (newer, other) = (log_checks.bad_line(log, 5, b"x", BadLine(said)) for said in ("unknown event: x", "not JSON"))
    assert (newer.note, newer.what.partition(":")[0]) == (True, "unknown event")
    assert (other.note, other.what.partition(";")[0]) == (False, "not a record: not JSON")
    assert [log_checks.is_torn(line) for line in (b"\0\0", b'{"a":1}\0', b'{"a":1}', b'[{"a', b"", b'{"a" 1')] == [
        *(True, True, False, False, True, False)
    ]


def test_findings_of_a_kind_are_counted() -> None:
    """The first is named, by the beginning of its message's id."""
    reads = [codec.spell_read(Read(message_id, "ann", 1)) for message_id in ("i" * 99, "other")]
    for count, said in ((0, ""), (1, "1 read (the first is of i"), (2, "2 reads (the first is of i")):
        log = CheckedLog("reads.jsonl", lambda count=count: iter(enumerate(reads[:count], 3)))
        found = [*log_checks._check_reads(log, id_index.IdIndex(), None)]
        assert [one.line for one in found] == [3] * bool(count)
        assert all(one.what.startswith(said + "i" * 59 + ") of a missing message") for one in found)


def test_a_disk_without_room_is_told_by_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room may come back by itself, so the steward waits for it."""
    full = OSError(obstacles.errno.ENOSPC, "full")
    real = os.statvfs(tmp_path)
    for free, said in ((0, "no inode left"), (1, "its file system is full")):
        values = [*real]
        values[7] = free
        monkeypatch.setattr(system, "statvfs", lambda _, values=values: os.statvfs_result(values))
        found = obstacles._advise_freeing(str(tmp_path), full)
        assert (said in found.why, found.passes) == (True, True)
    monkeypatch.undo()
    gone = obstacles._advise_freeing(str(tmp_path / "gone"), full)
    assert ("its file system is full" in gone.why, gone.passes) == (True, True)
    assert obstacles._advise_freeing("/x", OSError(obstacles.errno.EDQUOT, "")).passes


def test_who_ended_a_log_elsewhere_is_told(box: Mailbox, post: Post) -> None:
    """Another file is in its place, or other bytes are at its end; how many, to the byte."""
    log, path = box.logs.messages, post.file(MESSAGES)
    assert derived_checks._ended_elsewhere(box, log) is None
    content = path.read_bytes()
    path.write_bytes(content + b"\n")
    assert derived_checks._ended_elsewhere(box, log) == (
        "1 bytes longer than after our last write: another program wrote them"
    )
    path.write_bytes(content[:-1])
    found = derived_checks._ended_elsewhere(box, log)
    assert found == "1 bytes shorter than after our last write: the writer was killed, or the log was cut"
    path.with_name("other").write_bytes(content)
    path.with_name("other").replace(path)
    found = derived_checks._ended_elsewhere(box, log)
    assert found == "another program replaced the file since our last write"


def test_each_lock_that_a_process_keeps_is_told(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the logs, and those of what is proven of them."""
    monkeypatch.setattr(use_checks, "PATIENCE", 0.0)
    assert box.logs.custody is not None
    paths = [log.path for log in (box.logs.messages, box.logs.reads, box.logs.roster)]
    for path in (*paths, *(Kept(box.logs.custody, path).path for path in paths)):
        assert [*use_checks._check_locks(box)] == []
        with FileLock(path, 0):
            assert [one.file for one in use_checks._check_locks(box)] == [path]


def test_all_that_commands_write_is_tried(box: Mailbox) -> None:
    """Each path in the mailbox that is no derived file, how it is written, and what fails without it."""
    here, archive = box.logs.path, box.archive.directory
    told = [(path, how.__name__, why) for path, how, why in use_checks._written_paths(box)]
    wanted = {
        (log.path, how, why)
        for log, fails in (
            (box.logs.messages, "no mail can be sent"),
            (box.logs.reads, "no mail can be shown or acknowledged"),
            (box.logs.roster, "no session can join or leave"),
        )
        for how, why in (("to_append", fails), ("to_replace", "the steward cannot archive"))
    }
    wanted |= {
        (box.directory, "to_create", "nothing new can be made here"),
        (here("agent-mailbox-events.jsonl"), "to_append", "telemetry is lost"),
        (here("agent-heartbeats"), "to_create", "no new session can join or be shown mail"),
        (here("agent-heartbeats/bob"), "to_write", "that session is shown no mail"),
        (here("attachments"), "to_create", "no file can be attached"),
        (archive, "to_create", "the steward cannot archive"),
        *((f"{archive}/{name}", "to_append", "the steward cannot archive") for name in os.listdir(archive)),
        (box.logs.derived, "to_create", "each look at mail takes longer"),
        (box.logs.cache(rotation.LAST_RUN), "to_write", "each look at mail takes longer"),
        (box.logs.rollbook, "to_write", use_checks.SEALED),
        (box.logs.cache("quiet"), "to_create", "each look at mail takes longer"),
        (box.logs.cache("quiet", "bob"), "to_write", "each look at mail takes longer"),
    }
    assert wanted - {*told} == set()
    assert {path for path, how, _ in told if how == "to_own"} >= {archive, here("attachments"), box.logs.derived}


def notes_at(box: Mailbox, name: str, *, archived: bool = True) -> list[tuple[int | None, str]]:
    """What the doctor says of a file's lines."""
    found: Iterator[Problem] = log_checks.check_logs(box, archived=archived, at_work=lambda: False)
    return [(one.line, one.what) for one in found if one.file.endswith(name)]


def test_a_date_in_the_future_is_told_in_each_live_log(box: Mailbox, post: Post) -> None:
    """It makes mail expire late, and an agent look alive; of archived lines nobody asks that any more."""
    later, border = stamp(box.now() + DAY), stamp(box.now() + 4 * 60_000)
    for at in (border, later):
        post.append(READS, {"message_id": "x", "reader_session_id": "bob", "timestamp": at, "event": "read"})
        post.append(ROSTER, {"event": "register", "session_id": "cat", "timestamp": at})
    for name in (READS, ROSTER):
        (ahead,) = [one for one in notes_at(box, name, archived=False) if "dated in the future" in one[1]]
        assert ahead[0] == len(post.lines(name))
        assert "(1 line)" in ahead[1]


@pytest.mark.parametrize("archived", [True, False])
def test_archived_records_are_looked_at_if_somebody_asks(box: Mailbox, post: Post, archived: bool) -> None:
    """A line that is no record is told in each archived log, and a read of no message, only then."""
    (month,) = box.archive.months()
    for name in (f"{month}.jsonl", f"{month}-reads.jsonl", "roster.jsonl"):
        with open(post.file(ARCHIVE, name), "ab") as log:
            log.write(b"[]\n")
        said = [what for _, what in notes_at(box, f"{ARCHIVE}/{name}", archived=archived)]
        assert [what.startswith("not a record") for what in said] == [True] * archived
    post.append(READS, {"message_id": "x", "reader_session_id": "bob", "timestamp": stamp(), "event": "read"})
    lost = [what for _, what in notes_at(box, READS, archived=archived) if "missing message" in what]
    assert len(lost) == archived
    assert instant.month(box.now()) == month


def test_lines_that_prove_nothing_are_counted(post: Post) -> None:
    """The first is named with how many more there are."""
    scene = Scene(post)
    for more in ("", " (and 1 more such line)", " (and 2 more such lines)"):
        scene.forge(m.PolicyUpdate(allow=("Bash",)))
        (note,) = [one for one in proof_checks.check_proofs(scene.mailbox) if one.note]
        assert note.what.partition("; ")[0].endswith(f"allows nothing{more}")


def test_a_repeated_id_is_told_with_the_line_of_its_first(tmp_path: Path) -> None:
    """Ids whose numbers begin alike are no repetition."""
    lines = [json.dumps(record(id=name)).encode() for name in ("a", "b", "a", "c")]
    log = CheckedLog(str(tmp_path / "x"), lambda: iter(enumerate(lines, 1)))
    ids = id_index.IdIndex()
    found = ids.hashes_of(log)
    for _, line in log.lines():
        message = codec.message(line)
        assert isinstance(message, Message)
        found.append(hash(message.id))
    ids.sort_hashes()
    assert ids.repeated_hashes() == {hash("a")}
    assert [bool(ids.logs_with(name)) for name in "abcd"] == [True, True, True, False]
    (twice,) = id_index.find_duplicates(ids, lambda: False)
    assert twice.line == 3
