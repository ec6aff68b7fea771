"""A team of three real clients by ``up``: started in the background, brought back after all was killed, ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.opencode import OPENCODE
from tests.e2e import test_codex, test_opencode
from tests.e2e.client import KEY, Client, client_program
from tests.e2e.completions import Completions
from tests.e2e.responses import Responses
from tests.e2e.standin import StandIn
from tests.helpers import TOOLS, until
from tests.night import nightly
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers import Post

TEAM = """
[member.Ann]
client = "claude"
role = "architect"
prompt = "PROMPT_ANN"

[member.Bea]
client = "codex"
role = "builder"
lead = "Ann"
prompt = "PROMPT_BEA"

[member.Dot]
client = "opencode"
tags = ["domain:docs"]
prompt = "PROMPT_DOT"

[rules.builder]
deny = ["Bash(git push:*)"]

[[task]]
title = "Begin"
to = "role:builder"
"""


class Team:
    """The three clients in one project, each with a stand-in for its model, and the file of the team."""

    def __init__(self, post: Post, models: list[Any]) -> None:
        self.post = post
        post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"
        self.claude = Client(post, client_program(CLAUDE_CODE), models[0])
        self.codex = test_codex.Codex(post, client_program(CODEX), models[1])
        self.opencode = test_opencode.OpenCode(post, client_program(OPENCODE), models[2])
        self.models = models
        self.project = self.claude.project
        (self.project / "team.toml").write_text(TEAM)
        self.box = self.project / "data"
        post.ok("init", self.box)
        self.codex.install()
        self.codex.trust()
        self.opencode.install()
        nobody = [f"-u{name}" for name in NOBODY_SAID]
        claude = {
            "ANTHROPIC_BASE_URL": models[0].url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            "DISABLE_AUTOUPDATER": "1",
            "TERM": "xterm-256color",
        }
        settings = {name: value for name, value in test_opencode.SETTINGS.items() if value is not None}
        words = {
            "claude": (claude, self.claude.binary),
            "codex": ({"STANDIN_KEY": "dummy"}, self.codex.binary),
            "opencode": (settings, self.opencode.binary),
        }
        rows = [
            f"{name} = {json.dumps(['env', *nobody, *(f'{k}={v}' for k, v in env.items()), str(program)])}"
            for name, (env, program) in words.items()
        ]
        post.configure("\n".join(["[up]", *rows, ""]))

    def call(self, *words: object) -> dict[str, dict[str, Any]]:
        """A command of the person's in the project; the members that it tells, by name."""
        done = self.post.call("--dir", self.box, *words, "--json", cwd=self.project)
        assert done.rc == 0, done
        return {one["name"]: one for one in done.json["members"]}

    def agents(self) -> dict[str, dict[str, Any]]:
        """The agents of the mailbox, by name."""
        return {one["name"]: one for one in self.post.ok("--dir", self.box, "roster", "list")["agents"]}

    def kill(self) -> None:
        """Kill every process of the home, as a reboot does."""
        mine = f"HOME={self.post.home}\0".encode()
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and int(name) != os.getpid() and mine in Path(f"/proc/{name}/environ").read_bytes():
                    os.kill(int(name), signal.SIGKILL)


@pytest.fixture
def team(post: Post) -> Iterator[Team]:
    """The team; nothing of it runs afterwards."""
    with StandIn() as ann, Responses() as bea, Completions() as dot:
        made = Team(post, [ann, bea, dot])
        try:
            yield made
        finally:
            made.kill()


@nightly
def test_three_clients_come_up_come_back_after_all_was_killed_and_end(team: Team) -> None:
    """Each is in the roster with its name, its role and its lead, has its prompt, and mail wakes it. Killed, all three
    come back as the same sessions; ended, none runs. The file's rules and tasks are given once."""
    first = team.call("up", "--yes")
    assert [one["state"] for one in first.values()] == ["alive"] * 3, first
    agents = team.agents()
    assert agents["Ann"]["tags"][0] == "role:architect"
    assert "domain:docs" in agents["Dot"]["tags"]
    assert agents["Bea"]["lead"] == first["Ann"]["session_id"]
    for model, word in zip(team.models, ("PROMPT_ANN", "PROMPT_BEA", "PROMPT_DOT"), strict=True):
        until(lambda model=model, word=word: model.asked(word))
    again = team.call("up")
    assert again == first
    ann = first["Ann"]["session_id"]  # killed before its first words are kept, it could not be brought back
    until(lambda: [*(team.post.home / ".claude/projects").glob(f"*/{ann}.jsonl")])
    team.kill()
    until(lambda: all(one["state"] != "alive" for one in team.call("up", "--status").values()))
    team.post.ok("--dir", team.box, "send", "--from", "user", "--to", "Ann", "--body", "MAIL_MEANWHILE")
    back = team.call("up")
    assert {name: one["session_id"] for name, one in back.items()} == {
        name: one["session_id"] for name, one in first.items()
    }
    assert [one["state"] for one in back.values()] == ["alive"] * 3, back
    until(lambda: team.models[0].asked("MAIL_MEANWHILE"))
    tasks = team.post.ok("--dir", team.box, "task", "list")["tasks"]
    assert [one["title"] for one in tasks] == ["Begin"]
    assert "git push" in team.post.call("--dir", team.box, "control", "policy", "Bea").stdout
    ended = team.call("down", "--wait", "0")
    assert {one["how"] for one in ended.values()} == {"was ended"}
    until(lambda: all(one["state"] != "alive" for one in team.call("up", "--status").values()))
