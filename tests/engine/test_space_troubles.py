"""What goes wrong with a space is told by `doctor`, `engine status` and the console, with the command that mends it."""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import time
from contextlib import contextmanager
from socket import gethostname
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.core import compose
from agent_mailbox.core.compose import Draft
from agent_mailbox.errors import Unavailable
from agent_mailbox.space import replicator, space_checks, space_words
from agent_mailbox.space import space as spaces
from agent_mailbox.space.copy import known_copy
from agent_mailbox.space.copy.space_troubles import (
    AWAY,
    KINDS,
    RESTORED,
    SpaceQueue,
    note_trouble,
    noted_trouble,
    waiting_sends,
)
from agent_mailbox.space.joining_space import SpaceStanding
from agent_mailbox.space.nats.nats_order import NatsOrder
from agent_mailbox.space.order.order import GAVE_UP, MESSAGES, PASSED, spell_word
from agent_mailbox.space.relay.relay import Relay
from tests.helpers import PATIENCE, until

from .nats_server import serving
from .opened_orders import open_nats
from .pair import MACHINES, Pair, is_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_mailbox.errors import MailboxError
    from agent_mailbox.space.copy.replica import Replica
    from agent_mailbox.space.nats.nats_order import NatsOrder
    from tests.helpers import Program


@pytest.fixture
def pair(program: Program, server: str, credential: str) -> Pair:
    """Two machines of a space."""
    return Pair.joined(program, server, credential)


@contextmanager
def way_of(pair: Pair, machine: str) -> Iterator[NatsOrder]:
    """A way to the space in a machine's name."""
    order = open_nats(pair.url, pair.space, machine, pair.credential)
    try:
        yield order
    finally:
        order.close()


def copy_of(pair: Pair, machine: str) -> Replica:
    """The copy of a machine, as its replicator has it."""
    logs = Mailbox(str(pair.program.scratch / machine)).logs
    space = spaces.space_of(logs)
    assert space is not None
    return spaces.open_replica(logs, space)


def take_turns(
    copy: Replica,
    count: int,
    told: Callable[[str], None],
    says_away: Callable[[MailboxError | None], None] = lambda _: None,
) -> None:
    """Have a replicator take so many turns."""
    left = iter(range(count))
    replicator.Replicator(copy, told, says_away).run(lambda: next(left, None) is None, time.sleep)


def is_told(pair: Pair, machine: str, text: str) -> bool:
    """Do `engine status` and `doctor` tell it? The console shows what `engine status` has."""
    place = pair.program.scratch / machine
    status = pair.program.run("engine", "status", "--json", "--dir", place).json
    if not any(text in one for one in status["troubles"]):
        return False
    assert text in pair.program.run("doctor", "--dir", place).stdout
    assert text in pair.program.run("engine", "status", "--dir", place).stdout
    return True


def test_a_space_on_other_servers_has_lost_nothing(pair: Pair, tmp_path: Path) -> None:
    """A machine that joins at another address brings its mail along. No server lost it; a replicator of before ends."""
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "one")
    with pair.serving("north") as replicator, serving(tmp_path / "other") as pair.url:
        pair.join("north")
        assert replicator.stderr is not None
        assert b"was left, or is reached in another way: its replicator ends" in replicator.stderr.readline()
        pair.join("south")
        assert [len(pair.lines(machine)) for machine in MACHINES] == [1, 1]
        assert "lost records" not in str([pair.ok(machine, "engine", "status") for machine in MACHINES])


def test_a_stream_that_is_gone_and_what_came_back_is_told(pair: Pair) -> None:
    """Mail waits. `engine join` makes the stream again; mail and names come back, and that is told later, too."""
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "one")
    with pair.serving("south"):
        until(lambda: len(pair.lines("south")) == 1)
        pair.remove_stream()
        until(lambda: is_told(pair, "south", "engine has no such space"))
        assert is_told(pair, "south", "`agent-mailbox engine join")
        assert pair.ok("south", "send", "--from", "ben", "--to", "ann", "--body", "two")["queued"]
        pair.ok("north", "engine", "join")
        assert "no such space" not in str(pair.ok("south", "engine", "status")), "which the engine now has"
        with way_of(pair, "reader") as order:
            until(lambda: order.joined_machines() == ["north", "south"])
    assert is_told(pair, "north", "engine had lost records at")


def test_the_doctor_names_a_mailbox_that_has_this_machine_s_name(pair: Pair) -> None:
    """An engine that lost its records lost the names, too. Another mailbox may take one first."""
    pair.remove_stream()
    assert pair.program.run("init", pair.program.scratch / "another").rc == 0
    options = ("--space", pair.space, "--machine", "north", "--credential", pair.credential)
    pair.ok("another", "engine", "join", pair.url, *options)
    found = pair.program.run("engine", "doctor", "--dir", pair.program.scratch / "north")
    assert (found.rc, replicator.name_warning("north") in found.stdout) == (3, True), found


def test_a_replicator_tells_once_what_it_brought_back(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs for weeks, and has a turn each second."""
    monkeypatch.setattr(replicator, "TURN", 0)
    copy, said = copy_of(pair, "south"), list[str]()
    copy.restored = 1
    take_turns(copy, 3, said.append)
    assert said == [replicator.lost_warning(1)]


def test_a_replicator_that_reaches_the_engine_takes_back_what_a_command_noted(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command asked by way of it as the engine was away for a moment, and all behind it were told so. The replicator
    itself never met that, and asks at each turn."""
    monkeypatch.setattr(replicator, "TURN", 0)
    copy = copy_of(pair, "south")
    relay = Relay(copy.directory, lambda: spaces.order_in(copy))
    try:
        relay.away = Unavailable("engine is out of reach: for a moment", "try again")
        take_turns(copy, 1, print, lambda why: setattr(relay, "away", why))
        assert relay.away is None
    finally:
        relay.close()


def test_a_replicator_without_news_says_that_its_copy_is_fresh(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a copy to which nothing comes would look like one that nobody keeps up."""
    monkeypatch.setattr(replicator, "TURN", 0)
    monkeypatch.setattr(replicator, "NOTED", 0.0)
    copy, turns = copy_of(pair, "south"), itertools.count()

    def forget(_: MailboxError | None) -> None:
        if next(turns) == 3:
            os.unlink(os.path.join(copy.directory, known_copy.FRESH))

    take_turns(copy, 6, print, forget)
    assert known_copy.copy_age(copy.directory, 0) is not None


def test_a_name_that_another_mailbox_took_is_told(pair: Pair) -> None:
    """The stream was lost, and another mailbox was first to join as south: the south says so as it comes."""
    pair.remove_stream()
    with way_of(pair, "south") as order:
        order.make_unless_there()
        order.take_name("another mailbox")
    with pair.serving("south"):
        until(lambda: is_told(pair, "south", "name south is another mailbox's in this space"))


def test_a_copy_of_a_machine_is_told(pair: Pair) -> None:
    """Another computer runs as south, too, as a cloned one does: its signs of life are another process's.

    What an earlier replicator noted of the engine is told no more. Nor is the copy, once it left and told that; there
    another name has no such word, and another key."""
    (south,) = (path.parent for path in pair.program.user_state.glob("**/engine/space") if is_of(path, "south"))
    note_trouble(str(south), AWAY, "an earlier trouble")
    with pair.serving("south"), way_of(pair, "south") as clone:

        def is_noticed() -> bool:
            clone.tell_machines(json.dumps({"applied": 1, "seen": {}, "by": "a clone", "host": "elsewhere"}).encode())
            return is_told(pair, "south", "another computer, or a copy of this one, runs as south, too")

        until(is_noticed)
        assert is_told(pair, "south", f"it is on host elsewhere, and this is {gethostname()}")
        assert not is_told(pair, "south", "an earlier trouble")
        clone.append_lines(PASSED, [spell_word(GAVE_UP, "south")])
        until(lambda: "runs as south, too" not in str(pair.ok("south", "engine", "status")["troubles"]))
    for kind in KINDS:
        note_trouble(str(south), kind, "a twin")
    key = pair.ok("south", "engine", "status")["fingerprint"]
    pair.ok("south", "engine", "leave")
    assert [noted_trouble(str(south), kind) for kind in KINDS] == [""] * len(KINDS)
    place = pair.program.scratch / "south"
    words = "--space", pair.space, "--machine", "east", "--credential", pair.credential, "--json", "--dir", place
    joined = pair.program.run("engine", "join", pair.url, *words).json
    assert (joined["machine"], "a twin" in joined["troubles"], joined["fingerprint"] == key) == ("east", False, False)


@pytest.mark.skipif(sys.platform != "linux", reason="no limits of another process")
def test_a_disk_of_this_machine_that_takes_nothing_is_told_as_that(pair: Pair) -> None:
    """The engine answers all the while, so it does not come back, either."""
    with pair.serving("south") as replicating:
        resource.prlimit(replicating.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "word " * 900)
        until(lambda: is_told(pair, "south", "cannot append to"))
        resource.prlimit(replicating.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: not spaces.standing_troubles(Mailbox(str(pair.program.scratch / "south")).logs))
        replicating.terminate()
        _, said = replicating.communicate(timeout=PATIENCE)
    assert b" goes on\n" in said
    assert b"engine is back" not in said


def test_a_replicator_outlasts_a_mailbox_that_is_moved_away_for_a_moment(pair: Pair) -> None:
    """It says that once, waits, and goes on; nothing tells that the engine was away."""
    place, away = pair.program.scratch / "south", pair.program.scratch / "away"
    with pair.serving("south") as replicating:
        assert replicating.stderr is not None
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "one")
        until(lambda: len(pair.lines("south")) == 1)
        place.rename(away)
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "two")
        assert replicating.stderr.readline().endswith(f"Z no mailbox at {place}\n".encode())
        away.rename(place)
        assert replicating.stderr.readline().endswith(b" goes on\n")
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "three")
        until(lambda: len(pair.lines("south")) == 3)
        replicating.terminate()
        _, said = replicating.communicate(timeout=PATIENCE)
    assert (replicating.returncode, said) == (0, b"")
    assert pair.seen("south", "ben") == ["one", "two", "three"]


def test_a_clock_that_is_behind_mail_is_told(pair: Pair) -> None:
    """Mail came from a machine whose clock is an hour ahead of this one."""
    draft = Draft(sender="cat", to=("ben",), content="from the future", id="x")
    line = compose.stored_line(compose.message(draft, ("ben",), "x", int(time.time() * 1000) + 3_660_000))
    with way_of(pair, "west") as order:
        order.append_lines(MESSAGES, [line.rstrip(b"\n")], ids=["x"])
    pair.ok("south", "engine", "join")
    assert is_told(pair, "south", "clock is 60 minutes behind mail that is here")
    words = ("send", "--from", "ben", "--body", "x", "--dir", pair.program.scratch / "south", "--to")
    warning = "warning: this machine's clock is 60 minutes behind mail that is here"
    assert [warning in pair.program.run(*words, who).stderr for who in ("ann", "ben")] == [True, False]


def test_of_sends_that_wait_the_first_tells_since_when_and_the_last_tells_why(tmp_path: Path) -> None:
    """The reason of the first one may be over, so nobody is sent to mend that."""
    queue = SpaceQueue(str(tmp_path), 0)
    for minute, why in enumerate(("its own reason", "another reason", "the newest reason")):
        draft = Draft(sender="ann", to=("ben",), content=why)
        line = compose.stored_line(compose.message(draft, ("ben",), f"{minute}", minute * 60_000))
        queue.put_entry([line.rstrip(b"\n")], [None], why)
    (said,) = waiting_sends(str(tmp_path))
    assert said == "3 sends wait here for the engine since 1970-01-01 00:00Z; the newest because the newest reason"


def test_what_was_restored_is_told_for_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is old news; what holds until it is mended has no end."""
    from agent_mailbox.store.files import system

    for kind in (RESTORED, "name"):
        note_trouble(str(tmp_path), kind, "said")
    now = system.time_ns()
    monkeypatch.setattr(system, "time_ns", lambda: now + 8 * 86_400_000_000_000)
    assert [noted_trouble(str(tmp_path), kind) for kind in (RESTORED, "name")] == ["", "said"]
    note_trouble(str(tmp_path), "name", "")
    assert noted_trouble(str(tmp_path), "name") == ""


def test_a_stream_that_would_lose_records_is_told_by_its_settings() -> None:
    """Each setting that differs, and each limit, is a line of the doctor; -1 and 0 are no limits."""
    kept = {"storage": "file", "retention": "limits", "discard": "new", "allow_atomic": True, "max_age": 0}
    assert [*space_checks.of_stream({"config": {**kept, "max_msgs": -1}})] == []
    assert "stream's storage is None, not 'file'" in [*space_checks.of_stream({})], "which tells no settings"
    loose = {**kept, "storage": "memory", "discard": "old", "max_age": 5}
    assert [*space_checks.of_stream({"config": loose})] == [
        "stream's storage is 'memory', not 'file'",
        "stream's discard is 'old', not 'new'",
        "stream has a limit, max_age: 5",
    ]


def test_mail_that_can_never_be_sent_is_told() -> None:
    """Its number is told while there is some."""
    found = SpaceStanding("team", "north", "nats://x", True, 1, 1, 0, 0, 2, "", (), "", (), (), {}, ())
    for unsent in (2, 0):
        said = space_words.describe_standing(found.replace(unsent=unsent), str)
        assert ("unsent     2 messages whose ids are other messages'" in said) == bool(unsent)


def test_an_engine_that_has_less_than_this_machine_is_told_as_that() -> None:
    """Its end was lost: there are no 28 of 5 records."""
    found = SpaceStanding("team", "north", "nats://x", True, 5, 28, 1, 0, 0, "", (), "", (), (), {}, ())
    said = space_words.describe_standing(found, str)
    assert "28 are here, and the engine has 5:" in said
    assert "waiting    1 line of this machine, 0 sends\n" in said


def test_a_machine_without_a_key_is_told_what_that_means() -> None:
    """Its mail flows; only what is decided there counts nowhere else."""
    found = SpaceStanding("team", "north", "nats://x", True, 1, 1, 0, 0, 0, "", (), "", (), (), {}, ())
    (said,) = space_words.describe_trust(found, str, "agent-mailbox engine join")
    assert "mail flows, and no decision of this machine counts elsewhere; `agent-mailbox engine join` mends it" in said
