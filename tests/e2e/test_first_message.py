"""From nothing to a first message that is seen: how many commands of the person it takes."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING

from tests.e2e.client import Client
from tests.e2e.standin import StandIn, bash, in_turn
from tests.e2e.terminal import Terminal
from tests.helpers import TOOLS, Post, until

if TYPE_CHECKING:
    from pathlib import Path

MOST = 60.0
"""Seconds of the processors that the three commands may take, however busy the machine is with other things."""


def spent_seconds() -> float:
    """The seconds of the processors that this process used, and those it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class FreshClient(Client):
    """The client in a home where nothing of ours is installed."""

    def __init__(self, post: Post, binary: Path, model: StandIn) -> None:
        super().__init__(post, binary, model)
        post.ok("uninstall", "claude-code", "--project", self.project)
        post.env.pop("AGENT_MAILBOX_DIR", None)
        post.env["PATH"] = f"{TOOLS}:{binary.parent}:{post.env['PATH']}"


def test_a_first_message_is_seen_after_three_commands_of_the_person(post: Post, binary: Path) -> None:
    """`setup`, and the client twice: the second session writes to the first one by the name that it got by itself."""
    with StandIn() as model:
        client = FreshClient(post, binary, model)
        none: dict[str, str | None] = {"AGENT_MAILBOX_DIR": None}
        begun, used, commands = time.monotonic(), spent_seconds(), 0
        done = post.call("setup", "--yes", cwd=client.project, env=none)
        commands += 1
        assert done.rc == 0, done
        post.box = client.project / "data"
        with Terminal(client, "PROMPT_ONE", env=none):
            commands += 1
            until(lambda: model.asked("PROMPT_ONE"))
            (first,) = post.ok("--dir", post.box, "roster", "list")["agents"]
            model.script = in_turn([bash(f"agent-mailbox send --to {first['name']} --body MAIL_FIRST")])
            client.ask("PROMPT_TWO", "--allowedTools", "Bash", env=none)
            commands += 1
            until(lambda: (first["session_id"], "seen") in client.events("MAIL_FIRST"))
            elapsed = time.monotonic() - begun
        spent = spent_seconds() - used
        print(f"{commands} commands, {elapsed:.1f} s until the first message was seen; {spent:.1f} s of the processors")
        assert commands == 3
        assert spent < MOST
