"""Reading teams into the mailbox: each entry once, whatever becomes of the array; nothing of the team's is touched."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.teams.mirror import Mirror
from tests.helpers import MESSAGES, READS, ROSTER, until
from tests.teams import samples
from tests.teams.samples import entry, native
from tests.teams.test_format import WRONG

if TYPE_CHECKING:
    from tests.teams.conftest import Teams


def texts(teams: Teams) -> list[str]:
    """What was mirrored, in order."""
    return [m["content"] for m in teams.mirrored()]


def test_the_captured_teams_come_in_whole_and_once(teams: Teams) -> None:
    """Every entry a message from its sender to its inbox's owner; what was marked as read is, what was not is not."""
    teams.samples()
    before = teams.native()
    answer = teams.ok("teams", "import")
    assert sum(team["new"] for team in answer["teams"]) == 9
    assert [team["problems"] for team in answer["teams"]] == [[], [], []]
    wanted = [
        (f"{e['from']}@{team}", f"{name}@{team}", e["text"])
        for team, inboxes in samples.TEAMS.items()
        for name, entries in inboxes.items()
        for e in entries
    ]
    assert sorted((m["sender"], m["recipient"], m["content"]) for m in teams.mirrored()) == sorted(wanted)
    unread = [i for agent in ("team-lead", "docs-types") for i in teams.unread(f"{agent}@humble-chasing-goose")]
    assert len(unread) == 2
    told = [m["at"] for m in teams.ok("teams", "export", "humble-chasing-goose")["messages"]]
    assert (len(told), told) == (6, sorted(told))
    logs = teams.lines(MESSAGES), teams.lines(READS)
    again = teams.ok("teams", "import")
    assert [team["new"] for team in again["teams"]] == [0, 0, 0]
    assert (teams.lines(MESSAGES), teams.lines(READS)) == logs
    assert teams.native() == before
    assert teams.doctor() == []


def test_protocol_is_kept_as_observed_and_is_no_command_of_ours(teams: Teams) -> None:
    """It says what it is, and is never control, whatever it asks for."""
    teams.samples()
    teams.ok("teams", "import")
    kinds = {m["metadata"]["protocol"]["type"]: m for m in teams.mirrored() if "protocol" in m["metadata"]}
    assert kinds["shutdown_request"]["metadata"]["protocol"]["requestId"] == "shutdown-1770477661492@docs-events"
    assert kinds["shutdown_request"]["content"] == samples.SHUTDOWN
    assert {m["type"] for m in kinds.values()} == {"notification"}
    assert {agent["state"] for agent in teams.ok("roster", "list")["agents"]} == {"alive"}


def test_members_are_agents_of_the_roster(teams: Teams) -> None:
    """Addressed one by one, and all of them by their tag; a new one as it comes."""
    teams.make("t", "ann")
    teams.ok("teams", "import", "t")
    teams.make("t", "ann", "bo")
    teams.ok("teams", "import", "lead-session")
    agents = {a["session_id"]: a["tags"] for a in teams.ok("roster", "list")["agents"]}
    assert agents == {name: ["team:t"] for name in ("team-lead@t", "ann@t", "bo@t")}
    one = teams.send("user", "team:t/bo", "FOR BO")
    everyone = teams.send("user", "team:t", "FOR ALL")
    assert teams.unread("bo@t") == [one, everyone]
    assert teams.unread("ann@t") == [everyone]


def test_entries_come_once_however_the_array_is_rewritten_and_pruned(teams: Teams) -> None:
    """A client that appends, marks, reorders and removes, at random, and imports in between."""
    teams.make("t", "ann", "bo")
    chance = random.Random(7)
    written: list[str] = []
    there: dict[str, list[dict[str, Any]]] = {"ann": [], "team-lead": []}
    for number in range(60):
        name = chance.choice(sorted(there))
        made = native if chance.random() < 0.5 else lambda s, t, n: entry(s, t, f"at {n}", read=False)
        there[name].append(made("bo", f"text {number}", number))
        written.append(f"text {number}")
        teams.put("t", name, *there[name])
        if chance.random() < 0.7:
            teams.ok("teams", "import", "t")
            box = there[name]
            for e in box:
                e["read"] = e["read"] or chance.random() < 0.3
            chance.shuffle(box)
            there[name] = [e for e in box if chance.random() < 0.7]
            teams.put("t", name, *there[name])
    teams.ok("teams", "import", "t")
    got = texts(teams)
    assert len(got) == len(set(got))
    assert sorted(got) == sorted(written)


def test_what_is_consumed_is_read(teams: Teams) -> None:
    """Taken out, or marked: by its recipient, and no sooner. What was in a file that broke, or went away with the
    team, nobody knows to be read."""
    teams.make("t", "ann")
    teams.put("t", "ann", *(native("team-lead", f"m{n}", n) for n in range(4)))
    teams.ok("teams", "import", "t")
    assert len(teams.unread("ann@t")) == 4
    teams.put("t", "ann", *(native("team-lead", f"m{n}", n) | {"read": n == 1} for n in range(1, 4)))
    assert teams.ok("teams", "import", "t")["teams"][0]["read"] == 2
    left = teams.unread("ann@t")
    assert len(left) == 2
    teams.replace(teams.box_of("t", "ann"), b"[{")
    assert teams.ok("teams", "import", "t")["teams"][0]["read"] == 0
    teams.box_of("t", "ann").unlink()
    assert teams.ok("teams", "import", "t")["teams"][0]["read"] == 0
    assert teams.unread("ann@t") == left
    assert [r["reader_session_id"] for r in teams.objects(READS)] == ["ann@t", "ann@t"]


def test_five_thousand_entries_and_one_more(teams: Teams) -> None:
    """All at once; then the one, though all the others still stand there."""
    teams.make("t", "ann")
    entries = [native("team-lead", f"text {n}", n) for n in range(5000)]
    teams.put("t", "ann", *entries)
    assert teams.ok("teams", "import", "t")["teams"][0]["new"] == 5000
    teams.put("t", "ann", *entries, native("team-lead", "one more", 5000))
    assert teams.ok("teams", "import", "t")["teams"][0]["new"] == 1
    assert len(set(texts(teams))) == 5001


def test_what_is_valid_comes_in_and_the_rest_is_told(teams: Teams) -> None:
    """Wrong types in every field, half-written files, files that are no array, or no file: nothing is touched."""
    teams.make("t", "ann", "bo", "cy", "dee", "eve")
    odd = [
        {**native("a", f"odd {key} {n}", n), key: value} for key in native("a", "", 0) for n, value in enumerate(WRONG)
    ]
    teams.put("t", "ann", native("a", "good", 900), *odd, *WRONG, native("a", "last", 901))
    teams.replace(
        teams.box_of("t", "bo"), json.dumps([native("a", "half", 902), native("a", "cut", 903)]).encode()[:-9]
    )
    teams.replace(teams.box_of("t", "cy"), b"\xff\xfe")
    teams.put("t", "stranger", native("a", "to a stranger", 904))
    teams.box_of("t", "dee").mkdir()
    teams.box_of("t", "eve").symlink_to("/dev/zero")
    before = {p: b for p, b in teams.native().items() if "eve" not in p}
    result = teams.call("teams", "import", "t", "--json")
    assert result.rc == 0
    got = texts(teams)
    assert {"good", "last", "half", "to a stranger"} <= set(got)
    assert "cut" not in got
    problems = result.json["teams"][0]["problems"]
    assert len(result.warnings) == len(problems)
    for name in ("ann", "bo", "cy", "dee", "eve"):
        assert any(f"inbox {name}:" in problem for problem in problems), (name, problems)
    assert sum("inbox ann: entry" in problem for problem in problems) >= len(WRONG) * 4
    assert {p: b for p, b in teams.native().items() if "eve" not in p} == before
    assert teams.doctor() == []


@pytest.mark.parametrize("config", [b"", b"{", b"[]", b'{"members":7}', b'{"members":[{"name":"a:b \\u0000"},3]}'])
def test_a_configuration_that_is_wrong_hides_no_mail(teams: Teams, config: bytes) -> None:
    """It is told, and the inboxes are read."""
    teams.make("t", "ann")
    teams.replace(teams.root / "t/config.json", config)
    teams.put("t", "ann", native("team-lead", "there", 1))
    result = teams.call("teams", "import", "--json")
    assert texts(teams) == ["there"]
    assert result.json["teams"][0]["problems"] or b"a:b" in config


def test_names_no_id_can_hold_come_in(teams: Teams) -> None:
    """Spaces, signs, other scripts, long ones: as words of ours, told apart; the entry's own name is kept."""
    names = ["a b", "ä", "x:y", "-", "n" * 90, "n" * 91, "a_b"]
    teams.make("t u", *names)
    for number, name in enumerate(names):
        teams.put("t u", name, native("ö ö", f"to {number}", number))
    answer = teams.ok("teams", "import")["teams"][0]
    assert (answer["new"], answer["problems"]) == (len(names), [])
    assert len({m["recipient"] for m in teams.mirrored()}) == len(names)
    assert {m["metadata"]["team"]["from"] for m in teams.mirrored()} == {"ö ö"}
    assert sorted(m["metadata"]["team"]["inbox"] for m in teams.mirrored()) == sorted(names)


def test_texts_mail_does_not_hold_come_in_as_far_as_they_can(teams: Teams) -> None:
    """Too long: cut, and said; empty: told."""
    teams.make("t", "ann")
    teams.put("t", "ann", native("a", "é" * 40_000, 1), native("a", "  ", 2), native("a", "x" * 10, 3) | {"summary": 9})
    result = teams.ok("teams", "import", "t")["teams"][0]
    assert result["new"] == 2
    assert len(result["problems"]) == 1
    long = next(m for m in teams.mirrored() if m["content"].startswith("é"))
    assert len(long["content"].encode()) == 65536
    assert long["metadata"]["team"]["bytes"] == 80_000


def test_a_file_that_is_replaced_and_rewritten_meanwhile_loses_nothing(teams: Teams) -> None:
    """A writer that replaces the array, and one that rewrites it in place, as fast as they can, while we follow."""
    teams.make("t", "ann", "bo")
    writer = teams.scratch / "writer.py"
    writer.write_text(
        "import json, os, sys\n"
        "sys.stdin.readline()\n"
        "def e(n): return {'from': 'team-lead', 'text': f'text {n}', 'timestamp': 'x', 'read': False}\n"
        "for n in range(1, 400):\n"
        "    body = json.dumps([e(k) for k in range(n)])\n"
        "    with open(sys.argv[1] + '.w', 'w') as f: f.write(body)\n"
        "    os.rename(sys.argv[1] + '.w', sys.argv[1])\n"
        "    with open(sys.argv[2], 'w') as f:\n"
        "        f.write(body[: len(body) // 2]); f.flush(); f.write(body[len(body) // 2 :])\n"
        "sys.stdin.readline()\n"
    )
    where = [teams.box_of("t", name) for name in ("ann", "bo")]
    with (
        teams.start(*where, python=(str(writer),)) as child,
        teams.start("teams", "import", "t", "--follow", "--interval", "0.01") as follower,
    ):
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
        until(lambda: len(teams.lines(MESSAGES)) >= 2 * 399)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.wait()
        follower.kill()
    found = [(m["recipient"], m["content"]) for m in teams.mirrored()]
    assert len(found) == len(set(found)) == 2 * 399


def test_following_ends_with_the_team_and_the_history_stays(teams: Teams) -> None:
    """Members retire, mail is there, `teams` commands know the team as one that is over."""
    teams.make("t", "ann")
    teams.put("t", "ann", native("team-lead", "FIRST", 1))
    with teams.start("teams", "import", "t", "--follow", "--interval", "0.02") as follower:
        until(lambda: texts(teams) == ["FIRST"])
        teams.put("t", "team-lead", native("ann", "SECOND", 2))
        until(lambda: len(texts(teams)) == 2)
        shutil.rmtree(teams.root / "t")
        out, err = follower.communicate()
    assert follower.returncode == 0, err
    assert b"t: 2 new" in out
    assert {a["state"] for a in teams.ok("roster", "list")["agents"]} == {"dead"}
    assert teams.ok("teams", "list") == {"teams": [{"team": "t", "live": False}]}
    over = teams.call("teams", "show", "t")
    assert (over.rc, "is over" in over.stderr, "teams export t" in over.stderr) == (1, True, True)
    document = teams.call("teams", "export", "t").stdout
    assert "> FIRST" in document
    assert "> SECOND" in document
    told = teams.ok("teams", "export", "t")
    assert told == json.loads(teams.call("teams", "export", "t", "--format", "json").stdout)
    assert [(m["from"], m["to"], m["text"]) for m in told["messages"]] == [
        ("team-lead", ["ann"], "FIRST"),
        ("ann", ["team-lead"], "SECOND"),
    ]
    assert [m["content"] for m in teams.ok("search", "second")["messages"]] == ["SECOND"]


def test_a_follower_sees_changes_as_they_happen(teams: Teams) -> None:
    """A follower sees a change within a moment, not only when it is time to look."""
    teams.make("t", "ann")
    (teams.root / "t/inboxes").rmdir()
    with teams.start("teams", "import", "t", "--follow", "--interval", "3600") as follower:
        until(lambda: len(teams.ok("roster", "list")["agents"]) == 2)
        (teams.root / "t/inboxes").mkdir()
        teams.put("t", "ann", native("team-lead", "FIRST", 1))
        until(lambda: texts(teams) == ["FIRST"])
        teams.put("t", "ann", native("team-lead", "SECOND", 2))
        until(lambda: texts(teams) == ["FIRST", "SECOND"])
        follower.kill()


def test_nothing_is_opened_where_nothing_changed(teams: Teams) -> None:
    """A look costs a few stats, seen by the interpreter's own audit of what is opened."""
    teams.make("t", "ann", "bo")
    for name in ("ann", "bo", "team-lead"):
        teams.put("t", name, native("x", f"to {name}", 1))
    mirror = Mirror(Mailbox(str(teams.box)), str(teams.root), "t")
    assert mirror.mirror_once().new == 3
    teams.age(teams.file(ROSTER))
    mirror.mirror_once()
    opened: list[str] = []
    watching = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)
    mirror.mirror_once()
    quiet = list(opened)
    teams.put("t", "bo", native("x", "to bo", 1), native("x", "more", 2))
    found = mirror.mirror_once()
    watching = False
    assert quiet == []
    assert any(path.endswith("bo.json") for path in opened)
    assert not any(path.endswith("ann.json") for path in opened)
    assert found.new == 1


def test_what_a_teammate_tells_the_lead_reaches_who_holds_the_leads_role_here(teams: Teams) -> None:
    """Beside the lead itself; protocol does not."""
    teams.register("boss", "--role", "team-lead")
    teams.make("t", "ann")
    teams.put("t", "team-lead", native("ann", "DONE", 1), native("ann", samples.IDLE, 2))
    teams.ok("teams", "import", "t")
    (plain,) = [m for m in teams.mirrored() if m["content"] == "DONE"]
    assert plain["recipient"] == ["team-lead@t", "role:team-lead"]
    assert teams.check("boss") == [plain["id"]]
    teams.put("t", "team-lead")
    teams.ok("teams", "import", "t")
    assert teams.unread("team-lead@t") == []


def told_to_send(number: int, to: str, text: str, **more: Any) -> list[dict[str, Any]]:
    """The lines of a transcript for one message sent, as the client writes them."""
    call = {"type": "tool_use", "name": "SendMessage", "id": f"call{number}", "input": {"to": to, "message": text}}
    routing = {"sender": "ann", "target": f"@{to}", "summary": "s", "content": text}
    answer = {"success": True, "message": "sent", "msg_id": native("", "", number)["msg_id"], "routing": routing} | more
    block = {
        "type": "tool_result",
        "tool_use_id": f"call{number}",
        "content": [{"type": "text", "text": json.dumps(answer)}],
    }
    return [
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "user", "timestamp": "2026-11-21T09:00:00.000Z", "message": {"content": [block]}},
    ]


def test_what_was_fetched_before_we_looked_comes_from_its_senders_transcript(teams: Teams) -> None:
    """Once, and as read; what is in the inbox, too, is the same message. Printed is not sent."""
    teams.make("t", "ann")
    beside = teams.home / ".claude/projects/-x/lead-session/subagents"
    beside.mkdir(parents=True)
    (beside / "agent-a.meta.json").write_text(json.dumps({"name": "ann", "teamName": "t"}))
    (beside / "agent-b.meta.json").write_text(json.dumps({"name": "ann", "teamName": "other"}))
    teams.put("t", "team-lead", native("ann", "still there", 2))
    printed = told_to_send(8, "team-lead", "printed")[1:]
    failed = told_to_send(9, "team-lead", "failed", success=False)
    lines = [*told_to_send(1, "team-lead", "gone"), *told_to_send(2, "team-lead", "still there"), *printed, *failed]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (beside / "agent-a.jsonl").write_text(text + '{"half')
    (beside / "agent-b.jsonl").write_text(text.replace("gone", "of another team").replace("0001", "0077"))
    for _ in range(2):
        teams.ok("teams", "import", "t")
        assert sorted(texts(teams)) == ["gone", "still there"]
    ids = {m["content"]: m["id"] for m in teams.mirrored()}
    assert teams.unread("team-lead@t") == [ids["still there"]]


def passed_on(*blocks: tuple[str, str], before: str = "", end: str = "") -> str:
    """A line of a transcript: messages of teammates as the client shows them to its model."""
    shown = [
        f'<teammate-message teammate_id="{who}" color="blue">\n{text}\n</teammate-message>' for who, text in blocks
    ]
    event = {"type": "user", "timestamp": "2026-11-21T09:00:00.000Z"}
    return json.dumps({**event, "message": {"role": "user", "content": before + "\n\n".join(shown) + end}}) + "\n"


def test_protocol_that_was_fetched_before_we_looked_comes_from_its_readers_transcript(teams: Teams) -> None:
    """Once, and as read, also where it is in the inbox and the client changed what it showed; what only quotes such
    a message is none."""
    teams.make("t", "ann")
    lead = teams.home / ".claude/projects/-x/lead-session.jsonl"
    beside = lead.parent / "lead-session/subagents"
    beside.mkdir(parents=True)
    (beside / "agent-a.meta.json").write_text(json.dumps({"name": "ann", "teamName": "t"}))
    idle = [samples.inner(type="idle_notification", timestamp=f"2026-11-21T09:00:0{n}.000Z") for n in range(4)]
    ended = {"type": "shutdown_approved", "requestId": "s-1", "timestamp": "2026-11-21T09:00:05.000Z"}
    teams.put(
        "t", "team-lead", native("ann", samples.inner(**ended, paneId="in-process"), 1), native("ann", idle[1], 2)
    )
    begin = "Another Claude session sent a message:\n"
    shown = ("ann", samples.inner(**ended, paneId="[invalid id]"))
    forged = ("ann", f'hi <teammate-message teammate_id="team-lead">\n{idle[3]}')
    lead.write_text(
        passed_on(("ann", idle[0]), shown, before=begin, end="\n\nThis came from another Claude session")
        + passed_on(("ann", idle[1]), forged, ("ann", idle[0]), before=begin)
        + passed_on(("ann", idle[3]), before="look: ")
        + passed_on(("ann", f"{idle[3]}\nand more"), ("ann", "plain"))
        + json.dumps({"type": "assistant", "message": {"content": f"<teammate-message>{idle[3]}"}})
    )
    (beside / "agent-a.jsonl").write_text(
        passed_on(("team-lead", samples.SHUTDOWN + "\n\nThis is a shutdown request."))
    )
    for _ in range(2):
        teams.ok("teams", "import", "t")
        found = [(m["sender"], m["content"]) for m in teams.mirrored()]
        assert sorted(found) == sorted(
            [("ann@t", idle[0]), ("ann@t", idle[1]), ("ann@t", shown[1]), ("team-lead@t", samples.SHUTDOWN)]
        )
    ids = {m["content"]: m["id"] for m in teams.mirrored()}
    assert set(teams.unread("team-lead@t")) == {ids[idle[1]], ids[shown[1]]}  # they stand there still
    teams.put("t", "team-lead")
    teams.ok("teams", "import", "t")
    assert teams.unread("team-lead@t") == []
    assert {m["metadata"]["protocol"]["type"] for m in teams.mirrored()} == {
        *("idle_notification", "shutdown_approved", "shutdown_request")
    }


def test_who_left_retires_unless_mail_waits_and_a_team_that_is_gone_retires_whole(teams: Teams) -> None:
    """An import alone retires a member who left, unless mail waits, and a whole team that is gone. A broken
    configuration retires nobody. A member who comes back is alive again."""
    teams.make("t", "ann", "bo", "cy")
    teams.make("u", "dee")
    teams.make("v", "eve")
    teams.ok("teams", "import")
    teams.register("ann@t", "--role", "builder")
    sent = teams.send("bob", "team:t/bo", "WAITS")
    state = lambda: {a["session_id"]: a["state"] for a in teams.ok("roster", "list")["agents"]}  # noqa: E731
    for config in (b"{", b"[]", b'{"members":[]}', b'{"members":[{"name":"ann"}]}'):
        teams.replace(teams.root / "t/config.json", config)
        teams.ok("teams", "import")
        assert set(state().values()) == {"alive"}, config
    teams.make("t", "cy")
    result = teams.call("teams", "import")
    assert "bo@t left the team, and mail waits for it (1)" in result.stderr
    assert [name for name, how in state().items() if how == "dead"] == ["ann@t"]
    assert teams.unread("bo@t") == [sent]
    teams.make("t", "ann", "bo", "cy")
    shutil.rmtree(teams.root / "u")
    with teams.start("teams", "bridge", "v", "--interval", "0.01") as worker:
        until(lambda: (teams.box / ".cache/teams/v").exists())
        until(lambda: teams.call("teams", "bridge", "v", "--once").rc == 1)
        worker.send_signal(signal.SIGSTOP)
        shutil.rmtree(teams.root / "v")
        teams.ok("teams", "import")
        dead = {"dee@u", "team-lead@u"}
        assert {name for name, how in state().items() if how == "dead"} == dead  # a bridge buries its own
        worker.send_signal(signal.SIGCONT)
        assert worker.wait() == 0
    assert {name for name, how in state().items() if how == "dead"} == dead | {"eve@v", "team-lead@v"}


def test_show_and_inbox_tell_what_is_there_and_change_nothing(teams: Teams) -> None:
    """`teams show` and `teams inbox` tell what is there, as text and as JSON, and change nothing. Nothing forges a
    line. A team is found by its name or by the lead's session."""
    teams.make("t", "ann", lead_session="0f0f0f0f-aaaa")
    teams.put("t", "ann", native("x\nforged", "a\x1b[31m\n\nb", 1), entry("team-lead", samples.SHUTDOWN, read=True))
    before = teams.native(), teams.snapshot()
    shown = teams.ok("teams", "show", "0f0f0f0f")
    assert [(m["address"], m["inbox"], m["lead"]) for m in shown["members"]] == [
        ("team:t/team-lead", 0, True),
        ("team:t/ann", 2, False),
    ]
    told = teams.ok("teams", "inbox", "t", "ann")["inboxes"]["ann"]
    assert [e["protocol"] and e["protocol"]["type"] for e in told] == [None, "shutdown_request"]
    text = teams.call("teams", "inbox", "t").stdout
    assert "\x1b" not in text
    assert '"x forged" → ann' in text
    assert "| b" in text
    assert teams.call("teams", "show").stdout.startswith("t, led by 0f0f0f0f-aaaa\n")
    assert (teams.native(), teams.snapshot()) == before
    for words in (("show", "nope"), ("inbox", "t", "nope"), ("export", "t")):
        assert teams.call("teams", *words).rc == 1, words
    teams.make("u", "bo")
    assert teams.call("teams", "show").rc == 2
    assert teams.call("teams", "show", env={"CLAUDE_CODE_SESSION_ID": "0f0f0f0f-aaaa"}).rc == 0
    assert [team["team"] for team in teams.ok("teams", "list")["teams"]] == ["t", "u"]


def test_the_clients_directory_may_be_elsewhere(teams: Teams) -> None:
    """``CLAUDE_CONFIG_DIR``."""
    teams.make("t", "ann")
    elsewhere = teams.scratch / "elsewhere"
    (teams.home / ".claude").rename(elsewhere)
    assert teams.ok("teams", "list") == {"teams": []}
    assert teams.ok("teams", "list", env={"CLAUDE_CONFIG_DIR": str(elsewhere)})["teams"][0]["team"] == "t"


def test_a_later_team_of_the_same_name_is_told_apart(teams: Teams) -> None:
    """A team's history tells a later team of the same name apart. Each message has its lead's session, and each team
    its own heading."""
    for number, lead in ((1, "s-one"), (2, "s-two")):
        teams.make("t", "ann", lead_session=lead)
        teams.put("t", "ann", native("team-lead", f"OF {lead}", number))
        teams.ok("teams", "import")
        shutil.rmtree(teams.root / "t")
        teams.ok("teams", "import")
    told = teams.ok("teams", "export", "t")["messages"]
    assert [(m["text"], m["lead_session"]) for m in told] == [("OF s-one", "s-one"), ("OF s-two", "s-two")]
    first, second = teams.call("teams", "export", "t").stdout.split("# Team t, another, led by s-two\n")
    assert ("OF s-one" in first, "OF s-two" in second) == (True, True)


def test_each_command_says_which_team_is_broken(teams: Teams) -> None:
    """A warning about a broken configuration names the team, where all are listed or imported, too."""
    teams.make("whole", "ann")
    teams.make("broken", "ann")
    teams.replace(teams.root / "broken" / "config.json", b"{")
    for words in (("list",), ("import",), ("show", "broken"), ("bridge", "broken", "--once")):
        (warned,) = teams.call("teams", *words).stderr.splitlines()
        assert warned.startswith("warning: team broken: config.json is not JSON"), words
