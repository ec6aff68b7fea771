"""One steward decides what is archived, all machines follow; the engine is purged of it, and nobody loses anything."""

from __future__ import annotations

import itertools
import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.core import codec, instant, proofs
from agent_mailbox.core.control.messages import TaskAssignment
from agent_mailbox.core.instant import DAY
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.records import USER, Read
from agent_mailbox.errors import Refused, Unavailable
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.space import joining_space
from agent_mailbox.space.copy import bundled_lines, publishing, replica, space_troubles
from agent_mailbox.space.copy.replica import Replica
from agent_mailbox.space.copy.space_troubles import SpaceQueue
from agent_mailbox.space.order.order import ARCHIVE, CLAIMS, MESSAGES, PASSED, WIDEST, id_of, spell_word
from agent_mailbox.store.archive import roster_compaction, rotation
from agent_mailbox.store.archive.manifest import Manifest
from agent_mailbox.store.log.log import Log
from agent_mailbox.store.log.unordered import unsealed
from agent_mailbox.store.user_state import creation
from agent_mailbox.upkeep import shared_steward
from tests.control_desk import ControlDesk
from tests.helpers import PATIENCE

from .memory_order import MemoryOrder, MemorySpace, copy_of
from .pair import LOG, Pair
from .two import Two, archived, gone, live, machine, purge, read, roster_lines, shown, steward, with_dead

if TYPE_CHECKING:
    from agent_mailbox.core.inbox import Item


def test_a_machine_answers_to_its_own_name_alone(two: Two, tmp_path: Path) -> None:
    """Another one whose name begins with its own is given up: it has nothing to say to that."""
    north, _ = two.boxes
    machine(two, tmp_path, "north-2")
    two.orders[1].append_lines(PASSED, [spell_word("gave_up", "north-2")])
    end = two.orders[0].last_position()
    for _ in "12":
        north.catch_up()
    assert two.orders[0].last_position() == end
    two.orders[1].append_lines(PASSED, [spell_word("gave_up", "north")])
    end = two.orders[0].last_position()
    for _ in "12":
        north.catch_up()
    assert two.orders[0].last_position() > end


def test_what_stays_in_the_engine_whoever_followed() -> None:
    """A purge takes archived mail, once each machine has followed. A bundle stays, though another has it as a line:
    who joins later reads it. So does each log's last record. One that was given up holds nothing up."""
    space = MemorySpace()
    orders = {name: MemoryOrder(space, name) for name in ("w-1", "w-10", "gone")}
    order, mail = orders["w-1"], [b'{"id":"m%d"}' % n for n in range(3)]
    order.append_lines(MESSAGES, mail)
    (bundle,) = bundled_lines.records_of("2026-01.jsonl", mail)
    order.append_lines(ARCHIVE, [bundle])
    order.append_lines(ARCHIVE, [*bundled_lines.records_of("2026-02.jsonl", [bundle])])
    order.append_lines(MESSAGES, [mail[0], b'{"id":"m10"}'])  # the same again is newer than what was archived
    end = order.last_position()
    (forged,) = bundled_lines.records_of("2026-03.jsonl", [b'{"id":"m10"}'])
    order.append_lines(CLAIMS, [forged, b"last"])  # any machine may append to that log: it is no bundle there
    for name, followed, positions in (("w-1", end + 2, ()), ("w-10", 3, ()), ("w-10", end + 2, (1, 2, 3))):
        orders[name].append_lines(PASSED, [spell_word("applied", followed)])
        order.append_lines(PASSED, [spell_word("gave_up", "gone")])
        order.append_lines(MESSAGES, [b"newest"])
        found = joining_space.plan_purge(order, order.joined_machines())
        assert found.records == len(space.records)
        assert tuple(one for one in found.positions if one <= end) == positions


def test_a_purge_keeps_the_last_word_of_each_kind() -> None:
    """A machine that joins later knows by these who was given up, whose name was taken over, and how far all are.
    Earlier ones go, and so does what was told of a damaged record."""
    space = MemorySpace()
    order, other = MemoryOrder(space, "north"), MemoryOrder(space, "south")
    for _ in range(2):
        for one in (order, other):
            one.append_lines(PASSED, [spell_word("applied", 1), spell_word("took_over", "k")])
        given_up = (spell_word("gave_up", one) for one in ("w", "w-2"))
        order.append_lines(PASSED, [*given_up, spell_word("purged", 0)])
        order.append_lines(PASSED, [spell_word("damaged", 1)])
    found = joining_space.plan_purge(order, ["north", "south"])
    assert found.positions == (*range(1, 9), 16)
    assert (found.whole, found.others) == ({PASSED: 8}, (16,))


def test_pending_mail_is_judged_over_the_whole_space(two: Two) -> None:
    """Mail that another machine's session has read is finished, also here; what it has not read stays."""
    north, south = two.boxes
    read(two, "one")
    north.send(Draft(sender="ann", to=("ben",), content="two"))
    assert (steward(north).archived, live(north)) == (0, ["one", "two"])  # the read is not shipped yet
    south.catch_up()
    assert steward(north).archived == 1
    assert steward(south).archived == 0  # it followed, and finds the work done
    for box in two.boxes:
        assert (live(box), archived(box)) == (["two"], ["one"])
    assert shown(south, "ben") == ["two"]


def test_a_team_that_works_holds_up_no_steward(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail comes ahead of each attempt: what is finished is judged once, and archived. About it, it is judged again."""
    north, south = two.boxes
    read(two, "one", "two")
    south.catch_up()
    plans, real = list[int](), retention.plan
    monkeypatch.setattr(retention, "plan", lambda *words: (plans.append(1), real(*words))[1])

    def come_first(more: int, **draft: str) -> None:
        south.send(Draft(sender="ben", to=("ann",), content="new", **draft))
        two.orders[0].first = (lambda: come_first(more - 1, **draft)) if more else None

    two.orders[0].first = lambda: come_first(3)
    assert (steward(north).archived, len(plans)) == (2, 2)
    assert (live(north), archived(north)) == (["new"] * 4, ["one", "two"])
    read(two, "three")
    south.catch_up()
    north.catch_up()
    (three,) = [m.id for m in north.state().messages.values() if m.content == "three"]
    two.orders[0].first = lambda: come_first(0, thread=three)
    plans.clear()
    steward(north)
    assert (len(plans), "three" in live(north)) == (3, False)
    monkeypatch.setattr(replica, "ROUNDS", 2)
    read(two, "four")
    south.catch_up()
    two.orders[0].first = lambda: come_first(2)
    plans.clear()
    assert steward(north).archived == 1
    assert (len(plans), "four" in archived(north)) == (3, True), "it gave up, and judged again"


def read_by_ben(two: Two) -> str:
    """Ben, in the south, has role mail; return its id."""
    north, south = two.boxes
    sent = north.send(Draft(sender="user", to=("role:dev",), content="to one of you")).message.id
    south.catch_up()
    assert shown(south, "ben") == ["to one of you"]
    south.catch_up()
    return sent


@pytest.mark.parametrize("beside", ["", "ahead", "behind"])
def test_a_steward_that_is_overtaken_looks_again(two: Two, beside: str) -> None:
    """Ben gives back role mail between the steward's look and its decision: the mail is pending, and stays. Other mail
    may come ahead of that, or behind it."""
    north, south = two.boxes
    sent = read_by_ben(two)

    def overtaken() -> None:
        for deed in {"ahead": ("send", "release"), "behind": ("release", "send")}.get(beside, ("release",)):
            if deed == "release":
                south.release(sent, "ben")
            else:
                south.send(Draft(sender="ben", to=("cron",), content="other mail"))

    two.orders[0].first = overtaken
    assert steward(north).archived == 0
    assert shown(north, "ann") == ["to one of you"]


def test_a_steward_decides_by_what_came_while_it_asked_for_the_order_s_end(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ben gives back role mail meanwhile, and the steward's own replicator takes that in: the end is behind it, so the
    look must be, too."""
    north, south = two.boxes
    sent = read_by_ben(two)
    assert north.replica is not None
    order, asked = two.orders[0], list[int]()
    replicator = copy_of(north.logs, MemoryOrder(order.space, "north"), north.replica.directory)

    def overtaken() -> int:
        if not asked:
            south.release(sent, "ben")
            asked.append(replicator.take_in_beside())
        return order.space.end()

    monkeypatch.setattr(order, "last_position", overtaken)
    assert (steward(north).archived, asked) == (0, [1])
    assert shown(north, "ann") == ["to one of you"]


def test_a_steward_leaves_mail_that_was_read_just_now_to_its_next_run(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ben's read is recorded between the steward's catching up and its look. Ann's machine has not heard of it, and
    would keep the mail: the copies would differ."""
    north, south = two.boxes
    sent = north.send(Draft(sender="user", to=("role:dev",), content="to one of you")).message.id
    south.catch_up()

    def dies(_: list[Item]) -> list[Item]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        south.deliver("ben", dies)  # claimed, and being shown
    look = Replica.end_of_order

    def reads_first(self: Replica) -> int:
        south.logs.reads.append([codec.spell_read(Read(sent, "ben", south.now(), via="role:dev"))], (), [None])
        return look(self)

    with monkeypatch.context() as patch:
        patch.setattr(Replica, "end_of_order", reads_first)
        assert steward(south).archived == 0
    assert steward(south).archived == 1
    north.catch_up()
    assert (live(north), live(south)) == ([], [])


def test_mail_for_a_frozen_session_stays_on_its_machine_though_another_clock_is_ahead(two: Two) -> None:
    """A steward of a machine whose clock is four days ahead archives what expired by it. Ben's machine keeps what he
    has not read: he is frozen, and may come back."""
    north, south = two.boxes
    south.register(Registration(session_id="ben", tags=("concern:x",)), "ben")
    sent = north.send(Draft(sender="ann", to=("concern:x",), content="to the tag")).message.id
    south.end("ben", "freeze", "ben")
    for box in (north, south, north):
        box.catch_up()
    later = Mailbox(north.directory, clock=lambda: wall_clock() + 4 * DAY)
    later.share(north.replica)
    assert steward(later, sent).archived == 1
    south.catch_up()
    assert shown(south, "ben") == ["to the tag"]


@pytest.mark.parametrize("days", [0, 1])
def test_a_request_goes_with_an_answer_of_another_month(two: Two, days: int) -> None:
    """Its answer comes in another month's bundle. Both go in one run, and the order has each once."""
    north, _ = two.boxes
    north.prove = proofs.of_session
    north.register(Registration(session_id="bob"), "bob")
    turn = instant.parse(f"{instant.month(wall_clock())}-01T00:00:00Z")
    north.now = lambda: turn - days
    task = ControlDesk(north).add_task("ann", ("bob",), TaskAssignment(title="T")).task.id
    north.now = lambda: turn - 1 + days
    ControlDesk(north).report("bob", task, "done", "s")
    assert [len(shown(north, who)) for who in ("ann", "bob")] == [1, 1]
    north.catch_up()
    before = two.orders[0].last_position()
    assert steward(north).archived == 2
    assert live(north) == []
    told = [bundled_lines.unpack_bundle(r.line) for r in two.orders[0].read_after(before, 99) if r.log == ARCHIVE]
    mail = [line for bundle in told if bundle and not bundle.file.endswith("-reads.jsonl") for line in bundle.lines]
    assert len(mail) == 2


@pytest.mark.parametrize(("room", "most", "mail"), [("bundled_lines.WHOLE", 1, [1] * 5), ("WIDEST", 450, [2, 1, 2])])
def test_what_is_too_much_for_one_decision_goes_in_several(
    two: Two, monkeypatch: pytest.MonkeyPatch, room: str, most: int, mail: list[int]
) -> None:
    """A decision has as much as it may take, and the run goes on until all is archived, once."""
    north, _ = two.boxes
    read(two, *"abcde")
    two.boxes[1].catch_up()
    monkeypatch.setattr(f"agent_mailbox.upkeep.shared_steward.{room}", most)
    before = two.orders[0].last_position()
    assert steward(north).archived == 5
    told = [bundled_lines.unpack_bundle(r.line) for r in two.orders[0].read_after(before, 99) if r.log == ARCHIVE]
    assert [len(one.lines) for one in told if one and not one.file.endswith("-reads.jsonl")] == mail
    assert (live(north), archived(north)) == ([], [*"abcde"])


def test_a_message_that_no_decision_can_take_stops_no_other(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too much is about it, so it stays live; what is before and behind it is archived."""
    north, _ = two.boxes
    long = "".join(map(str, range(400)))
    read(two, "a", long, "b")
    two.boxes[1].catch_up()
    monkeypatch.setattr(shared_steward, "WIDEST", 600)
    assert steward(north).archived == 2
    assert (live(north), archived(north)) == ([long], ["a", "b"])


def test_a_steward_tells_of_a_message_that_stays_once(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own machine cannot move it, for whatever reason. The order gets one bundle a run, and it counts as live."""
    north, _ = two.boxes
    read(two, "one")
    two.boxes[1].catch_up()
    north.catch_up()
    monkeypatch.setattr(retention, "movable", lambda *_: set())
    before = two.orders[0].last_position()
    found = steward(north)
    records = [record for record in two.orders[0].read_after(before, 99) if record.log == ARCHIVE]
    assert (found.archived, found.kept, len(records)) == (0, 1, 2)


def test_mail_that_is_archived_meanwhile_is_not_given_back(two: Two) -> None:
    """The steward's decision comes between Ben's look and his release: he is told, since nobody would be shown it."""
    north, south = two.boxes
    sent = read_by_ben(two)
    archived_by = list[int]()
    two.orders[1].first = lambda: archived_by.append(steward(north).archived)
    with pytest.raises(Refused, match="is archived and cannot be given back"):
        south.release(sent, "ben")
    assert archived_by == [1]
    north.catch_up()
    assert (live(north), live(south), shown(north, "ann")) == ([], [], [])


def test_a_read_that_is_not_shipped_is_not_lost(two: Two) -> None:
    """Mail is archived while a machine still has a read of it for itself: the read follows, and reaches all."""
    north, south = two.boxes
    sent = north.send(Draft(sender="ann", to=("all",), content="one", ttl_hours=1)).message
    south.catch_up()
    assert shown(south, "ben") == ["one"]
    north.now = lambda: sent.timestamp + 4_000_000
    assert steward(north, sent.id).archived == 1
    assert len(list(south.logs.read_records())) == 1
    for box in (south, north):
        box.catch_up()
        assert len([r for r in box.logs.read_records() if r.message_id == sent.id]) == 1  # until the next decision
    more = north.send(Draft(sender="ann", to=("all",), content="two", ttl_hours=1)).message.id
    north.now = lambda: sent.timestamp + 8_000_000
    assert steward(north, more).archived == 1
    south.catch_up()
    for box in two.boxes:
        (found,) = [r for r in box.archive.reads() if r.message_id == sent.id]
        assert (found.session_id, found.event) == ("ben", "read")
        assert not [r for r in box.logs.read_records() if r.message_id == sent.id]


def test_an_order_stands_whoever_says_that_it_is_archived(two: Two) -> None:
    """Another machine may have plain mail archived here, and no order that is there by this machine's own judgement."""
    north, south = two.boxes
    north.prove = lambda _: proofs.TERMINAL
    order = ControlDesk(north).set_policy(USER, ["ann"], deny=["Bash"]).message.id
    plain = north.send(Draft(sender="ann", to=("ann",), content="plain")).message.id
    lines = [unsealed(line) for _, line in north.logs.messages.lines()]
    records = [*bundled_lines.records_of(f"{instant.month(north.now())}.jsonl", lines)]
    south.catch_up()
    two.orders[1].append_lines(ARCHIVE, records)
    for box in (south, north):
        box.catch_up()
    assert (order in north.state().messages, plain in north.state().messages) == (True, False)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"no zlib",
        zlib.compress(b"[]\nx"),
        zlib.compress(b'{"file":"../../x.jsonl","told":0,"since":0}\nx'),
        zlib.compress(b'{"file":"2026-11.jsonl/x","told":0,"since":0}\nx'),
        zlib.compress(b'{"file":"MANIFEST.jsonl","told":0,"since":0}\nx'),
        zlib.compress(b'{"file":"2026-11.jsonl","told":-1,"since":0}\nx'),
        zlib.compress(b'{"file":"2026-11.jsonl","told":0,"since":0}\n' + b"x" * bundled_lines.LARGEST),
        zlib.compress(b'{"file":"2026-11.jsonl","told":0,"since":0}\nx')[:-3],
    ],
    ids=range(9),
)
def test_a_bundle_of_another_form_counts_for_nothing(two: Two, record: bytes) -> None:
    """It names no other file than an archive's, it does not fill the memory, and the mailbox goes on behind it."""
    assert bundled_lines.unpack_bundle(record) is None
    two.orders[0].append_lines(ARCHIVE, [record])
    read(two, "one")
    for box in two.boxes:
        box.catch_up()
        assert (live(box), box.archive.files()) == (["one"], [])


def test_what_everybody_archived_is_purged_and_a_new_machine_has_it(two: Two, tmp_path: Path) -> None:
    """A machine that has not followed holds the purge back. Who joins then has the whole history, and no more."""
    north, south = two.boxes
    read(two, *map(str, range(9)))
    south.catch_up()
    steward(north)
    assert purge(two) == 0
    south.catch_up()
    late = south.send(Draft(sender="ben", to=("ann",), content="late"))
    assert purge(two) == 9 + 8  # the last read stays
    assert purge(two) == 0
    east = machine(two, tmp_path, "east")
    assert archived(east) == archived(north) == [*map(str, range(9))]
    assert live(east) == live(south) == ["late"]
    assert sorted(r.message_id for r in east.archive.reads()) == sorted(r.message_id for r in south.archive.reads())
    assert late.message.id in east.state().messages
    assert east.replica is not None
    with east.replica.machine_lock():
        bundled_lines.compare_with_order(east.replica)


def test_a_machine_that_lost_its_record_shows_nothing_again(two: Two) -> None:
    """Without its state a machine compares all of the order with its files: what is archived does not come back."""
    south = two.boxes[1]
    read(two, "one")
    south.catch_up()
    steward(south)
    assert south.replica is not None
    for _ in range(2):
        os.unlink(os.path.join(south.replica.directory, "state"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replica, "PAGE", 3)
            patch.setattr(bundled_lines, "follow_bundle", lambda *_: pytest.fail("killed"))
            with pytest.raises(pytest.fail.Exception):
                south.catch_up()
        assert live(south) == []
        south.catch_up()
        assert (live(south), archived(south)) == ([], ["one"])


def test_what_a_machine_heard_it_need_not_take_in_again(two: Two) -> None:
    """That another one followed a decision is kept, also where nothing comes behind it; a purge waits for that word."""
    north, south = two.boxes
    read(two, "one")
    for box in (south, north, south, north):
        box.catch_up()
        steward(north)
    assert two.orders[0].space.records[-1].log == PASSED
    assert north.replica is not None
    again = copy_of(north.logs, two.orders[0], north.replica.directory)
    again.look_locally()
    assert again.state.applied == two.orders[0].last_position()


def test_a_machine_that_lost_its_record_retells_the_dead_once(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last event of a life are told as they were, and archived under their seals: each once."""
    north, south = two.boxes
    monkeypatch.setattr(shared_steward, "COMPACT_ABOVE", 8)
    north.register(Registration(session_id="eve", name="eve"), "eve")
    for _ in range(4):
        north.end("eve", "freeze", "eve")
        north.check_in("eve")
    north.end("eve", "retire", "eve")
    steward(north)
    south.catch_up()
    before = roster_lines(north)
    for box in two.boxes:
        assert box.replica is not None
        os.unlink(os.path.join(box.replica.directory, "state"))
        box.catch_up()
        assert roster_lines(box) == before
    assert len(before[1]) == len({*before[1]}) == 10


def test_damage_to_the_dead_whom_a_new_machine_has_from_a_bundle_alone_is_found(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It seals the archived events as it follows, also those that its own roster never had."""
    with_dead(two.boxes[0], monkeypatch)
    steward(two.boxes[0])
    two.boxes[1].catch_up()
    assert purge(two) > 0
    archive = machine(two, tmp_path, "east").archive
    path = Path(archive.roster_log().path)
    path.write_bytes(path.read_bytes().replace(b"cat", b"dog"))
    assert [damage.file for damage in Manifest(archive).damage()] == [path.name]


def test_a_life_told_in_another_sequence_ends_nobody(two: Two) -> None:
    """Another machine tells of a session that came back here as if its end were the last event; a line that nobody has
    makes that a life to be completed. What is proven here stays."""
    north, south = two.boxes
    for end in (True, False):
        north.register(Registration(session_id="eve", client="1"), "eve")
        if end:
            north.end("eve", "retire", "eve")
    first, end_, again = [unsealed(line) for _, line in north.logs.roster.lines() if b'"eve"' in line]
    other = first.replace(b"register", b"update")
    south.catch_up()
    bundle = bundled_lines.Bundle("roster.jsonl", (first, other, again, end_), (first, end_), 1 << 50)
    two.orders[1].append_lines(ARCHIVE, [bundled_lines.pack_bundle(bundle)])
    north.catch_up()
    assert north.logs.read_roster().state("eve") == "alive"
    assert [unsealed(line) for _, line in north.logs.roster.lines() if b'"eve"' in line] == [first, end_, again]


def test_a_long_roster_of_the_dead_is_shortened_on_every_machine(
    two: Two,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A long roster of the dead is retold in fewer events on every machine; who joins after a purge has the same.

    A steward looks once more for others only if it retold some."""
    north, south = two.boxes
    looks, real = list[int](), retention.retold_dead
    monkeypatch.setattr(retention, "retold_dead", lambda *words: (looks.append(1), real(*words))[1])
    with_dead(north, monkeypatch)
    with monkeypatch.context() as narrow:
        narrow.setattr(shared_steward, "WIDEST", 0)  # no engine takes what would be told
        steward(north)
    assert len(looks) == 1
    before = [(a.session_id, a.name, a.state) for a in north.logs.read_roster().agents.values()]
    steward(north)
    for _ in range(2):
        for box in (south, north):
            box.catch_up()
            steward(box)
    assert purge(two) > 0
    east = machine(two, tmp_path, "east")
    rosters = [[unsealed(line) for _, line in box.logs.roster.lines()] for box in (north, south, east)]
    assert rosters[0] == rosters[1] == rosters[2]
    assert len(rosters[0]) == 8  # two that live, and two lives of three events
    assert len(looks) == 2, "shorter than that is short"
    monkeypatch.setattr(shared_steward, "COMPACT_ABOVE", 7)
    steward(north)
    assert len(looks) == 3, "nobody is told in fewer events"
    for box in (north, south, east):
        assert sorted((a.session_id, a.name, a.state) for a in box.logs.read_roster().agents.values()) == sorted(before)


def test_a_steward_tells_of_the_dead_once_though_its_machine_cannot_retell_them(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order gets one record a run, and the roster stays as it was."""
    north, _ = two.boxes
    with_dead(north, monkeypatch)
    monkeypatch.setattr(roster_compaction, "retell_roster", lambda *_: None)
    before, at_first = two.orders[0].last_position(), len(roster_lines(north)[0])
    steward(north)
    records = [record for record in two.orders[0].read_after(before, 99) if record.log == ARCHIVE]
    assert (len(records), len(roster_lines(north)[0])) == (1, at_first)


def test_a_machine_whose_logs_are_not_as_they_were_left_retells_nobody(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine whose logs are not as they were left follows no decision on its roster: a fresh log would hide that."""
    north, south = two.boxes
    with_dead(north, monkeypatch)
    north.send(Draft(sender="ann", to=("ben",), content="one"))
    south.catch_up()
    steward(north)
    before = roster_lines(south)
    path = Path(south.logs.messages.path)
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    with pytest.raises(Refused, match="is not as it was left") as told:
        south.catch_up()
    assert told.value.code == "broken"
    assert roster_lines(south) == before


def test_a_retried_send_of_purged_mail_is_the_same_mail(two: Two) -> None:
    """An id that the engine has no more is looked up here, also for mail that waited for the engine; others' too."""
    north, south = two.boxes
    given = "0f8fad5b-d9cb-469f-a165-70867728950e"
    draft = Draft(sender="ann", to=("ben",), content="one", id=given)
    two.orders[0].mute = True
    assert north.send(draft).queued  # it is in the order, and nobody said so
    two.orders[0].reachable = False
    south.catch_up()
    assert shown(south, "ben") == ["one"]
    south.catch_up()
    assert steward(south).archived == 1
    two.orders[0].space.remove([r.position for r in two.orders[0].space.records if r.log == MESSAGES])
    two.orders[0].mute, two.orders[0].reachable = False, True
    north.catch_up()
    assert not north.send(draft).queued
    with pytest.raises(Refused, match="another message"):
        north.send(draft.replace(content="two"))
    south.catch_up()
    assert [*archived(north), *live(north)] == [*archived(south), *live(south)] == ["one"]
    assert not [record for record in two.orders[0].space.records if record.log == MESSAGES]


@pytest.mark.parametrize("within", [False, True])
def test_mail_that_waited_until_another_took_its_id_is_set_aside(
    two: Two, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept and counted, and keeps no later mail back. A full queue takes no more. The other's mail may come at
    the moment at which it is published."""
    north, south = two.boxes
    assert north.replica is not None
    draft = Draft(sender="ann", to=("ben",), content="late", id="0f8fad5b-d9cb-469f-a165-70867728950e")
    two.orders[0].reachable = False
    for waits in (draft, draft.replace(id=None, content="next")):
        assert north.send(waits).queued
    with monkeypatch.context() as full:
        full.setattr(space_troubles, "FULL", 0)
        with pytest.raises(Unavailable, match="the queue is full"):
            north.send(draft.replace(id=None, content="too much"))
    first = draft.replace(sender="ben", to=("ann",), content="first")
    two.orders[0].reachable = True
    if within:
        two.orders[0].first = lambda: south.send(first)
    else:
        south.send(first)
    north.catch_up()
    queue = north.replica.queue
    assert (live(north), queue.count_unsent(), queue.read_entries()) == (["first", "next"], 1, [])
    assert b'"late"' in Path(north.replica.directory, space_troubles.UNSENT).read_bytes()


def test_a_machine_that_leaves_keeps_no_waiting_mail_that_is_in_its_archive(two: Two) -> None:
    """A kill may leave it in the queue. Other mail of the same id is set aside."""
    north, south = two.boxes
    assert north.replica is not None
    queue, two.orders[0].reachable = north.replica.queue, False
    assert north.send(Draft(sender="ann", to=("ben",), content="once")).queued
    (entry,) = queue.read_entries()
    two.orders[0].reachable = True
    north.catch_up()
    south.catch_up()
    assert shown(south, "ben") == ["once"]
    south.catch_up()
    assert steward(north).archived == 1
    queue.put_entry(entry.lines, entry.proofs)
    assert (publishing.keep_queued(north.replica), queue.read_entries(), queue.count_unsent()) == ([], [], 0)
    (line,) = entry.lines
    beside = line.replace(id_of(line).encode(), b"its own id")
    queue.put_entry([line.replace(b"once", b"other"), beside], [*entry.proofs, None])
    assert (publishing.keep_queued(north.replica), queue.read_entries(), queue.count_unsent()) == ([], [], 2)


@pytest.mark.parametrize("step", [(Log, "append"), (SpaceQueue, "drop_oldest")], ids=["kept", "out of the queue"])
def test_a_machine_that_is_killed_as_it_leaves_keeps_waiting_mail_once(
    two: Two, step: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies before the mail is in its files, or before the queue is rid of it: the next process has it once."""
    north = two.boxes[0]
    assert north.replica is not None
    two.orders[0].reachable = False
    for text in ("one", "two"):
        assert north.send(Draft(sender="ann", to=("ben",), content=text)).queued

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*step, dies)
        with pytest.raises(KeyboardInterrupt):
            publishing.keep_queued(north.replica)
    publishing.keep_queued(north.replica)
    assert (live(north), north.replica.queue.read_entries()) == (["one", "two"], [])
    assert north.replica.queue.count_unsent() == 0


@pytest.mark.parametrize("count", [1, 3])
def test_a_send_that_nobody_acknowledged_is_never_called_unsent(two: Two, count: int) -> None:
    """It waits, and is in the order already: its mail is there once, and none of it is set aside."""
    north, south = two.boxes
    assert north.replica is not None
    texts = [f"{number}" for number in range(count)]
    two.orders[0].mute = True
    drafts = [Draft(sender="ann", to=("ben",), content=text) for text in texts]
    assert all(sent.queued for sent in north.send_all(drafts))
    two.orders[0].mute = False
    for box in two.boxes:
        box.catch_up()
    queue = north.replica.queue
    assert (live(north), live(south)) == (texts, texts)
    assert (queue.count_unsent(), queue.read_entries()) == (0, [])


@pytest.mark.parametrize("more", [False, True], ids=["at once", "behind more words"])
def test_a_foreign_line_with_a_purged_id_stays_here(two: Two, more: bool) -> None:
    """Another program writes mail under an id that was archived and purged: nobody else hears of it. Nor does anybody
    once machines said more behind the purge."""
    north, south = two.boxes
    sent = gone(two)
    assert purge(two) > 0
    if more:
        two.orders[0].append_lines(PASSED, [spell_word("gave_up", "east")])
        for box in two.boxes:
            box.catch_up()
    line = {"id": sent.id, "sender": "cron", "recipient": "ben", "timestamp": "2026-01-01T00:00:00Z", "content": "x"}
    with open(south.logs.messages.path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    for box in (south, north):
        box.catch_up()
    assert (live(north), archived(north)) == (["last"], ["one"])


def test_mail_archived_before_joining_is_handed_over_once(two: Two, tmp_path: Path) -> None:
    """A mailbox with an archive joins, is killed after each record, and joins again: all have its history, once."""
    box = Mailbox(creation.create(str(tmp_path / "old"), os.environ))
    box.register(Registration(session_id="eve"), "eve")
    for n in range(60):
        box.send(Draft(sender="eve", to=("eve",), content=f"{n:02}" + os.urandom(30_000).hex(), ttl_hours=1))
    box.now = lambda: 1 << 41
    with rotation.alone(box.archive, 1):
        rotation.rotate(box.logs, box.archive, {}, lambda state: retention.plan(state, box.now(), 0))
    assert (len(archived(box)), live(box)) == (60, [])

    class Killed(BaseException):
        pass

    class Mortal(MemoryOrder):
        def append_lines(self, log: str, lines: object, **how: object) -> int:  # type: ignore[override]
            found = super().append_lines(log, lines, **how)  # type: ignore[arg-type]
            if log == ARCHIVE:
                raise Killed
            return found

    space = two.orders[0].space
    for order in (*[Mortal(space, "old")] * 5, *[MemoryOrder(space, "old")] * 2):
        box.share(copy_of(box.logs, order, str(tmp_path / "old.engine")))
        assert box.replica is not None
        try:
            with box.replica.machine_lock():
                box.replica.catch_up()
                bundled_lines.hand_over(box.replica)
                box.replica.catch_up()
                bundled_lines.compare_with_order(box.replica)
        except Killed:
            pass
    for other in two.boxes:
        other.catch_up()
        assert archived(other) == archived(box)
    sent = [b for r in space.records if r.log == ARCHIVE and (b := bundled_lines.unpack_bundle(r.line)) is not None]
    assert sum(len(bundle.lines) for bundle in sent) == 60
    assert len(sent) > 5


def test_one_steward_runs_for_all_and_the_engine_is_purged(pair: Pair) -> None:
    """The real commands: cron on every machine, a purge that waits for the other one, and a third that joins then."""
    for name, who in zip(("north", "south"), ("ann", "ben"), strict=True):
        pair.join(name)
        pair.ok(name, "roster", "register", "--session-id", who)
    given = "0f8fad5b-d9cb-469f-a165-70867728950e"
    send = ("send", "--from", "ann", "--to", "ben", "--body", "one", "--id", given)
    pair.ok("north", *send)
    pair.send("north", "--from", "ben", "--to", "ann", "--body", "two")
    with pair.serving("south"):
        pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
        assert pair.seen("south", "ben") == ["one"]
    pair.ok("south", "steward", "run", "--max-live", "9")  # which ships the read
    assert pair.ok("north", "steward", "run", "--max-live", "0")["archived"] == 1
    assert pair.ok("north", "engine", "purge", "--dry-run")["removable"] == 0
    found = pair.ok("south", "steward", "run", "--max-live", "0")
    assert (found["archived"], found["problems"]) == (0, [])
    assert pair.ok("north", "engine", "purge", "--dry-run")["removed"] == 0
    (wrong := pair.program.scratch / "wrong").touch(0o600)
    wrong.write_text("no such token")
    refused = pair.program.run("engine", "purge", "--credential", wrong, "--dir", pair.program.scratch / "north")
    assert "hint: a machine may remove nothing: give `--credential cluster/keeper`\n" in refused.stderr
    assert pair.ok("north", "engine", "purge")["removed"] == 1  # the message; its read is the last of its log
    assert pair.ok("north", *send)["message"]["id"] == given
    pair.program.run("init", pair.program.scratch / "east")
    pair.join("east")
    pair.ok("north", "engine", "leave")
    pair.ok("south", "engine", "leave")
    places = [pair.program.scratch / name for name in ("north", "south", "east")]
    (month,) = (places[0] / "agent-mailbox-archive").glob("????-??.jsonl")
    for place in places:
        lines = (place / "agent-mailbox-archive" / month.name).read_bytes().splitlines()
        assert [json.loads(line)["content"] for line in lines] == ["one"]
        assert [json.loads(line)["content"] for line in (place / LOG).read_bytes().splitlines()] == ["two"]
        assert unsealed(lines[0]) == unsealed(month.read_bytes().splitlines()[0])


def test_a_purge_names_whom_it_waits_for(pair: Pair) -> None:
    """It waits for nobody as long as nothing is archived, however much a machine said of itself."""
    for name, who in zip(("north", "south"), ("ann", "ben"), strict=True):
        pair.join(name)
        pair.ok(name, "roster", "register", "--session-id", who)
    pair.ok("north", "engine", "forget", "south")
    pair.ok("south", "engine", "join")  # it says that it lives
    pair.send("north", "--from", "ben", "--to", "ann", "--body", "one")
    plan = ("engine", "purge", "--dry-run", "--dir", pair.program.scratch / "north")
    assert "the rest waits" not in pair.program.run(*plan).stdout
    assert pair.seen("north", "ann") == ["one"]
    assert pair.ok("north", "steward", "run", "--max-live", "0")["archived"] == 1
    assert "the rest waits for south:" in pair.program.run(*plan).stdout


def test_a_machine_that_was_given_up_holds_no_purge_and_comes_back(pair: Pair) -> None:
    """South is given up while it is behind, with a read that it never shipped. The engine is purged past it. It comes
    back: it has all from the bundles, its read counts, nobody is shown anything again, and it holds the next purge."""
    for name, who in zip(("north", "south"), ("ann", "ben"), strict=True):
        pair.join(name)
        pair.ok(name, "roster", "register", "--session-id", who)
    pair.send("north", "--from", "ben", "--to", "ann", "--body", "south has it")
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "to ben")
    pair.ok("south", "steward", "run")
    assert pair.seen("south", "ben") == ["to ben"]  # the read stays there
    for body in ("south never had it", "nor that"):
        pair.send("north", "--from", "ben", "--to", "ann", "--body", body)
    assert pair.seen("north", "ann") == ["south has it", "south never had it", "nor that"]
    assert pair.ok("north", "steward", "run", "--max-live", "0")["archived"] == 3
    assert pair.ok("north", "engine", "purge")["removed"] == 0
    assert pair.ok("north", "engine", "forget", "south")["frozen"] == ["ben"]
    found = pair.ok("north", "engine", "purge")
    assert (found["removed"], [*found["machines"]]) == (4, ["north"])  # the last of each log stays
    with pair.serving("south"):
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "after")
        pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
        assert pair.seen("south", "ben") == ["after"]
    assert pair.ok("south", "steward", "run", "--max-live", "0")["problems"] == []
    assert pair.ok("north", "steward", "run", "--max-live", "0")["problems"] == []
    for name in ("north", "south"):
        doctor = pair.program.run("engine", "doctor", "--json", "--dir", pair.program.scratch / name).json
        assert [problem.partition(":")[0] for problem in doctor["problems"]] == ["replicator does not run"]
        place = pair.program.scratch / name / "agent-mailbox-archive"
        (month,) = place.glob("????-??.jsonl")
        contents = [json.loads(line)["content"] for line in month.read_bytes().splitlines()]
        assert sorted(contents) == ["after", "nor that", "south has it", "south never had it", "to ben"]
        assert pair.lines(name) == []
    assert pair.seen("south", "ben") == pair.seen("north", "ann") == []
    states = {agent["session_id"]: agent["state"] for agent in pair.ok("north", "roster", "list")["agents"]}
    assert states == {"ann": "alive", "ben": "alive"}
    assert [*pair.ok("north", "engine", "purge", "--dry-run")["machines"]] == ["north", "south"]


def test_a_line_that_no_record_can_hold_stops_no_other_line() -> None:
    """It is left out, also if only its packed form is too wide; half as many lines at a time make narrower records."""
    wide = [os.urandom(size).replace(b"\n", b"n") for size in (WIDEST - 1, WIDEST // 2, WIDEST // 2 + 99, WIDEST)]
    records = [*itertools.islice(bundled_lines.records_of("2026-01.jsonl", [b"first", *wide, b"last"]), 9)]
    assert all(0 < len(record) <= WIDEST for record in records)
    found = [line for record in records if (bundle := bundled_lines.unpack_bundle(record)) for line in bundle.lines]
    assert found == [b"first", *wide[1:3], b"last"]
    marked = [[*bundled_lines.records_of("2026-01.jsonl", [b"x"], mark)] for mark in ("1", "2", "2")]
    assert [marked[0] == marked[1], marked[1] == marked[2]] == [False, True], "what comes back twice differs"
