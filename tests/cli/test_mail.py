"""Every mail command, each option, in text and as JSON: what the contract says it gives."""

from __future__ import annotations

import json
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.store.projection import open_ends
from tests.helpers import MESSAGES, PATIENCE, READS, ROSTER, Post, record, refused, refused_both, stamp

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = [
    *("id", "sender", "recipient", "timestamp", "subject", "content", "thread", "ttl_hours", "read_by"),
    *("type", "ack", "priority", "proof"),
]
HOUR = 3_600_000


@pytest.fixture
def pair(post: Post) -> Post:
    """A mailbox with alice, the architect, and bob, both on project:inscription."""
    post.register("alice", "--role", "architect", "--tags", "project:inscription")
    post.register("bob-0123456789", "--name", "Bob", "--tags", "project:inscription,concern:governance")
    return post


def ids(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The ids, in order."""
    return [m["id"] for m in messages]


# -- send -------------------------------------------------------------------------------------------------------------


def test_a_send_gives_the_message_and_whom_it_reaches(pair: Post) -> None:
    """The record in its keys and order, when each agent sees it, what waits; the same bytes on disk."""
    answer = pair.ok(
        *("send", "--from", "bob-0123456789", "--to", "architect,alice", "--to", "project:inscription"),
        *("--to", "role:librarian", "--subject", "Schema", "--body", "May I?", "--ack", "--priority", "high"),
        *("--type", "notification", "--ttl-hours", "3"),
    )
    message = answer["message"]
    assert list(answer) == ["message", "delivery"]
    assert list(message) == KEYS
    assert uuid.UUID(message["id"]).version == 4
    assert message["recipient"] == ["role:architect", "alice", "project:inscription", "role:librarian"]
    assert (message["sender"], message["subject"], message["content"]) == ("bob-0123456789", "Schema", "May I?")
    assert (message["ack"], message["priority"], message["type"], message["ttl_hours"]) == (
        True,
        "high",
        "notification",
        3,
    )
    assert answer["delivery"] == {
        "agents": ["alice"],
        "waiting_for": ["role:librarian"],
        "now": [],
        "at_next_turn": [],
        "when_it_looks": ["alice"],
        "one_of": [],
        "reasons": {"alice": "nothing wakes it: no doorbell waits, and no running client of it called our hooks"},
        "warnings": [],
    }
    stored = pair.objects(MESSAGES)[-1]
    assert " session:bob-0123456789 " in stored.pop("seal")
    assert stored == {key: message[key] for key in stored}
    assert list(stored) == [key for key in KEYS if key in stored]
    assert (stored["read_by"], stored["thread"]) == ([], None)


def test_a_plain_send_stores_only_what_says_something(pair: Post) -> None:
    """No optional key at its default; one recipient as a string; the default modes as the address has them."""
    for to, stored_as in (
        ("alice", "alice"),
        ("Bob", "bob-0123456789"),
        ("bob-012", "bob-0123456789"),
        ("architect", "role:architect"),
        ("concern:governance", "concern:governance"),
        ("all", "all"),
        ("user", "user"),
    ):
        pair.send("x", to)
        stored = pair.objects(MESSAGES)[-1]
        assert stored["recipient"] == stored_as
        plain = ["id", "sender", "recipient", "timestamp", "content", "thread", "ttl_hours", "read_by"]
        assert list(stored) == [*plain, "seal"]


def test_a_send_in_text_says_where_it_went(pair: Post) -> None:
    """Id and address, who sees it now, what it waits for; nothing on stderr. A sender that is no agent is told
    where answers wait."""
    pair.ok("roster", "freeze", "Bob")
    result = pair.call("send", "--from", "x", "--to", "alice,Bob,role:nobody", "--body", "hi")
    assert (result.rc, result.stderr) == (0, "")
    first, second, third, fourth = result.stdout.splitlines()
    assert first.startswith("sent ")
    assert first.endswith(" to alice, Bob, role:nobody")
    assert "alice" in second
    assert "Bob" in third
    assert "role:nobody" in third
    assert fourth == "  answers wait until it checks: x, no known agent"
    answer = pair.call("reply", first.split()[1], "--from", "alise", "--body", "hi").stdout
    assert answer.endswith("  answers wait until it checks: alise, no known agent\n")
    pair.register("x")
    assert "answers wait" not in pair.call("send", "--from", "x", "--to", "alice", "--body", "hi").stdout


@pytest.mark.parametrize("source", ["-", "@"])
def test_a_body_from_a_stream_loses_one_trailing_newline(pair: Post, source: str) -> None:
    """One, not all; everything else arrives as it is; a body given outright is untouched."""
    text = "\n  two\n\nlines “€” \U0001f600\n\n"
    path = pair.scratch / "body"
    path.write_text(text)
    pair.ok("send", "--from", "x", "--to", "alice", "--body", "-" if source == "-" else f"@{path}", stdin=text)
    assert pair.objects(MESSAGES)[-1]["content"] == text[:-1]
    pair.ok("send", "--from", "x", "--to", "alice", "--body", "as is\n\n")
    assert pair.objects(MESSAGES)[-1]["content"] == "as is\n\n"


def test_an_unknown_word_waits_as_a_role_with_a_loud_warning(pair: Post) -> None:
    """``--strict`` refuses it; the mail is there when somebody takes the role."""
    result = pair.call("send", "--from", "x", "--to", "planner", "--body", "hi", "--json")
    assert result.rc == 0
    assert result.json["message"]["recipient"] == "role:planner"
    assert result.json["delivery"]["waiting_for"] == ["role:planner"]
    (warning,) = result.json["delivery"]["warnings"]
    assert "planner" in warning
    assert result.warnings == [f"warning: {warning}"]
    before = pair.snapshot()
    refused(pair.call("send", "--from", "x", "--to", "planner", "--body", "hi", "--strict"), 1, "planner")
    assert pair.snapshot() == before
    pair.ok("send", "--from", "x", "--to", "architect", "--body", "hi", "--strict")
    pair.register("late", "--role", "planner")
    assert pair.check("late") == [result.json["message"]["id"]]


@pytest.mark.parametrize("way", ["name", "rename", "id", "successor"])
def test_mail_to_a_name_that_nobody_has_is_given_to_who_takes_it(pair: Post, way: str) -> None:
    """Mail to a name or id that nobody has goes to the agent that takes it later. Mail to the role of that name does
    not."""
    for session in ("late", "wren"):
        if way != "id":
            pair.register(session)
            pair.check(session)
    bare = pair.send("alice", "wren", "to whoever is wren") if way == "id" else pair.send("alice", "Jay", "to Jay")
    role = pair.send("alice", "role:wren" if way == "id" else "role:Jay", "to the role")
    who = {"id": "wren"}.get(way, "late")
    if way == "id":
        pair.register(who)
    elif way == "rename":
        pair.ok("roster", "update", "--session-id", who, "--name", "Jay")
    else:
        pair.register(who, "--name", "Jay")
    if way == "successor":
        pair.ok("roster", "retire", who)
        who = "next-1"
        pair.register(who, "--name", "Jay")
    assert pair.check(who) == [bare]
    assert pair.check(who) == []
    word = "wren" if way == "id" else "Jay"
    assert {*ids(pair.ok("history", "--with", word, "--all")["messages"])} >= {bare}
    assert ids(pair.ok("dead-letters", "--waiting", "--session", "alice")["messages"]) == [role]


def test_mail_to_a_bare_word_goes_to_one_taker(pair: Post) -> None:
    """The first agent that takes a name keeps the mail to it. A later agent of that name gets it only after a
    release."""
    bare = pair.send("alice", "Jay", "x")
    pair.register("jay-1", "--name", "Jay")
    assert pair.check("jay-1") == [bare]
    pair.ok("roster", "update", "--session-id", "jay-1", "--name", "Rook")
    pair.register("jay-2", "--name", "Jay")
    assert pair.check("jay-2") == []
    pair.ok("release", bare, "--session", "jay-1")
    assert pair.check("jay-2") == [bare]


def test_mail_that_waits_for_nobody_is_told_its_sender(pair: Post) -> None:
    """``status`` counts it with its age, and one command lists it, as does ``history --with``. A frozen holder is
    somebody."""
    pair.append(MESSAGES, record("alice", "role:ghost", "old", timestamp=stamp(5), ttl_hours=None))
    sent = [pair.send("alice", to, to) for to in ("Jay", "role:nobody", "concern:nothing")]
    pair.send("alice", "Bob", "somebody")
    pair.send("x", "Heron", "of another")
    pair.register("cold", "--role", "sleeper")
    pair.ok("roster", "freeze", "cold")
    pair.send("alice", "role:sleeper", "somebody")
    waiting = pair.ok("status", "--session", "alice")["waiting_for_nobody"]
    assert ids(waiting)[1:] == sent
    days = waiting[0]["age_seconds"] // 86400
    assert days > 1000 > waiting[1]["age_seconds"]
    text = pair.call("status", "--session", "alice").stdout
    said = f"4 messages of yours waiting for nobody, the oldest {days} d"
    assert f"{said} (agent-mailbox dead-letters --session alice --waiting)" in text
    assert f"{sent[0][:8]}  just now  role:Jay" in pair.call("dead-letters", "--waiting", "--session", "alice").stdout
    assert ids(pair.ok("dead-letters", "--waiting", "--session", "alice")["messages"])[1:] == sent
    listed = pair.call("dead-letters", "--waiting", "--all").stdout
    assert "role:Heron" in listed
    assert "role:sleeper" not in listed
    assert ids(pair.ok("history", "--with", "Jay", "--session", "alice")["messages"]) == [sent[0]]
    refused(pair.call("history", "--with", "nobody-at-all", "--all"), 1)
    assert pair.ok("dead-letters", "--waiting", "--session", "Bob")["messages"] == []


def test_each_bare_word_of_several_has_a_taker_of_its_own(pair: Post) -> None:
    """Mail to two names that nobody has goes to both who take them, once each; one who has it leaves it to the other.
    Each owes an ack. Two roles are one, as ever."""
    sent = pair.send("alice", "Jay,Heron", "x", "--ack")
    pair.register("jay-1", "--name", "Jay")
    assert pair.check("jay-1") == [sent]
    pair.ok("ack", sent, "--session", "jay-1")
    assert pair.ok("steward", "run", "--max-live", "0")["archived"] == 0
    for words, key in ((("dead-letters", "--waiting"), "messages"), (("status",), "waiting_for_nobody")):
        (waits,) = pair.ok(*words, "--session", "alice")[key]
        assert (waits["id"], waits["read_by"]) == (sent, ["jay-1"])
    pair.ok("roster", "update", "--session-id", "jay-1", "--name", "Rook")
    pair.register("jay-2", "--name", "Jay")
    assert pair.check("jay-2") == []
    pair.register("heron-1", "--name", "Heron")
    assert pair.check("heron-1") == [sent]
    (asked,) = pair.ok("status", "--session", "alice")["missing_acks"]
    assert [one["who"] for one in asked["owed_by"]] == ["heron-1"]
    assert asked["read_by"] == ["jay-1", "heron-1"]
    pair.ok("roster", "retire", "heron-1")
    pair.register("heron-2", "--name", "Wren")
    pair.ok("roster", "update", "--session-id", "heron-2", "--name", "Heron")
    assert pair.check("heron-2") == [sent]
    both = pair.send("alice", "architect,Finch", "y", "--ack")
    pair.register("wright", "--role", "architect")
    assert pair.check("wright") == [both]
    pair.register("finch-1", "--name", "Finch", "--role", "architect")
    assert pair.check("finch-1") == [both]  # by its name, though its role has a holder
    for who in ("red", "blue"):
        pair.register(f"{who}-1", "--role", who)
    once = pair.send("alice", "role:red,role:blue", "y")
    assert [pair.check(who) for who in ("red-1", "blue-1")] == [[once], []]


def test_an_address_of_several_that_means_nobody_is_told_its_sender(pair: Post) -> None:
    """Others have the mail already, and still it waits, in a table that is new, too. ``--since`` and ``--limit`` hold
    there as elsewhere."""
    sent = [pair.send("alice", f"Bob,{word}", word) for word in ("Jay", "role:nobody", "concern:nothing")]
    sent.append(pair.send("alice", "Bob,concern:governance", "somebody"))
    for _ in range(2):
        status = pair.ok("status", "--session", "alice")
        assert ids(status["waiting_for_nobody"]) == sent[:3]
        pair.check("bob-0123456789")
    shutil.rmtree(pair.box / ".cache")
    assert ids(pair.ok("dead-letters", "--waiting", "--session", "alice")["messages"]) == sent[:3]
    found = pair.ok("dead-letters", "--waiting", "--session", "alice", "--limit", "1")
    assert (ids(found["messages"]), found["more"]) == (sent[2:3], 2)
    assert pair.ok("dead-letters", "--waiting", "--all", "--since", "2100-01-01T00:00:00Z")["messages"] == []
    pair.register("jay-1", "--name", "Jay")
    assert ids(pair.ok("dead-letters", "--waiting", "--session", "alice")["messages"]) == sent[1:3]


def test_a_sender_learns_who_has_not_acked(pair: Post) -> None:
    """``status`` names its mail without every ack, and ``show`` who owes one: readers, and those who have not read."""
    pair.register("cat", "--tags", "project:inscription")
    everyone = pair.send("x", "project:inscription", "all of you", "--ack")
    direct = pair.send("x", "alice", "you", "--ack")
    role = pair.send("x", "role:planner", "somebody", "--ack")
    pair.check("alice")
    owed = {m["id"]: m["owed_by"] for m in pair.ok("status", "--session", "x")["missing_acks"]}
    assert owed[direct] == [{"who": "alice", "read": True}]
    assert owed[role] == [{"who": "role:planner", "read": False}]
    assert {"who": "cat", "read": False} in owed[everyone]
    assert {"who": "alice", "read": True} in owed[everyone]
    text = pair.call("status", "--session", "x").stdout
    assert "3 messages of yours without every ack:" in text
    assert "alice (read)" in text
    assert "cat (unread)" in pair.call("show", everyone).stdout
    pair.ok("ack", direct, "--session", "alice")
    pair.ok("reply", everyone, "--from", "alice", "--body", "done")
    pair.check("cat")
    assert pair.ok("show", direct)["owed_by"] == []
    assert [one for one in pair.ok("show", everyone)["owed_by"] if one["who"] in ("alice", "cat")] == [
        {"who": "cat", "read": True}
    ]
    pair.register("plan", "--role", "planner")
    assert pair.check("plan") == [role]
    assert pair.ok("show", role)["owed_by"] == [{"who": "plan", "read": True}]
    assert "owed_by" not in pair.ok("show", pair.send("x", "alice", "no ack"))
    pair.register("old", "--name", "Jay")
    asked = pair.send("old", "all", "all of you", "--ack")
    pair.ok("roster", "retire", "old")
    pair.register("new", "--name", "Jay")  # it continues the asker, and owes itself nothing
    assert "new" not in [one["who"] for one in pair.ok("show", asked)["owed_by"]]


def test_long_mail_is_sent_with_a_warning(pair: Post) -> None:
    """Over 500 words: sent; 500: no word about it."""
    assert pair.ok("send", "--from", "x", "--to", "alice", "--body", "w " * 500)["delivery"]["warnings"] == []
    (warning,) = pair.ok("send", "--from", "x", "--to", "alice", "--body", "w " * 501)["delivery"]["warnings"]
    assert "501" in warning


def test_an_unknown_thread_is_a_warning_a_prefix_is_completed(pair: Post) -> None:
    """The parent's whole id is stored; what nobody knows is stored as given."""
    parent = pair.send("x", "alice")
    answer = pair.ok("send", "--from", "alice", "--to", "x-agent", "--body", "re", "--thread", parent[:8])
    assert answer["message"]["thread"] == parent
    unknown = str(uuid.uuid4())
    answer = pair.ok("send", "--from", "alice", "--to", "all", "--body", "re", "--thread", unknown)
    assert answer["message"]["thread"] == unknown
    assert any(unknown in warning for warning in answer["delivery"]["warnings"])


def test_a_retry_with_the_same_id_is_the_same_message(pair: Post) -> None:
    """Live or archived, in upper case too; a reply as well; another body is refused and changes nothing."""
    own = str(uuid.uuid4())
    words = ("send", "--from", "x", "--to", "Bob", "--body", "once", "--id")
    first = pair.ok(*words, own)["message"]
    assert pair.ok(*words, own.upper())["message"] == first
    assert len(pair.lines(MESSAGES)) == 1
    other = ("send", "--from", "x", "--to", "Bob", "--body", "other", "--id", own)
    assert refused(pair.call(*other, "--json"), 1, own).json["error"]["code"] == "id_conflict"
    pair.check("bob-0123456789")
    assert pair.ok("steward", "run", "--max-live", "0")["archived"] == 1
    assert pair.ok(*words, own)["message"] == first
    refused(pair.call(*other), 1, own)
    assert pair.lines(MESSAGES) == []
    pair.ok("roster", "retire", "Bob")
    assert pair.ok(*words, own)["message"] == first
    mine = pair.send("alice", "x-session", "q")
    answer = ("reply", mine, "--from", "x", "--body", "a", "--id", str(uuid.uuid4()))
    assert pair.ok(*answer)["message"] == pair.ok(*answer)["message"]
    assert len(pair.lines(MESSAGES)) == 2


def test_a_retry_is_the_same_message_even_where_its_recipient_moved_on(pair: Post) -> None:
    """The word that was written then may mean another agent now; what was sent was sent."""
    own = str(uuid.uuid4())
    words = ("send", "--from", "x", "--to", "Bob", "--body", "once", "--id", own)
    first = pair.ok(*words)["message"]
    pair.ok("roster", "freeze", "Bob")
    pair.register("bob-the-second", "--name", "Bob")
    assert pair.ok(*words)["message"] == first
    assert len(pair.lines(MESSAGES)) == 1


def test_a_batch_is_sent_in_one_durable_step(pair: Post) -> None:
    """Canonical and older keys, a default sender, ids of its own, unknown keys kept; the ids come back in order."""
    own = str(uuid.uuid4())
    batch = [
        {"recipient": "alice", "content": "one", "subject": "s", "metadata": {"k": [1, {"x": None}]}, "mood": "good"},
        {"from": "zed", "to": ["Bob", "architect"], "body": "two", "ack": True, "ttl_hours": 5, "priority": "low"},
        {"sender": "x", "recipient": "all", "content": "three", "id": own, "type": "system", "timestamp": "2001-01-01"},
    ]
    data = "\n" + "\n\n".join(json.dumps(line) for line in batch) + "\r\n"
    answer = pair.ok("send", "--jsonl", "-", "--from", "me", stdin=data)
    assert answer == {"sent": 3, "ids": ids(pair.objects(MESSAGES))}
    one, two, three = pair.objects(MESSAGES)
    assert (one["sender"], one["subject"], one["metadata"], one["mood"]) == ("me", "s", {"k": [1, {"x": None}]}, "good")
    assert (two["sender"], two["recipient"], two["content"]) == ("zed", ["bob-0123456789", "role:architect"], "two")
    assert (two["ack"], two["ttl_hours"], two["priority"]) == (True, 5, "low")
    assert (three["id"], three["type"], three["timestamp"] > "2020") == (own, "system", True)
    again = json.dumps(batch[2])
    path = pair.scratch / "batch"
    path.write_text(again)
    assert pair.ok("send", "--jsonl", path)["ids"] == [own]
    assert len(pair.lines(MESSAGES)) == 3
    assert pair.call("send", "--jsonl", path).stdout == "sent 1 message\n"


# -- check ------------------------------------------------------------------------------------------------------------


def test_a_check_shows_in_order_then_records(pair: Post) -> None:
    """Control first, high priority next, then log order; mode, expiry and earlier readers with each; then nothing."""
    plain = pair.send("x", "alice", "plain")
    role = pair.send("x", "architect", "for the role")
    high = pair.send("x", "all", "high", "--priority", "high")
    control = pair.send("x", "project:inscription", '{"type": "idle_notification"}', "--type", "control")
    pair.send("alice", "all", "her own")
    pair.ok("check", "--session", "bob-0123456789")
    answer = pair.ok("check", "--session", "alice")
    assert (answer["session"], answer["count"], answer["more"]) == ("alice", 4, 0)
    assert ids(answer["messages"]) == [control, high, plain, role]
    assert [m["mode"] for m in answer["messages"]] == ["tag", "broadcast", "direct", "role"]
    assert [m["expires_at"] is None for m in answer["messages"]] == [False, False, False, True]
    assert [m["read_by"] for m in answer["messages"]] == [["bob-0123456789"]] * 2 + [[], []]
    assert list(answer["messages"][0]) == [*KEYS, "mode", "expires_at", "control"]
    assert list(answer["messages"][1]) == [*KEYS, "mode", "expires_at"]
    claim, *reads = [r for r in pair.objects(READS) if r["reader_session_id"] == "alice"]
    assert (claim["event"], claim["message_id"], claim["as"]) == ("claim", role, "role:architect")
    assert [(r["message_id"], r["as"]) for r in reads] == [
        (control, "project:inscription"),
        (high, "all"),
        (plain, "alice"),
        (role, "role:architect"),
    ]
    assert list(reads[0]) == ["message_id", "reader_session_id", "timestamp", "event", "as", "seal"]  # it was control
    assert list(reads[2]) == ["message_id", "reader_session_id", "timestamp", "event", "as"]
    assert pair.ok("check", "--session", "alice") == {"session": "alice", "messages": [], "count": 0, "more": 0}
    quiet = pair.call("check", "--session", "alice")
    assert (quiet.rc, quiet.stdout, quiet.stderr) == (0, "no new mail\n", "")


def test_check_shows_20_messages_or_its_limit(pair: Post) -> None:
    """20 by default, N by ``--limit``, all by 0; what is left is counted and still unread."""
    sent = [pair.send("x", "alice", f"{n}") for n in range(25)]
    assert pair.unread("alice") == sent
    answer = pair.ok("check", "--session", "alice", "--peek")
    assert (answer["count"], answer["more"]) == (20, 5)
    answer = pair.ok("read", "--session", "alice", "--limit", "3")
    assert (ids(answer["messages"]), answer["more"]) == (sent[:3], 22)
    result = pair.call("check", "--session", "alice", "--limit", "2")
    assert "20 more: agent-mailbox check" in result.stdout
    assert ids(pair.ok("check", "--session", "alice", "--limit", "0")["messages"]) == sent[5:]


def test_a_peek_writes_nothing_at_all(pair: Post) -> None:
    """No byte and no time of any file changes, for a stranger and a frozen agent either."""
    pair.send("x", "all")
    pair.ok("roster", "freeze", "Bob")

    def everything() -> dict[str, tuple[int, bytes]]:
        files = [p for p in sorted(pair.box.rglob("*")) if p.is_file()]
        return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in files}

    before = everything()
    for who in ("alice", "bob-0123456789", "never-seen"):
        assert pair.ok("check", "--session", who, "--peek")["count"] == 1
        assert "hello" in pair.call("check", "--session", who, "--peek").stdout
    assert everything() == before


def test_the_text_of_a_check_frames_each_message(pair: Post) -> None:
    """Head, subject, body behind its bar, and the one command to answer with."""
    sent = pair.send("bob-0123456789", "architect", "first\nsecond", "--subject", "Why", "--ack", "--thread", "none")
    lines = pair.call("check", "--session", "alice").stdout.splitlines()
    assert lines[0] == "1 unread message for alice"
    assert lines[2].startswith(f"{sent[:8]}  Bob → role:architect, 20")
    assert "asks for an ack" in lines[2]
    assert lines[3:6] == ["Subject: Why", "| first", "| second"]
    assert f"agent-mailbox reply {sent[:8]}" in lines[-1]


def test_the_next_commands_name_the_session_that_an_option_named(pair: Post) -> None:
    """A suggested command names the session that ``--session`` named. A session's own command needs no such option."""
    asked, later = pair.send("x", "alice", "one"), pair.send("x", "alice", "two")
    shown = pair.call("check", "--session", "Bob", "--limit", "1").stdout
    assert shown == "no new mail\n"
    assert "(agent-mailbox check --session alice)" in pair.call("status", "--session", "alice").stdout
    shown = pair.call("check", "--session", "alice", "--limit", "1").stdout.splitlines()
    assert shown[-2:] == [
        f'Reply: agent-mailbox reply {asked[:8]} --from alice --body "…"',
        "1 more: agent-mailbox check --session alice",
    ]
    own = pair.call("check", env={"CLAUDE_CODE_SESSION_ID": "alice"}).stdout.splitlines()
    assert own[-1] == f'Reply: agent-mailbox reply {later[:8]} --body "…"'


def test_a_mistyped_session_is_known_to_be_new(pair: Post) -> None:
    """A check registers it, and says so once, with the way back; a wait does not; an agent's own start is no news."""
    for verb in (("check",), ("check", "--json")):
        told = pair.call(*verb, "--session", f"alcie{len(verb)}")
        assert told.rc == 0
        assert f"no agent alcie{len(verb)} was known, and this check registered it" in told.stderr
        assert "`agent-mailbox roster list`" in told.stderr
    assert pair.call("check", "--session", "alcie1").stderr == ""
    assert pair.call("check", "--session", "newt", "--peek").stderr == ""
    assert pair.call("check", env={"CLAUDE_CODE_SESSION_ID": "newcomer"}).stderr == ""
    before = pair.lines(ROSTER)
    told = pair.call("wait", "--session", "newt", "--timeout", "0", "--json")
    assert (told.rc, told.json) == (1, {"unread": 0})
    assert "no agent newt is known, and this waits for its mail: `agent-mailbox roster list`" in told.stderr
    assert pair.lines(ROSTER) == before


def test_a_check_registers_thaws_and_beats_the_heart(pair: Post) -> None:
    """A stranger becomes an agent, a frozen one wakes, the dead is refused; last_seen moves."""
    pair.ok("check", "--session", "stranger")
    assert pair.ok("roster", "show", "stranger")["agent"]["state"] == "alive"
    pair.ok("roster", "freeze", "Bob")
    before = pair.ok("roster", "show", "Bob")["agent"]
    pair.ok("check", "--session", "Bob")
    after = pair.ok("roster", "show", "Bob")["agent"]
    assert (before["state"], after["state"]) == ("frozen", "alive")
    assert before["last_seen"] <= after["last_seen"]
    pair.ok("roster", "retire", "Bob")
    for words in (("check",), ("check", "--peek"), ("wait", "--timeout", "0")):
        refused(pair.call(*words, "--session", "bob-0123456789"), 1, "dead", "register")


# -- references -------------------------------------------------------------------------------------------------------


def test_references_are_written_in_short_and_kept_as_the_protocol_has_them(pair: Post) -> None:
    """Every type of the protocol, an action before it, a file; a reader sees them under the subject."""
    words = (
        "repo:o/r",
        "claimed:issue:o/r#3",
        "github_pr:o/r#7",
        "commit:o/r@1a2b3c4d",
        "url:https://x.y/?a=b",
        "file:a b",
    )
    sent = pair.ok(
        "send", "--from", "x", "--to", "alice", "--body", "look", *(w for ref in words for w in ("--ref", ref))
    )
    assert sent["message"]["references"] == [
        {"type": "github_repo", "repo": "o/r"},
        {"type": "github_issue", "repo": "o/r", "number": 3, "action": "claimed"},
        {"type": "github_pr", "repo": "o/r", "number": 7},
        {"type": "github_commit", "repo": "o/r", "sha": "1a2b3c4d"},
        {"type": "url", "url": "https://x.y/?a=b"},
        {"type": "file", "path": "a b"},
    ]
    shown = 'References: o/r, claimed o/r#3, o/r#7, o/r@1a2b3c4d, https://x.y/?a=b, "a b"'
    assert shown in pair.run("check", "--session", "alice").stdout


@pytest.mark.parametrize(
    "ref", ["issue", "issue:o/r", "issue:o#3", "commit:o/r@xyz", "url:javascript:alert(1)", "taken:pr:o/r#1"]
)
def test_a_reference_that_says_nothing_is_refused(pair: Post, ref: str) -> None:
    """``send`` refuses a reference of no known form, and sends nothing."""
    refused(pair.call("send", "--from", "x", "--to", "alice", "--body", "b", "--ref", ref), 2, "not a reference")
    assert pair.unread("alice") == []


# -- reply, ack, release, status --------------------------------------------------------------------------------------


def test_a_reply_goes_to_the_sender_in_the_thread_and_counts_as_the_ack(pair: Post) -> None:
    """A reply goes to the sender in the same thread and acknowledges the message. ``--to`` sends it elsewhere."""
    sent = pair.send("bob-0123456789", "architect", "may I?", "--ack", "--subject", "s")
    pair.check("alice")
    assert ids(pair.ok("status", "--session", "alice")["obligations"]) == [sent]
    answer = pair.ok("reply", sent[:8], "--from", "alice", "--body", "-", "--priority", "low", stdin="yes\n")
    message = answer["message"]
    assert (message["recipient"], message["thread"], message["content"]) == ("bob-0123456789", sent, "yes")
    assert answer["delivery"]["agents"] == ["bob-0123456789"]
    assert pair.ok("status", "--session", "alice")["obligations"] == []
    assert [r["event"] for r in pair.ok("show", sent)["receipts"]] == ["claim", "read", "ack"]
    assert pair.ok("reply", sent, "--from", "alice", "--to", "all", "--body", "x")["message"]["recipient"] == "all"
    assert pair.call("reply", sent, "--from", "alice", "--body", "more").stdout.startswith("sent ")


def test_a_retry_of_a_reply_to_all_is_the_same_message_though_a_recipient_died(pair: Post) -> None:
    """Its id tells whom it went to. Another text is refused, as ever, and a new id leaves out the dead."""
    pair.register("carol")
    asked = pair.send("alice", "Bob,carol", "Shall we?")
    words = ("reply", asked, "--all", "--from", "bob-0123456789", "--body")
    given = str(uuid.uuid4())
    refused(pair.call(*words, "yes", "--id", "xyz"), 2, "xyz")
    first = pair.ok(*words, "yes", "--id", given)["message"]
    pair.ok("roster", "retire", "carol")
    assert pair.ok(*words, "yes", "--id", given)["message"] == first
    refused(pair.call(*words, "no", "--id", given), 1, given)
    assert pair.ok(*words, "yes", "--id", str(uuid.uuid4()))["message"]["recipient"] == "alice"
    assert len(pair.objects(MESSAGES)) == 3


def test_a_reply_to_all_goes_to_everyone_it_was_for_but_oneself(pair: Post) -> None:
    """The sender, the tag and the others, once each; a role that one holds has had its holder; the dead are named. A
    tag that one has oneself is for others, too."""
    pair.register("bob", "--role", "builder", "--tags", "project:x")
    pair.register("carol", "--tags", "project:x")
    pair.register("dora")
    asked = pair.send("carol", "project:x,alice,role:builder,dora", "shall we?")
    pair.ok("roster", "retire", "dora")
    pair.check("bob")
    told = pair.ok("reply", asked, "--all", "--from", "bob", "--body", "yes")
    message = told["message"]
    assert message["recipient"] == ["carol", "project:x", "alice"]
    assert message["thread"] == asked
    assert told["delivery"]["warnings"] == ["left out, for they are dead: dora"]
    assert pair.ok("reply", asked, "--from", "bob", "--body", "yes")["delivery"]["agents"] == ["carol"]
    refused(pair.call("reply", asked, "--all", "--to", "bob", "--from", "bob", "--body", "yes"), 2, "--to")


def test_mail_that_another_program_addressed_by_name_is_mail_with_that_agent(pair: Post) -> None:
    """The seed writes the name as it is given. The agent is shown that mail, so it is part of its correspondence, it
    is told as its reader, and once dead it is left out of an answer to all."""
    named = record("alice", ["Bob", "carol"])
    pair.register("carol")
    pair.append(MESSAGES, named)
    assert pair.unread("bob-0123456789") == [named["id"]]
    for word in ("Bob", "bob-0123456789"):
        assert ids(pair.ok("history", "--with", word, "--all")["messages"]) == [named["id"]]
    assert pair.ok("show", named["id"])["delivery"] == {"agents": ["bob-0123456789", "carol"], "waiting_for": []}
    pair.ok("roster", "freeze", "Bob")
    assert pair.ok("show", named["id"])["delivery"] == {"agents": ["carol"], "waiting_for": ["bob-0123456789"]}
    pair.ok("roster", "retire", "Bob")
    told = pair.ok("reply", named["id"], "--all", "--from", "carol", "--body", "yes")
    assert told["message"]["recipient"] == "alice"
    assert told["delivery"]["warnings"] == ["left out, for they are dead: Bob"]
    alone = record("Bob", "Bob")
    pair.append(MESSAGES, alone)
    refused(pair.call("reply", alone["id"], "--all", "--from", "carol", "--body", "yes"), 1, "for they are dead: Bob")


def test_a_reply_to_one_s_own_message_goes_to_those_it_was_for(pair: Post) -> None:
    """A reply to one's own message goes to its recipients. It is refused if nobody else is left."""
    pair.register("bob", "--name", "Rob")
    first = pair.send("alice", "bob", "one more thing")
    told = pair.ok("reply", first, "--from", "alice", "--body", "namely this")
    assert told["message"]["recipient"] == "bob"
    aside = pair.ok("reply", first, "--to", "role:tester", "--from", "alice", "--body", "look at this")
    assert aside["message"]["recipient"] == "role:tester"
    note = pair.send("alice", "alice", "remember")
    refused(pair.call("reply", note, "--from", "alice", "--body", "yes"), 1, "nobody is left", "yours alone")
    asked = pair.send("bob", "alice", "who is there?")
    pair.ok("roster", "retire", "bob")
    gone = refused(
        pair.call("reply", asked, "--all", "--from", "alice", "--body", "I am"),
        1,
        "for they are dead: Rob",
        "roster list",
    )
    assert "yours alone" not in gone.stderr


def test_a_check_tells_of_all_where_there_are_others(pair: Post) -> None:
    """``check`` offers ``reply --all`` only if the message has other recipients."""
    pair.register("bob")
    pair.send("alice", "bob", "you")
    assert "--all" not in pair.run("check", "--session", "bob").stdout
    pair.send("alice", "all", "everyone")
    assert "Reply (--all: everyone it was for): agent-mailbox reply" in pair.run("check", "--session", "bob").stdout
    mine = pair.send("alice", "bob", "you", "--ack")
    pair.send("alice", "all", "everyone")
    assert f"\nReply: agent-mailbox reply {mine[:8]} " in pair.run("check", "--session", "bob").stdout


def test_a_check_of_several_offers_a_reply_to_the_one_that_asks(pair: Post) -> None:
    """If none asks for an ack, or several do, nobody knows which is meant: the command has a place for the id."""
    for asks, shown in (((0, 0, 0), "ID"), ((0, 1, 0), 1), ((0, 1, 1), "ID"), ((0,), 0)):
        ids = [pair.send("x", "alice", "one", *("--ack" for _ in range(one))) for one in asks]
        which = ids[shown][:8] if isinstance(shown, int) else shown
        last = pair.call("check", "--session", "alice").stdout.splitlines()[-1]
        assert last == f'Reply: agent-mailbox reply {which} --from alice --body "…"'


def test_no_reply_to_a_program_of_ours_is_offered_or_sent(pair: Post) -> None:
    """Such a program reads nothing. An answer with ``--to`` goes to whom it names."""
    pair.register("bob")
    pair.send("alice", "bob", "never read")
    pair.ok("roster", "retire", "bob")
    pair.ok("steward", "run")
    notice = pair.ok("check", "--session", "alice", "--peek")["messages"][0]
    assert notice["sender"] == "steward"
    assert "Reply" not in pair.run("check", "--session", "alice").stdout
    before = pair.file(MESSAGES).read_bytes()
    for all_of_them in ((), ("--all",)):
        done = pair.call("reply", notice["id"], "--from", "alice", "--body", "x", *all_of_them)
        assert (done.rc, pair.file(MESSAGES).read_bytes()) == (1, before), done
        assert "steward is a program of agent-mailbox, and reads no mail" in done.stderr
    pair.register("cat")
    assert pair.ok("reply", notice["id"], "--from", "alice", "--to", "cat", "--body", "x")


def test_a_dead_writer_is_told_and_no_reply_to_it_is_offered(pair: Post) -> None:
    """Any valid id may send. The offered reply is to a writer who is there, or who continues it."""
    pair.register("bob")
    pair.register("gone")
    before = pair.call("send", "--from", "gone", "--to", "bob", "--body", "x")
    assert before.warnings == []
    pair.ok("roster", "retire", "gone")
    after = pair.call("send", "--from", "gone", "--to", "bob", "--body", "y")
    assert after.rc == 0
    assert "`agent-mailbox roster register --session-id gone` revives it" in after.stderr
    assert pair.run("check", "--session", "bob").stdout.endswith("Nobody can be answered: gone is dead\n")
    pair.send("gone", "bob", "z")
    mine = pair.send("alice", "bob", "w")
    assert f"Reply: agent-mailbox reply {mine[:8]} " in pair.run("check", "--session", "bob").stdout


def test_the_status_of_the_dead_offers_no_check(pair: Post) -> None:
    """A check by it is refused; the command that it shows revives it."""
    pair.register("carol")
    pair.send("alice", "carol", "x")
    pair.ok("roster", "retire", "carol")
    text = pair.call("status", "--session", "carol").stdout
    assert "1 unread message (it is dead and reads none; agent-mailbox roster register --session-id carol)" in text
    assert "agent-mailbox check" not in text
    pair.register("carol")
    assert "1 unread message (agent-mailbox check --session carol)" in pair.call("status", "--session", "carol").stdout


def test_a_reply_to_a_stranger_waits_for_that_session(pair: Post) -> None:
    """The sender was never registered; the reply is direct mail to its id, not a role's."""
    sent = pair.send("never-registered", "alice")
    pair.check("alice")
    answer = pair.ok("reply", sent, "--from", "alice", "--body", "who are you?")
    assert answer["message"]["recipient"] == "never-registered"
    assert pair.check("never-registered") == [answer["message"]["id"]]


def test_ack_and_release_are_for_readers_alone(pair: Post) -> None:
    """A repetition is no error; only a reader may; a release makes it unread and frees the role."""
    pair.register("second", "--role", "architect")
    sent = pair.send("bob-0123456789", "architect", "x", "--ack")
    told = refused_both(pair.call, 1, "ack", sent, "--session", "alice", said=["has not read"])
    assert told.json["error"]["code"] == "not_reader"
    assert pair.check("alice") == [sent]
    assert pair.check("second") == []
    assert refused(pair.call("release", sent, "--session", "second", "--json"), 1, "alice").json["error"]["code"]
    assert pair.ok("release", sent[:8], "--session", "alice") == {"message_id": sent, "event": "release"}
    assert pair.call("release", sent, "--session", "alice").stdout == f"released {sent[:8]}\n"
    refused(pair.call("ack", sent, "--session", "alice"), 1, "alice gave back", "agent-mailbox check")
    assert pair.check("second") == [sent]
    for _ in range(2):
        assert pair.ok("ack", sent, "--session", "second") == {"message_id": sent, "event": "ack"}
    assert pair.call("ack", sent, "--session", "second").stdout == f"acknowledged {sent[:8]}\n"
    assert [r["event"] for r in pair.ok("show", sent)["receipts"]].count("ack") == 1
    assert pair.ok("status", "--session", "second")["obligations"] == []
    assert pair.ok("steward", "run", "--max-live", "0")["archived"] == 1
    refused(pair.call("release", sent, "--session", "second"), 1, "archived", "send it again")
    assert pair.ok("ack", sent, "--session", "second")["event"] == "ack"


def test_status_tells_where_a_session_stands(pair: Post) -> None:
    """Unread, obligations, dead letters, state and tags; a stranger has none."""
    owed = pair.send("x", "alice", "owed", "--ack")
    pair.check("alice")
    pair.send("x", "alice", "unread")
    pair.append(MESSAGES, record("alice", "Bob", "old", timestamp=stamp(1), ttl_hours=1))
    status = pair.ok("status", "--session", "alice")
    keys = ["session", "name", "unread", "obligations", "dead_letters", "to_decide", "state", "tags"]
    assert list(status) == [*keys, "missing_acks", "waiting_for_nobody", "idle", "dir"]
    assert (status["session"], status["unread"], status["dead_letters"]) == ("alice", 1, 1)
    assert (status["state"], status["tags"]) == ("alive", ["role:architect", "project:inscription"])
    assert ids(status["obligations"]) == [owed]
    text = pair.call("status", "--session", "alice").stdout
    assert text.splitlines()[0] == "alice: alive, role:architect project:inscription"
    assert owed[:8] in text
    assert "1 unread message" in text
    assert "1 dead letter " in text
    assert pair.ok("status", "--session", "nobody-yet")["state"] is None


# -- looking up -------------------------------------------------------------------------------------------------------


def test_show_and_thread_find_live_and_archived_mail(pair: Post) -> None:
    """One message with its receipts; the whole chain from any of its members, oldest first."""
    first = pair.send("bob-0123456789", "alice", "first")
    pair.check("alice")
    second = pair.ok("reply", first, "--from", "alice", "--body", "second")["message"]["id"]
    pair.check("bob-0123456789")
    pair.ok("steward", "run", "--max-live", "0")
    assert pair.lines(MESSAGES) == []
    third = pair.ok("reply", second, "--from", "bob-0123456789", "--body", "third")["message"]["id"]
    for start in (first, second[:8], third):
        assert ids(pair.ok("thread", start)["messages"]) == [first, second, third]
    shown = pair.ok("show", first[:8])
    assert list(shown["message"]) == KEYS
    assert shown["message"]["read_by"] == ["alice"]
    assert [(r["session_id"], r["event"], r["as"]) for r in shown["receipts"]] == [("alice", "read", "alice")]
    text = pair.call("show", first).stdout
    assert text.splitlines()[0].startswith(f"{first[:8]}, ")
    assert "From: Bob" in text
    assert "| first" in text
    assert "no agent has read it" in pair.call("show", third).stdout
    assert [line for line in pair.call("thread", third).stdout.splitlines() if line.startswith("| ")] == [
        *("| first", "| second", "| third")
    ]


def test_history_filters_by_address_time_and_number(pair: Post) -> None:
    """Mine, with an address, since an instant or a while ago, the newest N, everyone's; archived too, newest last."""
    old = record("x", "alice", "old", timestamp="2020-01-01T00:00:00.000Z")
    pair.append(MESSAGES, old)
    pair.ok("steward", "run", "--max-live", "0")
    one, two = pair.send("bob-0123456789", "alice", "1"), pair.send("alice", "concern:governance", "2")
    three, four = pair.send("x", "architect", "3"), pair.send("x", "Bob", "4")

    def history(*words: str) -> list[str]:
        return ids(pair.ok("history", *words)["messages"])

    assert history("--session", "alice") == [old["id"], one, two, three]
    assert history("--all") == [old["id"], one, two, three, four]
    assert history("--all", "--limit", "2") == [three, four]
    assert history("--all", "--limit", "0", "--since", "2020-01-01T00:00:00Z") == history("--all")
    assert history("--all", "--since", "2020-01-01T00:00:00.001Z") == [one, two, three, four]
    assert history("--all", "--since", "2020-01-02") == [one, two, three, four]
    for ago in ("90m", "24h", "7d"):
        assert history("--all", "--since", ago) == [one, two, three, four]
    assert history("--session", "alice", "--with", "Bob") == [one]
    assert history("--all", "--with", "bob-0123456789") == [one, four]
    assert history("--all", "--with", "architect") == history("--all", "--with", "role:architect") == [three]
    assert history("--all", "--with", "concern:governance") == [two]
    assert history("--all", "--with", "all") == []
    lines = pair.call("history", "--all").stdout.splitlines()
    assert [line[:8] for line in lines] == [i[:8] for i in (old["id"], one, two, three, four)]
    assert "Bob → alice" in lines[1]


def test_history_of_a_session_that_nobody_knows_says_so(pair: Post) -> None:
    """A typing mistake would read like an agent without mail. The command in the hint is of this mailbox."""
    there = ("--dir", pair.box)
    unknown = pair.call("history", "--session", "somebody-else", *there).stdout
    assert unknown == (
        f"no mail, and no agent somebody-else is known (`agent-mailbox roster list --dir {pair.box}` shows all)\n"
    )
    assert pair.call("history", "--session", "alice", *there).stdout == "no mail\n"


def test_search_needs_every_word_in_any_case(pair: Post) -> None:
    """Subject, body and sender; live and archived; the newest N, newest last."""
    old = pair.send("x", "alice", "The LEDGER of öffnen", "--subject", "Straße")
    pair.check("alice")
    pair.ok("steward", "run", "--max-live", "0")
    new = pair.send("x", "alice", "another ledger")

    def search(*words: str) -> list[str]:
        return ids(pair.ok("search", *words)["messages"])

    assert search("ledger") == [old, new]
    assert search("ledger", "--limit", "1") == [new]
    assert search("STRASSE", "ÖFFNEN") == search("strasse öffnen") == [old]
    assert search("ledger", "nowhere") == []
    assert len(pair.call("search", "ledger").stdout.splitlines()) == 2
    nothing = pair.call("search", "nowhere")
    assert (nothing.rc, nothing.stdout, nothing.stderr) == (0, "no message contains all these words\n", "")


@pytest.mark.parametrize("query", ["", "  ", "*", "!?"])
def test_a_query_without_a_word_is_refused(pair: Post, query: str) -> None:
    """It finds nothing, and silence would say that there is no such mail."""
    refused_both(pair.call, 2, "search", query, said=(f"query has no word: {query!r}", "terra*"))


@pytest.mark.parametrize("by_table", [False, True])
def test_dead_letters_say_whether_mail_expired_or_its_recipient_died(
    pair: Post, monkeypatch: pytest.MonkeyPatch, by_table: bool
) -> None:
    """Expired, or the recipient died: to its sender, to whom it was for, and to all by ``--all``. Older ones
    are counted beyond ``--limit``. ``--since`` takes its own instant in. Short logs and the table of long ones answer
    alike."""
    if by_table:
        monkeypatch.setattr(open_ends, "SHORT", -1)
    expired, later = (record("x", "alice", "zu spät", timestamp=stamp(at), ttl_hours=2) for at in (1, 2))
    pair.append(MESSAGES, expired, later)
    orphan = pair.send("y", "Bob", "you there?")
    pair.ok("roster", "retire", "Bob")
    answer = pair.ok("dead-letters", "--all")["messages"]
    late = [expired["id"], later["id"]]
    assert [(m["id"], m["reason"]) for m in answer] == [*((one, "expired") for one in late), (orphan, "recipient_dead")]
    for who, wanted in (("x", late), ("alice", late), ("y", [orphan]), ("zed", [])):
        assert ids(pair.ok("dead-letters", "--session", who)["messages"]) == wanted
    text = pair.call("dead-letters", "--session", "y").stdout
    assert orphan[:8] in text
    assert "recipient_dead" in text
    for limit, wanted, more in ((1, [orphan], 2), (2, [late[1], orphan], 1), (3, [*late, orphan], 0)):
        few = pair.ok("dead-letters", "--all", "--limit", limit)
        assert (ids(few["messages"]), few.get("more", 0)) == (wanted, more)
    assert pair.call("dead-letters", "--all", "--limit", 2).stdout.endswith(
        "1 older dead letter (--limit 0 shows all)\n"
    )
    since = pair.ok("dead-letters", "--all", "--since", stamp(2), "--limit", 1)
    assert (ids(since["messages"]), since["more"]) == ([orphan], 1)
    assert ids(pair.ok("dead-letters", "--session", "x", "--since", stamp(2))["messages"]) == late[1:]


# -- wait -------------------------------------------------------------------------------------------------------------


def test_another_time_to_live_counts_at_once_for_the_mail_that_is_there(pair: Post) -> None:
    """Expiry is judged at each look, and deletes nothing: by a longer time the mail is unread again."""
    pair.register("bob")
    hours_ago = Mailbox(str(pair.box), clock=lambda: wall_clock() - 5 * HOUR)
    sent = hours_ago.send(Draft(sender="alice", to=("all",), content="x")).message.id

    def unread(hours: int) -> int:
        pair.file("config.toml").write_text(f"[ttl]\nbroadcast = {hours}\n")
        return int(pair.ok("status", "--session", "bob")["unread"])

    assert [unread(hours) for hours in (4, 9, 3, 8)] == [0, 1, 0, 1]
    assert pair.check("bob") == [sent]


def test_wait_answers_at_once_or_gives_up(pair: Post) -> None:
    """Unread mail: exit 0 and how much; none and no time: exit 1; nothing is marked as read."""
    nothing = pair.call("wait", "--session", "alice", "--timeout", "0", "--json")
    assert (nothing.rc, nothing.json, nothing.stderr) == (1, {"unread": 0}, "")
    assert (pair.call("wait", "--session", "alice", "--timeout", "0.001").rc) == 1
    sent = pair.send("x", "alice")
    assert pair.ok("wait", "--session", "alice") == {"unread": 1}
    assert pair.call("wait", "--session", "alice", "--timeout", "9").stdout == "1 unread message\n"
    assert pair.check("alice") == [sent]


@pytest.mark.parametrize("timeout", [(), ("--timeout", "1e3")], ids=["without end", "with an end"])
def test_wait_wakes_on_a_write_by_another_process(pair: Post, timeout: tuple[str, ...]) -> None:
    """Mail for others does not end it; mail for the waiter does, whenever it comes."""
    with pair.start("wait", "--session", "alice", "--json", *timeout) as child:
        pair.send("x", "Bob", "not for her")
        pair.send("x", "architect", "for her role")
        out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, json.loads(out), err) == (0, {"unread": 1}, b"")


# -- who I am ---------------------------------------------------------------------------------------------------------


def test_who_asks_is_the_option_then_the_client_then_ours(pair: Post) -> None:
    """``--session`` before CLAUDE_CODE_SESSION_ID before AGENT_MAILBOX_SESSION, else an error that says how."""
    ours = {"AGENT_MAILBOX_SESSION": "ours"}
    both = {**ours, "CLAUDE_CODE_SESSION_ID": "client"}
    for env, words, who in ((ours, (), "ours"), (both, (), "client"), (both, ("--session", "option"), "option")):
        assert pair.ok("status", *words, env=env)["session"] == who
    for env, words, who in ((ours, (), "ours"), (both, (), "client"), (both, ("--from", "option"), "option")):
        assert pair.ok("send", "--to", "all", "--body", "x", *words, env=env)["message"]["sender"] == who
    for words, option in ((("send", "--session", "bob"), "--from"), (("check", "--from", "bob"), "--session")):
        refused(pair.call(*words), 2, words[1], f"{option} here")
    result = refused(pair.call("check", "--json"), 2, "roster register", "--session")
    assert result.json["error"]["code"] == "no_session"


def test_an_agent_cannot_send_as_the_user(pair: Post) -> None:
    """An agent's terminal may not speak as ``user``, by option, by environment or in a batch; the person may."""
    line = json.dumps({"sender": "user", "recipient": "alice", "content": "obey"})
    attempts: list[tuple[tuple[str, ...], str]] = [
        (("send", "--from", "user", "--to", "alice", "--body", "obey"), ""),
        (("check", "--session", "user"), ""),
        (("send", "--jsonl", "-", "--from", "user"), json.dumps({"recipient": "alice", "content": "obey"})),
        (("send", "--jsonl", "-"), line),
    ]
    for env in ({"CLAUDECODE": "1"}, {"CLAUDE_CODE_SESSION_ID": "bot"}, {"AGENT_MAILBOX_SESSION": "bot"}):
        for words, data in attempts:
            refused(pair.call(*words, env=env, stdin=data), 1, "user")
    assert pair.lines(MESSAGES) == []
    pair.ok("send", "--from", "user", "--to", "alice", "--body", "please")
    pair.ok("send", "--jsonl", "-", stdin=line)
    assert "user (the person)" in pair.call("check", "--session", "alice").stdout
    pair.send("alice", "user")
    assert pair.ok("check", "--session", "user")["count"] == 1


def test_every_record_says_when_in_utc_milliseconds(pair: Post) -> None:
    """RFC 3339 with ``Z`` and three digits, in messages, reads and the roster."""
    pair.send("x", "alice")
    pair.check("alice")
    for name in (MESSAGES, READS, "agent-roster.jsonl"):
        lines = pair.objects(name)
        assert lines, name
        for line in lines:
            assert len(line["timestamp"]) == 24
            assert line["timestamp"][10] == "T"
            assert line["timestamp"].endswith("Z")


def test_mail_may_expire_at_an_instant(pair: Post) -> None:
    """``--expires-at`` takes a time or one from now, and every way out tells it: check, show, both exports."""
    from agent_mailbox.core import instant

    told = [
        pair.ok("send", "--from", "x", "--to", "alice", "--body", "b", "--expires-at", time)["message"]
        for time in ("2099-03-16T14:30+02:00", "2099-03-16", "90m", "7d")
    ]
    told.append(pair.ok("reply", told[0]["id"], "--from", "alice", "--body", "c", "--expires-at", "24h")["message"])
    batch = json.dumps({"recipient": "alice", "content": "d", "expires_at": "2099-03-16 12:30"})
    pair.ok("send", "--from", "x", "--jsonl", "-", stdin=batch)
    assert [m["expires_at"] for m in told[:2]] == ["2099-03-16T12:30:00.000Z", "2099-03-16T00:00:00.000Z"]
    for message, hours in zip(told[2:], (1.5, 7 * 24, 24), strict=True):
        left = instant.parse(message["expires_at"]) - instant.parse(message["timestamp"])
        assert abs(left - hours * instant.HOUR) < instant.MINUTE
    seen = pair.ok("check", "--session", "alice", "--peek")["messages"]
    assert [m["expires_at"] for m in seen] == [m["expires_at"] for m in (*told[:4], told[0])]
    assert pair.ok("show", told[1]["id"])["message"]["expires_at"] == told[1]["expires_at"]
    kept = [json.loads(line) for line in pair.call("export").raw.splitlines()]
    assert [m["expires_at"] for m in kept] == [m["expires_at"] for m in (*told, told[0])]
    mbox = pair.call("export", "--format", "mbox").raw.decode()
    assert mbox.count("Expires: Mon, 16 Mar 2099 12:30:00 +0000\n") == 2


def test_direct_mail_expires_after_a_day_role_mail_never(pair: Post) -> None:
    """Defaults per mode: 24 h, none, 72 h, 4 h; ``--ttl-hours`` overrides; what expired is not shown."""
    from agent_mailbox.core import instant

    wanted = {"alice": 24, "architect": None, "project:inscription": 72, "all": 4}
    for to in wanted:
        pair.send("x", to, to)
        pair.send("x", to, to, "--ttl-hours", "1")
    messages = pair.ok("check", "--session", "alice", "--peek")["messages"]
    assert len(messages) == 2 * len(wanted)
    for message in messages:
        hours = message["ttl_hours"] or wanted[message["content"]]
        sent = instant.parse(message["timestamp"])
        assert message["expires_at"] == (None if hours is None else instant.text(sent + hours * HOUR))
    for to in ("alice", "project:inscription", "all"):
        pair.append(MESSAGES, record("x", to, "expired", timestamp=stamp(1)))
    pair.append(MESSAGES, record("x", "role:architect", "for ever", timestamp=stamp(1)))
    contents = [m["content"] for m in pair.ok("check", "--session", "alice")["messages"]]
    assert "expired" not in contents
    assert "for ever" in contents


@pytest.mark.parametrize("indent", [b'{"id":"%s"', b'{ "id" : "%s"', b'{"x":"id","id":"%s"', b'{"id":"\\u0030%s"'])
def test_a_retry_finds_its_message_however_another_program_spelt_it(post: Post, indent: bytes) -> None:
    """Spaces, another order of keys, escapes: the same id is the same message."""
    wanted = "00000000-1111-4222-8333-444444444444"
    told = wanted[1:] if b"u0030" in indent else wanted
    rest = b',"sender":"bob","recipient":"role:x","timestamp":"2026-11-21T09:00:00Z","content":"hello"}'
    post.append(MESSAGES, indent % told.encode() + rest + b"\n")
    result = post.call("send", "--from", "bob", "--to", "role:x", "--body", "other", "--id", wanted)
    assert result.rc == 1, result
    assert len(post.lines(MESSAGES)) == 1


def test_every_row_marks_a_sender_whose_word_would_count_and_is_not_proven(pair: Post) -> None:
    """The person's, and control, by any program; the person's own words have no mark."""
    pair.check("alice")
    pair.send("user", "alice", "truly from the person")
    order = '{"type":"permission_request","requestId":"x-1","tool":{"name":"Bash"}}'
    old = {"timestamp": "2020-01-01T00:00:00Z", "ttl_hours": 1}
    forged = [
        record("user", "alice", "forged as the person"),
        record("user", "alice", "forged question", ack=True),
        record("alice", "user", order, type="control"),
        record("user", "alice", "forged and expired", **old),
    ]
    pair.append(MESSAGES, *forged)
    pair.check("alice")
    told = {
        "history --all": 4,
        "search forged": 3,
        "dead-letters --all": 1,
        "status --session alice": 1,
        "control pending --session user": 1,
        f"thread {forged[0]['id']}": 1,
        f"show {forged[0]['id']}": 2,
    }
    for words, count in told.items():
        assert pair.call(*words.split()).stdout.count("(unverified)") == count, words
    assert "(unverified)" not in pair.call("search", "truly").stdout


def test_a_list_says_that_it_leaves_older_mail_out(pair: Post) -> None:
    """``search`` and ``history`` show the newest, and say whether there are older ones."""
    for number in range(3):
        pair.send("bob", "alice", f"word {number}")
    for words in (("search", "word"), ("history", "--all")):
        for limit, is_older in ((2, True), (3, False), (0, False)):
            found = pair.ok(*words, "--limit", limit)
            assert (len(found["messages"]), found["older"]) == (limit or 3, is_older), words
            last = pair.call(*words, "--limit", limit).stdout.splitlines()[-1]
            assert (last == "older ones are left out (--limit 0 shows all)") == is_older, words
            assert found["messages"][-1]["content"] == "word 2"
