"""A shared mailbox in trouble, in numbers: what a command costs while servers are dark, or another command is stopped.

Belongs here: that table of docs/internals/shared-mailbox.md, by real servers and commands of both engines. A dark
server is a stopped one: it takes connections, and says nothing, as behind a cable that was pulled out.
"""

from __future__ import annotations

import json
import os
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
from tests.helpers import PATIENCE, Program, end_all_when_terminated, until

from .cluster_servers import Servers, joined
from .cut_links import stopped
from .figures import run_at_once, run_timed, write_table
from .pair import Pair
from .postgres_server import PostgresServer, credential, made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .figures import Outcome

BEGIN, END = "<!-- python -m tests.engine.trouble writes this -->\n", "<!-- to here, too -->\n"
SEND = "send", "--from", "ann", "--to", "ben", "--body"
HOOK = {"session_id": "ann", "hook_event_name": "PostToolUse"}


BEFORE = {
    "one server of three is dark: 6 in turn": "5.2 s each",
    "one server of three is dark: 6 at once": "10.8 s: 4 of 6 code 4",
    "all are dark: the first 6, at once": "15.2 s: 5 of 6 code 4",
    "all are dark: hooks with role mail, 6 in turn": "3.1 s each",
    "the leader without its peers, sends for 8 s": "104 of 116 code 4",
    "the steward beside a team that works": "17 s: code 4",
}
"""What was measured with NATS before the lock was given back whenever the engine is asked. There was no replicator."""


class Table:
    """The rows, each with the cells of both engines: with a replicator in the north, and without one."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, tuple[str, str]]] = {}

    def add(self, what: str, engine: str, cells: tuple[str, str]) -> None:
        self.rows.setdefault(what, {})[engine] = cells
        print(f"{engine}: {what}: {' | '.join(cells)}", flush=True)

    def lines(self) -> list[str]:
        found = ["| | before | NATS, a replicator runs | none runs | PostgreSQL, one runs | none runs |"]
        found.append("| --- " * 6 + "|")
        for what, cells in self.rows.items():
            words = [*cells.get("NATS", ("–", "–")), *cells.get("PostgreSQL", ("–", "–"))]
            found.append(f"| {what} | {BEFORE.get(what, '–')} | {' | '.join(words)} |")
        return found


class Team:
    """Two machines; ann and kim are of the north, ben is of the south. ``pids``: the processes of all servers."""

    def __init__(
        self, engine: str, table: Table, pair: Pair, pids: Callable[[], list[int]], is_ready: Callable[[], bool]
    ) -> None:
        self.engine = engine
        self.table = table
        self.pair = pair
        self.pids = pids
        self.is_ready = is_ready
        self.program = pair.program
        self.replicator = 0
        self.program.forks = False  # whole commands are timed
        os.environ.update(self.program.env)
        for machine, who in (("north", "ann"), ("north", "kim"), ("south", "ben")):
            self.pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")

    def run(self, *words: object, stdin: str | None = None) -> Outcome:
        """A command of the north: its seconds, and how it ended."""
        return run_timed(self.program, self.program.scratch / "north", *words, stdin=stdin)

    def at_once(self, count: int, *words: object) -> list[Outcome]:
        return run_at_once(count, lambda: self.run(*words))

    def hook(self, who: str = "ann") -> Outcome:
        """The hook behind a tool's call, with role mail that waits."""
        return self.run("hook", "PostToolUse", stdin=json.dumps({**HOOK, "session_id": who}))

    @contextmanager
    def dark(self, pids: list[int] | None = None) -> Iterator[None]:
        """These servers, or all, are dark."""
        with stopped(*(self.pids() if pids is None else pids)):
            yield
        until(self.is_ready)

    def add(self, what: str, measure: Callable[[], str]) -> None:
        """Measure with a replicator in the north, and without one."""
        cells = []
        for serves in (True, False):
            with ExitStack() as stack:
                self.replicator = stack.enter_context(self.pair.serving("north")).pid if serves else 0
                cells.append(measure())
            place = self.program.scratch / "north"
            until(lambda place=place: self.program.run("engine", "join", "--dir", place).rc == 0)  # type: ignore[misc]
            for word in self.program.user_state.glob("**/engine/away"):
                word.unlink()
        self.table.add(what, self.engine, (cells[0], cells[1]))


def told(found: list[Outcome]) -> str:
    """Outcomes in a cell: how many of each, the median and the longest."""
    seconds = [took for took, _ in found]
    counts = ", ".join(f"{count} {what}" for what, count in sorted(Counter(what for _, what in found).items()))
    return f"{median(seconds):.2f} s, at most {max(seconds):.2f} s: {counts}"


def main(arguments: list[str]) -> int:
    """Measure all, and write the table."""
    given = arguments_given(arguments, "A shared mailbox in trouble, in numbers.", finished=3000, rate=5)
    table = Table()
    for measure in (_measure_nats, _measure_postgres):
        with tempfile.TemporaryDirectory() as scratch:
            measure(table, Path(scratch), given.finished, given.rate)
    lines = table.lines()
    print("\n".join(lines))
    if not given.print:
        write_table(lines, BEGIN, END)
    return 0


def _measure_nats(table: Table, place: Path, finished: int, rate: int) -> None:
    program = Program(place / "space")
    servers = Servers(program, 3)
    with servers.running():
        pair = joined(servers, program)
        team = Team("NATS", table, pair, lambda: [one.pid for one in servers.nodes.values()], servers.is_ready)
        _calm(team)
        follower = [servers.nodes[next(name for name in servers.nodes if name != _leader(servers))].pid]
        for what, measure in (("6 in turn", in_turn), ("6 at once", at_once)):
            team.add(f"one server of three is dark: {what}", lambda m=measure: _dark(team, m, follower))  # type: ignore[misc]
        _away(team)
        team.add("the leader without its peers, sends for 8 s", lambda: _without_peers(team, servers))
        _stopped(team)
        _steward(team, finished, rate)


def _measure_postgres(table: Table, place: Path, finished: int, rate: int) -> None:
    with made() as server, server.running():
        program = Program(place / "space")
        word = credential(place / "owner")
        pair = Pair(program, server.url, word)
        for machine in ("north", "south"):
            pair.join(machine)
        team = Team("PostgreSQL", table, pair, server.pids, server.answers)
        _calm(team)
        _away(team)
        for what, measure in (("the first 6, at once", at_once), ("6 in turn behind them", behind)):
            team.add(f"a transaction is left open: {what}", lambda m=measure: _held(team, server, m))  # type: ignore[misc]
        _stopped(team)
        _steward(team, finished, rate)


def _calm(team: Team) -> None:
    team.add("nothing is wrong: 6 sends in turn", lambda: told(in_turn(team)))
    team.add("nothing is wrong: 6 sends at once", lambda: told(at_once(team)))


def _away(team: Team) -> None:
    team.add("all are dark: the first 6, at once", lambda: _dark(team, at_once))
    team.add("all are dark: 6 in turn behind them", lambda: _dark(team, behind))
    team.add("all are dark: hooks with role mail, 6 in turn", lambda: _dark(team, hooks))


def _stopped(team: Team) -> None:
    team.add("the replicator is stopped as it answers: that send, 6 in turn", lambda: _deaf(team))
    team.add("a send is stopped as it asks: 6 sends in turn", lambda: _stopped_send(team, in_turn))
    team.add("a send is stopped as it asks: hooks with role mail, 6 in turn", lambda: _stopped_send(team, hooks))
    team.add("a send is stopped as it asks: mail from elsewhere is here", lambda: _stopped_send(team, arriving))


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


def _leader(servers: Servers) -> str:
    order = servers.order("north")
    try:
        return str(order.stream_info()["cluster"]["leader"])
    finally:
        order.close()


def _dark(team: Team, measure: Callable[[Team], list[Outcome]], pids: list[int] | None = None) -> str:
    team.pair.send("south", "--from", "ben", "--to", "role:dev", "--body", "for a role")
    team.pair.ok("north", "engine", "join")
    with team.dark(pids):
        return told(measure(team))


def _held(team: Team, server: PostgresServer, measure: Callable[[Team], list[Outcome]]) -> str:
    """Another program leaves a transaction open, in which it changed the row that every append locks."""
    with server.asking(f'SELECT last FROM "mbx_{team.pair.space}".space FOR UPDATE'):
        return told(measure(team))


def _without_peers(team: Team, servers: Servers) -> str:
    leader, found = _leader(servers), list[tuple[float, str]]()
    with team.dark([one.pid for name, one in servers.nodes.items() if name != leader]):
        end = time.monotonic() + 8
        while time.monotonic() < end:
            found += team.at_once(4, *SEND, "x")
    return told(found)


def _deaf(team: Team) -> str:
    """Stop the replicator while a send waits for its answer; the engine then goes on."""
    if not team.replicator:
        return "–"
    found: list[Outcome] = []
    first = threading.Thread(target=lambda: found.append(team.run(*SEND, "x")))
    with ExitStack() as stack:
        with stopped(*team.pids()):
            first.start()
            time.sleep(0.15)
            stack.enter_context(stopped(team.replicator))
            first.join()
        until(team.is_ready)
        return told(found + in_turn(team))


def _stopped_send(team: Team, measure: Callable[[Team], list[Outcome]]) -> str:
    """Stop a send while the engine does not answer; the engine then goes on."""
    team.pair.send("south", "--from", "ben", "--to", "role:dev", "--body", "for a role")
    team.pair.ok("north", "engine", "join")
    with ExitStack() as stack:
        with stopped(*team.pids()):
            stuck = team.program.start(*SEND, "stuck", "--dir", team.program.scratch / "north")
            lock = str(next(path for path in team.program.user_state.glob("**/engine/lock") if _is_north(path)))
            until(lambda: _has_open(stuck.pid, lock))
            time.sleep(0.2)
            stack.enter_context(stopped(stuck.pid))
        until(team.is_ready)
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
    try:
        found = team.program.run("steward", "run", "--json", "--dir", team.program.scratch / "north")
    finally:
        over.set()
    took = time.perf_counter() - began
    sender.join()
    said = f"{found.json['archived']} archived" if found.rc == 0 else f"code {found.rc}: {found.stderr.strip()[:80]}"
    beside = f"of {finished:,}, {sent[0] / took:.1f} records a second beside it"
    team.table.add("the steward beside a team that works", team.engine, ("–", f"{took:.1f} s: {said} {beside}"))


if __name__ == "__main__":
    end_all_when_terminated()
    sys.exit(main(sys.argv[1:]))
