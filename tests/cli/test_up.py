"""``up`` and ``down``: what a team's file may say, who is asked, what is started and how often.

``CLAUDE`` takes the place of the client: it answers as its background service does. ``tests/e2e/test_up.py`` has the
real ones. Beside programs that say nothing, half a line or too much, what was started is known or ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.cli.context import Context
from agent_mailbox.clients import codex_server
from agent_mailbox.clients.starting import claude_background, codex_app_server, opencode_server, start, tmux
from agent_mailbox.clients.starting.start import Begun
from agent_mailbox.commands import fleet
from agent_mailbox.core.instant import DAY
from agent_mailbox.core.team_file import PlannedMember, Team
from agent_mailbox.errors import Refused, StorageFailed
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.mailbox.session_brake import SessionBrake
from agent_mailbox.store.files import programs
from agent_mailbox.store.user_state import processes, team_records
from tests.helpers import Child, each, refused, until
from tests.surroundings import at_terminal, line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_mailbox.clients.starting.start import Start
    from tests.helpers import Post


CLAUDE = f"""#!{sys.executable} -IS
import json, os, sys, uuid
words = sys.argv[1:]
with open(os.environ["HOME"] + "/calls", "a") as file:
    print(json.dumps([words, sorted(name for name in os.environ if name.startswith("AGENT_MAILBOX_"))]), file=file)
if "--bg" in words and "--resume" not in words:
    me = str(uuid.uuid4())
    place = os.environ["HOME"] + "/.claude/jobs/" + me[:8]
    os.makedirs(place)
    open(place + "/state.json", "w").write(json.dumps({{"sessionId": me}}))
    print("backgrounded \\N{{MIDDLE DOT}} " + me[:8] + "\\n  claude agents")
if "--bg" not in words:
    sys.stdin.read()
"""
TEAM = """
[member.Bob]
client = "claude"
role = ["builder"]
lead = "Ann"
model = "small"
prompt = "Build."

[member.Ann]
client = "claude"
tags = "domain:docs"
prompt = "Lead."

[rules.builder]
deny = ["Bash(git push:*)"]

[[task]]
title = "Begin"
to = "role:builder"
body = "At dawn."
"""


@pytest.fixture
def team(post: Post) -> Post:
    """A project with a team's file, and a program in the client's place on the PATH."""
    (tools := post.scratch / "tools").mkdir()
    (tools / "claude").write_text(CLAUDE)
    (tools / "claude").chmod(0o755)
    post.env["PATH"] = f"{tools}:{post.env['PATH']}"
    (post.cwd / "team.toml").write_text(TEAM)
    return post


def calls(team: Post) -> list[list[list[str]]]:
    """How the client was called, in order: its words, and the names of our variables that it had."""
    path = team.home / "calls"
    return [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []


def test_each_member_is_started_once_under_its_name_and_brought_back_as_the_same_session(team: Post) -> None:
    """The lead goes first. The roster has name, role, tags and lead by the person's proof before a first turn. The
    client has none of the terminal's variables. Rules and tasks are given once. Again, a missing one is resumed."""
    first = team.call(
        "up", "--yes", "--wait", "0", "--json", env={"AGENT_MAILBOX_NAME": "Eve", "AGENT_MAILBOX_ROLE": "boss"}
    )
    assert first.rc == 0, first
    started = {one["name"]: one["session_id"] for one in first.json["members"]}
    assert [words[-1] for words, _ in calls(team)] == ["Lead.", "Build."]
    assert calls(team)[1][0][:3] == ["--bg", "--model", "small"]
    for _, ours in calls(team):
        assert not {*fleet.OURS} & {*ours}
    agents = {one["name"]: one for one in team.ok("roster", "list")["agents"]}
    assert (agents["Bob"]["lead"], agents["Bob"]["tags"]) == (started["Ann"], ["role:builder"])
    assert agents["Ann"]["tags"] == ["domain:docs"]
    assert "git push" in team.call("control", "policy", "Bob").stdout
    again = team.call("up", "--wait", "0", "--json")
    assert {one["name"]: one["session_id"] for one in again.json["members"]} == started
    assert [words[1:3] for words, _ in calls(team)[2:]] == [["--resume", started["Ann"]], ["--resume", started["Bob"]]]
    (task,) = team.ok("task", "list")["tasks"]
    assert task["title"] == "Begin"
    assert "At dawn." in team.call("task", "show", task["id"]).stdout
    status = team.ok("up", "--status")
    assert len(calls(team)) == 4
    assert [one["name"] for one in status["members"]] == ["Bob", "Ann"]
    assert {one["how"] for one in team.ok("down", "--wait", "0")["members"]} == {"was not running"}


def test_a_member_with_a_checkout_of_its_own_begins_in_it_and_the_client_keeps_it(team: Post) -> None:
    """The client makes it, by the member's name, once: a resumed session has it. The question says so. A client that
    makes none is refused, in place of a member in the others' checkout."""
    own = TEAM.partition("[[task]]")[0].replace('prompt = "Build."', 'prompt = "Build."\nworktree = true')
    (team.cwd / "team.toml").write_text(own)
    team.env.pop("AGENT_MAILBOX_TEST_CALLER")
    shown = at_terminal(team, line("up", "--wait", "0"), answer="y\n").stdout
    assert "Bob: Claude Code, builder, lead Ann, small, own checkout" in shown
    assert at_terminal(team, line("up", "--wait", "0")).rc == 0
    trees = [words[words.index("--worktree") + 1] for words, _ in calls(team) if "--worktree" in words]
    assert (trees, len(calls(team))) == (["Bob"], 4)
    (team.cwd / "team.toml").write_text(own.replace('"claude"', '"codex"', 1))
    assert "makes no checkout of its own" in at_terminal(team, line("up")).stdout


def test_a_member_is_woken_as_often_a_day_as_the_file_says_and_the_person_s_limit_is_above_it(team: Post) -> None:
    """It counts for a member that is there already, too, and goes with its line. The file raises no limit of the
    person's. The question says it."""

    def wakes(per_day: int | None) -> int:
        rows = TEAM if per_day is None else TEAM.replace('"Build."', f'"Build."\nwakes_per_day = {per_day}')
        (team.cwd / "team.toml").write_text(rows)
        told = team.call("up", "--yes", "--wait", "0", "--json")
        bob = told.json["members"][0]["session_id"]
        count = 0
        for number in range(4):
            team.send("ann", bob, f"part {per_day} {number}", "--ttl-hours", "1000")
            desk = OpenMailbox(str(team.box), clock=lambda: now)
            count += SessionBrake(desk, bob).may_ring(Delivery(desk).peek(bob)).wakes
            team.check(bob)
        return count

    team.configure("[wake]\ngap_seconds = 0\nper_day = 3\n")
    now = OpenMailbox(str(team.box)).now()
    (team.cwd / "team.toml").write_text(TEAM.replace('"Build."', '"Build."\nwakes_per_day = 4'))
    shown = at_terminal(team, line("up", "--wait", "0"), answer="n\n").stdout
    assert "at most 4 wakes a day" in shown
    for per_day, expected in ((1, 1), (9, 3), (None, 3), (2, 2)):
        now += 2 * DAY
        assert wakes(per_day) == expected, per_day


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_members_are_started_in_windows_of_tmux_and_ended_there(team: Post) -> None:
    """Each has a window by its name, in the project, and its own variables alone. Nothing in a path is an order to
    tmux. A second `up` leaves a window alone, and says how to see it. `down` ends all."""
    evil = team.cwd / "#(touch pwned) #{pid}"
    evil.mkdir()
    (evil / "team.toml").write_text(TEAM)
    team.env["TMUX_TMPDIR"] = str(team.scratch)
    team.env.pop("TMUX", None)
    try:
        up = team.call("up", "--tmux", "--yes", "--wait", "0", "--json", cwd=evil)
        assert up.rc == 0, up
        until(lambda: len(calls(team)) == 2)
        assert sorted(words[-1] for words, _ in calls(team)) == ["Build.", "Lead."]
        assert all("--session-id" in words and "AGENT_MAILBOX_NAME" in ours for words, ours in calls(team))
        form = "#{window_name}|#{pane_current_path}"
        asked = ["tmux", "list-windows", "-a", "-F", form]
        told = subprocess.run(asked, env=team.env, capture_output=True, text=True, check=True).stdout
        assert sorted(told.splitlines()) == [f"Ann|{evil}", f"Bob|{evil}"]
        again = team.call("up", "--tmux", "--yes", "--wait", "0", cwd=evil).stdout.splitlines()
        name = again[-1].partition("tmux attach -t ")[2]
        subprocess.run(["tmux", "has-session", "-t", name], env=team.env, check=True)
        ended = team.ok("down", "--wait", "0", cwd=evil)["members"]
        assert len(ended) == 2
        until(lambda: subprocess.run(asked, env=team.env, capture_output=True).returncode != 0)
        assert not list(team.scratch.rglob("pwned"))
    finally:
        subprocess.run(["tmux", "kill-server"], env=team.env, capture_output=True)


@each(
    "case",
    [
        ('command = ["sh"]', "names no program and no permission"),
        ('allow = ["Bash"]', "names no program and no permission"),
        ('rolle = "x"', "did you mean role?"),
        ('model = "--dangerously-skip-permissions"', "is no model"),
        ('lead = "Zoe"', "is no other member"),
        ('lead = "Bob"', "is no other member"),
        ('client = "vi"', "use one of claude, codex, opencode"),
        ("client = 1", "must be a text of 1 to"),
        (f'prompt = "{"x" * 20_001}"', "must be a text of at most"),
        ("tags = [1]", "must be a list of texts"),
        ('prompt = "a\\u0000b"', "has a null character"),
        ("worktree = 1", "must be true or false"),
        ("wakes_per_day = 0", "must be a whole number"),
        ("wakes_per_day = true", "must be a whole number"),
        ("[rules]\nbuilder = 1", "write [rules.NAME] above each"),
        ("[task]\nbuilder = 1", "write [[task]] above each"),
        ('[[task]]\ntitle = "x"\nto = "foo:bar"', "unknown namespace: 'foo'"),
        ('[[task]]\ntitle = " "\nto = "all"', "needs a title, and one address"),
        ('[[task]]\ntitle = "x"\nto = "Ann,Bob"', "needs a title, and one address"),
        ('[rules.builder]\ndeny = ["Bash("]', "is no permission rule"),
        ('role = "Ann"', "[member.Ann]: another member or a role is called so"),
        ('[member.bob]\nclient = "claude"', "another member or a role is called so"),
    ],
)
def test_a_file_that_says_more_than_it_may_starts_nobody(team: Post, case: tuple[str, str]) -> None:
    """It comes with a checkout: no program, no permission, no option of the client. The error says what is wrong."""
    line, said = case
    kept = [row for row in TEAM.partition("[member.Ann]")[0].splitlines() if row.split(" ")[0] != line.split(" ")[0]]
    (team.cwd / "team.toml").write_text("\n".join([*kept, line, "[member.Ann]", 'client = "claude"']))
    done = team.call("up", "--yes")
    assert said in done.stderr, done
    assert done.rc in (2, 3)
    assert calls(team) == []


@pytest.mark.parametrize("number", [0, 33])
def test_a_file_of_no_member_or_of_too_many_starts_nobody(team: Post, number: int) -> None:
    """Each would cost the person a client."""
    rows = [f'[member.N{n}]\nclient = "claude"' for n in range(number)]
    (team.cwd / "team.toml").write_text("\n".join(rows))
    refused(team.call("up", "--yes"), 3, f"the team has {number} members", "write 1 to 32 tables")
    assert calls(team) == []


@each(
    "content",
    [
        *(
            "",
            "{",
            "[]",
            "[" * 100_000,
            "\x00",
            '{"members":5}',
            '{"members":{"Ann":5}}',
            '{"members":{"Ann":{"pid":"x"}}}',
        ),
        *('{"members":{"Ann":{"denied":"x"}}}', '{"agreed":1}', '{"has_tasks":0}'),
    ],
)
def test_a_team_s_record_that_cannot_be_read_is_told(team: Post, content: str) -> None:
    """Its members may run: no team was said to be started, and `down` ended nobody."""
    file, environ = str(team.cwd / "team.toml"), team.environ()
    team_records.save_record(file, team_records.TeamRecord(agreed="x"), environ)
    path = Path(team_records._path(file, environ))
    path.write_text(content)
    for words in (("up", "--yes"), ("up", "--status"), ("down",)):
        refused(team.call(*words), 3, f"the record of the team is damaged: {path}", f"then run `rm {path}`")
    assert calls(team) == []


def test_a_key_of_a_later_version_in_a_team_s_record_is_passed_over(team: Post) -> None:
    """A step back to this version keeps the team."""
    file, environ = str(team.cwd / "team.toml"), team.environ()
    ann = team_records.Started(session_id="ann", client="claude", denied=("Bash(rm:*)",))
    known = team_records.TeamRecord(agreed="x", members={"Ann": ann}, has_tasks=True)
    team_records.save_record(file, known, environ)
    path = Path(team_records._path(file, environ))
    path.write_text(
        path.read_text().replace('"agreed"', '"later": 1, "agreed"').replace('"client"', '"more": [], "client"')
    )
    assert team_records.load_record(file, environ) == known


def test_without_tmux_nobody_is_started_or_registered(team: Post) -> None:
    """An agent that is in the roster and nowhere else would be sent mail."""
    done = team.call("up", "--tmux", "--yes", env={"PATH": str(team.scratch / "tools")})
    refused(done, 1, "tmux is not on your PATH", "leave --tmux out")
    assert team.ok("roster", "list")["agents"] == []


def test_two_that_lead_each_other_are_refused(team: Post) -> None:
    """No member is started of a team in which nobody could decide."""
    (team.cwd / "team.toml").write_text(TEAM.replace('tags = "domain:docs"', 'lead = "Bob"'))
    refused(team.call("up", "--yes"), 1, "lead each other")
    assert calls(team) == []


def test_a_file_asks_once_and_again_when_it_or_the_program_is_changed(team: Post) -> None:
    """The question shows all of the prompts and tasks, and the program. What was agreed is the user's own record, not
    the checkout's."""
    team.env.pop("AGENT_MAILBOX_TEST_CALLER")
    long = f"Build. {'Then rest. ' * 9}Then push."
    (team.cwd / "team.toml").write_text(TEAM.replace("Build.", long))
    refused(team.run("up"), 1, "nobody can be asked here")
    shown = at_terminal(team, line("up"), answer="n\n").stdout
    for word in ("Bob: Claude Code, builder, lead Ann, small", long, "At dawn.", "tools/claude", "git push", "| Begin"):
        assert word in shown
    assert calls(team) == []
    records = team.user_state / "teams"
    assert not list(records.glob("*.json"))
    for change, asks in (("", True), ("", False), ("# a pull\n", True)):
        with open(team.cwd / "team.toml", "a") as file:
            file.write(change)
        done = at_terminal(team, line("up", "--wait", "0"), answer="y\n")
        assert ("Start this team?" in done.stdout) == asks, done
    assert len(list(records.glob("*.json"))) == 1
    assert os.stat(next(records.glob("*.json"))).st_mode & 0o077 == 0


def test_the_example_is_a_file_that_works_and_replaces_none(team: Post) -> None:
    """It is written for a client that is there; one that is there already stays."""
    refused(team.call("up", "--example"), 1, "is there already")
    (team.cwd / "team.toml").unlink()
    refused(team.call("up"), 1, f"`agent-mailbox up --example {team.cwd}/team.toml` writes one")
    refused(team.call("up", "."), 2, f"name the team's file: `agent-mailbox up {team.cwd}/team.toml`")
    refused(team.call("up", "--example", "."), 2, f"`agent-mailbox up --example {team.cwd}/team.toml`")
    assert team.call("up", "--example", "two.toml").stdout.endswith(f"Start it: agent-mailbox up {team.cwd}/two.toml\n")
    assert team.call("up", "--example").stdout.endswith("Start it: agent-mailbox up\n")
    assert 'client = "claude"' in (team.cwd / "team.toml").read_text()
    assert team.call("up", "--yes", "--wait", "0").rc == 0
    assert len(calls(team)) == 2
    refused(team.call("down", "other.toml"), 1, "no team was started")


def test_one_command_at_a_time_is_at_work_on_a_team(team: Post) -> None:
    """Two at once would start each member twice, and one of the two would be nobody's."""
    with team_records.lock_team(str(team.cwd / "team.toml"), team.environ()):
        for verb in ("up", "down"):
            refused(team.call(verb), 4, "another `up` or `down` is at work", "run it again when that is done")
    assert calls(team) == []


def test_a_name_that_another_has_is_refused_before_a_client_is_started(team: Post) -> None:
    """A started client that is then refused its name would run on, in no record, and each `up` would add one."""
    team.register("zed", "--name", "Bob")
    refused(team.call("up", "--yes", "--wait", "0"), 1, "'Bob' is taken by zed")
    assert calls(team) == []


def test_a_client_that_fails_is_told_with_the_member_and_who_was_started_stays_known(team: Post) -> None:
    """The person sees whom it is about. The next `up` goes on, and brings back the first as the same session."""
    (team.scratch / "tools/claude").write_text(
        CLAUDE.replace('if "--bg"', 'if words[-1] == "Build.": sys.exit("boom")\nif "--bg"', 1)
    )
    refused(team.call("up", "--yes", "--wait", "0"), 1, "Bob was not started: ", "boom")
    ann = team.ok("up", "--status")["members"][1]["session_id"]
    (team.scratch / "tools/claude").write_text(CLAUDE)
    again = team.call("up", "--wait", "0", "--json").json["members"]
    assert (again[1]["session_id"], again[0]["state"]) == (ann, "no hook yet")


def test_a_name_is_free_for_another_while_its_member_could_not_be_started(team: Post) -> None:
    """The session that took it is no member: `up` would bring it back, put it under the team's rules, and end it."""
    (team.scratch / "tools/claude").write_text(
        CLAUDE.replace('if "--bg"', 'if words[-1] == "Build.": sys.exit("boom")\nif "--bg"', 1)
    )
    refused(team.call("up", "--yes", "--wait", "0"), 1, "Bob was not started: ", "boom")
    team.register("zed", "--name", "Bob")
    (team.scratch / "tools/claude").write_text(CLAUDE)
    refused(team.call("up", "--wait", "0"), 1, "'Bob' is taken by zed")
    assert team.call("down", "--wait", "0").stdout == "Ann: was not running\n"


def test_an_address_that_does_not_answer_in_http_is_told_as_any_wrong_answer(team: Post) -> None:
    """OpenCode may have printed the address of something else: that is no defect of ours."""
    with socket.create_server(("127.0.0.1", 0)) as line:
        said = f"listening on http://127.0.0.1:{line.getsockname()[1]}"
        (team.scratch / "tools/opencode").write_text(f'#!/bin/sh\necho "{said}"\nexec sleep 1000\n')
        (team.scratch / "tools/opencode").chmod(0o755)
        (team.cwd / "team.toml").write_text('[member.Bob]\nclient = "opencode"\nprompt = "Build."\n')

        def answer() -> None:
            peer, _ = line.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(b"no HTTP\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        refused(team.call("up", "--yes", "--wait", "0"), 1, "OpenCode's server does not answer as expected")


def test_one_that_cannot_be_started_keeps_no_other_from_its_start_and_its_rules(team: Post) -> None:
    """Only those whom it leads wait: the person would lead them. The tasks wait for all."""
    (team.scratch / "tools/claude").write_text(
        CLAUDE.replace('if "--bg"', 'if words[-1] == "Lead.": sys.exit("boom")\nif "--bg"', 1)
    )
    others = "".join(f'[member.{name}]\nclient = "claude"\nrole = "builder"\n' for name in ("Cid", "Dot"))
    (team.cwd / "team.toml").write_text(f"{TEAM}\n{others}")
    told = team.call("up", "--yes", "--wait", "0")
    refused(told, 1, "Ann was not started: ", "boom")
    assert "Bob was not started: it is led by Ann; run `up` again" in told.stderr
    assert {words[-1].split()[2] for words, _ in calls(team)[1:]} == {"Cid.", "Dot."}
    assert [team.call("control", "policy", name).stdout.count("git push") for name in ("Cid", "Dot")] == [1, 1]
    assert team.ok("task", "list")["tasks"] == []
    (team.scratch / "tools/claude").write_text(CLAUDE)
    started = {one["name"]: one for one in team.call("up", "--wait", "0", "--json").json["members"]}
    assert {one["state"] for one in started.values()} == {"no hook yet"}
    assert len(team.ok("task", "list")["tasks"]) == 1


@pytest.mark.parametrize("to", ["Nobdy", "stranger"])
def test_a_task_for_nobody_is_refused_before_anybody_is_started(team: Post, to: str) -> None:
    """It would be refused at each `up`, once all members run, or wait for ever. Words for all are taken."""
    (team.cwd / "team.toml").write_text(f'{TEAM}\n[[task]]\ntitle = "Go on"\nto = "{to}"\n')
    refused(team.call("up", "--yes", "--wait", "0"), 3, f"[[task]] to: '{to}' is no member", "name one, or role:NAME")
    assert calls(team) == []
    (team.cwd / "team.toml").write_text(f'{TEAM}\n[[task]]\ntitle = "Go on"\nto = "all"\n')
    assert team.call("up", "--yes", "--wait", "0").rc == 0


def test_an_up_that_was_ended_between_two_tasks_adds_none_twice(team: Post) -> None:
    """The next one adds the others."""
    rest = '\n[[task]]\ntitle = "Go on"\nto = "Bob"\n' * 2
    (team.cwd / "team.toml").write_text(TEAM + rest)
    assert team.call("up", "--yes", "--wait", "0").rc == 0
    file, environ = str(team.cwd / "team.toml"), team.environ()
    record = team_records.load_record(file, environ)
    team_records.save_record(file, record.replace(has_tasks=False), environ)
    assert team.call("up", "--wait", "0").rc == 0
    assert [one["title"] for one in team.ok("task", "list")["tasks"]] == ["Begin", "Go on", "Go on"]


def test_a_member_is_under_its_rules_before_the_others_are_there(team: Post) -> None:
    """While `up` waits for the others, it is at work."""
    with team.start("up", "--yes", "--wait", "3600") as waiting:
        until(lambda: len(calls(team)) == 2)
        until(lambda: "git push" in team.call("control", "policy", "Bob").stdout)
        waiting.kill()


def test_a_member_that_comes_later_has_the_rules_and_so_has_a_rule_that_comes_later(team: Post) -> None:
    """The question shows the rules: who says yes counts on them. Each is given once, so what the person then changes
    stays. Tasks are added as the team begins, and a later question says so."""
    team.env.pop("AGENT_MAILBOX_TEST_CALLER")
    assert at_terminal(team, line("up", "--wait", "0"), answer="y\n").rc == 0
    later = TEAM.replace('push:*)"]', 'push:*)", "Bash(rm:*)"]').replace("dawn", "noon")
    (team.cwd / "team.toml").write_text(f'{later}\n[member.Cid]\nclient = "claude"\nrole = "builder"\n')
    shown = at_terminal(team, line("up", "--wait", "0"), answer="y\n").stdout
    assert "those of the file were added as the team began" in shown
    assert "At noon" not in shown
    for name in ("Bob", "Cid"):
        policy = team.call("control", "policy", name).stdout
        assert policy.count("Bash(git push:*)") == policy.count("Bash(rm:*)") == 1, policy
    assert at_terminal(team, line("control", "policy", "Bob", "--clear"), answer="y\n").rc == 0
    assert at_terminal(team, line("up", "--wait", "0")).rc == 0
    assert "git push" not in team.call("control", "policy", "Bob").stdout
    assert [one["title"] for one in team.ok("task", "list")["tasks"]] == ["Begin"]


def serve(team: Post, session_id: str, process: subprocess.Popen[bytes]) -> None:
    """Have the client's service say that this process runs a session."""
    found = processes.read(process.pid)
    assert found is not None
    job = {"sessionId": session_id, "pid": found.pid, "procStart": found.start}
    (team.home / ".claude/daemon").mkdir(exist_ok=True)
    (team.home / ".claude/daemon/roster.json").write_text(json.dumps({"workers": {session_id[:8]: job}}))


def test_a_session_without_our_hooks_is_started_once_and_is_ended(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's service says that it runs. Resumed while it runs, it would be copied, at each `up`. `down` says
    that it still runs until it does not."""
    monkeypatch.setattr(fleet, "LAST", 0.0)
    (team.cwd / "team.toml").write_text('[member.Ann]\nclient = "claude"\n')
    (ann,) = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
    with Child(["sleep", "1000"]) as worker:
        serve(team, ann["session_id"], worker)
        again = team.call("up", "--wait", "0")
        assert "has not called its hooks yet" in again.stderr
        assert len(calls(team)) == 1
        down = team.call("down", "--wait", "0")
        assert (down.stdout, calls(team)[-1][0]) == ("Ann: still runs\n", ["stop", ann["session_id"][:8]])
        assert "warning: Ann still runs" in down.stderr
        (team.scratch / "tools/claude").write_text(f"#!/bin/sh\nkill -9 {worker.pid}\n")
        monkeypatch.setattr(fleet, "LAST", 60.0)
        assert team.call("down", "--wait", "0").stdout == "Ann: was ended\n"
    assert team.call("down", "--wait", "0").stdout == "Ann: was not running\n"


def test_a_team_has_the_mailbox_with_which_it_was_started(team: Post) -> None:
    """Another mailbox knows nobody of it: what runs would be told as ended, and started twice."""
    assert team.call("up", "--yes", "--wait", "0").rc == 0
    other = team.scratch / "other"
    team.ok("init", other)
    path = team.cwd / "team.toml"
    refused(team.call("up", "--dir", other, "--yes", path), 1, f"works with the mailbox {team.box}", "up --dir")
    assert len(calls(team)) == 2
    assert team.call("down", "--dir", other, "--wait", "0").rc == 0
    assert {one["state"] for one in team.ok("up", "--status")["members"]} == {"frozen"}


def test_a_member_that_gets_another_client_begins_anew_under_its_name(
    team: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No client can bring back a session of another, also at the second try. While the old one runs, nothing is
    started."""
    told = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
    (team.scratch / "tools/codex").symlink_to("claude")
    (team.cwd / "team.toml").write_text(TEAM.replace('"claude"', '"codex"', 1))
    with Child(["sleep", "1000"]) as worker:
        serve(team, told[0]["session_id"], worker)
        refused(team.call("up", "--yes"), 1, "Bob still runs with Claude Code", "agent-mailbox down ")
        worker.kill()
    file, environ = str(team.cwd / "team.toml"), team.environ()
    begun: list[Start] = []
    app = Context(str(team.box))
    app.environ = environ
    made = fleet.Fleet(app, OpenMailbox(str(team.box)), file, team_records.load_record(file, environ), {"codex": ("",)})

    def begin(start: Start, _: object) -> Begun:
        begun.append(start)
        if len(begun) == 1:
            raise Refused("its server did not begin to listen", "see its log")
        return Begun("")

    monkeypatch.setattr(made, "_begin", begin)
    bob = Team((PlannedMember(name="Bob", client="codex", prompt="Build."),))
    assert [[*made.bring_all_up(bob)] for _ in range(2)] == [["Bob"], []]
    assert [(one.session_id, one.prompt) for one in begun] == [("", "Build.")] * 2


def test_a_cleared_member_is_found_as_the_session_that_it_is_now(team: Post) -> None:
    """The old id is dead: brought back, it would be a second one, without its name."""
    told = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
    old = told[0]["session_id"]
    team.ok("roster", "freeze", old)
    team.ok("roster", "register", "--session-id", "new", "--name", "Bob")
    again = team.call("up", "--wait", "0", "--json").json["members"]
    assert again[0]["session_id"] == "new"
    assert calls(team)[-1][0][:3] == ["--bg", "--resume", "new"]


def test_a_session_that_its_client_forgot_begins_anew_under_its_name(team: Post) -> None:
    """The client removes old talks, and has none of a session that was killed in its first turn. It would begin the
    session, and then fail, at each `up`."""
    told = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
    bob, ann = (one["session_id"] for one in told)
    assert team.call("down", "--wait", "0").rc == 0
    (talks := team.home / ".claude/projects/here").mkdir(parents=True)
    (talks / f"{ann}.jsonl").touch()
    again = team.call("up", "--wait", "0", "--json").json["members"]
    assert again[1]["session_id"] == ann
    assert again[0]["session_id"] != bob
    assert [words[-1] for words, _ in calls(team)[-2:]] == [fleet.AGAIN, "Build."]
    assert "git push" in team.call("control", "policy", "Bob").stdout


def test_a_copy_of_a_session_is_ended_and_told(team: Post) -> None:
    """The client's service makes one where it still holds the session. It has neither name nor mail, and costs."""
    assert team.call("up", "--yes", "--wait", "0").rc == 0
    (team.scratch / "tools/claude").write_text(f"{CLAUDE}\nprint('backgrounded - c0b1e5')\n")
    refused(team.call("up", "--wait", "0"), 1, "Ann was not started: ", "made a copy", "run `up` again")
    assert calls(team)[-1][0] == ["stop", "c0b1e5"]


def test_a_session_that_the_service_still_lists_is_let_go_before_it_is_brought_back(team: Post) -> None:
    """It is listed after a restart of the machine, too. The client would make a copy, under another id."""
    (team.cwd / "team.toml").write_text('[member.Ann]\nclient = "claude"\n')
    (ann,) = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
    with Child(["true"]) as gone:
        serve(team, ann["session_id"], gone)
    forgets = 'if words[0] == "stop": os.remove(os.environ["HOME"] + "/.claude/daemon/roster.json")\n'
    (team.scratch / "tools/claude").write_text(CLAUDE + forgets)
    assert team.call("up", "--wait", "0").rc == 0
    asked = [words[:3] for words, _ in calls(team)[1:]]
    assert asked == [["stop", ann["session_id"][:8]], ["--bg", "--resume", ann["session_id"]]]


def test_a_session_in_a_server_of_all_terminals_is_not_told_as_over(
    team: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without our hooks nothing tells whether the person's own server still runs it. One that `up` started for another
    member, or for this one before, ends with that one."""
    (team.cwd / "team.toml").write_text('[member.Ann]\nclient = "codex"\n[member.Bob]\nclient = "codex"\n')
    file, environ = str(team.cwd / "team.toml"), team.environ()
    place = Path(CODEX.find_home(environ)) / "app-server-control/app-server-control.sock"
    place.parent.mkdir(parents=True)
    there = {name: team_records.Started(session_id=name.lower(), client="codex") for name in ("Ann", "Bob")}
    team_records.save_record(file, team_records.TeamRecord(members=there), environ)
    # a socket's path is at most 108 bytes long
    with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{short}/s")
        place.symlink_to(f"{short}/s")
        server.listen()
        down = team.call("down", "--wait", "0")
    assert down.stdout == "Ann: may still run\nBob: may still run\n"
    assert "warning: Ann may still run: " in down.stderr
    assert team.call("down", "--wait", "0").stdout == "Ann: was not running\nBob: was not running\n"
    begin_alike = [f"01a22ae2-ed{n}-7c51-b9bd-841ccfd61cfb" for n in ("58", "8c")]  # Codex's tell the time first
    for one in begin_alike:
        team.register(one)
    alike = {name: there[name].replace(session_id=one) for name, one in zip(there, begin_alike, strict=True)}
    team_records.save_record(file, team_records.TeamRecord(members=alike), environ)
    assert all(one in team.call("up", "--status").stdout for one in begin_alike)
    with Child(["sleep", "1000"]) as process:
        app = Context(str(team.box))
        app.environ = environ
        made = fleet.Fleet(app, OpenMailbox(str(team.box)), file, team_records.TeamRecord(), {"codex": ("",)})
        begun = iter([Begun("ann", server=process.pid), Begun("ann"), Begun("bob")])

        def begin(_: Start, register: Callable[[str], None]) -> Begun:
            one = next(begun)
            register(one.session_id)
            return one

        monkeypatch.setattr(made, "_begin", begin)
        for name in ("Ann", "Ann", "Bob"):
            made.bring_all_up(Team((PlannedMember(name=name, client="codex", prompt="Wait."),)))
        assert {one.pid for one in made.record.members.values()} == {process.pid}
        process.kill()


def test_a_member_that_the_file_does_not_name_any_more_is_told_while_it_runs(team: Post) -> None:
    """Nothing else tells: it goes on, has its mail, and is in no table."""
    told = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
    (team.cwd / "team.toml").write_text(TEAM.replace("Bob", "Cid"))
    with Child(["sleep", "1000"]) as worker:
        serve(team, told[0]["session_id"], worker)
        path = team.cwd / "team.toml"
        said = team.call("up", "--yes", "--wait", "0").stderr
        assert f"Bob is not in {path} any more, and runs: `agent-mailbox down {path}` ends all" in said
        worker.kill()
    assert "any more" not in team.call("up", "--wait", "0").stderr


# -- programs that say nothing, half a line or too much ---------------------------------------------------------------


ONE_MEMBER = '[member.Ann]\nclient = "claude"\nprompt = "Lead."\n'
STATE = 'open(place + "/state.json", "w").write(json.dumps({"sessionId": me}))'
LATE = f"""client = os.getpid()
    if os.fork() == 0:
        while os.getppid() == client:
            pass
        {STATE}
        os._exit(0)"""
LISTED = """os.makedirs(os.environ["HOME"] + "/.claude/daemon")
    job = {"sessionId": me, "dispatch": {"cwd": os.getcwd(), "launch": {"args": ["--", words[-1]]}}}
    other = {"sessionId": "other", "dispatch": {"cwd": "/", "launch": {"args": ["--", words[-1]]}}}
    open(place + "/new", "w").write(json.dumps({"workers": {"other": other, me[:8]: job}}))
    os.rename(place + "/new", os.environ["HOME"] + "/.claude/daemon/roster.json")"""
SAID = 'print("backgrounded'


def put(team: Post, name: str, text: str) -> None:
    """Put a program on the PATH: a script of Python, or of the shell."""
    path = team.scratch / "tools" / name
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def claude(team: Post, *changes: tuple[str, str]) -> None:
    """Put the client on the PATH, with changes."""
    text = CLAUDE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    put(team, "claude", text)
    (team.cwd / "team.toml").write_text(ONE_MEMBER)


def stopped(team: Post) -> list[str]:
    """The sessions that the client was asked to end."""
    return [words[1] for words, _ in calls(team) if words[0] == "stop"]


def members(team: Post) -> dict[str, team_records.Started]:
    """The members that are in the team's record."""
    return dict(team_records.load_record(str(team.cwd / "team.toml"), team.environ()).members)


@pytest.mark.parametrize("change", [LATE, LISTED], ids=["late", "never"])
def test_a_session_whose_own_file_comes_late_or_never_is_in_the_record(team: Post, change: str) -> None:
    """The service's list has it, too."""
    claude(team, (STATE, change))
    (ann,) = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
    assert members(team)["Ann"].session_id == ann["session_id"]
    assert (len(ann["session_id"]), stopped(team)) == (36, [])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([(STATE, "pass")], "did not say which session it began"),
        ([(STATE, LISTED), (SAID, "print('half a l')\n    print(\"")], "did not say which session it began"),
        ([(STATE, LISTED), ('" + me[:8]', '" + me[:3]')], "did not say which session it began"),
        ([(STATE, LISTED), (SAID, "sys.exit('boom')\n    print(\"")], "failed: boom"),
        ([(STATE, LISTED), (SAID, 'os.kill(os.getpid(), 9)\n    print("')], "killed by signal 9"),
    ],
)
def test_a_session_of_which_nothing_can_be_told_is_ended(
    team: Post, monkeypatch: pytest.MonkeyPatch, changes: list[tuple[str, str]], told: str
) -> None:
    """It would go on in no record: nobody could find, wake or end it."""
    monkeypatch.setattr(claude_background, "LAST", 0.0)
    claude(team, *changes)
    said = refused(team.call("up", "--yes", "--wait", "0"), 1, "Ann was not started: ", told).stderr
    (one,) = stopped(team)
    assert f"session {one}, which it began, was ended" in said
    assert members(team) == {}
    claude(team, *changes, ('if "--bg" not in words', 'if words[0] == "stop":\n    sys.exit("no")\nif 0'))
    (team.home / ".claude/daemon/roster.json").unlink(missing_ok=True)
    (team.home / ".claude/daemon").exists() and (team.home / ".claude/daemon").rmdir()
    said = refused(team.call("up", "--wait", "0"), 1, "Ann was not started: ", told).stderr
    assert f"may run on, as {team.scratch}/tools/claude stop failed: no: `claude stop " in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_session_that_an_interrupted_up_began_is_ended(team: Post, number: int) -> None:
    """A closed terminal or Ctrl-C leaves nobody in no record."""
    claude(team, (STATE, LISTED), (SAID, "sys.stdout.flush(); __import__('time').sleep(1000)\n    print(\""))
    with team.start("up", "--yes", "--wait", "0") as process:
        until(lambda: (team.home / ".claude/daemon/roster.json").exists())
        process.send_signal(number)
        process.wait()
    (_, stop) = calls(team)
    assert stop[0][0] == "stop"
    assert members(team) == {}


def test_a_session_that_a_killed_up_began_is_found_again(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """`up` could not note its id any more. `down` ends it; `up` gives it its name, and begins no second one."""
    monkeypatch.setattr(fleet, "LAST", 0.0)
    other = 'open(place + "/new", "w").write(json.dumps({"workers": {"other": other, me[:8]: job}}))'
    assert other in LISTED
    with Child(["sleep", "1000"]) as worker, contextlib.ExitStack() as ends:
        ends.callback(worker.kill)
        found = processes.read(worker.pid)
        assert found is not None
        served = LISTED.replace(other, f"job |= {{'pid': {found.pid}, 'procStart': '{found.start}'}}\n    {other}")
        claude(team, (STATE, served), (SAID, f"os.kill(os.getppid(), 9)\n    {SAID}"))
        with team.start("up", "--yes", "--wait", "0") as process:
            process.wait()
        roster = json.loads((team.home / ".claude/daemon/roster.json").read_text())
        (me,) = (job["sessionId"] for job in roster["workers"].values() if job["sessionId"] != "other")
        assert team.ok("roster", "list")["agents"] == []
        assert "Ann: still runs" in team.call("down", "--wait", "0").stdout
        assert stopped(team) == [me[:8]]
        (ann,) = team.call("up", "--yes", "--wait", "0", "--json").json["members"]
        assert (ann["session_id"], len(calls(team))) == (me, 2)
        assert members(team)["Ann"] == team_records.Started(session_id=me, client="claude")


def test_a_session_that_a_killed_up_did_not_begin_is_begun_by_the_next(
    team: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then nobody is told to be a member."""
    monkeypatch.setattr(claude_background, "_SHORTLY", 0.0)
    claude(team, ("words = sys.argv[1:]\n", "words = sys.argv[1:]\nos.kill(os.getppid(), 9)\nsys.exit()\n"))
    with team.start("up", "--yes", "--wait", "0") as process:
        process.wait()
    assert members(team)["Ann"].prompt == "Lead."
    refused(team.call("down", "--wait", "0"), 1, "no team was started from ")
    assert team.ok("up", "--status")["members"][0]["state"] == "not started"
    claude(team)
    (ann,) = team.call("up", "--wait", "0", "--json").json["members"]
    assert (members(team)["Ann"].session_id, members(team)["Ann"].prompt) == (ann["session_id"], "")


def test_the_status_of_a_team_waits_for_no_session(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells what is there now; `up` and `down` wait for one that its client may only just begin."""
    path, killed = str(team.cwd / "team.toml"), team_records.Started(client="claude", prompt="Lead.")
    team_records.save_record(path, team_records.TeamRecord(members={"Ann": killed}), team.environ())
    waited: list[float] = []
    monkeypatch.setattr(claude_background, "wait_while", lambda _, seconds: waited.append(seconds))
    assert team.ok("up", "--status")["members"][1]["state"] == "not started"
    refused(team.call("down", "--wait", "0"), 1, "no team was started from ")
    assert waited == [0, claude_background._SHORTLY]


OPENCODE = f"""#!{sys.executable} -IS
import json, os
from http.server import BaseHTTPRequestHandler, HTTPServer
home, up = os.environ["HOME"], os.getppid()
def note(file, what):
    print(what, file=open(f"{{home}}/{{file}}", "a"), flush=True)
    if os.path.exists(f"{{home}}/kill") and open(f"{{home}}/kill").read() == file:
        os.kill(up, 9)
class Session(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note(*(("sessions", "one") if self.path == "/session" else ("prompts", asked["parts"][0]["text"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{{"id": "ses_1"}}')
server = HTTPServer(("127.0.0.1", 0), Session)
note("servers", os.getpid())
print("listening on http://127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
"""


@pytest.mark.parametrize("at", ["servers", "sessions", "prompts"])
def test_a_server_whose_up_was_killed_is_ended_by_the_next(team: Post, at: str) -> None:
    """Its password is lost, and it may run the session. That one is brought back with the same prompt."""
    put(team, "opencode", OPENCODE)
    (team.cwd / "team.toml").write_text(ONE_MEMBER.replace("claude", "opencode"))
    (team.home / "kill").write_text(at)
    with team.start("up", "--yes", "--wait", "0") as process:
        process.wait()
    (team.home / "kill").unlink()
    assert team.call("up", "--yes", "--wait", "0").rc == 0
    first, second = ((int(pid), processes.read(int(pid))) for pid in (team.home / "servers").read_text().split())
    assert first[1] is None or first[1].is_over
    assert members(team)["Ann"].pid == second[0]
    assert (team.home / "prompts").read_text().splitlines()[-1] == "Lead."
    assert team.call("down", "--wait", "0").stdout == "Ann: was ended\n"


def test_a_server_whose_up_was_killed_is_ended_by_down(team: Post) -> None:
    """It was in no record, and went on without end."""
    put(team, "opencode", OPENCODE)
    (team.cwd / "team.toml").write_text(ONE_MEMBER.replace("claude", "opencode"))
    (team.home / "kill").write_text("sessions")
    with team.start("up", "--yes", "--wait", "0") as process:
        process.wait()
    assert team.call("down", "--wait", "0").stdout == "Ann: was ended\n"
    found = processes.read(int((team.home / "servers").read_text()))
    assert found is None or found.is_over


def test_a_start_that_nohup_keeps_from_hangups_goes_on(team: Post) -> None:
    """The person said that their terminal may close meanwhile."""
    claude(team, (SAID, 'os.kill(os.getppid(), 1)\n    print("backgrounded'))
    assert team.run("up", "--yes", "--wait", "0", under=["nohup"]).rc == 0
    assert [*members(team)] == ["Ann"]


WRONG = ("", "@1", "@1 x", "window 5", "\\377\\376 \\0", "@1 99999999999", "@1 2 3")


@each("answer", WRONG)
def test_an_answer_of_tmux_that_names_no_window_is_told_and_the_window_ended(team: Post, answer: str) -> None:
    """It was an unexpected error of ours, and the window ran on in no record. Another team's of that name stays."""
    made = team.home / "made"
    put(
        team,
        "tmux",
        f"""case $1 in
        list-windows) printf '@5 Ann\\n@6 Bob\\n'; [ ! -e '{made}' ] || printf '@7 Ann\\n@8 Bob\\n' ;;
        new-window) : >'{made}'; printf '{answer}\\n' ;;
        *) echo "$@" >>'{made}' ;;
        esac""",
    )
    claude(team)
    refused(
        team.call("up", "--tmux", "--yes", "--wait", "0"), 1, "tmux did not say which window it made", "tmux attach"
    )
    assert made.read_text() == "kill-window -t @7\n"
    made.unlink()


@each(
    "script, told",
    [
        ("exec yes", "tmux does not answer: more than 0 MiB"),
        ("exec sleep 1000", "tmux does not answer: no end within"),
        ("[ $1 = list-windows ] || exec yes", "tmux new-window was ended: more than 0 MiB"),
        ("[ $1 = list-windows ] || kill -9 $$", "tmux new-window failed: killed by signal 9"),
        ("[ $1 = list-windows ] || { echo no >&2; exit 1; }", "tmux new-window failed: no"),
    ],
)
def test_a_tmux_that_fails_is_named(team: Post, monkeypatch: pytest.MonkeyPatch, script: str, told: str) -> None:
    """It may hang, or print without end."""
    monkeypatch.setattr(tmux, "_PATIENCE", 0.0 if "sleep" in script else 60.0)
    monkeypatch.setattr(programs, "MOST", 1 << 17)
    put(team, "tmux", script)
    claude(team)
    refused(team.call("up", "--tmux", "--yes", "--wait", "0"), 1, f"Ann was not started: {told}")


@each(
    "script",
    [
        "exit 0",
        "echo boom >&2; exit 1",
        "echo 'listening on '",
        "printf 'listening on http://127.0.0.1:1'",
        "printf '\\377\\0listening on \\377\\n'",
        "echo listening on http://example.org:80",
        "kill -9 $$",
        "exec yes",
        "exec cat /dev/zero",
        "echo $$ >$HOME/server; trap '' TERM; sleep 1000; true",
    ],
)
def test_a_server_that_tells_no_address_is_told_and_ended(team: Post, script: str) -> None:
    """Half a line was an unexpected error of ours. A server that prints without end filled memory and disk."""
    (team.cwd / "team.toml").write_text(ONE_MEMBER.replace("claude", "opencode"))
    put(team, "opencode", script)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(start, "MOST", 1 << 17)
        changed.setattr(start, "LAST", 0.1)
        if "sleep" in script:
            changed.setattr(start, "PATIENCE", 0.0)
        told = "Ann was not started: OpenCode's server did not begin to listen"
        refused(team.call("up", "--yes", "--wait", "0"), 1, told, "Ann.log")
    if (place := team.home / "server").exists() and place.read_text().strip():
        server = int(place.read_text())
        until(lambda: (found := processes.read(server)) is None or found.is_over)


SERVER = f"""#!{sys.executable} -IS
import os, socket, sys
is_codex = sys.argv[0].endswith("codex")
server = socket.socket(socket.AF_UNIX if is_codex else socket.AF_INET)
server.bind(os.readlink(sys.argv[0] + ".sock") if is_codex else ("127.0.0.1", 0))
open(os.environ["HOME"] + "/server", "w").write(str(os.getpid()))
server.listen()
if not is_codex:
    print("listening on http://127.0.0.1:%d" % server.getsockname()[1], flush=True)
def text(data):
    return b"\\x81\\x7f" + len(data).to_bytes(8, "big") + data
deep, hello = b"[" * 100000, b"HTTP/1.1 101 ok\\r\\n\\r\\n" if is_codex else b"HTTP/1.1 200 ok\\r\\n\\r\\n"
while True:
    line = server.accept()[0]
    try:
        line.recv(65536)
        ANSWER
    except OSError:
        pass
    line.close()
"""
ENDLESS = "\n        while True: line.sendall("
CODEX_ANSWERS = (
    "pass",
    "line.sendall(b'HTTP/1.1 101')",
    "line.sendall(b'\\xff\\xfe')",
    "line.sendall(hello + text(deep))",
    "line.sendall(hello + text(b'[1]'))",
    "line.sendall(hello + b'\\x81\\x7f' + b'\\xff' * 8)",
    f"{ENDLESS}b'x' * 65536)",
    f"line.sendall(hello){ENDLESS}text(b'{{}}'))",
    f"line.sendall(hello){ENDLESS}b'\\x89\\x00')",
)
HTTP_ANSWERS = (
    "pass",
    "line.sendall(b'HTTP/1.1 200')",
    "line.sendall(b'HTTP/1.1 302 x\\r\\nLocation: http://example.org/\\r\\n\\r\\n')",
    "line.sendall(hello + deep)",
    "line.sendall(hello + b'\\xff')",
    "line.sendall(hello + b'[1]')",
    f"line.sendall(hello){ENDLESS}b'x' * 65536)",
    "line.sendall(hello.rstrip())\n        while True: line.sendall(b'x' * 4096)",
)


@each("client, answer", [("codex", one) for one in CODEX_ANSWERS] + [("opencode", one) for one in HTTP_ANSWERS])
def test_a_server_s_answer_that_is_none_is_told_and_the_server_ended(team: Post, client: str, answer: str) -> None:
    """It may be none at all, half, no text, too deep, or without end. `down` knows nothing of a server whose member
    could not be started, and each `up` would leave another one."""
    put(team, client, SERVER.replace("ANSWER", answer))
    (team.cwd / "team.toml").write_text(ONE_MEMBER.replace("claude", client))
    place = Path(CODEX.find_home(team.environ())) / "app-server-control/app-server-control.sock"
    place.parent.mkdir(parents=True, exist_ok=True)
    # a socket's path is at most 108 bytes long
    with tempfile.TemporaryDirectory(dir="/tmp") as short, pytest.MonkeyPatch.context() as changed:
        for link in (place, team.scratch / "tools/codex.sock"):
            link.unlink(missing_ok=True)
            link.symlink_to(f"{short}/s")
        if ENDLESS in answer:
            changed.setattr(codex_app_server, "PATIENCE", 0.2)
            changed.setattr(opencode_server, "PATIENCE", 0.2)
        refused(team.call("up", "--yes", "--wait", "0"), 1, "Ann was not started: ", "does not answer as expected")
    assert members(team) == {}
    server = int((team.home / "server").read_text())
    until(lambda: (found := processes.read(server)) is None or found.is_over)


class CodexServer:
    """Codex's background server, as far as ``down`` asks it: the sessions that it runs, and of which each is a part."""

    def __init__(self, path: str, runs: dict[str, str | None] | None) -> None:
        self.runs = runs
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._socket.accept()
                with line, contextlib.suppress(BrokenPipeError):
                    self._answer(line)

    def _answer(self, line: socket.socket) -> None:
        file = line.makefile("rwb")
        while file.readline().strip():
            pass
        file.write(b"HTTP/1.1 101 ok\r\n\r\n")
        file.flush()
        while self.runs is not None and (head := file.read(2)):
            size = head[1] & 0x7F
            size = int.from_bytes(file.read({126: 2, 127: 8}[size]), "big") if size > 125 else size
            mask, data = file.read(4), file.read(size)
            asked = json.loads(bytes(c ^ mask[at % 4] for at, c in enumerate(data)))
            if "id" not in asked:
                continue
            answers: dict[str, object] = {"initialize": {}, "thread/loaded/list": {"data": [*self.runs]}}
            if asked["method"] == "thread/start":
                answers["thread/start"] = {"thread": {"id": f"begun-{len(self.runs)}"}}
            if asked["method"] == "turn/start":
                self.runs[asked["params"]["input"][0]["text"]] = None
            read = {"thread": {"parentThreadId": self.runs.get(asked["params"].get("threadId"))}}
            said = json.dumps({"id": asked["id"], "result": answers.get(asked["method"], read)}).encode()
            file.write(b"\x81\x7e" + len(said).to_bytes(2, "big") + said)
            file.flush()

    def close(self) -> None:
        """Listen no more."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def test_members_of_codex_are_given_prompts_of_any_length(team: Post) -> None:
    """A message above 64 KiB was an unexpected error of ours, and that session had no turn."""
    prompts = {"Ann": "Lead.", "Bob": "x" * 1000, "Cid": "\U0001f980" * 15_000}
    text = "".join(f'[member.{name}]\nclient = "codex"\nprompt = "{prompt}"\n' for name, prompt in prompts.items())
    (team.cwd / "team.toml").write_text(text, encoding="utf-8")
    put(team, "codex", "exit 1")
    place = Path(CODEX.find_home(team.environ())) / "app-server-control/app-server-control.sock"
    place.parent.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        place.symlink_to(f"{short}/s")
        runs: dict[str, str | None] = {}
        server = CodexServer(f"{short}/s", runs)
        assert team.call("up", "--yes", "--wait", "0").rc == 0
        server.close()
    assert all(given == prompt for given, prompt in zip(runs, prompts.values(), strict=True))


def test_a_server_that_runs_sessions_of_the_person_s_is_left_alone(team: Post) -> None:
    """`up` started it, and a terminal of theirs found it: `down` would end their work, too. It says so. A member's own
    subagent is nobody else's. A server that tells nothing may run any."""
    file, environ = str(team.cwd / "team.toml"), team.environ()
    place = Path(CODEX.find_home(environ)) / "app-server-control/app-server-control.sock"
    place.parent.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir="/tmp") as short, Child(["sleep", "1000"], start_new_session=True) as process:
        place.symlink_to(f"{short}/s")
        found = processes.read(process.pid)
        assert found is not None
        here = processes.ProcessRecords("").here
        ann = team_records.Started(session_id="ann", client="codex", pid=found.pid, start=found.start, here=here)
        team_records.save_record(file, team_records.TeamRecord(members={"Ann": ann}), environ)
        server = CodexServer(f"{short}/s", {"ann": None, "theirs": None})

        def down() -> str:
            return team.call("down", "--wait", "0").stdout

        told = team.call("down", "--wait", "0")
        assert told.stdout == "Ann: still runs in a server that others use\n"
        assert f"close its terminals; then `agent-mailbox down {file}`" in told.stderr
        server.runs = None
        assert down() == "Ann: still runs in a server that others use\n"
        server.runs = {"ann": None, "below": "ann"}
        with socket.socket(socket.AF_UNIX) as terminal:
            terminal.connect(f"{short}/s")
            assert down() == "Ann: still runs in a server that others use\n"
        assert process.poll() is None
        until(lambda: not codex_server.count_terminals(CODEX.find_home(environ)))
        assert down() == "Ann: was ended\n"
        assert process.wait() == -15
        server.close()


def test_a_launcher_s_program_ends_with_it(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that `up` knows may have started another one, as a client's launcher does. Killed alone, it left that
    one running."""
    monkeypatch.setattr(fleet, "LAST", 0.2)
    file, environ = str(team.cwd / "team.toml"), team.environ()
    script = ["sh", "-c", "trap '' TERM; sleep 1000 & echo $!; wait; wait"]
    with Child(script, stdout=subprocess.PIPE, start_new_session=True) as launcher:
        assert launcher.stdout is not None
        program, found = int(launcher.stdout.readline()), processes.read(launcher.pid)
        assert found is not None
        here = processes.ProcessRecords("").here
        ann = team_records.Started(session_id="ann", client="opencode", pid=found.pid, start=found.start, here=here)
        team_records.save_record(file, team_records.TeamRecord(members={"Ann": ann}), environ)
        team.call("down", "--wait", "0")
        assert launcher.wait() == -9
        until(lambda: (left := processes.read(program)) is None or left.is_over)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_client_whose_start_cannot_be_noted_does_not_begin(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full behind the start. A client that tells no id was then in no record at all."""
    (team.cwd / "team.toml").write_text(ONE_MEMBER.replace("claude", "codex"))
    put(team, "codex", f"echo $$ >{team.home}/pid; exec sleep 1000")
    team.env["TMUX_TMPDIR"] = str(team.scratch)
    team.env.pop("TMUX", None)
    save = team_records.save_record

    def fail(file: str, record: team_records.TeamRecord, environ: Mapping[str, str]) -> None:
        if record.members:
            raise StorageFailed("cannot write the record: No space left on device", "free some space")
        save(file, record, environ)

    monkeypatch.setattr(team_records, "save_record", fail)
    try:
        refused(team.call("up", "--tmux", "--yes", "--wait", "0"), 5, "Ann was not started: cannot write the record")
        asked = ["tmux", "list-windows", "-a"]
        until(lambda: subprocess.run(asked, env=team.env, capture_output=True).returncode != 0)
        assert not (team.home / "pid").exists()
    finally:
        subprocess.run(["tmux", "kill-server"], env=team.env, capture_output=True)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_window_whose_up_was_killed_ends_and_the_next_up_begins_one(team: Post, client: str) -> None:
    """It was in no record, and went on beside the next one, with the same session."""
    (team.cwd / "team.toml").write_text(ONE_MEMBER.replace("claude", client))
    put(team, client, CLAUDE)
    (team.home / ".claude/projects/here").mkdir(parents=True)
    real = shutil.which("tmux")
    put(team, "tmux", f'case $1 in new-*) {real} "$@"; rm $0; kill -9 $PPID ;; *) exec {real} "$@" ;; esac')
    team.env["TMUX_TMPDIR"] = str(team.scratch)
    team.env.pop("TMUX", None)
    asked = ["tmux", "list-windows", "-a", "-F", "#{pane_pid}"]
    try:
        with team.start("up", "--tmux", "--yes", "--wait", "0") as process:
            assert process.wait() == -9
        until(lambda: subprocess.run(asked, env=team.env, capture_output=True).returncode != 0)
        assert not calls(team)
        assert team.call("up", "--tmux", "--yes", "--wait", "0").rc == 0
        until(lambda: len(calls(team)) == 1)
        told = subprocess.run(asked, env=team.env, capture_output=True, text=True, check=True).stdout
        assert [int(pid) for pid in told.split()] == [members(team)["Ann"].pid]
        assert calls(team)[0][0][-1] == "Lead."
    finally:
        subprocess.run(["tmux", "kill-server"], env=team.env, capture_output=True)
