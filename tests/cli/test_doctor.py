"""The doctor: each thing that can be wrong is told once, with its place; what is sound is never called wrong."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.clients.hooks.hook_events import HOOKS
from agent_mailbox.clients.texts import FLOOR
from agent_mailbox.core import codec
from agent_mailbox.core.findings import Problem
from agent_mailbox.core.records import Message, Read
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import StorageFailed
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import mounts, small_files, system
from agent_mailbox.store.files.edits import Edits
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.log import logs
from agent_mailbox.store.log.stamps import STARTED
from agent_mailbox.store.projection import index_keys
from agent_mailbox.store.user_state import bindings, own_files, processes
from agent_mailbox.upkeep import doctor, leftovers
from agent_mailbox.upkeep.doctor import clock_signs
from tests.faults.killing import killed
from tests.helpers import ARCHIVE, HEARTBEATS, MESSAGES, READS, ROOT, ROSTER, Post, record, refused, stamp
from tests.store.test_processes import together

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = 86_400_000
NOW = time.time_ns() // 1_000_000
CLEAN = {"ok": True, "problems": []}


def told(post: Post, *words: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """(problems, notes) as (file within the mailbox, line, repair, what)."""
    result = post.call("doctor", *words, "--json")
    assert result.rc == (0 if result.json["ok"] else 3)
    assert result.json["ok"] is (not result.json["problems"])

    def short(found: dict[str, Any]) -> tuple[Any, ...]:
        return os.path.relpath(found["file"], post.box), found["line"], found["repair"], found["what"]

    return [*map(short, result.json["problems"])], [*map(short, result.json.get("notes", ()))]


def read_of(message_id: str, reader: str = "bob", at: int = NOW) -> dict[str, Any]:
    """A line of the reads log as another program may write it."""
    return {"message_id": message_id, "reader_session_id": reader, "timestamp": stamp(at), "event": "read"}


@pytest.fixture
def used(post: Post) -> Post:
    """Archived and live mail, cursors, stamps, a rollbook, an index, a note of an edit: everything derived that there
    is."""
    for name in ("ann", "bob", "cat"):
        post.register(name, "--role", "builder")
    for word in ("bob", "role:builder", "all"):
        post.send("ann", word)
    post.check("bob")
    post.ok("steward", "run", "--max-live", "0")
    post.send("ann", "cat", "waits for cat")
    post.check("bob")
    post.ok("search", "hello")
    edits = Edits(Mailbox(str(post.box)).logs)
    edits.settle(holds=False)
    edits.note("/x/a", "bob", 1_773_662_400_000)
    assert os.listdir(post.file(".cache/quiet")) == ["bob"]
    assert "bob" in os.listdir(post.file(".cache/cursors"))
    return post


def test_the_doctor_finds_nothing_in_a_mailbox_in_use(used: Post) -> None:
    """Nothing at all is said of it, and looking changes no file."""
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in used.box.rglob("*") if p.is_file()}
    assert used.call("doctor").stdout == "no problems found\n"
    assert used.ok("doctor") == CLEAN
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in used.box.rglob("*") if p.is_file()} == before


def test_beside_writers_readers_and_a_steward_nothing_is_called_wrong(post: Post) -> None:
    """Whatever moment the doctor hits: mail on its way to the archive, stamps made and removed, roster changes."""
    for agent in ("r1", "r2", "h1"):
        post.register(agent, *(("--role", "builder") if agent == "h1" else ()))
    mailbox = Mailbox(str(post.box))
    looks = []

    def meanwhile() -> None:
        looks.extend(doctor.problems_among(doctor.examine_mailbox(mailbox)) for _ in range(20))

    jobs: list[tuple[object, ...]] = [("send", f"s{n}", 41, "r1", "r2", "role:builder") for n in range(2)]
    jobs += [("read", "r1", 28), ("read", "r2", 28), ("keep", "steward", 13), ("enrol", "p", 8)]
    together(post, *jobs, meanwhile=meanwhile)
    assert looks == [[]] * 20
    assert doctor.problems_among(doctor.examine_mailbox(mailbox)) == []


def test_a_mailbox_that_takes_no_writes_is_a_problem(used: Post) -> None:
    """Every send fails there. Each directory and log is told with the command that mends it."""
    closed = (".", ARCHIVE, HEARTBEATS, MESSAGES, READS, ROSTER)
    for name in closed:
        path = used.file(name)
        path.chmod(path.stat().st_mode & ~0o222)
    problems, _ = told(used)
    assert {p[0] for p in problems} == {*closed}
    assert all(f"run `chmod -R u+w {os.path.normpath(used.file(p[0]))}`" in p[3] for p in problems)
    subprocess.run(["chmod", "-R", "u+w", used.box], check=True)
    assert told(used)[0] == []


# -- derived files ----------------------------------------------------------------------------------------------------


def test_a_quiet_stamp_in_front_of_unread_mail_is_a_problem(used: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back by hand; with the stamp gone the guard says "maybe" again, and the mail is shown. One that stays is
    never called removed."""

    def fail(path: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    used.send("ann", "bob")
    assert told(used) == ([], [])
    Mailbox(str(used.box)).logs.stamp_files.stamp("bob", NOW)
    problems, _ = told(used)
    assert [p[:3] for p in problems] == [(".cache/quiet/bob", None, "remove derived file")]
    assert "1 unread" in problems[0][3]
    with monkeypatch.context() as readonly:
        readonly.setattr(system, "unlink", fail)
        refused(used.call("doctor", "--repair"), 5, "cannot remove", ".cache/quiet/bob: Read-only file system")
    assert used.call("doctor", "--repair").rc == 0
    assert not used.file(".cache/quiet/bob").exists()
    assert len(used.check("bob")) == 1
    assert told(used) == ([], [])


def test_a_stamp_that_the_guard_does_not_believe_is_no_problem(used: Post) -> None:
    """Foreign mail came after it, or the machine started: hooks ask Python, and hide nothing."""
    used.append(MESSAGES, record(recipient="bob"))
    problems, notes = told(used)
    assert [n[0] for n in notes] == [MESSAGES]  # longer than our last writer left it
    assert problems == []
    used.send("ann", "bob")
    stamp_files = Mailbox(str(used.box)).logs.stamp_files
    stamp_files.stamp("bob", NOW)
    assert len(told(used)[0]) == 1
    if not os.path.exists(STARTED):
        return  # macOS
    before = os.stat(STARTED).st_mtime_ns // 1_000_000 - 1_000
    stamp_files.stamp("bob", before)
    used.ok("roster", "update", "--session-id", "bob", "--lead", "ann")
    bindings.unbind(stamp_files, "bob", before)
    assert told(used)[0] == []


@pytest.mark.parametrize("bound", ["lead", "mode", "policy", "shutdown"])
def test_a_stamp_that_denies_what_binds_a_session_is_a_problem(used: Post, bound: str) -> None:
    """Put there by hand: the guard would let every tool call through; repaired it asks again. The others' are sound."""
    given = {
        "lead": ("roster", "update", "--session-id", "bob", "--lead", "ann"),
        "mode": ("control", "mode", "bob", "safe", "--session", "user"),
        "policy": ("control", "policy", "bob", "--deny", "Bash(rm:*)", "--session", "user"),
        "shutdown": ("control", "request", "shutdown", "bob", "--request-id", "s-1", "--session", "user"),
    }
    used.ok(*given[bound])
    if bound == "shutdown":
        used.ok("control", "approve", "s-1", "--session", "bob")
        used.check("user")
        used.ok("steward", "run", "--max-live", "0")
    people = ("ann", "bob", "nobody")
    for who in people:
        bindings.unbind(Mailbox(str(used.box)).logs.stamp_files, who, NOW)
    problems, _ = told(used)
    stamps = used.user_state / "unbound"
    assert [((used.box / p[0]).resolve(), *p[1:3]) for p in problems] == [(stamps / "bob", None, "remove derived file")]
    assert "nothing binds bob" in problems[0][3]
    assert told(used, "--repair")[0] == []
    assert [(stamps / who).exists() for who in people] == [True, False, True]


def test_a_cursor_that_answers_otherwise_is_a_problem(used: Post) -> None:
    """One that forgot a pending message, sealed like any other: cat's mail would never be shown."""
    mailbox = Mailbox(str(used.box))
    mailbox.deliver("cat", lambda items: items[:1])
    path = mailbox.logs.cache("cursors", "cat")
    saved = codec.parse(small_files.load_derived(path) or b"")
    assert isinstance(saved, dict)
    assert saved["pending"]
    assert told(used) == ([], [])
    small_files.save_derived(path, codec.dumps({**saved, "pending": []}).encode())
    assert used.unread("cat") == []
    problems, _ = told(used)
    assert [p[:3] for p in problems] == [(".cache/cursors/cat", None, "remove derived file")]
    assert told(used, "--repair") == ([], [])
    assert len(used.unread("cat")) == 1
    small_files.save_derived(path, codec.dumps({**saved, "messages": 7}).encode())
    assert told(used) == ([], [])
    assert len(used.unread("cat")) == 1


def rollbook(post: Post) -> Path:
    """Where the roster's derived file is: among the user's own records."""
    (found,) = (post.user_state / "boxes").glob("*/rollbook")
    return found


def test_a_rollbook_that_tells_another_roster_is_a_problem(used: Post) -> None:
    """Bob would hold another role than the log gives him."""
    path = str(rollbook(used))
    body = small_files.load_derived(path)
    assert body is not None
    small_files.save_derived(path, body.replace(b"role:builder", b"role:burglar"))
    problems, _ = told(used)
    assert (os.path.relpath(path, used.box), None, "remove derived file") in [p[:3] for p in problems]
    assert "holds another roster than the log" in used.call("doctor").stdout
    assert told(used, "--repair") == ([], [])
    assert used.ok("roster", "show", "bob")["agent"]["tags"] == ["role:builder"]


def test_what_comes_while_the_roster_is_folded_is_in_no_rollbook_of_before(
    used: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next look would take it in twice, and the rollbook would be of no end of the log."""
    real = logs.read_head

    def comes(head: bytes) -> Any:
        monkeypatch.setattr(logs, "read_head", real)
        used.append(ROSTER, {"event": "register", "session_id": "zoe", "timestamp": stamp()})
        return real(head)

    used.append(ROSTER, {"event": "register", "session_id": "yan", "timestamp": stamp()})
    monkeypatch.setattr(logs, "read_head", comes)
    first, second = (Mailbox(str(used.box)).logs.read_roster() for _ in "12")
    assert [one.get("zoe") is not None for one in (first, second)] == [False, True]
    assert [p for p in told(used)[0] if p[0].endswith("rollbook")] == []


@pytest.mark.parametrize("name", ["bound", "unbound", "sessions"])
def test_a_file_in_the_place_of_the_user_s_own_directory_is_told(used: Post, name: str) -> None:
    """The doctor says what fails by it, and the command that moves it away."""
    place = used.user_state / name
    if place.exists():
        place.rename(used.user_state / "aside")
    place.touch()
    (problem,) = [p for p in told(used)[0] if p[0] == os.path.relpath(place, used.box)]
    assert f"run `mv {place} {place}.away`" in problem[3]


def test_an_index_that_a_question_is_updating_is_left_alone(used: Post) -> None:
    """The doctor waits for no search, and judges no file that one is writing."""
    path = used.file(".cache", index_keys.FILE)
    path.write_bytes(b"not whole yet")
    with FileLock(str(used.file(".cache", index_keys.LOCK)), 0):
        assert told(used) == ([], [])
    assert [n[0] for n in told(used)[1]] == [f".cache/{index_keys.FILE}"]


@pytest.mark.parametrize(
    ("change", "beyond"),
    [
        ("UPDATE messages SET line = line + 1 WHERE n = 1", 0),
        ("DELETE FROM messages WHERE n = 2", 0),
        ("UPDATE messages SET place = place + 1 WHERE n = 3", 0),
        (
            "INSERT INTO messages SELECT 99, timestamp, place + 1, line, id, start, sender, address, asks, state "
            "FROM messages WHERE n = 4",
            1,
        ),
    ],
)
def test_an_index_that_differs_from_the_logs_is_a_problem(used: Post, change: str, beyond: int) -> None:
    """An entry that is wrong, missing, elsewhere or of nothing, in a file that has its seal. The doctor says where."""
    import sqlite3

    path = used.file(".cache", index_keys.FILE)
    with sqlite3.connect(path) as db:
        (sealed,) = db.execute("SELECT stamp FROM seal").fetchone()
        place = f"SELECT place & {index_keys.POSITION} FROM messages {change[change.index('WHERE') :]}"
        (at,) = db.execute(place).fetchone()
        assert db.execute(change).rowcount == 1
    db.close()
    assert [n[0] for n in told(used)[1]] == [f".cache/{index_keys.FILE}"]  # written to by somebody: not used
    os.utime(path, ns=(sealed, sealed))
    ((*found, what),) = told(used)[0]
    assert found == [f".cache/{index_keys.FILE}", None, "remove derived file"]
    assert f"disagrees with the line at byte {at + beyond} of the " in what
    assert told(used, "--repair") == ([], [])
    assert len(used.ok("search", "hello")["messages"]) == 3


def test_derived_files_nobody_would_trust_are_notes(used: Post) -> None:
    """The doctor gives a derived file that is torn or of another version as a note, not as a problem."""
    for path in (used.file(".cache/cursors/bob"), rollbook(used)):
        name = os.path.relpath(path, used.box)
        path.write_bytes(path.read_bytes().replace(small_files.VERSION, b"agent-mailbox 99"))
        problems, notes = told(used)
        assert problems == []
        assert [(n[0], "another version (99)" in n[3]) for n in notes] == [(name, True)]
        path.write_bytes(path.read_bytes()[:20])
        assert [(n[0], n[2]) for n in told(used)[1]] == [(name, None)]
        path.unlink()
        assert told(used) == ([], [])


# -- records ----------------------------------------------------------------------------------------------------------


def test_reads_that_belong_to_nothing_are_told_once_per_file(used: Post) -> None:
    """The doctor reports reads that belong to no message of their place, once for each file."""
    (month,) = Mailbox(str(used.box)).archive.months()
    used.append(READS, read_of(str(uuid.uuid4())), read_of(str(uuid.uuid4())))
    old = record("x", "bob", timestamp="2020-01-05T00:00:00Z")
    used.append(f"{ARCHIVE}/2020-01.jsonl", old)
    used.append(f"{ARCHIVE}/{month}-reads.jsonl", read_of(old["id"]))
    used.append(f"{ARCHIVE}/2019-07-reads.jsonl", read_of(old["id"]))
    for name in ("2020-01.jsonl", "2019-07-reads.jsonl"):
        used.file(ARCHIVE, name).chmod(0o600)
    problems, _ = told(used)
    lines = len(used.lines(READS)) - 1, len(used.lines(f"{ARCHIVE}/{month}-reads.jsonl"))
    assert {(p[0], p[1]) for p in problems if "seal" not in p[3]} == {
        (READS, lines[0]),
        (f"{ARCHIVE}/{month}-reads.jsonl", lines[1]),
        (f"{ARCHIVE}/2019-07-reads.jsonl", None),
    }
    assert any(p[3].startswith("2 reads of") or "2 reads (" in p[3] for p in problems)


def test_an_ack_of_archived_mail_is_nothing_wrong(used: Post) -> None:
    """Its line waits in the live log for the next steward."""
    archived = next(iter(Mailbox(str(used.box)).archive.messages()))
    used.append(READS, {**read_of(archived), "event": "ack"})
    assert told(used)[0] == []


def test_a_steward_at_work_is_not_an_interrupted_one(used: Post) -> None:
    """The same files are unfinished work while somebody holds the archive's lock, and remains when nobody does."""
    mailbox = Mailbox(str(used.box))
    used.append(f"{ARCHIVE}/{mailbox.archive.months()[0]}.jsonl", record())
    used.append(f"{ARCHIVE}/{mailbox.archive.months()[0]}.jsonl", *used.lines(MESSAGES)[:1], b"\n")
    used.file(f"{MESSAGES}.new").touch(0o600)
    with rotation.alone(mailbox.archive, 0):
        assert doctor.problems_among(doctor.examine_mailbox(mailbox)) == []
    whats = [p.what for p in doctor.problems_among(doctor.examine_mailbox(mailbox))]
    assert len(whats) == 3
    assert all("interrupted" in what for what in whats)


def test_the_next_steward_removes_what_a_killed_one_wrote_aside(used: Post) -> None:
    """A fresh log that never took an old one's place is removed, though there is nothing to move."""
    asides = [used.file(f"{name}.new") for name in (MESSAGES, READS, ROSTER)]
    for aside in asides:
        aside.touch(0o600)
    used.ok("steward", "run", "--max-live", "9")
    assert [aside for aside in asides if aside.exists()] == []


def test_a_clock_that_jumped_is_a_note_at_the_line(post: Post) -> None:
    """Back by more than minutes in log order, or ahead of now; small steps are not worth a word."""
    at = NOW - DAY
    for minutes in (0, -4, 10):
        post.append(MESSAGES, record(timestamp=stamp(at + minutes * 60_000)))
    assert told(post) == ([], [])
    post.append(MESSAGES, record(timestamp=stamp(at - 60 * 60_000)), record(timestamp=stamp(at - 50 * 60_000)))
    post.append(MESSAGES, record(timestamp=stamp(NOW + DAY)))
    problems, notes = told(post)
    assert problems == []
    assert [n[:3] for n in notes] == [(MESSAGES, 4, None), (MESSAGES, 6, None)]
    assert "went back" in notes[0][3]
    assert "2 lines" in notes[0][3]
    assert "future" in notes[1][3]


def test_line_numbers_are_those_an_editor_shows(post: Post) -> None:
    """Empty lines and a line longer than any record count; the last line may lack its newline."""
    giant = b'{"id":"' + b"x" * (3 << 20) + b'"}\n'
    post.append(MESSAGES, b"\n\nfirst\n", record(), giant, b"\n", b"second\n", record(), b"third")
    numbers = [p[1] for p in told(post)[0]]
    lines = post.file(MESSAGES).read_bytes().split(b"\n")
    wanted = [n for n, line in enumerate(lines, 1) if line and isinstance(codec.message(line), codec.BadLine)]
    assert numbers == wanted
    assert len(wanted) == 4


def test_memory_grows_by_a_few_bytes_a_message(post: Post) -> None:
    """The doctor keeps only a number of each message in memory, so that it needs a few bytes for each."""

    def peak(count: int) -> int:
        ids = [str(uuid.UUID(int=n, version=4)) for n in range(count)]
        lines = [
            codec.spell_message(Message(id=i, sender="a", recipients=("bob",), timestamp=NOW, content="x" * 4000))
            for i in ids
        ]
        post.file(MESSAGES).write_bytes(b"".join(lines))
        reads = [codec.spell_read(Read(message_id=i, session_id="bob", timestamp=NOW)) for i in ids]
        post.file(READS).write_bytes(b"".join(reads))
        mailbox = Mailbox(str(post.box))
        del ids, lines, reads
        tracemalloc.start()
        try:
            assert list(doctor.log_checks.check_logs(mailbox, archived=True, at_work=lambda: False)) == []
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = 500, 1_500
    assert (peak(many) - peak(few)) / (many - few) < 150


# -- agents -----------------------------------------------------------------------------------------------------------


def test_silent_agents_and_a_missing_steward_are_notes(post: Post) -> None:
    """Alive in the roster and silent for longer than the steward lets it; the steward's own silence beside it."""
    then = NOW - 3 * DAY
    Mailbox(str(post.box), clock=lambda: then).register(Registration(session_id="bob"), "bob")
    problems, notes = told(post)
    assert problems == []
    assert [n[0] for n in notes] == [f"{HEARTBEATS}/bob", "."]
    assert "silent for 72 h" in notes[0][3]
    assert "has no recorded run" in notes[1][3]
    post.ok("steward", "run")
    assert told(post) == ([], [])
    post.file("config.toml").write_text("[steward]\nmax_live = 1\n")
    post.file("config.toml").chmod(0o600)
    post.send("x", "all")
    post.send("x", "all")
    assert told(post) == ([], [])  # it ran just now
    old = (NOW - 2 * DAY) / 1000
    os.utime(post.file(".cache/steward"), (old, old))
    assert "last ran" in told(post)[1][0][3]


# -- the place --------------------------------------------------------------------------------------------------------


def test_a_mailbox_that_git_tracks_is_a_problem(post: Post) -> None:
    """Read from the index of a real repository; not while it is ignored, nor for a name that merely ends alike."""
    repository = post.scratch
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(repository))
    subprocess.run([*git, "init", "-q"], check=True)
    other = repository / "other" / "box" / MESSAGES
    other.parent.mkdir(parents=True)
    other.touch()
    subprocess.run([*git, "add", "other"], check=True)
    assert told(post) == ([], [])
    post.send("x", "all")
    subprocess.run([*git, "add", "--force", "box"], check=True)
    problems, _ = told(post)
    assert [p[:3] for p in problems] == [(MESSAGES, None, None)]
    assert "git rm --cached" in problems[0][3]
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(repository / "linked")], check=True)
    cloned = {"AGENT_MAILBOX_DIR": str(repository / "linked" / "box")}
    result = post.call("doctor", "--json", env=cloned).json
    assert any("git tracks" in p["what"] for p in result["problems"])
    said = next(n["what"] for n in result["notes"] if "your records name no init of it" in n["what"])
    assert said.endswith(f"`agent-mailbox init {repository / 'linked' / 'box'}`")
    apart = repository / "apart"  # as in a submodule, git keeps its own files elsewhere
    subprocess.run(["git", "init", "-q", "--separate-git-dir", str(repository / "kept"), str(apart)], check=True)
    shutil.copytree(post.box, apart / "box")
    subprocess.run(["git", "-C", str(apart), "add", "--force", "box"], check=True)
    result = post.call("doctor", "--json", env={"AGENT_MAILBOX_DIR": str(apart / "box")}).json
    assert any("git tracks" in p["what"] for p in result["problems"])


def test_a_network_disk_is_said_by_the_doctor_and_by_init(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mount that the path is under counts, not one above it nor one that merely begins alike. Other mounts may have
    names in any encoding."""
    table = post.scratch / "mountinfo"
    monkeypatch.setattr(mounts, "MOUNTINFO", str(table))
    root = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n20 1 8:2 / /media/caf\udce9 rw - cifs //host/b\udce4r rw\n"
    line = "22 21 0:40 / {} rw,relatime shared:1 - {} server:/export rw\n"
    told_of = {
        root: False,
        root + line.format(post.scratch, "nfs4"): True,
        root + line.format(post.box, "fuse.sshfs"): True,
        root + line.format(post.scratch, "nfs4") + line.format(post.box, "ext4"): False,
        root + line.format(f"{post.box}-else", "nfs"): False,
        line.format("/", "9p"): True,
        root + line.format(post.scratch, "nfs4") + line.format(post.scratch, "ext4"): False,
        line.format(str(post.scratch)[:-1], "nfs4"): False,
        "": False,
    }
    for text, network in told_of.items():
        table.write_text(text, encoding="utf-8", errors="surrogateescape")
        problems, notes = told(post)
        assert problems == []
        assert ["network file system" in n[3] for n in notes] == [True] * network, ascii(text)
        result = post.call("init", post.box, "--json")
        assert (result.rc, len(result.warnings)) == (0, network)
    table.write_text(line.format(r"/mnt/a\040b\134040\011c\012", "nfs4"))
    assert mounts.point("/mnt/a b\\040\tc\n/box") == "/mnt/a b\\040\tc\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_a_problem(used: Post) -> None:
    """Whatever its mode; no repair takes it."""
    os.chown(used.file(READS), 12345, -1)
    assert [p[:3] for p in told(used)[0]] == [(READS, None, None)]


# -- hooks ------------------------------------------------------------------------------------------------------------


def hook(command: str, *events: str) -> dict[str, Any]:
    """Settings that call the command."""
    events = events or HOOKS
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}] for event in events}}


def settle(directory: Path, settings: object, name: str = "settings.json") -> Path:
    """Write a client's settings into a directory's ``.claude``."""
    path = directory / ".claude" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=2))
    return path


def script(path: Path, first: str = "#!/bin/sh", then: str = "") -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n{then}\n")
    path.chmod(0o755)
    return path


def program(post: Post, does: str = f'exec {sys.executable} -m agent_mailbox "$@"') -> Path:
    """The program on the PATH."""
    path = script(post.scratch / "tools" / "agent-mailbox", then=does)
    post.env["PATH"] = f"{path.parent}:{post.env['PATH']}"
    return path


def test_hooks_that_can_run_are_nothing_wrong(post: Post) -> None:
    """The program on PATH, a shim beside its interpreter, a path with variables in it; other people's hooks."""
    program(post)
    shim = script(post.cwd / "hooks" / "agent-mailbox-hook")
    for command in (
        "agent-mailbox hook Stop",
        f"{shim} Stop",
        '"$CLAUDE_PROJECT_DIR"/hooks/agent-mailbox-hook Stop',
        f"AGENT_MAILBOX_ROLE=x {sys.executable} {shim} Stop",
        "cd /tmp && agent-mailbox hook Stop",
    ):
        settle(post.home, hook(command))
        assert told(post) == ([], []), command


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("agent-mailbox hook Stop", "no agent-mailbox on PATH"),
        ("/gone/agent-mailbox hook Stop", "/gone/agent-mailbox is not there"),
        ("/gone/python -m agent_mailbox hook agent-mailbox", "/gone/python is not there"),
        ("{tools}/broken/agent-mailbox hook Stop", "/gone/venv/bin/python, which is gone"),
        ("{tools}/moved/agent-mailbox hook Stop", "/gone/venv/bin/python, which is gone"),
        ("{tools}/hooks/agent-mailbox-hook Stop", "no agent-mailbox is on PATH"),
        ("$CLAUDE_PROJECT_DIR/hooks/check-mailbox.sh", "hooks/check-mailbox.sh is not there"),
        ("'agent-mailbox hook Stop", "quotes do not match"),
    ],
)
def test_a_hook_that_cannot_run_is_a_problem_at_its_line(post: Post, command: str, said: str) -> None:
    """Its file or its interpreter is gone: sessions get no mail, and nobody says so."""
    tools = post.scratch / "tools"
    script(tools / "broken" / "agent-mailbox", "#!/gone/venv/bin/python")
    script(tools / "moved" / "agent-mailbox")
    script(tools / "moved" / "agent-mailbox-python", "#!/gone/venv/bin/python")
    script(tools / "hooks" / "agent-mailbox-hook")
    post.env["PATH"] = "/usr/bin:/bin"
    path = settle(post.cwd, hook(command.replace("{tools}", str(tools)), "Stop"), "settings.local.json")
    result = post.call("doctor", "--json")
    (problem,) = result.json["problems"]
    assert (problem["file"], problem["repair"]) == (str(path), None)
    assert "agent-mailbox" in path.read_text().splitlines()[problem["line"] - 1] or "check-mailbox" in command
    assert said in problem["what"]
    (note,) = result.json["notes"]
    assert "hooks Stop, but not SessionStart, UserPromptSubmit, " in note["what"]


def test_the_shims_of_this_house_are_known_to_the_doctor() -> None:
    """Every script in ``hooks/`` is looked at as one."""
    from agent_mailbox.clients.checks import settings

    assert set(os.listdir(ROOT / "hooks")) == {*settings.SHIMS, "hooks.json"}


@pytest.mark.parametrize("text", ["not JSON", "[]", '{"hooks": 5}', '{"hooks": {"Stop": [{"hooks": [7]}, 3]}}', ""])
def test_settings_of_any_shape_stop_nothing(post: Post, text: str) -> None:
    """They are the client's and the person's; at most a note."""
    settle(post.home, text)
    problems, notes = told(post)
    assert problems == []
    assert len(notes) == 1 + (not text.startswith("{"))
    assert "no hook of Claude Code calls us" in notes[-1][3]


def test_a_client_without_a_hook_of_ours_is_a_note(post: Post) -> None:
    """Nothing else would tell why no mail is shown; where there is no client, nobody misses it. A matcher that passes
    the shell by is no hook either."""
    assert told(post) == ([], [])
    settle(post.home, hook("/nowhere/another-program --of agents"))
    problems, (note,) = told(post)
    assert problems == []
    assert "no hook of Claude Code calls us" in note[3]
    program(post)
    value = hook("agent-mailbox hook Stop")
    value["hooks"]["PreToolUse"][0]["matcher"] = "Edit|Write"
    settle(post.home, value)
    problems, (note,) = told(post)
    assert problems == []
    assert "but not PreToolUse" in note[3]


@pytest.mark.parametrize(
    ("does", "said"),
    [("exit 0", "it did not refuse"), ("echo broken >&2; exit 3", "exit code 3 (broken)"), ("echo '{}'", "not refuse")],
)
def test_a_hook_that_fails_without_a_word_is_a_problem(post: Post, does: str, said: str) -> None:
    """It is tried: the client would go on and tell nobody. Nothing is written by that."""
    program(post, does)
    path = settle(post.home, hook("agent-mailbox hook Stop"))
    before = sorted(post.scratch.rglob("*"))
    (problem,), notes = told(post)
    assert (post.box / problem[0]).resolve() == path
    assert "fails silently" in problem[3]
    assert said in problem[3]
    assert notes == []
    assert sorted(post.scratch.rglob("*")) == before


def test_a_program_that_a_project_names_is_not_tried(post: Post) -> None:
    """A cloned repository must not have the doctor run what it brought."""
    ran = post.scratch / "ran"
    shim = script(post.cwd / "hooks" / "agent-mailbox-hook", then=f"touch {ran}")
    script(post.cwd / ".venv/bin/python")
    program(post)
    settle(post.cwd, hook(f"{shim} Stop"))
    assert told(post) == ([], [])
    assert not ran.exists()


def test_another_tool_s_hook_that_may_change_what_our_rules_let_pass_is_a_note(post: Post) -> None:
    """Once something is withheld from an agent. Ours are none of them, nor are hooks of other events. The lead that
    withholds it is told, too."""
    program(post)
    others = {"PreToolUse": [{"hooks": [{"type": "command", "command": "rewrite\x1b it"}]}]}
    quiet = {"PostToolUse": [{"hooks": [{"type": "command", "command": "tidy"}]}]}
    settings = hook("agent-mailbox hook Stop")
    settle(post.cwd, {**settings, "hooks": {**settings["hooks"], **others, **quiet}}, "settings.local.json")
    post.register("worker", "--lead", "boss")
    assert not [note for note in told(post)[1] if "another tool's hook" in note[3]]
    processes.note_whereabouts(
        "worker", processes.Whereabouts(directory=str(post.cwd), client="claude"), str(post.user_state)
    )
    ordered = post.call("control", "policy", "worker", "--deny", "Bash(touch:*)", "--session", "boss")
    assert ordered.stderr.count("has a hook that may change a call of worker after the rules judged it") == 1
    problems, notes = told(post)
    assert problems == []
    (named,) = [note[3] for note in notes if "another tool's hook" in note[3]]
    assert named.startswith("rewrite\\x1b it: another tool's hook, which may change a command")


def test_what_hooks_alone_keep_an_agent_from_is_a_note(post: Post) -> None:
    """Until the client's own rules ask; the agent is gone; or nothing is withheld from it."""

    def found() -> tuple[list[tuple[Any, ...]], list[str]]:
        problems, notes = told(post)
        return problems, [note[3] for note in notes if not note[3].startswith("nothing enforces")]

    program(post)
    settle(post.cwd, hook("agent-mailbox hook Stop"), "settings.local.json")
    post.register("worker", "--lead", "boss")
    assert found() == ([], [])
    post.ok("control", "policy", "worker", "--deny", "Bash(rm:*)", "--session", "boss")
    problems, (note,) = found()
    assert problems == []
    assert "worker: kept from something by our hooks alone" in note
    assert "--closed" in note
    closed = {**hook("agent-mailbox hook Stop"), "permissions": {"ask": list(FLOOR)}}
    settle(post.cwd, closed, "settings.local.json")
    assert found() == ([], [])
    settle(post.cwd, hook("agent-mailbox hook Stop"), "settings.local.json")
    post.ok("control", "policy", "worker", "--allow", "Bash(ls:*)", "--session", "boss")
    post.ok("control", "mode", "worker", "acceptEdits", "--session", "boss")
    assert found() == ([], [])
    post.ok("control", "mode", "worker", "locked-down", "--session", "boss")
    assert len(found()[1]) == 1
    post.ok("roster", "retire", "worker")
    assert found() == ([], [])


def test_hooks_that_the_client_passes_by_are_told(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turned off, or the administrator's alone: problems. A project nobody said to trust: a note, until somebody does,
    there or above."""
    program(post)
    path = settle(post.cwd, {**hook("agent-mailbox hook Stop"), "disableAllHooks": True}, "settings.local.json")
    (problem,), notes = told(post)
    assert ((post.box / problem[0]).resolve(), notes) == (path, [])
    assert "disableAllHooks" in problem[3]
    settle(post.cwd, hook("agent-mailbox hook Stop"), "settings.local.json")
    managed = post.scratch / "managed.json"
    managed.write_text('{"allowManagedHooksOnly": true}')
    with monkeypatch.context() as administrator:
        administrator.setattr("agent_mailbox.clients.checks.hook_sources.MANAGED", (str(managed),))
        (problem,), notes = told(post)
        assert "allowManagedHooksOnly" in problem[3]
    state = post.home / ".claude.json"
    for projects, trusted in (
        ({}, False),
        ({str(post.cwd): {"hasTrustDialogAccepted": False}}, False),
        ({str(post.cwd): {"hasTrustDialogAccepted": True}}, True),
        ({str(post.scratch): {"hasTrustDialogAccepted": True}}, True),
        ([], True),
    ):
        state.write_text(json.dumps({"projects": projects}))
        problems, notes = told(post)
        assert problems == []
        assert ["is not trusted" in note[3] for note in notes] == [True] * (not trusted), projects
    settle(post.home, hook("agent-mailbox hook Stop"))
    (post.cwd / ".claude/settings.local.json").unlink()
    state.write_text('{"projects": {}}')
    assert told(post) == ([], [])  # the user's hooks are asked about by the client wherever it starts


def test_in_the_home_directory_the_user_s_hooks_are_the_user_s(post: Post) -> None:
    """Its settings are no project's that might lack trust, and count once."""
    program(post)
    settle(post.home, hook("agent-mailbox hook Stop"))
    (post.home / ".claude.json").write_text('{"projects": {}}')
    answer = post.ok("doctor", cwd=post.home)
    assert answer == {"ok": True, "problems": []}


def test_an_enabled_plugin_counts_and_a_disabled_one_does_not(post: Post) -> None:
    """The doctor counts an enabled plugin as an installation, but no disabled one. It notes a plugin beside
    settings."""
    tools = program(post)
    root = post.home / ".claude/plugins/cache/m/agent-mailbox/1"
    script(root / "hooks/agent-mailbox-hook", then=f'exec {tools} hook "$1"')
    (root / "hooks/hooks.json").write_text(json.dumps(hook('"${CLAUDE_PLUGIN_ROOT}"/hooks/agent-mailbox-hook Stop')))
    entry = {"scope": "user", "installPath": str(root)}
    listed = {"version": 2, "plugins": {"agent-mailbox@m": [entry], "x@m": [{}, 5], "y@m": 7}}
    (post.home / ".claude/plugins/installed_plugins.json").write_text(json.dumps(listed))
    enabled = {"enabledPlugins": {"agent-mailbox@m": True, "x@m": True, "y@m": True}}
    settle(post.home, enabled)
    assert told(post) == ([], [])
    settle(post.home, {**hook("agent-mailbox hook Stop"), **enabled})
    problems, (note,) = told(post)
    assert problems == []
    assert f"{', '.join(HOOKS)} call us 2 times, in this plugin" in note[3]
    assert "agent-mailbox uninstall claude-code --user" in note[3]
    settle(post.cwd, {"enabledPlugins": {"agent-mailbox@m": False}})
    assert told(post) == ([], [])


def test_a_file_that_is_none_hides_no_other_finding(used: Post) -> None:
    """A directory in the place of a log is told like anything else, and the rest is looked at all the same."""
    used.file(READS).unlink()
    used.file(READS).mkdir(0o700)
    rollbook(used).write_bytes(b"?")
    settle(used.home, hook("/gone/agent-mailbox hook Stop"))
    problems, notes = told(used)
    assert any(p[0] == READS and p[3].startswith("a directory is in the place") for p in problems)
    assert any("cannot run" in p[3] for p in problems)
    assert any(n[0].endswith("/rollbook") for n in notes)


def test_the_doctor_s_look_makes_no_file(post: Post) -> None:
    """The doctor makes no file while it looks, not even a derived one."""
    post.append(ROSTER, {"event": "register", "session_id": "bob", "timestamp": stamp()})
    post.append(MESSAGES, record(recipient="bob"))
    post.file(ROSTER).chmod(0o600)
    before = sorted(post.box.rglob("*"))
    assert told(post)[1] == []  # any program may register an agent without a client
    assert sorted(post.box.rglob("*")) == before


def test_a_part_that_cannot_be_looked_at_is_a_problem_and_the_others_are_checked(
    used: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may fail at one file alone."""
    mailbox = Mailbox(str(used.box))

    def fail(*_: object) -> Iterator[Problem]:
        yield from ()
        raise StorageFailed("cannot read attachments: Input/output error", "look at the disk")

    used.append(MESSAGES, b"{torn\n")
    monkeypatch.setattr(doctor.archive_checks, "check_attachments", fail)
    found = doctor.problems_among(doctor.examine_mailbox(mailbox))
    said = [(os.path.basename(one.file), one.what) for one in found]
    assert (used.box.name, "cannot read attachments: Input/output error; look at the disk") in said
    assert MESSAGES in dict(said)


# -- repair -----------------------------------------------------------------------------------------------------------


def test_a_repair_killed_at_any_step_is_completed_by_the_next_and_loses_nothing(used: Post) -> None:
    """Torn lines in every log, modes, a stamp and a cursor that lie: afterwards only records and foreign lines are
    there, each as often as before; each torn line is kept beside its log, once. A last record that another program
    left without its newline is among them."""
    for name in (MESSAGES, READS, ROSTER):
        used.append(name, b'{"id":"torn\n', b"\0\0\n", b"foreign\n")
    last = record(recipient="bob", content="Grüße")
    used.append(MESSAGES, json.dumps(last, ensure_ascii=False).encode())
    used.append(READS, json.dumps(read_of(last["id"], "cat")).encode())
    used.file(READS).chmod(0o644)
    wanted = {name: [x for x in used.lines(name) if x not in (b'{"id":"torn', b"\0\0")] for name in (MESSAGES, READS)}
    torn = {
        name: [
            {"position": used.file(name).read_bytes().index(b'{"id":"torn'), "text": '{"id":"torn'},
            {"position": used.file(name).read_bytes().index(b"\0\0\n"), "zeros": 2},
        ]
        for name in (MESSAGES, READS, ROSTER)
    }
    everything = {name: stored(used.box, name) for name in (MESSAGES, READS)}
    used.file(f"{READS}.torn").write_bytes(b'{"position":1,"te')  # what a repair leaves that dies within its write
    for _ in killed(used, "doctor", "--repair", ends=3):
        mailbox = Mailbox(str(used.box))
        assert {name: stored(used.box, name) for name in (MESSAGES, READS)} == everything
        doctor.repair_safely(mailbox)
        remaining = doctor.problems_among(doctor.examine_mailbox(mailbox))
        assert [(os.path.basename(p.file), p.repair) for p in remaining] == [
            (n, None) for n in (MESSAGES, READS, ROSTER)
        ]
        for name, lines in wanted.items():
            assert used.file(name).read_bytes() == b"\n".join(lines) + b"\n"
        beside = {name: used.file(f"{name}.torn").read_bytes().splitlines() for name in torn}
        kept = {name: [json.loads(x) for x in lines if x.endswith(b"}")] for name, lines in beside.items()}
        assert {name: [{**one, "cut": None} for one in lines] for name, lines in kept.items()} == {
            name: [{**one, "cut": None} for one in lines] for name, lines in torn.items()
        }
        assert not used.file(".cache/quiet/bob").exists()
        before = used.snapshot()
        doctor.repair_safely(mailbox)
        assert used.snapshot() == before


def stored(box: Path, name: str) -> Counter[bytes]:
    """How often each record's line is anywhere, live or archived."""
    months = {p for p in (box / ARCHIVE).glob("[0-9]*.jsonl") if p.name.endswith("-reads.jsonl") == (name == READS)}
    lines = [line for p in (box / name, *months) if p.exists() for line in p.read_bytes().split(b"\n")]
    decode = codec.read if name == READS else codec.message
    return Counter(line for line in lines if not isinstance(decode(line), codec.BadLine))


def test_each_name_of_derived_files_is_known_as_the_mailbox_s(used: Post) -> None:
    """A project may have a ``.cache`` of its own in the same place: by the names it is known what may go."""
    there = {*os.listdir(used.file(".cache")), *leftovers.DERIVED, clock_signs.DOUBT, rotation.LAST_RUN}
    assert {"quiet", "cursors", "edits", "projection.sqlite"} <= there
    assert [name for name in there if not own_files.is_derived(name)] == []


def test_a_repair_says_each_thing_that_it_changed(used: Post) -> None:
    """``doctor --repair`` names each torn line that it cut and the file that keeps it. A second repair names
    nothing."""
    at = len(used.file(MESSAGES).read_bytes())
    used.append(MESSAGES, b'{"id":"torn\n', b"\0\0\n")
    used.append(MESSAGES, record(recipient="bob"))
    kept = str(used.file(f"{MESSAGES}.torn"))
    answer = used.ok("doctor", "--repair")
    changed = {(os.path.basename(one["file"]), one["done"], one["kept"]) for one in answer["repaired"]}
    assert {
        (MESSAGES, f"cut a torn line of 11 bytes at byte {at}; {kept} keeps it", kept),
        (MESSAGES, f"cut a torn line of 2 bytes at byte {at + 12}; {kept} keeps it", kept),
    } <= changed
    used.append(MESSAGES, b'{"id":"again\n')
    said = used.call("doctor", "--repair").stdout
    assert f"repaired {used.file(MESSAGES)}: cut a torn line of 12 bytes" in said
    assert said.endswith("no other problems found\n")
    assert used.ok("doctor", "--repair")["repaired"] == []


def test_a_repair_beside_a_steward_is_busy(used: Post) -> None:
    """Both rewrite logs; one waits for the other, and says for whom."""
    mailbox = Mailbox(str(used.box), wait=0)
    with rotation.alone(mailbox.archive, 0):
        code = (
            "import sys; from agent_mailbox import Busy, Mailbox\n"
            "from agent_mailbox.upkeep import doctor\n"
            "try: doctor.repair_safely(Mailbox(sys.argv[1], wait=0))\n"
            "except Busy as error: print(error)"
        )
        assert "another steward, backup or repair is at work" in used.python(code, used.box).stdout
    assert told(used, "--repair") == ([], [])


def test_the_doctor_refuses_where_there_is_no_mailbox(post: Post) -> None:
    """Exit 1, as every command."""
    refused(post.call("doctor", env={"AGENT_MAILBOX_DIR": str(post.scratch / "none")}), 1, "no mailbox")


def test_a_session_s_mail_is_found_alike_in_small_and_large_logs(used: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a size nothing is folded whole: the same stamps and cursors are found to lie."""
    from agent_mailbox.upkeep.doctor import derived_checks

    used.send("ann", "bob")
    Mailbox(str(used.box)).logs.stamp_files.stamp("bob", NOW)
    small = told(used)
    monkeypatch.setattr(derived_checks, "FOLDED", 0)
    assert told(used) == small
    assert len(small[0]) == 1
    sent = Mailbox(str(used.box)).send(Draft(sender="x", to=("bob",), content="ours again"))
    assert sent.message.id in used.check("bob")
    assert told(used) == ([], [])
