"""The real Codex in a project of its own."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from tests.e2e.responses import Responses
from tests.helpers import PATIENCE, Post
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TRUSTING = "--dangerously-bypass-hook-trust"

CONFIG = """\
model = "stand-in"
model_provider = "standin"
approval_policy = "never"
sandbox_mode = "read-only"
[model_providers.standin]
name = "standin"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STANDIN_KEY"
[projects."{project}"]
trust_level = "trusted"
"""


class Codex:
    """The client in a project of its own, with the installation under test."""

    def __init__(self, post: Post, binary: Path, model: Responses) -> None:
        self.post = post
        self.binary = binary
        self.model = model
        self.project = post.scratch / "inscription"
        self.project.mkdir(exist_ok=True)
        self.home = post.home / ".codex"
        self.home.mkdir()
        self.config = self.home / "config.toml"
        self.config.write_text(CONFIG.format(url=model.url, project=self.project))

    def install(self, *words: object) -> Any:
        """Install for the project, or as ``words`` say; the program's answer."""
        return self.post.ok("install", "codex", *(words or ("--project", self.project)))

    def environ(self, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """The client's whole environment."""
        return self.post.environ({"STANDIN_KEY": "dummy", "TERM": "dumb", **NOBODY_SAID, **(env or {})})

    def start(
        self, *words: object, env: Mapping[str, str | None] | None = None, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """The client as a process."""
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return subprocess.Popen(
            [self.binary, *map(str, words)], env=self.environ(env), cwd=self.project, **{**streams, **popen}
        )

    def trust(self) -> None:
        """Trust the hooks that are there, as its person would."""
        places = "".join(f'[hooks.state."{h["key"]}"]\ntrusted_hash = "{h["currentHash"]}"\n' for h in self.hooks())
        self.config.write_text(self.config.read_text() + places)

    def run(
        self, *words: object, stdin: str | None = None, env: Mapping[str, str | None] | None = None
    ) -> list[dict[str, Any]]:
        """The client's program with these words; what it says, as JSON lines."""
        done = subprocess.run(
            [self.binary, *map(str, words)],
            input=(stdin or "").encode(),
            env=self.environ(env),
            cwd=self.project,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ask(
        self, prompt: str, *words: object, trusting: bool = True, env: Mapping[str, str | None] | None = None
    ) -> str:
        """One run with one prompt; the session's id. Nothing was complained of but what the tests bring about."""
        trust = [TRUSTING] if trusting else []
        said = self.run("exec", *trust, *words, "--skip-git-repo-check", "--json", prompt, env=env)
        errors = [e["item"]["message"] for e in said if e.get("item", {}).get("type") == "error"]
        assert [e for e in errors if TRUSTING not in e and not e.startswith("Model metadata")] == []
        return str(next(e["thread_id"] for e in said if e["type"] == "thread.started"))

    def hooks(self) -> list[dict[str, Any]]:
        """The hooks of the project as the client sees them: event, place, checksum, whether they are trusted."""
        initialize = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}}
        listed = {"id": 2, "method": "hooks/list", "params": {"cwds": [str(self.project)]}}
        words = [self.binary, "app-server"]
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        env = self.post.environ({"STANDIN_KEY": "dummy"})
        with subprocess.Popen(words, env=env, cwd=self.project, stderr=subprocess.DEVNULL, **pipes) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            for request in (initialize, {"method": "initialized"}, listed):
                server.stdin.write(json.dumps(request).encode() + b"\n")
                server.stdin.flush()
            answer = next(a for line in server.stdout if (a := json.loads(line)).get("id") == 2)
            server.stdin.close()
        return list(answer["result"]["data"][0]["hooks"])
