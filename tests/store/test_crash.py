"""Killed between any two of its system calls, a command loses nothing and doubles nothing."""

from __future__ import annotations

import collections
import json
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox, Message
from agent_mailbox.core import codec, proofs
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.queries import Library
from agent_mailbox.store import roster_compaction
from agent_mailbox.upkeep import notices
from agent_mailbox.upkeep import steward as stewards
from tests.faults.faults import EXHAUSTIVE
from tests.helpers import ARCHIVE, MESSAGES, READS, ROSTER, Post
from tests.store import crash

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400_000
NOW = time.time_ns() // 1_000_000
READERS = ("ann", "bob", "cat")
ID = "00000000-1111-4111-8111-222222222222"


def crashed(post: Post, which: str, *words: str) -> list[Path]:
    """The places where the command was killed, in order; in the last one it ran to its end. Exhaustively at each step,
    else at every third one."""
    out = post.scratch / "out"
    result = post.run(post.box, out, which, *words, python=("-m", "tests.store.crash"))
    assert result.rc == 0, result
    places = sorted(out.iterdir())
    assert len(places) > 3
    return places if EXHAUSTIVE else [*places[:-1:3], places[-1]]


def opened(box: Path) -> Mailbox:
    """The mailbox, its clock standing."""
    return Mailbox(str(box), clock=lambda: NOW)


def views(mailbox: Mailbox) -> dict[str, Any]:
    """Everything a reader can see, each thing with how often it is there."""
    library = Library(mailbox)
    everything = library.everything()
    seen: dict[str, Any] = {reader: [i.message.id for i in mailbox.peek(reader)] for reader in READERS}
    seen["history"] = sorted(everything.messages)
    seen["read"] = {i: sorted(r.session_id for r in everything.reads.of(i)) for i in everything.messages}
    seen["owed"] = [m.id for m in library.status("bob").obligations]
    return seen


def stored(box: Path, name: str) -> collections.Counter[bytes]:
    """How often each record's line stands anywhere, live or archived."""
    months = {p for p in (box / ARCHIVE).glob("[0-9]*.jsonl") if p.name.endswith("-reads.jsonl") == (name == READS)}
    lines = [line for p in (box / name, *months) if p.exists() for line in p.read_bytes().split(b"\n")]
    decode = codec.read if name == READS else codec.message
    return collections.Counter(line for line in lines if not isinstance(decode(line), codec.BadLine))


@pytest.fixture
def full(post: Post) -> Post:
    """A mailbox over three months: read, expired, claimed, owed, pending mail, and foreign lines among it."""
    now = NOW - 3 * 31 * DAY
    mailbox = Mailbox(str(post.box), clock=lambda: now)
    for name in READERS:
        mailbox.register(Registration(session_id=name, roles=("builder",) if name != "ann" else None), name)
    for month in range(3):
        for word, ack in (("bob", True), ("cat", False), ("role:builder", False), ("all", False), ("project:x", False)):
            mailbox.send(Draft(sender="ann", to=(word,), content=f"{word} in {month}", ack=ack))
        mailbox.deliver("bob", lambda items: items[:3])
        mailbox.deliver("cat", lambda items: items)
        post.append(MESSAGES, b"not a record\n")
        post.append(READS, b"neither\r\n")
        now += 31 * DAY
    mailbox.ack(next(iter(mailbox.state().messages)), "bob")
    mailbox.send(Draft(sender="bob", to=("role:nobody",), content="waits for ever"))
    mailbox.send(Draft(sender="bob", to=("ann",), content="not read yet"))
    steward = Mailbox(str(post.box), clock=lambda: NOW, prove=lambda _: proofs.STEWARD)
    notices.tell(steward, NOW)  # a run that tells senders of dead letters shows one more message
    post.append(MESSAGES, b'{"id":"torn')
    return post


def test_a_steward_killed_at_any_step_leaves_a_whole_mailbox_and_the_next_run_completes_it(full: Post) -> None:
    """At every moment each reader sees exactly the same; after the next run every record stands exactly once."""
    wanted = views(opened(full.box))
    lines = {name: stored(full.box, name) for name in (MESSAGES, READS)}
    assert {name: len(counts) for name, counts in lines.items()} == {MESSAGES: 18, READS: 19}
    assert wanted["owed"]
    assert wanted["ann"]
    places = crashed(full, "before", "steward", "run", "--max-live", "0", "--json")
    assert len(places) > 10
    for place in places:
        mailbox = opened(place / "box")
        assert views(mailbox) == wanted, place.name
        report = stewards.run(mailbox, 0)
        assert report.kept >= report.pending >= 1
        assert views(mailbox) == wanted, place.name
        for name in (MESSAGES, READS):
            assert stored(place / "box", name) == lines[name], (place.name, name)
        live = {m.id for m in mailbox.state().messages.values()}
        assert live.isdisjoint(mailbox.archive.messages())
        assert {r.message_id for r in mailbox.logs.read_records()} <= live
        assert not list((place / "box").glob("*.new"))
        foreign = (place / "box" / MESSAGES).read_bytes()
        assert foreign.count(b"not a record\n") == 3
        assert foreign.count(b'{"id":"torn') == 1
    again = stewards.run(mailbox, 0)
    assert (again.archived, again.frozen, again.retired) == (0, 0, 0)
    assert json.loads((places[-1] / "stdout").read_text())["archived"] > 5


def test_what_happens_between_a_killed_steward_and_the_next_counts(post: Post) -> None:
    """Mail given back after its line reached the archive is unread, is read anew, and ends there once."""
    for agent in ("ann", "bob", "cat"):
        post.register(agent, *(() if agent == "ann" else ("--role", "builder")))
    sent = post.send("ann", "role:builder", "for one of you")
    post.check("bob")
    for place in crashed(post, "before", "steward", "run", "--max-live", "0"):
        mailbox = opened(place / "box")
        if not mailbox.find(sent).archived:
            mailbox.release(sent, "bob")
            assert [i.message.id for i in mailbox.peek("cat")] == [sent], place
            stewards.run(mailbox, 0)
            assert mailbox.deliver("cat", lambda items: items) == 1, place
        stewards.run(mailbox, 0)
        assert len(mailbox.state().messages) == 0
        everything = Library(mailbox).everything()
        assert [r.session_id for r in everything.reads.of(sent)] in (["cat"], ["bob"]), place
        assert sum(stored(place / "box", MESSAGES).values()) == 1
        receipts = post.ok("show", sent, env={"AGENT_MAILBOX_DIR": str(place / "box")})["receipts"]
        assert [r["event"] for r in receipts] in (
            ["claim", "read"],
            ["claim", "read", "release", "claim", "read"],
        ), place


def test_a_check_killed_at_any_step_shows_again_and_never_loses(post: Post) -> None:
    """Whatever a killed check recorded as read was in its output, whole; everything else is still unread."""
    for agent in ("ann", "bob"):
        post.register(agent, "--role", "builder")
    sent = [
        post.send("ann", "bob", "direct"),
        post.send("ann", "role:builder", "for one"),
        post.send("ann", "all", "€"),
    ]
    for which in ("before", "within"):
        for place in crashed(post, which, "check", "--session", "bob", "--json"):
            shown = (place / "stdout").read_bytes()
            mailbox = Mailbox(str(place / "box"))
            unread = {item.message.id for item in mailbox.peek("bob")}
            recorded = {read.message_id for read in mailbox.logs.read_records() if read.event == "read"}
            assert unread | recorded == set(sent)
            assert not unread & recorded
            if recorded:
                assert [m["id"] for m in json.loads(shown)["messages"]] == sent, place
            mailbox.deliver("bob", lambda items: items)
            assert mailbox.peek("bob") == []
        assert recorded == set(sent)
        _clear(post)


def test_a_send_killed_at_any_step_may_be_repeated_with_its_id(post: Post) -> None:
    """Before the end nothing is promised; afterwards the message is there once, and whole."""
    earlier = post.send("ann", "all", "earlier")
    words = (
        "send",
        "--from",
        "ann",
        "--to",
        "all",
        "--body",
        "once “only” €",
        "--id",
        "0" * 8 + "-1111-4111-8111-" + "2" * 12,
    )
    for which in ("before", "within"):
        for place in crashed(post, which, *words):
            result = post.call(*words, "--json", env={"AGENT_MAILBOX_DIR": str(place / "box")})
            assert result.rc == 0, result
            contents = [i.message.content for i in Mailbox(str(place / "box")).peek("bob")]
            assert contents == ["earlier", "once “only” €"], place
            lines = (place / "box" / MESSAGES).read_bytes().split(b"\n")
            assert sum(isinstance(codec.message(line), Message) for line in lines) == 2
        _clear(post)
    assert post.unread("bob") == [earlier]


def test_a_retirement_killed_at_any_step_gives_back_what_was_owed(post: Post) -> None:
    """Role mail that waits for a dead agent's ack comes back to the role, at once or with the next steward."""
    post.register("ann")
    post.register("bob", "--role", "builder")
    sent = post.send("ann", "role:builder", "please", "--ack")
    assert post.check("bob") == [sent]
    post.register("cat", "--role", "builder")
    for place in crashed(post, "before", "roster", "retire", "bob"):
        mailbox = Mailbox(str(place / "box"))
        died = mailbox.state().roster.state("bob") == "dead"
        stewards.run(mailbox)
        assert [i.message.id for i in mailbox.peek("cat")] == ([sent] if died else []), place
    assert died


def test_an_init_killed_at_any_step_is_completed_by_the_next(post: Post) -> None:
    """A half made mailbox is no obstacle."""
    empty = post.scratch / "empty"
    empty.mkdir()
    out = post.scratch / "out"
    result = post.run(empty, out, "before", "init", python=("-m", "tests.store.crash"), cwd=empty)
    assert result.rc == 0, result
    for place in sorted(out.iterdir()):
        result = post.call("init", env={"AGENT_MAILBOX_DIR": str(place / "box")})
        assert result.rc == 0, result
        assert (place / "box" / MESSAGES).exists()
        assert str(place / "box") in (post.home / ".local/state/agent-mailbox/mailboxes").read_text().splitlines()


def test_a_roster_compaction_killed_at_any_step_keeps_every_agent(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The roster reads the same at every moment, and no event that was told away is missing from the archive."""
    monkeypatch.setattr(roster_compaction, "COMPACT_ABOVE", crash.COMPACT_ABOVE)
    mailbox = Mailbox(str(post.box))
    for number in range(3):
        mailbox.register(Registration(session_id=f"s{number}", name=f"n{number}", roles=("builder",)), "user")
    tags = [("project:x",), ("project:y",)]
    events = [
        codec.roster_line(event.replace(tags=tags[turn % 2]))
        for turn in range(crash.COMPACT_ABOVE)
        for event in [codec.roster_event(line) for _, line in mailbox.logs.roster.lines()][1:3]
        if not isinstance(event, codec.BadLine)
    ]
    mailbox.logs.roster.append(events)
    before = mailbox.logs.read_roster()
    lines = set(post.lines(ROSTER))
    for place in crashed(post, "before", "steward", "run"):
        there = Mailbox(str(place / "box"))
        assert _told(there) == {a.session_id: (a.name, set(a.tags), a.state) for a in before.agents.values()}
        stewards.run(there)
        assert _told(there) == {a.session_id: (a.name, set(a.tags), a.state) for a in before.agents.values()}
        assert len(list(there.logs.roster.lines())) < 20
        assert lines <= {line for _, line in there.archive.roster_log().lines()}
        assert there.logs.read_roster().roles_ever == before.roles_ever


def _told(mailbox: Mailbox) -> dict[str, Any]:
    return {a.session_id: (a.name, set(a.tags), a.state) for a in mailbox.logs.read_roster().agents.values()}


def _clear(post: Post) -> None:
    shutil.rmtree(post.scratch / "out")
