"""Many agents on five machines, and a machine that is far from the servers, in numbers.

Belongs here: those rows of docs/internals/shared-mailbox.md, by three real servers, replicators and whole commands.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from scripts.benchmarks.arguments import given as arguments_given
from tests.helpers import Program, end_all_when_terminated, until

from .cluster_servers import SPACE, Servers
from .cut_links import Links
from .figures import run_at_once, run_timed, write_table

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from .figures import Outcome

BEGIN, END = "<!-- python -m tests.engine.crowd writes this -->\n", "<!-- to here, as well -->\n"
MACHINES = ("north", "south", "west", "east", "middle")
FAR = "far"
ROUND_TRIP = 0.15
"""Seconds from the far machine to the servers and back."""
SEED = 46
"""Draws who sends to whom, and when."""


class Place:
    """A machine with a home and a mailbox of its own."""

    def __init__(self, home: Path) -> None:
        self.program = Program(home)
        self.program.forks = False  # whole commands are timed
        self.box = home / "mailbox"
        assert self.program.run("init", self.box).rc == 0

    def run(self, *words: object) -> Outcome:
        """A command: its seconds, and how it ended."""
        return run_timed(self.program, self.box, *words)

    def enter(self, *agents: str) -> None:
        """Register agents, each as a developer."""
        for one in agents:
            assert self.run("roster", "register", "--session-id", one, "--role", "dev")[1] == "done", one

    def join(self, servers: Servers, ports: Sequence[int]) -> None:
        """Join the space of the servers, by way of these ports."""
        name, home = self.program.scratch.name, servers.home
        url = ",".join(f"tls://127.0.0.1:{port}" for port in ports)
        files = "--credential", home / "machines" / name, "--authority", home / "authority.pem"
        found = self.run("engine", "join", url, "--space", SPACE, "--machine", name, *files)
        assert found[1] == "done", found

    @contextmanager
    def serving(self) -> Iterator[None]:
        """The machine's replicator runs."""
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        child = self.program.start("engine", "serve", "--dir", self.box, **quiet)
        try:
            yield
        finally:
            child.terminate()
            child.wait()


class Table:
    """The rows, as they are found."""

    def __init__(self) -> None:
        self.lines = ["| | median | 99 of 100 | longest | |", "| --- | --- | --- | --- | --- |"]

    def add(self, what: str, found: Sequence[Outcome]) -> float:
        """Add a row of commands; return the seconds that 99 of 100 did not exceed."""
        seconds = [took for took, _ in found]
        worst = quantiles(seconds, n=100)[98] if len(seconds) >= 100 else max(seconds)
        ended = ", ".join(f"{count} {how}" for how, count in sorted(Counter(how for _, how in found).items()))
        said = f"{worst:.2f} s" if len(seconds) >= 100 else ""
        self.lines.append(f"| {what} | {median(seconds):.2f} s | {said} | {max(seconds):.2f} s | {ended} |")
        print(self.lines[-1], flush=True)
        return worst


def main(arguments: list[str]) -> int:
    """Measure all, and write the table."""
    given = arguments_given(arguments, __doc__ or "", agents=50, pause=7, seconds=120)
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        agents = [f"agent-{n}" for n in range(given.agents)]
        alone = Place(scratch / "alone")
        alone.enter(*agents)
        words = f"{given.agents} agents, a command each in {given.pause} s: a send"
        least = table.add(f"{words}, on one machine alone", _work(dict.fromkeys(agents, alone), given))
        servers = Servers(Program(scratch / "operator"), 3, (*MACHINES, FAR))
        with servers.running(), ExitStack() as stack:
            until(servers.is_ready)
            ports = [int(one.rpartition(":")[2]) for one in servers.written["url"].split(",")]
            places = [Place(scratch / name) for name in MACHINES]
            for place in places:
                place.join(servers, ports)
                stack.enter_context(place.serving())
            _far(table, Place(scratch / FAR), places[0], servers, ports)
            homes = {one: places[n % len(places)] for n, one in enumerate(agents)}
            for one, place in homes.items():
                place.enter(one)
            worst = table.add(f"{words}, on five machines", _work(homes, given))
        table.lines += ["", f"Five machines take {worst / least:.1f} times as long for 99 of 100 sends."]
        print(table.lines[-1])
    if not given.print:
        write_table(table.lines, BEGIN, END)
    return 0


def _far(table: Table, far: Place, near: Place, servers: Servers, ports: Sequence[int]) -> None:
    """The figures of a machine at ``ROUND_TRIP``; its replicator runs."""
    words, links = f"{ROUND_TRIP * 1000:.0f} ms away", Links(ports, ROUND_TRIP / 2)
    send = "send", "--from", "ann", "--to", "ben", "--body", "x"
    try:
        far.join(servers, links.ports)
        with far.serving():
            far.enter("ann")
            near.enter("ben")
            until(lambda: b'"ben"' in (far.box / "agent-roster.jsonl").read_bytes())
            table.add(f"{words}: 6 sends in turn", [far.run(*send) for _ in range(6)])
            table.add(f"{words}: 12 sends at once", run_at_once(12, lambda: far.run(*send)))
            table.add(f"{words}: `check` with role mail, 6 in turn", [_look(far, near, n) for n in range(6)])
    finally:
        links.close()


def _look(far: Place, near: Place, number: int) -> Outcome:
    """A check on the far machine, once role mail of the near one is there."""
    text = f"work {number}"
    assert near.run("send", "--from", "ben", "--to", "role:dev", "--body", text)[1] == "done"
    until(lambda: text.encode() in (far.box / "agent-mailbox.jsonl").read_bytes())
    return far.run("check", "--session", "ann")


def _work(homes: dict[str, Place], given: Namespace) -> list[Outcome]:
    """Have each agent send or check, in its home, again and again; return what became of the sends."""
    found: list[Outcome] = []
    over = threading.Event()

    def act(me: str) -> None:
        chance = random.Random(f"{SEED} {me}")
        while not over.wait(chance.uniform(0.3, 1.7) * given.pause):
            if chance.random() < 0.25:
                homes[me].run("check", "--session", me)
                continue
            found.append(homes[me].run("send", "--from", me, "--to", chance.choice([*homes]), "--body", "x"))

    threads = [threading.Thread(target=act, args=(one,)) for one in homes]
    for one in threads:
        one.start()
    try:
        time.sleep(given.seconds)
    finally:
        over.set()
    for one in threads:
        one.join()
    return found


if __name__ == "__main__":
    end_all_when_terminated()
    sys.exit(main(sys.argv[1:]))
