"""A shared mailbox in numbers: how long a send takes, when others see it, the replicator's cost, how fast one joins.

Belongs here: measuring it with real servers, replicators and commands, and the table of
docs/internals/shared-mailbox.md.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from agent_mailbox import Draft, Mailbox
from agent_mailbox.space import joining_space
from agent_mailbox.space.space import Space
from agent_mailbox.store.user_state import creation
from scripts.benchmarks import launch, world
from scripts.benchmarks.arguments import given as arguments_given
from tests.helpers import ROOT, Program, end_all_when_terminated, until

from .cluster_servers import SPACE, Servers, joined
from .nats_server import processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.helpers import Program

    Outcome = tuple[float, str]


ROUNDS, COMMANDS, RECORDS, IDLE = 500, 50, 100_000, 30
DOCUMENT = ROOT / "docs/internals/shared-mailbox.md"
BEGIN, END = "<!-- scripts/bench-engine writes this -->\n", "<!-- to here -->\n"
LOG = "agent-mailbox.jsonl"


class Figures:
    """The rows of the table, as they are found."""

    def __init__(self) -> None:
        self.lines = ["| | median | 99 of 100 | goal |", "| --- | --- | --- | --- |"]

    def times(self, what: str, seconds: Sequence[float], goal: str = "") -> None:
        """Add a row of times."""
        worst = quantiles(seconds, n=100)[98] if len(seconds) > 1 else seconds[0]
        self.add(what, f"{median(seconds) * 1000:.1f} ms", f"{worst * 1000:.1f} ms", goal)

    def add(self, *cells: str) -> None:
        self.lines.append(f"| {' | '.join(cells)} |")
        print(self.lines[-1], flush=True)


def main(arguments: list[str]) -> int:
    """Measure all, and write the table."""
    given = arguments_given(arguments, "A mailbox of two machines in numbers.", records=RECORDS)
    found = Figures()
    with tempfile.TemporaryDirectory() as scratch:
        program = Program(Path(scratch) / "space")
        servers = Servers(program, 3)
        with servers.running():
            pair = joined(servers, program)
            os.environ.update(program.env)
            for machine, who in (("north", "ann"), ("south", "ben")):
                pair.ok(machine, "roster", "register", "--session-id", who)
            with pair.serving("north") as near, pair.serving("south"):
                _sending(found, program)
                _looking(found, program)
                _standing(found, near.pid)
        servers = Servers(Program(Path(scratch) / "other"), 3)
        with servers.running():
            _joining(found, Path(scratch), servers, given.records)
    if not given.print:
        write_table(found.lines, BEGIN, END)
    return 0


def write_table(lines: Sequence[str], begin: str, end: str) -> None:
    """Write a table, and where it was measured, between its marks in the document."""
    where = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    text = "\n".join([*lines, "", f"CPython {platform.python_version()}, nats-server {_version()}, {where}.", ""])
    before, _, rest = DOCUMENT.read_text().partition(begin)
    DOCUMENT.write_text(before + begin + text + end + rest.partition(end)[2])


def _sending(found: Figures, program: Program) -> None:
    """Ann sends to Ben; his machine's file has it a moment later."""
    north, file = Mailbox(str(program.scratch / "north")), program.scratch / "south" / LOG
    sends, arrivals = list[float](), list[float]()
    for n in range(ROUNDS):
        size, began = file.stat().st_size, time.perf_counter()
        north.send(Draft(sender="ann", to=("ben",), content=f"number {n}"))
        sent = time.perf_counter()
        while file.stat().st_size == size:
            time.sleep(0.0002)
        sends.append(sent - began)
        arrivals.append(time.perf_counter() - sent)
    found.times("a send is acknowledged, in an open mailbox", sends, "5 ms")
    found.times("from there until another machine's hooks see it", arrivals, "50 ms, 200 ms")
    words = ("send", "--from", "ann", "--to", "ben", "--body", "x", "--dir", program.scratch / "north")
    found.times("`send` as a command", [_timed(program, *words) for _ in range(COMMANDS)])


def _looking(found: Figures, program: Program) -> None:
    """``check`` with nothing new on a shared mailbox and on one machine's, in turns."""
    program.run("init", program.scratch / "alone")
    program.run("roster", "register", "--session-id", "ben", "--dir", program.scratch / "alone")
    looks: dict[str, list[float]] = {"south": [], "alone": []}
    for place in looks:
        program.run("check", "--session", "ben", "--limit", "0", "--dir", program.scratch / place)
    for _ in range(COMMANDS):
        for place, seconds in looks.items():
            seconds.append(_timed(program, "check", "--session", "ben", "--dir", program.scratch / place))
    found.times("`check` with nothing new, shared", looks["south"], "as alone")
    found.times("`check` with nothing new, alone", looks["alone"])


def _standing(found: Figures, pid: int) -> None:
    """The replicator with nothing to do."""
    before = processor(pid)
    time.sleep(IDLE)
    busy = (processor(pid) - before) / IDLE * 100
    status = Path(f"/proc/{pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024
    found.add("the replicator, idle", f"{memory:.0f} MiB, {busy:.2f} % of a processor", "", "80 MiB, 1 %")


def _joining(found: Figures, scratch: Path, servers: Servers, size: int) -> None:
    """A mailbox of so many messages joins a fresh space, and a new machine joins that."""
    with _environment(launch.environment(scratch)):
        old = world.build(scratch, size, 100)
        fresh = creation.create(str(scratch / "fresh"), os.environ)
        times = {}
        spent: dict[str, tuple[float, float]] = {}
        until(lambda: servers.is_ready())
        for machine, directory in (("north", str(old.directory)), ("south", fresh)):
            files = str(servers.home / "machines" / machine), str(servers.home / "authority.pem")
            began, used, theirs = time.perf_counter(), time.process_time(), servers.processor()
            there = joining_space.join_space(
                Mailbox(directory).logs, Space(servers.written["url"], SPACE, machine, *files)
            )
            times[machine] = time.perf_counter() - began
            spent[machine] = time.process_time() - used, servers.processor() - theirs
    goal = "60 s" if size == 1_000_000 else ""
    about = f"{size:,} messages, {there.applied:,} records"
    for machine, what in (("north", f"a mailbox joins: {about}"), ("south", "a new machine joins that")):
        found.add(what, f"{times[machine]:.0f} s", "", goal if machine == "south" else "")
        found.add(
            "… of the processor: its own, the three servers'", "{:.0f} s, {:.0f} s".format(*spent[machine]), "", ""
        )


@contextmanager
def _environment(other: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(other)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _timed(program: Program, *words: object) -> float:
    began = time.perf_counter()
    assert program.run(*words).rc == 0
    return time.perf_counter() - began


def _version() -> str:
    program = shutil.which("nats-server", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    assert program is not None
    return (
        subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split("v")[-1].strip()
    )


if __name__ == "__main__":
    end_all_when_terminated()
    sys.exit(main(sys.argv[1:]))


def run_timed(program: Program, box: Path, *words: object, stdin: str | None = None) -> Outcome:
    """Run a command on a mailbox; its seconds, and how it ended."""
    began = time.perf_counter()
    found = program.run(*words, *(() if words[0] == "hook" else ("--json",)), "--dir", box, stdin=stdin)
    took = time.perf_counter() - began
    if found.rc:
        return took, f"code {found.rc}"
    return took, "queued" if words[0] == "send" and found.json.get("queued") else "done"


def run_at_once(count: int, act: Callable[[], Outcome]) -> list[Outcome]:
    """Do it so often at once."""
    found: list[Outcome] = []
    threads = [threading.Thread(target=lambda: found.append(act())) for _ in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return found
