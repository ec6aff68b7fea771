"""The append-only log: what an append may do to bytes that are already there, and what reading makes of any bytes."""

from __future__ import annotations

import errno
import json
import os
import resource
import threading
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_mailbox import Busy, Draft, Mailbox, StorageFailed
from agent_mailbox.core import codec, proofs
from agent_mailbox.mailbox.followed_mail import FollowedMail
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.files import lines as reading
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.log import replacement
from agent_mailbox.store.log.log import HeldLog, Log
from agent_mailbox.store.log.logs import OpenLogs
from agent_mailbox.store.log.stamps import StampFiles
from tests.helpers import MESSAGES, PATIENCE, Post, Program, record

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def lines(path: Path) -> list[bytes]:
    """The log's lines, without positions."""
    return [line for _, line in Log(str(path)).lines()]


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_a_line_of_any_size_is_seen_by_every_reader(post: Post, beside: int) -> None:
    """Lines end at, before or behind each border; only a line over the limit is no record, and it hides nothing."""
    box, sent = OpenMailbox(str(post.box)), dict[str, str]()
    with FollowedMail(box.logs) as followed:
        for border in (codec.MAX_LINE, reading.CHUNK // 2, 65536, 4096, 512):  # the first fills what is read at once
            head = json.dumps(record(content="")).encode()
            text = "." * (border + beside - len(head))
            line = head.replace(b'"content": "', b'"content": "' + text.encode())
            box.logs.messages.append([line + b"\n"])
            if len(line) <= codec.MAX_LINE:
                sent[json.loads(line)["id"]] = text
            sent[post.send("a", "all", "behind it")] = "behind it"
        assert {m.id: m.content for m in followed.read_news()} == sent
    exported = [json.loads(line) for line in post.call("export").stdout.splitlines()]
    assert {one["id"]: one["content"] for one in exported if "content" in one} == sent
    for words in (("check", "--session", "b", "--peek"), ("history", "--all")):
        assert {m["id"]: m["content"] for m in post.ok(*words, "--limit", "0")["messages"]} == sent, words


# -- appending --------------------------------------------------------------------------------------------------------


def test_a_last_line_cut_at_any_byte_swallows_nothing(post: Post) -> None:
    """Wherever a writer was killed, the next append is on a line of its own and the torn rest is skipped."""
    mailbox = Mailbox(str(post.box))
    mailbox.send(Draft(sender="a", to=("all",), content="first"))
    whole = post.file(MESSAGES).read_bytes()
    mailbox.send(Draft(sender="a", to=("all",), content="the last, with “two” and three byte letters €"))
    last = post.file(MESSAGES).read_bytes()[len(whole) :]
    for cut in range(1, len(last) - 1):
        post.file(MESSAGES).write_bytes(whole + last[:cut])
        mailbox.send(Draft(sender="a", to=("all",), content="next"))
        assert lines(post.file(MESSAGES))[1] == last[:cut]
        assert [item.message.content for item in mailbox.peek("b")] == ["first", "next"], cut


def test_a_whole_record_that_lost_its_newline_still_counts(post: Post) -> None:
    """It gets its newline, nothing else; both records are there, and the doctor has nothing to say."""
    first, second = post.send("a", "all", "first"), record("a")
    post.append(MESSAGES, second)
    before = post.file(MESSAGES).read_bytes()
    post.file(MESSAGES).write_bytes(before[:-1])
    assert post.unread("b") == [first, second["id"]]
    third = post.send("a", "all", "third")
    assert post.file(MESSAGES).read_bytes().startswith(before)
    assert post.unread("b") == [first, second["id"], third]
    assert post.doctor() == []


@pytest.mark.parametrize("start", [b"", b'{"id":"cut'], ids=["hole", "torn before the hole"])
def test_a_tail_of_zeros_is_isolated_and_reported(post: Post, start: bytes) -> None:
    """Zeros that a crash of the system leaves hide no record. The doctor reports them once, with their line, as
    mendable."""
    first = post.send("a", "all", "first")
    post.append(MESSAGES, start + b"\0" * 5000)
    second = post.send("a", "all", "second")
    assert post.unread("b") == [first, second]
    assert [(p["line"], p["repair"]) for p in post.doctor()] == [(2, "remove torn line")]


def test_foreign_lines_are_skipped_kept_and_reported(post: Post) -> None:
    """CRLF records are records; what is none is neither shown, nor lost, nor merged; every bad line is reported."""
    foreign = record(content="carriage return")
    post.append(MESSAGES, b"hello\r\n\r\n \n[1, 2]\r\n\xff\xfe\n")
    post.append(MESSAGES, str(foreign).replace("'", '"').replace("None", "null").encode() + b"\r\n")
    own = post.send("a", "all")
    assert post.unread("b") == [foreign["id"], own]
    problems = post.doctor()
    assert [p["line"] for p in problems] == [1, 2, 3, 4, 5]
    assert {p["repair"] for p in problems} == {None}
    assert post.file(MESSAGES).read_bytes().startswith(b"hello\r\n\r\n \n[1, 2]\r\n\xff\xfe\n")


def test_the_append_goes_to_the_file_that_is_at_the_path(tmp_path: Path) -> None:
    """A writer that opened the log before it was replaced, and waited for the lock, writes to the new one."""
    path = tmp_path / "log"
    path.write_bytes(b"old\n")
    opened, failed = threading.Event(), []

    class Watched(HeldLog):
        def _open(self) -> int:
            fd = super()._open()
            opened.set()
            return fd

    def write() -> None:
        try:
            with Watched(Log(str(path))) as log:
                log.append([b"late\n"])
        except BaseException as error:
            failed.append(error)

    with FileLock(str(path)):
        writer = threading.Thread(target=write)
        writer.start()
        assert opened.wait(PATIENCE)
        (tmp_path / "new").write_bytes(b"new\n")
        os.rename(tmp_path / "new", path)
    writer.join(PATIENCE)
    assert not failed
    assert path.read_bytes() == b"new\nlate\n"


FULL = """
import resource, sys
sys.dont_write_bytecode = True  # Python would keep what it could write of a module
from agent_mailbox.errors import StorageFailed
from agent_mailbox.store.log.log import Log
path, room, tail = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
import os
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + room,) * 2)
try:
    Log(path).append([b"y" * 300 + b"\\n", b"z" * 300 + b"\\n"])
except StorageFailed as error:
    print(error)
"""


@pytest.mark.parametrize("tail", [b"", b"torn"])
@pytest.mark.parametrize("room", [0, 1, 350])
def test_a_failed_write_takes_back_only_its_own_bytes(program: Program, tail: bytes, room: int) -> None:
    """A disk that fills up in the midst of a batch leaves the log as it was, byte for byte, and says so."""
    path = program.scratch / "log"
    path.write_bytes(b"x" * 1000 + b"\n" + tail)
    before = path.read_bytes()
    result = program.python(FULL, path, room, "")
    assert result.rc == 0, result
    assert os.strerror(errno.EFBIG) in result.stdout
    assert path.read_bytes() == before


def test_a_writer_waits_for_its_log_as_long_as_the_log_says_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer with more patience waits longer."""
    waited, log = list[float](), Log(str(tmp_path / "log"), 5)
    monkeypatch.setattr(system, "monotonic", lambda: 0.0)
    monkeypatch.setattr(system, "flock_within", lambda _, seconds: waited.append(seconds))
    with FileLock(log.path):
        for patience in (0, 3, 9):
            with pytest.raises(Busy):
                log.append([b"x\n"], patience=patience)
    assert waited == [5, 5, 9]


def test_a_log_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    """Neither through a link, nor into a directory, nor into a FIFO (which would block): an error that names it."""
    (tmp_path / "target").write_bytes(b"precious\n")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "dangling", "directory", "fifo"):
        with pytest.raises(StorageFailed, match=name):
            Log(str(tmp_path / name)).append([b"line\n"])
        with pytest.raises(StorageFailed, match=name):
            list(Log(str(tmp_path / name)).lines())
    assert (tmp_path / "target").read_bytes() == b"precious\n"
    assert not (tmp_path / "nowhere").exists()


def test_a_log_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """0600 at creation, whatever the umask allows."""
    before = os.umask(0)
    try:
        Log(str(tmp_path / "log")).append([b"line\n"])
    finally:
        os.umask(before)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    assert list(Log(str(tmp_path / "never")).lines()) == []
    assert not (tmp_path / "never").exists()


class Intruder(StampFiles):
    """Stamps beside which a program without the lock writes, just after our writer looked at the log's end."""

    def __init__(self, path: Path, pieces: list[bytes]) -> None:
        super().__init__(str(path.parent / "cache"))
        self.path, self.pieces = path, pieces

    def leave(self, path: str, inode: int, size: int, epoch: int, start: int | None = None) -> None:
        super().leave(path, inode, size, epoch, start)
        if self.pieces:
            with self.path.open("ab") as file:
                file.write(self.pieces.pop(0))


@pytest.mark.parametrize("end", [b"", b"\n", b'{"torn'])
@pytest.mark.parametrize("pieces", [[b'{"to'], [b'{"to', b'{"rn'], [b'{"whole":1}\n'], [b"\n"], [b'{"a":1}\n{"to']])
def test_a_torn_line_left_between_our_look_and_our_write_swallows_nothing(
    tmp_path: Path, end: bytes, pieces: list[bytes]
) -> None:
    """An acknowledged record is once, on a line of its own, however a program without the lock cuts in."""
    path = tmp_path / "log"
    path.write_bytes(b"before" + end)
    Log(str(path), stamp_files=Intruder(path, list(pieces))).append([b"first\n", b"second\n"])
    there = path.read_bytes().split(b"\n")
    assert (there.count(b"first"), there.count(b"second")) == (1, 1)
    assert there[-1] == b""


# -- reading ----------------------------------------------------------------------------------------------------------


def test_a_line_of_ten_mebibytes_costs_bounded_memory_and_hides_nothing(tmp_path: Path) -> None:
    """Only the first bytes of it come out, too many for any decoder; what is around it is whole."""
    path = tmp_path / "log"
    giant = b'{"content":"' + b"x" * (10 * MIB) + b'"}'
    path.write_bytes(b"before\n" + giant + b"\nafter\n")
    tracemalloc.start()
    try:
        sizes = [(position, len(line)) for position, line in Log(str(path)).lines()]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sizes == [(0, 6), (7, codec.MAX_LINE + 1), (8 + len(giant), 5)]
    assert peak < 8 * MIB
    assert lines(path)[::2] == [b"before", b"after"]


def reference(data: bytes, most: int) -> list[tuple[int, bytes]]:
    """What the log's lines are, said the plain way."""
    found, position = [], 0
    for line in data.split(b"\n"):
        if line:
            found.append((position, line[: most + 1]))
        position += len(line) + 1
    return found


def test_logs_that_are_replaced_at_each_look_are_busy(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads that were opened behind another log would be of other messages."""
    logs = Mailbox(str(post.box)).logs
    opened = logs.reads.open

    def replaced() -> int | None:
        messages = post.file(MESSAGES)
        new = messages.with_name("new")
        new.write_bytes(messages.read_bytes())
        new.replace(messages)
        return opened()

    monkeypatch.setattr(logs.reads, "open", replaced)
    with pytest.raises(Busy, match="is replaced faster than it can be read"), OpenLogs(logs):
        pass


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.lists(st.sampled_from([b"a", b"bb", b"\n", b"c" * 9, b"\0"])).map(b"".join), chunk=st.integers(1, 12))
def test_lines_and_positions_do_not_depend_on_how_the_file_is_read(tmp_path: Path, data: bytes, chunk: int) -> None:
    """Whatever is in the file and wherever a read ends: the same lines, each at its position, from any of them."""
    path = tmp_path / "log"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "CHUNK", chunk)
        patch.setattr(reading, "MAX_LINE", 8)
        found = list(Log(str(path)).lines())
        assert found == reference(data, 8)
        for place, (position, _) in enumerate(found):
            assert list(Log(str(path)).lines(position)) == found[place:]


def test_a_log_of_many_descriptors_worth_of_reads_leaks_none(tmp_path: Path) -> None:
    """Readers that stop half way, and appends that fail, give their descriptors back."""
    path = tmp_path / "log"
    Log(str(path)).append([b"one\n", b"two\n"])
    (tmp_path / "directory").mkdir()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    here = len(os.listdir("/dev/fd"))
    for _ in range(here + 64):
        next(iter(Log(str(path)).lines()))
        with pytest.raises(StorageFailed):
            Log(str(tmp_path / "directory")).append([b"line\n"])
        with pytest.raises(KeyError), Log(str(path)).held():
            raise KeyError
    assert len(os.listdir("/dev/fd")) <= here + 1
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limit


@pytest.mark.parametrize("stamp_files", [True, False])
def test_lines_that_are_written_again_open_and_name_the_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stamp_files: bool
) -> None:
    """However many they are; without a note of the log's end there is no name to make durable."""
    path = tmp_path / "log.jsonl"
    log = Log(str(path), stamp_files=StampFiles(str(tmp_path / ".cache")) if stamp_files else None)
    path.write_bytes(b"".join(b"%d\n" % n for n in range(50)))
    kept = path.read_bytes()
    written: list[tuple[int, int]] = []
    named: list[str] = []
    monkeypatch.setattr(system, "pwrite", lambda fd, data, at: written.append((fd, at)) or len(data))
    monkeypatch.setattr(system, "sync_directory", named.append)
    with log.held() as held:
        held.sync(held.lines())
    assert len(written) == 50
    assert len({fd for fd, _ in written}) == 1
    assert named == [str(tmp_path)] * stamp_files
    assert path.read_bytes() == kept


def test_the_name_of_a_log_that_another_made_is_durable_before_our_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign program never syncs it, and a killed steward may not have. Our note of the end spares the next one."""
    path = tmp_path / "log.jsonl"
    log = Log(str(path), stamp_files=StampFiles(str(tmp_path / ".cache")))
    path.write_bytes(b"theirs\n")
    named: list[tuple[str, bytes]] = []
    monkeypatch.setattr(system, "sync_directory", lambda place: named.append((place, path.read_bytes())))
    log.append([b"ours\n"])
    log.append([b"more\n"])
    assert named == [(str(tmp_path), b"theirs\n")]


def test_a_replacement_whose_sync_fails_keeps_what_was_written_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steward fails; the old file has no name any more, so no later run could fetch the late line."""
    log = Log(str(tmp_path / MESSAGES))
    log.append([b"early\n"])

    def refuse(_: str) -> None:
        monkeypatch.undo()
        raise OSError(errno.EIO, "broken")

    with log.held() as held:
        os.write(held.fd, b"late\n")
        monkeypatch.setattr(system, "sync_directory", refuse)
        with pytest.raises(StorageFailed):
            replacement.replace(held, [b"early"], len(b"early\n"))
    assert (tmp_path / MESSAGES).read_bytes() == b"early\nlate\n"


def test_the_end_of_a_log_is_noted_only_if_its_name_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note that said so wrongly would spare the next writer the sync that the name needs."""
    path, stamps = tmp_path / MESSAGES, StampFiles(str(tmp_path / ".cache"))
    path.write_bytes(b"theirs\n")
    (tmp_path / ".cache").mkdir()

    def fail(_: str) -> None:
        raise OSError(errno.EIO, "cannot sync")

    with monkeypatch.context() as failing:
        failing.setattr(system, "sync_directory", fail)
        stamps.vouch([])
        assert stamps.ended(str(path)) is None
    stamps.vouch([])
    assert stamps.ended(str(path)) is not None


def test_a_log_that_is_gone_is_at_its_path_for_nobody_who_has_it_open(tmp_path: Path) -> None:
    """A file that was replaced is another one."""
    path = tmp_path / "log.jsonl"
    log = Log(str(path))
    assert log.is_at_path(None)
    path.write_bytes(b"one\n")
    assert not log.is_at_path(None)
    fd = log.open()
    assert log.is_at_path(fd)
    path.unlink()
    assert not log.is_at_path(fd)
    path.write_bytes(b"another\n")
    assert not log.is_at_path(fd)
    assert fd is not None
    os.close(fd)


def test_a_seal_is_taken_off_whatever_blanks_are_behind_it() -> None:
    """Foreign programs may add some, and the longest seal is no shorter for them."""
    proof = proofs.of_session("s" * 128)
    sealed = proofs.begin_seal(b'{"id":"m"}', b"k" * 16, 10**18, 10**18, str(proof)) + b"0" * proofs.MAC_DIGITS
    for blanks in (b"", b"\n", b" \t\r\n" * 99):
        assert proofs.remove_seal(sealed + proofs.SEAL_END + blanks) == b'{"id":"m"}'


def test_a_place_in_a_log_goes_back_for_no_line_that_lost_its_newline(tmp_path: Path) -> None:
    """Lines that another program wrote over count as read; the next whole line is new."""
    path, place = tmp_path / "log.jsonl", reading.LinePlace()
    path.write_bytes(b"one\ntwo\n")
    fd = os.open(path, os.O_RDONLY)
    assert [line for _, line in place.lines(fd)] == [b"one", b"two"]
    with path.open("r+b") as file:
        file.write(b"one\ntwo?three")
    assert [*place.lines(fd)] == []
    with path.open("ab") as file:
        file.write(b"\nfour\n")
    assert [line for _, line in place.lines(fd)] == [b"three", b"four"]
    os.close(fd)
