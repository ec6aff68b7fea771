"""Reading on in a log that grows: each whole line once, from the beginning where the file is another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.store.log.growing_log import GrowingLog
from agent_mailbox.store.log.log import Log

if TYPE_CHECKING:
    from pathlib import Path


def news(log: GrowingLog) -> tuple[bool, list[bytes]]:
    """Whether it begins again, and the new lines."""
    with log.news() as (restarted, lines):
        return restarted, [line for _, line in lines]


def test_each_whole_line_comes_once(tmp_path: Path) -> None:
    """Half a line comes when it is whole; a file that was replaced, cut or removed begins again."""
    path = tmp_path / "log"
    log = GrowingLog(Log(str(path)))
    assert (log.changed(), news(log)) == (False, (False, []))
    path.write_bytes(b"1\n2\nhal")
    assert (log.changed(), news(log)) == (True, (True, [b"1", b"2"]))
    with path.open("ab") as file:
        file.write(b"f\n")
    assert news(log) == (False, [b"half"])
    assert (log.changed(), news(log)) == (False, (False, []))
    (tmp_path / "aside").write_bytes(b"another\n")
    (tmp_path / "aside").rename(path)
    assert (log.changed(), news(log)) == (True, (True, [b"another"]))
    path.write_bytes(b"cut\n")
    assert news(log) == (True, [b"cut"])
    path.unlink()
    assert (log.changed(), news(log)) == (True, (True, []))
    assert not log.changed()


def test_lines_count_as_read_once_all_were_taken(tmp_path: Path) -> None:
    """A reader that stops halfway is given them again."""
    path = tmp_path / "log"
    path.write_bytes(b"1\n2\n")
    log = GrowingLog(Log(str(path)))
    with log.news() as (_, lines):
        assert next(lines) == (0, b"1")
    assert news(log) == (True, [b"1", b"2"])


def test_a_reader_may_begin_at_the_end(tmp_path: Path) -> None:
    """Only later lines are news."""
    path = tmp_path / "log"
    path.write_bytes(b"1\n")
    log = GrowingLog(Log(str(path)))
    log.skip()
    with path.open("ab") as file:
        file.write(b"2\n")
    assert news(log) == (False, [b"2"])
