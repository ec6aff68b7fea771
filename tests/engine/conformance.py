"""What every order must do, as tests. A subclass gives two machines of a fresh space: ``machines``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.errors import BadData
from agent_mailbox.space.order.order import (
    ARCHIVE,
    CLAIMS,
    MESSAGES,
    MOST,
    PASSED,
    ROSTER,
    WIDEST,
    Moved,
    Taken,
    reads_of,
)
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.space.order.order import Ordered, SpaceOrder, TotalOrder

Pair = tuple["TotalOrder", "TotalOrder"]


def everything(order: TotalOrder, page: int = 100) -> list[Ordered]:
    """All records of the space, page by page."""
    found: list[Ordered] = []
    while more := order.read_after(found[-1].position if found else 0, page):
        found += more
    return found


def lines_of(order: TotalOrder, log: str) -> list[bytes]:
    return [record.line for record in everything(order) if record.log == log]


class Conformance:
    """Subclass it with a fixture ``machines``: the orders of machines ``a`` and ``b`` of a fresh space."""

    @pytest.fixture
    def machines(self) -> Pair:
        """Two machines' ways to one fresh space."""
        raise NotImplementedError

    def test_fresh(self, machines: Pair) -> None:
        """A fresh space has no records, and nothing to wait for."""
        a, b = machines
        assert (a.machine, b.machine) == ("a", "b")
        assert a.last_position() == b.last_position() == 0
        assert not a.read_after(0, 10)

    def test_one_order(self, machines: Pair) -> None:
        """All machines read the same records in the same order, each with its log, line and machine."""
        a, b = machines
        first = a.append_lines(MESSAGES, [b'{"id":"m1"}'], ids=["m1"])
        second = b.append_lines(ROSTER, [b'{"event":"register"}'], expect=0)
        third = a.append_lines(reads_of("a"), [b"1", "ü".encode()], expect=0)
        assert 0 < first < second < third == a.last_position() == b.last_position()
        assert list(everything(a)) == list(everything(b)) == list(everything(b, 1))
        told = [(r.log, r.line, r.machine, r.damaged) for r in everything(b)]
        assert told == [
            (MESSAGES, b'{"id":"m1"}', "a", False),
            (ROSTER, b'{"event":"register"}', "b", False),
            (reads_of("a"), b"1", "a", False),
            (reads_of("a"), "ü".encode(), "a", False),
        ]
        assert [r.position for r in everything(b)][:2] == [first, second]
        assert [r.line for r in b.read_after(first, 1)] == [b'{"event":"register"}']
        assert not b.read_after(third, 5)
        assert len(b.read_after(0, 4)) == len(b.read_after(0, 5)) == 4

    def test_expect(self, machines: Pair) -> None:
        """A decision is taken only on the log as it was seen; other logs do not matter."""
        a, b = machines
        first = a.append_lines(CLAIMS, [b"claim"], expect=0)
        b.append_lines(MESSAGES, [b"mail"], ids=["m1"])
        with pytest.raises(Moved):
            b.append_lines(CLAIMS, [b"mine"], expect=0)
        second = b.append_lines(CLAIMS, [b"mine", b"too"], expect=first)
        with pytest.raises(Moved):
            a.append_lines(CLAIMS, [b"late"], expect=first)
        with pytest.raises(Moved):
            a.append_lines(CLAIMS, [b"late"], expect=second - 1)
        a.append_lines(CLAIMS, [b"next"], expect=second)
        assert lines_of(a, CLAIMS) == [b"claim", b"mine", b"too", b"next"]

    def test_a_decision_on_everything(self, machines: Pair) -> None:
        """A steward's decision counts only if no log at all has moved."""
        a, b = machines
        b.append_lines(MESSAGES, [b"mail"], ids=["m1"])
        end = a.append_lines(ARCHIVE, [b"one", bytes(range(256))], expect=b.last_position())
        b.append_lines(reads_of("b"), [b"read"])
        for expect in (end, 0):
            with pytest.raises(Moved):
                a.append_lines(ARCHIVE, [b"two", b"three"], expect=expect)
        a.append_lines(ARCHIVE, [b"two"], expect=a.last_position())
        a.append_lines(PASSED, [b"x"])
        assert lines_of(b, ARCHIVE) == [b"one", bytes(range(256)), b"two"]

    def test_ids(self, machines: Pair) -> None:
        """An id is one record's for ever, whoever published it; a batch with a taken id appends nothing."""
        a, b = machines
        first = a.append_lines(MESSAGES, [b"one"], ids=["m1"])
        for order in machines:
            with pytest.raises(Taken) as told:
                order.append_lines(MESSAGES, [b"one"], ids=["m1"])
            assert (told.value.id, told.value.position) == ("m1", first)
        with pytest.raises(Taken) as told:
            b.append_lines(MESSAGES, [b"two", b"one", b"three"], ids=["m2", "m1", "m3"])
        assert (told.value.id, told.value.position) == ("m1", first)
        end = b.append_lines(MESSAGES, [b"two", b"three"], ids=["m2", "m3"])
        assert lines_of(a, MESSAGES) == [b"one", b"two", b"three"]
        with pytest.raises(Taken) as told:
            a.append_lines(MESSAGES, [b"three"], ids=["m3"])
        assert told.value.position == end

    @pytest.mark.parametrize("odd", ["*", ">", "a.b", "a b", "ü", "\x01", "$", "x" * 128, "M1", "m1"])
    def test_odd_ids(self, machines: Pair, odd: str) -> None:
        """Any text may be an id: a foreign program chose it."""
        a, b = machines
        a.append_lines(MESSAGES, [b"plain"], ids=["m-1"])
        position = a.append_lines(MESSAGES, [b"odd"], ids=[odd])
        with pytest.raises(Taken) as told:
            b.append_lines(MESSAGES, [b"odd"], ids=[odd])
        assert told.value.position == position

    def test_batches(self, machines: Pair) -> None:
        """A batch of the largest size is one append; a larger one is refused whole, and names the limit."""
        a, b = machines
        lines = [b"%d" % n for n in range(MOST)]
        a.append_lines(MESSAGES, lines, ids=[f"m{n}" for n in range(MOST)])
        with pytest.raises(BadData, match="batch is too long"):
            a.append_lines(reads_of("a"), [*lines, b"more"])
        with pytest.raises(BadData, match="batch is too large"):
            a.append_lines(reads_of("a"), [b"x" * (WIDEST // 2), b"x" * (WIDEST // 2 + 1)])
        a.append_lines(reads_of("a"), [b"x" * (WIDEST // 2)] * 2)
        assert lines_of(b, MESSAGES) == lines
        assert len(lines_of(b, reads_of("a"))) == 2
        assert a.append_lines(MESSAGES, []) == a.last_position()

    def test_racing(self, machines: Pair) -> None:
        """Many decide at once: with ``expect`` one wins each time, and batches stay whole."""
        a, b = machines

        def decide(order: TotalOrder, word: bytes) -> int:
            won = 0
            for _ in range(10):
                known = _last(everything(order), CLAIMS)
                try:
                    order.append_lines(CLAIMS, [word, word], expect=known)
                    won += 1
                except Moved:
                    pass
            return won

        with ThreadPoolExecutor(2) as pool:
            won = sum(pool.map(decide, (a, b), (b"a", b"b")))
        found = lines_of(a, CLAIMS)
        assert len(found) == 2 * won
        assert all(found[n] == found[n + 1] for n in range(0, len(found), 2))


class SpaceConformance(Conformance):
    """Subclass it for an order that an engine keeps."""

    def test_remove(self, machines: tuple[SpaceOrder, SpaceOrder]) -> None:
        """A removed record is gone for everybody; positions go on, and its id is free."""
        a, b = machines
        a.append_lines(MESSAGES, [b"%d" % n for n in range(60)], ids=[f"m{n}" for n in range(60)])
        places, before = [record.position for record in everything(a)], a.count_holes()
        b.remove_records([*places[:20], *places[30:55]])
        b.remove_records([places[3], places[59] + 99])
        assert a.count_holes() == before + 45
        for order in machines:
            wanted = [b"%d" % n for n in (*range(20, 30), *range(55, 60))]
            assert lines_of(order, MESSAGES) == wanted
            assert [record.line for page in [order.read_after(places[22], 99)] for record in page] == wanted[3:]
        assert a.append_lines(MESSAGES, [b"again"], ids=["m1"]) > places[59]

    def test_remove_through(self, machines: tuple[SpaceOrder, SpaceOrder]) -> None:
        """The records of that log up to there are gone; those of other logs and machines stay, and positions go on."""
        a, b = machines
        for n in range(6):
            a.append_lines(MESSAGES, [b"%d" % n], ids=[f"m{n}"])
            for order in machines:
                order.append_lines(reads_of(order.machine), [b"%d" % n])
        places, before = [record.position for record in everything(a) if record.log == MESSAGES], a.count_holes()
        b.remove_through(MESSAGES, places[3])
        b.remove_through(reads_of("a"), places[2])
        b.remove_through(ROSTER, a.last_position())
        assert a.count_holes() == before + 6
        for order in machines:
            assert lines_of(order, MESSAGES) == [b"4", b"5"]
            assert lines_of(order, reads_of("a")) == [b"%d" % n for n in range(2, 6)]
            assert lines_of(order, reads_of("b")) == [b"%d" % n for n in range(6)]
        assert a.append_lines(MESSAGES, [b"again"], ids=["m1"]) > places[5]

    def test_wait(self, machines: tuple[SpaceOrder, SpaceOrder]) -> None:
        """Whoever waits is woken by another machine's record, and does not wait for what is there."""
        a, b = machines
        with ThreadPoolExecutor(1) as pool:
            woken = pool.submit(a.wait_for_record, 0, float(PATIENCE))
            end = b.append_lines(ROSTER, [b"x"])
            assert woken.result(PATIENCE)
        assert a.wait_for_record(0, 0.0)
        assert not a.wait_for_record(end, 0.0)

    def test_one_log(self, machines: tuple[SpaceOrder, SpaceOrder]) -> None:
        """The records of one log are those of all that are of it, from the first one or behind a position."""
        a, b = machines
        for n in range(5):
            a.append_lines(MESSAGES, [b"mail %d" % n], ids=[f"m{n}"])
            b.append_lines(CLAIMS, [b"claim %d" % n])
        for log in (MESSAGES, CLAIMS):
            told = [record for record in everything(a) if record.log == log]
            assert [*b.of_log(log)] == told
            for n, record in enumerate(told, 1):
                assert [*b.of_log(log, record.position)] == told[n:]
        assert [*b.of_log(ROSTER)] == []


def _last(records: Sequence[Ordered], log: str) -> int:
    return max((record.position for record in records if record.log == log), default=0)
