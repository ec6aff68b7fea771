"""Two persons' homes are two machines of a space: approvals, rules and shutdowns from one to the other.

The real server, replicators, commands and hooks. Each machine has a home, a state directory and a key of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.space.order.order import MESSAGES
from tests.helpers import PATIENCE, ROOT, TOOLS, Post, Program, until
from tests.shell_blocks import blocks
from tests.test_pages import has_own_network

from .conformance import everything
from .opened_orders import open_nats

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


LEAD, WORKER = str(uuid.uuid4()), str(uuid.uuid4())
LOOKS = """
import sys
from agent_mailbox.launch import main
sys.exit(main(sys.argv[1:]) or "cryptography" in sys.modules)
"""
ASKED = {"command": "curl evil.example"}
_spaces = itertools.count()


class Home(Post):
    """One machine: a home, a mailbox in it, a place in a space."""

    def __init__(self, place: Path, machine: str, url: str, credential: str, space: str) -> None:
        super().__init__(place / machine)
        self.machine = machine
        self.url = url
        self.credential = credential
        self.space = space

    def join(self) -> Any:
        where = "--space", self.space, "--machine", self.machine, "--credential", self.credential
        return self.ok("engine", "join", self.url, *where)

    def trust(self, other: Home, speaks: str, *more: str) -> Any:
        """The person here compares the key and lets the other machine speak."""
        fingerprint = other.ok("engine", "status")["fingerprint"]
        key = "--key", f"{other.machine}={fingerprint}"
        return self.ok("engine", "join", *key, "--speaks", f"{other.machine}={speaks}", *more)

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[bytes]]:
        with self.start("engine", "serve") as child:
            assert child.stdout is not None
            assert child.stdout.readline() == f"serving {self.space} as {self.machine}\n".encode()
            try:
                yield child
            finally:
                child.terminate()
                child.communicate(timeout=PATIENCE)

    def hook(self, event: str, session: str, **said: Any) -> subprocess.Popen[bytes]:
        """A client's call of a hook."""
        call = {"session_id": session, "hook_event_name": event, "cwd": str(self.cwd), **said}
        call["transcript_path"] = str(self.scratch / f"{session}.jsonl")
        environ = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session, "CLAUDE_PROJECT_DIR": str(self.cwd)}
        child = self.start("hook", event, env=environ)
        assert child.stdin is not None
        child.stdin.write(json.dumps(call).encode())
        child.stdin.close()
        child.stdin = None
        return child

    def told(self, child: subprocess.Popen[bytes]) -> dict[str, Any]:
        """What a hook tells its client."""
        out, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 0, err
        found: dict[str, Any] = json.loads(out or b"{}").get("hookSpecificOutput", {})
        return found

    def begin(self, session: str, *words: object) -> None:
        """A session of a client begins, and registers."""
        self.told(self.hook("SessionStart", session, source="startup"))
        if words:
            self.ok("roster", "register", "--session-id", session, *words)

    def permission(self) -> subprocess.Popen[bytes]:
        """The worker's client asks whether a tool may run."""
        return self.hook("PermissionRequest", WORKER, tool_name="Bash", tool_input=ASKED, tool_use_id="toolu_1")

    def pending(self, *words: object) -> str:
        """The id of the one request that waits here, once it is there."""
        requests = until(lambda: self.ok("control", "pending", "--session", LEAD, *words)["requests"])
        return str(requests[0]["id"])


class Team:
    """A lead in the north, its worker in the south, both replicators."""

    def __init__(self, place: Path, url: str, credential: str) -> None:
        self.space = f"homes-{next(_spaces)}"
        self.north, self.south = (Home(place, machine, url, credential, self.space) for machine in ("north", "south"))
        self.homes = (self.north, self.south)
        for home in self.homes:
            home.join()
        self.north.begin(LEAD)
        self.south.begin(WORKER, "--lead", LEAD)

    def equal(self) -> None:
        """Wait until both copies have all of the order."""
        for home in self.homes:
            until(lambda home=home: (s := home.ok("engine", "status"))["applied"] == s["records"])  # type: ignore[misc]

    def states(self, request: str) -> list[tuple[str, str]]:
        """How a request is on each machine, and by whom."""
        self.equal()
        wait = "control", "wait", request, "--session", LEAD, "--timeout", "1"
        found = [home.ok(*wait)["request"] for home in self.homes]
        return [(one["state"], one["by"]) for one in found]


@pytest.fixture
def team(tmp_path: Path, server: str, credential: str) -> Iterator[Team]:
    """Both machines serve."""
    team = Team(tmp_path, server, credential)
    with ExitStack() as stack:
        for home in team.homes:
            stack.enter_context(home.serving())
        yield team


def test_a_lead_decides_for_a_worker_on_another_machine(team: Team) -> None:
    """Without a word an approval is mail, and a denial denies; with it the lead approves, and the first decision counts
    on both machines. What was said before the word counts by it, too."""
    child = team.south.permission()
    request = team.north.pending("--all")
    refused = team.north.run("control", "approve", request, "--session", LEAD)
    assert "is not its lead" in refused.stderr
    team.north.ok("control", "deny", request, "--session", LEAD)
    assert team.south.told(child)["decision"]["behavior"] == "deny"
    (unheard,) = {one["machine"] for one in team.south.ok("engine", "status")["unheard"]}
    assert unheard == "north"

    team.north.trust(team.south, "all")
    team.south.trust(team.north, "all")
    child = team.south.permission()
    request = team.north.pending()
    team.north.ok("control", "approve", request, "--session", LEAD)
    assert team.south.told(child)["decision"]["behavior"] == "allow"
    late = team.south.run("control", "deny", request, "--session", "user")
    assert "decided: approved" in late.stderr
    assert team.states(request) == [("approved", LEAD)] * 2
    assert team.south.run("engine", "doctor").rc == 0
    shown, again = (team.south.python(LOOKS, "check", "--session", WORKER) for _ in range(2))
    assert (shown.rc, again.rc) == (0, 0)  # whoever reads verifies nothing


def test_the_person_decides_from_another_machine(team: Team) -> None:
    """Rules of the north's person hold in the south if its person lets it speak, also those from before. A key that
    nobody confirmed, or that is another, frees nobody, and is told."""
    key, speaks = ("--key", f"north={'0' * 32}"), ("--speaks", "north=user,all")
    assert "not confirmed" in team.south.run("engine", "join", *speaks).stderr
    team.south.ok("engine", "join", *key, *speaks)
    team.north.ok("control", "policy", WORKER, "--allow", "Bash(curl:*)", "--deny", "WebFetch", "--session", "user")
    team.equal()
    south = team.south.ok("control", "policy", WORKER, "--session", "user")["agents"][0]
    assert (south["allow"], south["deny"]) == ([], ["WebFetch"])
    doctor = team.south.run("engine", "doctor")
    assert doctor.rc == 3
    assert re.search("lines? of north by another key than you confirmed: ", doctor.stdout)

    team.north.trust(team.south, "all")
    team.south.trust(team.north, "user,all")
    south = team.south.ok("control", "policy", WORKER, "--session", "user")["agents"][0]
    assert (south["allow"], south["deny"]) == (["Bash(curl:*)"], ["WebFetch"])
    assert team.south.told(team.south.permission())["decision"]["behavior"] == "allow"
    team.south.ok("engine", "join", "--speaks", "north=nobody")
    assert team.south.run("engine", "doctor").rc == 0
    team.south.ok("engine", "forget", "north")
    assert team.south.ok("engine", "status")["trusted"] == []


def test_modes_tasks_and_a_shutdown_cross_machines(team: Team) -> None:
    """The lead in the north sets the worker's mode, gives it a task that it does, and asks it to end, which it does."""
    team.north.trust(team.south, "all")
    team.south.trust(team.north, "all")
    team.north.ok("control", "mode", WORKER, "safe", "--session", LEAD)
    task = team.north.ok("control", "request", "task", WORKER, "--title", "build", "--session", LEAD)["request"]["id"]
    team.equal()
    assert team.south.ok("control", "policy", "--session", WORKER)["agents"][0]["mode"] == "safe"
    team.south.ok("control", "report", task, "--phase", "done", "--body", "built", "--session", WORKER)
    assert team.states(task) == [("done", WORKER)] * 2
    ending = team.north.ok("control", "request", "shutdown", WORKER, "--session", LEAD)["request"]["id"]
    team.equal()
    team.south.ok("control", "answer", ending, "approve", "--session", WORKER)
    assert team.states(ending) == [("approved", WORKER)] * 2
    for home in team.homes:
        assert home.ok("roster", "show", WORKER)["agent"]["state"] == "dead"


def test_a_replayed_approval_approves_nothing_else(team: Team) -> None:
    """Somebody with the machine's credential publishes the lead's signed approval again, for another request."""
    team.north.trust(team.south, "all")
    team.south.trust(team.north, "all")
    child = team.south.permission()
    first = team.north.pending()
    team.north.ok("control", "approve", first, "--session", LEAD)
    assert team.south.told(child)["decision"]["behavior"] == "allow"
    child = team.south.permission()
    second = team.north.pending()
    order = open_nats(team.north.url, team.space, "north", team.north.credential)
    signed = next(r.line for r in everything(order) if b"approved" in r.line and r.machine == "north")
    for line, name in ((signed, "again"), (signed.replace(first.encode(), second.encode()), "changed")):
        order.append_lines(MESSAGES, [line], ids=[name])
    order.close()
    team.equal()
    assert team.south.ok("engine", "status")["refused"] == {"north": 2}
    team.south.ok("control", "deny", second, "--session", "user")
    assert team.south.told(child)["decision"]["behavior"] == "deny"


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
