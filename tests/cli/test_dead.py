"""What the dead leave: letters of which their senders are told once, and files that the steward removes."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.compose import Draft
from agent_mailbox.core.proofs import STEWARD
from agent_mailbox.core.roster import DEAD
from agent_mailbox.mailbox import registry
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.store.files import paths, system
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.user_state import bindings, processes
from agent_mailbox.upkeep import leftovers, steward
from agent_mailbox.upkeep import notices as steward_notices
from tests.helpers import HEARTBEATS, MESSAGES, READS, ROSTER, record, stamp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post

DAY = 86_400_000


@pytest.fixture
def pair(post: Post) -> Post:
    """Two agents, ``alice`` and ``bob``."""
    for who in ("alice", "bob"):
        post.register(who)
    return post


def expired(post: Post, sender: str = "alice", to: str = "bob", days: float = 3, **more: Any) -> str:
    """The id of a message that expired unread, sent some days ago."""
    at = stamp(wall_clock() - int(days * DAY))
    old = record(sender, to, timestamp=at, ttl_hours=1, **more)
    post.append(MESSAGES, old)
    return str(old["id"])


def notices(post: Post, session_id: str) -> list[dict[str, Any]]:
    """The session's unread notices of the steward, which are read then."""
    return [m for m in post.ok("check", "--session", session_id)["messages"] if m["sender"] == STEWARD]


def letters(post: Post, *words: object) -> dict[str, str]:
    """The dead letters that the command lists, with the reasons."""
    return {m["id"]: m["reason"] for m in post.ok("dead-letters", *words)["messages"]}


# -- letters ----------------------------------------------------------------------------------------------------------


def test_what_was_given_back_is_not_called_never_read(pair: Post) -> None:
    """Its reader saw it, gave it back and was retired: the notice says so, beside one that nobody saw."""

    def given_back(reader: str) -> str:
        pair.register(reader)
        sent = pair.send("alice", reader)
        pair.check(reader)
        pair.ok("release", sent, "--session", reader)
        pair.ok("roster", "retire", reader)
        return str(sent)

    sent = given_back("carl")
    pair.ok("steward", "run")
    (notice,) = notices(pair, "alice")
    assert notice["subject"] == "A message of yours was given back, and nobody took it"
    assert notice["content"] == f"{sent[:8]} to carl: given back, recipient dead"
    back, unread = given_back("dora"), expired(pair)
    pair.ok("steward", "run")
    (notice,) = notices(pair, "alice")
    assert notice["subject"] == "2 messages of yours were never read, or given back"
    told = {f"{back[:8]} to dora: given back, recipient dead", f"{unread[:8]} to bob: expired"}
    assert {*notice["content"].splitlines()} == told


def test_a_sender_is_told_of_its_dead_letters_once(pair: Post) -> None:
    """One short notice for all of a run, however often the steward runs; the next run tells of more. It is so whenever
    the letter was to be shown."""
    first = expired(pair, when="turn")
    pair.register("carl")
    orphan = pair.send("alice", "carl")
    pair.ok("roster", "retire", "carl")
    pair.ok("steward", "run")
    (notice,) = notices(pair, "alice")
    assert notice["subject"] == "2 messages of yours were never read"
    assert notice["content"] == f"{first[:8]} to bob: expired\n{orphan[:8]} to carl: recipient dead"
    assert (notice["type"], notice["mode"]) == ("notification", "direct")
    pair.ok("steward", "run")
    assert pair.ok("steward", "run", "--max-live", 0)["kept"] == 0
    pair.ok("steward", "run")
    assert notices(pair, "alice") == notices(pair, "bob") == []
    later = expired(pair)
    pair.ok("steward", "run", "--max-live", 0)
    assert [n["content"] for n in notices(pair, "alice")] == [f"{later[:8]} to bob: expired"]


def test_a_letter_that_outlives_its_notice_is_told_once(pair: Post) -> None:
    """Its reader knows its title alone, and owes the ack, so it stays. Months later another letter is told alone."""
    then = wall_clock() - 70 * DAY
    letter = expired(pair, days=70, ack=True)
    pair.append(READS, {"message_id": letter, "reader_session_id": "bob", "timestamp": stamp(then), "title": True})
    mailbox = Mailbox(str(pair.box), clock=lambda: then + DAY, prove=lambda _: STEWARD)
    steward.run_upkeep(mailbox, trust_clock=True)
    assert [m["metadata"]["dead_letters"] for m in pair.objects(MESSAGES)[1:]] == [[letter]]
    pair.ok("steward", "run", "--max-live", 0)
    assert [m["id"] for m in pair.objects(MESSAGES)] == [letter]
    later = expired(pair)
    pair.ok("steward", "run")
    assert [n["metadata"]["dead_letters"] for n in notices(pair, "alice")] == [[later]]


def test_a_letter_that_a_clock_dated_ahead_of_its_notice_is_told_once(pair: Post) -> None:
    """The clock was months ahead. The letter stays in the log, for it answers mail that another still owes an ack."""
    pair.register("carl")
    asked = pair.send("carl", "alice,bob", "May I?", "--ack")
    assert pair.check("alice") == pair.check("bob") == [asked]
    letter = record("alice", "carl", timestamp=stamp(wall_clock() + 70 * DAY), thread=asked)
    pair.append(MESSAGES, letter)
    pair.ok("roster", "retire", "carl")
    told = []
    for _ in range(3):
        pair.ok("steward", "run", "--max-live", 0)
        told.append([n["metadata"]["dead_letters"] for n in notices(pair, "alice")])
    assert told == [[[letter["id"]]], [], []]
    assert [m["id"] for m in pair.objects(MESSAGES)] == [asked, letter["id"]]


def test_what_the_dead_had_come_into_goes_back_at_once(pair: Post) -> None:
    """No steward is needed: it owed the ack that the session before it was asked for."""
    for who, name in (("old", "Ann"), ("ben", "Ben")):
        pair.register(who, "--role", "worker", "--name", name)
    asked = pair.send("alice", "role:worker", "please", "--ack")
    assert pair.check("old") == [asked]
    pair.ok("roster", "freeze", "--session-id", "old")
    pair.register("new", "--name", "Ann")
    assert [m["id"] for m in pair.ok("status", "--session", "new")["obligations"]] == [asked]
    assert pair.check("ben") == []
    pair.ok("roster", "retire", "--session-id", "new")
    assert pair.check("ben") == [asked]


def test_a_sender_that_cannot_be_told_keeps_no_other_from_it(pair: Post) -> None:
    """An id that is shown of another's means both, so no notice goes to it. Its letter is archived all the same."""
    whole = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
    senders = ("1b9d6bcd", whole, "alice")
    for who in (*senders[:2], "carl"):
        pair.append(ROSTER, {"event": "register", "session_id": who, "timestamp": stamp()})
    letters = [pair.send(who, "carl") for who in senders]
    pair.ok("roster", "retire", "carl")
    pair.ok("steward", "run", "--max-live", 0)
    told = [m["metadata"]["dead_letters"] for who in senders[1:] for m in notices(pair, who)]
    assert told == [[letters[1]], [letters[2]]]
    assert {*letters}.isdisjoint(m["id"] for m in pair.objects(MESSAGES))


def test_a_notice_names_a_few_letters_and_the_command_that_lists_them(pair: Post) -> None:
    """It goes into a model's context."""
    for _ in range(40):
        expired(pair)
    pair.ok("steward", "run")
    (notice,) = notices(pair, "alice")
    assert notice["subject"] == "40 messages of yours were never read"
    assert notice["content"].splitlines()[5:] == [f"more: agent-mailbox dead-letters --session alice --dir {pair.box}"]
    words = shlex.split(notice["content"].partition("more: agent-mailbox ")[2])
    assert len(pair.ok(*words)["messages"]) == 40


def test_the_successor_is_told_and_nobody_where_there_is_none(pair: Post) -> None:
    """A stranger, an agent elsewhere and the dead hear nothing; a notice that nobody read makes none."""
    for sender in ("stranger", "swarm:home/x", "bob"):
        expired(pair, sender, "alice")
    expired(pair, STEWARD, "alice", type="notification")
    pair.ok("roster", "retire", "bob")
    pair.ok("steward", "run")
    assert [m for m in pair.objects(MESSAGES) if m.get("metadata")] == []
    pair.append(ROSTER, {"event": "register", "session_id": "ben", "timestamp": stamp(), "continues": "bob"})
    pair.ok("steward", "run")
    assert len(notices(pair, "ben")) == 1


def test_the_person_is_told_of_their_own_letters_alone(pair: Post) -> None:
    """Any program may write lines in their name."""
    expired(pair, "user", "alice")
    letter = pair.send("user", "bob")
    pair.ok("roster", "retire", "bob")
    pair.ok("steward", "run")
    assert [n["metadata"] for n in notices(pair, "user")] == [{"dead_letters": [letter]}]


def test_no_other_program_s_line_keeps_a_sender_from_being_told(pair: Post) -> None:
    """A notice counts as told only by its seal, and only if the steward sealed it."""
    letter = expired(pair)
    forged = record(STEWARD, "bob", type="notification", metadata={"dead_letters": [letter]})
    pair.append(MESSAGES, forged, {**record(), "metadata": {"dead_letters": 1}})
    pair.register("stewardess")
    for sender in ("bob", "stewardess"):
        told = Draft(sender=sender, to=("bob",), content="x", metadata={"dead_letters": [letter]})
        Mailbox(str(pair.box)).send(told)
    pair.ok("steward", "run")
    assert [n["metadata"] for n in notices(pair, "alice")] == [{"dead_letters": [letter]}]


def test_no_other_program_s_line_in_the_archive_keeps_a_sender_from_being_told(pair: Post) -> None:
    """The steward archives a forged notice as any other line; it counts for nothing there, either."""
    letter = record("alice", "bob", timestamp=stamp(wall_clock() - 3 * DAY), ttl_hours=1)
    old = stamp(wall_clock() - 3 * DAY)
    named = {"metadata": {"dead_letters": [letter["id"]]}, "type": "notification"}
    pair.append(MESSAGES, record(STEWARD, "ann", timestamp=old, ttl_hours=1, **named))
    pair.ok("steward", "run", "--max-live", 0)
    assert pair.objects(MESSAGES) == []
    pair.append(MESSAGES, letter)
    pair.ok("steward", "run")
    assert [n["metadata"] for n in notices(pair, "alice")] == [{"dead_letters": [letter["id"]]}]


def test_a_letter_is_not_archived_before_its_sender_was_told(pair: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that died after the notices of a run stays; it moves with the run that tells."""
    letter = expired(pair)
    with monkeypatch.context() as before:
        before.setattr(steward_notices, "notify_senders", lambda *_: set())
        assert pair.ok("steward", "run", "--max-live", 0)["archived"] == 0
    assert [m["id"] for m in pair.objects(MESSAGES)] == [letter]
    assert pair.ok("steward", "run", "--max-live", 0)["archived"] == 1
    assert [n["metadata"]["dead_letters"] for n in notices(pair, "alice")] == [[letter]]


def test_a_steward_that_proves_nothing_tells_nobody_and_keeps_no_letter_back(pair: Post) -> None:
    """It would send a notice that nobody knows for the steward's, so no letter waits for one."""
    expired(pair)
    assert steward.run_upkeep(Mailbox(str(pair.box), prove=lambda _: None), 0).archived == 1
    assert pair.objects(MESSAGES) == []


def test_one_run_tells_of_every_letter_and_moves_all_that_is_finished(
    pair: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many one sender has, and whatever a sender may send in a minute: the first notice counts them all, and
    each letter is named once. So it is beside another program's line with an endless id."""
    monkeypatch.setattr(steward_notices, "WIDE", 8 * 36)
    pair.file("config.toml").write_text("[limits]\nmessages_per_minute = 1\n")
    dead = [expired(pair) for _ in range(20)]
    dead.append("x" * 300_000)
    pair.append(MESSAGES, record("alice", "bob", id=dead[-1], timestamp=stamp(wall_clock() - DAY), ttl_hours=1))
    done = pair.ok("steward", "run", "--max-live", 0)
    assert (done["archived"], done["kept"]) == (21, 4)
    told = notices(pair, "alice")
    assert [n["subject"] for n in told] == [f"21 messages of yours were never read ({n} of 4)" for n in (1, 2, 3, 4)]
    assert [i for n in told for i in n["metadata"]["dead_letters"]] == dead
    listed = f"agent-mailbox dead-letters --session alice --dir {pair.box}"
    assert [n["content"].splitlines()[-1] for n in told] == [
        f"more: {listed}",
        *(f"These are {n} of them. All: {listed}" for n in (8, 4, 1)),
    ]
    pair.ok("steward", "run", "--max-live", 0)
    assert notices(pair, "alice") == []


def test_dead_letters_tells_of_the_archive(pair: Post) -> None:
    """Those of the last thirty days; ``--since`` reaches further and less far. Archived mail that was read is none."""
    new, old = expired(pair, days=20), expired(pair, days=90)
    read = expired(pair, days=10)
    pair.append("agent-mailbox-reads.jsonl", {"message_id": read, "reader_session_id": "bob", "timestamp": stamp()})
    assert set(letters(pair, "--session", "alice")) == {new, old}
    assert pair.ok("steward", "run", "--max-live", 0)["archived"] == 3
    assert letters(pair, "--session", "alice") == {new: "expired"}
    assert set(letters(pair, "--all", "--since", "365d")) == {new, old}
    assert letters(pair, "--session", "bob", "--since", "5d") == {}
    (of_old,) = (m for m in pair.ok("dead-letters", "--all", "--since", "365d")["messages"] if m["id"] == old)
    assert set(letters(pair, "--all", "--since", of_old["timestamp"])) == {new, old}, "the instant itself counts"
    left_out = "archived mail of more than 30 days ago is left out (--since 365d)\n"
    assert pair.call("dead-letters", "--all").stdout.endswith(left_out)
    assert pair.call("dead-letters", "--session", "carl").stdout == f"no dead letters\n{left_out}"
    assert pair.call("dead-letters", "--session", "carl", "--since", "365d").stdout == "no dead letters\n"


def test_dead_letters_tells_what_it_leaves_out_of_the_month_in_which_its_days_begin(pair: Post) -> None:
    """The archive may begin in that month. Mail of before those days is told of, and other mail is not."""
    left_out = "archived mail of more than 30 days ago is left out (--since 365d)\n"
    new = expired(pair, days=29.99)
    pair.ok("steward", "run", "--max-live", 0)
    assert letters(pair, "--all") == {new: "expired"}
    assert left_out not in pair.call("dead-letters", "--all").stdout
    expired(pair, days=30.01)
    pair.ok("steward", "run", "--max-live", 0)
    assert letters(pair, "--all") == {new: "expired"}
    assert pair.call("dead-letters", "--all").stdout.endswith(left_out)


# -- files ------------------------------------------------------------------------------------------------------------


def files_of(post: Post, session_id: str) -> list[str]:
    """The files of the mailbox that bear the session's name."""
    return sorted(str(path.relative_to(post.box)) for path in post.box.rglob(session_id))


def test_the_steward_removes_what_the_dead_leave_and_a_return_loses_nothing(pair: Post) -> None:
    """No mail twice, none missed: what bob read, and what came while it was dead and alive again."""
    shown = [pair.send("alice", "bob"), pair.send("alice", "all")]
    assert pair.check("bob") == shown
    for name in leftovers.DERIVED:
        pair.file(".cache", name).mkdir(mode=0o700, exist_ok=True)
        pair.file(".cache", name, "bob").touch(0o600)
    alive = files_of(pair, "alice")
    assert len(files_of(pair, "bob")) == len(leftovers.DERIVED) + 1
    pair.ok("steward", "run")
    assert len(files_of(pair, "bob")) == len(leftovers.DERIVED) + 1
    seen = pair.ok("roster", "show", "bob")["agent"]["last_seen"]
    pair.ok("roster", "retire", "bob")
    pair.ok("steward", "run")
    assert files_of(pair, "bob") == []
    assert files_of(pair, "alice") == alive
    assert pair.ok("roster", "show", "bob")["agent"]["last_seen"] >= seen
    more = pair.send("alice", "all")
    pair.register("bob")
    assert pair.check("bob") == [more]
    assert pair.check("bob") == []
    last = pair.send("alice", "bob")
    assert pair.check("bob") == [last]
    assert pair.doctor() == []


def test_a_heartbeat_that_is_locked_stays(pair: Post) -> None:
    """It is the delivery lock: whoever holds it is showing mail."""
    pair.check("bob")
    pair.ok("roster", "retire", "bob")
    with FileLock(str(pair.file(HEARTBEATS, "bob"))):
        pair.ok("steward", "run")
        assert pair.file(HEARTBEATS, "bob").exists()
    pair.ok("steward", "run")
    assert not pair.file(HEARTBEATS, "bob").exists()


def test_who_waited_for_a_removed_lock_takes_the_new_one(tmp_path: Path) -> None:
    """The file goes between its opening and its locking: the lock on it would exclude nobody."""

    class Slow(FileLock):
        """A process that is stopped after it opened the file, once."""

        def _open(self) -> int:
            fd = super()._open()
            if not self.path.endswith("?") and not again:
                again.append(fd)
                os.unlink(self.path)
            return fd

    again: list[int] = []
    with Slow(str(tmp_path / "heart")) as lock:
        assert lock.stands()


def test_who_died_long_ago_and_has_no_living_client_is_bound_no_more(
    pair: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steward forgets the mark after 30 days, in the name of its own mailbox alone. A session that lives, or whose
    client does, keeps its mark; one that comes back is bound again by its lead."""
    state, other = str(pair.user_state), pair.scratch / "other"
    assert pair.call("init", other).rc == 0
    for who in ("led", "hosted", "twice", "living"):
        pair.register(who, "--lead", "alice")
    pair.ok("roster", "register", "--session-id", "twice", "--lead", "user", "--dir", other)
    hosts, me = processes.ProcessRecords(state), processes.read(os.getpid())
    assert me is not None
    hosts.record(me, "hosted", processes.PIPE)
    for who in ("led", "hosted", "twice"):
        pair.ok("roster", "retire", who)
    looked = pair.user_state / paths.CHANGED / "led"
    looked.parent.mkdir()
    looked.touch()
    desk, died = Mailbox(str(pair.box)), wall_clock()
    for days, left in ((29, ["hosted", "led", "living", "twice"]), (31, ["hosted", "living", "twice"])):
        monkeypatch.setattr(system, "time_ns", lambda days=days: (died + days * DAY) * 1_000_000)
        leftovers.sweep_leftovers(desk)
        assert paths.bound_sessions(state) == left
        assert looked.exists() == ("led" in left)
    assert bindings.named(state, "twice") == [str(other)]
    monkeypatch.undo()
    pair.register("led")
    called = {"session_id": "led", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "x"}}
    pair.call("hook", "permit", stdin=json.dumps(called), env={"CLAUDE_CODE_SESSION_ID": "led"})
    assert "led" in paths.bound_sessions(state)


def test_a_death_that_another_program_dated_back_frees_no_session(pair: Post) -> None:
    """The mark of a bound session is old itself before the steward forgets it."""
    pair.register("led", "--lead", "alice")
    line = {"event": "retire", "session_id": "led", "timestamp": "2024-01-01T00:00:00Z"}
    pair.append(ROSTER, line)
    desk = Mailbox(str(pair.box))
    assert desk.logs.read_roster().state("led") == DEAD
    leftovers.sweep_leftovers(desk)
    assert "led" in paths.bound_sessions(str(pair.user_state))


def test_the_note_of_a_session_that_died_long_ago_goes(pair: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start of a session makes one, among the user's own records: they only grew. A session that lives, or whose
    client does, keeps it, and so does one that has rules, is another mailbox's, or died lately."""
    state, other = str(pair.user_state), f"{pair.box}-2"
    everyone = ("away", "dead", "hosted", "living", "ruled")
    for who in everyone:
        pair.register(who)
        mailbox = other if who == "away" else pair.box
        processes.note_whereabouts(who, processes.Whereabouts(str(mailbox), str(pair.cwd), "claude-code"), state)
    pair.ok("control", "policy", "ruled", "--allow", "Bash(make:*)", "--session", "user")
    hosts, me = processes.ProcessRecords(state), processes.read(os.getpid())
    assert me is not None
    hosts.record(me, "hosted", processes.PIPE)
    for who in everyone:
        if who != "living":
            pair.ok("roster", "retire", who)
    desk, died = Mailbox(str(pair.box)), wall_clock()
    for days, gone in ((29, set()), (31, {"dead"})):
        monkeypatch.setattr(system, "time_ns", lambda days=days: (died + days * DAY) * 1_000_000)
        leftovers.sweep_leftovers(desk)
        assert {*everyone} - {*os.listdir(f"{state}/{processes.NOTES}")} == gone


def test_a_death_looks_once_for_each_whom_it_continued(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is started again each day comes to continue hundreds."""
    asked: list[bytes] = []

    def look(_: object, readers: list[bytes]) -> list[tuple[int, bytes]]:
        asked[:] = readers
        return []

    monkeypatch.setattr(registry, "lines_read_by", look)
    for number in range(4):
        post.register(f"w-{number}", "--name", "worker")
        post.ok("roster", "retire", f"w-{number}")
    assert asked == [b"w-3", b"w-2", b"w-1", b"w-0"]


def test_a_session_that_comes_back_meanwhile_keeps_its_files(pair: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """It registers after the steward looked, before that has the locks."""
    pair.check("bob")
    pair.ok("roster", "retire", "bob")
    real = leftovers._remove_files

    def late(*given: Any) -> None:
        pair.register("bob")
        real(*given)

    monkeypatch.setattr(leftovers, "_remove_files", late)
    pair.ok("steward", "run")
    assert pair.file(HEARTBEATS, "bob").exists()


def test_a_beat_while_the_name_goes_is_no_error(pair: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steward removes the file between its opening and the setting of its time."""
    real, path = system.utime, pair.file(HEARTBEATS, "bob")

    def late(*given: Any, **how: Any) -> None:
        path.unlink()
        real(*given, **how)

    monkeypatch.setattr(system, "utime", late)
    Mailbox(str(pair.box)).logs.beat("bob", 1)


def test_a_foreign_line_removes_no_file_elsewhere(pair: Post) -> None:
    """An id that is a path is no session's; nor are files of unknown sessions the dead's."""
    pair.file("victim").touch()
    pair.file(HEARTBEATS, "unknown").touch()
    for event in ("register", "retire"):
        pair.append(ROSTER, {"event": event, "session_id": "../victim", "timestamp": stamp()})
    pair.ok("steward", "run")
    assert pair.file("victim").exists()
    assert pair.file(HEARTBEATS, "unknown").exists()


def test_role_mail_that_was_given_back_is_not_called_never_read(pair: Post) -> None:
    """Its sender hears that somebody read it and gave it back, whatever address brought it."""
    pair.register("carl", "--role", "dev")
    at = stamp(wall_clock() - 3 * DAY)
    old = record("alice", "role:dev", timestamp=at, ttl_hours=1)
    pair.append(MESSAGES, old)
    told = {"message_id": old["id"], "reader_session_id": "carl", "timestamp": at, "as": "role:dev"}
    pair.append(READS, *({**told, "event": event} for event in ("read", "release")))
    pair.ok("steward", "run")
    assert notices(pair, "alice")[0]["subject"] == "A message of yours was given back, and nobody took it"
