"""The shell side of the hooks: the guard that answers "nothing new" without starting Python, and when it may not."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from agent_mailbox.core.instant import HOUR
from agent_mailbox.mailbox.delivery import Offering
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.store.log.stamps import STARTED, StampFiles
from tests.claude.shim import FILE, ME, NEW, SHELLS, Shim, before_tool, why
from tests.helpers import HEARTBEATS, MESSAGES, PATIENCE, Post, record


@pytest.mark.parametrize("shell", SHELLS)
def test_where_there_is_nothing_new_no_python_starts(shim: Shim, shell: str) -> None:
    """Without new mail the shim prints nothing and starts no Python in any shell. It still updates the heartbeat."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    beat = shim.post.file(HEARTBEATS, ME)
    os.utime(beat, (1, 1))
    for event in ("UserPromptSubmit", "Stop"):
        assert shim.hook(event, *words).raw == b""
    assert shim.starts() == 0
    assert beat.stat().st_mtime > 1
    assert beat.read_bytes() == b""


@pytest.mark.parametrize("what", ["link", "link to an empty file", "hard link", "fifo"])
@pytest.mark.parametrize("shell", SHELLS)
def test_what_stands_in_the_heartbeat_s_place_is_not_written_to(shim: Shim, shell: str, what: str) -> None:
    """The file that it leads to keeps its content and its time; nothing blocks, and the hook goes on."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    beat, target = shim.post.file(HEARTBEATS, ME), shim.post.scratch / "precious"
    target.write_text("" if "empty" in what else "precious")
    os.utime(target, (1, 1))
    beat.unlink()
    if what == "hard link":
        beat.hardlink_to(target)
    elif what == "fifo":
        os.mkfifo(beat)
    else:
        beat.symlink_to(target)
    said = shim.hook("UserPromptSubmit", *words)
    assert target.read_text() == ("" if "empty" in what else "precious")
    assert target.stat().st_mtime == 1 or what == "hard link"  # Python sets its time, as of any file there
    assert shim.starts() == 1
    assert ("systemMessage" in said.stdout) == (what != "hard link")


@pytest.mark.parametrize("to", [ME, "role:builder", "project:x", "all"])
def test_mail_for_the_session_starts_it_again_and_mail_for_others_does_not(shim: Shim, to: str) -> None:
    """Whatever address brings it; once it was shown the guard is quiet again."""
    post = shim.post
    post.ok("roster", "update", "--session-id", ME, "--role", "builder", "--add-tags", "project:x")
    shim.hook("UserPromptSubmit")
    shim.hook("UserPromptSubmit")
    shim.starts()
    post.register("other", "--tags", "project:y")
    post.send("x", "other")
    post.send("x", "project:y")
    assert shim.hook("UserPromptSubmit").raw == b""
    assert shim.starts() == 0
    sent = post.send("x", to)
    assert sent[:8] in shim.hook("UserPromptSubmit").json["hookSpecificOutput"]["additionalContext"]
    assert shim.starts() == 1
    assert shim.hook("Stop").raw == b""
    assert shim.starts() <= 1
    assert shim.hook("Stop").raw == b""
    assert shim.starts() == 0


def test_whatever_makes_old_mail_unread_starts_it_again(shim: Shim) -> None:
    """A role taken, a tag gained, a claim given back by a release or a death: shown at the next prompt."""
    post = shim.post

    def shown() -> str:
        raw = shim.hook("UserPromptSubmit").raw
        return json.loads(raw)["hookSpecificOutput"]["additionalContext"] if raw else ""

    waiting = post.send("x", "role:builder")
    assert shown() == ""
    post.ok("roster", "update", "--session-id", ME, "--role", "builder")
    assert waiting[:8] in shown()
    tagged = post.send("x", "project:z")
    assert shown() == ""
    post.ok("roster", "update", "--session-id", ME, "--add-tags", "project:z")
    assert tagged[:8] in shown()
    post.register("other", "--role", "builder")
    claimed = post.send("x", "role:builder", "one", "--ack")
    second = post.send("x", "role:builder", "two", "--ack")
    post.check("other")
    assert shown() == ""
    post.ok("release", claimed, "--session", "other")
    assert claimed[:8] in shown()
    assert shown() == ""
    post.ok("roster", "retire", "other")
    assert second[:8] in shown()
    assert shown() == ""
    shim.starts()
    assert shown() == ""
    assert shim.starts() == 0


def test_a_session_that_continues_another_hears_of_its_mail(shim: Shim) -> None:
    """Mail to the one it continues, and what a release of that one's gives back."""
    post = shim.post
    post.register("older", "--name", "Ann")
    read = post.send("x", "older", "read by the older")
    post.check("older")
    post.ok("roster", "freeze", "older")
    post.ok("roster", "register", "--session-id", ME, "--name", "Ann")
    assert shim.hook("UserPromptSubmit").raw == b""
    assert shim.hook("UserPromptSubmit").raw == b""
    late = post.send("x", "older", "to the older")
    assert late[:8] in shim.hook("UserPromptSubmit").stdout
    assert shim.hook("UserPromptSubmit").raw == b""
    post.ok("release", read, "--session", ME)
    assert read[:8] in shim.hook("UserPromptSubmit").stdout


def test_a_foreign_append_is_noticed_by_the_guard_our_next_write_and_a_start(shim: Shim) -> None:
    """A program that knows nothing of stamps writes straight into the log, if not within the same tick as we did."""
    post = shim.post
    os.utime(post.file(MESSAGES), (1, 1))  # as if our last write were long ago
    assert shim.hook("UserPromptSubmit").raw == b""
    post.append(MESSAGES, record("x", ME, "foreign zero"))
    assert "foreign zero" in shim.hook("UserPromptSubmit").stdout
    foreign = record("x", ME, "foreign one")
    post.append(MESSAGES, foreign)
    post.send("x", "somebody-else")
    assert "foreign one" in shim.hook("UserPromptSubmit").stdout
    assert shim.hook("Stop").raw == b""
    post.append(MESSAGES, record("x", ME, "foreign two"))
    assert "foreign two" in shim.hook("SessionStart").stdout
    post.append(MESSAGES, record("x", ME, "foreign three"))
    assert [m["content"] for m in post.ok("check", "--session", ME)["messages"]] == ["foreign three"]


def test_a_steward_does_not_wake_nor_silence_anyone_wrongly(shim: Shim) -> None:
    """After rotation and sweep: what was nothing is nothing, what comes is shown."""
    post = shim.post
    post.send("x", "all")
    shim.hook("UserPromptSubmit")
    post.ok("steward", "run", "--max-live", "0")
    assert shim.hook("UserPromptSubmit").raw == b""
    sent = post.send("x", ME)
    assert sent[:8] in shim.hook("UserPromptSubmit").stdout


def test_without_stamps_or_with_a_changed_configuration_python_looks(shim: Shim) -> None:
    """The cache gone, a config newer than the stamp, a session the guard cannot name: needless work, right answers."""
    post = shim.post
    shutil.rmtree(post.file(".cache"))
    assert shim.hook("UserPromptSubmit").raw == b""
    assert shim.starts() == 1
    shim.starts()
    post.file("config.toml").write_text("[ttl]\nall = 5\n")
    assert shim.hook("UserPromptSubmit").raw == b""
    assert shim.starts() == 1
    post.file("config.toml").write_text("[ttl]\nbroadcast = 5\n")
    assert shim.hook("UserPromptSubmit").raw == b""
    shim.starts()
    for hostile in ("../x", "a b", "$(touch pwned)", "", "-x", "*"):
        shim.hook("UserPromptSubmit", env={"CLAUDE_CODE_SESSION_ID": hostile})
        assert shim.starts() == 1, hostile
    assert sorted(p.name for p in post.file(HEARTBEATS).iterdir()) == [ME]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_configuration_in_the_place_of_another_starts_python_whatever_its_time(shim: Shim, shell: str) -> None:
    """An older file moved there, its removal: each once, then the guard is quiet again."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    config = shim.post.file("config.toml")
    config.write_text("[ttl]\nbroadcast = 5\n")
    for change in (lambda: os.utime(config, (1, 1)), config.unlink):
        change()
        for starts in (1, 0):
            assert shim.hook("UserPromptSubmit", *words).raw == b""
            assert shim.starts() == starts


# -- clocks, and derived files of another time or place ---------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_a_hook_with_its_clock_ahead_hides_nothing_when_the_clock_is_right_again(shim: Shim, shell: str) -> None:
    """It found the broadcast expired, and stamped the session quiet. Then the guard is quiet as ever."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    post, box = shim.post, str(shim.post.box)
    sent = post.send("x", "all")
    ahead = Mailbox(box, clock=lambda: wall_clock() + 5 * HOUR)
    assert ahead.deliver(ME, lambda items: items, offering=Offering(None, 0, "", {}, set())) == 0
    assert post.file(".cache/quiet", ME).exists()
    assert sent[:8] in shim.hook("UserPromptSubmit", *words).stdout
    shim.starts()
    assert shim.hook("UserPromptSubmit", *words).raw == b""
    assert shim.starts() == 0


@pytest.mark.skipif(not os.path.exists(STARTED), reason="nothing tells when this machine started")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_stamp_of_before_the_machine_s_start_hides_nothing(shim: Shim, shell: str) -> None:
    """The power failed, and its removal was not durable. Python makes it again, and the guard is quiet as ever."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    before = os.stat(STARTED).st_mtime_ns // 1_000_000 - 2_000
    sent = shim.post.send("x", ME)
    stamp_files = Mailbox(str(shim.post.box)).logs.stamp_files
    stamp_files.stamp(ME, before)
    assert sent[:8] in shim.hook("UserPromptSubmit", *words).stdout
    stamp_files.stamp(ME, before)
    shim.starts()
    for starts in (1, 0):
        assert shim.hook("UserPromptSubmit", *words).raw == b""
        assert shim.starts() == starts


@pytest.mark.parametrize("shell", SHELLS)
def test_a_machine_s_start_that_is_to_come_starts_no_python(shim: Shim, shell: str) -> None:
    """The shim ignores a start of the machine that lies in the future. A start after the quiet stamp makes it start
    Python."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    started = shim.post.scratch / "proc"
    started.touch()
    os.utime(started, (2**31, 2**31))
    guard = shim.checkout / "hooks/agent-mailbox-hook"
    guard.write_text(guard.read_text().replace("[ /proc -nt", f"[ {shlex.quote(str(started))} -nt"))
    assert shim.hook("UserPromptSubmit", *words).raw == b""
    assert shim.starts() == 0
    os.utime(started, ns=((wall_clock() - 1_000) * 1_000_000,) * 2)
    Mailbox(str(shim.post.box)).logs.stamp_files.stamp(ME, wall_clock() - 3_000)
    assert shim.hook("UserPromptSubmit", *words).raw == b""
    assert shim.starts() == 1


def replaced(there: Path, by: Path, *, times: bool) -> None:
    """A directory becomes a copy of another, with the files' times or without them."""
    shutil.rmtree(there)
    shutil.copytree(by, there, copy_function=shutil.copy2 if times else shutil.copy)


@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize("what", ["older", "stamps and notes", "another's"])
def test_derived_files_of_another_time_or_mailbox_hide_no_mail(shim: Shim, what: str, times: bool) -> None:
    """A ``.cache`` from before the mail, or of a mailbox without it, is put into the place of the right one."""
    post, other = shim.post, Post(shim.post.scratch / "other")
    shim.hook("UserPromptSubmit")
    kept = post.scratch / "kept"
    if what == "another's":
        elsewhere: dict[str, str | None] = {"AGENT_MAILBOX_DIR": str(other.box)}
        shim.hook("SessionStart", env=elsewhere)
        shim.hook("UserPromptSubmit", env=elsewhere)
    shutil.copytree(other.box / ".cache" if what == "another's" else post.file(".cache"), kept)
    assert (kept / "quiet" / ME).exists()
    sent = post.send("x", ME)
    if what == "stamps and notes":
        for name in ("quiet", "ends"):
            replaced(post.file(".cache", name), kept / name, times=times)
    else:
        replaced(post.file(".cache"), kept, times=times)
    assert sent[:8] in shim.hook("UserPromptSubmit").stdout
    shim.starts()
    assert shim.hook("UserPromptSubmit").raw == b""
    assert shim.starts() == 0
    assert post.doctor() == []


def test_one_session_that_finds_the_derived_files_strange_takes_away_everyone_s_stamps(shim: Shim) -> None:
    """Mail was given back to another, which an old ``.cache`` hides; the first hook of anyone ends that."""
    post = shim.post
    post.register("bob", "--role", "builder")
    read = post.send("x", "role:builder")
    post.check("bob")
    assert post.check("bob") == []
    shutil.copytree(post.file(".cache"), post.scratch / "kept")
    assert (post.scratch / "kept/quiet/bob").exists()
    post.ok("release", read, "--session", "bob")
    replaced(post.file(".cache"), post.scratch / "kept", times=True)
    assert shim.hook("UserPromptSubmit").raw == b""
    assert not post.file(".cache/quiet/bob").exists()
    assert post.file(".cache/quiet", ME).exists()


def test_a_stamp_that_goes_while_the_guard_looks_counts_for_nothing(shim: Shim) -> None:
    """Another session finds the derived files strange: it removes the stamps, and then makes the notes fit."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash, which can run a command ahead of another")
    trap = "set -T; trap 'case $BASH_COMMAND in true*) rm \"$GONE\";; esac' DEBUG"
    guard = shlex.quote(str(shim.checkout / "hooks/agent-mailbox-hook"))
    call = json.dumps({"session_id": ME, "hook_event_name": "Stop"}).encode()
    words = [bash, "-c", f"{trap}; . {guard} Stop", str(shim.checkout / "hooks/agent-mailbox-hook")]
    env = shim.post.environ({**shim.env, "GONE": str(shim.post.file(".cache/quiet", ME))})
    done = subprocess.run(words, input=call, env=env, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert shim.starts() == 1


@pytest.mark.parametrize("then", ["SIG_DFL", "SIG_IGN"])
def test_a_stamp_without_its_word_is_none(shim: Shim, then: str) -> None:
    """A process is killed as it writes the word, or has no room for it: the end of a led session's turn goes on."""
    shim.post.file(".cache/quiet", ME).unlink()
    code = (
        "import resource, signal, sys\n"
        "from agent_mailbox.store.log.stamps import StampFiles\n"
        f"signal.signal(signal.SIGXFSZ, signal.{then})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "StampFiles(sys.argv[1]).stamp(sys.argv[2], int(sys.argv[3]), word='led')\n"
    )
    done = shim.post.python(code, shim.post.file(".cache"), ME, wall_clock())
    assert done.rc == (-signal.SIGXFSZ if then == "SIG_DFL" else 0), done
    assert shim.hook("Stop").raw == b""
    assert shim.starts() == 1


def test_however_slow_a_writer_is_its_note_has_the_time_of_its_log(shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the note and the line the clock ticks; mail for others still starts no Python."""
    leave = StampFiles.leave

    def long_ago(self: StampFiles, path: str, *rest: int) -> None:
        leave(self, path, *rest)
        os.utime(shim.post.file(".cache/ends", Path(path).stem), (1, 1))

    monkeypatch.setattr(StampFiles, "leave", long_ago)
    shim.post.register("other")
    shim.post.send("x", "other")
    assert shim.hook("UserPromptSubmit").raw == b""
    assert shim.starts() == 0


@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_older_logs_beside_newer_derived_files_hide_no_mail(shim: Shim, times: bool, in_place: bool) -> None:
    """The logs go back to before the mail was read; the stamp, the cursor and the index know that it was."""
    post = shim.post
    sent = post.send("x", ME, "findable")
    shutil.copytree(post.box, post.scratch / "kept")
    assert sent[:8] in shim.hook("UserPromptSubmit").stdout
    assert shim.hook("UserPromptSubmit").raw == b""
    for log in post.scratch.joinpath("kept").glob("*.jsonl"):
        if not in_place:
            post.file(log.name).unlink()
        (shutil.copy2 if times else shutil.copy)(log, post.file(log.name))
    assert sent[:8] in shim.hook("UserPromptSubmit").stdout
    assert [m["id"] for m in post.ok("search", "findable")["messages"]] == [sent]
    assert post.unread(ME) == []


def test_a_line_changed_in_its_place_is_noticed_although_the_log_is_as_long(shim: Shim) -> None:
    """An editor makes another's mail the session's, far from the log's end: hook and cursor begin again."""
    post = shim.post
    post.register("A" * len(ME))
    sent = post.send("x", "A" * len(ME))
    for _ in range(3):
        post.send("x", "other", "z" * 600)
    assert shim.hook("UserPromptSubmit").raw == b""
    assert post.check(ME) == []
    log = post.file(MESSAGES)
    there = log.read_bytes()
    with log.open("r+b") as file:
        file.write(there.replace(b"A" * len(ME), ME.encode()))
    os.utime(log, (1, 1))
    assert sent[:8] in shim.hook("UserPromptSubmit").stdout + shim.hook("UserPromptSubmit").stdout


def test_a_mailbox_that_is_found_is_guarded_as_well(post: Post) -> None:
    """Without AGENT_MAILBOX_DIR the session's start tells the guard where; two sessions, two mailboxes."""
    shim = Shim(post)
    project = post.scratch / "project"
    project.mkdir()
    assert post.call("init", cwd=project, env={"AGENT_MAILBOX_DIR": None}).rc == 0
    env: dict[str, str | None] = {"AGENT_MAILBOX_DIR": None, "CLAUDE_PROJECT_DIR": str(project)}
    assert NEW in shim.hook("SessionStart", env=env).raw
    shim.starts()
    assert shim.hook("UserPromptSubmit", env=env).raw == b""
    assert shim.starts() == 0
    words = ("send", "--from", "x", "--to", "all", "--body", "there", "--dir", project / "data")
    assert post.call(*words).rc == 0
    assert "there" in shim.hook("UserPromptSubmit", env=env).stdout


def test_the_end_and_the_start_of_a_session_always_reach_the_roster(shim: Shim) -> None:
    """Quiet or not: an end freezes, a start thaws."""

    def state() -> str:
        return str(shim.post.ok("roster", "show", ME)["agent"]["state"])

    shim.hook("SessionEnd")
    assert state() == "frozen"
    shim.hook("SessionStart")
    assert state() == "alive"
    shim.hook("UserPromptSubmit")
    shim.hook("SessionEnd")
    assert state() == "frozen"
    shim.hook("UserPromptSubmit")
    assert state() == "alive"


# -- before a tool ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_before_a_tool_python_starts_only_where_we_are_named(shim: Shim, shell: str) -> None:
    """Before a tool, the shim starts Python only if the command names this program, whatever the mailbox holds."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    shim.post.send("x", ME)
    for command in ("ls", "x" * 100_000, "", "echo '\\ü\n$(x) {\"tool_input\":1}'", "psql --session bob"):
        assert before_tool(shim, command, *words).raw == b""
        assert shim.starts() == 0, command[:50]
    assert before_tool(shim, "agent-mailbox check", *words).raw == b""
    assert shim.starts() == 1
    for command in (FILE, FILE + " " + "ü" * 50_000, f"echo '\\ $(x)`x`\n'\n{FILE}"):
        assert "sends the file /etc/hostname" in why(before_tool(shim, command, *words))


def handed_on(shim: Shim, *shell: str, data: bytes) -> bytes:
    """What the shim hands on to Python, which is here a program that keeps it; without the end of the last line."""
    python, kept = shim.checkout / ".venv/bin/python", shim.post.scratch / "kept"
    real = python.read_bytes()
    python.write_text(f"#!/bin/sh\nexec cat >{shlex.quote(str(kept))}\n")
    try:
        assert before_tool(shim, "", *shell, as_is=data).raw == b""
        return kept.read_bytes().removesuffix(b"\n")
    finally:
        python.write_bytes(real)
        kept.unlink(missing_ok=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_input_of_any_length_and_form_is_read_whole(shim: Shim, shell: str) -> None:
    """Around the length at which the shell stops reading by itself; written over several lines; in another order."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    bare = len(json.dumps({"tool_input": {"command": FILE}, "session_id": ME}))
    for length, fill, end in (
        *((4090, "x", b""), (4095, "}", b"\n"), (4096, "x", b""), (4096, "}", b"\n")),
        *((4097, "}", b""), (4098, "x", b"\n"), (8192, "x", b"")),
    ):
        command = FILE + ";" + fill * (length - bare - 1)
        data = json.dumps({"session_id": ME, "tool_input": {"command": command}}).encode()
        assert len(data) == length
        assert handed_on(shim, *words, data=data + end) == data, (length, fill, end)
    for form in ({"indent": 1}, {"indent": None}):
        data = json.dumps({"tool_input": {"command": FILE}, "session_id": ME}, **form).encode()
        assert why(before_tool(shim, "", *words, as_is=data))


def test_it_asks_without_a_mailbox_and_beside_a_broken_one(shim: Shim) -> None:
    """A file that a command sends may stand anywhere. A subagent's command is asked about as its session's is."""
    for box in (None, "/gone", str(shim.post.scratch)):
        shim.env["AGENT_MAILBOX_DIR"] = box
        assert why(before_tool(shim, FILE))
        assert why(before_tool(shim, FILE, agent_id="a1"))
        assert why(before_tool(shim, "agent-mailbox check")) == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_where_no_mailbox_is_a_session_pays_no_python_and_is_told_nothing(post: Post, shell: str) -> None:
    """None of its hooks starts one, as with ``install --user``. A mailbox here or above, or whatever else a shell
    cannot judge, is Python's."""
    shim = Shim(post)
    project = post.scratch / "elsewhere" / "project"
    project.mkdir(parents=True)
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    env: dict[str, str | None] = {"AGENT_MAILBOX_DIR": None, "CLAUDE_PROJECT_DIR": str(project)}
    events = ("SessionStart", "UserPromptSubmit", "PostToolBatch", "Stop", "StopFailure", "PreCompact", "SessionEnd")
    for event in events:
        assert shim.hook(event, *words, env=env).raw == b"", event
    assert shim.starts() == 0
    call = [*words, str(shim.checkout / "hooks/agent-mailbox-hook"), "UserPromptSubmit"]

    def starts() -> int:
        done = subprocess.run(
            call, input=b"{}", env=post.environ({**shim.env, **env}), capture_output=True, check=False
        )
        assert done.returncode == 0, done
        return shim.starts()

    log, above = "agent-mailbox.jsonl", project.parent
    for path in (project / log, above / log, above / "data" / log, project / ".git/agent-mailbox" / log):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        assert starts() == 1, path
        path.unlink()
    shutil.rmtree(project / ".git")
    (project / ".git").write_text("gitdir: /elsewhere\n")
    assert starts() == 1
    (project / ".git").unlink()
    trusted = post.user_state / "mailboxes"
    trusted.write_text(trusted.read_text() + f"{above}/data\n")  # its log is gone
    assert starts() == 1
