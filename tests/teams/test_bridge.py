"""Mail into a team's inboxes: once, whoever is killed when; other entries untouched; the rest is said, and waits."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core import naming
from agent_mailbox.errors import Busy
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.locks import team_lock
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.teams import outward
from agent_mailbox.teams.mirror import Mirror
from agent_mailbox.teams.outward import Outward
from agent_mailbox.teams.writing import FileBeside, Undeliverable, join_array
from tests.faults.killing import killed
from tests.helpers import MESSAGES, PATIENCE, READS, refused, start_at_once, until
from tests.mcp import asking
from tests.surroundings import Client
from tests.teams.client import Locked, fetch
from tests.teams.samples import native
from tests.teams.test_import import told_to_send

if TYPE_CHECKING:
    from pathlib import Path

    from tests.teams.conftest import Teams


def bridge(teams: Teams, *words: object) -> Any:
    """One look, both ways."""
    return teams.ok("teams", "bridge", "t", "--once", *words)


def transcript(teams: Teams, name: str = "ann") -> Path:
    """Where the client writes down what a teammate was told."""
    beside = teams.home / ".claude/projects/-x/lead-session/subagents"
    beside.mkdir(parents=True, exist_ok=True)
    (beside / f"agent-a{name}-1.meta.json").write_text(json.dumps({"name": name, "teamName": "t"}))
    path = beside / f"agent-a{name}-1.jsonl"
    path.touch()
    return path


def test_mail_goes_into_the_inbox_behind_what_is_there(teams: Teams) -> None:
    """The bridge appends mail once to a client's inbox, in a form that the client delivers. The entry begins with a
    line of ours, never with what could be protocol. Every other byte stays, and the entry does not say ``read``."""
    teams.make("t", "ann")
    bridge(teams)
    path = teams.box_of("t", "ann")
    there = b' [ {"from":"x","text":"t","timestamp":"s","read":true,"n":1e400,"n":1.0} ]\n'
    teams.replace(path, there)
    sent = teams.send("bob", "team:t/ann", '{"type":"shutdown_request"}', "--subject", "S", "--ack")
    assert bridge(teams) == {"team": "t", "in": 1, "out": 1}
    assert path.read_bytes().startswith(there.rstrip().rstrip(b"]").rstrip() + b",")
    (_, entry) = teams.holds("t", "ann")
    assert entry["text"].splitlines()[0].startswith(f"[agent-mailbox {sent[:8]}  bob → you, ")
    assert entry["text"].splitlines()[0].endswith("asks for an ack]")
    assert entry["text"].splitlines()[1:3] == ["Subject: S", '| {"type":"shutdown_request"}']
    assert entry["from"] == "bob@agent-mailbox"
    assert "read" not in entry
    assert bridge(teams) == {"team": "t", "in": 0, "out": 0}
    assert len(teams.holds("t", "ann")) == 2
    assert sorted(p.name for p in path.parent.iterdir()) == ["ann.json"]
    assert [m["content"] for m in teams.mirrored()] == ["t"]


def test_direct_tag_role_and_broadcast_mail_reaches_members(teams: Teams) -> None:
    """Each once; role mail one of them, and nobody else."""
    teams.make("t", "ann", "bo")
    bridge(teams)
    for name in ("ann@t", "bo@t", "zed"):
        teams.register(name, "--role", "builder")
    for to in ("team:t/ann", "team:t", "builder", "all"):
        teams.send("user", to, f"TO {to}")
    bridge(teams)
    got = {name: [e["text"].splitlines()[1] for e in teams.holds("t", name)] for name in ("ann", "bo", "team-lead")}
    assert got == {
        "ann": ["| TO team:t/ann", "| TO team:t", "| TO builder", "| TO all"],
        "bo": ["| TO team:t", "| TO all"],
        "team-lead": ["| TO team:t", "| TO all"],
    }
    assert len(teams.unread("zed")) == 1


def test_the_leads_session_is_not_told_twice(teams: Teams) -> None:
    """The bridge sends the lead's session no mail that its own hooks show, nor mail that it wrote itself."""
    teams.make("t", "ann", lead_session="lead-1")
    teams.register("lead-1", "--tags", "project:p")
    bridge(teams)
    for sender, to in (("user", "all"), ("user", "project:p"), ("lead-1", "team:t"), ("user", "team:t/team-lead")):
        teams.send(sender, to, f"{sender} to {to}")
    bridge(teams)
    assert [e["text"].splitlines()[1] for e in teams.holds("t", "team-lead")] == ["| user to team:t/team-lead"]


def test_what_cannot_be_delivered_is_said_and_waits(teams: Teams) -> None:
    """Each for its own reason; no byte of the team's changes; delivered once it can be."""
    teams.make("t")
    lead = teams.send("bob", "team:t/team-lead", "TO LEAD")
    stranger = teams.send("bob", "team:t/cy", "TO CY")

    def waits(agent: str, message: str, why: str) -> None:
        before = teams.native()
        result = teams.call("teams", "bridge", "t", "--once")
        assert result.rc == 0
        assert any(f"{agent}: 1 message waits" in w and why in w for w in result.warnings), result
        assert teams.unread(agent) == [message]
        assert teams.native() == before

    waits("team-lead@t", lead, "once it has a teammate")
    teams.make("t", "ann", "cy")
    bridge(teams)
    assert len(teams.holds("t", "team-lead")) == len(teams.holds("t", "cy")) == 1
    assert teams.unread("cy@t") == []
    assert stranger
    ann = teams.send("bob", "team:t/ann", "TO ANN")
    for wrong in (b"{}", b"[", b"", b"nothing", b"[1,]"):
        teams.replace(teams.box_of("t", "ann"), wrong)
        waits("ann@t", ann, "not a JSON array")
    teams.make("t", "cy")
    waits("ann@t", ann, "no member of that name")
    teams.make("t", "ann", "cy")
    teams.put("t", "ann")
    assert bridge(teams)["out"] == 1


def test_a_member_whose_name_is_reserved_here_costs_the_others_nothing(teams: Teams) -> None:
    """The bridge says so, and goes on: it would end at each start."""
    teams.make("user", "ann", "user")
    teams.register("bob")
    teams.send("bob", "team:user/ann", "TO ANN")
    done = teams.call("teams", "bridge", "user", "--once")
    assert done.rc == 0, done
    assert any("'user@user' is reserved" in w for w in done.warnings)
    assert len(teams.holds("user", "ann")) == 1


def test_a_broken_inbox_costs_the_log_nothing(teams: Teams) -> None:
    """A bridge looks again and again at an inbox that takes nothing. It records no offer meanwhile, and leaves no
    file."""
    teams.make("t", "ann")
    teams.replace(teams.box_of("t", "ann"), b"{}")
    teams.send("bob", "team:t/ann", "TO ANN")
    before, reads = teams.native(), teams.objects(READS)
    for _ in range(3):
        assert bridge(teams)["out"] == 0
    assert (teams.native(), teams.objects(READS)) == (before, reads)


def test_an_offer_taken_back_is_not_made_again_at_once(teams: Teams) -> None:
    """While others hold an inbox's lock, the bridge records offers now and then: its own records do not wake it."""
    teams.make("t", "ann")
    teams.put("t", "ann")
    teams.send("bob", "team:t/ann", "TO ANN")
    mirror = Mirror(Mailbox(str(teams.box)), str(teams.root), "t")
    mirror.mirror_once()
    out = Outward(Mailbox(str(teams.box)), str(teams.root), mirror)
    teams.box_of("t", "ann").with_suffix(".json.lock").mkdir()
    for _ in range(3):
        assert out.deliver_once() == 0
        assert "others are writing" in out.problems[0]
    offered = [read for read in teams.objects(READS) if read.get("event", "read") == "read"]
    assert len(offered) == 1


def test_a_lock_that_is_held_is_waited_for_and_a_stale_one_is_nobodys(teams: Teams) -> None:
    """The bridge waits for a lock that is held, and meanwhile the mail waits. It removes a lock that is stale by the
    client's times."""
    teams.make("t", "ann")
    teams.put("t", "ann")
    sent = teams.send("bob", "team:t/ann", "LATER")
    lock = teams.box_of("t", "ann").with_name("ann.json.lock")
    lock.mkdir()
    result = teams.call("teams", "bridge", "t", "--once")
    assert any("others are writing" in w for w in result.warnings)
    assert teams.unread("ann@t") == [sent]
    assert lock.exists()
    assert [p.name for p in lock.parent.iterdir() if ".tmp." in p.name] == []
    then = time.time() - 11
    os.utime(lock, (then, then))
    assert bridge(teams)["out"] == 1
    assert not lock.exists()


@pytest.mark.parametrize("there", [b"[]", b" [\n]\n", b'[{"a":"]"}]', b"[1, 2]"])
def test_arrays_grow_at_their_end(there: bytes) -> None:
    """Byte for byte."""
    made = join_array(there, [{"x": "]"}, {"y": 1}])
    assert json.loads(made) == [*json.loads(there), {"x": "]"}, {"y": 1}]
    assert made.startswith(there.rstrip()[:-1].rstrip())


@pytest.mark.parametrize("there", [b"", b"{}", b"[1", b"\xef\xbb\xbf[]", b"[NaN]", b"[]x"])
def test_what_is_no_array_is_left_alone(there: bytes) -> None:
    """The client reads nothing of it."""
    with pytest.raises(Undeliverable):
        join_array(there, [{}])


def test_fetched_and_written_down_is_seen(teams: Teams) -> None:
    """An honest receipt: only the transcript says so, and only a teammate's message in it."""
    teams.make("t", "ann")
    bridge(teams)
    sent = teams.send("bob", "team:t/ann", "HELLO")
    bridge(teams)
    (entry,) = teams.holds("t", "ann")
    log = transcript(teams)
    quoted = {"type": "assistant", "message": {"content": f"teammate-message {entry['text']}"}}
    result = {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "content": f"teammate-message {entry['text']}"}]},
    }
    log.write_text(json.dumps(quoted) + "\n" + json.dumps(result) + "\n")
    teams.put("t", "ann")
    bridge(teams)
    events = lambda: [r.get("event", "read") for r in teams.objects(READS) if r["message_id"] == sent]  # noqa: E731
    assert events() == ["read"]
    told = {"type": "user", "message": {"content": f"<teammate-message>\n{entry['text']}\n</teammate-message>"}}
    with log.open("a") as file:
        file.write(json.dumps(told) + "\n")
    bridge(teams)
    bridge(teams)
    assert events() == ["read", "seen"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fetched counts as lost at once."""
    monkeypatch.setattr(outward, "GRACE", 0.0)


@pytest.mark.usefixtures("impatient")
def test_where_nobody_can_tell_it_comes_again_and_says_so(teams: Teams) -> None:
    """Gone from the inbox, and the transcript goes on without it; once more is enough where it is seen then."""
    teams.make("t", "ann")
    log = transcript(teams)
    mailbox = Mailbox(str(teams.box))
    mirror = Mirror(mailbox, str(teams.root), "t")
    mirror.mirror_once()
    out = Outward(mailbox, str(teams.root), mirror)
    teams.send("bob", "team:t/ann", "HELLO")
    assert out.deliver_once() == 1
    (first,) = teams.holds("t", "ann")
    teams.put("t", "ann")
    assert out.deliver_once() == 0
    log.write_text('{"type":"assistant"}\n')
    assert out.deliver_once() == 1
    (again,) = teams.holds("t", "ann")
    assert "possibly repeated" not in first["text"]
    assert again["text"].splitlines()[0].endswith(", possibly repeated]")
    assert again["text"].splitlines()[1:] == first["text"].splitlines()[1:]


def test_what_a_busy_mailbox_kept_out_comes_at_the_next_look(teams: Teams) -> None:
    """Both ways, and out of transcripts, though nothing changes any more."""
    teams.make("t", "ann")
    mailbox = Mailbox(str(teams.box), wait=0.01)
    mirror = Mirror(mailbox, str(teams.root), "t")
    mirror.mirror_once()
    out = Outward(mailbox, str(teams.root), mirror)
    out.deliver_once()
    log = transcript(teams)
    log.write_text("".join(json.dumps(line) + "\n" for line in told_to_send(1, "team-lead", "GONE")))
    with FileLock(str(teams.file(MESSAGES)), 0), pytest.raises(Busy):
        mirror.mirror_once()
    assert mirror.mirror_once().new == 1
    teams.put("t", "team-lead", native("ann", "THERE", 2))
    with FileLock(str(teams.file(MESSAGES)), 0), pytest.raises(Busy):
        mirror.mirror_once()
    assert mirror.mirror_once().new == 1
    teams.send("bob", "team:t/ann", "OUT")
    with FileLock(str(teams.file(READS)), 0), pytest.raises(Busy):
        out.deliver_once()
    assert sorted(p.name for p in teams.box_of("t", "ann").parent.iterdir()) == ["ann.json", "team-lead.json"]
    assert (out.deliver_once(), out.deliver_once()) == (1, 0)
    assert len(teams.holds("t", "ann")) == 1
    assert len(teams.mirrored()) == 2


def test_a_new_inbox_is_whole_at_every_moment(teams: Teams, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads at any moment finds no inbox or a whole one; so does one that reads after a kill."""
    teams.make("t", "ann")
    inbox, opened = teams.box_of("t", "ann"), os.open

    def open_and_look(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        number = opened(path, flags, mode, **more)
        if str(path).startswith(str(inbox)):
            assert not inbox.exists() or teams.holds("t", "ann") == []
        return number

    monkeypatch.setattr(os, "open", open_and_look)
    FileBeside(str(inbox), "0a1b2c3d", "0badcafe").make_files()
    assert teams.holds("t", "ann") == []


@pytest.mark.usefixtures("impatient")
def test_a_process_killed_before_the_rename_repeats_without_a_word(teams: Teams) -> None:
    """The file beside the inbox tells that it never got there; killed behind it, the inbox or the transcript tell."""
    teams.make("t", "ann")
    bridge(teams)
    sent = teams.send("bob", "team:t/ann", "HELLO")
    nonce = "0badcafe"
    offered = {
        "message_id": sent,
        "reader_session_id": "ann@t",
        "timestamp": "2026-11-21T09:00:00.000Z",
        "event": "read",
    }
    aside = FileBeside(str(teams.box_of("t", "ann")), naming.digest(os.path.realpath(teams.box))[:8], nonce)
    aside.make_files()
    teams.append(READS, {**offered, "as": "ann@t", "nonce": nonce})
    assert bridge(teams)["out"] == 1
    assert not aside.is_there()
    (entry,) = teams.holds("t", "ann")
    assert "possibly repeated" not in entry["text"]
    assert bridge(teams)["out"] == 0  # it is there: it is delivered
    assert bridge(teams)["out"] == 0
    teams.put("t", "ann")
    again = bridge(teams)["out"]  # fetched, by the word of an earlier process, and no transcript to ask
    assert again == 1
    assert "possibly repeated" in teams.holds("t", "ann")[0]["text"]


def test_sixty_bridged_and_twenty_five_native_messages_each_arrive_once(teams: Teams) -> None:
    """Two native senders, a fetching client, and us, at one inbox at once; the mailbox has all that was native."""
    teams.make("t", "ann", "bo")
    log, path = teams.scratch / "delivered", teams.box_of("t", "ann")
    teams.put("t", "ann")
    ids = [teams.send("bob", "team:t/ann", f"bridged {n}") for n in range(20)]
    me = ("-m", "tests.teams.client")
    senders = [teams.start("send", path, name, n, python=me) for name, n in (("bo", 13), ("team-lead", 12))]
    with (
        teams.start("fetch", path, log, transcript(teams), python=me) as fetcher,
        teams.start("teams", "bridge", "t", "--interval", "0.01") as worker,
    ):
        start_at_once(senders)
        ids += [teams.send("bob", "team:t/ann", f"bridged {n}") for n in range(20, 60)]
        assert [sender.wait() for sender in senders] == [0, 0]
        until(lambda: log.exists() and len(log.read_text().splitlines()) >= 85)
        until(lambda: sum(r.get("event") == "seen" for r in teams.objects(READS)) >= 60)
        fetcher.communicate()
        worker.send_signal(signal.SIGKILL)
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    delivered = Counter((entry["from"], entry["text"]) for entry in entries)
    assert set(delivered.values()) == {1}
    assert len(delivered) == 85
    assert sum("| bridged" in text for _, text in delivered) == 60
    assert teams.unread("ann@t") == []
    assert not path.with_name("ann.json.lock").exists()


def test_one_bridge_a_team_and_it_ends_with_it(teams: Teams) -> None:
    """A second is refused; at the end what nobody saw goes back, and the members retire."""
    teams.make("t", "ann")
    bridge(teams)
    teams.register("ann@t", "--role", "builder")
    sent = teams.send("bob", "builder", "WORK", "--ack")
    with teams.start("teams", "bridge", "t", "--interval", "0.01") as worker:
        until(lambda: teams.box_of("t", "ann").exists() and len(teams.holds("t", "ann")) == 1)
        second = refused(teams.call("teams", "bridge", "t", "--json"), 1, "has a bridge")
        assert second.json["error"]["code"] == "bridged"
        shutil.rmtree(teams.root / "t")
        out, err = worker.communicate()
    assert worker.returncode == 0, err
    assert b"0 came in, 1 went out" in out
    assert {a["state"] for a in teams.ok("roster", "list")["agents"]} == {"dead"}
    teams.register("zed", "--role", "builder")
    assert teams.unread("zed") == [sent]
    assert teams.call("send", "--from", "zed", "--to", "team:t/ann", "--body", "x").rc == 1
    assert len(teams.objects(MESSAGES)) == 1
    assert teams.doctor() == []


def test_a_team_whose_lead_was_killed_is_over(teams: Teams) -> None:
    """A team is over once the lead's process that the configuration names is killed. Its directory may stay."""
    with teams.start(python=("-c", "import sys; sys.stdin.read()")) as lead:
        born = open(f"/proc/{lead.pid}/stat").read().rpartition(")")[2].split()[19]
        space = f"vm#{os.readlink('/proc/self/ns/pid')}"
        teams.make("t", "ann", leadProcess={"pid": lead.pid, "pidSpace": space, "procStart": born})
        with teams.start("teams", "bridge", "t", "--interval", "0.01") as worker:
            until(lambda: len(teams.ok("roster", "list")["agents"]) == 2)
            assert worker.poll() is None
            lead.kill()
            lead.wait()
            assert worker.wait() == 0
    assert {a["state"] for a in teams.ok("roster", "list")["agents"]} == {"dead"}


def test_who_comes_back_is_told_what_it_may_have_had(teams: Teams) -> None:
    """Mail that stood in the inbox of a member that left, or went with the team: given back, and marked when the same
    name is offered it again, also by the bridge that saw it leave."""
    teams.make("t", "ann", "bo")
    teams.ok("teams", "import")
    teams.register("ann@t", "--role", "builder")
    mailbox = Mailbox(str(teams.box))
    mirror = Mirror(mailbox, str(teams.root), "t")
    out = Outward(mailbox, str(teams.root), mirror)

    def look() -> None:
        mirror.mirror_once()
        out.deliver_once()

    teams.send("bob", "builder", "ROLE")
    look()
    teams.make("t", "bo")
    look()
    teams.make("t", "bo", "ann")
    teams.register("ann@t", "--role", "builder")
    look()
    heads = lambda: [e["text"].splitlines()[0] for e in teams.holds("t", "ann")]  # noqa: E731
    assert ["possibly repeated" in head for head in heads()] == [False, True]
    teams.send("bob", "team:t/ann", "DIRECT")
    look()
    shutil.rmtree(teams.root / "t")
    teams.ok("teams", "import")
    teams.make("t", "ann")
    bridge(teams)
    assert len(heads()) >= 1
    assert all("possibly repeated" in head for head in heads())


def test_a_sender_is_told_who_waits_for_a_bridge(teams: Teams) -> None:
    """A teammate sees nothing while nobody carries its mail."""
    teams.make("t", "ann")
    teams.ok("teams", "import")
    send = lambda: teams.ok("send", "--from", "bob", "--to", "team:t/ann", "--body", "HELLO")["delivery"]  # noqa: E731
    waits = send()
    assert (waits["agents"], waits["waiting_for"], waits["warnings"]) == ([], ["ann@t"], [])
    with teams.start("teams", "bridge", "t", "--interval", "0.01") as worker:
        until(lambda: send()["at_next_turn"] == ["ann@t"])
        worker.send_signal(signal.SIGKILL)
    assert send() == waits


@pytest.mark.parametrize("name", ["é", "a b", "_x", "a@b", "n" * 200])
def test_a_name_that_no_id_can_hold_is_an_address_all_the_same(teams: Teams, name: str) -> None:
    """A member whose name no id can hold has an address, as its client and `teams show` spell it."""
    teams.make("t t", name)
    teams.ok("teams", "import")
    (shown,) = [m["address"] for m in teams.ok("teams", "show", "t t")["members"] if not m["lead"]]
    teams.send("bob", f"team:t t/{name}", "HELLO")
    teams.send("bob", shown, "AGAIN")
    assert teams.ok("teams", "bridge", "t t", "--once")["out"] == 2
    assert len(teams.holds("t t", name)) == 2


def test_who_waits_for_a_team_waits_no_longer_than_the_client_lives(teams: Teams) -> None:
    """A session that ended has none any more; nothing is left of its bridge."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as sits:
        env = {"CLAUDE_PID": str(sits.pid), "CLAUDE_CODE_ENTRYPOINT": "cli"}
        with teams.start("teams", "bridge", "no-such-session", "--wait", "3600", env=env) as worker:
            sits.communicate(b"\n")
            _, err = worker.communicate(timeout=PATIENCE)
    assert (worker.returncode, b"team not found" in err) == (1, True)


# -- a bridge killed before any of its system calls -------------------------------------------------------------------


SENT = [f"bridged {n}." for n in range(3)]


def settled(teams: Teams, log: Path, *, client_first: bool) -> list[str]:
    """The client fetches, and successors look, in turn; what was delivered by then. Whatever was killed where: the
    client never waits in vain for its lock."""
    path, delivered = teams.box_of("t", "ann"), teams.scratch / "delivered"
    with Locked(str(path)):
        pass
    for turn in range(4):
        if turn or not client_first:
            bridge(teams)
        fetch(str(path), str(delivered), str(log))
    assert [p.name for p in path.parent.iterdir() if p.suffix != ".json"] == []
    lines = delivered.read_text().splitlines() if delivered.exists() else []
    return [json.loads(line)["text"] for line in lines]


def test_killed_before_any_system_call_everything_arrives_once(teams: Teams) -> None:
    """Whether the client fetches before the successor comes, or after: all of ours, plain, once; what was native is
    mirrored once; and everything has its receipt."""
    teams.make("t", "ann")
    log = transcript(teams)
    bridge(teams)
    teams.put("t", "ann", native("team-lead", "native", 1))
    said = "".join(json.dumps(line) + "\n" for line in told_to_send(1, "ann", "native"))
    (log.parent.parent.parent / "lead-session.jsonl").write_text(said)
    for text in SENT:
        teams.send("bob", "team:t/ann", text)

    def fresh() -> None:
        (teams.scratch / "delivered").unlink(missing_ok=True)
        for path in teams.root.rglob("*.json"):
            teams.age(path)

    kinds: Counter[str] = Counter()
    for number, call in enumerate(killed(teams, "teams", "bridge", "t", "--once", fresh=fresh, every=1)):
        got = settled(teams, log, client_first=number % 2 == 0)
        ours = [re.sub(r"^\[agent-mailbox [^\]]*\]\n\| ", "", text) for text in got if "[agent-mailbox" in text]
        assert sorted(ours) == SENT, (call, got)
        assert not any("possibly repeated" in text for text in got), call
        assert got.count("native") == 1, call
        assert [m["content"] for m in teams.mirrored()] == ["native"], call
        seen = [r["message_id"] for r in teams.objects(READS) if r.get("event") == "seen"]
        assert len(seen) == len(set(seen)) == len(SENT), call
        kinds[call.name if call else "end"] += 1
    assert {"write", "renameat2", "rmdir"} < kinds.keys(), kinds


# -- the task list of a client's own team -----------------------------------------------------------------------------


def put(teams: Teams, number: str, **said: Any) -> None:
    """A task as the client writes it."""
    value = {"id": number, "subject": f"Part {number}", "description": "d", "status": "pending", "blocks": []}
    path = teams.home / ".claude/tasks/my-app" / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**value, "blockedBy": [], **said}))


def test_a_served_team_s_tasks_are_listed_and_only_shown(teams: Teams) -> None:
    """They stand behind ours, with the client's states, and no command of ours takes one. Without a bridge of this
    mailbox none is listed. A file that is no task, or is the client's own affair, is left out; texts are quoted."""
    teams.register("bo")
    teams.make("my app", "ann")
    teams.make("other", "cat")  # no bridge ever served it
    put(teams, "10")
    put(teams, "2", owner="ann", status="in_progress", subject='a\x1b[2J\n"team:x" done')
    put(teams, "3", blockedBy=["2", "4", "99", 7])
    put(teams, "4", status="completed")
    put(teams, "5", metadata={"_internal": True})
    put(teams, "6", subject=7)
    put(teams, "7", status="lost")
    put(teams, "8", description="x" * (1 << 17))
    tasks = teams.home / ".claude/tasks/my-app"
    (tasks / "9.json").write_bytes(b'{"id": "9", "subject"')
    (tasks / "a b.json").write_text((tasks / "10.json").read_text())
    (tasks / "11.json").symlink_to("/dev/zero")
    (tasks / ".lock").write_text("")
    teams.ok("task", "add", "--to", "role:dev", "--title", "Ours", "--task-id", "task-ours", "--session", "bo")
    before = {path.name: path.lstat().st_mtime_ns for path in tasks.iterdir()}
    logs = OpenMailbox(str(teams.box)).logs
    tag = naming.tag("my app")
    place = team_lock.place(logs, tag)
    teams.file(".cache", "teams").mkdir(exist_ok=True)
    FileLock(place, team_lock.ASKED).take().release()  # a bridge that ended
    assert [one["id"] for one in teams.ok("task", "list")["tasks"]] == ["task-ours"]
    lock = FileLock(place, team_lock.ASKED).take()
    try:
        found = teams.ok("task", "list")["tasks"]
        assert [(one["id"], one["state"], one["holder"], one["waits_for"]) for one in found[1:]] == [
            (f"{tag}/2", "in progress", "ann", []),
            (f"{tag}/3", "pending", None, [f"{tag}/2"]),
            (f"{tag}/10", "pending", None, []),
        ]
        assert found[1]["client"] == "claude-code"
        text = teams.call("task", "list").stdout
        assert f'{tag}/3  blocked by {tag}/2, Claude Code\'s own: "Part 3"\n' in text
        assert len(text.splitlines()) == 4
        assert "\x1b" not in text
        calls = json.dumps([("task", {"do": "list"}), ("task", {"do": "claim", "task": f"{tag}/2"})])
        with Client(teams) as client:
            assert client.hook("one").rc == 0
            listed, claimed = client.bash(shlex.join([sys.executable, asking.__file__, calls]), "one").json
        assert listed["structuredContent"]["tasks"] == teams.ok("task", "list")["tasks"]
        assert f'{tag}/3  blocked by {tag}/2, Claude Code\'s own: "Part 3"\n' in listed["content"][0]["text"]
        assert "is only shown here" in claimed["structuredContent"]["error"]["message"]
        for words, count in ((("--mine", "--session", "bo"), 0), (("--open",), 1), (("--all",), 5)):
            assert len(teams.ok("task", "list", *words)["tasks"]) == count
        for words in ("claim", "show", "cancel", "progress --phase verifying", "done --summary x", "drop --reason x"):
            verb, *more = words.split()
            refused = teams.call("task", verb, f"{tag}/2", *more, "--session", "bo")
            assert (refused.rc, "is only shown here" in refused.stderr) == (1, True), refused
        assert (
            teams.call("task", "add", "--to", "x", "--title", "t", "--task-id", f"{tag}/2", "--session", "bo").rc != 0
        )
    finally:
        lock.release()
    assert {path.name: path.lstat().st_mtime_ns for path in tasks.iterdir()} == before
