"""Sessions below a client's background service: the service hosts none, and no agent comes to decide by it.

The service is a process of the client's name with the words of Claude Code's (2.1.329 and 2.1.332); the client below it
is that of ``tests.surroundings``.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.given_names import NAMES
from agent_mailbox.store.user_state.processes import SERVED, SOCKET, ProcessRecords
from tests.helpers import MESSAGES, ROSTER, refused
from tests.surroundings import Client, line

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post

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
