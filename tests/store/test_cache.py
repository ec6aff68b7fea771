"""Derived files: whatever is read was written in one piece, by one of ours."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.store.files import small_files, system

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = b"old " * 3000 + b"\n", b"new " * 3000 + b"\n"


def test_what_was_saved_is_loaded_until_somebody_else_writes(tmp_path: Path) -> None:
    """Again and again, longer or shorter; a byte from elsewhere, or a changed time, and there is nothing."""
    path = str(tmp_path / "deep" / "file")
    for body in (OLD, b"", NEW * 2, OLD):
        small_files.save_derived(path, body)
        assert small_files.load_derived(path) == body
    with open(path, "r+b") as file:
        file.write(b"x")
    assert small_files.load_derived(path) is None


@pytest.mark.parametrize("at", [0, 1, 4096, 8000])
def test_a_file_that_is_written_while_it_is_read_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Page by page a read may see the old content first and then the new: that was never written."""
    path = str(tmp_path / "file")
    seals = iter((b"\x90\0\0\0", b"\x91\0\0\0"))  # as many digits each, so that the two contents fit together
    monkeypatch.setattr(small_files.system, "urandom", lambda _: next(seals))
    small_files.save_derived(path, OLD)

    def interrupted(fd: int, size: int, offset: int) -> bytes:
        if offset == 0:  # the first line, which says how much follows
            return os.pread(fd, size, offset)
        first = os.pread(fd, at, offset)
        small_files.save_derived(path, NEW)
        return first + os.pread(fd, size - at, offset + at)

    monkeypatch.setattr(small_files.system, "pread", interrupted)
    assert small_files.load_derived(path) is None
    monkeypatch.undo()
    assert small_files.load_derived(path) == NEW


def test_of_two_who_write_at_once_nobody_s_seal_stands_on_the_other_s_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is shorter, whoever sets the time last: what is loaded is the one or the other, whole, or nothing."""
    path = str(tmp_path / "x")
    real = system.utime
    for first, second in ((b"long " * 100, b"short"), (b"short", b"long " * 100)):

        def meanwhile(fd: int, *, ns: tuple[int, int], other: bytes = second) -> None:
            monkeypatch.setattr(system, "utime", real)
            small_files.save_derived(path, other)
            real(fd, ns=ns)

        monkeypatch.setattr(system, "utime", meanwhile)
        small_files.save_derived(path, first)
        assert small_files.load_derived(path) in (None, first, second)
        for body in (first, second, b""):
            small_files.save_derived(path, body)
            assert small_files.load_derived(path) == body


def test_a_file_of_which_a_part_was_written_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk was full: what stood there before follows the part, and would be taken for the rest."""
    path, write = str(tmp_path / "file"), system.write
    small_files.save_derived(path, b"before" * 101)
    monkeypatch.setattr(system, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
    small_files.save_derived(path, b"behind" * 100)
    assert small_files.load_derived(path) is None


def test_a_time_is_given_to_no_file_at_the_other_end_of_a_link(tmp_path: Path) -> None:
    """Somebody may have put a link in the place of a small file; the other file keeps its time."""
    other, link = tmp_path / "other", tmp_path / "link"
    other.touch()
    before = other.stat().st_mtime_ns
    link.symlink_to(other)
    small_files.set_time(str(link), 1)
    assert (other.stat().st_mtime_ns, link.lstat().st_mtime_ns) == (before, 1)
