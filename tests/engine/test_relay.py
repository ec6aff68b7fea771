"""Commands ask the engine by way of the replicator: the same order, no library to import, and nothing lost by kills."""

from __future__ import annotations

import itertools
import json
import os
import socket
from contextlib import closing
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.proofs import is_machine
from agent_mailbox.errors import Refused, Unavailable
from agent_mailbox.space.order.order import MESSAGES, ROSTER, Displaced, HeldUp, Hurry, NoSpace, is_reads, reads_of
from agent_mailbox.space.relay import relayed_order
from agent_mailbox.space.relay.relay import MOST, Relay
from agent_mailbox.space.relay.relayed_order import (
    AWAY_FILE,
    DEAF_FILE,
    SOCKET,
    RelayedOrder,
    connect_to_replicator,
    receive_frame,
    send_frame,
)
from agent_mailbox.store.files import system
from agent_mailbox.store.files.small_files import note_time
from tests.helpers import Program, until

from .conformance import Conformance, Pair, SpaceConformance, lines_of
from .memory_order import MemoryOrder, MemorySpace
from .pair import MACHINES
from .pair import Pair as Two
from .postgres_server import credential, made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conformance import Pair


_names = itertools.count()
AWAY = 1_000_000_000
"""Milliseconds that no test takes."""


class Closing(MemoryOrder):
    """An order whose connection may be closed."""

    def close(self) -> None:
        """Do nothing."""


def is_over(connection: socket.socket) -> bool:
    """Does the other side end the connection without a word?"""
    try:
        return connection.recv(9) == b""
    except ConnectionResetError:
        return True


def way_of(memory: Closing, place: Path, patience: float) -> RelayedOrder:
    """Return a command's way over a place.

    Alone it asks the order in memory, which takes no names: hence the ignored types."""
    return RelayedOrder(memory.machine, str(place), patience, lambda: memory)  # type: ignore[arg-type, return-value]


def test_an_answer_that_breaks_off_is_none() -> None:
    """The other side was killed within it."""
    theirs, ours = socket.socketpair()
    with theirs, ours:
        send_frame(theirs, {"answer": 1}, [b"x" * 9])
        whole = ours.recv(1 << 16)
        theirs.sendall(whole)
        assert receive_frame(ours) == ({"answer": 1}, [b"x" * 9])
        theirs.sendall(whole[:-1])
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(OSError, match="it ended meanwhile"):
            receive_frame(ours)


def test_an_answer_as_large_as_one_may_be_is_taken_and_no_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines count together, and no size below nothing makes up for another."""
    monkeypatch.setattr(relayed_order, "MOST_BYTES", 9)
    theirs, ours = socket.socketpair()
    with theirs, ours:
        send_frame(theirs, {}, [b"four", b"to 9!"])
        assert receive_frame(ours) == ({}, [b"four", b"to 9!"])
        send_frame(theirs, {}, [b"fives", b"fives"])
        with pytest.raises(ValueError, match="10 bytes at once"):
            receive_frame(ours)
    for sizes in ([10], [-1, 9], [True], ["9"]):
        theirs, ours = socket.socketpair()
        text = json.dumps({"sizes": sizes}).encode()
        with theirs, ours:
            theirs.sendall(len(text).to_bytes(4, "big") + text)
            with pytest.raises(ValueError, match="another form"):
                receive_frame(ours)


def test_who_gives_up_a_silent_replicator_leaves_it_at_once(tmp_path: Path) -> None:
    """It has few places. The next one does not wait for it."""
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(tmp_path / SOCKET))
        stopped.listen()
        with pytest.raises(TimeoutError) as kept:
            connect_to_replicator(str(tmp_path), 0.01)
        left, _ = stopped.accept()
    with left:
        left.setblocking(False)
        assert is_over(left), f"while {kept.value} is looked at"
    with pytest.raises(OSError, match="said no word a moment ago"):
        connect_to_replicator(str(tmp_path), 0.01)


class Relayed:
    """A machine's relay over an order in memory, and a command's way over it."""

    def __init__(self, space: MemorySpace, machine: str, place: Path) -> None:
        self.memory = Closing(space, machine)
        self.place = place / ("x" * 120) / machine  # longer than the kernel takes
        self.place.mkdir(parents=True)
        self.relay = Relay(str(self.place), lambda: self.memory)  # type: ignore[arg-type, return-value]
        self.order = self.command()

    def command(self) -> RelayedOrder:
        """The way of a new process."""
        return way_of(self.memory, self.place, 5)


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[tuple[Relayed, Relayed]]:
    """Two machines."""
    space = MemorySpace()
    both = Relayed(space, "a", tmp_path), Relayed(space, "b", tmp_path)
    yield both
    for one in both:
        one.relay.close()
        one.order.close()


class TestRelayedOrder(Conformance):
    """The order behind a socket does what every order must do."""

    @pytest.fixture
    def machines(self, relayed: tuple[Relayed, Relayed]) -> Pair:  # type: ignore[override]
        """Both over their relays."""
        return relayed[0].order, relayed[1].order


def test_who_asks_seldom_connects_to_the_replicator_again(relayed: tuple[Relayed, Relayed]) -> None:
    """It closes the connection of who says nothing for a while, such as the console, and as it ends."""
    one = relayed[0].order
    assert one.last_position() == 0
    ours, theirs = socket.socketpair()
    theirs.close()
    assert one._socket is not None
    one._socket.close()
    one._socket = ours
    assert one.append_lines(MESSAGES, [b"mail"], ids=["m1"]) == one.last_position() == 1


def test_who_is_in_a_hurry_leaves_a_replicator_that_is_stopped(tmp_path: Path) -> None:
    """One that is stopped as it answers is left, too. The next command connects by itself: the kernel takes its
    connection to the replicator, and nobody says a word."""
    memory, found = Closing(MemorySpace(), "a"), list[int]()

    def ask() -> None:
        with Hurry(1e6):
            with pytest.raises(Unavailable, match="replicator does not answer"):
                way_of(memory, tmp_path, 1e6).last_position()
            (tmp_path / DEAF_FILE).unlink()  # by which the next one need not find out
            for _ in range(2):
                found.append(way_of(memory, tmp_path, 1e6).last_position())

    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(tmp_path / SOCKET))
        stopped.listen()
        Thread(target=ask, daemon=True).start()
        greeted, _ = stopped.accept()
        send_frame(greeted, {})
        until(lambda: len(found) == 2)
        greeted.close()


def test_who_was_answered_believes_nobody_who_waited_in_vain_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands of two machines ask the engine by themselves. While the first is being answered, another of its machine
    says that it waited in vain: the first goes on. Those that were not answered since ask nobody, for a while."""
    monkeypatch.setattr(relayed_order, "AWAY", AWAY)
    (tmp_path / "b").mkdir()
    memory, elsewhere = Closing(MemorySpace(), "a"), Closing(MemorySpace(), "b")
    first, early, late = (way_of(memory, tmp_path, 5) for _ in range(3))
    another = way_of(elsewhere, tmp_path / "b", 5)
    asked, answer = list[int](), memory.last_position

    def now() -> int:
        return system.time_ns() // 1_000_000

    def slowly() -> int:
        """Answer, after another command wrote its note; the clock goes on before and after it."""
        for tick in (now(), now() + 1):
            until(lambda tick=tick: now() > tick)
            if not asked:
                note_time(str(tmp_path / AWAY_FILE), now())
        asked.append(now())
        return answer()

    assert early.last_position() == another.last_position() == 0
    monkeypatch.setattr(memory, "last_position", slowly)
    for _ in range(2):
        assert first.last_position() == 0
    for one in (early, late, early):
        with pytest.raises(Unavailable, match="engine was out of reach a moment ago"):
            one.last_position()
    assert len(asked) == 2
    assert (another.last_position(), first.last_position()) == (0, 0)
    note_time(str(tmp_path / AWAY_FILE), now() - AWAY)
    assert (early.last_position(), late.last_position()) == (0, 0)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_relay_passes_errors_on_and_ends_a_malformed_connection(relayed: tuple[Relayed, Relayed]) -> None:
    """An engine that is away is away for the command; what is no question ends that connection and no other.

    Where too many ask at once, a command connects by itself."""
    a, _ = relayed
    a.order.append_lines(ROSTER, [b"x"])
    a.memory.reachable = False
    with pytest.raises(Unavailable, match="out of reach: memory"):
        a.order.last_position()
    a.memory.reachable = True
    with pytest.raises(Unavailable, match="out of reach: memory"):  # nobody else waits in vain
        a.command().last_position()
    for why in (Displaced("a"), NoSpace("gone", NoSpace.mend), HeldUp("held", "wait"), Refused("refused", "ask")):
        a.relay.away = why
        with pytest.raises(Unavailable, match=why.what) as told:
            a.command().last_position()
        assert (told.value.hint, told.value.code) == (why.hint, why.code)
    a.relay.away = None  # the replicator reached it
    for odd in (b"\0\0\0\x04null", b"\xff\xff\xff\xff", b"\0\0\0\x02{}", b"GET / HTTP/1.1\r\n\r\n"):
        with closing(connect_to_replicator(str(a.place), 5)) as stranger:
            stranger.sendall(odd)
            stranger.shutdown(socket.SHUT_WR)
            assert is_over(stranger)
    for head in ({"call": "remove", "positions": [1]}, {"call": "append"}, {"call": "read", "after": "x", "most": 1}):
        with closing(connect_to_replicator(str(a.place), 5)) as stranger:
            send_frame(stranger, dict(head))
            assert is_over(stranger)
    many = [a.command() for _ in range(MOST + 3)]
    for n, order in enumerate(many):
        order.append_lines(MESSAGES, [b"%d" % n], ids=[f"m{n}"])
    assert sorted(lines_of(a.order, MESSAGES)) == sorted(b"%d" % n for n in range(MOST + 3))
    assert not (a.place / DEAF_FILE).exists(), "which tells of a replicator that lets commands wait"
    for order in many:
        order.close()


def test_a_command_does_not_import_the_database_library(program: Program, tmp_path: Path) -> None:
    """While the replicator runs, sending and claiming role mail go over its socket; without it, or with one that a kill
    left, a command connects by itself.

    Nor does it import what a connection to NATS needs."""
    with made() as server, server.running():
        pair = Two(program, server.url, credential(tmp_path / "word"))
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
            pair.join(machine)
            pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
        forbidden = tmp_path / "forbidden"
        forbidden.mkdir()
        for name in ("psycopg2", "ssl", "socket", "json", "hashlib", "typing"):
            (forbidden / f"{name}.py").write_text("raise SystemError('imported')")
        plain = program.env["PYTHONPATH"]
        with pair.serving("north") as replicator:
            program.env["PYTHONPATH"] = f"{forbidden}{os.pathsep}{plain}"
            pair.send("north", "--from", "user", "--to", "role:dev", "--body", "by the socket")
            assert pair.seen("north", "ann") == ["by the socket"]
            program.env["PYTHONPATH"] = plain
            replicator.kill()
            replicator.wait()
        assert next(program.user_state.glob(f"**/{SOCKET}")).is_socket()
        pair.send("north", "--from", "user", "--to", "role:dev", "--body", "by itself")
        with pair.serving("north"):
            assert pair.seen("north", "ann") == ["by itself"]
        assert list(program.user_state.glob(f"**/{SOCKET}")) == []


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
