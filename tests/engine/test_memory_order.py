"""The order in memory conforms, and can be cut off."""

from __future__ import annotations

import pytest

from agent_mailbox.core.proofs import is_machine
from agent_mailbox.space.order.order import MESSAGES, Unavailable, is_reads, reads_of

from .conformance import Pair, SpaceConformance, lines_of
from .memory_order import MemoryOrder, MemorySpace


class TestMemoryOrder(SpaceConformance):
    """The order in memory does what every order must do."""

    @pytest.fixture
    def machines(self) -> Pair:
        """Two machines' ways to one fresh space."""
        space = MemorySpace()
        return MemoryOrder(space, "a"), MemoryOrder(space, "b")


def test_a_cut_link_refuses_every_call() -> None:
    """A cut link refuses everything; a lost acknowledgement appends, and says that it does not know."""
    space = MemorySpace()
    order = MemoryOrder(space, "a")
    order.reachable = False
    for call in (
        order.last_position,
        lambda: order.read_after(0, 1),
        lambda: order.append_lines(MESSAGES, [b"x"]),
        lambda: order.wait_for_record(0, 0),
    ):
        with pytest.raises(Unavailable):
            call()
    order.reachable, order.mute = True, True
    with pytest.raises(Unavailable):
        order.append_lines(MESSAGES, [b"x"], ids=["m1"])
    assert lines_of(order, MESSAGES) == [b"x"]


def test_a_machine_s_name_is_plain() -> None:
    """A machine's name is plain, and its log of reads is told from the others."""
    assert is_machine("build-7")
    assert not any(map(is_machine, ("", "A", "a.b", "a b", "x" * 33, "ü", "*")))
    assert is_reads(reads_of("a"))
    assert not is_reads(MESSAGES)
