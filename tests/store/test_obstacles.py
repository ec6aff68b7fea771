"""Trying whether files can be made leaves nothing, and harms nothing that is there."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Request
from agent_mailbox.errors import MailboxError, StorageFailed
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.store.files import mounts, small_files, system
from agent_mailbox.store.files.board import Board
from agent_mailbox.store.files.paths import MESSAGES
from agent_mailbox.upkeep.doctor import obstacles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers import Post


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system on which every file has a name, as on macOS and on network file systems."""
    monkeypatch.setattr(system, "O_TMPFILE", 0, raising=False)


@pytest.mark.usefixtures("named")
def test_no_link_in_the_place_of_the_trial_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever name is tried next: another program may have guessed it. What the link names keeps its content."""
    kept, box = tmp_path / "kept", tmp_path / "box"
    kept.write_text("of the person")
    box.mkdir()
    monkeypatch.setattr(system, "urandom", bytes)
    for name in (".agent-mailbox-doctor~", f".agent-mailbox-doctor-{bytes(8).hex()}~"):
        (box / name).symlink_to(kept)
    there = {*os.listdir(box)}
    assert obstacles.to_create(str(box)) is not None
    assert kept.read_text() == "of the person"
    assert {*os.listdir(box)} == there


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another user")
def test_an_error_of_the_system_is_told_with_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's file is named as theirs; whatever else closes one's own is told as the system says it."""
    (mine := tmp_path / "mine").touch()
    (theirs := tmp_path / "theirs").touch()
    os.chown(theirs, 65534, -1)

    def told(path: Path, code: int) -> tuple[str, str, bool]:
        def fails(*_: object) -> int:
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr(system, "open", fails)
            found = obstacles.to_append(str(path))
        assert found is not None
        assert found.path == str(path)
        return found.why, found.repair.partition(str(path))[0], found.passes

    assert told(theirs, errno.EACCES) == ("another user's (uid 65534)", "run `sudo chown -R 0 ", False)
    assert told(mine, errno.EACCES) == ("not to be opened (Permission denied)", "look at it with `ls -ld ", False)
    assert told(theirs, errno.EIO)[0] == "not to be opened (Input/output error)"
    assert told(mine, errno.EPERM)[0] == "not to be opened (Operation not permitted)"
    point = mounts.point(str(mine))
    assert told(mine, errno.EROFS)[:2] == ("on a read-only file system", f"run `sudo mount -o remount,rw {point}`")
    assert told(mine, errno.EDQUOT)[0] == "without room: your quota is used up"
    assert told(mine, errno.ENOSPC)[::2] == ("without room: its file system is full, and no line can be added", True)


@pytest.mark.usefixtures("named")
def test_two_that_try_at_once_find_nothing_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A doctor tries the whole directory while a steward is about to remove the file that it tried with."""
    real, found = system.unlink, []

    def beside(path: str) -> None:
        monkeypatch.setattr(system, "unlink", real)
        found.append(obstacles.to_create(str(tmp_path)))
        real(path)

    monkeypatch.setattr(system, "unlink", beside)
    found.append(obstacles.to_create(str(tmp_path)))
    assert found == [None, None]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", obstacles.FULL)
def test_a_full_disk_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The steward fails there, and does not say that it did what it could; what stays until a person acts is told."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(system, "write_whole", refuse)
    full = obstacles.to_create(str(tmp_path))
    assert full is not None
    assert full.passes
    tmp_path.chmod(0o500)
    closed = obstacles.to_create(str(tmp_path))
    assert closed is not None
    assert not closed.passes
    assert system.marks(str(tmp_path / "none")) == "", "of what cannot be opened no mark is known"
    assert obstacles.to_create(str(tmp_path / ("long" * 100))) is not None


def test_the_name_of_a_file_that_must_be_whole_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key: its directory is synced once its last name is there, and no other is."""
    named = list[tuple[str, list[str]]]()
    monkeypatch.setattr(system, "sync_directory", lambda place: named.append((place, os.listdir(place))))
    small_files.make_whole_file(str(tmp_path / "key"), b"x")
    assert named == [(str(tmp_path), ["key"])]


def test_a_file_that_must_be_whole_and_cannot_be_linked_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without links: the error names the file, which nobody takes for made."""

    def refuse(*_: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(system, "link", refuse)
    with pytest.raises(StorageFailed, match=f"cannot make {tmp_path}/key"):
        small_files.make_whole_file(str(tmp_path / "key"), b"x")
    assert not (tmp_path / "key").exists()


def test_every_small_file_is_its_user_s_alone(tmp_path: Path) -> None:
    """The file system lets its maker alone read it, whatever the umask allows."""
    before = os.umask(0)
    try:
        small_files.replace_file(str(tmp_path / "replaced"), b"x")
        (tmp_path / "once more~").touch(0o600)  # as one that was killed leaves it
        small_files.replace_file(str(tmp_path / "once more"), b"x")
        small_files.make_file(str(tmp_path / "made"), b"x")
        small_files.make_whole_file(str(tmp_path / "whole"), b"x")
        for place in (tmp_path, tmp_path / "below", tmp_path / "beside"):
            small_files.write_if_possible(str(place / "written"), b"x")
            small_files.save_derived(str(place / "derived"), b"x")
        os.close(small_files.open_file(str(tmp_path / "opened"), os.O_CREAT | os.O_RDWR))
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert {name for name, mode in found.items() if mode != 0o600} == {"below", "beside"}
    assert {found["below"], found["beside"]} == {0o700}
    assert len(found) == 10


def test_a_small_file_may_have_all_the_bytes_that_it_is_allowed(tmp_path: Path) -> None:
    """One byte more is an error that names the file and the limit: a part of it would be another content."""
    (tmp_path / "file").write_bytes(b"four")
    assert small_files.read_file(str(tmp_path / "file"), 4) == b"four"
    with pytest.raises(StorageFailed, match="file: it has more than 3 bytes"):
        small_files.read_file(str(tmp_path / "file"), 3)


def test_a_directory_is_made_over_no_file(tmp_path: Path) -> None:
    """A second one is no error; a file in its place is."""
    for _ in range(2):
        system.make_directory(str(tmp_path / "a/b"))
    (tmp_path / "a/file").touch()
    with pytest.raises(FileExistsError):
        system.make_directory(str(tmp_path / "a/file"))


def test_a_mailbox_that_was_moved_away_is_not_made_again(post: Post, tmp_path: Path) -> None:
    """A process that had it open goes on to look, to note and to send. Nothing comes to be in its place, and once it is
    back it is whole."""
    box, mailbox = post.box, Mailbox(str(post.box))
    mailbox.register(Request(session_id="ann"), "ann")
    mailbox.send(Draft(sender="lee", to=("ann",), content="before"))
    stamps = mailbox.logs.stamp_files
    acts: list[Callable[[], object]] = [
        lambda: mailbox.deliver("ann", lambda *_: None),
        lambda: mailbox.peek("ann"),
        lambda: mailbox.check_in("ann"),
        lambda: mailbox.send(Draft(sender="ann", to=("ann",), content="lost")),
        lambda: mailbox.register(Request(session_id="ben"), "ben"),
        lambda: Mailbox(str(box)).send(Draft(sender="ann", to=("ann",), content="lost")),
        lambda: stamps.stamp("ann", mailbox.now()),
        lambda: stamps.disturb(["ann"]),
        lambda: stamps.leave(str(box / MESSAGES), 1, 1, 1),
        lambda: stamps.vouch([1, 2, 3]),
        lambda: Board(stamps, "tasks").note_use(),
        lambda: Board(stamps, "tasks").keep_told("ann", ["x"]),
        lambda: mailbox.part(MailPages).newest("all"),
        lambda: attachment_files.put(str(box), "a.txt", [b"x"]),
        lambda: rotation.alone(mailbox.archive, 0).__enter__(),
        lambda: small_files.save_derived(mailbox.logs.cache("any", "deep", "file"), b"x"),
        lambda: small_files.write_if_possible(mailbox.logs.cache("any"), b"x"),
    ]
    box.rename(tmp_path / "away")
    for act in acts:
        with suppress(MailboxError, OSError):
            act()
        assert not box.exists(), acts.index(act)
    (tmp_path / "away").rename(box)
    assert mailbox.logs.custody is not None
    assert mailbox.logs.custody.broken() is None, "its logs were moved, not cut"
    assert [item.message.content for item in mailbox.peek("ann")] == ["before"]


def test_a_mailbox_that_comes_back_while_a_log_is_missed_is_not_cut(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader finds no log, and no directory of it. As it looks at the mailbox all of that is there again."""
    mailbox = Mailbox(str(post.box))
    mailbox.register(Request(session_id="ann"), "ann")
    mailbox.send(Draft(sender="lee", to=("ann",), content="before"))
    post.box.rename(tmp_path / "away")
    looked = system.is_directory

    def is_directory(path: str) -> bool:
        found = looked(path)
        if path == str(post.box) and not found:
            (tmp_path / "away").rename(post.box)
        return found

    monkeypatch.setattr(system, "is_directory", is_directory)
    assert mailbox.logs.messages.attentively(lambda fd, _: fd) is not None
    assert mailbox.logs.custody is not None
    assert mailbox.logs.custody.broken() is None
