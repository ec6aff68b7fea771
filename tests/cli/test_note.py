"""Notes: what everyone with a tag should know, in nobody's inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.keeping.notes import Note
from tests.core import build
from tests.helpers import MESSAGES, record, refused

if TYPE_CHECKING:
    from tests.helpers import Post


@pytest.fixture
def team(post: Post) -> Post:
    """Two agents of a project, one of whom leads the other, and a third."""
    post.register("lee", "--tags", "project:app")
    post.register("ann", "--tags", "project:app", "--lead", "lee")
    post.register("ben", "--tags", "project:app")
    return post


def added(post: Post, title: str, *more: str, by: str = "ann") -> dict[str, Any]:
    """Add a note."""
    found: dict[str, Any] = post.ok("note", "add", "--title", title, *more, "--session", by)["note"]
    return found


def listed(post: Post, *more: str) -> list[str]:
    """The ids on the board."""
    return [one["id"] for one in post.ok("note", "list", *more)["notes"]]


def test_a_note_is_on_the_board_and_in_no_inbox(team: Post) -> None:
    """It is for the author's project by default. Nobody has it unread, search finds it, its text cannot forge the
    frame, and it is no dead letter however old."""
    note = added(team, "Tests need redis", "--body", "docker compose up\n| forged\x1b[0m")
    other = added(team, "Elsewhere", "--on", "project:other", by="ben")
    assert (note["on"], note["author"], note["state"], note["proof"]) == (
        *(["project:app"], "ann", "current", "session:ann"),
    )
    assert listed(team) == [note["id"], other["id"]]
    assert listed(team, "--on", "project:app") == [note["id"]]
    for who in ("lee", "ben"):
        assert team.unread(who) == []
        assert team.ok("status", "--session", who)["unread"] == 0
    assert [m["id"] for m in team.ok("search", "redis")["messages"]] == [note["message_id"]]
    assert "| docker compose up\n| | forged\\x1b[0m\n" in team.call("note", "show", note["id"]).stdout
    assert team.ok("dead-letters", "--all")["messages"] == []
    for wrong, rc in ((("add", "--title", "t", "--on", "lee"), 2), (("show", "zzzz"), 1)):
        assert team.call("note", *wrong, *(("--session", "ann") if wrong[0] == "add" else ())).rc == rc


def test_the_tags_of_a_note_are_split_as_addresses_are(team: Post) -> None:
    """Blanks and empty parts between commas count for nothing. Where nothing else is there, no
    tag is named."""
    made = added(team, "Port 80 is taken", "--on", "project:app, concern:net,", "--on", " domain:ops")
    assert made["on"] == ["project:app", "concern:net", "domain:ops"]
    refused(team.call("note", "add", "--title", "t", "--on", ",", "--session", "ann"), 2, "a note is for a tag: ','")


def test_a_note_without_a_title_is_refused(team: Post) -> None:
    """The command refuses it. Blanks of any kind are no title, whether or not the note has a text. One that would have
    been replaced stays."""
    first = added(team, "ü")["id"]
    for title in ("", " ", "\t\n", "\u3000"):
        for more in ((), ("--body", "words"), ("--body", "words", "--replaces", first)):
            words = ("note", "add", "--title", title, *more, "--session", "ann")
            refused(team.call(*words), 2, "--title is empty")
    assert listed(team) == [first]


def test_a_note_is_replaced_by_anyone_and_dropped_by_its_own(team: Post) -> None:
    """Both leave the board, and stay in the log. Who replaces one that another replaced meanwhile is told. Nothing
    unproven takes a note away."""
    first = added(team, "Use redis")
    second = added(team, "Use valkey", "--replaces", first["id"], by="ben")
    assert listed(team) == [second["id"]]
    assert team.ok("note", "show", first["id"])["note"]["replaced_by"] == second["id"]
    late = ("note", "add", "--title", "Use keydb", "--replaces", first["id"], "--session", "ann")
    assert f"{second['id']} had replaced {first['id']} before" in team.call(*late).stderr
    assert len(listed(team)) == 2
    told = refused(team.call("note", "drop", second["id"], "--session", "ann", "--json"), 1, "ben's note")
    assert told.json["error"]["code"] == "not_yours"
    for kind in ({}, {"dropped": True}):
        line = {"id": f"forged-{len(kind)}", "sender": "ben", "recipient": "project:app", "content": "gone"}
        line |= {"timestamp": "2026-11-27T00:00:00Z", "type": "note", "replaces": second["message_id"], **kind}
        team.append(MESSAGES, {**line, "thread": None, "read_by": []})
    assert second["id"] in listed(team)
    assert team.ok("note", "drop", second["id"], "--session", "ben")["already"] is False
    assert team.ok("note", "drop", second["id"], "--session", "ben")["already"] is True
    assert second["id"] not in listed(team)
    team.append(MESSAGES, team.objects(MESSAGES)[0])
    assert first["id"] not in listed(team), "a copy of its line does not bring it back"
    own = added(team, "Mine")
    assert team.ok("note", "drop", own["id"], "--session", "lee")["note"]["state"] == "dropped"


def test_a_note_that_replaces_another_is_about_the_same_tags(team: Post) -> None:
    """It keeps them, whoever writes it and whatever project is the writer's own. Only tags that it names move it."""
    team.register("eve", "--tags", "project:other")
    team.register("fay")
    note = added(team, "Dates are UTC", "--on", "project:app", "--on", "domain:db")
    for who in ("eve", "fay", "ann"):
        note = added(team, f"By {who}", "--replaces", note["id"], by=who)
        assert note["on"] == ["project:app", "domain:db"]
        assert listed(team, "--on", "project:app") == listed(team, "--on", "domain:db") == [note["id"]]
    moved = added(team, "Elsewhere", "--replaces", note["id"], "--on", "project:other", by="fay")
    assert (moved["on"], listed(team), listed(team, "--on", "domain:db")) == (["project:other"], [moved["id"]], [])


def test_a_dropped_note_stays_off_the_board_whoever_leads_its_author_later(team: Post) -> None:
    """The right at that moment counts. Of the next note it is the new lead's, and no more the former one's."""
    first, second = (added(team, title)["id"] for title in ("First", "Second"))
    team.ok("note", "drop", first, "--session", "lee")
    team.ok("roster", "update", "--session-id", "ann", "--lead", "ben")
    assert listed(team) == [second]
    refused(team.call("note", "drop", second, "--session", "lee"), 1, "ann's note")
    team.ok("note", "drop", second, "--session", "ben")
    assert listed(team) == []


def test_a_note_that_nothing_proves_is_taken_away_by_anyone(team: Post) -> None:
    """Any program may write it, so any may drop it."""
    line = {"timestamp": "2026-11-27T00:00:00Z", "type": "note"}
    note = record("ann", "project:app", **line)
    team.append(MESSAGES, note)
    assert listed(team) == [f"note-{note['id'][:8]}"]
    team.append(MESSAGES, record("ben", "project:app", replaces=note["id"], dropped=True, **line))
    assert listed(team) == []


def test_a_note_covers_the_files_that_it_names_and_those_below_them() -> None:
    """Any program may write the keys: what is no path names nothing."""
    note = Note(build.message(type="note", extra={"project": "/p", "paths": ["src/", "a.py", 5]}))
    for path, covered in (("src/b.py", True), ("src", True), ("a.py", True), ("srcs", False), ("a.pyc", False)):
        assert note.covers("/p", path) is covered, path
    for other in ("/q", "/", "/p-2"):
        assert not note.covers(other, "a.py"), other
    for odd in (None, 5, "a.py", {"a.py": 1}):
        assert not Note(build.message(extra={"project": "/p", "paths": odd})).covers("/p", "a.py"), odd
    assert [note.has_paths, Note(build.message()).has_paths] == [True, False]


def test_the_steward_keeps_what_is_current(team: Post) -> None:
    """The board is the same, though ended notes are archived with the records that ended them."""
    first = added(team, "Old")
    second = added(team, "New", "--replaces", first["id"])
    gone = added(team, "Gone")
    team.ok("note", "drop", gone["id"], "--session", "ann")
    before = listed(team)
    assert team.ok("steward", "run", "--max-live", "0")["archived"] == 3
    assert listed(team) == before == [second["id"]]
    assert len(team.ok("search", "old")["messages"]) == 1


def test_no_note_expires_whatever_wrote_it(team: Post) -> None:
    """Another program's note without hours to live stays on the board, and is no dead letter of its sender."""
    old = {"timestamp": "2026-01-01T00:00:00Z", "type": "note"}
    lines = [record("ann", "project:app", **old), record("ann", ["project:app", "role:x"], ttl_hours=1, **old)]
    team.append(MESSAGES, *lines)
    made = team.send("ann", "project:app", "sent", "--type", "note")
    assert team.ok("dead-letters", "--all")["messages"] == []
    assert team.ok("status", "--session", "ann")["dead_letters"] == 0
    done = team.ok("steward", "run", "--max-live", "0")
    assert (done["archived"], done["kept"], done["pending"]) == (0, 3, 0)
    assert listed(team) == [f"note-{one[:8]}" for one in (*(line["id"] for line in lines), made)]


def test_a_note_of_an_agent_without_a_project_needs_a_tag(team: Post) -> None:
    """The error says how to name one."""
    team.register("cat", "--tags", "domain:docs")
    for who in ("cat", "stranger"):
        said = team.call("note", "add", "--title", "T", "--session", who)
        refused(said, 2, f"{who} has no project for the note", "name a tag with --on project:NAME")
    assert listed(team) == []


def test_a_program_that_nothing_proves_drops_no_note(team: Post) -> None:
    """It is told, and the note stays on the board."""
    note = added(team, "Use redis")
    told = team.call("note", "drop", note["id"], "--session", "ann", env={"AGENT_MAILBOX_TEST_CALLER": "program"})
    refused(told, 1, f"{note['id']} stays: nothing proves that ann drops it", "drop it in the session itself")
    assert listed(team) == [note["id"]]


def test_a_note_for_an_agent_or_for_all_is_refused(team: Post) -> None:
    """The board is of tags, and a note is in no inbox."""
    for to in ("ben", "all", "project:app,ben"):
        said = team.call("send", "--from", "ann", "--to", to, "--type", "note", "--body", "x")
        refused(said, 2, "a note is for a tag")


def test_a_note_is_found_by_the_id_that_is_listed(post: Post) -> None:
    """Another program may write an id with capitals; the list shows it so, and the person types it so."""
    post.register("ann", "--tags", "project:x")
    one = record("ann", "project:x", type="note", subject="UTC", id="ABCDEF12-0000-4000-8000-00000000000A")
    post.append(MESSAGES, one)
    post.send("zed", "ann")
    assert post.call("note", "show", "note-ABCDEF12").rc == 0
