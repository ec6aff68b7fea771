"""One process of a machine has its turn at the engine: what others of that machine do while it asks."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft
from agent_mailbox.console import details, mail_lists
from agent_mailbox.console.desk import Looking
from agent_mailbox.core import proofs
from agent_mailbox.errors import Busy, Malformed, Unavailable
from agent_mailbox.space.copy import known_copy
from agent_mailbox.space.copy.known_copy import TURN, AskedOrder, MachineLock
from agent_mailbox.space.copy.replica import Replica
from agent_mailbox.space.nats.connection import NatsConnection, Publication
from agent_mailbox.space.nats.server_words import WORDS
from agent_mailbox.space.order import order as orders
from agent_mailbox.space.order.order import MESSAGES, Hurry, Ordered
from agent_mailbox.store.files.small_files import time_of
from agent_mailbox.store.locks.lock import FileLock
from tests.helpers import PATIENCE

from .memory_order import MemoryOrder, MemorySpace, copy_of
from .mortal import Killed
from .two import Two, archived, live, read, shown, steward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


class Asked(MemoryOrder):
    """A way to a space on which something happens before and after an append, once each."""

    before: Callable[[], object] | None = None
    behind: Callable[[], object] | None = None

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        before, behind, self.before, self.behind = self.before, self.behind, None, None
        if before is not None:
            before()
        position = super().append_lines(log, lines, ids=ids, expect=expect)
        if behind is not None:
            behind()
        return position

    ended: Callable[[], object] | None = None
    """What happens once all records were read."""

    def read_after(self, after: int, most: int) -> Sequence[Ordered]:
        """Read, with what happens at the end."""
        found = super().read_after(after, most)
        if not found and self.ended is not None:
            ended, self.ended = self.ended, None
            ended()
        return found


def second(two: Two, which: int) -> Replica:
    """Another process of a machine."""
    box = two.boxes[which]
    assert box.replica is not None
    return copy_of(box.logs, MemoryOrder(two.orders[0].space, box.replica.order.machine), box.replica.directory)


def asking(two: Two) -> Asked:
    """The north's way to the space, on which things happen."""
    north = two.boxes[0]
    assert north.replica is not None
    order = Asked(two.orders[0].space, "north")
    north.share(copy_of(north.logs, order, north.replica.directory))
    return order


@pytest.mark.parametrize("moment", ["before", "behind"])
def test_mail_comes_in_while_a_command_asks_the_engine(two: Two, moment: str) -> None:
    """A command of the north waits for the engine. Its replicator takes in mail meanwhile, the command's own, too: each
    is there once, in the order of the space, and the command's has the proof of its writer."""
    north, south = two.boxes

    def meanwhile() -> None:
        south.send(Draft(sender="ben", to=("ann",), content="from afar"))
        taken.append(second(two, 0).take_in_beside())

    taken: list[int] = []
    setattr(asking(two), moment, meanwhile)
    sent = north.send(Draft(sender="user", to=("ben",), content="asked for")).message.id
    assert taken == [1 if moment == "before" else 2]
    for box in (*two.boxes, *two.boxes):
        box.catch_up()
    ordered = ["from afar", "asked for"] if moment == "before" else ["asked for", "from afar"]
    assert [live(box) for box in two.boxes] == [ordered] * 2
    assert north.state().messages[sent].proof is not None
    assert shown(north, "ann") == ["from afar"]


def test_mail_of_a_process_that_was_killed_meanwhile_is_there_once(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replicator takes mail in while a command asks the engine, and dies before it saves that."""
    north, south = two.boxes

    def killed() -> None:
        raise Killed

    def meanwhile() -> None:
        south.send(Draft(sender="ben", to=("ann",), content="from afar"))
        replicator = second(two, 0)
        monkeypatch.setattr(replicator, "_save_state", killed)
        with pytest.raises(Killed):
            replicator.take_in_beside()

    asking(two).before = meanwhile
    north.send(Draft(sender="user", to=("ben",), content="asked for"))
    for box in (*two.boxes, *two.boxes):
        box.catch_up()
    contents = [[json.loads(line)["content"] for _, line in box.logs.messages.lines()] for box in two.boxes]
    assert contents == [["from afar", "asked for"]] * 2


def test_a_decision_waits_for_the_turn(two: Two) -> None:
    """A process without the turn leaves a steward's decision, and what is behind it, to whoever has the turn."""
    north, south = two.boxes
    read(two, "old")
    for box in two.boxes:
        box.catch_up()

    def meanwhile() -> None:
        steward(south)
        south.send(Draft(sender="ben", to=("ann",), content="behind it"))
        second(two, 0).take_in_beside()
        there.extend(live(north))

    there: list[str] = []
    asking(two).before = meanwhile
    north.send(Draft(sender="ann", to=("ben",), content="asked for"))
    for box in two.boxes:
        box.catch_up()
    assert (there, archived(north)) == (["old"], ["old"])
    assert live(north) == live(south) == ["behind it", "asked for"]


def test_what_came_while_lost_records_are_looked_for_was_not_lost(two: Two) -> None:
    """A doctor reads all records. Mail that comes in meanwhile is behind them, and is not brought back."""
    north, south = two.boxes
    order = asking(two)
    assert north.replica is not None
    with north.replica.machine_lock():
        north.replica.catch_up()

        def meanwhile() -> None:
            south.send(Draft(sender="ben", to=("ann",), content="meanwhile"))
            taken.append(second(two, 0).take_in_beside())

        taken: list[int] = []
        order.ended = meanwhile
        assert (north.replica.restore_lost(), taken) == (0, [1])


def test_one_question_shows_that_a_machine_is_up_to_date(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """It brings the last record that is here, and what is behind it. If a log was replaced meanwhile, all is read."""
    north, south = two.boxes
    south.send(Draft(sender="ben", to=("ann",), content="one"))
    north.catch_up()
    assert north.replica is not None
    known, log = north.replica.state.applied, north.logs.messages.path
    asked: list[int] = []

    def read(after: int, most: int, change: bool) -> Sequence[Ordered]:
        if change and not asked:
            shutil.copy(log, f"{log}.copy")
            os.replace(f"{log}.copy", log)
        asked.append(after)
        return MemoryOrder.read_after(order, after, most)

    for change, questions in ((False, [known - 1]), (True, [known - 1, 0])):
        order = asking(two)
        monkeypatch.setattr(order, "read_after", partial(read, change=change))
        north.catch_up()
        assert asked == questions
        asked.clear()
    assert live(north) == ["one"]


# -- a silent engine --------------------------------------------------------------------------------------------------


NOBODY = b"HMSG INBOX.1 0 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
"""A server's answer to a question that nobody there answers."""


@contextmanager
def speaking(*answers: bytes, greeting: bytes = b"INFO {}\r\n") -> Iterator[tuple[str, list[bytes]]]:
    """A server of NATS that greets, and then says these words, one for each that it hears; yields what it heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client, suppress(BrokenPipeError, ConnectionResetError):  # who was told nonsense leaves
                client.sendall(greeting)
                for answer in (b"PONG\r\n", *answers):
                    heard.append(client.recv(1 << 16))
                    inbox = heard[0].partition(b"SUB ")[2].partition(b".* ")[0]
                    client.sendall(answer.replace(b"INBOX", inbox))
                while more := client.recv(1 << 16):  # until the other side is gone
                    heard.append(more)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"nats://127.0.0.1:{server.getsockname()[1]}", heard
        thread.join()


def test_who_is_in_a_hurry_leaves_a_silent_engine() -> None:
    """It is asked for a word, and says none: so it is away, long before the question is given up."""
    with speaking(b"") as (url, heard):
        way = NatsConnection(url, None, None, patience=PATIENCE)
        with Hurry(PATIENCE), pytest.raises(Unavailable, match="no answer in time"):
            way.ask_each([Publication("a.question", b"")])
    assert heard[2:] == [b"PING\r\n"]


def test_who_is_in_a_hurry_waits_for_an_engine_that_works() -> None:
    """It takes its time for the answer, and says a word meanwhile."""
    with speaking(b"", b"PONG\r\nMSG INBOX.1 0 2\r\nok\r\n") as (url, heard):
        way = NatsConnection(url, None, None, patience=PATIENCE)
        with Hurry(PATIENCE):
            assert way.ask_each([Publication("a.question", b"")])[0].data == b"ok"
        assert heard[2] == b"PING\r\n"
        way.close()


def test_who_is_in_a_hurry_leaves_an_engine_that_only_says_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader without its peers says them, and keeps nothing. How many it says measures how far and how busy it is."""
    monkeypatch.setattr(orders, "QUIET", 0.01)
    with speaking(b"", *[b"PONG\r\n"] * WORDS) as (url, heard):
        way = NatsConnection(url, None, None, patience=PATIENCE)
        with Hurry(PATIENCE), pytest.raises(Unavailable, match="the server speaks, and does not answer"):
            way.ask_each([Publication("a.question", b"")])
    assert heard[2:] == [b"PING\r\n"] * WORDS


def test_who_is_in_a_hurry_waits_for_nobody_whom_the_engine_lets_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has its turn, and asks in no hurry."""
    monkeypatch.setattr(known_copy, "KEPT", 2 * PATIENCE)
    monkeypatch.setattr(known_copy, "UNANSWERED", 0.02)
    first, second = (AskedOrder(MemoryOrder(MemorySpace(), "north"), lambda: None) for _ in range(2))
    found: list[str] = []

    def hurry_up() -> None:
        try:
            with MachineLock(str(tmp_path), 2 * PATIENCE, second, hurried=True):
                found.append("had its turn")
        except Busy:
            found.append("left")

    other = threading.Thread(target=hurry_up, daemon=True)
    with MachineLock(str(tmp_path), PATIENCE, first):
        other.start()
        first.ask(lambda: other.join(PATIENCE))
        assert found == ["left"]


def test_who_is_in_a_hurry_waits_for_a_turn_that_has_just_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process took its turn, and was put aside before it said so. The one before it left long ago."""
    monkeypatch.setattr(known_copy, "KEPT", PATIENCE)
    monkeypatch.setattr(known_copy, "UNANSWERED", 0.02)
    order = AskedOrder(MemoryOrder(MemorySpace(), "north"), lambda: None)
    with MachineLock(str(tmp_path), PATIENCE, order):
        pass
    looks: list[str] = []
    has_waited = threading.Event()

    def look(path: str) -> int | None:
        looks.append(path)
        if len(looks) > 1:
            has_waited.set()
        return time_of(path)

    monkeypatch.setattr(known_copy, "time_of", look)
    with ThreadPoolExecutor() as pool:
        with FileLock(str(tmp_path / TURN)):
            waiting = pool.submit(MachineLock(str(tmp_path), PATIENCE, order, hurried=True).take)
            assert has_waited.wait(PATIENCE)
        waiting.result().release()


def test_a_server_that_is_no_nats_server_is_named() -> None:
    """Whatever it says instead, the error names it and its trouble. So does that of one without JetStream."""
    for greeting, answer, why in (
        (b"SSH-2.0-OpenSSH\r\n", b"", "no NATS server answers there"),
        (b"INFO {}\r\n", b"250 OK\r\n", "no NATS server answers there"),
        (b"INFO {}\r\n", b"MSG INBOX.1 0 many\r\n", "the server says what no NATS server says"),
        (b"INFO {}\r\n", b"MSG INBOX.1 0 99999999\r\n", "the server sends 99999999 bytes at once"),
        (b"INFO {}\r\n", NOBODY, "nobody answers there; is JetStream enabled?"),
    ):
        with speaking(answer, greeting=greeting) as (url, _):
            way = NatsConnection(url, None, None, patience=PATIENCE)
            with pytest.raises(Unavailable) as told:
                way.ask_each([Publication("a.question", b"")])
            assert way._incoming is None, "the next question asks again who is there"
        assert told.value.what == f"engine is out of reach: {url}: {why}"
    with speaking(greeting=b"HTTP/1.1 400 Bad Request\r\n") as (url, _):
        way = NatsConnection(url, None, None, patience=PATIENCE)
        with pytest.raises(Unavailable, match="no NATS server answers there"):
            way.ask_for_several(Publication("a.question", b""))
        assert way._incoming is None


def test_mail_that_expired_does_not_wait_for_the_engine(two: Two) -> None:
    """Its sender is told at once, as with an engine that is there."""
    north, _ = two.boxes
    for two.orders[0].reachable in (True, False):
        with pytest.raises(Malformed, match="the time to expire has passed"):
            north.send(Draft(sender="ann", to=("ben",), content="late", expires_at=1))


def test_mail_whose_acknowledgement_is_lost_is_there_once(two: Two) -> None:
    """It waits, though it is in the order; another process takes it in from there, and then it is sent again."""
    north, _ = two.boxes
    order = asking(two)
    order.before = lambda: setattr(order, "mute", True)
    assert north.send(Draft(sender="ann", to=("ben",), content="one")).queued
    assert north.replica is not None
    (waits,) = north.replica.queue.read_messages()
    assert (waits.content, waits.proof) == ("one", north.prove("ann"))
    assert waits.proof is not None
    assert second(two, 0).take_in_beside() == 1
    order.mute = False
    north.catch_up()
    assert [record.log for record in order.space.records].count(MESSAGES) == 1
    assert live(north) == ["one"]


def test_mail_that_waits_has_nobody_ask_an_engine_that_is_away_again(two: Two) -> None:
    """Ann's client has ended, which is recorded once the engine is back: it costs her sender no second wait."""
    north, _ = two.boxes
    assert north.replica is not None

    class Counted(MemoryOrder):
        asked = 0

        def _reach(self) -> None:
            self.asked += 1
            super()._reach()

    order = Counted(two.orders[0].space, "north")
    north.share(copy_of(north.logs, order, north.replica.directory))
    north.catch_up()
    north.prove = proofs.of_session
    order.reachable, costs = False, list[int]()
    for gone in (set[str](), {"ann"}):
        north.judge_clients = lambda _, gone=gone: (gone, set())  # type: ignore[method-assign, misc]
        before = order.asked
        sent = north.send(Draft(sender="kim", to=("ann",), content="x"))
        assert (sent.queued != "", {*sent.delivery.gone}) == (True, gone)
        costs.append(order.asked - before)
    assert costs[0] == costs[1] > 0
    order.reachable = True
    north.send(Draft(sender="kim", to=("ann",), content="x"))
    assert north.logs.read_roster().state("ann") == "frozen"


def test_the_console_marks_mail_that_waits_for_the_engine(two: Two) -> None:
    """Its lists have it, and the message's own page says it, until the engine has taken it."""
    north, _ = two.boxes
    north.catch_up()
    two.orders[0].reachable = False
    sent = north.send(Draft(sender="ann", to=("ben",), content="one")).message.id
    now = Looking(north.directory)
    now.mailbox.share(second(two, 0))

    def told() -> list[tuple[str, str, object]]:
        pages = [
            ("/archive", {}),
            ("/channel", {"to": "ben"}),
            ("/search", {"q": "one"}),
            ("/channel", {"to": "role:x"}),
        ]
        rows = [row for page in pages for row in mail_lists.list_mail(now, *page)["rows"]]
        opened = details.view_message(now, sent)
        return [(row["id"], row["receipt"].text, opened["receipts"][0]["what"]) for row in rows]

    assert told() == [(sent, "queued: it waits here for the engine", "queued")] * 3
    two.orders[0].reachable = True
    north.catch_up()
    assert told() == [(sent, "ben has not seen it", "sent")] * 3


def test_who_does_not_get_the_files_gives_the_turn_back(tmp_path: Path) -> None:
    """Another process holds the lock of the files too long; the next one of this machine need not wait for us."""
    first, second = (AskedOrder(MemoryOrder(MemorySpace(), "north"), lambda: None) for _ in range(2))
    with FileLock(str(tmp_path / known_copy.FILES), 0), pytest.raises(Busy):
        MachineLock(str(tmp_path), 0, first).take()
    with MachineLock(str(tmp_path), 0, second):
        assert (first.turn, second.turn is None) == (None, False)


def test_what_others_did_meanwhile_is_looked_at_under_the_lock(tmp_path: Path) -> None:
    """The files are free while the engine is asked, and locked before somebody looks at them again."""
    done: list[str] = []

    def is_free() -> bool:
        try:
            with FileLock(str(tmp_path / "files"), 0):
                return True
        except Busy:
            return False

    order = AskedOrder(MemoryOrder(MemorySpace(), "north"), lambda: done.append(f"looked, free: {is_free()}"))
    with MachineLock(str(tmp_path), 0, order):
        order.ask(lambda: done.append(f"asked, free: {is_free()}"))
    assert done == ["asked, free: True", "looked, free: False"]
