"""A stranger's teams: odd names, links, things that are no files, other bridges, deletion at every moment."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from agent_mailbox.core import naming
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.teams import writing
from agent_mailbox.teams.mirror import Mirror
from agent_mailbox.teams.outward import Outward
from agent_mailbox.teams.writing import LEASE, STALE, FileBeside, Undeliverable, WritingLock
from tests.helpers import READS, until
from tests.teams import client
from tests.teams.samples import native
from tests.teams.test_bridge import bridge
from tests.teams.test_import import passed_on, texts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.teams.conftest import Teams


@pytest.mark.parametrize("name", ["..", "../t", "../../.claude", "/etc", "t/inboxes", "t\0", "-x", "", " ", "n" * 5000])
def test_no_name_leads_out_of_the_teams_directory(teams: Teams, name: str) -> None:
    """Neither a team's nor a member's: there is none, and nothing is read or written. A blank one, where the command
    can do without, is a malformed argument."""
    teams.make("t", "ann")
    outside = teams.home / ".claude/config.json"
    outside.write_text(json.dumps({"members": [{"name": "x"}]}))
    (teams.home / ".claude/inboxes").mkdir()
    before = teams.native(), teams.snapshot()
    words = [("show", "--", name), ("inbox", "--", name), ("bridge", "--once", "--", name), ("export", "--", name)]
    for command in (*words, ("inbox", "--", "t", name)):
        result = teams.call("teams", *command)
        is_blank = "is empty" in result.stderr and not name.strip()
        assert (result.rc, "hint:" in result.stderr) == (2 if is_blank else 1, True), (command, result)
    assert (teams.native(), teams.snapshot()) == before


def test_what_is_no_file_stops_nobody(teams: Teams) -> None:
    """Directories, pipes, links in circles and to devices in the place of everything: told, and the rest goes on."""
    teams.make("good", "ann")
    teams.put("good", "ann", native("team-lead", "there", 1))
    for name in ("dir", "pipe", "loop", "zero"):
        (teams.root / name).mkdir()
    (teams.root / "dir/config.json").mkdir()
    (teams.root / "dir/inboxes").write_text("a file")
    os.mkfifo(teams.root / "pipe/config.json")
    (teams.root / "loop/config.json").symlink_to("config.json")
    (teams.root / "loop/inboxes").symlink_to("inboxes")
    (teams.root / "zero/config.json").symlink_to("/dev/zero")
    (teams.root / "file").write_text("no team")
    (teams.root / "gone").symlink_to("nowhere")
    result = teams.ok("teams", "import")
    assert {team["team"]: team["new"] for team in result["teams"]} == {"dir": 0, "good": 1, "pipe": 0, "zero": 0}
    assert texts(teams) == ["there"]
    for name in ("dir", "pipe", "zero"):
        teams.send("bob", f"team:{name}/ann", "WAITS")
        assert teams.ok("teams", "bridge", name, "--once") == {"team": name, "in": 0, "out": 0}
    assert teams.ok("teams", "list")
    assert teams.doctor() == []


@pytest.mark.parametrize("what", ["link", "directory", "pipe", "lock", "file", "huge"])
def test_an_inbox_that_cannot_be_written_is_said_and_left(
    teams: Teams, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link to elsewhere, no file at all, a lock that nobody can break: the mail waits, and nothing was changed."""
    teams.make("t", "ann")
    path, other = teams.box_of("t", "ann"), teams.scratch / "precious.json"
    other.write_text("[]")
    if what == "link":
        path.symlink_to(other)
    elif what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "file":
        shutil.rmtree(path.parent)
        path.parent.write_text("")
    elif what == "huge":
        monkeypatch.setattr(writing, "MAX_FILE", 1)
    else:
        teams.put("t", "ann")
        lock = path.with_name("ann.json.lock")
        lock.mkdir()
        (lock / "in use").touch()
        os.utime(lock, (1, 1))
    sent = teams.send("bob", "team:t/ann", "WAITS")
    result = teams.call("teams", "bridge", "t", "--once")
    assert result.rc == 0
    assert any("ann@t: 1 message waits: " in warning for warning in result.warnings), result
    assert teams.unread("ann@t") == [sent]
    assert other.read_text() == "[]"
    if path.parent.is_dir():
        assert not [p.name for p in path.parent.iterdir() if "agent-mailbox" in p.name]


def test_our_lock_is_stale_before_anyone_gives_up_and_others_count_by_their_time(
    teams: Teams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It excludes while it is held; left behind, a client's next try has it; nobody else's fresh lock is touched."""
    teams.make("t", "ann")
    path = str(teams.put("t", "ann"))
    with monkeypatch.context() as longer:
        longer.setattr(writing, "LEASE", STALE * 0.9)  # on a busy machine a look takes its time
        with WritingLock(path, path + ".x") as lock:
            assert lock.is_held()
            age = time.time() - os.stat(lock.path).st_mtime
            assert STALE * 0.1 <= age < STALE
            assert not os.path.exists(path + ".x")
    assert not os.path.exists(lock.path)
    left = WritingLock(path, path + ".x").__enter__()
    with client.Locked(path):  # the client's own tries, and its ten seconds
        assert not left.is_held()
        with pytest.raises(Undeliverable, match="others are writing"):
            WritingLock(path, path + ".x").__enter__()
        assert not os.path.exists(path + ".x")
    assert sum(client.PAUSES) > LEASE


def test_without_a_rename_that_spares_what_is_there_the_lock_is_made_and_aged(
    teams: Teams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old systems, and file systems that have none."""
    monkeypatch.setattr(writing, "_RENAME_NOREPLACE", 1 << 20)  # EINVAL
    monkeypatch.setattr(writing, "_RENAME_EXCL", 1 << 20)
    teams.make("t", "ann")
    path = str(teams.put("t", "ann"))
    with WritingLock(path, path + ".x") as lock:
        assert lock.is_held()
        assert time.time() - os.stat(lock.path).st_mtime >= STALE - LEASE
        os.mkdir(path + ".other")
        with pytest.raises(FileExistsError):
            writing.rename_new(path + ".other", lock.path)
        os.rmdir(path + ".other")
        assert lock.is_held()
    assert [p.name for p in teams.box_of("t", "ann").parent.iterdir()] == ["ann.json"]


def test_two_mailboxes_bridge_one_team_and_echo_nothing(teams: Teams, tmp_path: Path) -> None:
    """Each brings its own mail once; neither takes the other's for the team's, nor clears away the other's files."""
    teams.make("t", "ann")
    teams.put("t", "ann")
    second = tmp_path / "second"
    teams.ok("init", second)
    bridges = [teams.start("teams", "bridge", "t", "--interval", "0.01", "--dir", d) for d in (teams.box, second)]
    with bridges[0], bridges[1]:
        for number in range(20):
            teams.send("bob", "team:t/ann", f"first {number}")
            teams.ok("send", "--from", "eve", "--to", "team:t/ann", "--body", f"second {number}", "--dir", second)
        teams.put("t", "team-lead", native("ann", "NATIVE", 1))
        until(lambda: len(teams.holds("t", "ann")) == 40)
        until(lambda: "NATIVE" in texts(teams))
        for one in bridges:
            one.send_signal(signal.SIGTERM)
    got = [e["text"].splitlines()[1] for e in teams.holds("t", "ann")]
    assert sorted(got) == sorted(f"| {which} {n}" for which in ("first", "second") for n in range(20))
    assert texts(teams) == ["NATIVE"]
    foreign = teams.box_of("t", "ann").with_name(f"ann.json.agent-mailbox.{naming.digest('x')[:8]}.00000000")
    natives = teams.box_of("t", "ann").with_name("ann.json.tmp.0badcafe")
    mark = naming.digest(os.path.realpath(teams.box))[:8]
    ours = [foreign.with_name(f"{m}.json.agent-mailbox.{mark}.12345678") for m in ("ann", "gone")]
    for path in (foreign, natives, *ours):
        path.touch()
    bridge(teams)
    assert [path.exists() for path in (foreign, natives, *ours)] == [True, True, False, False]


def test_a_client_that_drops_our_key_gets_nothing_echoed(teams: Teams) -> None:
    """An entry of ours is known by its sender and first line, too."""
    teams.make("t", "ann")
    bridge(teams)
    teams.send("bob", "team:t/ann", "HELLO")
    bridge(teams)
    (entry,) = teams.holds("t", "ann")
    del entry["agent_mailbox"]
    teams.put("t", "ann", entry)
    assert bridge(teams) == {"team": "t", "in": 0, "out": 0}
    assert texts(teams) == []


@pytest.mark.parametrize("moment", ["before", "aside", "lock"])
def test_a_team_that_is_deleted_while_we_write_is_over(
    teams: Teams, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team may be deleted at each step of our write. The bridge then makes nothing where the team was, and the mail
    is unread again."""
    teams.make("t", "ann")
    mailbox = Mailbox(str(teams.box))
    mirror = Mirror(mailbox, str(teams.root), "t")
    mirror.mirror_once()
    out = Outward(mailbox, str(teams.root), mirror)
    sent = teams.send("bob", "team:t/ann", "HELLO")

    def deleting(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def deleted(self: object, *arguments: object) -> object:
            shutil.rmtree(teams.root / "t")
            return real(self, *arguments)

        monkeypatch.setattr(owner, name, deleted)

    steps = {"before": (FileBeside, "make_files"), "aside": (FileBeside, "append_entries")}
    deleting(*{**steps, "lock": (WritingLock, "__enter__")}[moment])
    assert out.deliver_once() == 0
    assert any("cannot be" in problem for problem in out.problems), out.problems
    assert not (teams.root / "t").exists()
    assert teams.unread("ann@t") == [sent]


def test_a_session_that_goes_on_under_a_new_id_keeps_its_team(teams: Teams) -> None:
    """The lead's id in the configuration is another: mail flows on, and the new session is not told twice."""
    teams.make("t", "ann", lead_session="lead-1")
    teams.register("lead-2", "--tags", "project:p")
    mailbox = Mailbox(str(teams.box))
    mirror = Mirror(mailbox, str(teams.root), "t")
    mirror.mirror_once()
    out = Outward(mailbox, str(teams.root), mirror)
    teams.make("t", "ann", lead_session="lead-2")
    mirror.mirror_once()
    teams.send("user", "project:p", "BY ITS HOOKS")
    teams.send("user", "team:t", "FOR ALL")
    assert out.deliver_once() == 2
    assert [e["text"].splitlines()[1] for e in teams.holds("t", "team-lead")] == ["| FOR ALL"]


def test_a_lead_that_was_cleared_leads_on_under_another_id(teams: Teams) -> None:
    """The configuration keeps the first id: by the roster the session that continues it is the lead. It is not told
    twice, and its transcript tells what it saw."""
    teams.make("t", "ann", lead_session="lead-1")
    teams.register("lead-1", "--name", "Lee")
    teams.ok("roster", "freeze", "lead-1")
    teams.register("lead-2", "--name", "Lee", "--tags", "project:p")
    bridge(teams)
    for sender, to in (("user", "project:p"), ("lead-2", "team:t"), ("user", "team:t/team-lead")):
        teams.send(sender, to, f"{sender} to {to}")
    bridge(teams)
    (entry,) = teams.holds("t", "team-lead")
    assert entry["text"].splitlines()[1] == "| user to team:t/team-lead"
    assert len(teams.holds("t", "ann")) == 1
    project = teams.home / ".claude/projects/-x"
    project.mkdir(parents=True)
    told = {"type": "user", "message": {"content": f"<teammate-message>\n{entry['text']}\n</teammate-message>"}}
    (project / "lead-2.jsonl").write_text(json.dumps(told) + "\n")
    teams.put("t", "team-lead")
    bridge(teams)
    assert [r["reader_session_id"] for r in teams.objects(READS) if r.get("event") == "seen"] == ["team-lead@t"]


def test_names_that_look_like_ours_stay_apart(teams: Teams) -> None:
    """A team that is called as another's name is made into an id is another team."""
    teams.make("t u", "ann")
    teams.make(naming.word("t u"), "ann")
    teams.ok("teams", "import")
    assert len(teams.ok("roster", "list")["agents"]) == 4
    shutil.rmtree(teams.root / naming.word("t u"))
    teams.ok("teams", "import")
    states = {a["session_id"]: a["state"] for a in teams.ok("roster", "list")["agents"]}
    assert states[naming.session_id("t u", "ann")] == "alive"
    assert states[naming.session_id(naming.word("t u"), "ann")] == "dead"


HOSTILE = (
    "</blockquote><h2>2026-01-01 00:00:00Z, user → all</h2>",
    "<script>alert(1)</script>",
    "![x](http://localhost/x.png) [y](http://localhost) <http://localhost>",
    "```\n# heading\n```\n\n# heading",
    "~~~~~~\n````````\n# heading",
    "<!-- hides the rest",
    "    code\n---\n===\n\n# Team forged\n\n## 2026",
)


def test_the_exported_history_is_quotation_whatever_was_said(teams: Teams) -> None:
    """An exported history turns no text into a heading, a link, a picture or HTML, by CommonMark. It changes no
    text."""
    teams.make("t", "ann")
    entries = [native("ann", text, n, color="<b>") | {"summary": text} for n, text in enumerate(HOSTILE)]
    teams.put("t", "team-lead", *entries, native("# <b>x</b> ![y](z)", "TEXT", 50))
    teams.ok("teams", "import")
    tokens = MarkdownIt("commonmark").parse(teams.call("teams", "export", "t").stdout)
    kinds = [t.type for token in tokens for t in (token, *(token.children or ()))]
    assert not {"html_block", "html_inline", "image", "link_open", "hr"} & set(kinds)
    assert kinds.count("heading_open") == 1 + len(HOSTILE) + 1
    assert [t.content.rstrip("\n") for t in tokens if t.type == "fence"] == [*HOSTILE, "TEXT"]


def test_json_of_a_models_own_is_its_words(teams: Teams) -> None:
    """JSON that a client delivers as text is mail, each time it comes. The holder of the lead's role gets it, too. JSON
    that the reader's transcript also shows comes once. An entry with a type of the client's stays protocol."""
    teams.register("boss", "--role", "team-lead")
    teams.make("t", "ann")
    said = '{"type":"status","ok":true}'
    lead = teams.home / ".claude/projects/-x/lead-session.jsonl"
    lead.parent.mkdir(parents=True)
    lead.write_text(
        passed_on(("ann", said)).replace('color=\\"blue\\"', 'color=\\"blue\\" summary=\\"s\\"')
        + passed_on(("ann", '{"type":"news_of_the_client"}'))
    )
    teams.put("t", "team-lead", native("ann", said, 1), native("ann", said, 2))
    for _ in range(2):
        teams.ok("teams", "import", "t")
        assert texts(teams) == ['{"type":"news_of_the_client"}', said, said]
    assert len(teams.check("boss")) == 2


def test_a_msg_id_that_is_used_again_hides_no_message(teams: Teams) -> None:
    """Together or one after the other, in any order, by any number of importers: each text once, and it is told."""
    teams.make("t", "ann")
    one, two, three = (native("team-lead", text, 1) for text in ("ONE", "TWO", "THREE"))
    for there in ([one], [two], [two, one], [one, two, three], [three], [three, one, three]):
        teams.put("t", "ann", *there)
        result = teams.call("teams", "import", "t")
        assert ("another entry has its id" in result.stderr) == (len(there) > 1)
        assert len(texts(teams)) == len(set(texts(teams)))
        ids = {m["content"]: m["id"] for m in teams.mirrored()}
        assert set(teams.unread("ann@t")) <= {ids[e["text"]] for e in there}
    assert texts(teams) == ["ONE", "TWO", "THREE"]
