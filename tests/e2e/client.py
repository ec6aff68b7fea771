"""The real client in a project of its own, and programs from the npm registry, pinned, once into the user's cache."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.shown import version
from tests.e2e.standin import StandIn
from tests.helpers import DOOR, MESSAGES, PATIENCE, READS, Post
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_mailbox.known_clients.known_client import KnownClient

KEY = "dummy"

INSTALL_PATIENCE = 90
"""Seconds for fetching the client, the first time: without a network it must not hold up the suite."""


def client_program(client: KnownClient) -> Path:
    """The client's program, installed once into the user's cache."""
    return npm_program(client.package, version(client), client.program)


def npm_program(package: str, version: str, name: str) -> Path:
    """A program from a pinned npm package, installed once into the user's cache."""
    return npm_file(package, version, f".bin/{name}", "--version")


def npm_file(package: str, version: str, name: str, *check: str) -> Path:
    """A file of a pinned npm package (below ``node_modules``), installed once into the user's cache; ``check``: words
    with which it must run."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-mailbox-tests"
    directory = cache / f"{package.rpartition('/')[2]}-{version}"
    program = directory / "node_modules" / name
    npm = shutil.which("npm")
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "complete").exists():
            if npm is None:
                pytest.skip(f"{package} cannot be installed: no npm")
            flags = ("--no-audit", "--no-fund", "--fetch-retries=0")
            words = [npm, "install", "--prefix", directory, *flags, f"{package}@{version}"]
            try:
                subprocess.run(words, check=True, capture_output=True, timeout=INSTALL_PATIENCE)
                if check:
                    subprocess.run([program, *check], check=True, capture_output=True, timeout=PATIENCE)
                assert program.exists()
            except (OSError, subprocess.SubprocessError) as error:
                pytest.skip(f"{package} cannot be installed: {error}")
            (directory / "complete").touch()
    return program


def mailer(post: Post, body: str, first: str = ":") -> str:
    """A program that does something first, and sends all of the project a message for now, as from another agent."""
    words = (
        "env",
        f"PYTHONPATH={DOOR}",
        f"AGENT_MAILBOX_DIR={post.box}",
        "AGENT_MAILBOX_TEST_CALLER=as-said",  # it takes the place of a process elsewhere
        sys.executable,
        "-m",
        "agent_mailbox",
    )
    send = shlex.join([*words, "send", "--from", "bob", "--to", "project:inscription", "--when", "now", "--body", body])
    path = post.scratch / "mailer"
    path.write_text(f"#!/bin/sh\n{first}\n{send} >/dev/null\n")
    path.chmod(0o755)
    return str(path)


class Client:
    """The client in a project of its own, with the installation under test."""

    def __init__(self, post: Post, binary: Path, model: StandIn) -> None:
        self.post = post
        self.binary = binary
        self.model = model
        self.project = post.scratch / "inscription"
        self.project.mkdir(exist_ok=True)
        trust = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
        }
        (post.home / ".claude.json").write_text(json.dumps(trust))
        post.ok("install", "claude-code", "--project", self.project)

    def start(
        self, *words: object, env: Mapping[str, str | None] | None = None, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """The client as a process."""
        settings: dict[str, str | None] = {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            # it gives a person's hooks at the end 1.5 seconds together, unless they say more
            "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": str(PATIENCE * 1000),
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            # what its runtime does for long sessions alone, a fifth of a short one's processor time
            "BUN_GC_TIMER_DISABLE": "1",
            "BUN_JSC_useDFGJIT": "false",
            "TERM": "dumb",
            "AGENT_MAILBOX_DIR": str(self.post.box),
            **NOBODY_SAID,  # within the client everyone is whose process they are, as for people
            **(env or {}),
        }
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [self.binary, *map(str, words)],
            env=self.post.environ(settings),
            **{"cwd": self.project, **streams, **popen},
        )

    def mailer(self, body: str) -> str:
        """A program that sends all of the project a message to be shown now, as from another agent."""
        return mailer(self.post, body)

    def events(self, body: str) -> list[tuple[str, str]]:
        """What the reads log says of the message with that text: (session, event), in order."""
        (message,) = [m["id"] for m in self.post.objects(MESSAGES) if body in m["content"]]
        return [(r["reader_session_id"], r["event"]) for r in self.post.objects(READS) if r["message_id"] == message]

    def ask(
        self, prompt: str, *words: object, env: Mapping[str, str | None] | None = None, **popen: Any
    ) -> dict[str, Any]:
        """One run with one prompt; the client's own account of it."""
        with self.start("-p", prompt, "--output-format", "json", *words, env=env, **popen) as process:
            try:
                out, err = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == 0, (out, err)
        return dict(json.loads(out))
