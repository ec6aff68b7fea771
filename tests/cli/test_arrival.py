"""What a sender is told of when its mail is seen: real clients, hooks, doorbells and machines.

Mail also starts a session that has ended: by the person's own program, and by nobody's word but proven mail.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console.notifier import Notifier
from agent_mailbox.mailbox import arrivals
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.files import paths, system
from agent_mailbox.store.locks.doorbell_lock import DoorbellLock
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.user_state import processes, removed_hooks
from agent_mailbox.store.user_state.processes import ProcessRecords
from agent_mailbox.upkeep import waker
from tests.cli.test_gone import DEAD as ADA
from tests.cli.test_gone import OTHER, pair, record_of, said, sent, waiting
from tests.helpers import MESSAGES, ROSTER, Program, record, stamp, until

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


# -- mail starts a session again that has ended -----------------------------------------------------------------------


ME, SECOND = "b1134fc7-6f1e-4997-83ed-699c6c8ae683", "c2245fd8-7f2f-4aa8-94fe-7aad7d9bf794"
PROGRAM = """\
#!/bin/sh
read -r _ _ _ _ _ session _ < /proc/$$/stat || session=$$
{ pwd; printf '%s\\n' "$@"; [ $session = $$ ] || echo "a session of $session"; } > "$0.$$~" && mv "$0.$$~" "$0.$$.ran"
"""


class Sleepers:
    """A project whose sessions have ended, and a program that would start them."""

    def __init__(self, scratch: Path) -> None:
        self.program = Program(scratch)
        self.project = scratch / "project"
        self.box = self.project / "data"
        assert self.program.run("init", self.box).rc == 0
        self.again = scratch / "again"
        self.again.write_text(PROGRAM)
        self.again.chmod(0o700)
        self.config = self.program.user_state / "config.toml"
        self.says(f'command = ["{self.again}", "--resume", "{{session}}", "{{client}} in {{cwd}}"]')
        self.ok("roster", "register", "--session-id", "ann")

    def says(self, *lines: str) -> None:
        """Write the person's own configuration."""
        self.config.write_text("\n".join(("[wake]", *lines, "")))

    def ok(self, *words: object) -> Any:
        """The JSON answer of a command."""
        found = self.program.run(*words, "--json", "--dir", self.box)
        assert found.rc == 0, found
        return found.json

    def hook(self, event: str, session: str = ME, **env: str) -> None:
        """A hook of a session's client, which works in the project."""
        call = {"session_id": session, "hook_event_name": event, "cwd": str(self.project), "source": "startup"}
        here = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session, **env}
        found = self.program.run("hook", event, stdin=json.dumps(call), env=here, cwd=self.project)
        assert (found.rc, found.stderr) == (0, ""), found

    def sleeps(self, session: str = ME, **env: str) -> None:
        """A session has been there, and ended."""
        self.hook("SessionStart", session, **env)
        self.hook("SessionEnd", session)

    def send(self, to: str, *words: str) -> str:
        """Mail of Ann's; the id."""
        return str(self.ok("send", "--from", "ann", "--to", to, "--body", "hello", *words)["message"]["id"])

    def look(self) -> list[str]:
        """Who is started now."""
        return sorted(waker.start_waited_for(Mailbox(str(self.box))))

    def ran(self, count: int) -> list[list[str]]:
        """What the program was started with, once it was so often."""
        until(lambda: len(list(self.again.parent.glob("again.*.ran"))) >= count)
        return sorted(path.read_text().splitlines() for path in self.again.parent.glob("again.*.ran"))


def dies(*_: object) -> str:
    """End as a killed process does."""
    raise KeyboardInterrupt


@pytest.fixture
def sleepers(tmp_path: Path) -> Sleepers:
    """A project whose sessions have ended."""
    return Sleepers(tmp_path)


def test_the_steward_starts_whom_urgent_mail_waits_for_once(sleepers: Sleepers) -> None:
    """The steward starts a sleeping agent with urgent mail once, in its directory and with its client and id. The
    program outlives it, in a session of its own."""
    sleepers.sleeps()
    sleepers.send(ME, "--priority", "high")
    for _ in range(2):
        sleepers.ok("steward", "run")
    project = str(sleepers.project)
    assert sleepers.ran(1) == [[project, "--resume", ME, f"claude in {project}"]]
    events = (sleepers.box / "agent-mailbox-events.jsonl").read_text().splitlines()
    assert [(e["about"], e["outcome"]) for e in map(json.loads, events) if e["what"] == "wake"] == [(ME, "started")]


def test_who_dies_as_it_starts_a_session_starts_no_second_one(
    sleepers: Sleepers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start costs the person money, so it is noted ahead of it: the next run takes the mail for done."""
    sleepers.sleeps()
    sleepers.send(ME, "--priority", "high")
    with monkeypatch.context() as patch:
        patch.setattr(waker, "_start_program", dies)
        with pytest.raises(KeyboardInterrupt):
            sleepers.look()
    assert sleepers.look() == []


def test_the_console_starts_it_as_the_mail_comes(sleepers: Sleepers) -> None:
    """Its own watcher looks at each change."""
    sleepers.sleeps()
    notifier = Notifier(str(sleepers.box))
    notifier.start_notifying()
    sleepers.send(ME, "--priority", "high")
    notifier.note_change()
    assert len(sleepers.ran(1)) == 1
    notifier.stop_notifying()


def test_a_request_of_the_person_s_starts_it_too(sleepers: Sleepers) -> None:
    """A control message needs no high priority."""
    sleepers.sleeps()
    sleepers.ok("control", "request", "task", ME, "--title", "look", "--session", "user")
    assert sleepers.look() == [ME]


def test_one_holder_of_a_role_is_started_if_none_is_there(sleepers: Sleepers) -> None:
    """The one who was there last."""
    sleepers.sleeps(SECOND, AGENT_MAILBOX_ROLE="dev")
    sleepers.sleeps(ME, AGENT_MAILBOX_ROLE="dev")
    sleepers.send("role:dev", "--priority", "high")
    assert sleepers.look() == [ME]
    sleepers.hook("SessionStart", SECOND)
    sleepers.send("role:dev", "--priority", "high")
    assert sleepers.look() == []


@pytest.mark.parametrize(
    ("to", "words"),
    [
        (ME, ()),
        ("all", ("--priority", "high")),
        ("project:project", ("--priority", "high")),
        ("ann", ("--priority", "high")),
    ],
    ids=str,
)
def test_mail_of_normal_priority_starts_no_session(sleepers: Sleepers, to: str, words: tuple[str, ...]) -> None:
    """That of normal priority, and that for many."""
    sleepers.sleeps()
    sleepers.send(to, *words)
    assert sleepers.look() == []


def test_a_line_that_any_program_wrote_starts_nobody(sleepers: Sleepers) -> None:
    """A line that nothing proves starts no agent, whoever it names as sender. Mail of a command does."""
    sleepers.sleeps()
    with (sleepers.box / MESSAGES).open("a") as log:
        for sender, kind in (("ann", "chat"), ("user", "chat"), ("user", "control")):
            log.write(json.dumps(record(sender=sender, recipient=ME, priority="high", type=kind)) + "\n")
    assert sleepers.look() == []
    sleepers.send(ME, "--priority", "high")
    assert sleepers.look() == [ME]


def test_an_agent_that_no_hook_brought_is_not_started(sleepers: Sleepers) -> None:
    """A command's own word for a session is no start of a client."""
    sleepers.ok("roster", "register", "--session-id", "kim")
    sleepers.ok("roster", "freeze", "kim")
    sleepers.send("kim", "--priority", "high")
    assert sleepers.look() == []


def test_no_id_becomes_an_option_of_the_program(sleepers: Sleepers) -> None:
    """Any program may write one into the roster, and some client's hook might bear it."""
    with (sleepers.box / ROSTER).open("a") as log:
        for event in ({"event": "register", "tags": ["role:dev"]}, {"event": "freeze"}):
            log.write(json.dumps({**event, "session_id": "--yes", "timestamp": stamp()}) + "\n")
    place = sleepers.program.user_state / "sessions"
    place.mkdir(exist_ok=True)
    (place / "--yes").write_text(f"{sleepers.box}\n{sleepers.project}\nclaude\n")
    sleepers.send("role:dev", "--priority", "high")
    assert sleepers.look() == []


def test_a_session_that_runs_or_is_dead_is_not_started(sleepers: Sleepers) -> None:
    """Alive by the roster; retired."""
    sleepers.hook("SessionStart")
    sleepers.sleeps(SECOND)
    for session in (ME, SECOND):
        sleepers.send(session, "--priority", "high")
    sleepers.ok("roster", "retire", SECOND)
    assert sleepers.look() == []


def test_who_is_not_to_be_started_keeps_no_other_from_it(sleepers: Sleepers) -> None:
    """It was there last: one whose client runs on, and one that no hook brought."""
    for session in (SECOND, ME):
        sleepers.sleeps(session)
    for step in (("register", "--session-id"), ("freeze",)):
        sleepers.ok("roster", *step, "kim")
    for session in ("kim", ME, SECOND):
        sleepers.send(session, "--priority", "high")
    runs_on = processes.read(os.getpid())
    assert runs_on is not None
    ProcessRecords(Mailbox(str(sleepers.box)).logs.stamp_files.kept()).record(runs_on, ME, "")
    assert sleepers.look() == [SECOND]


def test_starts_are_counted_by_the_hour(sleepers: Sleepers) -> None:
    """The steward starts only so many agents an hour, all together. Mail that started an agent does not start it
    again."""
    sleepers.says(f'command = ["{sleepers.again}", "{{session}}"]', "per_hour = 1")
    for session in (ME, SECOND):
        sleepers.sleeps(session)
        sleepers.send(session, "--priority", "high")
    assert len(sleepers.look()) == 1
    assert sleepers.look() == []
    state = next(sleepers.program.user_state.rglob("wake.json"))
    told = json.loads(state.read_text())
    state.write_text(json.dumps({**told, "at": [told["at"][0] - 3_600_000]}))
    assert len(sleepers.look()) == 1
    assert sorted(args[1] for args in sleepers.ran(2)) == [ME, SECOND]


def test_nothing_starts_without_the_person_s_word(sleepers: Sleepers) -> None:
    """Off by default; a mailbox's own file names no program; a program that is missing is told."""
    sleepers.sleeps()
    sleepers.send(ME, "--priority", "high")
    sleepers.config.unlink()
    (sleepers.box / "config.toml").write_text(f'[wake]\ncommand = ["{sleepers.again}"]\n')
    assert sleepers.look() == []
    sleepers.says('command = ["/no/such/program"]')
    (why,) = waker.start_waited_for(Mailbox(str(sleepers.box))).values()
    assert "No such file" in why


def test_of_two_that_look_at_once_one_starts_sessions(sleepers: Sleepers) -> None:
    """The other leaves it to the first, and is no error."""
    sleepers.sleeps()
    sleepers.send(ME, "--priority", "high")
    mailbox = Mailbox(str(sleepers.box))
    assert mailbox.logs.custody is not None
    with FileLock(mailbox.logs.custody.path(waker._LOCK), 0):
        assert waker.start_waited_for(mailbox) == {}
    assert waker.start_waited_for(mailbox) == {ME: ""}
