"""Two mailboxes of one person are two machines of a space: the real commands, replicators and server."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.errors import Unavailable
from agent_mailbox.space import joining_space
from agent_mailbox.space.copy import space_troubles
from agent_mailbox.space.nats.connection import Publication
from agent_mailbox.space.nats.nats_order import NatsOrder
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.log.unordered import unsealed
from scripts.benchmarks import launch, world
from tests.helpers import MESSAGES, PATIENCE, READS, ROSTER, Program, until

from .nats_server import serving
from .opened_orders import open_nats
from .pair import LOG, MACHINES, Pair

if TYPE_CHECKING:
    from pathlib import Path


def test_a_mailbox_with_mail_joins_works_and_leaves(pair: Pair) -> None:
    """Joining publishes what is there and changes no byte of it; both see each other's mail; leaving keeps all.

    Then nobody is promised that a session of the other machine gets mail from here."""
    whose = dict(zip(MACHINES, ("ann", "ben"), strict=True))
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
        pair.send(machine, "--from", who, "--to", "all", "--body", f"old mail of {who}")
    before = {machine: (pair.program.scratch / machine / LOG).read_bytes() for machine in MACHINES}
    for machine in (*MACHINES, *MACHINES):
        pair.join(machine)
    with pair.serving("south"):
        assert pair.seen("south", "ben") == ["old mail of ann"]
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "to ben")
        pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
        assert pair.seen("south", "ben") == ["to ben"]
        pair.send("south", "--from", "ben", "--to", "ann", "--body", "to ann")
    assert "to ann" not in pair.seen("north", "ann")  # no replicator, and nothing was decided there
    standing = pair.ok("north", "engine", "status")
    assert standing["applied"] < standing["records"]
    assert not standing["serving"]
    for machine in MACHINES:
        assert pair.ok(machine, "engine", "leave")["cut_off"] == [*({"ann", "ben"} - {whose[machine]})]
        assert (pair.program.scratch / machine / LOG).read_bytes().startswith(before[machine])
        assert sorted(pair.lines(machine)) == sorted(pair.ordered())
        pair.fails(machine, 1, "mailbox is in no space", "engine", "status")
    assert "to ann" in pair.seen("north", "ann")
    place = pair.program.scratch / "north"
    assert pair.send("north", "--from", "ann", "--to", "ben", "--body", "after")
    cut_off = "waits for: ben (on another machine, where nobody brings mail: this mailbox is in no space)"
    assert cut_off in pair.program.run("send", "--from", "ann", "--to", "ben", "--body", "x", "--dir", place).stdout
    assert "mail: it waits (on another" in pair.program.run("roster", "show", "ben", "--dir", place).stdout
    assert pair.program.run("roster", "list", "--dir", place).stdout.count(" out of reach ") == 1


def test_a_machine_that_left_is_promised_no_mail(pair: Pair) -> None:
    """Senders elsewhere are told so, with its replicator running as it left; until it joins again, by whatever name."""
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who)
    place = pair.program.scratch / "north"

    def told() -> str:
        return pair.program.run("send", "--from", "ann", "--to", "ben", "--body", "x", "--dir", place).stdout

    for name in ("south", "east"):
        with pair.serving("south") as replicator:
            until(lambda: "will see it when it looks: ben (on another machine, once that takes it in)" in told())
            pair.ok("south", "engine", "leave")
            assert replicator.wait(PATIENCE) == 0
        assert "waits for: ben (its machine left the space, or was given up)" in told()
        assert "mail: it waits (its machine left" in pair.program.run("roster", "show", "ben", "--dir", place).stdout
        assert pair.program.run("roster", "list", "--dir", place).stdout.count(" out of reach ") == 1
        assert pair.ok("north", "engine", "status")["machines"][0]["given_up"]
        words = "--space", pair.space, "--machine", name, "--credential", pair.credential
        pair.ok("south", "engine", "join", pair.url, *words)
    with pair.serving("north"), pair.serving("south", "east"):
        until(lambda: "will see it when it looks: ben" in told())


def test_role_mail_goes_to_one_holder_of_two_machines(pair: Pair) -> None:
    """Both machines' holders check at once for the same role mail: each message goes to one of them. So does a task."""
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
    sent = [pair.send("north", "--from", "user", "--to", "role:dev", "--body", f"{n}") for n in range(3)]
    with pair.serving("south"):
        pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
    checks = [
        pair.program.start("check", "--session", who, "--json", "--dir", pair.program.scratch / machine)
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True)
    ]
    shown = [m["id"] for check in checks for m in json.loads(check.communicate(timeout=PATIENCE)[0])["messages"]]
    shown += [m["id"] for m in pair.ok("north", "check", "--session", "ann")["messages"]]
    shown += [m["id"] for m in pair.ok("south", "check", "--session", "ben")["messages"]]
    assert sorted(shown) == sorted(sent)
    with pair.serving("south"), pair.serving("north"):
        pair.claim_at_once()


def test_a_replicator_killed_again_and_again_loses_and_doubles_nothing(pair: Pair) -> None:
    """A replicator is killed after each message; in the end the copy is equal, and its session saw each once."""
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who)
    seen: list[str] = []
    for n in range(4):
        with pair.serving("south") as replicator:
            pair.send("north", "--from", "ann", "--to", "ben", "--body", f"{n}")
            if n % 2:
                pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
                seen += pair.seen("south", "ben")
            replicator.kill()
    with pair.serving("south") as replicator:
        pair.ok("south", "engine", "leave")
        assert replicator.wait(PATIENCE) == 0, "it ends once its machine left"
    seen += pair.seen("south", "ben")
    assert seen == [f"{n}" for n in range(4)]
    assert pair.lines("south") == pair.lines("north") == pair.ordered()


def test_without_the_engine_mail_is_read_and_sends_wait(program: Program, credential: str, place: Path) -> None:
    """Without the engine one's own mail is read as before, a new session is registered, and sends wait.

    Each is in the order once, later. With ``--now`` nothing waits, and the command fails."""
    with serving(place / "away") as url:
        pair = Pair(program, url, credential)
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
            pair.join(machine)
            pair.ok(machine, "roster", "register", "--session-id", who)
        pair.send("north", "--from", "ben", "--to", "ann", "--body", "early")
    send = ("send", "--from", "ann", "--to", "ben", "--body", "late")
    pair.fails("north", 4, "engine is out of reach", *send, "--now")
    again = (*send, "--id", "0f8fad5b-d9cb-469f-a165-70867728950e")
    assert pair.ok("north", *again)["queued"]
    assert pair.ok("north", *again)["queued"]
    said = program.run(*send, "--dir", program.scratch / "north").stdout
    assert ("queued" in said, "Connection refused; start its server" in said) == (True, True)
    pair.shows_queued("north", "0f8fad5b-d9cb-469f-a165-70867728950e")
    assert b"late" not in (program.scratch / "north" / LOG).read_bytes()
    assert pair.seen("north", "ann") == ["early"]
    assert pair.seen("north", "cat") == []
    pair.fails("north", 4, "engine is out of reach", "roster", "update", "--session-id", "ann", "--name", "anna")
    standing = pair.ok("north", "engine", "status")
    assert (standing["waiting"], standing["queued"]) == (2, 3)  # a read, and the new session
    assert pair.ok("north", "status", "--session", "ann")["queued"] == 3
    with serving(place / "away", int(url.rpartition(":")[2])):
        with pair.serving("south"), pair.serving("north"):
            pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
        pair.send("south", "--from", "ben", "--to", "cat", "--body", "welcome")
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "last")
        assert [json.loads(line)["content"] for line in pair.ordered()] == ["early", "late", "late", "welcome", "last"]
        standing = pair.ok("north", "engine", "status")
        assert (standing["waiting"], standing["queued"], standing["unsent"]) == (0, 0, 0)
        assert "queued" not in pair.ok("north", "show", "0f8fad5b-d9cb-469f-a165-70867728950e")
    late = pair.send("north", "--from", "ann", "--to", "ben", "--body", "at a dead engine")
    said = program.run("engine", "leave", "--dir", program.scratch / "north").stdout
    assert "not sent, and mail of this mailbox alone until it joins again:" in said
    assert re.search(rf"{late[:8]} .* ben .*at a dead engine", said)
    assert pair.ok("north", "show", late)["message"]["content"] == "at a dead engine"
    with serving(place / "away", int(url.rpartition(":")[2])):
        pair.join("north")
        assert b"at a dead engine" in pair.ordered()[-1]


def test_role_mail_that_nothing_can_claim_is_not_called_no_mail(program: Program, credential: str, place: Path) -> None:
    """The engine alone orders claims. While it is away, `check` says what waits, why, and names no command in vain;
    `wait` goes on."""
    check = ("check", "--session", "ann", "--dir", program.scratch / "north")
    with serving(place / "away") as url:
        pair = Pair(program, url, credential)
        pair.join("north")
        pair.ok("north", "roster", "register", "--session-id", "ann", "--role", "lead")
        pair.send("north", "--from", "ben", "--to", "role:lead", "--body", "for whoever leads")
        for body in ("one", "two"):
            pair.send("north", "--from", "ben", "--to", "ann", "--body", body)
    waits = "1 message for a role cannot be claimed now: engine is out of reach"
    first, second, third = (program.run(*check, "--limit", "1").stdout.splitlines() for _ in range(3))
    assert (first[-2].startswith("1 more: agent-mailbox check"), first[-1].startswith(waits)) == (True, True)
    assert ("more: " in " ".join(second), second[-1].startswith(waits)) == (False, True)
    assert third[0].startswith(waits)
    wait = ("wait", "--session", "ann", "--timeout", "0", "--dir", program.scratch / "north")
    assert program.run(*wait).rc == 1, "a check would show nothing"
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "x")
    status = pair.program.run("engine", "status", "--dir", program.scratch / "north").stdout
    assert re.search(r"^records +\d+ are here$", status, re.MULTILINE), status
    with serving(place / "away", int(url.rpartition(":")[2])):
        assert program.run(*wait).rc == 0
        assert "for whoever leads" in program.run(*check).stdout
        left = program.run("engine", "leave", "--dir", program.scratch / "north").stdout
        assert left.endswith("run on another machine: agent-mailbox engine forget north\n")


def test_a_mailbox_that_was_shared_is_made_again_and_restored_at_its_path(pair: Pair) -> None:
    """Its files are lost, not its record: `init` and `restore` make it the same machine of the space, and say so.

    Mail that waited for the engine is sent then; its sessions get their mail, once, and are heard elsewhere."""
    place, file = pair.program.scratch / "north", pair.program.scratch / "backup.tar"
    pair.join("north")
    pair.join("south")
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.ok(machine, "roster", "register", "--session-id", who)
    pair.send("south", "--from", "ben", "--to", "ann", "--body", "seen")
    assert pair.ok("north", "engine", "join")["machine"] == "north"
    assert pair.seen("north", "ann") == ["seen"]
    pair.ok("north", "backup", file)
    pair.send("south", "--from", "ben", "--to", "ann", "--body", "after the backup")
    boxes = {*pair.program.user_state.glob("boxes/*")}
    again = ("init", place), ("restore", file, place)
    with pair.serving("north") as replicator:
        pair.fails("north", 1, f"runs already by pid {replicator.pid} ", "engine", "serve")
        until(lambda: len(pair.lines("north")) == 2)
        kept = place.rename(pair.program.scratch / "kept")
        for command in again:
            refused = pair.program.run(*command)
            assert (refused.rc, f"is still served by pid {replicator.pid} " in refused.stderr) == (1, True)
        assert not place.exists()
        kept.rename(place)
    record = pair.record("north")
    with FileLock(str(record / "lock")):
        assert pair.ok("north", "send", "--from", "ann", "--to", "ben", "--body", "waited")["queued"]
    key = (record / "key").read_bytes()
    for command in again:
        shutil.rmtree(place)
        said = pair.program.run(*command)
        assert (said.rc, f"it is machine north of space {pair.space}, as before" in said.stdout) == (0, True)
        assert {*pair.program.user_state.glob("boxes/*")} == boxes
        assert (record / "key").read_bytes() == key
    pair.ok("north", "engine", "join")
    assert pair.seen("north", "ann") == ["after the backup"]
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "again here")
    pair.ok("south", "engine", "join")
    assert pair.seen("south", "ben") == ["waited", "again here"]
    problems = pair.program.run("engine", "doctor", "--json", "--dir", place).json["problems"]
    assert [one.partition(":")[0] for one in problems] == ["replicator does not run"]
    pair.ok("north", "engine", "leave")
    assert pair.join("north")["machine"] == "north"
    assert {*pair.lines("north")} == {*pair.lines("south")} == {*pair.ordered()}


def test_a_mailbox_that_was_moved_is_told_what_puts_it_back(pair: Pair) -> None:
    """The record of its place has the space, and stays behind. What `init` prints works; no mail is lost."""
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who)
    place, moved = pair.program.scratch / "south", pair.program.scratch / "a new place"
    place.rename(moved)
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "on its way")
    said = pair.program.run("init", moved).stdout
    assert f"it was machine south of space {pair.space} at {place}, and is in no space here" in said
    pair.send("a new place", "--from", "ben", "--to", "ann", "--body", "from the new place")
    told = pair.program.run("doctor", "--dir", moved).stdout
    assert "move it back; or run on another machine agent-mailbox engine forget south, then here `agent-mailbox" in told
    moved.rename(place)
    assert pair.ok("south", "engine", "status")["machine"] == "south"
    place.rename(moved)
    ((forget, join),) = re.findall("agent-mailbox (.*), then here `agent-mailbox (.*?)`", said)
    assert pair.program.run(*shlex.split(forget), "--dir", pair.program.scratch / "north").rc == 0
    assert pair.program.run(*shlex.split(join)).rc == 0
    assert "is in no space" not in pair.program.run("doctor", "--dir", moved).stdout
    assert pair.seen("a new place", "ben") == ["on its way"]
    pair.ok("north", "engine", "join")
    assert pair.seen("north", "ann") == ["from the new place"]


def test_a_backup_of_a_lost_machine_is_restored_only_alone(pair: Pair) -> None:
    """A machine of a space is restored elsewhere with ``--alone`` only: its sessions would be shown again what they
    read since, and what others claimed. It takes its mail from the space."""
    file, place = pair.program.scratch / "backup.tar", pair.program.scratch / "new"
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
    pair.send("north", "--from", "ann", "--to", "ben", "--body", "read after the backup")
    pair.ok("south", "engine", "join")
    pair.ok("south", "backup", file)
    assert pair.seen("south", "ben") == ["read after the backup"]
    pair.ok("south", "engine", "join")
    pair.ok("north", "engine", "forget", "south")
    refused = pair.program.run("restore", file, place)
    assert (refused.rc, place.exists()) == (1, False)
    assert f"backup is of machine south of space {pair.space}, which has its mail" in refused.stderr
    assert pair.program.run("init", place).rc == 0
    words = "--space", pair.space, "--machine", "south", "--credential", pair.credential
    pair.ok("new", "engine", "join", pair.url, *words)
    assert pair.seen("new", "ben") == []
    shutil.rmtree(place)
    assert pair.program.run("restore", file, place).rc == 0, "in its own place"
    for space, machine in ((pair.space, "west"), (f"{pair.space}-2", "south")):
        other = pair.program.scratch / f"{machine}-of-{space}"
        assert pair.program.run("init", other).rc == 0
        words = "--space", space, "--machine", machine, "--credential", pair.credential
        pair.ok(other.name, "engine", "join", pair.url, *words)
        shutil.rmtree(other)
        assert pair.program.run("restore", file, other).rc == 1, "another machine's place"
    assert pair.program.run("restore", file, pair.program.scratch / "alone", "--alone").rc == 0
    pair.ok("north", "engine", "leave")
    pair.ok("north", "backup", pair.program.scratch / "left.tar")
    assert pair.program.run("restore", pair.program.scratch / "left.tar", pair.program.scratch / "left").rc == 0


def test_a_machine_that_is_lost_is_given_up(pair: Pair) -> None:
    """Its agents are frozen, role mail that one was offered and did not see goes back, and another gets it. So is one
    that never had an agent."""
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
    pair.ok("north", "roster", "register", "--session-id", "kim")
    pair.send("north", "--from", "kim", "--to", "role:dev", "--body", "to one of you")
    call = {"session_id": "ben", "hook_event_name": "UserPromptSubmit", "cwd": str(pair.program.scratch / "south")}
    call["transcript_path"] = str(pair.program.scratch / "ben.jsonl")
    Path(call["transcript_path"]).touch()
    with pair.serving("south"):
        pair.ok("south", "wait", "--session", "ben", "--timeout", PATIENCE)
    said = pair.program.run("hook", "UserPromptSubmit", "--dir", pair.program.scratch / "south", stdin=json.dumps(call))
    assert "to one of you" in said.stdout
    assert pair.seen("north", "ann") == []
    pair.fails("north", 1, f"machine never joined the space {pair.space}: east", "engine", "forget", "east")
    pair.fails("north", 1, "these others are: south", "engine", "forget", "east")
    pair.fails("north", 1, "machine is this one", "engine", "forget", "north")
    assert pair.ok("north", "engine", "forget", "south") == {"machine": "south", "frozen": ["ben"]}
    again = {"machine": "south", "frozen": [], "already": True}
    assert pair.ok("north", "engine", "forget", "south") == again
    said = pair.program.run("engine", "forget", "south", "--dir", pair.program.scratch / "north").stdout
    assert said == "south had left, or was given up already: 0 agents are frozen now\n"
    assert pair.seen("north", "ann") == ["to one of you"]
    states = {agent["session_id"]: agent["state"] for agent in pair.ok("north", "roster", "list")["agents"]}
    assert states == {"ann": "alive", "ben": "frozen", "kim": "alive"}
    assert pair.program.run("init", pair.program.scratch / "west").rc == 0
    pair.join("west")
    for more in ({}, {"already": True}):
        assert pair.ok("north", "engine", "forget", "west") == {"machine": "west", "frozen": [], **more}


def test_machines_tell_each_other_that_they_live(pair: Pair) -> None:
    """When an agent of another machine last acted, and how far that one's copy is; no word is kept in the space."""
    for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
        pair.join(machine)
        pair.ok(machine, "roster", "register", "--session-id", who)
    heart = pair.program.scratch / "south" / "agent-heartbeats" / "ben"
    with pair.serving("north"):
        os.utime(heart, (4_000_000_000, 4_000_000_000))  # a clock far ahead: counts as now
        (south,) = pair.ok("north", "engine", "status")["machines"]
        assert (south["machine"], south["behind"], south["heard"]) == ("south", None, None)
        place = pair.program.scratch / "north"
        assert "south      not heard of yet\n" in pair.program.run("engine", "status", "--dir", place).stdout
        with pair.serving("south"):
            until(lambda: pair.ok("north", "engine", "status")["machines"][0]["heard"])
        (other,) = pair.ok("north", "engine", "status")["machines"]
        assert (other["machine"], other["behind"]) == ("south", 0)
        pair.send("north", "--from", "ann", "--to", "ben", "--body", "later than that word")
        ben = pair.ok("north", "roster", "show", "ben")["agent"]
        assert ben["last_seen"] == other["heard"]
        assert (
            f"south      last heard of at {other['heard']}; it lacked nothing then"
            in pair.program.run("engine", "status", "--dir", place).stdout
        )
    assert not (pair.program.scratch / "north" / "agent-heartbeats" / "ben").exists()


@pytest.mark.parametrize(
    "word",
    [b"", b"[]", b"{}", b'{"applied":"1","seen":{}}', b'{"applied":1,"seen":[]}', b"x" * 100_000],
    ids=lambda word: word[:12],
)
def test_a_word_of_another_form_counts_for_nothing(tmp_path: Path, word: bytes) -> None:
    """The good one before it stays; ids that are none, and times that are none, are left out."""
    good = b'{"applied":7,"seen":{"ben":5,"../x":5,"kim":"5","ann":99}}'
    space_troubles.keep_words(str(tmp_path), {"south": good}, 10)
    space_troubles.keep_words(str(tmp_path), {"south": word, "west": word}, 20)
    assert space_troubles.load_peers(str(tmp_path)) == [space_troubles.Elsewhere("south", 10, 7, {"ben": 5, "ann": 10})]


def test_engine_join_names_what_is_wrong(pair: Pair, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that another machine has, a second space, a wrong credential, and three addresses of nobody.

    Those are told at once: a server that starts is waited for, and this is none."""
    pair.join("north")
    words = ("engine", "join", pair.url, "--credential", pair.credential)
    pair.fails("south", 1, "name is another mailbox's: north", *words, "--space", pair.space, "--machine", "north")
    pair.fails("north", 1, "mailbox is in another space", *words, "--space", "other", "--machine", "north")
    pair.fails("south", 2, "name is not lower-case letters", *words, "--space", "A*", "--machine", "south")
    wrong = place / "nonsense"
    wrong.touch(0o600)
    wrong.write_text("nonsense")
    join = ("engine", "join", "--space", pair.space, "--machine", "south")
    pair.fails("south", 1, "engine refuses the credential", *join, pair.url, "--credential", wrong)
    monkeypatch.setattr(joining_space, "OPENING", 0.0)  # it would wait for a server that opens its port
    for nobody in ("nats://127.0.0.1:1", "nats://no.such.host.invalid", pair.url.replace("nats:", "tls:")):
        away = pair.program.call(*join, nobody, "--dir", pair.program.scratch / "south")
        assert (away.rc, f"engine is out of reach: {nobody}: " in away.stderr) == (4, True)
    for odd in ("http://127.0.0.1:1", "nats://127.0.0.1:99999", "nats://127.0.0.1:x", "nats://::1:4222", "nats://h,"):
        pair.fails("south", 2, "no nats:// or tls:// URL", *join, odd)
    for told in ("nats://me:word@127.0.0.1:1", "nats://word@h", "postgresql://me@h/db?password=word"):
        pair.fails("south", 2, "engine's address has a secret in it", *join, told)


def test_a_server_that_starts_is_waited_for_and_one_that_is_too_old_is_not(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only time can help the first; the second is told at once."""
    make, errors = NatsOrder.make_unless_there, list[Unavailable]()

    def starts(order: NatsOrder) -> None:
        if errors:
            raise errors.pop()
        make(order)

    monkeypatch.setattr(NatsOrder, "make_unless_there", starts)
    monkeypatch.setattr(joining_space, "PAUSE", 0)
    words = ("engine", "join", pair.url, "--credential", pair.credential, "--space", pair.space, "--machine", "north")
    for code, left, rc in (("outdated", 1, 4), ("unavailable", 0, 0)):
        errors[:] = [Unavailable("engine", "", code="unavailable"), Unavailable("engine", "", code=code)]
        done = pair.program.call(*words, "--dir", pair.program.scratch / "north")
        assert (done.rc, len(errors)) == (rc, left), done


def test_the_doctor_compares_every_record(pair: Pair) -> None:
    """All is well after joining, but for the replicator; a removed line, a stream with a limit, and what the stream had
    lost are named."""
    pair.join("north")
    pair.ok("north", "roster", "register", "--session-id", "ann")
    pair.send("north", "--from", "ann", "--to", "all", "--body", "one")
    with pair.serving("north"):
        found = pair.ok("north", "engine", "doctor")
        assert (found["ok"], found["problems"]) == (True, [])
        assert "any machine may write as another here, and remove mail" in found["notes"][-1]
    order = open_nats(pair.url, pair.space, "stranger", pair.credential)
    config = {**order.stream_info()["config"], "max_msgs": 100_000}
    order.connection.ask_each([Publication(f"$JS.API.STREAM.UPDATE.{order.stream}", json.dumps(config).encode())])
    subject = f"mbx.{pair.space}.stranger.messages"
    order.connection.ask_each([Publication(f"{subject}.x", b"of another program, without a checksum")])
    later = Publication(
        f"mbx.{pair.space}.stranger.later", b"x", {"Mailbox-Sum": hashlib.sha256(b"x").hexdigest()[:16]}
    )
    order.connection.ask_each([later])
    before = pair.program.run("engine", "doctor", "--dir", pair.program.scratch / "north")
    assert "damaged" not in before.stdout
    assert "messages of other programs are among the space's records, and were passed over: 1" in before.stdout
    assert "records of a later version were passed over: 1" in before.stdout
    standing = pair.ok("north", "engine", "status")
    assert standing["applied"] == standing["records"], "and nobody looks for them again and again"
    order.connection.ask_each([Publication(f"{subject}.y", b"flipped", {"Mailbox-Sum": "0123456789abcdef"})])
    own = {"filter": f"mbx.{pair.space}.north.messages.>"}
    order.connection.ask_each([Publication(f"$JS.API.STREAM.PURGE.{order.stream}", json.dumps(own).encode())])
    order.close()
    result = pair.program.run("engine", "doctor", "--dir", pair.program.scratch / "north")
    assert result.rc == 3
    assert "stream has a limit, max_msgs: 100000" in result.stdout
    assert "records of the engine are damaged: 1" in result.stdout
    assert "replicator does not run" in result.stdout
    assert "engine had lost records" in result.stdout


def test_a_join_counts_one_record_in_the_singular(pair: Pair) -> None:
    """The text of a join says how many are here."""
    words = ("engine", "join", pair.url, "--space", pair.space, "--machine", "north", "--credential", pair.credential)
    said = pair.program.run(*words, "--dir", pair.program.scratch / "north").stdout
    assert said.startswith(f"joined {pair.space} as north: 1 record\n"), said


LOGS = (MESSAGES, READS, ROSTER)


def test_nothing_differs_but_what_was_written_meanwhile(
    program: Program, server: str, credential: str, tmp_path: Path
) -> None:
    """Live mail, archived mail and the roster: joining and leaving add no byte and change none. What was sent, read and
    acknowledged meanwhile is behind, as on the other machine; a second stay changes nothing."""
    old = world.build(tmp_path, 400, 12)
    program.env |= launch.environment(tmp_path)
    pair = Pair(program, server, credential)
    north = program.scratch / "north"
    north.rename(program.scratch / "unused")
    north.symlink_to(old.directory)
    assert program.run("steward", "run", "--dir", north).rc == 0
    before = _files(old.directory)
    assert any("archive" in name for name in before), "some of the year's mail is in the archive"
    pair.join("north")
    pair.join("south")
    assert _files(old.directory) == before
    first, second = old.sessions[:2]
    pair.ok("south", "roster", "register", "--session-id", "ben")
    sent = [pair.send("south", "--from", "ben", "--to", first, "--body", "to the old machine", "--ack")]
    sent.append(pair.send("north", "--from", second, "--to", "ben", "--body", "from the old machine"))
    shown = [m["id"] for m in pair.ok("north", "check", "--session", first, "--limit", "0")["messages"]]
    assert shown[-1] == sent[0]
    pair.ok("north", "ack", sent[0], "--session", first)
    pair.ok("north", "engine", "leave")
    after = _files(old.directory)
    added = {name: _behind(before.get(name, b""), after[name]) for name in LOGS}
    assert {name: text for name, text in after.items() if name not in LOGS} == {
        name: text for name, text in before.items() if name not in LOGS
    }
    assert [json.loads(line)["id"] for line in added[MESSAGES]] == sent
    assert [json.loads(line)["session_id"] for line in added[ROSTER]] == ["ben"]
    done = [(event["message_id"], event["event"]) for line in added[READS] for event in [json.loads(line)]]
    assert [message for message, event in done if event == "read"] == shown
    assert done[-1] == (sent[0], "ack")
    pair.ok("south", "engine", "leave")
    for name in LOGS:
        everything = [unsealed(line) for line in after[name].splitlines()]
        assert sorted(everything) == sorted(pair.lines("south", name)), name
    pair.join("north")
    pair.ok("north", "engine", "leave")
    assert _files(old.directory) == after


def _files(directory: Path) -> dict[str, bytes]:
    """Every file but derived ones and signs of life."""
    names = {path.relative_to(directory): path for path in directory.rglob("*") if path.is_file()}
    derived = (".cache", "agent-heartbeats")
    return {str(name): path.read_bytes() for name, path in names.items() if name.parts[0] not in derived}


def _behind(before: bytes, after: bytes) -> list[bytes]:
    """The lines behind what was there before, which is as it was."""
    assert after.startswith(before)
    return after[len(before) :].splitlines()
