"""Mail starts a session again that has ended: by the person's own program, and by nobody's word but proven mail."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console.notifier import Notifier
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.user_state import processes
from agent_mailbox.store.user_state.processes import ProcessRecords
from agent_mailbox.upkeep import waker
from tests.helpers import MESSAGES, ROSTER, Program, record, stamp, until

if TYPE_CHECKING:
    from pathlib import Path

ME, OTHER = "b1134fc7-6f1e-4997-83ed-699c6c8ae683", "c2245fd8-7f2f-4aa8-94fe-7aad7d9bf794"
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
    sleepers.sleeps(OTHER, AGENT_MAILBOX_ROLE="dev")
    sleepers.sleeps(ME, AGENT_MAILBOX_ROLE="dev")
    sleepers.send("role:dev", "--priority", "high")
    assert sleepers.look() == [ME]
    sleepers.hook("SessionStart", OTHER)
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
    sleepers.sleeps(OTHER)
    for session in (ME, OTHER):
        sleepers.send(session, "--priority", "high")
    sleepers.ok("roster", "retire", OTHER)
    assert sleepers.look() == []


def test_who_is_not_to_be_started_keeps_no_other_from_it(sleepers: Sleepers) -> None:
    """It was there last: one whose client runs on, and one that no hook brought."""
    for session in (OTHER, ME):
        sleepers.sleeps(session)
    for step in (("register", "--session-id"), ("freeze",)):
        sleepers.ok("roster", *step, "kim")
    for session in ("kim", ME, OTHER):
        sleepers.send(session, "--priority", "high")
    runs_on = processes.read(os.getpid())
    assert runs_on is not None
    ProcessRecords(Mailbox(str(sleepers.box)).logs.stamp_files.kept()).record(runs_on, ME, "")
    assert sleepers.look() == [OTHER]


def test_starts_are_counted_by_the_hour(sleepers: Sleepers) -> None:
    """The steward starts only so many agents an hour, all together. Mail that started an agent does not start it
    again."""
    sleepers.says(f'command = ["{sleepers.again}", "{{session}}"]', "per_hour = 1")
    for session in (ME, OTHER):
        sleepers.sleeps(session)
        sleepers.send(session, "--priority", "high")
    assert len(sleepers.look()) == 1
    assert sleepers.look() == []
    state = next(sleepers.program.user_state.rglob("wake.json"))
    told = json.loads(state.read_text())
    state.write_text(json.dumps({**told, "at": [told["at"][0] - 3_600_000]}))
    assert len(sleepers.look()) == 1
    assert sorted(args[1] for args in sleepers.ran(2)) == [ME, OTHER]


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
