"""Joining, moving and forgetting within one process: what is refused, with which hint, and what is told of a copy."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox, NotFound, Refused, Registration
from agent_mailbox.core import codec, instant, proofs
from agent_mailbox.errors import BadData
from agent_mailbox.space import joining_space, replicator, space_checks, space_words
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy import bundled_lines, known_copy, publishing, space_troubles
from agent_mailbox.space.copy.space_troubles import AWAY, note_trouble
from agent_mailbox.space.joining_space import SpaceStanding
from agent_mailbox.space.nats import nats_order
from agent_mailbox.space.order.order import CLAIMS, MESSAGES, ROSTER, WIDEST, reads_of
from agent_mailbox.space.space import Space
from agent_mailbox.store.files import small_files, system
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.user_state import creation
from agent_mailbox.upkeep import doctor
from tests.helpers import record

from .hostile_space import Joined
from .memory_order import MemorySpace
from .mortal import Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_spaces = itertools.count()


@pytest.fixture
def join(tmp_path: Path, server: str, credential: str) -> Iterator[Callable[[str], Joined]]:
    """Have a machine join a fresh space."""
    name, joined = f"joining-{next(_spaces)}", list[Joined]()

    def machine(machine: str) -> Joined:
        joined.append(Joined(tmp_path, Space(server, name, machine, credential)))
        return joined[-1]

    yield machine
    for one in joined:
        one.close()


def test_a_mailbox_joins_one_space_under_one_name(join: Callable[[str], Joined]) -> None:
    """The error says as what it is in which; once it left, another name has another key, and the same one the same."""
    north = join("north")
    logs, space = Mailbox(north.path).logs, north.space
    for other, way in ((space.replace(machine="n"), "this space under another name"), (space.replace(space="x"), "a")):
        with pytest.raises(Refused, match=f"mailbox is in {way}.*: {space.space} as north") as told:
            joining_space.join_space(logs, other)
        assert told.value.hint == "run `agent-mailbox engine leave` first"
    keys = list[str]()
    for name in ("north", "north", "east"):
        keys.append(joining_space.join_space(logs, space.replace(machine=name)).fingerprint)
        joining_space.leave_space(logs)
        assert spaces.read_note(logs, spaces.LEFT) == name
    assert [keys[0] == keys[1], keys[1] == keys[2], all(keys)] == [True, False, True]
    with pytest.raises(NotFound, match="mailbox is in no space") as none:
        spaces.require_space(logs)
    assert none.value.hint == "`agent-mailbox engine join URL --space NAME`"


def test_only_another_machine_of_the_space_is_given_up(join: Callable[[str], Joined]) -> None:
    """Its sessions are returned, the first time and again; the others are named where none has that name."""
    north = join("north")
    with pytest.raises(Refused, match="machine is this one: north"):
        joining_space.forget_machine(north.box, "north")
    with pytest.raises(NotFound, match="machine never joined the space") as alone:
        joining_space.forget_machine(north.box, "south")
    assert alone.value.hint == "this machine is alone in it"
    for name in ("south", "south-2"):
        machine = join(name)
        machine.box.register(Registration(session_id=f"of-{name}"), f"of-{name}")
    with pytest.raises(NotFound, match="machine never joined the space") as told:
        joining_space.forget_machine(north.box, "sout")
    assert told.value.hint == "these others are: south, south-2"
    for again in (False, True):
        assert joining_space.forget_machine(north.box, "south") == (["of-south"], again)
    told_of = {one["machine"]: one["given_up"] for one in joining_space.read_standing(north.box.logs).machines}
    assert told_of == {"south": True, "south-2": False}


def test_a_moved_mailbox_is_told_with_the_way_back(join: Callable[[str], Joined], tmp_path: Path) -> None:
    """It is found by any of its logs. At its place it was not moved, and another mailbox is none that was."""
    north = join("north")
    north.box.register(Registration(session_id="ann"), "ann")
    north.box.send(Draft(sender="ann", to=("all",), content="x"))
    other = Mailbox(creation.create(str(tmp_path / "other"), os.environ)).logs
    there, moved = Path(north.path), tmp_path / "moved"
    assert space_words.describe_move(Mailbox(north.path).logs, os.environ) == ""
    shutil.copytree(there, moved)  # as from one disk to another
    shutil.rmtree(there)
    logs = Mailbox(str(moved)).logs
    told = space_words.describe_move(logs, os.environ)
    assert told.startswith(f"it was machine north of space {north.space.space} at {there}, and is in no space here: ")
    join_again = f"`agent-mailbox engine join {north.space.url} --space {north.space.space} --machine north"
    assert f"{join_again} --credential {north.space.credential} --dir {moved}`" in told
    Path(other.reads.path).touch()
    assert space_words.describe_move(other, os.environ) == ""
    (moved / "agent-mailbox.jsonl").write_bytes(b"")
    assert space_words.describe_move(logs, os.environ) == told
    kept = (roster := moved / "agent-roster.jsonl").read_bytes()
    roster.unlink()
    assert space_words.describe_move(logs, os.environ) == ""
    roster.write_bytes(kept)
    assert space_words.describe_move(logs, os.environ) == told
    creation.create(str(moved), os.environ)
    joining_space.join_space(logs := Mailbox(str(moved)).logs, north.space.replace(machine="east"))
    assert space_words.describe_move(logs, os.environ) == ""


def test_how_old_a_copy_is_and_why(join: Callable[[str], Joined]) -> None:
    """It is told unless a replicator keeps the copy up, and the engine answered it a moment ago."""
    north = join("north")
    logs = Mailbox(north.path).logs
    record, fresh = spaces.record_of(logs), system.join(north.directory, known_copy.FRESH)

    def told(age: int | None) -> str:
        if age is None:
            small_files.remove_file(fresh)
        else:
            small_files.note_time(fresh, system.time_ns() // 1_000_000 - age * 1000)
        found = spaces.why_late(logs)
        start = f"this machine's copy of space {north.space.space} is "
        assert found.startswith(start) or not found
        return found.removeprefix(start)

    runs = "the replicator does not run; `agent-mailbox engine serve --install` has it run"
    ages = ((None, "of unknown age"), (60, "a minute old or less"), (120, "2 minutes old"), (3600, "60 minutes old"))
    for age, said in ages:
        assert told(age) == f"{said}: {runs}"
    note_trouble(north.directory, AWAY, "no room; make some")
    assert told(60) == f"a minute old or less: {runs}"
    with FileLock(record.path(spaces.PLACE, spaces.SERVING), 0):
        assert told(10) == "a minute old or less: no room; make some"
        note_trouble(north.directory, AWAY, "")
        assert (told(None), told(1)) == ("", "")
        assert told(3600).startswith("60 minutes old: engine is out of reach; ")


@pytest.mark.parametrize("content", ["[]", "{}", '{"url":"x","more":1}', "no JSON"])
def test_a_record_of_a_space_of_another_form_is_said(join: Callable[[str], Joined], content: str) -> None:
    """The hint moves it away, and joins again."""
    north = join("north")
    path = Path(north.directory, "space")
    path.write_text(content)
    with pytest.raises(BadData, match="record of the space has another form") as told:
        spaces.space_of(Mailbox(north.path).logs)
    assert told.value.hint.startswith(f"run `mv {path} {path}.away`, then `agent-mailbox engine join URL")


def test_what_the_replicator_notices_is_told_once(tmp_path: Path) -> None:
    """It names each machine, and what its lines bear. It says which of two computers with one name is the copy."""
    north = Machine(str(tmp_path), "north", MemorySpace())
    said = list[str]()
    north.judge.strange, north.judge.refused = {"b"}, {"a": 2}
    ours = replicator.Replicator(north.copy, said.append, lambda _: None)
    ours._tell_strange()
    assert [one.partition(", and")[0] for one in said] == [
        "lines of a have a wrong or used seal",
        "lines of b bear another key than you confirmed",
    ]
    north.judge.refused["c"] = 1
    ours._tell_strange()
    assert [one.partition(", and")[0] for one in said[2:]] == ["lines of c have a wrong or used seal"]
    assert "it is on host far, and this is" in replicator._twin_warning(north.copy, "far")
    north.box.send(Draft(sender="ann", to=("all",), content="x"))
    Path(north.box.logs.messages.path).write_bytes(b"")
    assert [*doctor.examine_mailbox(north.box)]
    assert "this one is the copy, by its files" in replicator._twin_warning(north.copy, "far")
    assert [replicator.lost_warning(count).partition(": ")[2] for count in (1, 2)] == [
        "1 bundle brings them back",
        "2 bundles bring them back",
    ]


def test_the_words_of_other_machines_are_kept_and_told(join: Callable[[str], Joined]) -> None:
    """The last one of each counts, by the time at which it came; one of another form counts for nothing."""
    north = join("north")
    join("south").box.register(Registration(session_id="ben"), "ben")
    join("west")
    for applied, word in ((3, None), (4, None), (0, b"[]"), (0, b'{"applied":1}')):
        said = space_troubles.own_word(north.box.logs, applied, 7, 0, "h") if word is None else word
        space_troubles.keep_words(north.directory, {"south": said}, 1_700_000_000_000 + applied)
    (kept,) = space_troubles.load_peers(north.directory)
    assert (kept.machine, kept.applied, kept.behind, kept.heard) == ("south", 4, 3, 1_700_000_000_004)
    told = {
        one["machine"]: (one["behind"], one["heard"]) for one in joining_space.read_standing(north.box.logs).machines
    }
    assert told == {"south": (3, instant.text(1_700_000_000_004)), "west": (None, None)}
    present = spaces.space_of(north.box.logs)
    assert present is not None
    spaces.forget_space(north.box.logs, present)
    assert (space_troubles.load_peers(north.directory), space_troubles.load_joined(north.directory)) == ([], [])


def test_a_word_in_one_s_own_name_is_a_twin_s_unless_this_process_said_it() -> None:
    """A word that names no process was said by an earlier version."""
    ours = json.dumps({"by": space_troubles.PROCESS}).encode()
    for word, host in (
        (b"", None),
        (b"[]", None),
        (b"{}", None),
        (ours, None),
        (b'{"by":"another"}', "unknown"),
        (b'{"by":"another","host":"far"}', "far"),
    ):
        assert space_troubles.find_twin(word) == host


def test_a_line_is_published_up_to_the_width_that_an_engine_takes() -> None:
    """One byte more, or no record, stays here alone. A program's claim decides nothing, and belongs to its machine."""
    read = json.dumps({"message_id": "m", "reader_session_id": "a", "timestamp": "2026-01-01T00:00:00Z", "event": "%"})
    mail = codec.dumps(record("ann", "ben", "%")).encode()
    event = b'{"event":"register","session_id":"a","timestamp":"2026-01-01T00:00:00Z"}'
    for kind, line in ((MESSAGES, mail), (ROSTER, event), (CLAIMS, read.replace("%", "read").encode())):
        for room, fits in ((WIDEST, True), (WIDEST + 1, False)):
            found = publishing.place_line(kind, 7, line.ljust(room), "n", None)
            assert (found is not None) == fits
        assert publishing.place_line(kind, 7, b"[]", "n", None) is None
    for word, proof, log in (
        ("claim", None, reads_of("n")),
        ("release", None, reads_of("n")),
        ("claim", proofs.of_session("a"), CLAIMS),
        ("release", proofs.of_session("a"), CLAIMS),
        ("read", proofs.of_session("a"), reads_of("n")),
    ):
        (placed,) = filter(None, [publishing.place_line(CLAIMS, 7, read.replace("%", word).encode(), "n", proof)])
        assert (placed.position, placed.log, placed.id, placed.proof) == (7, log, None, proof)


def test_what_an_engine_s_stream_may_not_have_is_told() -> None:
    """Each setting by which it would lose records; a limit of nothing is none."""
    right: dict[str, Any] = {**space_checks.WANTED, **dict.fromkeys(nats_order.LIMITS, -1)}
    assert [*space_checks.of_stream({"config": right})] == []
    assert [*space_checks.of_stream({"config": {**right, "max_age": 0}})] == []
    for key in space_checks.WANTED:
        (told,) = space_checks.of_stream({"config": {**right, key: "x"}})
        assert told == f"stream's {key} is 'x', not {right[key]!r}"
    for key in nats_order.LIMITS:
        assert [*space_checks.of_stream({"config": {**right, key: 1}})] == [f"stream has a limit, {key}: 1"]


def test_records_that_a_copy_passed_over_are_told_by_their_kind() -> None:
    """The names of those that joined are no records that are missing here."""
    assert [*space_checks._of_others({space_checks.JOINED: 3})] == []
    passed = {"": 1, bundled_lines.DAMAGED: 2, space_checks.JOINED: 4, "new": 8, "newer": 16}
    told = [*space_checks._of_others(passed)]
    assert [one.rpartition(": ")[2].partition(";")[0] for one in told[:2]] == ["1", "2"]
    assert told[2].startswith("records of a later version were passed over: 24; ")


def standing(**given: Any) -> SpaceStanding:
    """A machine that is alone in its space, with what is given."""
    found = SpaceStanding("s", "north", "nats://h", True, 7, 7, 0, 0, 0, "", (), "f", (), (), {}, ())
    return found.replace(**given)


def test_how_far_a_machine_is_is_told() -> None:
    """An engine that lost its end has less than is here; another machine's word says what it lacked as it came."""
    lost = "what it lost comes back from the machines"
    for applied, records, said in (
        (6, 7, "6 of 7 are here"),
        (7, 7, "7 of 7 are here"),
        (8, 7, f"8 are here, and the engine has 7: {lost}"),
    ):
        assert space_words._count_records(standing(applied=applied, records=records)) == said
    for behind, heard, gone, said in (
        (None, None, False, "not heard of yet"),
        (None, None, True, "left, or was given up; not heard of yet"),
        (None, "T", False, "last heard of at T"),
        (0, "T", False, "last heard of at T; it lacked nothing then"),
        (1, "T", True, "left, or was given up; last heard of at T; it lacked 1 record then"),
        (2, "T", False, "last heard of at T; it lacked 2 records then"),
    ):
        assert space_words._say_heard({"behind": behind, "heard": heard, "given_up": gone}) == said


def test_what_waits_for_the_person_s_word_is_told_with_the_command() -> None:
    """It depends on the key: an unknown one, the confirmed one, another than that, or one of before a take-over."""
    lines = {"machine": "south", "fingerprint": "k", "lines": 1}
    south = {"machine": "south", "key": None}
    for trusted, key, waits, wrong in (
        (None, None, "engine join --key south=k --speaks south=user,all", 0),
        ("k", None, "engine join --speaks south=WHO,…", 0),
        ("k", "k", "engine join --speaks south=WHO,…", 0),
        ("other", None, None, 1),
        ("k", "new", "they count for nothing", 0),
        ("other", "new", "they count for nothing", 0),
    ):
        rights = () if trusted is None else ({"machine": "south", "fingerprint": trusted, "speaks": ["user"]},)
        found = standing(unheard=(lines,), trusted=rights, machines=({**south, "key": key},))
        told = [*space_words.describe_unheard(found, str)]
        assert [waits in one for one in told] == ([] if waits is None else [True])
        assert len([*space_words.describe_wrong_seals(found)]) == wrong
        asks = [one for one in space_words.describe_trust(found, str) if "has another mailbox now" in one]
        assert bool(asks) == (key not in (None, trusted))
    two = standing(refused={"south": 2})
    (told_of,) = space_words.describe_wrong_seals(two)
    assert told_of.startswith("2 lines of south whose seal is wrong")


def test_a_machine_s_place_in_its_space_is_shown_whole() -> None:
    """Whatever is in order is a line; what is not has a line more, with the command that mends it."""
    assert space_words.describe_standing(standing(), str) == (
        "space      s as north, nats://h\n"
        "engine     answers\n"
        "replicator runs\n"
        "records    7 of 7 are here\n"
        "waiting    0 lines of this machine, 0 sends\n"
        "key        f\n"
    )
    south = {"machine": "south", "behind": None, "heard": None, "given_up": False, "key": "new"}
    wrong = standing(
        serving=False,
        trouble="engine is away",
        waiting=1,
        queued=1,
        unsent=2,
        fingerprint="",
        machines=(south,),
        trusted=({"machine": "south", "fingerprint": "old", "speaks": []},),
        unheard=({"machine": "south", "fingerprint": "old", "lines": 3},),
        refused={"south": 1},
    )
    told = (
        "space      s as north, nats://h\n"
        "engine     engine is away\n"
        "replicator does not run: `engine serve --install`\n"
        "records    7 are here\n"
        "waiting    1 line of this machine, 1 send\n"
        "unsent     2 messages whose ids are other messages'\n"
        "south      not heard of yet\n"
        "key        none: mail flows, and no decision of this machine counts elsewhere; `MAKE` mends it\n"
        "south      speaks for nobody; key old\n"
        "south      has another mailbox now: say for whom it speaks, if its own `engine status` has this key:"
        " `engine join --key south=new --speaks south=user,all`\n"
        "refused    1 line of south whose seal is wrong, was used before, or came late\n"
        "waits      3 lines of south by its key before another mailbox took its name over: they count for nothing\n"
    )
    assert space_words.describe_standing(wrong, "`{}`".format, "MAKE") == told
    troubled = space_words.describe_standing(wrong.replace(troubles=("one", "two")), "`{}`".format, "MAKE")
    more = "look       one\nlook       two\n"
    assert troubled == told.replace(": `engine serve --install`", "").replace("unsent  ", f"{more}unsent  ")
