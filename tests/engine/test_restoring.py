"""An engine that loses records gets them back from the machines' files, each once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Registration
from agent_mailbox.core import codec
from agent_mailbox.core.records import USER, Message, RosterEvent
from agent_mailbox.space.copy import bundled_lines
from agent_mailbox.space.copy import replica as replica_module
from agent_mailbox.space.copy.replica import Replica
from agent_mailbox.space.order.order import (
    ARCHIVE,
    CLAIMS,
    MESSAGES,
    PASSED,
    ROSTER,
    Moved,
    Ordered,
    reads_of,
    spell_word,
)
from agent_mailbox.store.archive.archive import ROSTER as ARCHIVED
from agent_mailbox.upkeep import shared_steward
from tests.helpers import PATIENCE
from tests.trust.scene import WORKER, Scene
from tests.trust.test_brought_back import RULE, bring_back, revoked

from .conformance import lines_of
from .memory_order import MemoryOrder, MemorySpace, copy_of
from .mortal import Machine
from .nats_server import serving
from .opened_orders import open_nats
from .pair import MACHINES, Pair
from .two import Two, archived, gone, live, machine, purge, read, roster_lines, shown, steward, with_dead

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post, Program


def settled(two: Two, *, doubt: bool = True) -> None:
    """Both machines look at the order until nothing is new."""
    for box in (*two.boxes, *two.boxes):
        assert box.replica is not None
        if doubt:
            box.replica.check_order_again()
        with box.replica.machine_lock():
            box.replica.catch_up()
            if box.replica.look_closer():
                box.replica.catch_up()


def with_history(two: Two) -> None:
    """Mail that is archived, mail that is live and read, role mail that is claimed, and mail that is unread."""
    north, south = two.boxes
    read(two, "archived")
    south.catch_up()
    steward(north)
    read(two, "read")
    north.send(Draft(sender="user", to=("role:dev",), content="for a role"))
    south.catch_up()
    assert shown(south, "ben") == ["for a role"]
    north.send(Draft(sender="ann", to=("ben",), content="unread"))
    settled(two)


def check(two: Two, place: Path) -> None:
    """All machines have everything once, a new one too, and nobody is shown anything again."""
    settled(two)
    boxes = [*two.boxes, machine(two, place, "east")]
    for box in boxes:
        assert archived(box) == ["archived"]
        assert sorted(live(box)) == sorted([*live(two.boxes[0])])
        lines = [line for _, line in box.logs.messages.lines()]
        assert len(lines) == len(set(lines)) == len(live(box))
        assert {"read", "for a role", "unread"} <= {*live(box)}
        reads = [(r.message_id, r.session_id, r.event) for r in box.logs.read_records()]
        assert len(reads) == len(set(reads))
        assert box.replica is not None
        with box.replica.machine_lock():
            bundled_lines.compare_with_order(box.replica)
    assert shown(two.boxes[0], "ann") == []
    assert "unread" in shown(two.boxes[1], "ben")


@pytest.mark.parametrize("kept", [0, 3, 9])
@pytest.mark.parametrize("more", [0, 9])
def test_an_engine_that_lost_its_last_records_is_noticed(two: Two, tmp_path: Path, kept: int, more: int) -> None:
    """Records are gone from some position on, and others came there: all machines notice, and nothing is doubled."""
    with_history(two)
    space = two.orders[0].space
    space.records, space._end = space.records[:kept], 0
    for n in range(more):
        space.append("west", MESSAGES, [_line(f"w{n}")], [f"w{n}"], None)
    check(two, tmp_path)
    brought_back = [box.replica.restored for box in two.boxes if box.replica is not None]
    assert sum(brought_back) > 0, "whoever serves or looks closer says how many"


@pytest.mark.parametrize("log", [MESSAGES, ROSTER, CLAIMS, ARCHIVE, reads_of("south")])
def test_an_engine_that_lost_records_in_its_middle(two: Two, tmp_path: Path, log: str) -> None:
    """All records of one log are gone, and the end stays: the number of those that are there tells it."""
    with_history(two)
    space = two.orders[0].space
    space.remove([r.position for r in space.records[:-1] if r.log == log])
    check(two, tmp_path)


def test_a_decision_that_expects_a_lost_record_is_taken(two: Two) -> None:
    """The last claim is gone from the order: the next one does not wait for it for ever."""
    with_history(two)
    north, south = two.boxes
    space = two.orders[0].space
    for log in (CLAIMS, ROSTER):
        space.remove([r.position for r in space.records if r.log == log][-1:])
    north.send(Draft(sender="user", to=("role:dev",), content="another"))
    south.catch_up()
    assert sorted(shown(south, "ben")) == ["another", "unread"]
    north.register(Registration(session_id="ann", name="kim"), "ann")
    settled(two)
    assert [r.state for r in south.logs.read_roster().agents.values()] == ["alive", "alive"]


def test_an_engine_whose_last_record_was_removed_lost_nothing(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is where it was: no machine reads everything again."""
    with_history(two)
    space = two.orders[0].space
    space.remove([space.records[-1].position])
    monkeypatch.setattr(Replica, "restore_lost", lambda _: pytest.fail("all records are read again"))
    for box, order in zip(two.boxes, two.orders, strict=True):
        assert box.replica is not None
        fresh = copy_of(box.logs, MemoryOrder(space, order.machine), box.replica.directory)
        with fresh.machine_lock():
            fresh.catch_up()


def test_what_waits_to_be_published_is_not_refused_for_ever_by_a_lost_record(two: Two) -> None:
    """Ann's freeze waits as the record before it is gone from the order. The next look brings back what is lost, and
    publishes it behind."""
    with_history(two)
    north, south = two.boxes
    two.orders[0].space.remove([r.position for r in two.orders[0].space.records if r.log == ROSTER][-1:])
    north.logs.roster.append([codec.spell_event(RosterEvent("freeze", "ann", north.now()))], (), [None])
    north.catch_up()
    south.catch_up()
    assert south.logs.read_roster().state("ann") == "frozen"
    assert [box.replica.restored for box in two.boxes if box.replica] == [1, 0]


def test_a_record_that_another_process_took_in_is_not_lost(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision is overtaken, and another process of the machine takes in what overtook it: that is no alarm."""
    with_history(two)
    north, south = two.boxes
    command = south.replica
    assert command is not None
    two.orders[1].first = lambda: north.register(Registration(session_id="zoe"), "zoe")
    with command.machine_lock():
        command.begin_decision()
        with pytest.raises(Moved):
            command.publish_lines(south.logs.roster, [b'{"event":"freeze","session_id":"ben"}'], {})
    other = copy_of(south.logs, MemoryOrder(two.orders[1].space, "south"), command.directory)
    with other.machine_lock():
        other.catch_up()
    monkeypatch.setattr(command, "restore_lost", lambda: pytest.fail("all records are read again"))
    with command.machine_lock():
        command.catch_up()
    assert south.logs.read_roster().state("zoe") == "alive"


def test_a_damaged_record_stops_nobody_and_comes_back(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record is not what was published: a new machine goes on, and who has the line brings it back."""
    with_history(two)
    space = two.orders[0].space
    for n, record in enumerate(space.records):
        if b"unread" in record.line:
            space.records[n] = record.replace(line=record.line.replace(b"unread", b"broken"), damaged=True)
    east = machine(two, tmp_path, "west")
    assert "unread" not in live(east)
    settled(two, doubt=False)
    east.catch_up()
    assert live(east).count("unread") == 1
    assert "broken" not in {content for box in two.boxes for content in live(box)}
    settled(two, doubt=False)
    assert sum(b'"damaged"' in r.line for r in space.records) == 1
    two.orders[0].append_lines(PASSED, [spell_word("applied", 7)])
    for box in two.boxes:
        monkeypatch.setattr(box.replica, "restore_lost", lambda: pytest.fail("all records are read again"))
    settled(two, doubt=False)


def test_a_machine_that_begins_again_tells_of_a_damaged_record_no_second_time(two: Two, tmp_path: Path) -> None:
    """It compares all each time. Each such word would have all machines read the whole order."""
    with_history(two)
    space = two.orders[0].space
    space.records = [one.replace(damaged=True) if b"unread" in one.line else one for one in space.records]
    west = machine(two, tmp_path, "west")
    settled(two)
    west.catch_up()
    for _ in range(3):
        (tmp_path / "west.engine/state").unlink()
        west.share(copy_of(west.logs, MemoryOrder(space, "west"), str(tmp_path / "west.engine")))
        west.catch_up()
    assert sum(b'"damaged"' in record.line for record in space.records) == 1
    assert "unread" in live(machine(two, tmp_path, "east")), "its own record is damaged in its sum alone"


def test_who_looks_at_all_finds_a_loss_that_the_count_of_holes_hides(two: Two, tmp_path: Path) -> None:
    """A stranger's message has the position of a lost one. The replicator's short look does not see that; the engine's
    doctor, which reads all, brings the mail back, and then finds nothing more."""
    with_history(two)
    north = two.boxes[0].replica
    assert north is not None
    space = two.orders[0].space
    space.records = [Ordered(one.position, "", b"", "") if b"unread" in one.line else one for one in space.records]
    with north.machine_lock():
        north.catch_up()
        assert [north.look_closer(), north.look_closer(at_all=True), north.look_closer(at_all=True)] == [0, 1, 0]
    assert "unread" in live(machine(two, tmp_path, "east"))


def test_a_machine_tells_of_every_damaged_record_though_few_fit_at_once(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others hear of the rest as it settles the next time."""
    with_history(two)
    space = two.orders[0].space
    space.records = [one.replace(damaged=one.kind == MESSAGES and not one.is_decision) for one in space.records]
    count = sum(one.damaged for one in space.records)
    monkeypatch.setattr(replica_module, "MOST", 1)
    west = machine(two, tmp_path, "west")
    for _ in range(count + 1):
        west.catch_up()
    assert count > 2
    assert sum(b'"damaged"' in record.line for record in space.records) == count


def test_an_engine_whose_new_end_says_the_same(two: Two) -> None:
    """Other records have the lost positions, and the last says of a machine what the lost one said: it is noticed."""
    with_history(two)
    north, space = two.boxes[0], two.orders[0].space
    end = two.orders[0].append_lines(PASSED, [spell_word("applied", 7)])
    settled(two)
    space.lose(end - 3)
    for n in range(2):
        space.append("west", MESSAGES, [_line(f"w{n}")], [f"w{n}"], None)
    assert two.orders[0].append_lines(PASSED, [spell_word("applied", 7)]) == end
    settled(two)
    for box in two.boxes:
        assert [message.content for message in box.state().messages.values()].count("other") == 2
    assert live(north).count("unread") == 1


def test_what_stays_here_alone_is_nothing_that_was_lost(two: Two) -> None:
    """A program writes mail under an id that was archived and purged. The purge looks like a loss, so all is compared:
    that line was never in the order, and no other machine hears of it."""
    north, south = two.boxes
    sent = gone(two)
    settled(two)
    assert purge(two) > 0
    with open(south.logs.messages.path, "ab") as file:
        file.write(_line(sent.id) + b"\n")
    settled(two)
    assert (live(north), archived(north)) == (["last"], ["one"])
    assert live(south) == ["last", "other"]


def test_mail_under_a_taken_id_does_not_come_back_beside_what_was_lost(two: Two) -> None:
    """A program writes mail under the id of live mail, which the engine then loses from its middle."""
    north, south = two.boxes
    sent = north.send(Draft(sender="ann", to=("ben",), content="one")).message.id
    with open(north.logs.messages.path, "ab") as file:
        file.write(_line(sent) + b"\n")
    settled(two)
    north.send(Draft(sender="ann", to=("ben",), content="two"))
    settled(two)
    two.orders[0].space.remove([two.orders[0].space.ids[MESSAGES, sent]])
    settled(two)
    assert [box.replica.restored for box in two.boxes if box.replica is not None] == [1, 0]
    assert [json.loads(line)["content"] for _, line in south.logs.messages.lines()] == ["one", "two"]


@pytest.mark.parametrize("kept", [0, 5, 12, 16])
@pytest.mark.parametrize("by", [0, 1])
def test_the_retold_dead_stay_dead_after_the_order_lost_them(
    two: Two,
    tmp_path: Path,
    kept: int,
    by: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The decision to retell them is lost, after one machine followed it: another one and a new one come to it, too.
    Each line comes back in one record.

    If south decided, north is the first to bring its lines back."""
    north, south = two.boxes
    with_dead(north, monkeypatch)
    south.catch_up()
    steward(two.boxes[by])
    space = two.orders[0].space
    assert len(space.records) == 18
    space.lose(kept)
    settled(two)
    boxes = [*two.boxes, machine(two, tmp_path, "east")]
    assert len({str(roster_lines(box)) for box in boxes}) == 1
    retold = [found for one in space.records if (found := bundled_lines.unpack_bundle(one.line)) is not None]
    lines = [line for bundle in retold if bundle.file == ARCHIVED for line in bundle.lines]
    assert len(lines) == len({*lines})
    states = [{a.session_id: a.state for a in box.logs.read_roster().agents.values()} for box in boxes]
    assert states == [{"ann": "alive", "ben": "alive", "cat": "dead", "dot": "dead"}] * 3


def test_the_retold_dead_are_no_loss_and_come_back_in_records_that_an_engine_takes(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that looks again brings none of them back. Lost, each of two long lives comes in its own record."""
    north, space = two.boxes[0], two.orders[0].space
    with_dead(north, monkeypatch)
    kept = space.end()
    steward(north)
    settled(two)
    assert north.replica is not None
    with north.replica.machine_lock():
        assert north.replica.restore_lost() == 0
    space.lose(kept)
    monkeypatch.setattr(bundled_lines, "WHOLE", 1000)
    settled(two)
    back = [
        found for one in space.records if (found := bundled_lines.unpack_bundle(one.line)) is not None and found.told
    ]
    assert [{json.loads(line)["session_id"] for line in one.lines} for one in back] == [{"cat"}, {"dot"}]


@pytest.mark.parametrize("is_ours_first", [True, False])
def test_a_newcomer_who_believes_the_others_has_the_retold_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ours_first: bool
) -> None:
    """The end of a dead agent's life is in the bundle alone, or the newcomer ignores it, as another machine brings it
    back first: what proves the rest of it does not make it a living one, whose lines would stay."""
    space = MemorySpace()
    north, south = (Machine(str(tmp_path), name, space) for name in ("north", "south"))
    with_dead(north.box, monkeypatch)
    south.catch_up()
    shared_steward.move_finished(north.box, north.copy, 0, set())
    space.lose(6)
    for one in (north, south) if is_ours_first else (south, north):
        one.catch_up(closer=True)
    east = Machine(str(tmp_path), "east", space)
    east.trust([north, south])
    east.catch_up()
    assert {agent.state for agent in east.box.logs.read_roster().agents.values()} == {"dead"}
    assert roster_lines(east.box) == roster_lines(north.box)


def test_an_end_that_is_lost_and_written_while_a_machine_asks_hides_nothing(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """South's last record is lost, and one that only north had. North brings both back between south's two questions:
    what is there, and where the order ends. That is where it ended for south, which writes behind it."""
    north, south = two.boxes
    north.send(Draft(sender="user", to=("ben",), content="both had it"))
    settled(two, doubt=False)
    space, there = two.orders[1].space, len(two.orders[1].space.records)
    north.send(Draft(sender="user", to=("ben",), content="north alone had it"))
    space.lose(there - 1)

    def ask_later() -> int:
        monkeypatch.undo()
        assert north.replica is not None
        north.replica.check_order_again()
        north.catch_up()
        assert space.end() == there
        return space.end()

    monkeypatch.setattr(two.orders[1], "last_position", ask_later)
    assert south.replica is not None
    south.replica.check_order_again()
    south.send(Draft(sender="ben", to=("ann",), content="behind them"))
    settled(two)
    assert shown(south, "ben") == ["both had it", "north alone had it"]


def test_a_newcomer_believes_what_a_machine_s_own_people_did(tmp_path: Path) -> None:
    """The engine lost the end of a session's life, and the claim of another one. The other machine brings them back
    first: a newcomer ignores that in its name, and heeds it once their own machine does so, too."""
    space = MemorySpace()
    north, south = (Machine(str(tmp_path), name, space) for name in ("north", "south"))
    for who in ("ann", "zoe"):
        north.box.register(Registration(session_id=who, tags=("role:dev",)), who)
        north.box.check_in(who)
    sent = south.box.send(Draft(sender="ben", to=("role:dev",), content="one")).message.id
    north.catch_up()
    kept = len(space.records)
    assert shown(north.box, "ann") == ["one"]
    north.box.end("zoe", "retire", "zoe")
    north.catch_up()
    south.catch_up()
    space.lose(kept)
    south.catch_up(closer=True)
    east = Machine(str(tmp_path), "east", space)
    east.catch_up()
    north.catch_up(closer=True)
    for one in (east, south, north):
        one.catch_up(closer=True)
        assert one.box.logs.read_roster().state("zoe") == "dead"
        assert [read.session_id for read in one.box.logs.read_records() if read.message_id == sent] == ["ann", "ann"]
    end = len(space.records)
    for one in (north, south, east):
        one.catch_up(closer=True)
    assert len(space.records) == end, "nothing is brought back twice"


def test_a_flipped_byte_in_a_server_s_store(program: Program, credential: str, place: Path) -> None:
    """A real server drops half of its records as it starts: they come back, and a new machine has all, once."""
    with serving(place / "flipped") as url:
        pair = Pair(program, url, credential)
        for name, who in zip(MACHINES, ("ann", "ben"), strict=True):
            pair.join(name)
            pair.ok(name, "roster", "register", "--session-id", who)
        batch = "".join(f'{{"recipient":["ben"],"content":"{n} {"x" * 500}"}}\n' for n in range(300))
        result = program.run("send", "--jsonl", "-", "--from", "ann", "--dir", program.scratch / "north", stdin=batch)
        assert result.rc == 0, result
        pair.ok("south", "steward", "run")
        records = pair.ok("south", "engine", "status")["records"]
    block = max((place / "flipped").rglob("*.blk"), key=lambda path: path.stat().st_size)
    data = bytearray(block.read_bytes())
    data[data.index(b"xxxxxxxx", len(data) // 2) + 50] ^= 1
    block.write_bytes(data)
    with serving(place / "flipped", int(url.rpartition(":")[2])):
        left = pair.ok("south", "engine", "status")["records"]
        assert left < records - 100
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "after")
        found = pair.ok("south", "check", "--session", "ben", "--limit", "0")["messages"]
        with pair.serving("south"):
            pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
        found += pair.ok("south", "check", "--session", "ben", "--limit", "0")["messages"]
        assert [m["content"].split()[0] for m in found] == [*map(str, range(300)), "after"]
        assert program.run("init", program.scratch / "east").rc == 0
        pair.join("east")
        for name in (*MACHINES, "east"):
            assert len(pair.lines(name)) == len({*pair.lines(name)}) == 301


def _line(message_id: str) -> bytes:
    return (
        f'{{"id":"{message_id}","sender":"west-1","recipient":"west-1",'
        '"timestamp":"2026-01-01T00:00:00Z","content":"other"}'
    ).encode()


def test_a_withheld_rule_is_withheld_in_the_order_of_all_machines(
    post: Post, server: str, credential: str, tmp_path: Path
) -> None:
    """It allows nothing here once the person confirmed the logs, and each machine has the person's order that says
    so."""
    scene = Scene(post)
    post.ok("engine", "join", server, "--space", "rules", "--machine", "north", "--credential", credential)
    bring_back(scene, revoked(scene, tmp_path))
    assert post.ok("doctor", "--trust", "--yes")["withheld"] == [{"agent": WORKER, "allow": [RULE], "mode": None}]
    assert (scene.rules(), scene.asked()) == (((), ("Bash(rm:*)",)), None)
    order = open_nats(server, "rules", "reader", credential)
    last = codec.message([*lines_of(order, MESSAGES)][-1])
    order.close()
    assert isinstance(last, Message)
    assert (last.sender, last.recipients, last.type) == (USER, (WORKER,), "control")
    assert RULE not in last.content
    post.ok("engine", "join")
    assert (scene.rules(), scene.asked()) == (((), ("Bash(rm:*)",)), None)
