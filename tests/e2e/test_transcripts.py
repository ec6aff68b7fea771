"""The real Claude Code's transcript where it is not simply appended to: mail stays in the conversation, once.

Belongs here: a compaction, a rewound turn, a file that was cut, one in another place. The rules alone are in
``tests/claude/test_receipts.py``, against lines as these tests saw them.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.shown import shows, takes_long
from tests.e2e.standin import bash, conversation, in_turn, said
from tests.e2e.terminal import Terminal
from tests.helpers import PATIENCE, READS, until
from tests.night import nightly

if TYPE_CHECKING:
    from typing import Any

    from tests.e2e.client import Client
    from tests.e2e.standin import Body

LONG = "head -c 29000 /dev/zero | tr '\\0' a"
"""A command whose output is worth a compaction."""
WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "120000"}
FULL = 95_000
"""Tokens that fill this window."""


@nightly
@shows(CLAUDE_CODE, "once", "seen")
def test_mail_right_before_a_compaction_is_in_the_conversation_once(client: Client) -> None:
    """A tool's hook gave it to the model, and the client compacts before the next request. It keeps the end of the
    conversation, so no hook shows the mail again."""
    left = [bash(LONG), bash(LONG), bash(client.mailer("MAIL_KEPT"))]

    def script(body: Body) -> list[Body]:
        if "detailed summary" in conversation(body):
            return [said("<summary>THE_SUMMARY</summary>")]
        if not body.get("tools") or not left:
            return [said("DONE")]
        answer = left.pop(0)
        client.model.used = 8_000 if left else FULL
        return [answer]

    client.model.script = script
    session = client.ask("PROMPT_ONE", "--allowedTools", "Bash", env=WINDOW)["session_id"]
    client.model.used = 1
    talk = client.model.asked("THE_SUMMARY")[-1]
    assert "PROMPT_ONE" not in talk
    assert talk.count("| MAIL_KEPT") == 1
    assert client.events("MAIL_KEPT") == [(session, "read"), (session, "seen")]


@takes_long
@shows(CLAUDE_CODE, "once", "seen")
def test_mail_of_a_rewound_turn_that_nobody_answered_is_in_the_next_one(client: Client) -> None:
    """The person interrupts a turn behind a tool, and takes it back by ``/rewind``. The model's next word is none about
    its mail. The mail comes as that turn ends, and only then it is seen."""
    held, left = threading.Event(), [bash(client.mailer("MAIL_REWOUND"))]

    def script(body: Body) -> list[Body]:
        if not body.get("tools") or "PROMPT_TWO" not in conversation(body) or held.is_set():
            return [said("ANSWER")]
        if left:
            return [left.pop()]
        held.wait(PATIENCE)
        return [said("TOO_LATE")]

    with Terminal(client, "--allowedTools", "Bash") as terminal:
        session = terminal.started()
        (client.post.box / "config.toml").write_text("[hook]\ndoorbell = false\n")
        client.model.script = script
        terminal.ask("PROMPT_ONE")
        terminal.wait(terminal.idle)
        terminal.ask("PROMPT_TWO")
        terminal.wait(lambda: client.model.asked("MAIL_REWOUND"))
        terminal.mark()
        terminal.type("\x1b")
        terminal.wait(terminal.idle)
        held.set()
        terminal.submit("/rewind")
        terminal.wait(lambda: b"(current)" in terminal.screen)
        terminal.press("\x1b[A", lambda shown: b"PROMPT_TWO" in shown)
        terminal.press("\r", lambda shown: b"Never mind" in shown)
        terminal.press("\r", lambda shown: "❯\N{NO-BREAK SPACE}PROMPT_TWO".encode() in shown)
        assert client.events("MAIL_REWOUND") == [(session, "read")]
        terminal.type("_AND_MORE")
        terminal.wait(lambda: b"AND_MORE" in terminal.screen)
        terminal.mark()
        terminal.type("\r")
        terminal.wait(lambda: "MAIL_REWOUND" in (client.model.asked("AND_MORE") or [""])[-1])
        terminal.wait(terminal.idle)
        terminal.leave()
    assert client.model.asked("AND_MORE")[-1].count("| MAIL_REWOUND") == 1
    assert [event for _, event in client.events("MAIL_REWOUND")] == ["read", "release", "read", "seen"]


@pytest.mark.parametrize("end", [b"", b"\n", b'"}', b"MAIL_CUT"], ids=["whole", "line break", "bracket", "text"])
@takes_long
@shows(CLAUDE_CODE, "once", "seen")
def test_a_session_that_comes_back_to_a_cut_transcript_has_its_mail_once(client: Client, end: bytes) -> None:
    """It is killed before an answer, and its file ends within the mail's line, from ``end`` on. The client replays what
    is whole, also without a line break, and a hook shows the rest."""
    session = client.ask("PROMPT_ONE")["session_id"]
    client.post.send("bob", session, "MAIL_CUT")
    asked, done = threading.Event(), threading.Event()

    def script(body: Body) -> list[Body]:
        if "MAIL_CUT" in conversation(body):
            asked.set()
            done.wait(PATIENCE)
        return [said("TOO_LATE")]

    client.model.script = script
    (path,) = (client.post.home / ".claude/projects").glob(f"*/{session}.jsonl")
    with client.start("-p", "PROMPT_TWO", "--resume", session) as process:
        assert asked.wait(PATIENCE)
        until(lambda: _mail_line(path))
        process.kill()
        done.set()
    client.model.script = in_turn()
    begins, line = _mail_line(path) or (0, b"")
    with path.open("r+b") as file:
        file.truncate(begins + (line.rindex(end) if end else len(line)))
    for prompt in ("PROMPT_THREE", "PROMPT_FOUR"):
        client.ask(prompt, "--resume", session)
        assert client.model.asked(prompt)[0].count("| MAIL_CUT") == 1
    assert client.events("MAIL_CUT")[-1] == (session, "seen")


def _mail_line(path: Path) -> tuple[int, bytes] | None:
    """Where the line begins with which the client keeps mail, and the line."""
    at = 0
    for line in path.read_bytes().splitlines(keepends=True):
        if b'"hook_additional_context"' in line and b"| MAIL_CUT" in line and line.endswith(b"\n"):
            return at, line
        at += len(line)
    return None


class Places:
    """Two projects with a mailbox each, whose transcripts the client keeps in one directory."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.here: dict[str, str | None] = {"AGENT_MAILBOX_DIR": None}
        self.projects = [client.post.scratch / "one/project", client.post.scratch / "one-project"]
        for project in self.projects:
            project.mkdir(parents=True)
            client.post.ok("init", project / "data", env=self.here)
            client.post.ok("install", "claude-code", "--project", project)
        self.trust(*self.projects)

    def trust(self, *projects: Path) -> None:
        """The person trusts these."""
        file = self.client.post.home / ".claude.json"
        known = json.loads(file.read_text())
        known["projects"] |= {str(project): {"hasTrustDialogAccepted": True} for project in projects}
        file.write_text(json.dumps(known))

    def ask(self, prompt: str, project: Path, *words: object) -> str:
        """One prompt there; the session."""
        return str(self.client.ask(prompt, *words, cwd=project, env=self.here)["session_id"])

    def send(self, session: str, body: str, project: Path) -> None:
        """A message in that mailbox."""
        words = ("send", "--from", "bob", "--to", session, "--body", body, "--dir", project / "data")
        self.client.post.ok(*words)

    def events(self, project: Path) -> list[tuple[str, str]]:
        """What its reads log says."""
        lines = (project / "data" / READS).read_text().splitlines()
        records: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [(record["reader_session_id"], record["event"]) for record in records]


@takes_long
@shows(CLAUDE_CODE, "once", "seen")
def test_sessions_whose_transcripts_lie_side_by_side_have_their_own_mail(client: Client) -> None:
    """The client names the directory by the project's path, and two paths give one name. Each session has its own
    project's mail. Resumed in the other one, it leaves what waits at home, and has it there, once."""
    places = Places(client)
    home, other = places.projects
    first, second = places.ask("PROMPT_ONE", home), places.ask("PROMPT_TWO", other)
    assert len({path.parent for path in (client.post.home / ".claude/projects").glob("*/*.jsonl")}) == 1
    places.send(first, "MAIL_ONE", home)
    places.send(second, "MAIL_TWO", other)
    places.ask("PROMPT_THREE", home, "--resume", first)
    places.ask("PROMPT_FOUR", other, "--resume", second)
    places.send(first, "MAIL_MORE", home)
    places.ask("PROMPT_FIVE", other, "--resume", first)
    places.ask("PROMPT_SIX", home, "--resume", first)
    counts = {
        prompt: [client.model.asked(prompt)[0].count(f"| {mail}") for mail in ("MAIL_ONE", "MAIL_TWO", "MAIL_MORE")]
        for prompt in ("PROMPT_FOUR", "PROMPT_FIVE", "PROMPT_SIX")
    }
    assert counts == {"PROMPT_FOUR": [0, 1, 0], "PROMPT_FIVE": [1, 0, 0], "PROMPT_SIX": [1, 0, 1]}
    assert places.events(home) == [(first, "read"), (first, "seen")] * 2
    assert places.events(other) == [(second, "read"), (second, "seen")]


@takes_long
@shows(CLAUDE_CODE, "once", "seen")
def test_a_session_of_a_project_that_was_moved_has_its_mail_once(client: Client) -> None:
    """The client resumes it by its id, wherever it is. Its mail waits until the person ran ``init`` there, and the
    session tells so. What it saw before is not shown again."""
    places = Places(client)
    home, moved = places.projects[0], client.post.scratch / "moved"
    session = places.ask("PROMPT_ONE", home)
    places.send(session, "MAIL_SEEN", home)
    places.ask("PROMPT_TWO", home, "--resume", session)
    places.send(session, "MAIL_WAITS", home)
    home.rename(moved)
    places.trust(moved)
    with client.start("-p", "PROMPT_THREE", "--resume", session, cwd=moved, env=places.here) as process:
        process.communicate(timeout=PATIENCE)
    transcripts = (client.post.home / ".claude/projects").glob(f"*/{session}.jsonl")
    told = "\n".join(path.read_text() for path in transcripts)
    assert f"If you moved it, run agent-mailbox init {moved / 'data'}" in told
    client.post.ok("init", moved / "data", env=places.here)
    places.ask("PROMPT_FOUR", moved, "--resume", session)
    talk = client.model.asked("PROMPT_FOUR")[-1]
    assert [talk.count(f"| {mail}") for mail in ("MAIL_SEEN", "MAIL_WAITS")] == [1, 1]
    assert places.events(moved) == [(session, "read"), (session, "seen")] * 2
