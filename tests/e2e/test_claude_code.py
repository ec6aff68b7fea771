"""The real Claude Code against a stand-in model: what our installation makes reach the model.

The client comes from its package registry, pinned, once into the user's cache; where that cannot be had, these tests
are skipped and say why.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.standin import StandIn
from tests.helpers import PATIENCE, READS, Post

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "2.1.329"
INSTALL_PATIENCE = 45
"""Seconds for fetching the client, the first time: without a network it must not hold up the suite."""


@pytest.fixture(scope="session")
def binary() -> Path:
    """The client's program."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-mailbox-tests"
    directory = cache / f"claude-code-{VERSION}"
    program = directory / "node_modules/.bin/claude"
    npm = shutil.which("npm")
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "complete").exists():
            if npm is None:
                pytest.skip("the client cannot be installed: no npm")
            what = f"@anthropic-ai/claude-code@{VERSION}"
            words = [npm, "install", "--prefix", directory, "--no-audit", "--no-fund", "--fetch-retries=0", what]
            try:
                subprocess.run(words, check=True, capture_output=True, timeout=INSTALL_PATIENCE)
                subprocess.run([program, "--version"], check=True, capture_output=True, timeout=PATIENCE)
            except (OSError, subprocess.SubprocessError) as error:
                pytest.skip(f"the client cannot be installed: {error}")
            (directory / "complete").touch()
    return program


class Client:
    """The client in a project of its own, with the installation under test."""

    def __init__(self, post: Post, binary: Path, model: StandIn) -> None:
        self.post = post
        self.binary = binary
        self.model = model
        self.project = post.scratch / "inscription"
        self.project.mkdir()
        trust = {"hasCompletedOnboarding": True, "projects": {str(self.project): {"hasTrustDialogAccepted": True}}}
        (post.home / ".claude.json").write_text(json.dumps(trust))
        post.ok("install", "claude-code", "--project", self.project)

    def ask(self, prompt: str, *words: str, **env: str) -> dict[str, Any]:
        """One run with one prompt; the client's own account of it."""
        settings = {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "TERM": "dumb",
            "AGENT_MAILBOX_DIR": str(self.post.box),
            **env,
        }
        done = subprocess.run(
            [self.binary, "-p", prompt, "--output-format", "json", *words],
            env=self.post.environ(settings),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done
        return dict(json.loads(done.stdout))


@pytest.fixture
def client(post: Post, binary: Path) -> Iterator[Client]:
    """The client, a mailbox, and the model's stand-in."""
    with StandIn() as model:
        yield Client(post, binary, model)


def test_the_first_request_holds_the_mail_and_a_resumed_session_is_shown_none_again(client: Client) -> None:
    """Installed, started: the model has the mail beside the first prompt. Resumed: once in the conversation, as before,
    and one read record; mail that came meanwhile is there, too. A second session gets only what is for everyone."""
    client.post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    session = client.ask("PROMPT_ONE", AGENT_MAILBOX_ROLE="architect")["session_id"]
    first = client.model.asked("PROMPT_ONE")[0]
    assert "MAIL_FOR_THE_ROLE" in first
    assert "MAIL_FOR_ALL" in first
    assert {r["reader_session_id"] for r in client.post.objects(READS)} == {session}
    client.post.send("bob", session, "MAIL_MEANWHILE")
    assert client.ask("PROMPT_TWO", "--resume", session)["session_id"] == session
    second = client.model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "MAIL_MEANWHILE")] == [1, 1, 1]
    assert len(client.post.objects(READS)) == 3
    client.ask("PROMPT_THREE", AGENT_MAILBOX_ROLE="architect")
    third = client.model.asked("PROMPT_THREE")[0]
    assert [third.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL")] == [0, 1]


def test_without_mail_nothing_of_ours_is_in_the_conversation(client: Client) -> None:
    """The hooks cost no tokens; uninstalled, they do not even run."""
    session = client.ask("PROMPT_ONE")["session_id"]
    (talk,) = client.model.asked("PROMPT_ONE")
    assert "unread message" not in talk
    assert [a["session_id"] for a in client.post.ok("roster", "list")["agents"]] == [session]
    client.post.ok("uninstall", "claude-code", "--project", client.project)
    client.post.send("bob", "all", "MAIL_FOR_ALL")
    client.ask("PROMPT_TWO")
    assert "MAIL_FOR_ALL" not in client.model.asked("PROMPT_TWO")[0]
    assert len(client.post.ok("roster", "list")["agents"]) == 1


def test_the_commands_and_the_section_reach_the_model(client: Client) -> None:
    """``/checkpoint`` and ``/bye`` are the client's to expand; CLAUDE.md's section stands in the conversation."""
    for name, said in (("checkpoint", "Do not retire."), ("bye", "agent-mailbox roster retire")):
        client.ask(f"/{name}")
        talk = client.model.asked(f"/{name}")[-1]
        assert said in talk
        assert "## Mail from other agents" in talk
