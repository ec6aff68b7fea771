"""A shared mailbox in trouble, in numbers: what a command costs while servers are dark, or another command is stopped.

Belongs here: that table of docs/internals/shared-mailbox.md, by real servers and commands. A dark server is a stopped
one: it takes connections, and says nothing, as behind a cable that was pulled out.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from agent_mailbox import Draft, Mailbox
from scripts.benchmarks.arguments import given as arguments_given
from tests.helpers import PATIENCE, Program, until

from .figures import write_table
from .test_cluster import SPACE, Servers, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .test_commands import Pair

    Outcome = tuple[float, str]

BEGIN, END = "<!-- scripts/bench-engine --trouble writes this -->\n", "<!-- to here, too -->\n"
SEND = "send", "--from", "ann", "--to", "ben", "--body"
HOOK = {"session_id": "ann", "hook_event_name": "PostToolUse"}


class Team:
    """Two machines on three servers; ann and kim are of the north, ben is of the south."""

    def __init__(self, servers: Servers, program: Program) -> None:
        self.servers = servers
        self.program = program
        self.pair: Pair = joined(servers, program)
        program.forks = False  # whole commands are timed
        for machine, who in (("north", "ann"), ("north", "kim"), ("south", "ben")):
            self.pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
        self.lines = ["| | replicator runs | none runs |", "| --- | --- | --- |"]

    def run(self, *words: object, stdin: str | None = None) -> Outcome:
        """A command of the north: its seconds, and how it ended."""
        began = time.perf_counter()
        found = self.program.run(
            *words, *(() if words[0] == "hook" else ("--json",)), "--dir", self.program.scratch / "north", stdin=stdin
        )
        took = time.perf_counter() - began
        if found.rc:
            return took, f"code {found.rc}"
        return took, "queued" if words[0] == "send" and found.json.get("queued") else "done"

    def at_once(self, count: int, *words: object) -> list[Outcome]:
        """So many at once."""
        found: list[Outcome] = []
        threads = [threading.Thread(target=lambda: found.append(self.run(*words))) for _ in range(count)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return found

    def hook(self, who: str = "ann") -> Outcome:
        """The hook behind a tool's call, with role mail that waits."""
        return self.run("hook", "PostToolUse", stdin=json.dumps({**HOOK, "session_id": who}))

    def leader(self) -> str:
        """The leader of the space."""
        order = self.servers.order("north")
        try:
            return str(order.stream_info()["cluster"]["leader"])
        finally:
            order.close()

    @contextmanager
    def stopped(self, names: Iterable[str]) -> Iterator[None]:
        """These servers are dark."""
        pids = [self.servers.nodes[name].pid for name in names]
        with signalled(*pids):
            yield
        until(self.servers.is_ready)

    def add(self, what: str, measure: Callable[[], str]) -> None:
        """Measure with a replicator in the north, and without one."""
        cells = []
        for serves in (True, False):
            with ExitStack() as stack:
                if serves:
                    stack.enter_context(self.pair.serving("north"))
                cells.append(measure())
            place = self.program.scratch / "north"
            until(lambda place=place: self.program.run("engine", "join", "--dir", place).rc == 0)  # type: ignore[misc]
            for word in self.program.user_state.glob("**/engine/away"):
                word.unlink()
        self.lines.append(f"| {what} | {cells[0]} | {cells[1]} |")
        print(self.lines[-1], flush=True)


@contextmanager
def signalled(*pids: int) -> Iterator[None]:
    """These processes are stopped."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def told(found: list[Outcome]) -> str:
    """Outcomes in a cell: how many of each, the median and the longest."""
    seconds = [took for took, _ in found]
    counts = ", ".join(f"{count} {what}" for what, count in sorted(Counter(what for _, what in found).items()))
    return f"{median(seconds):.2f} s, at most {max(seconds):.2f} s: {counts}"


def main(arguments: list[str]) -> int:
    """Measure all, and write the table."""
    given = arguments_given(arguments, "A shared mailbox in trouble, in numbers.", finished=3000, rate=5)
    with tempfile.TemporaryDirectory() as scratch:
        program = Program(Path(scratch) / "space")
        servers = Servers(program, 3)
        with servers.running():
            team = Team(servers, program)
            os.environ.update(program.env)
            nodes = [f"{SPACE}-{n}" for n in (1, 2, 3)]
            team.add("nothing is wrong: 6 sends in turn", lambda: told([team.run(*SEND, "x") for _ in range(6)]))
            team.add("… 6 at once", lambda: told(team.at_once(6, *SEND, "x")))
            team.add("one server of three is dark: 6 in turn", lambda: _one_dark(team, in_turn))
            team.add("… 6 at once", lambda: _one_dark(team, at_once))
            team.add("all are dark: the first 6, at once", lambda: _all_dark(team, nodes, at_once))
            team.add("… 6 in turn behind them", lambda: _all_dark(team, nodes, behind))
            team.add("… hooks with role mail, 6 in turn", lambda: _all_dark(team, nodes, hooks))
            team.add("the leader without its peers, sends for 8 s", lambda: _without_peers(team, nodes))
            team.add("a send is stopped as it asks: 6 sends in turn", lambda: _stopped_send(team, in_turn))
            team.add("… hooks with role mail, 6 in turn", lambda: _stopped_send(team, hooks))
            team.add("… mail from the other machine is here", lambda: _stopped_send(team, arriving))
            _steward(team, given.finished, given.rate)
    if not given.print:
        write_table(team.lines, BEGIN, END)
    return 0


def in_turn(team: Team) -> list[Outcome]:
    """Six sends, one behind the other."""
    return [team.run(*SEND, "x") for _ in range(6)]


def at_once(team: Team) -> list[Outcome]:
    """Six sends at once."""
    return team.at_once(6, *SEND, "x")


def behind(team: Team) -> list[Outcome]:
    """Six sends, once one of them was told that the engine is away."""
    team.run(*SEND, "x")
    return in_turn(team)


def hooks(team: Team) -> list[Outcome]:
    """Six hooks with role mail, once one was told."""
    team.hook()
    return [team.hook() for _ in range(6)]


def arriving(team: Team) -> list[Outcome]:
    """Mail of the other machine, until this one has it."""
    log = team.program.scratch / "north/agent-mailbox.jsonl"
    size, began = log.stat().st_size, time.perf_counter()
    team.pair.send("south", "--from", "ben", "--to", "ann", "--body", "to you")
    while log.stat().st_size == size and time.perf_counter() - began < 5:
        time.sleep(0.01)
    return [(time.perf_counter() - began, "here" if log.stat().st_size > size else "not here")]


def _one_dark(team: Team, measure: Callable[[Team], list[Outcome]]) -> str:
    follower = next(name for name in team.servers.nodes if name != team.leader())
    with team.stopped([follower]):
        return told(measure(team))


def _all_dark(team: Team, nodes: list[str], measure: Callable[[Team], list[Outcome]]) -> str:
    team.pair.send("south", "--from", "ben", "--to", "role:dev", "--body", "for a role")
    team.pair.ok("north", "engine", "join")
    with team.stopped(nodes):
        return told(measure(team))


def _without_peers(team: Team, nodes: list[str]) -> str:
    leader, found = team.leader(), list[tuple[float, str]]()
    with team.stopped(name for name in nodes if name != leader):
        end = time.monotonic() + 8
        while time.monotonic() < end:
            found += team.at_once(4, *SEND, "x")
    return told(found)


def _stopped_send(team: Team, measure: Callable[[Team], list[Outcome]]) -> str:
    """Stop a send while the engine does not answer; the engine then goes on."""
    team.pair.send("south", "--from", "ben", "--to", "role:dev", "--body", "for a role")
    team.pair.ok("north", "engine", "join")
    pids = [node.pid for node in team.servers.nodes.values()]
    with ExitStack() as stack:
        with signalled(*pids):
            stuck = team.program.start(*SEND, "stuck", "--dir", team.program.scratch / "north")
            lock = str(next(path for path in team.program.user_state.glob("**/engine/lock") if _is_north(path)))
            until(lambda: _has_open(stuck.pid, lock))
            time.sleep(0.2)
            stack.enter_context(signalled(stuck.pid))
        until(team.servers.is_ready)
        for word in team.program.user_state.glob("**/engine/away"):
            word.unlink()
        time.sleep(1)  # a replicator that was told so hears that the engine is back
        found = told(measure(team))
    stuck.communicate(timeout=PATIENCE)
    return found


def _is_north(path: Path) -> bool:
    return '"north"' in (path.parent / "space").read_text()


def _has_open(pid: int, path: str) -> bool:
    try:
        return path in {os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return False


def _steward(team: Team, finished: int, rate: int) -> None:
    """The steward archives so many finished messages while the other machine sends some each second."""
    north, south = (Mailbox(str(team.program.scratch / name)) for name in ("north", "south"))
    for start in range(0, finished, 250):
        numbers = range(start, min(start + 250, finished))
        north.send_all([Draft(sender="ann", to=("ben",), content=f"number {n}") for n in numbers])
    team.pair.ok("south", "engine", "join")
    team.pair.ok("south", "check", "--session", "ben", "--limit", "0")
    team.pair.ok("south", "engine", "join")
    over, sent = threading.Event(), [0]

    def work() -> None:
        while not over.wait(1 / rate):
            south.send(Draft(sender="ben", to=("ann",), content="beside"))
            sent[0] += 1

    sender = threading.Thread(target=work)
    sender.start()
    began = time.perf_counter()
    found = team.program.run("steward", "run", "--json", "--dir", team.program.scratch / "north")
    took = time.perf_counter() - began
    over.set()
    sender.join()
    said = f"{found.json['archived']} archived" if found.rc == 0 else f"code {found.rc}: {found.stderr.strip()[:80]}"
    what = f"the steward, {finished:,} finished, {sent[0] / took:.1f} records a second beside it"
    team.lines.append(f"| {what} | – | {took:.1f} s: {said} |")
    print(team.lines[-1], flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
