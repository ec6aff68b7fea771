"""The shell of the pages runs as it is written, in a fresh home."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

from scripts.prose import written_pages

from .helpers import PATIENCE, ROOT, TOOLS, Program
from .shell_blocks import Block, alike, blocks, list_hidden_commands, script
from .surroundings import at_terminal, can_run

MARK = "===answer==="
BEGIN = "set -e -o pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"
PREPARED = {
    "coordination.md": """
        cd ~/project; agent-mailbox init > /dev/null
        for words in 'lee --name Lee' 'wu --name Wu --lead lee' 'kenji --name Kenji' 'ann --role worker --lead lee' \\
            'ben --role worker --lead lee'; do
            agent-mailbox roster register --session-id $words > /dev/null
        done
        export AGENT_MAILBOX_SESSION=ann
        agent-mailbox task add --to kenji --title T --task-id task-91c5 > /dev/null""",
    "gateway.md": "head -c 32 /dev/urandom > agent.key",
    "clients.md": "cd ~/project; agent-mailbox init > /dev/null; mkdir -p ~/.claude",
    "file-format.md": "cd ~/project; agent-mailbox init > /dev/null",
    "life-of-a-message.md": """cd ~/project; agent-mailbox init > /dev/null
        for words in 'alice --role architect' 'bob --name Bob'; do
            agent-mailbox roster register --session-id $words > /dev/null
        done""",
    "operations.md": "cd ~/project; agent-mailbox init > /dev/null",
    "console.md": """export BROWSER=true; cd ~/project; agent-mailbox init > /dev/null
        agent-mailbox roster register --session-id otter --name Otter > /dev/null""",
}
"""What a page takes for granted: a project with a mailbox, and agents there."""
SERVERS = ("console.md", "engine.md", "swarm.md")
"""Pages whose servers take fixed ports, so that they run in a network of their own."""
PAGES = [page for page in written_pages(ROOT) if any(True for _ in blocks(page))]


@functools.cache
def has_own_network() -> bool:
    """Return whether this machine gives a test a network of its own."""
    return can_run("unshare", "-rn", "ip", "link", "set", "lo", "up")


def run_page(page: Path, given: list[Block], program: Program) -> str:
    """Run the blocks of a page in one shell, and return what they said: at a terminal, as a person pastes them. Servers
    have a network of their own, and where a prompt names an agent, each caller is whom it claims to be."""
    program.cwd = program.home
    subprocess.run(["git", "init", "--quiet", program.home / "project"], check=True)
    file = program.scratch / "page.sh"
    program.env |= {"PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}
    program.env["AGENT_MAILBOX_TEST_STATE"] = str(program.home / ".config/agent-mailbox")
    lo = "ip link set lo up\n" if page.name in SERVERS else ""
    file.write_text(f"{BEGIN}{lo}{PREPARED.get(page.name, '')}\n{script(given, MARK)}")
    if page.name not in SERVERS and not any(who for block in given for who, *_ in block.steps):
        done = at_terminal(program, f". {file}", answer="y\n")
        code, answer = done.rc, done.stdout.replace("\r\n", "\n")
    else:
        words = [*(["unshare", "-rn"] if lo else []), "bash", str(file)]
        ran = subprocess.run(
            words,
            env=program.environ(),
            cwd=program.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        code, answer = ran.returncode, ran.stdout.decode()
    assert code == 0, (page.name, answer[-3000:])
    return answer


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_shell_of_a_page_runs_as_it_is_written(page: Path, tmp_path: Path) -> None:
    """Each block runs in the page's order, in a fresh home; a transcript's answers are the program's. A block that is
    not run says why. ``scripts/package`` runs those that install."""
    if page.name in SERVERS and not has_own_network():
        pytest.skip("no network of its own")
    given = [block for block in blocks(page) if not block.reason]
    answer = run_page(page, given, Program(tmp_path))
    parts = iter(answer.split(f"{MARK}\n")[1:])
    for block in given:
        if block.language == "text":
            for _, command, wanted in block.steps:
                shown = next(parts)
                assert not wanted.strip() or alike(shown) == alike(wanted), command
            next(parts)  # what the blocks behind it said


def test_no_command_hides_from_the_run_in_a_block_of_another_language() -> None:
    """A block whose lines are commands is shell or a transcript; the reference alone has usages."""
    pages = [page for page in written_pages(ROOT) if page.name != "commands.md"]
    assert {page.name: found for page in pages if (found := list_hidden_commands(page))} == {}
