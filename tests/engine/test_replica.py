"""Decisions of two machines at the same moment, and what a machine may believe of another."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox, Refused, Registration
from agent_mailbox.core import codec, proofs
from agent_mailbox.core.instant import DAY
from agent_mailbox.core.machine_rights import Rights
from agent_mailbox.core.records import Read
from agent_mailbox.errors import BadData, Busy, Unavailable
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.space.copy import bundled_lines, known_copy, publishing, replica
from agent_mailbox.space.copy.known_copy import CROWD
from agent_mailbox.space.copy.publishing import Waiting, batch_lines
from agent_mailbox.space.order.order import MESSAGES, MOST, WIDEST, Ordered, reads_of
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.store.log.log import HeldLog, Log
from agent_mailbox.store.log.unordered import unsealed
from agent_mailbox.upkeep import steward
from agent_mailbox.upkeep.doctor import agent_checks
from tests.helpers import record, until

from .hostile_space import saying
from .memory_order import MemorySpace, copy_of
from .mortal import Machine
from .two import Overtaken, Two, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.core.inbox import Item


def test_lines_that_wait_go_in_appends_that_an_engine_takes() -> None:
    """Each has so many lines and bytes at most, and no id twice."""
    half = b"x" * (WIDEST // 2)
    lines = [(half, None), (half, None), (b"x", None), (half, "a"), (b"x", "a"), *[(b"x", None)] * MOST]
    waiting = [Waiting(0, line, MESSAGES, message_id, None) for line, message_id in lines]
    assert [len(batch) for batch in batch_lines(waiting)] == [2, 2, MOST, 1]


def test_who_is_overtaken_while_it_claims_is_shown_nothing(two: Two) -> None:
    """Ben claims role mail between Ann's look and her claim: he alone is shown it."""
    north, south = two.boxes
    north.send(Draft(sender="user", to=("role:dev",), content="to one of you"))
    south.catch_up()
    told: list[str] = []
    two.orders[0].first = lambda: told.extend(shown(south, "ben"))
    assert shown(north, "ann") == []
    assert told == ["to one of you"]


def test_who_is_overtaken_while_it_takes_a_name_is_refused(two: Two) -> None:
    """Ben takes a name between Ann's look and her registration: the name is his on both machines."""
    north, south = two.boxes
    two.orders[0].first = lambda: south.register(Registration(session_id="ben", name="kim"), "ben")
    with pytest.raises(Refused, match="kim"):
        north.register(Registration(session_id="ann", name="kim"), "ann")
    for box in two.boxes:
        box.catch_up()
        bearer = box.logs.read_roster().bearer("kim")
        assert bearer is not None
        assert bearer.session_id == "ben"


def test_what_comes_from_another_machine_proves_nothing(two: Two) -> None:
    """The person's word of one machine is mail on the other: it has no proof there."""
    north, south = two.boxes
    sent = north.send(Draft(sender="user", to=("ben",), content="do it", ack=True)).message.id
    south.catch_up()
    assert north.state().messages[sent].proof is not None
    assert south.state().messages[sent].proof is None


def test_many_records_at_once_end_every_quiet_stamp(two: Two) -> None:
    """More than are looked at one by one: a session that had nothing new sees all of them."""
    north, south = two.boxes
    assert shown(south, "ben") == []
    assert shown(south, "ben") == []
    for start in range(0, CROWD * 2, 50):
        north.send_all([Draft(sender="ann", to=("ben",), content=f"{start + n}") for n in range(50)])
    south.catch_up()
    assert shown(south, "ben") == [f"{n}" for n in range(CROWD * 2)]


@pytest.mark.parametrize("deed", ["gives back", "ends"])
@pytest.mark.parametrize("moment", ["behind its lock", "as the engine is asked"])
def test_a_read_beside_its_release_means_the_same_on_all_machines(
    two: Two, monkeypatch: pytest.MonkeyPatch, moment: str, deed: str
) -> None:
    """A hook records a read as mail is given back: the machines have the same records, and agree who has the mail."""
    north, _ = two.boxes
    sent = north.send(Draft(sender="user", to=("role:dev",), content="to one of you", ack=True)).message.id
    assert shown(north, "ann") == ["to one of you"]
    north.catch_up()
    held = Log.held

    def hook() -> None:
        with held(north.logs.reads) as reads:
            reads.append([codec.spell_read(Read(sent, "ann", 1, "read", "role:dev", nonce="later"))])

    def after_a_hook(log: Log, patience: float = 0) -> HeldLog:
        if log.path == north.logs.reads.path:
            monkeypatch.setattr(Log, "held", held)
            hook()
        return held(log, patience)

    if moment == "behind its lock":
        monkeypatch.setattr(Log, "held", after_a_hook)
    else:
        two.orders[0].first = hook
    if deed == "ends":
        north.end("ann", "retire", "ann")
    else:
        north.release(sent, "ann")
    assert Log.held is held, "the hook came"
    for box in (*two.boxes, *two.boxes):
        box.catch_up()
    for box in two.boxes:
        has = [read.session_id for read in box.state().reads.of(sent)]
        assert has == (["ann"] if moment == "as the engine is asked" and deed == "gives back" else [])
    lines = [sorted(unsealed(line) for _, line in box.logs.reads.lines()) for box in two.boxes]
    assert lines[0] == lines[1]


def test_who_gives_back_waits_for_who_decides(two: Two) -> None:
    """Another process of the machine is about to decide, and has looked: nothing is recorded that it did not see. A
    look takes in first what another machine just sent."""
    north, south = two.boxes
    sent = north.send(Draft(sender="user", to=("role:dev",), content="to one of you")).message.id
    with pytest.raises(Refused, match="ben has not read"):
        south.release(sent, "ben")
    assert shown(north, "ann") == ["to one of you"]
    assert north.replica is not None
    decider, impatient = north.replica.machine_lock(), Mailbox(north.directory, wait=0)
    impatient.share(copy_of(impatient.logs, two.orders[0], north.replica.directory))
    impatient.now = lambda: (decider.take(), 5)[1]
    with pytest.raises(Busy):
        impatient.release(sent, "ann")
    decider.release()
    assert [read.session_id for read in north.state().reads.of(sent)] == ["ann"]


@pytest.mark.parametrize("then", ["goes on", "lost its state", "restores"])
def test_a_read_that_another_machine_s_release_overtook_is_taken_back(two: Two, then: str) -> None:
    """Ann's read is not shipped yet as her mail is given back in the south: it is ahead of the release in one file, and
    would be behind it in the order, where the mail would be nobody's here and ann's elsewhere.

    The person of the south gave it back, who counts in the north. Amy, who has it by a tag, read it for herself: that
    is not taken back with it."""
    north, south = two.boxes
    north.register(Registration(session_id="amy", tags=("concern:x",)), "amy")
    north.prove = lambda _: None
    sent = north.send(Draft(sender="user", to=("role:dev", "concern:x"), content="to one of you")).message.id
    assert shown(north, "ann") == ["to one of you"]
    for box in two.boxes:
        box.catch_up()
    with north.logs.reads.held() as reads:
        late = (
            Read(sent, "ann", 1, "read", "role:dev", nonce="later"),
            Read(sent, "amy", 1, "read", "concern:x", nonce="x"),
        )
        reads.append([*map(codec.spell_read, late)])
    assert north.replica is not None
    assert south.replica is not None
    south.prove = lambda _: proofs.TERMINAL
    key = machine_keys.MachineKey(b"s" * 32)
    south.replica.judge._key = key
    rights = {"south": Rights(machine_keys.key_fingerprint(key.public), user=True)}
    machine_keys.save_rights(north.replica.directory, rights, applied=True)
    south.release(sent, "ann")
    with north.replica.machine_lock():
        north.replica.take_in()
    if then == "lost its state":
        os.unlink(os.path.join(north.replica.directory, "state"))
        north.share(copy_of(north.logs, two.orders[0], north.replica.directory))
    if then == "restores":
        with north.replica.machine_lock():
            north.replica.catch_up()
            assert north.replica.restore_lost() == 0
    for box in (*two.boxes, *two.boxes):
        box.catch_up()
    for box in two.boxes:
        assert [read.session_id for read in box.state().reads.of(sent)] == ["amy"]
    assert not [*north.replica.part_of(north.logs.reads).waiting()], "it is settled, once and for all"
    with north.replica.machine_lock():
        bundled_lines.compare_with_order(north.replica)
    assert shown(south, "ben") == ["to one of you"]


def test_a_release_from_another_machine_wakes_everybody_however_it_is_spelt(two: Two) -> None:
    """A program on one machine gives mail back in a line of its own spelling: a quiet session of the other sees it."""
    north, south = two.boxes
    north.register(Registration(session_id="cat", roles=("dev",)), "cat")
    sent = north.send(Draft(sender="user", to=("role:dev",), content="to one of you")).message.id
    north.catch_up()
    with north.logs.reads.held() as reads:
        reads.append([codec.spell_read(Read(sent, "cat", 1, "read", "role:dev"))])
    for box in (*two.boxes, *two.boxes):
        box.catch_up()
    assert shown(south, "ben") == []
    assert south.logs.stamp_files.is_quiet("ben")
    with open(north.logs.reads.path, "ab") as log:
        line = codec.spell_read(Read(sent, "cat", 2, "release"))
        log.write(line.replace(b'"release"', b'"\\u0072elease"'))
    for box in two.boxes:
        box.catch_up()
    assert not south.logs.stamp_files.is_quiet("ben")
    assert shown(south, "ben") == ["to one of you"]


def test_whoever_comes_back_takes_in_all_that_came(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many records that are, and whether they fill the engine's answers or not."""
    monkeypatch.setattr(replica, "PAGE", 4)
    north, south = two.boxes
    for box in two.boxes:
        box.catch_up()
    sent = list[str]()
    for count in range(10):
        for number in range(count):
            sent.append(north.send(Draft(sender="ann", to=("ben",), content=f"{number}")).message.id)
        assert south.replica is not None
        south.replica.check_order_again()
        south.catch_up()
        assert [*south.state().messages] == sent


def two_days_later(box: Mailbox) -> Mailbox:
    """The same machine's mailbox, once it took in all, after two days without a sign of life."""
    box.catch_up()
    assert box.replica is not None
    later = Mailbox(box.directory, clock=lambda: wall_clock() + 2 * DAY)
    later.share(box.replica)
    return later


def test_a_steward_freezes_the_silent_of_its_own_machine_alone(two: Two) -> None:
    """It has no sign of life of a session of another machine, whose own steward judges that."""
    later = two_days_later(two.boxes[0])
    assert steward.run_upkeep(later, trust_clock=True).frozen == 1
    assert [agent.state for agent in later.logs.read_roster().agents.values()] == ["frozen", "alive"]


def test_a_copy_of_a_line_that_waits_to_be_published_has_no_proof(tmp_path: Path) -> None:
    """A program copies Ann's claim and her read to the file's end. They go out as any program's lines do: unsealed, and
    not as a decision."""
    north = Machine(str(tmp_path), "north", MemorySpace())
    north.box.prove = saying
    north.box.register(Registration(session_id="ann", roles=("dev",)), "ann")
    north.box.send(Draft(sender="user", to=("role:dev",), content="to one of you"))
    assert shown(north.box, "ann") == ["to one of you"]
    north.catch_up()
    path = Path(north.box.logs.reads.path)
    before = path.read_bytes()
    assert [north.box.logs.reads.view() is not None, before.count(b"\n")] == [True, 2]
    path.write_bytes(before + before)
    north.copy.look_locally()
    told = [(one.log, one.proof) for one in publishing.lines_to_publish(north.copy)]
    assert told == [(reads_of("north"), None)] * 2


def test_a_log_that_was_replaced_waits_to_be_compared_as_a_whole(two: Two) -> None:
    """Another file with the same lines is in its place: a look without the engine says that it knows of none."""
    north = two.boxes[0]
    assert north.replica is not None
    for content in "ab":
        north.send(Draft(sender="ann", to=("ben",), content=content))
    north.catch_up()
    assert not [*publishing.lines_to_publish(north.replica)]
    path = Path(north.logs.messages.path)
    path.with_name("other").write_bytes(path.read_bytes())
    path.with_name("other").replace(path)
    north.replica.look_locally()
    waiting = [one.log for one in publishing.lines_to_publish(north.replica)]
    assert (north.replica.state.applied, waiting.count(MESSAGES)) == (0, 2)
    end = two.orders[0].last_position()
    north.catch_up()
    assert (two.orders[0].last_position(), [*publishing.lines_to_publish(north.replica)]) == (end, [])


def test_a_copy_is_as_old_as_its_last_whole_look(two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never had all is of unknown age. What could not be settled, since others were always first, is none."""
    north, south = two.boxes
    place = str(tmp_path / "north.engine")
    (tmp_path / "north.engine/fresh").unlink()
    with Path(north.logs.roster.path).open("a") as log:
        log.write('{"event":"register","session_id":"cat","timestamp":"2026-01-01T00:00:00Z"}\n')

    def register() -> None:
        tags = (f"concern:t{two.orders[0].last_position()}",)
        south.register(Registration(session_id="ben", tags=tags), "ben")
        two.orders[0].first = register

    two.orders[0].first = register
    monkeypatch.setattr(replica, "ROUNDS", 3)
    with pytest.raises(Busy, match="engine is too busy") as told:
        north.catch_up()
    assert (told.value.hint, known_copy.copy_age(place, 0)) == ("try again; nothing is lost", None)
    two.orders[0].first = None
    north.catch_up()
    assert known_copy.copy_age(place, 0) is not None


def test_what_another_process_took_in_since_is_not_asked_for_again(two: Two, tmp_path: Path) -> None:
    """Several commands waited for their turn at once: the first that gets it looks for all. A look that began before a
    command did is none of its own, nor is one at a time to come. A log that was replaced is compared all the same."""
    logs, place = two.boxes[0].logs, str(tmp_path / "north.engine")
    order = Overtaken(two.orders[0].space, "north")
    other, now = copy_of(logs, order, place), time.time_ns() // 1_000_000
    two.boxes[0].catch_up()
    order.reachable = False
    for looked, began, asks in ((-10, -20, False), (-10, -10, True), (-10, -5, True), (3_600_000, -20, True)):
        known_copy.note_fresh(place, now + looked)
        with other.machine_lock(), pytest.raises(Unavailable) if asks else nullcontext():
            other.catch_up_since(now + began)
    known_copy.note_fresh(place, now - 10)
    path = Path(logs.messages.path)
    path.with_name("other").write_bytes(path.read_bytes())
    path.with_name("other").replace(path)
    with other.machine_lock(), pytest.raises(Unavailable):
        other.catch_up_since(now - 20)


def test_a_look_beside_which_a_command_begins_is_none_of_its_own(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail is acknowledged once the order was read, and a command begins behind that. The look that went on meanwhile
    does not have the mail, so the command looks by itself."""
    north, south = two.boxes
    for box in two.boxes:
        box.catch_up()
    read, began = two.orders[0].read_after, list[int]()

    def now() -> int:
        return time.time_ns() // 1_000_000

    def overtaken(after: int, most: int) -> Sequence[Ordered]:
        found = read(after, most)
        if not began:
            south.send(Draft(sender="ben", to=("ann",), content="acknowledged before it began"))
            began.append(now())
            until(lambda: now() > began[0])
        return found

    monkeypatch.setattr(two.orders[0], "read_after", overtaken)
    assert north.replica is not None
    with north.replica.machine_lock():
        north.replica.check_order_again()
        north.replica.catch_up()
        assert not north.state().messages
        north.replica.catch_up_since(began[0])
    assert len(north.state().messages) == 1


def test_what_is_no_record_of_ours_is_passed_over_once(two: Two) -> None:
    """A stranger's message is behind all records: the next process need not read it again, and no record is missing."""
    north = two.boxes[0]
    north.catch_up()
    space = two.orders[0].space
    space.records.append(Ordered(space.end() + 1, "", b"", ""))
    north.catch_up()
    assert north.replica is not None
    again = copy_of(north.logs, two.orders[0], north.replica.directory)
    again.look_locally()
    assert again.state.applied == two.orders[0].last_position()
    assert not again.is_behind()


def test_a_killed_process_leaves_nothing_twice(two: Two) -> None:
    """The state is lost after each step: the whole of both is compared, and nothing is written or published again."""
    north, south = two.boxes
    north.send(Draft(sender="ann", to=("ben",), content="one"))
    north.send(Draft(sender="ann", to=("all",), content="two"))
    for box, order in zip(two.boxes, two.orders, strict=True):
        for _ in range(2):
            box.catch_up()
            lines, end = box.logs.ends(), order.last_position()
            assert box.replica is not None
            Path(box.replica.directory, "state").unlink()
            box.catch_up()
            assert (box.logs.ends(), order.last_position()) == (lines, end)
    assert shown(south, "ben") == ["one", "two"]
    assert shown(south, "ben") == []


def test_of_lines_of_which_one_has_a_taken_id_each_other_comes_under_its_own(two: Two) -> None:
    """Another program writes them here, and one has the id of mail that is on its way: that one stays here alone."""
    north, south = two.boxes
    taken = north.send(Draft(sender="ann", to=("ben",), content="first")).message.id
    lines = (record("cron", "ben", content, id=given) for given, content in ((taken, "late"), ("a", "x"), ("b", "y")))
    with Path(south.logs.messages.path).open("a") as log:
        log.writelines(f"{json.dumps(line)}\n" for line in lines)
    south.catch_up()
    north.catch_up()
    assert [one.content for one in north.state().messages.values()] == ["first", "x", "y"]
    assert {one for log, one in two.orders[0].space.ids if log == MESSAGES} == {taken, "a", "b"}


def test_a_copy_that_was_changed_is_found_by_the_sums_alone(two: Two) -> None:
    """A machine that has just taken in everything reads its own files again; only if they differ, the engine, too."""
    north, south = two.boxes
    for n in range(3):
        north.send(Draft(sender="ann", to=("ben",), content=f"number {n}"))
    replica = south.replica
    assert replica is not None
    Path(replica.directory, "state").unlink(missing_ok=True)
    with replica.machine_lock():
        replica.catch_up()
        position, asked = two.orders[1].read_after, list[int]()
        two.orders[1].read_after = lambda after, most: (asked.append(after), position(after, most))[1]  # type: ignore[method-assign]
        bundled_lines.compare_with_order(replica)
        assert asked == []
        path = Path(south.logs.messages.path)
        path.write_bytes(path.read_bytes().replace(b"number 1", b"number 7"))
        with pytest.raises(BadData, match="record of the space is not here"):
            bundled_lines.compare_with_order(replica)


def test_what_comes_while_a_copy_is_compared_is_no_difference(two: Two) -> None:
    """Another machine sends between a look and a comparison of all; a line that was changed is found all the same."""
    north, south = two.boxes
    north.send(Draft(sender="ann", to=("ben",), content="one"))
    south.catch_up()
    replica = south.replica
    assert replica is not None
    with replica.machine_lock():
        replica.catch_up()
        north.send(Draft(sender="ann", to=("ben",), content="two"))
        bundled_lines.compare_with_order(replica)
        path = Path(south.logs.messages.path)
        path.write_bytes(path.read_bytes().replace(b"one", b"one more"))
        with pytest.raises(BadData, match="record of the space is not here"):
            bundled_lines.compare_with_order(replica)


def test_a_doctor_does_not_judge_another_machine_s_sessions(two: Two) -> None:
    """Each machine's steward freezes its own alone, so no other doctor says that it will."""
    later = two_days_later(two.boxes[0])
    assert not [one.what for one in agent_checks.check_agents(later) if one.what.startswith("ben")]


def test_a_read_that_is_recorded_beside_another_session_s_claim_counts_for_it(two: Two) -> None:
    """Amy records that she read her role mail while Ann's claim of other mail is at the engine: no lock keeps her from
    it. Ann is not shown Amy's mail once Amy's claim lapses."""
    north = two.boxes[0]
    for who, roles in (("ann", ("dev", "ops")), ("amy", ("dev",))):
        north.register(Registration(session_id=who, roles=roles), who)
    sent = north.send(Draft(sender="user", to=("role:dev",), content="amy's")).message.id

    def dies(_: list[Item]) -> list[Item]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        north.deliver("amy", dies)  # claimed, and being shown
    north.send(Draft(sender="user", to=("role:ops",), content="ann's"))

    def amy_records() -> None:
        read = Read(sent, "amy", north.now(), via="role:dev")
        north.logs.reads.append([codec.spell_read(read)], (), [north.prove("amy")])

    two.orders[0].first = amy_records
    assert shown(north, "ann") == ["ann's"]
    later = Mailbox(north.directory, clock=lambda: wall_clock() + 20 * 60_000)
    later.share(north.replica)
    assert shown(later, "ann") == []
