"""The real client's background sessions: each is itself, is woken, comes back, and no agent comes to decide by them.

Belongs here: sessions that Claude Code's background service runs (``--bg``, ``/bg``). What their rules are without the
client is in ``tests/cli/test_callers.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.given_names import NAMES
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.shown import shows, shows_at, takes_long
from tests.e2e.standin import bash, in_turn, said
from tests.e2e.terminal import Terminal
from tests.helpers import MESSAGES, READS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.client import Client
    from tests.e2e.standin import Body
    from tests.helpers import Post

pytestmark = pytest.mark.usefixtures("on_path")
OURS = ("AGENT_MAILBOX_DIR", "AGENT_MAILBOX_ROLE", "AGENT_MAILBOX_NAME", "AGENT_MAILBOX_LEAD")


def is_served(post: Post, session: str) -> bool:
    """Does the service still have a worker of this session? It has for some seconds behind ``stop``. Brought back
    before that, the client makes a fork of it, under another id."""
    roster = post.home / ".claude/daemon/roster.json"
    with contextlib.suppress(OSError, ValueError):  # it is being written
        return roster.exists() and session[:8] in json.loads(roster.read_text())["workers"]
    return True


class Background:
    """The client's background service, for a ``with`` block, after which no process of it is left."""

    def __init__(self, client: Client) -> None:
        self.client = client
        home = client.post.home
        entry = json.loads((home / ".claude.json").read_text())
        self.projects = [client.project, client.post.scratch / "other"]
        for project in self.projects:
            project.mkdir(exist_ok=True)
            entry["projects"][str(project)] = {"hasTrustDialogAccepted": True}
            client.post.ok("init", project / "data")
            client.post.ok("install", "claude-code", "--project", project)
        (home / ".claude.json").write_text(json.dumps(entry))

    def start(self, *words: object, at: int = 0, **env: str | None) -> str:
        """Have the service begin a session; what the client says of it."""
        with self.client.start(
            *words, cwd=self.projects[at], env={"TERM": "xterm-256color", "AGENT_MAILBOX_DIR": None, **env}
        ) as process:
            out, err = process.communicate(timeout=90)
        assert process.returncode == 0, (out, err)
        return out.decode()

    def agents(self, at: int = 0) -> dict[str, dict[str, Any]]:
        """The agents of a project's mailbox, by id."""
        found = self.client.post.ok("roster", "list", "--dir", self.box(at))["agents"]
        return {agent["session_id"]: agent for agent in found}

    def box(self, at: int = 0) -> Path:
        """A project's mailbox."""
        return self.projects[at] / "data"

    def asked(self, word: str) -> str:
        """The first conversation with the word in it, once there is one."""
        return str(until(lambda: next(iter(self.client.model.asked(word)), None)))

    def idle(self, session: str) -> None:
        """Wait until a session is between turns, with a doorbell beside it."""
        bell = self.box(self.at(session)) / ".cache/doorbell" / session

        def is_idle() -> bool:
            for file in (self.client.post.home / ".claude/sessions").glob("*.json"):
                with contextlib.suppress(ValueError, OSError):
                    entry = json.loads(file.read_text())
                    if entry.get("sessionId") == session and entry.get("status") == "idle":
                        return bell.exists() and bell.read_text()[:1].isdigit()
            return False

        until(is_idle)

    def at(self, session: str) -> int:
        """The project of a session."""
        return next(at for at in (1, 0) if at == 0 or session in self.agents(at))

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        mine = f"HOME={self.client.post.home}\0".encode()
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and mine in Path(f"/proc/{name}/environ").read_bytes():
                    os.kill(int(name), signal.SIGKILL)


@pytest.fixture
def background(client: Client) -> Iterator[Background]:
    """The background service, and two projects with a mailbox of their own."""
    with Background(client) as service:
        yield service


@takes_long
@shows(CLAUDE_CODE, "wake when idle", "own session")
@shows_at(CLAUDE_CODE, "background", "mail", "wake")
def test_each_background_session_is_its_own_is_woken_and_comes_back(background: Background) -> None:
    """The variables of the terminal that started the service count for no session, which is told so once. Mail wakes an
    idle one. Stopped and brought back, it is alive and sends in its own name."""
    client = background.client
    wished = {"AGENT_MAILBOX_DIR": str(background.box()), "AGENT_MAILBOX_ROLE": "architect"}
    background.start("--bg", "PROMPT_ONE", **wished, AGENT_MAILBOX_NAME="Ann", AGENT_MAILBOX_LEAD="boss")
    first = background.asked("PROMPT_ONE")
    assert first.count("left out") == 1
    assert ", ".join(OURS[:3]) in first
    background.start("--bg", "PROMPT_TWO", at=1)
    background.asked("PROMPT_TWO")
    (one,), (two,) = background.agents(0).values(), background.agents(1).values()
    assert [(agent["name"] in NAMES, agent["tags"], agent["lead"]) for agent in (one, two)] == [
        (True, ["project:inscription"], None),
        (True, ["project:other"], None),
    ]
    session = two["session_id"]
    background.idle(session)
    box = ("--dir", background.box(1))
    client.post.ok("send", *box, "--from", "bob", "--to", session, "--body", "MAIL_ONE")
    assert "MAIL_ONE" not in background.asked("PROMPT_TWO")
    background.asked("MAIL_ONE")
    background.idle(session)
    background.start("stop", session[:8])
    until(lambda: background.agents(1)[session]["state"] == "frozen" and not is_served(client.post, session))
    client.model.script = in_turn([bash("agent-mailbox send --to bob --body FROM_BEHIND")], [said("sent")])
    background.start("--bg", "--resume", session, "PROMPT_THREE", at=1)
    until(lambda: "FROM_BEHIND" in (background.box(1) / "agent-mailbox.jsonl").read_text())
    assert background.agents(1)[session]["state"] == "alive"
    sent = [json.loads(line) for line in (background.box(1) / "agent-mailbox.jsonl").read_text().splitlines()]
    assert [m["sender"] for m in sent if m["content"] == "FROM_BEHIND"] == [session]
    assert f"session:{session}" in sent[-1]["seal"]
    reads = [json.loads(line) for line in (background.box(1) / READS).read_text().splitlines()]
    assert len([r for r in reads if r.get("event") == "read"]) == 1


@takes_long
def test_no_agent_comes_to_decide_by_the_background_service(background: Background) -> None:
    """A worker has its lead brought back in the background: by a service that it starts, by its person's, and without
    any variable of its own. The first two are nobody. The third has its mail, and no word of it decides."""
    client = background.client
    settings = client.project / ".claude/settings.local.json"
    entry = json.loads(settings.read_text())
    entry["permissions"]["allow"].append("Bash")
    settings.write_text(json.dumps(entry))
    plain = {"AGENT_MAILBOX_DIR": None}
    leads = [client.ask(f"PROMPT_LEAD_{number}", env=plain)["session_id"] for number in range(3)]
    calls: dict[str, list[str]] = {}

    def script(body: Body) -> list[Body]:
        talk = json.dumps(body["messages"])
        mine = next((word for word in calls if word in talk and body.get("tools")), "")
        return [bash(calls[mine].pop(0))] if mine and calls[mine] else [said("DONE")]

    client.model.script = script

    def attack(number: int, how: str = "") -> str:
        """Have a worker ask for its lead, which is to free it; what the lead's model was told of that."""
        lead, word = leads[number], f"PROMPT_OF_{number}"
        worker = client.ask(f"WORKER_{number}", env={**plain, "AGENT_MAILBOX_LEAD": lead})["session_id"]
        calls[f"ASK_{number}"] = [
            f"{how} {client.binary} --bg --permission-mode default --resume {lead} {word}"
        ]  # and names the other's word
        calls[word] = [f"agent-mailbox control mode {worker} acceptEdits", "agent-mailbox send --to bob --body X"]
        client.ask(f"ASK_{number}", "--resume", worker, env=plain)
        until(lambda: not calls[word])

        def answered() -> str | None:
            talks = [talk for talk in client.model.asked(word) if f"ASK_{number}" not in talk]
            return next((talk for talk in talks if talk.count("tool_result") > 1), None)

        talk = str(until(answered))
        assert "mode" not in (background.box() / MESSAGES).read_text()
        return talk.partition(word)[2]

    for number in (0, 1):
        assert attack(number).count("this program is no process of that client") + 1
        assert background.agents()[leads[number]]["state"] == "frozen"
        if number == 0:
            background.__exit__()
            background.start("--bg", "PERSON_S_OWN")
    kept = " ".join(f"{name}=${name}" for name in ("HOME", "PATH", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"))
    third = attack(2, f"env -i {kept}")
    assert "came back in the background" in third
    assert background.agents()[leads[2]]["state"] == "alive"


@takes_long
@shows_at(CLAUDE_CODE, "forked", "mail", "wake")
def test_moved_into_the_background_a_session_goes_on_and_a_fork_is_told_that_it_is_another(
    background: Background,
) -> None:
    """``/bg`` keeps name, role and what is owed, and mail wakes it there. ``--fork-session`` is another agent, and is
    told so and whose copy."""
    client = background.client
    wishes = {"AGENT_MAILBOX_DIR": None, "AGENT_MAILBOX_NAME": "Fore", "AGENT_MAILBOX_ROLE": "architect"}
    with Terminal(client, env=wishes) as terminal:
        terminal.wait(terminal.idle)
        terminal.ask("PROMPT_FORE")
        session = str(terminal.session())
        terminal.wait(terminal.idle)
        terminal.submit("/bg")
        until(lambda: len(background.agents()) > 1)
    (moved,) = (agent for agent in background.agents().values() if agent["session_id"] != session)
    assert (moved["name"], moved["continues"], moved["state"]) == ("Fore", [session], "alive")
    assert "role:architect" in moved["tags"]
    background.idle(moved["session_id"])
    client.post.ok("send", "--dir", background.box(), "--from", "bob", "--to", "Fore", "--body", "MAIL_MOVED")
    background.asked("MAIL_MOVED")
    fork = client.ask("PROMPT_FORK", "--resume", session, "--fork-session", env={"AGENT_MAILBOX_DIR": None})[
        "session_id"
    ]
    assert fork not in (session, moved["session_id"])
    told = client.model.asked("PROMPT_FORK")[0]
    assert f"this session is {fork[:8]}, a fork with another one's talk: Fore is not you" in told
