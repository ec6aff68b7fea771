"""``up`` and ``down`` beside programs that say nothing, half a line or too much: what was started is known or ended.

Each program is a script in the place of the client, of its server or of tmux.
"""

from __future__ import annotations

import contextlib
import json
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

from agent_mailbox.clients import codex_server
from agent_mailbox.clients.starting import claude_background, codex_app_server, opencode_server, start, tmux
from agent_mailbox.commands import fleet
from agent_mailbox.errors import StorageFailed
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.store.files import programs
from agent_mailbox.store.user_state import processes, team_records
from tests.cli import test_up
from tests.helpers import Child, each, refused, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.helpers import Post

team = test_up.team
TEAM = '[member.Ann]\nclient = "claude"\nprompt = "Lead."\n'
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
    text = test_up.CLAUDE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    put(team, "claude", text)
    (team.cwd / "team.toml").write_text(TEAM)


def stopped(team: Post) -> list[str]:
    """The sessions that the client was asked to end."""
    return [words[1] for words, _ in test_up.calls(team) if words[0] == "stop"]


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
    (_, stop) = test_up.calls(team)
    assert stop[0][0] == "stop"
    assert members(team) == {}


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
    (team.cwd / "team.toml").write_text(TEAM.replace("claude", "opencode"))
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
    (team.cwd / "team.toml").write_text(TEAM.replace("claude", client))
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
def test_a_client_whose_start_cannot_be_noted_is_ended(team: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full behind the start. A client that tells no id was then in no record at all."""
    (team.cwd / "team.toml").write_text(TEAM.replace("claude", "codex"))
    put(team, "codex", f"echo $$ >{team.home}/new; mv {team.home}/new {team.home}/pid; exec sleep 1000")
    team.env["TMUX_TMPDIR"] = str(team.scratch)
    team.env.pop("TMUX", None)
    save = team_records.save_record

    def fail(file: str, record: team_records.TeamRecord, environ: Mapping[str, str]) -> None:
        if record.members:
            until(lambda: (team.home / "pid").exists())
            raise StorageFailed("cannot write the record: No space left on device", "free some space")
        save(file, record, environ)

    monkeypatch.setattr(team_records, "save_record", fail)
    try:
        refused(team.call("up", "--tmux", "--yes", "--wait", "0"), 5, "Ann was not started: cannot write the record")
        pid = int((team.home / "pid").read_text())
        until(lambda: (left := processes.read(pid)) is None or left.is_over)
    finally:
        subprocess.run(["tmux", "kill-server"], env=team.env, capture_output=True)
