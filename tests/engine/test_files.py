"""Attached files reach the machines of a space: verified, marked until they are there, and taken back in the end."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.instant import DAY
from agent_mailbox.errors import NoMailbox
from agent_mailbox.space import space as spaces
from agent_mailbox.space.order.order import MOST_PARTS, PART
from agent_mailbox.space.replicator import FIRST, LATE, MOST_WANTED, ExchangedFiles
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.store.attachments.attachment_files import digest
from tests.helpers import MESSAGES, PATIENCE, Program, until

from .opened_orders import open_nats, open_postgres
from .pair import Pair
from .postgres_server import credential as password_file
from .postgres_server import made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_mailbox.space.order.order import SpaceOrder


_spaces = itertools.count()


class TestNats:
    """Files in NATS."""

    @pytest.fixture
    def machines(self, server: str, credential: str, tmp_path: Path) -> Iterator[list[SpaceOrder]]:  # noqa: ARG002 - as below
        """The ways of two machines to a fresh space's files."""
        space = f"files-{next(_spaces)}"
        orders = [open_nats(server, space, name, credential) for name in "ab"]
        orders[0].make_unless_there()
        yield orders
        for order in orders:
            order.close()

    def test_attached_files_reach_every_machine(self, machines: list[SpaceOrder]) -> None:
        """Empty, small and of the largest size; shipped again; by two at once; taken back by each for itself."""
        a, b = machines
        assert list(b.fetch_copies("0" * 64)) == []
        a.make_unless_there()
        b.make_unless_there()
        for data in (b"", b"small", os.urandom(PART + 1), os.urandom(PART * MOST_PARTS)):
            name = digest(data)
            a.ship_file(name, data)
            a.ship_file(name, data)
            assert list(b.fetch_copies(name)) == [data]
        b.ship_file(name, b"no such thing")
        assert sorted(a.fetch_copies(name), key=len) == [b"no such thing", data]
        b.take_back(digest(b"small"))
        assert list(b.fetch_copies(digest(b"small"))) == [b"small"]
        a.take_back(name)
        assert list(b.fetch_copies(name)) == [b"no such thing"]
        a.take_back(name)
        a.ship_file(name, data)
        assert len(list(b.fetch_copies(name))) == 2


class TestPostgres(TestNats):
    """Files in PostgreSQL."""

    @pytest.fixture
    def machines(self, tmp_path: Path) -> Iterator[list[SpaceOrder]]:  # type: ignore[override]
        """The same."""
        with made() as database, database.running():
            word = password_file(tmp_path / "word")
            orders = [open_postgres(database.url, "files", name, word) for name in "ab"]
            orders[0].make_unless_there()
            yield orders
            for order in orders:
                order.close()


@pytest.fixture
def pair(program: Program, server: str, credential: str) -> Pair:
    """Two machines that joined; an agent on each."""
    return Pair.joined(program, server, credential)


def stored(pair: Pair, machine: str) -> list[str]:
    """The files that a machine has."""
    return attachment_files.names(str(pair.program.scratch / machine))


def test_an_attached_file_reaches_the_other_machine(pair: Pair) -> None:
    """Until it does, its mail is read without it, and says so; then it is there with its bytes, under its name."""
    file = pair.program.cwd / "plan.txt"
    file.write_bytes(os.urandom(PART * 2))
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "see the plan", "--attach", str(file))
    with pair.serving("south"):
        pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
        (message,) = pair.ok("south", "check", "--session", "ben")["messages"]
        (entry,) = message["attachments"]
        assert entry["not_here_yet"] is True
        assert "absolute_path" not in entry
        box = ("--dir", pair.program.scratch / "south")
        until(lambda: "missing" not in pair.program.run("doctor", *box).stdout)
        assert (
            "Attached: plan.txt (text/plain, 512 KiB): not here yet"
            in pair.program.run("show", message["id"], *box).stdout
        )
        with pair.serving("north"):
            until(lambda: stored(pair, "south"))
        (entry,) = pair.ok("south", "show", message["id"])["message"]["attachments"]
        assert "not_here_yet" not in entry
        assert Path(entry["absolute_path"]).read_bytes() == file.read_bytes()
        assert stored(pair, "south") == stored(pair, "north")
        (pair.program.scratch / "south" / "attachments" / stored(pair, "south")[0]).unlink()
        assert "is missing: an attachment" in pair.program.run("doctor", *box).stdout  # it was there


class Files:
    """The ways to the files of the pair, as their replicators have them."""

    def __init__(self, pair: Pair, machine: str) -> None:
        from agent_mailbox import Mailbox

        self.logs = Mailbox(str(pair.program.scratch / machine)).logs
        space = spaces.space_of(self.logs)
        assert space is not None
        self.said: list[str] = []
        self.files = open_nats(space.url, space.space, machine, space.credential)
        self.directory = spaces.record_of(self.logs).path(spaces.PLACE)
        self.copy = spaces.open_replica(self.logs, space)
        self.exchanged = self.again()

    def again(self) -> ExchangedFiles:
        """What a new process knows."""
        self.exchanged = ExchangedFiles(self.logs, self.files, self.directory, self.said.append)
        return self.exchanged

    def catch_up(self) -> None:
        with self.copy.machine_lock():
            self.copy.catch_up()


def test_a_file_whose_bytes_differ_from_its_digest_is_not_kept(pair: Pair) -> None:
    """Another machine ships other bytes under the digest, before the true ones, and after: only the true ones are kept.

    A mailbox without room says so, and mail goes on; the file comes once there is room."""
    north, south = Files(pair, "north"), Files(pair, "south")
    file = pair.program.cwd / "plan.txt"
    file.write_bytes(b"the plan")
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "see the plan", "--attach", str(file))
    south.catch_up()
    west = open_nats(pair.url, pair.space, "a-liar", pair.credential)
    for false in (b"the flan", b"another length"):
        west.ship_file(digest(b"the plan"), false)
        south.again().take_turn(1)
        assert stored(pair, "south") == []
    north.exchanged.take_turn(1)
    full = south.again()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attachment_files, "MOST_TOTAL", 5)
        full.take_turn(1)
    assert stored(pair, "south") == []
    assert "has no room" in south.said[0]
    south.again().take_turn(2)
    assert stored(pair, "south") == stored(pair, "north") != []


def test_files_are_taken_back_with_their_last_message(pair: Pair) -> None:
    """A day after no live message names a file its machine takes it back; one that nobody has is looked for no longer.

    A file that one does name stays, however long, and one that is not there is looked for ever less often. The state is
    derived: lost, all is found again."""
    north = Files(pair, "north")
    file = pair.program.cwd / "plan.txt"
    file.write_bytes(b"the plan")
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "see the plan", "--attach", str(file))
    log = pair.program.scratch / "north" / MESSAGES
    line = log.read_bytes().splitlines(keepends=True)[-1]
    bogus = line.replace(digest(b"the plan").encode(), b"0" * 64)
    log.write_bytes(line + bogus)
    now = 40 * DAY
    north.again().take_turn(now)
    assert list(north.files.fetch_copies(digest(b"the plan"))) == [b"the plan"]
    assert (list(north.again().ours), list(north.exchanged.wanted)) == ([digest(b"the plan")], ["0" * 64 + ".txt"])
    os.unlink(os.path.join(north.directory, "files"))
    north.again().take_turn(now)
    assert list(north.exchanged.ours) == [digest(b"the plan")]
    pauses = list[int]()
    for _ in range(10):
        (one,) = north.exchanged.wanted.values()
        north.exchanged.take_turn(one.due)
        pauses.append(north.exchanged.wanted["0" * 64 + ".txt"].due - one.due)
    assert pauses == [FIRST << n for n in range(1, 8)] + [LATE] * 3
    for _ in range(2):
        now += 2 * DAY
        north.again().take_turn(now)
        assert list(north.files.fetch_copies(digest(b"the plan"))) == [b"the plan"]
    log.write_bytes(b"")
    north.exchanged.take_turn(now + DAY // 2)
    assert list(north.files.fetch_copies(digest(b"the plan"))) == [b"the plan"]
    north.again().take_turn(now + 2 * DAY)
    assert list(north.files.fetch_copies(digest(b"the plan"))) == []
    assert (north.exchanged.ours, north.exchanged.wanted, north.said) == ({}, {}, [])
    assert MOST_WANTED * 200 < 4 << 20, "what is looked for stays small in memory"


def test_a_mailbox_that_is_away_gives_up_no_file(pair: Pair) -> None:
    """Its directory is moved for a moment as a file is to be shipped, and later as the day's sweep looks."""
    north = Files(pair, "north")
    file, place, away = (pair.program.cwd / "plan.txt", pair.program.scratch / "north", pair.program.scratch / "away")
    file.write_bytes(b"the plan")
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "see the plan", "--attach", str(file))
    north.exchanged.due = dict.fromkeys(stored(pair, "north"))
    for day in (2, 5):
        place.rename(away)
        with pytest.raises(NoMailbox):
            north.exchanged.take_turn(day * DAY)
        away.rename(place)
        north.exchanged.take_turn(day * DAY)
        assert list(north.files.fetch_copies(digest(b"the plan"))) == [b"the plan"]


def test_the_same_bytes_under_another_kind_of_name_reach_their_first_sender(pair: Pair) -> None:
    """A machine that shipped some bytes fetches them for the message of another that names them otherwise."""
    north, south = Files(pair, "north"), Files(pair, "south")
    for name in ("plan.txt", "plan.md"):
        (pair.program.cwd / name).write_bytes(b"the plan")
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "x", "--attach", str(pair.program.cwd / "plan.txt"))
    north.exchanged.take_turn(1)
    south.catch_up()
    south.exchanged.take_turn(1)
    pair.send("south", "--from", "ben", "--to", "ann", "--body", "x", "--attach", str(pair.program.cwd / "plan.md"))
    south.exchanged.take_turn(2)
    north.catch_up()
    for turn in range(3, 8):
        north.exchanged.take_turn(turn * 1_000_000)
    assert stored(pair, "north") == stored(pair, "south")
