"""The five minutes of docs/engine.md: a server and two laptops, each with a home of its own, as they are written."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.helpers import PATIENCE, ROOT, TOOLS, Program
from tests.shell_blocks import blocks
from tests.test_pages import has_own_network

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ("server", "ssh", "first", "second")


def test_two_laptops_and_a_server_share_a_mailbox_as_the_page_says(tmp_path: Path) -> None:
    """All blocks run but the one of `ssh`, whose address the server has here itself. Mail of the second laptop is shown
    on the first one."""
    if not has_own_network():
        pytest.skip("no network of its own")
    programs = {place: Program(tmp_path / place) for place in PLACES}
    written = dict(zip(PLACES, blocks(ROOT / "docs/engine.md"), strict=False))
    lines = ["set -e", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT", "ip link set lo up"]
    for place, program in programs.items():
        if place == "ssh":
            continue
        state = program.home / ".config/agent-mailbox"
        (program.home / "project").mkdir()
        lines += [f"export HOME={program.home} AGENT_MAILBOX_TEST_STATE={state}"]
        lines += [f"cp {programs['server'].home}/mail/token ~/team.token"] * (place != "server")
        lines += [written[place].text]
        lines += ["until (echo > /dev/tcp/127.0.0.1/4222) 2> /dev/null; do :; done"] * (place == "server")
    first = programs["first"]
    lines += [f"export HOME={first.home} AGENT_MAILBOX_TEST_STATE={first.home}/.config/agent-mailbox; cd ~/project"]
    lines += ["agent-mailbox wait --session ann --timeout 60", "agent-mailbox check --session ann"]
    file = tmp_path / "page.sh"
    file.write_text("\n".join(lines))
    env = first.environ() | {"PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}
    done = subprocess.run(["unshare", "-rn", "bash", file], env=env, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Hello from the south." in done.stdout
