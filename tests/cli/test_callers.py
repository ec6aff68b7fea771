"""You are whose process you are: real processes, each in the surroundings a caller may have.

A client's background service hosts no session, and no agent comes to decide by it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.cli import reserved
from agent_mailbox.commands import main as program
from agent_mailbox.commands import send_commands
from agent_mailbox.core.given_names import NAMES
from agent_mailbox.errors import NOT_YOU
from agent_mailbox.identity import callers, client_processes, client_variables, hook_calls
from agent_mailbox.store.files import paths
from agent_mailbox.store.user_state import processes
from agent_mailbox.store.user_state.processes import PIPE, SERVED, SESSIONS, SOCKET, ProcessRecords
from tests.door import switches
from tests.helpers import MESSAGES, ROOT, ROSTER, copy_package, refused, stamp, until
from tests.surroundings import NOBODY_SAID, Client, at_terminal, can_run, kind, line, results_of, several, who, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.helpers import Post


POLICY = ("control", "policy", "w", "--allow", "Bash", "--session", "boss")
"""What freed a worker: an allow rule for itself, in the name of its lead."""


@pytest.fixture
def worker(post: Post) -> Iterator[Client]:
    """A client that runs ``w``, whose lead ``boss`` is the session of another client, which ended."""
    with Client(post) as other:
        assert other.hook("boss").rc == 0
    post.env["AGENT_MAILBOX_LEAD"] = "boss"
    with Client(post) as client:
        del post.env["AGENT_MAILBOX_LEAD"]
        assert client.hook("w").rc == 0
        yield client


def bare(post: Post, text: str) -> str:
    """The text with none of the environment but what names the mailbox and the test's records."""
    named = [f"{name}={post.env[name]}" for name in ("PATH", "AGENT_MAILBOX_DIR", switches.STATE)]
    return f"env -i {shlex.join(named)} sh -c {shlex.quote(text)}"


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_is_told_by_the_client_above_it(post: Post, worker: Client) -> None:
    """Without its environment, with one that lies, in another session of the system, under ``nohup``, ``script``."""
    send = line("send", "--to", "all", "--body", "x")
    texts = [
        send,
        bare(post, send),
        f"env -u CLAUDE_CODE_SESSION_ID -u CLAUDECODE -u CLAUDE_PID {send}",
        f"setsid -w {send}",
        f"nohup {send}",
        f"exec {send}",
        f"CLAUDE_CODE_SESSION_ID=boss {send}",
        f"AGENT_MAILBOX_SESSION=boss {send}",
        f"script -qc {shlex.quote(bare(post, send))} /dev/null",
        f"{send} & wait",
    ]
    for text in texts:
        done = worker.bash(text, "w")
        assert done.rc == 0, (text, done)
    assert [m["sender"] for m in post.objects(MESSAGES)] == ["w"] * len(texts)


def spellings(post: Post) -> Iterator[str]:
    """The same command as no reader of texts knows it: quoted within the word, linked, copied, in a script, in code."""
    post.file("..", "bin").mkdir(exist_ok=True)
    start = shlex.join(words())
    (script := post.scratch / "harmless").write_text(f'#!/bin/sh\nexec {start} "$@"\n')
    script.chmod(0o755)
    (link := post.scratch / "linked").symlink_to(script)
    copied = copy_package(post.scratch / "copied")
    said = shlex.join(POLICY)
    yield f"{script} {said}"
    yield f"{link} {said}"
    yield f"{post.scratch}/har'ml'ess con'trol' policy w --allow Bash --session boss"
    yield f"{sys.executable} {copied} {said}"
    yield f"{sys.executable} -c {shlex.quote(f'import os; os.execv({sys.executable!r}, {[*words(*POLICY)]!r})')}"
    yield bare(post, f"{start} {said}")
    yield bare(post, f"setsid -w {start} {said}")


def test_a_worker_decides_nothing_in_its_lead_s_name_however_it_spells_that(post: Post, worker: Client) -> None:
    """The command itself refuses, whatever a hook could read of it; nothing is written."""
    before = post.snapshot()
    for text in spellings(post):
        done = worker.bash(text, "w")
        refused(done, 1, "is a process of session w, and 'boss' is another")
    assert post.snapshot()["agent-mailbox.jsonl"] == before["agent-mailbox.jsonl"]


OTHERS = [
    ("send", "--from", "boss", "--to", "w", "--body", "x"),
    ("send", "--from", "user", "--to", "w", "--body", "x"),
    ("check", "--session", "boss"),
    ("check", "--session", "user", "--peek"),
    ("control", "mode", "w", "safe", "--session", "user"),
    ("roster", "retire", "boss"),
    ("roster", "freeze", "--session-id", "boss"),
    ("roster", "heartbeat", "boss"),
    ("roster", "update", "--session-id", "boss", "--tags", "project:x"),
    ("roster", "register", "--session-id", "new", "--name", "n"),
    ("mute", "w", "--session", "boss"),
    ("history", "--session", "boss"),
    ("control", "approve", "17", "--session", "user"),
]


BOUND = {"AGENT_MAILBOX_LEAD": "boss"}


@pytest.mark.parametrize("said", ["process", "settings"])
def test_only_the_client_s_own_process_gives_a_known_session_its_lead(post: Post, said: str) -> None:
    """The person started that; a settings file, which an agent may write, is left out, and the session told."""
    with Client(post) as first:
        assert first.hook("boss").rc == 0
        assert first.hook("w").rc == 0
        assert first.hook("w", "SessionEnd").rc == 0
    post.env |= BOUND if said == "process" else {}
    with Client(post) as client:
        post.env.pop("AGENT_MAILBOX_LEAD", None)
        told = client.hook("w", source="resume", settings={} if said == "process" else BOUND).stdout
        assert ("only your person names one" in told) is (said == "settings")
    lead = post.ok("roster", "show", "w")["agent"]["lead"]
    assert lead == ("boss" if said == "process" else None)
    proven = Mailbox(str(post.box)).logs.read_roster().agents["w"].proven_leads
    assert [who for _, who in proven] == ([lead] if lead else [])


def test_a_lead_that_another_program_wrote_yields_to_the_person_s(post: Post) -> None:
    """It binds a session that has none; it keeps nobody from being named by who starts the client."""
    with Client(post) as first:
        assert first.hook("boss").rc == 0
        assert first.hook("w").rc == 0
    post.append(ROSTER, {"event": "update", "session_id": "w", "timestamp": stamp(), "lead": "puppet"})
    assert post.ok("roster", "show", "w")["agent"]["lead"] == "puppet"
    post.env |= BOUND
    with Client(post) as client:
        post.env.pop("AGENT_MAILBOX_LEAD")
        assert client.hook("w", source="resume").stdout == ""
    assert Mailbox(str(post.box)).logs.read_roster().agents["w"].proven_leads[-1][1] == "boss"


def test_an_agent_names_no_lead_for_itself_where_its_command_passes_for_a_hook(post: Post) -> None:
    """Below a client that calls its hooks by pipes both look alike: the variable is the command's, not the client's."""
    told = json.dumps({"session_id": "w", "cwd": str(post.cwd), "source": "resume"})
    hook = f"echo {shlex.quote(told)} | {line('hook', 'SessionStart')}"
    with Client(post) as client:
        assert client.bash(hook, "w").rc == 0
        assert "only your person names one" in client.bash(hook, "w", AGENT_MAILBOX_LEAD="puppet").stdout
    agent = post.ok("roster", "show", "w")["agent"]
    assert (agent["lead"], agent["state"]) == (None, "gone")


def test_a_session_cannot_act_as_anybody_else(worker: Client) -> None:
    """Neither the person nor an agent, a dead one or one that does not exist included."""
    ended = results_of(worker.bash(several([(*command, "--json") for command in OTHERS]), "w"))
    for command, done in zip(OTHERS, ended, strict=True):
        refused(done, 1)
        assert json.loads(done.stdout)["error"]["code"] == NOT_YOU, command


def test_a_session_gives_itself_neither_orders_nor_a_lead(post: Post, worker: Client) -> None:
    """The command refuses both, without a name and with its own; a session that has no lead names none, too."""
    post.register("zed")
    orders = [("policy", "w", "--allow", "Bash"), ("policy", "w", "--clear"), ("mode", "w", "default")]
    for done in results_of(worker.bash(several([("control", *order) for order in orders]), "w")):
        refused(done, 1, "no agent commands itself")
    assert worker.hook("solo").rc == 0
    for me in ("w", "solo"):
        verbs = (("update",), ("update", "--session-id", me), ("register", "--session-id", me))
        ended = results_of(worker.bash(several([("roster", *verb, "--lead", "zed") for verb in verbs]), me))
        assert len(ended) == len(verbs)
        for done in ended:
            refused(done, 1, f"{me} may not change it")


def test_of_the_sessions_of_one_process_a_command_is_the_one_that_is_meant(post: Post, worker: Client) -> None:
    """One client's process may host several, as a server does: none of them speaks for another that it does not
    continue."""
    assert worker.hook("w2").rc == 0
    for me, other in (("w", "w2"), ("w2", "w")):
        as_other = (("check", "--session", other), ("send", "--from", other, "--to", "all", "--body", "x"))
        *ended, own = results_of(worker.bash(several([*as_other, ("check", "--session", me)]), me))
        assert len(ended) == len(as_other)
        for done in ended:
            refused(done, 1, f"is a process of session {me}, and {other!r} is another")
        assert own.rc == 0
    assert not [m for m in post.objects(MESSAGES) if m.get("type") != "control"]


def test_a_session_names_itself_by_what_the_roster_knows(post: Post, worker: Client) -> None:
    """Its id, its name, and a session that it continues."""
    assert worker.bash(line("roster", "update", "--name", "smith"), "w").rc == 0
    assert worker.hook("w", "SessionEnd", reason="clear").rc == 0
    assert worker.hook("w2", source="clear").rc == 0
    for name in ("w2", "smith", "w"):
        assert worker.bash(line("status", "--session", name), "w2").rc == 0, name
    assert post.ok("roster", "show", "w2", env={})["agent"]["name"] == "smith"


def test_the_environment_picks_among_the_sessions_of_one_client(worker: Client) -> None:
    """After ``/clear`` or a resume one process hosts several; a word that is none of these picks nothing."""
    assert worker.hook("w2").rc == 0
    assert kind(worker.bash(who(), "w")) == ["session", "w"]
    assert kind(worker.bash(who(), "w2")) == ["session", "w2"]
    assert kind(worker.bash(who(), "boss")) == ["session", "w2"]
    assert kind(worker.bash(who())) == ["session", "w2"]
    assert kind(worker.bash(f"CLAUDE_CODE_SESSION_ID=w2 {who()}; :", "w")) == ["session", "w"]  # a child of its shell


def test_two_variables_make_nobody_two_sessions(worker: Client) -> None:
    """Each names a session of the client, as one does that an outer client left. The command is the first one's."""
    assert worker.hook("w2").rc == 0
    first, second = client_variables.SESSIONS[:2]
    named = {first: "w", second: "w2"}
    assert kind(worker.bash(who(), **named)) == ["session", "w"]
    sends = [worker.bash(line("send", "--from", one, "--to", "boss", "--body", "x"), **named).rc for one in ("w", "w2")]
    assert sends == [0, 1]


def test_a_client_within_a_client_is_itself_or_nobody(post: Post, worker: Client) -> None:
    """Before its own hooks speak nothing is known of it, and it never is its parent's session; then it is its own. Of
    the sessions others had it gets none: so an agent that starts one would be its lead."""
    inner = f"#!{sys.executable}\nimport subprocess, sys\nraise SystemExit(subprocess.run(sys.argv[1:]).returncode)\n"
    (nested := post.scratch / "bin" / "codex").write_text(inner)
    nested.chmod(0o755)
    found = kind(worker.bash(f"{nested} sh -c {shlex.quote(who())}", "w"))
    assert (found[0], callers.UNKNOWN in found[1]) == ("program", True)
    refused(
        worker.bash(f"{nested} {line('send', '--to', 'all', '--body', 'x')}", "w"), 1, "'w' is the session of a client"
    )
    for session_id, wanted in (("new", ["session", "new"]), ("boss", "program")):
        code = nested_hook(post, session_id)
        found = kind(worker.bash(f"{sys.executable} -c {shlex.quote(code)}", "w"))
        assert (found if wanted[0] == "session" else found[0]) == wanted


def nested_hook(post: Post, session_id: str) -> str:
    """Code that has a client start, call its hook for a session, and print who its shell is."""
    asked = [
        {"words": words("hook", "SessionStart"), "env": {}, "json": json.dumps({"session_id": session_id})},
        {"words": ["sh", "-c", who()], "env": {}},
    ]
    sent = "".join(json.dumps(one) + "\n" for one in asked)
    return (
        f"import subprocess, json; done = subprocess.run([{str(post.scratch / 'bin' / 'claude')!r}], input={sent!r},"
        " text=True, capture_output=True).stdout.splitlines(); print(json.loads(done[-1])[1])"
    )


def test_a_lead_speaks_for_the_teammates_of_its_own_team(post: Post, worker: Client) -> None:
    """A lead may send as a teammate of its own team only. A command's environment cannot name another place for the
    teams."""
    teams = post.home / ".claude" / "teams"
    for team, lead in (("ours", "w"), ("theirs", "boss")):
        (teams / team).mkdir(parents=True)
        (teams / team / "config.json").write_text(
            json.dumps({"leadSessionId": lead, "leadAgentId": f"lead@{team}", "members": [{"name": "mate"}]})
        )
    liar = post.scratch / "liar"
    shutil.copytree(teams / "theirs", liar / ".claude" / "teams" / "theirs")
    (liar / ".claude" / "teams" / "theirs" / "config.json").write_text(
        json.dumps({"leadSessionId": "w", "members": [{"name": "mate"}]})
    )
    for env in ({}, {"HOME": str(liar)}, {"CLAUDE_CONFIG_DIR": str(liar / ".claude")}):
        done = worker.bash(line("send", "--from", "mate@theirs", "--to", "w", "--body", "x"), "w", **env)
        refused(done, 1, "'mate@theirs' is another")
    names = ("stranger@ours", "lead@theirs", "boss@ours", "mate@ours", "lead@ours")
    sends = [("send", "--from", name, "--to", "w", "--body", "x") for name in names]
    *others, mate, own = results_of(worker.bash(several(sends), "w"))
    assert (len(others), mate.rc, own.rc) == (3, 0, 0)
    for done in others:
        refused(done, 1, "is another")


def test_the_name_of_a_gone_lead_gives_its_mail_and_not_its_workers(post: Post, worker: Client) -> None:
    """Until the person says so. From then on the client's own ``/clear`` passes them on."""
    for change in (("update", "--session-id", "boss", "--name", "chief"), ("retire", "boss")):
        assert at_terminal(post, line("roster", *change)).rc == 0
    allow = line("control", "policy", "w", "--allow", "Bash", "--json")
    with Client(post) as other:
        assert other.hook("x").rc == 0
        named = other.bash(line("roster", "update", "--name", "chief"), "x")
        assert named.rc == 0
        assert "boss led w, for whom the person decides now" in named.stderr
        assert worker.bash(line("send", "--to", "chief", "--body", "still here"), "w").rc == 0
        assert "still here" in other.bash(line("check"), "x").stdout
        assert json.loads(refused(other.bash(allow, "x"), 1).stdout)["error"]["code"] == "not_lead"
        lead = line("roster", "update", "--session-id", "w", "--lead", "x")
        refused(other.bash(lead, "x"), 1)
        assert at_terminal(post, lead).rc == 0
        assert other.bash(allow, "x").rc == 0
        assert other.hook("x", "SessionEnd", reason="clear").rc == 0
        assert other.hook("x2", source="clear").rc == 0
        assert other.bash(allow, "x2").rc == 0


# -- hooks ------------------------------------------------------------------------------------------------------------


FORGED = json.dumps({"session_id": "SESSION", "source": "startup", "cwd": "/"})


@pytest.mark.parametrize("session_id", ["w", "boss", "new"])
def test_a_hook_that_a_command_calls_is_refused(post: Post, worker: Client, session_id: str) -> None:
    """A hook that a command calls is refused, whether its input is a pipe or a socket pair."""
    before = post.snapshot()[ROSTER]
    told = FORGED.replace("SESSION", session_id)
    forge = (
        f"import socket, subprocess; a, b = socket.socketpair(); a.sendall({told.encode()!r}); a.close();"
        f"raise SystemExit(subprocess.run({words('hook', 'SessionStart')!r}, stdin=b).returncode)"
    )
    for text in (
        f"echo {shlex.quote(told)} | {line('hook', 'SessionStart')}",
        f"{sys.executable} -c {shlex.quote(forge)}",
    ):
        done = worker.bash(text, "w")
        assert done.rc == 1, done
        assert "is the client's to call" in done.stderr
    assert post.snapshot()[ROSTER] == before
    assert kind(worker.bash(who(), "w")) == ["session", "w"]


def test_only_an_end_of_the_client_s_own_pair_proves_it(tmp_path: Path) -> None:
    """A connection to a socket on which the client listens has its credentials, too, but has a name."""
    mine, theirs = socket.socketpair()
    assert hook_calls.maker_of(theirs.fileno()) == os.getpid()
    path = str(tmp_path / "listening")
    with mine, theirs, socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as connected:
        server.bind(path)
        server.listen()
        connected.connect(path)
        accepted, _ = server.accept()
        with accepted:
            assert [hook_calls.maker_of(one.fileno()) for one in (connected, accepted)] == [None, None]
    read, write = os.pipe()
    assert hook_calls.maker_of(read) is None
    for fd in (read, write):
        os.close(fd)


@pytest.mark.usefixtures("worker")
def test_a_session_of_a_living_client_is_not_taken_over(post: Post) -> None:
    """Another client's hook in its name is refused; once the client ended, a resume goes on with it."""
    with Client(post) as second:
        done = second.hook("w")
        assert done.rc == 1
        assert "session w runs in another client" in done.stderr
        assert second.hook("boss").rc == 0
        assert kind(second.bash(who(), "boss")) == ["session", "boss"]


@pytest.mark.usefixtures("worker")
def test_a_program_that_is_no_known_client_hosts_what_nobody_had(post: Post) -> None:
    """One that calls hooks through its own socket pair, as clients do."""
    with Client(post, name="newcomer") as client:
        assert kind(client.bash(who()))[0] == "program"
        assert client.hook("boss").rc == 0
        assert kind(client.bash(who()))[0] == "program"
        assert client.hook("fresh").rc == 0
        assert kind(client.bash(who())) == ["session", "fresh"]
        assert client.hook("w").rc == 1


def test_a_record_is_small_and_the_user_s_alone_and_written_once(post: Post, worker: Client) -> None:
    """The same hook again writes nothing; of many sessions the latest are kept."""
    path = post.user_state / "clients" / str(worker.process.pid)
    before = path.stat()
    assert before.st_mode & 0o777 == 0o600
    assert worker.hook("w", "Stop").rc == 0
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    hosts, process = ProcessRecords(str(post.user_state)), processes.read(worker.process.pid)
    assert process is not None
    for n in range(SESSIONS + 5):
        hosts.record(process, f"s{n}", SOCKET)
    found = hosts.of(process)
    assert found is not None
    assert found.sessions == tuple(f"s{n}" for n in range(SESSIONS + 4, 4, -1))
    assert hosts.of(process.replace(start="1")) is None
    pid = worker.process.pid
    assert [processes.lives(pid, start) for start in (process.start, process.start[:-1])] == [True, False]


def test_the_records_of_clients_that_ended_are_swept(tmp_path: Path) -> None:
    """Once there are many; those that live stay."""
    hosts, mine = ProcessRecords(str(tmp_path)), processes.read(os.getpid())
    assert mine is not None
    for n in range(70):
        hosts.record(mine.replace(pid=4_000_000 + n), "gone", PIPE)
    hosts.record(mine, "here", PIPE)
    assert [host.sessions for host in hosts.hosting("here")] == [("here",)]
    assert len(hosts.hosting("gone")) < 70


# -- the person -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("worker")
def test_at_a_terminal_of_their_own_the_person_calls(post: Post) -> None:
    """Is ``user`` without saying so, names any session, decides; also within ``script``."""
    send = line("send", "--to", "w", "--body", "x")
    for text in (send, f"script -qc {shlex.quote(send)} /dev/null", f"{send} --from boss"):
        done = at_terminal(post, text)
        assert done.rc == 0, (text, done)
    assert [m["sender"] for m in post.objects(MESSAGES)] == ["user", "user", "boss"]
    assert at_terminal(post, line("control", "mode", "w", "safe")).rc == 0
    assert at_terminal(post, line("check", "--session", "w")).rc == 0


@pytest.mark.usefixtures("worker")
def test_a_report_that_does_not_count_is_an_error_and_ends_no_watch(post: Post) -> None:
    """The person's: their terminal proves them, and the task is the worker's."""
    assert at_terminal(post, line("control", "request", "task", "w", "--title", "t", "--request-id", "task-1")).rc == 0
    assert at_terminal(post, line("watch", "w", "--task", "task-1")).rc == 0
    done = at_terminal(post, line("control", "report", "task-1", "--phase", "done"))
    assert done.rc == 1, done
    assert "only w reports on it" in done.stdout
    assert "finished" not in at_terminal(post, line("check")).stdout


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("start", ["setsid -w", "setsid -w sh -c"])
def test_what_has_no_terminal_itself_is_a_program_wherever_it_was_started(post: Post, start: str) -> None:
    """The person's terminal is above it: it may go on there, unseen, long after they left."""
    text = who() if start.endswith("-w") else shlex.quote(who())
    assert kind(at_terminal(post, f"{start} {text}"))[0] == "program"


@pytest.mark.parametrize("mark", client_processes.MARKS)
def test_a_terminal_that_a_client_s_child_made_is_not_the_person_s(post: Post, mark: str) -> None:
    """Its variable in any ancestor's environment tells, though the client is gone and a command takes it out."""
    text = f"env -u {mark} sh -c {shlex.quote(who())}"
    found = kind(at_terminal(post, text, env={mark: "1"}))
    assert found[0] == "program"
    assert "was started by a client" in found[1]
    assert f"`env -u {mark} bash`" in found[1]  # what the person does if it is theirs all the same


@pytest.mark.usefixtures("worker")
def test_what_still_passes_is_an_empty_environment_a_double_fork_and_a_terminal(post: Post) -> None:
    """Nothing that the system keeps tells such a process from the person's: the sandbox is the answer."""
    assert kind(at_terminal(post, bare(post, who()))) == ["person"]


needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
needs_screen = pytest.mark.skipif(shutil.which("screen") is None, reason="no screen")


def answered(post: Post) -> list[str]:
    """What ``who`` wrote into the file ``said``."""
    path = post.scratch / "said"
    found = until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text())
    path.unlink()
    return list(json.loads(found))


def multiplexed(post: Post, start: str) -> str:
    """A text that starts a multiplexer's session, in which ``who`` writes into ``said``."""
    (script := post.scratch / "inside").write_text(f"#!/bin/sh\n{who()} >{post.scratch}/said\n")
    script.chmod(0o755)
    return f"TERM=xterm LC_ALL=C.UTF-8 {start} {script}"


@needs_tmux
def test_tmux_is_the_person_s_where_they_are_attached(post: Post, worker: Client) -> None:
    """Attached from a clean terminal: theirs. Attached from below a client, or by nobody: a program's."""
    tmux = f"tmux -f /dev/null -S {post.scratch}/t"
    at_terminal(post, multiplexed(post, f"{tmux}1 new-session"))
    assert answered(post) == ["person"]
    at_terminal(post, multiplexed(post, f"{tmux}2 new-session -d"))
    found = answered(post)
    assert found[0] == "program"
    assert "nobody is attached" in found[1]
    worker.bash(f"script -qc {shlex.quote(bare(post, multiplexed(post, f'{tmux}3 new-session')))} /dev/null", "w")
    found = answered(post)
    assert found[0] == "program"
    assert "is not the person's" in found[1]


@needs_screen
def test_screen_is_the_person_s_where_they_are_attached(post: Post, worker: Client) -> None:
    """A command in ``screen`` is the person's if they are attached. If a client started ``screen``, it is the
    session's."""
    post.env["SCREENDIR"] = str(post.scratch / "screens")
    (post.scratch / "screens").mkdir(mode=0o700)
    at_terminal(post, multiplexed(post, "screen -c /dev/null"))
    assert answered(post) == ["person"]
    text = bare(post, f"SCREENDIR={post.env['SCREENDIR']} {multiplexed(post, 'screen -c /dev/null')}")
    worker.bash(f"script -qc {shlex.quote(text)} /dev/null", "w")
    assert answered(post) == ["session", "w"]


# -- programs ---------------------------------------------------------------------------------------------------------


def elsewhere(post: Post, where: str, text: str) -> str:
    """The text as cron or ``at``, a CI runner, or a plain script would have it run; its exit code in ``rc``."""
    text = f"{text}; echo $? >{post.scratch}/rc"
    state = f"{switches.STATE}={post.user_state}"
    if where == "cron":
        named = f"{state} HOME={post.home} LOGNAME=me SHELL=/bin/sh PATH=/usr/bin:/bin AGENT_MAILBOX_DIR={post.box}"
        return f"cd / && setsid -f env -i {named} sh -c {shlex.quote(text)}"
    return f"CI=true GITHUB_ACTIONS=true sh -ec {shlex.quote(text)}" if where == "ci" else text


@pytest.mark.parametrize("where", ["cron", "ci", "script"])
@pytest.mark.usefixtures("worker")
def test_the_two_command_lines_of_the_founding_text_work_without_a_terminal(post: Post, where: str) -> None:
    """Under cron, in CI and in a script, while sessions of clients are about and one of them is bound."""
    bind(post, "w")
    scripts = [
        shlex.join([sys.executable, str(ROOT / "scripts" / name)]) for name in ("agent_mailbox.py", "agent_roster.py")
    ]
    update = f"{scripts[1]} update --session-id build-7 --tags project:demo"
    send = f"{scripts[0]} send --from build-7 --to w --subject Build --body done"
    script = elsewhere(post, where, f"{{ {update} && {send}; }} >/dev/null")
    with post.start(python=("-c", f"import subprocess; subprocess.run({script!r}, shell=True)"), env=NOBODY_SAID):
        assert until(lambda: (post.scratch / "rc").exists() and (post.scratch / "rc").read_text()) == "0\n"
    assert [m["sender"] for m in post.objects(MESSAGES)] == ["build-7"]
    assert post.ok("roster", "show", "build-7")["agent"]["tags"] == ["project:demo"]


PROGRAM_S = [
    (("send", "--from", "user", "--to", "w", "--body", "x"), NOT_YOU),
    (("send", "--from", "w", "--to", "boss", "--body", "x"), NOT_YOU),
    (("send", "--from", "boss", "--to", "w", "--body", "x"), NOT_YOU),
    (("check", "--session", "user"), NOT_YOU),
    (("send", "--to", "w", "--body", "x"), "no_session"),
    (("roster", "update", "--session-id", "w", "--tags", "project:x"), NOT_YOU),
    (("roster", "retire", "w"), NOT_YOU),
    (("control", "policy", "w", "--allow", "Bash", "--session", "user"), callers.NOT_THE_PERSON),
    (("control", "mode", "w", "acceptEdits", "--session", "job"), callers.NOT_THE_PERSON),
    (("control", "approve", "x", "--session", "job"), callers.NOT_THE_PERSON),
    (("control", "deny", "x", "--session", "job"), callers.NOT_THE_PERSON),
    (("control", "answer", "x", "approve", "--session", "job"), callers.NOT_THE_PERSON),
    (("control", "request", "shutdown", "w", "--session", "job"), callers.NOT_THE_PERSON),
]


@pytest.mark.usefixtures("worker")
def test_a_program_is_neither_the_person_nor_a_client_s_session_and_decides_nothing(post: Post) -> None:
    """One without a terminal, below no client: plain ``ssh HOST command`` is such a one."""
    for command, code in PROGRAM_S:
        done = post.run(*command, "--json", env=NOBODY_SAID)
        assert done.rc in (1, 2), (command, done)
        assert done.json["error"]["code"] == code, command


def test_a_program_without_a_session_may_look_at_the_control_plane(post: Post) -> None:
    """A program without a session may list all requests, modes and policies. It needs a session for its own."""
    post.register("w")
    for looks in (("pending", "--all"), ("mode", "w"), ("policy", "w")):
        assert post.run("control", *looks, "--json", env=NOBODY_SAID).rc == 0, looks
    for own in (("pending",), ("mode",), ("policy",), ("mode", "all"), ("policy", "all")):
        refused(post.run("control", *own, env=NOBODY_SAID), 2, "cannot tell who is calling")


@pytest.mark.usefixtures("worker")
def test_a_shell_is_told_whose_it_may_be(post: Post) -> None:
    """The hint names the agents that a program may act as, none with a client, and a line that makes it one."""
    post.register("ann")
    hint = refused(post.run("check", env=NOBODY_SAID), 2, "cannot tell who is calling").stderr
    assert "if you are ann: `export AGENT_MAILBOX_SESSION=ann`" in hint, hint
    assert post.run("check", env={**NOBODY_SAID, "AGENT_MAILBOX_SESSION": "ann"}).rc == 0


def test_what_leaves_its_client_behind_is_a_program(post: Post, worker: Client) -> None:
    """A double fork: its commands are nobody's session; a terminal that it makes itself is not the person's."""
    # It might outrun its parent. A parent that nobody has waited for keeps its name, and has no program any more.
    left = 'while [ "$(cat /proc/$PPID/comm 2>/dev/null)" = setsid ] && [ -e /proc/$PPID/exe ]; do :; done'
    for inner in (who(), f"script -qc {shlex.quote(who())} /dev/null"):
        worker.bash(f"setsid -f sh -c {shlex.quote(f'{left}; {inner} >{post.scratch}/said')}", "w")
        assert answered(post)[0] == "program"


# -- what is the person's alone ---------------------------------------------------------------------------------------


def bind(post: Post, session_id: str) -> None:
    """Have the user's records say that a session is bound."""
    (post.user_state / paths.BOUND).mkdir(parents=True, exist_ok=True)
    (post.user_state / paths.BOUND / session_id).touch()


THEIRS = [
    ("setup", "--yes"),
    ("setup", "--remove"),
    ("up",),
    ("up", "team.toml"),
    ("down",),
    ("install", "claude-code"),
    ("install", "codex", "--dry-run"),
    ("uninstall", "claude-code"),
    ("uninstall", "claude-code", "--user"),
    ("uninstall", "--all"),
    ("uninstall", "--all", "--state"),
    ("restore", "x.tar", "there"),
    ("backup", "/tmp/of-another-place.tar"),
    ("backup", "../../escaped.tar"),
    ("doctor", "--repair"),
    ("doctor", "--trust"),
    ("init", "vendor/lib"),
    ("init", "--adopt"),
    ("steward", "crontab", "--install"),
    ("steward", "run", "--trust-clock"),
    ("console", "--port", "0"),
    ("engine", "join", "nats://127.0.0.1:1", "--space", "s", "--machine", "m"),
    ("engine", "leave"),
    ("engine", "forget", "north"),
    ("engine", "config", "--machine", "m"),
    ("engine", "serve"),
    ("engine", "purge"),
    ("notify", "--test"),
    ("swarm", "init", "--agent", "a", "--endpoint", "https://x/swarm"),
    ("swarm", "serve"),
    ("swarm", "attach"),
    ("swarm", "detach"),
    ("swarm", "state", "export"),
    ("swarm", "leave", "x"),
    ("swarm", "kick", "x", "y"),
]


def test_every_reserved_command_is_tried_here() -> None:
    """The table holds no command that the attacks leave out."""
    tried = {key for command in THEIRS for key in (command[:1], command[:2])}
    assert {key for key in reserved.RESERVED if key not in tried} == set()


def test_what_is_the_person_s_alone_is_refused_to_a_session(post: Post, worker: Client) -> None:
    """Bound or not; nothing changes."""
    before = snapshot(post)
    ended = results_of(worker.bash(several(THEIRS), "w"))
    assert len(ended) == len(THEIRS)
    for done in ended:
        refused(done, 1, "only the person may run", "process of session w")
    assert snapshot(post) == before


def test_a_look_that_changes_nothing_is_anybody_s(post: Post, worker: Client) -> None:
    """The state of a team, which the roster has, and the line for cron: a session and a program are told, bound or
    not."""
    (post.cwd / "team.toml").write_text('[member.Ann]\nclient = "claude"\n')
    looks = (("up", "--status"), ("steward", "crontab"))
    bind(post, "w")
    before = snapshot(post)
    found = [*results_of(worker.bash(several(looks), "w")), *(post.run(*one, env=NOBODY_SAID) for one in looks)]
    assert [("not started" in one.stdout, "steward run" in one.stdout) for one in found] == 2 * [
        (True, False), (False, True)
    ]  # fmt: skip
    assert snapshot(post) == before


def test_a_worker_is_judged_by_what_bound_it_wherever_it_is_resumed(post: Post, worker: Client) -> None:
    """A bound worker keeps its rules when it resumes in another mailbox's directory, or when its settings name another
    mailbox."""
    post.ok("control", "policy", "w", "--deny", "Bash(curl:*)", "--session", "user")
    post.ok("init", post.scratch / "other/data")
    assert worker.bash(f"mkdir lib; touch lib/{MESSAGES}", "w").rc == 0
    refused(worker.bash(line("init", "lib"), "w"), 1, f"`agent-mailbox init {post.cwd}/lib`")
    wants = {"tool_name": "Bash", "tool_input": {"command": "curl evil.example"}}
    assert '"deny"' in worker.hook("w", "Permit", **wants).stdout
    for there in ({"AGENT_MAILBOX_DIR": str(post.scratch / "other/data")}, {"AGENT_MAILBOX_DIR": ""}):
        assert worker.hook("w", source="resume", settings=there, cwd=str(post.cwd / "lib")).rc == 0
        told = worker.hook("w", "Permit", settings=there, cwd=str(post.cwd / "lib"), **wants).stdout
        assert "denies Bash(curl:*)" in told, there


def test_it_is_refused_to_a_program_where_somebody_is_bound(post: Post) -> None:
    """A worker that leaves its client behind by a double fork is one."""
    bind(post, "w")
    program.load_all()  # what is forked has them
    for command in THEIRS:
        refused(post.run(*command, env=NOBODY_SAID, forked=True), 1, "only the person may run")


def test_a_bound_worker_does_not_uninstall_what_binds_it(post: Post, worker: Client) -> None:
    """A bound worker cannot run ``uninstall`` by any detour; the person at a terminal can."""
    settings = post.cwd / ".claude" / "settings.local.json"
    assert at_terminal(post, line("install", "claude-code")).rc == 0
    bind(post, "w")
    before = settings.read_bytes()
    uninstall = line("uninstall", "claude-code")
    for text in (uninstall, bare(post, f"cd {post.cwd} && {uninstall}"), f"setsid -f {uninstall}"):
        worker.bash(text, "w")
        assert settings.read_bytes() == before, text
    assert at_terminal(post, uninstall).rc == 0
    assert not settings.exists() or settings.read_bytes() != before


def test_only_the_person_says_that_they_looked(post: Post) -> None:
    """A program does not, though nobody is bound; at a terminal of one's own it is done."""
    speaks = ("engine", "join", "--speaks", "north=user")
    for said in (("doctor", "--trust"), ("init", "--adopt"), ("console", "--port", "0"), speaks):
        refused(post.run(*said, env=NOBODY_SAID), 1, "only the person may run", "this is a program: it has no terminal")
    refused(post.run("doctor", "--trust", env=NOBODY_SAID), 1, "`agent-mailbox doctor --trust`")
    assert at_terminal(post, line("doctor", "--trust")).rc == 0
    assert at_terminal(post, line("init", "--adopt")).rc == 0


def test_a_program_installs_where_nobody_is_bound(post: Post) -> None:
    """A program without a session may run ``install`` and ``backup`` where nobody is bound."""
    assert post.run("install", "claude-code", env=NOBODY_SAID).rc == 0
    assert post.run("backup", post.scratch / "b.tar", env=NOBODY_SAID).rc == 0


PRODUCT = ROOT / "agent_mailbox/__main__.py"
"""What an installed command starts: without the switches of tests."""
OWN_HOME = ("unshare", "-Urm", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"')
"""Starts a program whose user has a home of the test's, by the password database: it decides where records are."""


def test_the_product_knows_no_switch_of_tests() -> None:
    """Neither its Python nor its shell: what decides who calls is in no variable."""
    files = [
        *(ROOT / "agent_mailbox").rglob("*.py"),
        *(ROOT / "hooks").iterdir(),
        *(ROOT / "agent_mailbox").rglob("*.js"),
    ]
    assert [file for file in files if "AGENT_MAILBOX_TEST" in file.read_text()] == []


@pytest.mark.skipif(not can_run(*OWN_HOME, "/etc/passwd", "true"), reason="no namespaces of one's own")
def test_no_variable_makes_a_worker_the_person(post: Post) -> None:
    """The installed program with the variables by which tests choose records and callers: below the worker's client,
    and where nothing is above it, all that is the person's or the lead's is refused."""
    (passwd := post.scratch / "passwd").write_text(f"me:x:0:0::{post.home}:/bin/sh\n")
    with Client(post) as other:
        assert other.hook("boss").rc == 0
    post.env["AGENT_MAILBOX_LEAD"] = "boss"
    with Client(post, under=(*OWN_HOME, str(passwd))) as client:
        assert client.hook("w").rc == 0
        bind(post, "w")
        before = snapshot(post)
        named = [f"{name}={post.env[name]}" for name in ("PATH", "HOME", "AGENT_MAILBOX_DIR")]
        lies = [f"{switches.STATE}={post.scratch}/lie", f"{switches.CALLER}={switches.AS_SAID}"]
        product = [sys.executable, "-I", "-S", str(PRODUCT)]
        for command in (
            ("uninstall", "claude-code", "--project", "."),
            ("install", "claude-code", "--project", "."),
            ("backup", "/tmp/of-another-place.tar"),
            ("steward", "crontab", "--install"),
            ("doctor", "--repair"),
            ("check", "--session", "boss"),
            POLICY,
        ):
            text = shlex.join(["env", "-i", *named, *lies, *product, *command])
            for spelled in (text, f"setsid -w {text}", f'out=$(setsid -f {text} 2>&1; echo); echo "$out"; exit 1'):
                done = client.bash(spelled, "w")
                assert done.rc == 1, (spelled, done)
                assert "error: " in done.stdout + done.stderr, (spelled, done)
        assert snapshot(post) == before
        assert not (post.scratch / "lie").exists()


UNSEEN = {
    "empty": ("unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"),
    "own": ("unshare", "-Urpfm", "--mount-proc"),
}
"""Where a command's ancestors are not to be seen; an unprivileged user may go there."""


@pytest.mark.skipif(not all(can_run(*under, "true") for under in UNSEEN.values()), reason="no namespaces of one's own")
@pytest.mark.parametrize("where", UNSEEN)
def test_where_ancestors_are_not_seen_no_variable_makes_a_session(post: Post, worker: Client, where: str) -> None:
    """Neither for a command nor for a hook: the caller is a program, which has no mail of a client's session."""
    post.send("bot", "boss", "SECRET")
    before = post.snapshot()
    told = json.dumps({"session_id": "boss", "cwd": str(post.cwd), "prompt": "x"})
    commands = [
        line("check"),
        f"AGENT_MAILBOX_SESSION=boss {line('check', '--peek')}",
        line(*POLICY),
        line("lease", "x"),
        f"echo {shlex.quote(told)} | {line('hook', 'UserPromptSubmit')}",
        f"script -qec {shlex.quote(bare(post, line('control', 'mode', 'w', 'acceptEdits')))} /dev/null",
    ]
    each = "; ".join(f"({command}) && echo RAN" for command in commands)
    done = worker.bash(shlex.join([*UNSEEN[where], "sh", "-c", f"export CLAUDE_CODE_SESSION_ID=boss; {each}"]), "w")
    told = done.stdout + done.stderr
    assert told.count("error: ") + told.count("agent-mailbox: ") == len(commands), told
    assert "RAN" not in told
    assert "SECRET" not in told
    assert post.snapshot() == before


def snapshot(post: Post) -> dict[str, bytes]:
    """Every file of the test's place, but for heartbeats and what is derived."""
    kept = (path for path in post.scratch.rglob("*") if path.is_file() and "clients" not in path.parts)
    return {str(path): path.read_bytes() for path in kept if ".cache" not in path.parts}


# -- what is proven ---------------------------------------------------------------------------------------------------


def test_each_kind_of_caller_proves_only_itself() -> None:
    """The person for whomever they name, a session for itself alone, a program nothing."""
    person, program = callers.Caller(callers.PERSON), callers.Caller(callers.PROGRAM)
    session = callers.Caller(callers.SESSION, ("a", "b"))
    assert [person.proof_for(one) for one in ("user", "a")] == ["user@terminal"] * 2
    assert [session.proof_for(one) for one in ("a", "b", "c", "user")] == ["session:a", "session:b", None, None]
    assert program.proof_for("a") is None


PROVING: list[tuple[tuple[str, ...], Any]] = [
    (("send", "--to", "bob", "--body", "x", "--from", "me"), ["session:me", "user@terminal"]),
    (("send", "--jsonl", "-", "--from", "me"), [None, None]),
    (("steward", "run"), ["steward", "steward"]),
]


@pytest.mark.parametrize(("command", "wanted"), PROVING, ids=lambda value: " ".join(map(str, value)))
def test_each_command_seals_only_what_its_caller_proves(
    post: Post, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], wanted: list[str | None]
) -> None:
    """A batch proves nothing for any line, the steward itself, whoever starts it."""
    from agent_mailbox.mailbox.open_mailbox import OpenMailbox

    post.register("me")
    post.register("bob")
    found: list[list[str | None]] = []
    init = OpenMailbox.__init__

    def opened(self: OpenMailbox, *args: Any, **more: Any) -> None:
        init(self, *args, **more)
        seen.append(self)

    seen: list[OpenMailbox] = []
    monkeypatch.setattr(OpenMailbox, "__init__", opened)
    monkeypatch.setattr(send_commands, "nobody", lambda _: None)  # the tests' own says more
    assert post.call(*command, stdin='{"to": "bob", "content": "x"}\n').rc == 0
    found = [[desk.prove("me"), desk.prove("user")] for desk in seen]
    assert found[0] == wanted


def test_a_process_record_that_lacks_a_word_tells_of_nobody(tmp_path: Path) -> None:
    """Each of its first line's words is needed, and a record that another program cut is none."""
    hosts, mine = ProcessRecords(str(tmp_path)), processes.read(os.getpid())
    assert mine is not None
    hosts.record(mine, "a", "here")
    assert len([*hosts.all()]) == 1
    (path,) = (one for one in tmp_path.rglob("*") if one.is_file())
    words = path.read_text().splitlines()[0].split(" ")
    assert len(words) == 5
    for count in range(len(words)):
        path.write_text(" ".join(words[:count]) + "\na\n")
        assert [*hosts.all()] == []


def test_nobody_is_gone_while_a_record_cannot_be_read(tmp_path: Path) -> None:
    """The session's client ended. Another client's record is unreadable, and may name the session, too. One whose
    client's number is known runs all the same."""
    hosts, mine = ProcessRecords(str(tmp_path)), processes.read(os.getpid())
    assert mine is not None
    hosts.record(mine.replace(pid=4_000_000), "a", PIPE)
    assert hosts.judge({"a": None}) == ({"a"}, set())
    (path,) = (one for one in tmp_path.rglob("*") if one.is_file())
    unreadable = path.with_name(path.name.replace("4000000", "4000001"))
    unreadable.mkdir()
    hosts.record(mine, "b", PIPE)
    assert hosts.judge({"a": None, "b": str(mine.pid)}) == (set(), {"b"})
    unreadable.rmdir()
    assert hosts.judge({"a": None}) == ({"a"}, set())


def test_the_words_of_a_process_may_be_any_bytes() -> None:
    """A word that is no UTF-8 hides none of the others, and a name that is none hides no process."""
    code = "open('/proc/self/comm', 'wb').write(b'\\xff'); print(flush=True); input()"
    words = [sys.executable, "-c", code, b"\xff", "last"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        one.stdout.readline()
        assert processes.words(one.pid)[-2:] == ["\ufffd", "last"]
        found = processes.read(one.pid)
        assert found is not None
        assert found.name == "\ufffd"
        one.kill()


# -- sessions below a client's background service ---------------------------------------------------------------------


SERVICE = """
import subprocess, sys
open("/proc/self/comm", "w").write("claude")
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""
FREED = line("control", "policy", "w", "--allow", "Bash")


@pytest.fixture
def served(post: Post) -> tuple[str, ...]:
    """The words of a service that runs what follows."""
    (post.cwd / "daemon").write_text(SERVICE)
    return ("env", "-u", "CLAUDE_PID", sys.executable, "daemon", "run")


@pytest.fixture
def lead(post: Post) -> str:
    """The session of a client that ended, which leads ``w``."""
    with Client(post) as other:
        assert other.hook("boss").rc == 0
        assert other.hook("boss", "SessionEnd", reason="other").rc == 0
    post.env["AGENT_MAILBOX_LEAD"] = "boss"
    with Client(post) as client:
        assert client.hook("w").rc == 0
    del post.env["AGENT_MAILBOX_LEAD"]
    return "boss"


def state(post: Post, session: str) -> str:
    """A session's state in the roster."""
    return next(a["state"] for a in post.ok("roster", "list")["agents"] if a["session_id"] == session)


def note(post: Post, session: str, **dispatch: Any) -> Path:
    """What the service notes of a session."""
    file = post.home / ".claude/daemon/roster.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"workers": {"x": {"sessionId": session, "dispatch": dispatch}}}))
    return file


def how(post: Post, session: str) -> list[str]:
    """How the session's client is recorded to call."""
    return [host.how for host in ProcessRecords(str(post.user_state)).hosting(session)]


def test_brought_back_in_the_background_a_session_has_its_mail_and_decides_nothing(
    post: Post, served: tuple[str, ...], lead: str
) -> None:
    """It is alive again, and its commands are its own. An answer, a rule, a mode and a control message of it are
    refused, after ``/clear``, too. What it says of its own end is its own word."""
    with Client(post, under=served) as client:
        assert client.hook(lead, source="resume").rc == 0
        assert state(post, lead) == "alive"
        assert SERVED in how(post, lead)
        assert client.bash(line("send", "--to", "w", "--body", "MAIL"), lead).rc == 0
        assert f"session:{lead}" in post.objects(MESSAGES)[-1]["seal"]
        ways = (FREED, line("control", "mode", "w", "acceptEdits"), line("control", "request", "shutdown", "w"))
        typed = line("send", "--type", "control", "--to", "w", "--body", json.dumps({"type": "mode_set_request"}))
        for way in (*ways, typed):
            refused(client.bash(way, lead), 1, "came back in the background")
        assert client.hook("next", source="clear").rc == 0
        refused(client.bash(FREED, "next"), 1, "came back in the background")
    with Client(post) as client:  # at a terminal it is whole again
        assert client.hook(lead, source="resume").rc == 0
        assert client.bash(FREED, lead).rc == 0


@pytest.mark.parametrize("way", ["its own service", "its note", "below its client"])
def test_a_service_that_an_agent_asks_brings_nobody_back(
    post: Post, served: tuple[str, ...], lead: str, way: str
) -> None:
    """The service has the variables of the agent that started it, or notes who asked, or is below its client."""
    under = served
    if way == "its own service":
        under = ("env", "CLAUDE_PID=1", *served[3:])
    elif way == "its note":
        note(post, lead, env={"CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS": "w"})
    else:
        (post.cwd / "claude").write_text(SERVICE)
        under = (sys.executable, "claude", "-p", *served)
    with Client(post, under=under) as client:
        assert client.hook(lead, source="resume").rc == 0
        assert state(post, lead) == "frozen"
        for command in (FREED, line("send", "--to", "w", "--body", "X")):
            refused(client.bash(command, lead), 1)
    assert not any("control" in str(message) for message in post.objects(MESSAGES))


def test_a_new_session_in_the_background_is_whole(post: Post, served: tuple[str, ...]) -> None:
    """A session that begins there is its client's, and may lead."""
    with Client(post, under=served) as client:
        assert client.hook("fresh").rc == 0
        assert how(post, "fresh") == [SOCKET]
        post.ok("roster", "register", "--session-id", "w", "--lead", "fresh")
        assert client.bash(FREED, "fresh").rc == 0


def test_our_variables_count_for_no_session_in_the_background(post: Post, served: tuple[str, ...]) -> None:
    """They are those of the terminal that started the service. The session is told so as it starts, and not again."""
    project = post.scratch / "project"
    post.ok("init", project / "data")
    inherited = {"AGENT_MAILBOX_ROLE": "architect", "AGENT_MAILBOX_NAME": "Ann", "AGENT_MAILBOX_LEAD": "boss"}
    post.env |= inherited
    there = {"settings": {"CLAUDE_JOB_DIR": "/jobs/x"}, "cwd": str(project)}
    with Client(post, under=served) as client:
        told = client.hook("fresh", source="startup", **there).stdout
        assert "AGENT_MAILBOX_DIR, AGENT_MAILBOX_ROLE, AGENT_MAILBOX_NAME, AGENT_MAILBOX_LEAD left out" in told
        assert "left out" not in client.hook("fresh", "UserPromptSubmit", prompt="x", **there).stdout
        assert "left out" not in client.hook("next", source="clear", **there).stdout
        command = f"cd {project} && {line('send', '--to', 'bob', '--body', 'HERE')}"
        assert client.bash(command, "next", CLAUDE_JOB_DIR="/jobs/x").rc == 0
    assert post.objects(ROSTER) == []
    assert post.objects(MESSAGES) == []
    assert "HERE" in (project / "data" / MESSAGES).read_text()
    (first, *_) = [json.loads(row) for row in (project / "data" / ROSTER).read_text().splitlines()]
    assert (first["name"] in NAMES, first.get("lead"), first["tags"]) == (True, None, ["project:project"])


@pytest.mark.parametrize(
    ("source", "reason", "askers", "goes_on"),
    [
        ("slash", "prompt_input_exit", ",", True),
        ("slash", "other", ",", False),
        ("shell", "prompt_input_exit", ",", False),
        ("slash", "prompt_input_exit", "w", False),
    ],
)
def test_only_whom_its_person_moves_goes_on_in_the_background(
    post: Post, served: tuple[str, ...], source: str, reason: str, askers: str, goes_on: bool
) -> None:
    """The service notes ``/bg``, and the client at the terminal told just now that its person left. Any other copy is
    another agent, and is told whose copy it is. Neither decides."""
    with Client(post) as at_terminal:
        post.env["AGENT_MAILBOX_NAME"] = "Fore"
        assert at_terminal.hook("fore", settings={"AGENT_MAILBOX_NAME": "Fore"}).rc == 0
        assert at_terminal.hook("fore", "SessionEnd", reason=reason).rc == 0
        del post.env["AGENT_MAILBOX_NAME"]
    launch = {"mode": "resume", "sessionId": "/x/fore.jsonl", "fork": True}
    note(post, "copy", source=source, launch=launch, env={"CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS": askers})
    with Client(post, under=served) as client:
        told = client.hook("copy", source="fork").stdout
        found = next(a for a in post.ok("roster", "list")["agents"] if a["session_id"] == "copy")
        assert found["continues"] == (["fore"] if goes_on else [])
        assert (found["name"] == "Fore", found["name"] in NAMES) == (goes_on, not goes_on)
        assert ("a fork with another one's talk: Fore is not you" in told) is not goes_on
        if askers == ",":
            refused(client.bash(FREED, "copy"), 1, "came back in the background")
