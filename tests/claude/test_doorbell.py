"""The doorbell as real processes beside a client's: one of them, only for unread mail, gone when its session is."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients import doorbell
from agent_mailbox.clients.client import Client as ClientProcess
from agent_mailbox.core.proofs import of_session
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.doorbell_lock import DoorbellLock
from agent_mailbox.store.log.stamps import StampFiles
from tests.cli.test_launch import copied, switched
from tests.helpers import DOOR, HEARTBEATS, MESSAGES, PATIENCE, READS, ROOT, ROSTER, Post, Result, delete, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ME = "b1134fc7-6f1e-4997-83ed-699c6c8ae683"
MARKED = "MARKED_WORDS"


class Client:
    """A process that means a client at a terminal, with its entry in the client's registry."""

    def __init__(self, post: Post, session_id: str = ME) -> None:
        self.post = post
        self.session_id = session_id
        self.process = subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE)
        self.registry = post.home / f".claude/sessions/{self.process.pid}.json"
        self.registry.parent.mkdir(parents=True, exist_ok=True)
        self.env: dict[str, str | None] = {
            "CLAUDE_PID": str(self.process.pid),
            "CLAUDE_CODE_SESSION_ID": session_id,
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ATTENDED": "1",
        }
        self.bells: list[subprocess.Popen[bytes]] = []
        self.does("idle")

    def does(self, status: str | None, session_id: str | None = None) -> None:
        """Write the registry over, as the client does."""
        entry = {"pid": self.process.pid, "sessionId": session_id or self.session_id, "status": status}
        self.registry.write_text(json.dumps({key: value for key, value in entry.items() if value}))

    def hook(self, event: str, **fields: Any) -> Result:
        """One of the session's usual hooks."""
        call = {"session_id": self.session_id, "hook_event_name": event, "source": "startup", **fields}
        return self.post.call("hook", event, stdin=json.dumps(call), env=self.env)

    def start(
        self, *, env: dict[str, str | None] | None = None, words: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a doorbell, as the client starts a hook in the background."""
        surroundings = {**self.env, **(env or {})}
        if words:
            bell = subprocess.Popen(
                words,
                env=self.post.environ(surroundings),
                cwd=self.post.cwd,
                **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
            )
        else:
            bell = self.post.start("hook", "Doorbell", env=surroundings)
        self.bells.append(bell)
        assert bell.stdin is not None
        try:
            bell.stdin.write(
                json.dumps({"session_id": self.session_id, "hook_event_name": "UserPromptSubmit"}).encode()
            )
            bell.stdin.close()
        except BrokenPipeError:
            pass  # the guard answered
        bell.stdin = None
        return bell

    @property
    def file(self) -> Path:
        """What tells others that a doorbell waits."""
        return self.post.file(".cache", "doorbell", self.session_id)

    def waiting(self, bell: subprocess.Popen[bytes]) -> None:
        """Wait until this one is the one, and asleep in its first wait."""
        until(lambda: self.file.exists() and self.file.read_text().startswith(f"{bell.pid} "))
        until(lambda: _asleep(bell.pid))

    def end(self) -> None:
        """Leave nothing behind."""
        for process in (*self.bells, self.process):
            if process.poll() is None:
                process.kill()
            process.communicate()


def _watched(pid: int) -> set[int]:
    """Return the inodes that the process watches (proc(5): ``inotify`` in fdinfo)."""
    files = list(Path(f"/proc/{pid}/fdinfo").iterdir())
    return {
        int(ino, 16) for file in files for ino in re.findall(r"^inotify .*\bino:(\w+)", file.read_text(), re.MULTILINE)
    }


def _asleep(pid: int) -> bool:
    """Does the process wait for what it watches? It looked at its session before. (proc(5); elsewhere its file is all
    there is to go by.) A wait for a lock, or for a file's content, is another one."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
        with open(f"/proc/{pid}/wchan") as file:
            where = file.read()
        fds = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except FileNotFoundError:
        return not os.path.exists("/proc/self/stat")
    hears = any("inotify" in fd for fd in fds) or not where.startswith("poll_")
    return state == "S" and hears and (where in ("", "0") or where.startswith("poll_"))


def ended(bell: subprocess.Popen[bytes]) -> tuple[int, str]:
    """(exit code, standard error) of a doorbell that ends; it says nothing else."""
    out, err = bell.communicate(timeout=PATIENCE)
    assert out == b""
    return bell.returncode, err.decode()


RUNG = (doorbell.WAKE, f"{doorbell.LINE}\n")
SILENT = (0, "")


@pytest.fixture
def client(post: Post) -> Iterator[Client]:
    """A session that started, idle, with nothing to read."""
    post.configure("[wake]\ngap_seconds = 0\n")
    made = Client(post)
    started = made.hook("SessionStart").raw
    assert b"you are " in started
    assert b"Agent mail\\n" not in started
    yield made
    made.end()


# -- ringing ----------------------------------------------------------------------------------------------------------


def test_a_session_with_commands_in_the_background_is_between_turns(client: Client) -> None:
    """The doorbell wakes a session that the client calls ``shell``, for it is between turns."""
    client.does("shell")
    bell = client.start()
    client.waiting(bell)
    client.post.send("bob", ME)
    assert ended(bell) == RUNG


@pytest.mark.parametrize("to", [ME, "role:builder", "all"])
def test_mail_for_an_idle_session_rings_with_one_fixed_line(client: Client, to: str) -> None:
    """Whatever address brings it; no word of it is in the line, and it stays unread for the hook to show."""
    client.post.ok("roster", "update", "--session-id", ME, "--role", "builder")
    bell = client.start()
    client.waiting(bell)
    sent = client.post.send("bob", to, MARKED, "--when", "now")
    assert ended(bell) == RUNG
    assert MARKED not in doorbell.LINE
    assert client.post.unread(ME) == [sent]


def test_mail_for_others_and_what_was_shown_meanwhile_do_not_ring(client: Client) -> None:
    """Then one for the session does: the same doorbell was still there."""
    client.does("busy")
    bell = client.start()
    client.waiting(bell)
    client.post.register("other")
    client.post.send("bob", "other", MARKED)
    client.post.send("bob", ME, MARKED)
    assert MARKED in client.hook("UserPromptSubmit").stdout
    client.does("idle")
    until(lambda: _asleep(bell.pid))
    assert bell.poll() is None
    client.post.send("bob", ME, MARKED)
    assert ended(bell) == RUNG


@pytest.mark.parametrize("status", ["busy", "waiting"])
def test_it_waits_for_the_end_of_a_turn_or_a_dialog(client: Client, status: str) -> None:
    """Mail that no hook has shown by then rings after it; not before: the session would be written to in its midst."""
    client.does(status)
    bell = client.start()
    client.waiting(bell)
    client.post.send("bob", ME)
    client.hook("UserPromptSubmit", agent_id="sub")  # a subagent's shows nothing
    until(lambda: _asleep(bell.pid))
    assert bell.poll() is None
    client.does("idle")
    assert ended(bell) == RUNG


def test_status_counts_the_wakes_of_a_session(client: Client) -> None:
    """Each ring that wakes it, with what that costs beside the mail; other lines of the telemetry count for nothing."""
    post = client.post
    other = {"what": "wake", "who": "other", "tokens": 5}
    odd = ({"what": "wake", "who": ME, "tokens": tokens} for tokens in (-1, 1 << 60, "x", True, None))
    post.append("agent-mailbox-events.jsonl", other, *odd, b'"wake"\n', b"\xff\n")
    for count in (1, 2):
        bell = client.start()
        client.waiting(bell)
        post.send("bob", ME)
        assert ended(bell) == RUNG
        post.check(ME)
        assert post.ok("status", "--session", ME, "--cost")["wakes"] == {"count": count, "tokens": count * 184}
    assert "on wakes (2): 368" in post.call("status", "--session", ME, "--cost").stdout
    assert "wakes" not in post.ok("status", "--session", ME)


def test_a_burst_rings_once(client: Client) -> None:
    """Twenty messages, one ring; the turn shows them all, and the next doorbell has nothing to ring for."""
    bell = client.start()
    client.waiting(bell)
    batch = "".join(json.dumps({"sender": "bob", "recipient": ME, "content": f"no {n}"}) + "\n" for n in range(10))
    client.post.ok("send", "--jsonl", "-", stdin=batch)
    client.post.ok("send", "--jsonl", "-", stdin=batch)
    assert ended(bell) == RUNG
    client.does("busy")
    second = client.start()
    client.waiting(second)
    client.hook("UserPromptSubmit")
    client.post.check(ME)
    client.does("idle")
    client.hook("Stop", stop_hook_active=True)
    until(lambda: _asleep(second.pid))
    assert second.poll() is None


def test_rung_is_not_read(client: Client) -> None:
    """Mail that the wake's turn left unread is called for again after a pause, which grows; new mail into an inbox that
    was empty in between at once."""
    words = []
    client.post.send("bob", ME)
    for _ in range(2):
        bell = client.start()
        assert ended(bell) == RUNG
        words.append(client.file.read_text().split())
        who, client_pid, rings, at, *ids = words[-1]
        assert (who, client_pid) == ("-", str(client.process.pid))
        aged = float(at) - doorbell.PAUSE * 4 ** (int(rings) - 1)
        client.file.write_text(f"- {client_pid}\n{rings} {aged} {' '.join(ids)}\n")
    assert [rings for _, _, rings, *_ in words] == ["1", "2"]
    client.file.write_text(f"- {client.process.pid}\n{' '.join(words[-1][2:])}\n")
    waiting = client.start()
    client.waiting(waiting)
    assert waiting.poll() is None
    client.post.check(ME)
    client.post.send("bob", ME)
    assert ended(waiting) == RUNG
    assert client.file.read_text().split()[2] == "1"


def test_role_mail_wakes_its_first_holder_first(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one is called only if the first does not take it: here it does, and the second sleeps on."""
    monkeypatch.setattr(doorbell, "TURN", float(PATIENCE))  # a busy machine's first holder may take long
    other = Client(client.post, "c2245fc7-6f1e-4997-83ed-699c6c8ae684")
    try:
        other.hook("SessionStart")
        for one in (client, other):
            client.post.ok("roster", "update", "--session-id", one.session_id, "--role", "builder")
        second, first = other.start(), client.start()
        client.waiting(first)
        other.waiting(second)
        client.post.send("bob", "role:builder", MARKED)
        assert ended(first) == RUNG
        assert MARKED in client.hook("UserPromptSubmit").stdout
        until(lambda: _asleep(second.pid))
        assert second.poll() is None
        client.post.send("bob", other.session_id)
        assert ended(second) == RUNG
    finally:
        other.end()


def test_a_client_that_does_not_say_what_it_does_is_idle_once_its_hooks_are_silent(client: Client) -> None:
    """Without an entry in the registry, the heartbeat that hooks leave is what there is to go by."""
    client.registry.unlink()
    client.post.send("bob", ME)
    bell = client.start()
    client.waiting(bell)
    assert bell.poll() is None
    os.utime(client.post.file(HEARTBEATS, ME), (1, 1))
    client.registry.with_suffix(".other").touch()
    assert ended(bell) == RUNG


# -- one of them, and only while it is wanted -------------------------------------------------------------------------


def test_a_second_one_defers_and_the_first_goes_on(client: Client) -> None:
    """However often the session starts, is compacted, or is prompted."""
    first = client.start()
    client.waiting(first)
    for _ in range(3):
        assert ended(client.start()) == SILENT
    client.post.send("bob", ME)
    assert ended(first) == RUNG


def test_many_started_at_once_are_one(client: Client) -> None:
    """All but one end at once."""
    bells = [client.start() for _ in range(6)]
    until(lambda: sum(bell.poll() is None for bell in bells) == 1)
    client.post.send("bob", ME)
    assert sorted(ended(bell) for bell in bells) == [SILENT] * 5 + [RUNG]


def test_a_session_resumed_by_another_client_has_the_later_one_rung(client: Client) -> None:
    """The first client's doorbell finds itself replaced."""
    first = client.start()
    client.waiting(first)
    later = Client(client.post)
    try:
        second = later.start()
        later.waiting(second)
        assert ended(first) == SILENT
        client.post.send("bob", ME)
        assert ended(second) == RUNG
    finally:
        later.end()


def test_it_ends_with_its_client_however_that_ends(client: Client) -> None:
    """``kill -9`` tells nobody, and leaves the registry's entry."""
    bell = client.start()
    client.waiting(bell)
    client.process.send_signal(signal.SIGKILL)
    client.process.wait()
    assert ended(bell) == SILENT


def test_a_doorbell_ends_with_its_session(client: Client) -> None:
    """The doorbell ends silently when its session ends, or when another session takes its place in the client."""
    bell = client.start()
    client.waiting(bell)
    client.hook("SessionEnd", reason="clear")
    assert ended(bell) == SILENT
    client.hook("SessionStart")
    bell = client.start()
    client.waiting(bell)
    client.does("idle", session_id="another")
    assert ended(bell) == SILENT


def test_it_ends_with_its_session_although_that_is_quiet_again(client: Client) -> None:
    """A stamp that was made after the end, before the doorbell looked, says that there is no mail: no more."""
    bell = client.start()
    client.waiting(bell)
    bell.send_signal(signal.SIGSTOP)
    client.hook("SessionEnd", reason="clear")
    stamp_files = StampFiles(str(client.post.file(".cache")))
    now = time.time_ns() // 1_000_000
    stamp_files.stamp(ME, now)
    assert stamp_files.believed(ME, now)
    bell.send_signal(signal.SIGCONT)
    assert ended(bell) == SILENT


def test_one_started_before_its_session_is_recorded_waits_for_that(client: Client) -> None:
    """The client starts both hooks at once; a resumed session is frozen until the other one has run."""
    client.hook("SessionEnd")
    bell = client.start()
    client.waiting(bell)
    client.post.send("bob", ME)
    until(lambda: _asleep(bell.pid))
    assert bell.poll() is None
    client.post.ok("roster", "heartbeat", "--session-id", ME)
    assert ended(bell) == RUNG


@pytest.mark.parametrize("text", ["", "raise AttributeError\n"])
def test_a_doorbell_whose_program_was_replaced_rings_for_mail(client: Client, text: str) -> None:
    """Its own look fails, for a part of another version or none. The hook of the new version shows the mail."""
    package = copied(client.post.scratch)
    client.hook("SessionStart")
    bell = client.start(words=(sys.executable, "-I", "-S", str(switched(package)), "hook", "Doorbell"))
    client.waiting(bell)
    for path in package.rglob("*.py"):
        path.write_text(text) if text else path.unlink()
    client.post.register("bob")
    client.post.send("bob", ME, "hello")
    assert ended(bell) == RUNG


def test_a_mailbox_that_vanishes_ends_it_and_a_cache_that_does_not(client: Client) -> None:
    """Derived files may go at any time: it takes its place again."""
    bell = client.start()
    client.waiting(bell)
    delete(client.post.file(".cache"))
    client.waiting(bell)
    delete(client.post.box)
    assert ended(bell) == SILENT


def test_a_mailbox_that_cannot_be_looked_at_does_not_end_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A doorbell that cannot look at its mailbox for a while looks again, and then wakes the session."""
    lstat, failures = system.lstat, [1, 2]

    def fails(path: str) -> os.stat_result:
        if path == str(client.post.file(MESSAGES)) and failures:
            failures.pop()
            raise OSError(errno.EIO, "Input/output error")
        return lstat(path)

    client.post.send("bob", ME)
    monkeypatch.setattr(doorbell, "TROUBLE", 0.01)
    monkeypatch.setattr(system, "lstat", fails)
    lock = DoorbellLock(str(client.post.file(".cache")), ME, client.process.pid)
    with ClientProcess(client.process.pid, client.post.environ(client.env)) as beside, lock:
        assert lock.take()
        assert (
            doorbell.Doorbell(str(client.post.box), ME, beside, lock, lambda _: None).wait_for_mail() == doorbell.WAKE
        )
    assert not failures


def test_an_idle_lead_is_woken_as_its_worker_is_silent(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lead's own doorbell looks now and then, and the notice is mail like any other."""
    post = client.post
    post.register("ann", "--lead", ME)
    post.ok("task", "add", "--to", "ann", "--title", "First", "--task-id", "task-a", "--session", ME)
    post.ok("task", "claim", "task-a", "--session", "ann")
    client.hook("UserPromptSubmit")
    post.file("config.toml").write_text("[tasks]\nsilent = 0.0001\n")
    monkeypatch.setattr(doorbell, "TELLS", 0.01)
    lock = DoorbellLock(str(post.file(".cache")), ME, client.process.pid)
    with ClientProcess(client.process.pid, post.environ(client.env)) as beside, lock:
        assert lock.take()
        bell = doorbell.Doorbell(str(post.box), ME, beside, lock, of_session)
        assert bell.wait_for_mail() == doorbell.WAKE
    assert "no progress and no turn of its holder" in post.ok("check", "--session", ME)["messages"][0]["content"]


def test_a_client_nobody_sits_at_has_none(client: Client) -> None:
    """It would wait for it, at its start or at its end. Nor has a client that says no number, or is gone."""
    client.post.send("bob", ME)
    for env in (
        {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"},
        {"CLAUDE_CODE_SESSION_ATTENDED": "0"},
        {"CLAUDE_PID": None},
        {"CLAUDE_PID": "999999999"},
        {"AGENT_MAILBOX_DIR": None},
    ):
        assert ended(client.start(env={**env})) == SILENT, env


def test_it_can_be_turned_off_and_on(client: Client) -> None:
    """``[hook] doorbell``, also while one waits."""
    bell = client.start()
    client.waiting(bell)
    client.post.file("config.toml").write_text("[hook]\ndoorbell = false\n")
    client.post.send("bob", ME)
    assert ended(bell) == SILENT
    assert client.file.read_text().startswith("off ")
    client.post.file("config.toml").write_text("[hook]\ndoorbell = true\n")
    assert ended(client.start()) == RUNG


# -- the guard --------------------------------------------------------------------------------------------------------


def test_while_a_doorbell_waits_the_guard_starts_no_python(client: Client) -> None:
    """The shim starts no Python for a second doorbell. It starts none for an unattended client, or if the configuration
    turns doorbells off."""
    checkout = client.post.scratch / "checkout"
    shutil.copytree(ROOT / "hooks", checkout / "hooks")
    (checkout / "agent_mailbox").symlink_to(DOOR / "agent_mailbox")
    started = client.post.scratch / "started"
    python = checkout / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {started}\n")
    python.chmod(0o755)
    words = (str(checkout / "hooks/agent-mailbox-hook"), "Doorbell")

    def starts(env: dict[str, str | None] | None = None) -> bool:
        started.unlink(missing_ok=True)
        assert ended(client.start(env=env, words=words)) == SILENT
        return started.exists()

    assert starts()
    bell = client.start()
    client.waiting(bell)
    assert not starts()
    if sys.platform == "linux":  # the process of before the machine's start may be anybody's by now
        os.utime(client.file, (1, 1))
        assert starts()
        os.utime(client.file)
        assert not starts()
    assert starts({"CLAUDE_PID": "1"})
    assert not starts({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"})
    assert not starts({"CLAUDE_CODE_SESSION_ATTENDED": "0"})
    bell.kill()
    ended(bell)
    assert starts()
    config = client.post.file("config.toml")
    config.write_text("[hook]\ndoorbell = false\n")
    assert ended(client.start()) == SILENT
    assert not starts()
    for seconds in (2**33, 1):
        os.utime(config, (seconds, seconds))
        assert starts(), seconds
    config.unlink()
    assert starts()


# -- other programs ---------------------------------------------------------------------------------------------------

FOREIGN = '{"id":"%s","sender":"cron","recipient":"%s","timestamp":"2099-01-01T00:00:00Z","content":"x","thread":null}'
RECORD = '{"message_id":"%s","reader_session_id":"holder-1111","timestamp":"2099-01-01T00:00:00Z","event":"%s"'
JOINS = '{"event":"update","session_id":"joins-1111","timestamp":"2099-01-01T00:00:00Z","tags":["role:empty"]}'


def shell(post: Post, log: str, line: str) -> None:
    """A shell script appends a line, as the format invites it to."""
    subprocess.run(["sh", "-c", 'printf "%s\\n" "$1" >> "$2"', "sh", line, str(post.file(log))], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="it looks now and then elsewhere, which its tests wait for")
def test_lines_of_other_programs_ring_as_ours_do(post: Post) -> None:
    """A line that another program wrote wakes a session as our own line does. It may be mail to the session, its role,
    its tag or all; a release; a new role. Each session was quiet, so that our own writers would have removed a
    stamp."""
    names = ("direct", "role", "tag", "released", "joins")
    clients = {name: Client(post, f"{name}-1111") for name in names}
    try:
        for name, client in clients.items():
            tags = {"role": ("--role", "builder"), "tag": ("--tags", "project:web"), "released": ("--role", "judge")}
            post.ok("roster", "register", "--session-id", client.session_id, *tags.get(name, ()))
        post.ok("roster", "register", "--session-id", "holder-1111", "--role", "judge")
        claimed = post.send("bob", "role:judge")
        shell(post, READS, RECORD % (claimed, "read") + ',"as":"role:judge"}')
        post.send("bob", "role:empty")
        for client in clients.values():
            assert client.hook("UserPromptSubmit").raw == b""
        bells = {name: client.start() for name, client in clients.items()}
        for name, client in clients.items():
            client.waiting(bells[name])
        assert {path.name for path in post.file(".cache/quiet").iterdir()} >= {c.session_id for c in clients.values()}
        for address in ("direct-1111", "role:builder"):
            shell(post, MESSAGES, FOREIGN % (f"to-{address}", address))
        shell(post, MESSAGES, FOREIGN[:-1] % ("to-tag", "project:web") + ',"when":"now"}')  # else it waits for a turn
        shell(post, READS, RECORD % (claimed, "release") + "}")
        shell(post, ROSTER, JOINS)
        assert {name: ended(bell) for name, bell in bells.items()} == dict.fromkeys(names, RUNG)
    finally:
        for client in clients.values():
            client.end()


@pytest.mark.skipif(sys.platform != "linux", reason="it looks now and then elsewhere, which its tests wait for")
def test_other_programs_mail_for_others_leaves_it_asleep_and_quiet(client: Client) -> None:
    """It looked, found nothing, and left the stamp that lets it sleep through the mail of others. It had watched the
    mailbox's directory: no stamp goes before another program's mail."""
    bell = client.start()
    client.waiting(bell)
    assert client.post.box.stat().st_ino in _watched(bell.pid)
    stamp = client.post.file(".cache/quiet", ME)
    made = stamp.stat().st_ctime_ns
    shell(client.post, MESSAGES, FOREIGN % ("to-other", "other"))

    def is_made_again() -> bool:
        try:
            return stamp.stat().st_ctime_ns > made
        except FileNotFoundError:
            return False  # it is gone until the doorbell has looked

    until(is_made_again)
    until(lambda: _asleep(bell.pid))
    shell(client.post, MESSAGES, FOREIGN % ("to-me", ME))
    assert ended(bell) == RUNG
