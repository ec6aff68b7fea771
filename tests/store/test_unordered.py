"""The lines of a log that its order does not have: the same as by the plain list of them, whatever comes in between."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.store.files import system
from agent_mailbox.store.log.log import Log
from agent_mailbox.store.log.unordered import Unordered, digest, number

WORDS = st.sampled_from(
    (b"a", b"b", b"ccc", b'{"x":1,"seal":"1 00000000 0 1 user@terminal 0123456789abcdef0123456789abcdef"}')
)
STEPS = st.lists(
    st.tuples(st.sampled_from(("foreign", "taken", "strike", "settle", "saved", "blank")), WORDS, WORDS), max_size=40
)


@dataclass
class Line:
    """A line of the log: where it begins, its content without a seal, and what became of it."""

    start: int
    content: bytes
    state: str = "waits"


@given(STEPS)
def test_what_waits_is_what_a_plain_list_says(steps: list[tuple[str, bytes, bytes]]) -> None:
    """Lines come from others and from the order, also twice; some are struck out, some settled; state is saved and
    loaded at any moment: the same lines wait, the same are ordered, and the sum of the digests tells it."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "log"
        path.touch()
        part, plain = Unordered(Log(str(path))), list[Line]()
        for what, one, other in steps:
            if what == "blank":
                _write(path, b"")
            elif what == "foreign":
                plain.append(Line(_write(path, one), _bare(one)))
            elif (
                what == "taken"
            ):  # twice from the order, and another program came between: of equal lines the first count
                fresh = [Line(_write(path, line), _bare(line)) for line in (other, one, one)]
                part.look([(one, digest(_bare(one)))] * 2)
                for line in [line for line in fresh if line.content == _bare(one)][:2]:
                    line.state = "ordered"
                plain += fresh
            elif what == "saved":
                alone = part.alone
                part = Unordered(Log(str(path)), *part.saved())
                part.alone = alone
            part.look()
            waiting = [line for line in plain if line.state == "waits"]
            if what == "strike":
                found = [line for line in waiting if line.content == _bare(one)][:1]
                assert part.strike(digest(_bare(one))) == bool(found)
                for line in found:
                    line.state = "ordered"
            elif what == "settle":
                for line in waiting[:1]:
                    part.settle(line.start)
                    line.state = "alone"
            assert [start for start, _ in part.waiting()] == [line.start for line in plain if line.state == "waits"]
            assert [*part.ordered()] == [(line.start, line.content) for line in plain if line.state != "waits"]
            ordered = (digest(line.content) for line in plain if line.state == "ordered")
            assert part.total() == sum(map(number, ordered))


def test_only_what_is_struck_out_behind_a_waiting_line_is_saved(tmp_path: Path) -> None:
    """Lines that are struck out in the log's order leave nothing but the mark. A copy of a million lines therefore
    saves as fast as one of ten."""
    path = tmp_path / "log"
    path.touch()
    places = [_write(path, b"%d" % n) for n in range(10)]
    part = Unordered(Log(str(path)))
    part.look()
    assert part.saved()[1:] == (0, [])
    for n in range(5):
        part.strike(digest(b"%d" % n))
        assert part.saved()[1:] == (places[n + 1], [])
    part.strike(digest(b"7"))
    assert part.saved()[1:] == (places[5], [[places[7], places[8]]])
    for n in (5, 6):
        part.strike(digest(b"%d" % n))
    assert part.saved()[1:] == (places[8], [])


def test_every_line_that_was_struck_out_is_written_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead process may have written it. So it is, in whatever sequence the lines are struck out; what was written
    again and has since been durable is not written a third time."""
    path, real, written = tmp_path / "log", system.pwrite, list[int]()

    def pwrite(fd: int, content: bytes, at: int) -> int:
        written.extend(place for place in places if at <= place < at + len(content))
        return real(fd, content, at)

    path.touch()
    places = [_write(path, b"%d" % n) for n in range(8, 13)]
    part = Unordered(Log(str(path)))
    part.look()
    monkeypatch.setattr(system, "pwrite", pwrite)

    def struck(*lines: int) -> list[int]:
        """What is written again as a state is saved behind these lines."""
        written.clear()
        for n in lines:
            assert part.strike(digest(b"%d" % n))
        part.secure()
        return [*written]

    assert struck(10, 9, 11) == places[1:]
    assert struck(12) == []
    assert struck(8) == places
    places.append(_write(path, b"13"))
    part.look()
    assert struck(13) == places[5:]
    assert struck() == []
    places.append(_write(path, b"14"))
    part.look()
    path.rename(tmp_path / "old")
    path.write_bytes((tmp_path / "old").read_bytes())
    assert struck(14) == [], "who replaces a log makes the other one durable"


def test_of_equal_lines_any_may_be_settled_and_each_once(tmp_path: Path) -> None:
    """The others still wait, and are struck out in the log's order."""
    path = tmp_path / "log"
    path.touch()
    places = [_write(path, b"a") for _ in range(3)]
    part = Unordered(Log(str(path)))
    part.look()
    for _ in range(2):
        part.settle(places[1])
    assert [start for start, _ in part.waiting()] == [places[0], places[2]]
    assert part.alone == number(digest(b"a"))
    assert [part.strike(digest(b"a")) for _ in range(3)] == [True, True, False]
    assert part.total() == 2 * part.alone


def test_a_log_that_was_cut_is_another_one(tmp_path: Path) -> None:
    """Its lines are at other places."""
    path = tmp_path / "log"
    path.write_bytes(b"1\n22\n333\n")
    part = Unordered(Log(str(path)))
    assert part.look()
    path.write_bytes(b"1\n")
    assert not part.look()


def test_a_log_that_is_gone_is_another_one_for_whoever_saw_it(tmp_path: Path) -> None:
    """Nothing changed for one who never saw it."""
    path = tmp_path / "log"
    part = Unordered(Log(str(path)))
    assert part.look()
    path.touch()
    assert part.look()
    path.unlink()
    assert not part.look()


def _bare(line: bytes) -> bytes:
    """The line without its seal."""
    return b'{"x":1}' if b"seal" in line else line


def _write(path: Path, line: bytes) -> int:
    """Append a line; return where it begins."""
    with path.open("ab") as file:
        start = file.tell()
        file.write(line + b"\n")
    return start
