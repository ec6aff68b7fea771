"""What a sender is told of when its mail is seen: real clients, hooks, doorbells and machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

from agent_mailbox.mailbox import arrivals
from agent_mailbox.store.files import paths, system
from agent_mailbox.store.locks.doorbell_lock import DoorbellLock
from agent_mailbox.store.user_state import processes, removed_hooks
from tests.cli.test_gone import DEAD as ADA
from tests.cli.test_gone import OTHER, pair, record_of, said, sent, waiting
from tests.helpers import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.test_gone import Killed
    from tests.helpers import Post

__all__ = ["pair"]
SILENT = "its hooks were taken out or switched off, and it called none since"


def belled(post: Post, client: Killed) -> int:
    """Start Ada's doorbell; its process."""
    client.leave(ADA, "Doorbell")
    return until(lambda: post.file(".cache", "doorbell", ADA).exists() and waiting(post))


def test_each_word_is_proven_by_a_real_process(post: Post, pair: tuple[Killed, Killed]) -> None:
    """A shell's session: when it looks; one whose client calls hooks: at its next turn; with a doorbell: now."""
    post.register("shell", "--tags", "project:x")
    delivery = sent(post, f"{ADA},shell")
    assert (delivery["now"], delivery["at_next_turn"], delivery["when_it_looks"]) == ([], [ADA], ["shell"])
    assert delivery["agents"] == [ADA, "shell"]
    one, _ = pair
    belled(post, one)
    delivery = sent(post, f"{ADA},shell")
    assert (delivery["now"], delivery["at_next_turn"], delivery["when_it_looks"]) == ([ADA], [], ["shell"])
    assert delivery["reasons"][ADA] == "its doorbell waits for mail"
    name = post.ok("roster", "show", OTHER)["agent"]["name"]
    text = said(post, "send", "--from", "user", "--to", "role:builder,shell", "--body", "x").stdout.replace("\r", "")
    assert "  will see it when it looks: shell\n" in text
    assert f"  one of these will see it: Ada (now), {name} (at its next turn)\n" in text
    one.kill()  # it would wait for its doorbell


def test_a_doorbell_that_was_killed_wakes_nobody(post: Post, pair: tuple[Killed, Killed]) -> None:
    """Its file stays, and names its process; its lock is gone with it."""
    one, _ = pair
    pid = belled(post, one)
    os.kill(pid, signal.SIGKILL)
    until(lambda: processes.read(pid) is None)
    assert waiting(post) == pid
    delivery = sent(post, "Ada")
    assert (delivery["now"], delivery["at_next_turn"]) == ([], [ADA])


def test_a_client_that_may_live_elsewhere_promises_nothing(post: Post, pair: tuple[Killed, Killed]) -> None:
    """A record of another namespace: its process is not to be seen from here, and may be another's number."""
    path = record_of(post, pair[0])
    form, start, boot, _, how = path.read_text().splitlines()[0].split(" ")
    path.write_text(f"{form} {start} {boot} pid:[1] {how}\n{ADA}\n")
    delivery = sent(post, "Ada")
    assert (delivery["agents"], delivery["when_it_looks"]) == ([ADA], [ADA])


def test_who_asks_drives_no_doorbell_away(tmp_path: Path) -> None:
    """While somebody asks, a process that begins to wait is let in: it waits for the directory's lock."""
    cache = str(tmp_path)
    with DoorbellLock(cache, "me", 1) as first:
        assert first.take()
        assert arrivals.find_armed(cache, ["me", "other"]) == {"me"}
    assert arrivals.find_armed(cache, ["me"]) == set()
    asking = [system.open(str(tmp_path / name), system.O_RDONLY) for name in ("doorbell", "doorbell/me")]
    for fd in asking:
        system.flock(fd, system.LOCK_SH)
    took: list[bool] = []
    with DoorbellLock(cache, "me", 1) as second:
        thread = threading.Thread(target=lambda: took.append(second.take()))
        thread.start()
        for fd in reversed(asking):
            system.close(fd)
        thread.join()
        assert took == [True]
        assert arrivals.find_armed(cache, {str(i) for i in range(20)} | {"me"}) == {"me"}


def test_every_form_of_send_and_reply_predicts_the_same_arrival(post: Post) -> None:
    """Send and reply, plain and by click's parser; nothing is promised to the person."""
    post.register("bob", "--name", "Bob")
    asked = post.send("bob", "bob,carol")
    post.register("carol")
    for words in (
        ("send", "--from", "carol", "--to", "Bob", "--body", "x"),
        ("send", "--from=carol", "--to", "Bob", "--body", "x"),
        ("reply", asked, "--from", "carol", "--body", "x"),
        ("reply", asked, "--from=carol", "--body", "x"),
    ):
        assert post.call(*words).stdout.endswith("  will see it when it looks: Bob\n"), words
    assert "will see it when it looks: user" in post.call("send", "--from", "bob", "--to", "user", "--body", "x").stdout
    assert "now:" not in post.call("send", "--from", "bob", "--to", f"{OTHER},user", "--body", "x").stdout


def test_whose_hooks_were_taken_out_while_it_runs_sees_it_when_it_looks(
    post: Post, pair: tuple[Killed, Killed]
) -> None:
    """Its client and its doorbell run on, and show nothing more. A hook that it calls since then, or a new
    installation, proves otherwise."""
    one, _ = pair
    belled(post, one)
    assert sent(post, "Ada")["now"] == [ADA]
    post.ok("install", "claude-code", "--project", post.scratch)  # somewhere above it
    post.ok("uninstall", "claude-code", "--project", post.scratch)
    delivery = sent(post, "Ada")
    assert (delivery["now"], delivery["at_next_turn"], delivery["when_it_looks"]) == ([], [], [ADA])
    assert delivery["reasons"][ADA] == SILENT
    post.ok("install", "claude-code", "--project", post.scratch)
    assert sent(post, "Ada")["now"] == [ADA]
    post.ok("uninstall", "claude-code", "--project", post.scratch)
    assert sent(post, "Ada")["when_it_looks"] == [ADA]
    os.utime(post.file("agent-heartbeats", ADA))  # as the shell guard does, without Python
    assert sent(post, "Ada")["now"] == [ADA]
    one.kill()  # it would wait for its doorbell


def test_whose_client_s_settings_switch_hooks_off_sees_it_when_it_looks(
    post: Post, pair: tuple[Killed, Killed]
) -> None:
    """``disableAllHooks``, or hooks that somebody took out by hand: its client reads its settings while it runs, and
    so does its doorbell, which ends. A change that leaves our hooks there says nothing, and a hook that it calls since
    then proves otherwise. Hooks that no such file holds are no file's to take out."""
    one, _ = pair
    path = post.cwd / ".claude/settings.local.json"
    path.parent.mkdir()
    ours, rules = {"hooks": "agent-mailbox-hook Stop"}, {"permissions": ["Bash(agent-mailbox send:*)"]}

    def seen() -> str:
        return str(post.ok("roster", "show", "Ada")["agent"]["mail"]["seen"])

    for before, after in ((ours, {**ours, "disableAllHooks": True}), (ours, rules), (rules, {"disableAllHooks": True})):
        path.write_text(json.dumps(before, indent=2))
        assert one.hook(ADA, "SessionStart", source="resume").rc == 0
        one.leave(ADA, "Doorbell")
        until(lambda: seen() == "now")
        for harmless in ({**before, "disableAllHooks": False}, {**before, "model": "x"}):
            path.write_text(json.dumps(harmless))
            assert seen() == "now"
        path.write_text(json.dumps(after, indent=2))
        until(lambda: seen() == "when_it_looks")
    delivery = sent(post, "Ada")
    assert (delivery["when_it_looks"], delivery["reasons"][ADA]) == ([ADA], SILENT)
    assert f"mail: it will see it when it looks ({SILENT})\n" in post.call("roster", "show", "Ada").stdout
    one.leave(ADA, "UserPromptSubmit")
    until(lambda: seen() == "at_next_turn")


def test_a_session_s_note_that_it_calls_no_hook_leaves_those_of_others(tmp_path: Path) -> None:
    """The file has the last note of each session beside the places, until sessions are too many: the places stay."""
    removed_hooks.note(str(tmp_path), "/project")
    for who in ("ann", "bob", "ann"):
        removed_hooks.note_session(str(tmp_path), who)

    def noted() -> list[str]:
        return [line.partition(" ")[0] for line in (tmp_path / paths.UNHOOKED).read_text().splitlines()]

    assert noted() == ["/project", "=ann", "=bob"]
    (tmp_path / "bob").touch()
    os.utime(tmp_path / "bob", ns=(2 * system.time_ns(),) * 2)  # a hook that it calls since then
    silent = removed_hooks.find_silent(str(tmp_path), ("ann", "bob", "cat"), lambda who: str(tmp_path / who))
    assert silent == {"ann"}
    (tmp_path / "all").mkdir()
    removed_hooks.note(str(tmp_path / "all"), "")
    assert removed_hooks.find_silent(str(tmp_path / "all"), ("ann",), lambda who: f"{tmp_path}/{who}") == {"ann"}
    for number in range(65):
        removed_hooks.note_session(str(tmp_path), f"s{number:02}")
    assert noted() == ["/project", "=s62", "=s63", "=s64"]
    (tmp_path / "new").mkdir()
    removed_hooks.note_session(str(tmp_path / "new"), "ann")  # the first note of all
    assert removed_hooks.find_silent(str(tmp_path / "new"), ("ann", "bob"), lambda who: f"{tmp_path}/{who}") == {"ann"}


def test_a_session_s_note_leaves_the_time_at_which_hooks_were_taken_out(tmp_path: Path) -> None:
    """Ann called a hook since the removal, before another session switched its own off: she is not silent."""
    removed_hooks.note(str(tmp_path), "")
    (tmp_path / "ann").touch()
    for name, time in ((paths.UNHOOKED, 1000), ("ann", 2000)):
        os.utime(tmp_path / name, ns=(time, time))
    removed_hooks.note_session(str(tmp_path), "bob")
    silent = removed_hooks.find_silent(str(tmp_path), ("ann", "bob"), lambda who: str(tmp_path / who))
    assert silent == {"bob"}


def test_a_client_that_runs_without_our_hooks_is_named_to_the_sender(post: Post) -> None:
    """A frozen session that a process runs whose words take our hooks away. Another word, another session and a process
    that is over are no reason."""
    for name in ("ada", "bob", "cat", "dan"):
        post.register(name)
        post.ok("roster", "freeze", name)
    registry = post.home / ".claude/sessions"
    registry.mkdir(parents=True)
    words = {
        "ada": ["--restricted"],
        "bob": ["--settings", '{"disableAllHooks": true}'],
        "cat": ["--setting-sources", "user,project,local"],
        "dan": ["--bare"],
    }
    runs = {
        name: subprocess.Popen(["sh", "-c", "read x", "claude", "--resume", name, *more], stdin=subprocess.PIPE)
        for name, more in words.items()
    }
    try:
        for name, process in runs.items():
            entry = {"pid": process.pid, "sessionId": name}
            (registry / f"{process.pid}.json").write_text(json.dumps(entry))
        (registry / "7.json").write_text("[")
        end(runs["dan"])
        delivery = sent(post, "ada,bob,cat,dan")
        assert delivery["waiting_for"] == ["ada", "bob", "cat", "dan"]
        why = "its client runs with {}, and calls no hook of ours"
        assert delivery["reasons"] == {"ada": why.format("--restricted"), "bob": why.format("--settings")}
        text = post.call("send", "--from", "eve", "--to", "ada", "--body", "x").stdout
        assert f"  waits for: ada ({why.format('--restricted')})\n" in text
        assert f"mail: it waits ({why.format('--restricted')})\n" in post.call("roster", "show", "ada").stdout
        assert "mail: " not in post.call("roster", "show", "cat").stdout
    finally:
        for process in runs.values():
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Let a process come to its end."""
    if process.stdin is not None:
        process.stdin.close()
    process.wait()
