"""A space in a storm: agents mail in all modes while servers, replicators and commands are killed or stopped, and links
are cut. In the end every promise is checked by what the commands said, and all copies are compared.

Belongs here: the run, and its verdict. ``python -m tests.engine.storm --engine postgres`` runs it for ten minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.space.order.order import CLAIMS, MESSAGES, ROSTER, is_reads
from agent_mailbox.store.log.unordered import unsealed
from tests.helpers import MESSAGES as MAIL
from tests.helpers import PATIENCE, READS, Program, end_all_when_terminated, until
from tests.helpers import ROSTER as AGENTS

from .conformance import everything
from .cut_links import CUT, OPEN, STALLED, Links, stopped
from .storm_engines import ENGINES

if TYPE_CHECKING:
    from .storm_engines import Engine

MACHINES = ("north", "south", "west")
ROLE, TAG = "role:dev", "project:x"
KILLED = 0.12
"""The part of the commands that is killed while it works."""
SETTLING = 180.0
"""Seconds in which all copies must be equal once everything stands again; never a synchronisation."""


class Journal:
    """What the commands said, of all machines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.tried: dict[str, tuple[str, str]] = {}
        """Who sent each message, and to whom."""
        self.acknowledged: set[str] = set()
        self.shown: Counter[tuple[str, str]] = Counter()
        """(agent, message) of the checks that ended well."""
        self.perhaps: Counter[tuple[str, str]] = Counter()
        """The same of those that were killed, or failed, after they wrote it."""
        self.released: Counter[str] = Counter()
        self.events: Counter[str] = Counter()

    def note(self, **what: object) -> None:
        """Write down what a command did, for whoever looks for a broken promise's cause."""
        with self.lock, self.path.open("a") as file:
            file.write(json.dumps({"at": time.time(), **what}) + "\n")

    def count(self, what: str) -> None:
        """Count a thing that happened."""
        with self.lock:
            self.events[what] += 1


class Machine:
    """A home with a mailbox, its links to the servers, and its replicator."""

    def __init__(self, name: str, home: Path, engine: Engine) -> None:
        self.name = name
        self.program = Program(home)
        self.box = home / "mailbox"
        self.links = Links(engine.ports)
        self.replicator: subprocess.Popen[bytes] | None = None
        join = engine.join_words(name, self.links.ports)
        for words in (("init", self.box), ("engine", "join", *join, "--machine", name)):
            result = self.program.run(*words, *(("--dir", self.box) if words[0] == "engine" else ()))
            assert result.rc == 0, result

    def serve(self) -> None:
        with (self.program.scratch / "replicator").open("ab") as log:
            to = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.replicator = self.program.start("engine", "serve", "--dir", self.box, **to)

    def end_serving(self) -> None:
        if self.replicator is not None:
            self.replicator.kill()
            self.replicator.wait(PATIENCE)

    def status(self) -> dict[str, Any]:
        """What ``engine status`` says."""
        result = self.program.run("engine", "status", "--json", "--dir", self.box)
        return dict(result.json) if result.rc == 0 else {}

    def lines(self, name: str) -> list[bytes]:
        """The lines of a log without seals."""
        return [unsealed(line) for line in (self.box / name).read_bytes().splitlines()]


class Agent(threading.Thread):
    """A session that does one thing after another until it is told to end."""

    def __init__(self, name: str, machine: Machine, run: Run) -> None:
        super().__init__(daemon=True)
        self.id, self.machine, self.run_ = name, machine, run
        self.random = random.Random(f"{run.seed} {name}")
        self.known: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.run_.ended.wait(self.random.uniform(0.3, 1.7) * self.run_.pause):
                self.random.choice([self.send, self.send, self.send, self.check, self.check, self.settle])()
        except BaseException as error:
            self.failure = error

    def command(self, *words: object, stdin: str = "", whole: bool = False) -> tuple[int, Any]:
        """Run a command, and perhaps kill it; its exit code, and its answer if it wrote one."""
        began = time.time()
        child = self.machine.program.start(*words, "--json", "--dir", self.machine.box)
        timer = None
        if not whole and self.random.random() < KILLED:
            timer = threading.Timer(self.random.uniform(0.02, 0.4), child.kill)
            timer.start()
        with child:
            out, said = child.communicate(stdin.encode(), timeout=PATIENCE * 2)
        if timer is not None:
            timer.cancel()
        self.run_.journal.count(f"{words[0]} {'killed' if child.returncode < 0 else f'ended with {child.returncode}'}")
        if child.returncode not in (0, -9, 4):
            self.run_.journal.count(f"{words[0]}: {said.decode().splitlines()[:1]}")
        told = {"out": out.decode()[-300:], "err": said.decode()[-300:], "size": len(out)}
        self.run_.journal.note(who=self.id, words=[*map(str, words)], rc=child.returncode, began=began, **told)
        try:
            return child.returncode, json.loads(out)
        except ValueError:
            return child.returncode, None

    def send(self) -> None:
        """Send one message, or some as a batch, to one, to a role, a project, or all; or answer."""
        journal, others = self.run_.journal, [agent for agent in self.run_.names if agent != self.id]
        many = self.random.choice([1, 1, 1, 3])
        to = [self.random.choice([*self.random.sample(others, 2), ROLE, ROLE, TAG, "all"]) for _ in range(many)]
        mail = [(str(uuid.UUID(int=self.random.getrandbits(128), version=4)), one) for one in to]
        with journal.lock:
            journal.tried |= {message: (self.id, one) for message, one in mail}
        if many > 1:
            text = "".join(json.dumps({"id": m, "to": one, "content": f"{m}"}) + "\n" for m, one in mail)
            rc, _ = self.command("send", "--from", self.id, "--jsonl", "-", stdin=text)
        else:
            ((message, one),) = mail
            more = ["--ack"] * self.random.choice([0, 1]) + ["--priority", self.random.choice(["normal", "high"])]
            more += ["--now"] * (self.random.random() < 0.1)
            rc, _ = self.command("send", "--from", self.id, "--to", one, "--id", message, "--body", message, *more)
        if rc == 0:
            with journal.lock:
                journal.acknowledged |= {message for message, _ in mail}

    def check(self, *, whole: bool = False) -> int:
        """Look at the mail; return how many were shown."""
        rc, answer = self.command("check", "--session", self.id, "--limit", "0", whole=whole)
        found = [m["id"] for m in answer["messages"]] if answer and "messages" in answer else []
        self.run_.journal.note(who=self.id, shown=found, rc=rc)
        with self.run_.journal.lock:
            (self.run_.journal.shown if rc == 0 else self.run_.journal.perhaps).update((self.id, m) for m in found)
        self.known += found
        return len(found) if rc == 0 else 1

    def settle(self) -> None:
        """Acknowledge, give back, or answer something that was shown."""
        if not self.known:
            return
        message = self.random.choice(self.known[-5:])
        what = self.random.choice(["ack", "release", "reply"])
        if what == "reply":
            answer = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
            to = self.run_.journal.tried[message][0]
            with self.run_.journal.lock:
                self.run_.journal.tried[answer] = (self.id, to)
            words = ("--to", to, "--thread", message, "--id", answer, "--body", answer)
            if self.command("send", "--from", self.id, *words)[0] == 0:
                with self.run_.journal.lock:
                    self.run_.journal.acknowledged.add(answer)
            return
        if what == "release":
            with self.run_.journal.lock:
                self.run_.journal.released[message] += 1
        self.command(what, message, "--session", self.id)


class Run:
    """One run: a cluster, machines, agents, and what befalls them."""

    def __init__(
        self, scratch: Path, engine: str, seconds: float, seed: int, agents: int = 4, pause: float = 2.0
    ) -> None:
        self.seconds, self.seed, self.pause = seconds, seed, pause
        self.journal = Journal(scratch / "journal")
        self.ended = threading.Event()
        self.engine = ENGINES[engine](scratch)
        self.troubles: list[threading.Thread] = []
        self.machines: list[Machine] = []
        self.agents: list[Agent] = []
        self.names = [f"{machine}-{n}" for machine in MACHINES for n in range(agents)]
        self.scratch = scratch

    def play(self) -> list[str]:
        """Do it all; return what was broken."""
        with ExitStack() as stack:
            stack.callback(self._end)
            self.engine.start_all()
            for name in MACHINES:
                self.machines.append(Machine(name, self.scratch / name, self.engine))
            self.agents = [
                Agent(name, machine, self) for machine in self.machines for name in self.names if machine.name in name
            ]
            for agent in self.agents:
                words = ("roster", "register", "--session-id", agent.id, "--role", "dev", "--add-tags", TAG)
                result = agent.machine.program.run(*words, "--dir", agent.machine.box)
                assert result.rc == 0, result
            for machine in self.machines:
                machine.serve()
            until(self._is_settled, SETTLING)  # a name that a machine has not heard of yet would count as a role
            for agent in self.agents:
                agent.start()
            self.troubles = [threading.Thread(target=self._trouble, args=(n,)) for n in (0, 1)]
            for trouble in self.troubles:
                trouble.start()
            for trouble in self.troubles:
                trouble.join()
            self.ended.set()
            for agent in self.agents:
                agent.join(PATIENCE * 3)
            self._mend()
            until(self._is_settled, SETTLING)
            for _ in range(2):  # what the last check left, such as role mail that was given back
                for agent in self.agents:
                    while agent.check(whole=True):
                        pass
                until(self._is_settled, SETTLING)
            return [*self._failures(), *self._broken_promises(), *self._differences()]

    # -- what befalls them --------------------------------------------------------------------------------------------

    def _trouble(self, which: int) -> None:
        """One trouble after another: to the servers, or to the machines at the same time."""
        end, chance = time.monotonic() + self.seconds, random.Random(f"{self.seed} trouble {which}")
        kinds = [self._kill_server, self._kill_server, self._stop_server]
        if which:
            kinds = [self._cut, self._cut, self._kill_replicator, self._stop_replicator]
        while not self.ended.is_set() and (left := end - time.monotonic()) > 0:
            kind = chance.choice(kinds)
            self.journal.count(kind.__name__.strip("_").replace("_", " "))
            kind(chance, min(left, chance.uniform(1, 8)))
            self.ended.wait(min(max(0, end - time.monotonic()), chance.uniform(0.5, 5)))

    def _kill_server(self, chance: random.Random, seconds: float) -> None:
        self.engine.kill_for(chance, seconds)

    def _stop_server(self, chance: random.Random, seconds: float) -> None:
        with stopped(*self.engine.pids(chance)):
            self.ended.wait(seconds)

    def _stop_replicator(self, chance: random.Random, seconds: float) -> None:
        machine = chance.choice(self.machines)
        if machine.replicator is not None and machine.replicator.poll() is None:
            with stopped(machine.replicator.pid):
                self.ended.wait(seconds)

    def _kill_replicator(self, chance: random.Random, seconds: float) -> None:
        machine = chance.choice(self.machines)
        machine.end_serving()
        self.ended.wait(seconds / 4)
        machine.serve()

    def _cut(self, chance: random.Random, seconds: float) -> None:
        machine = chance.choice(self.machines)
        machine.links.become(chance.choice([CUT, CUT, STALLED]))
        self.ended.wait(seconds)
        machine.links.become(OPEN)

    def _mend(self) -> None:
        for machine in self.machines:
            machine.links.become(OPEN)
            if machine.replicator is not None and machine.replicator.poll() is not None:
                machine.serve()

    def _end(self) -> None:
        self.ended.set()
        for thread in (*self.troubles, *self.agents):  # each starts what it ended
            if thread.is_alive():
                thread.join(PATIENCE * 3)
        for machine in self.machines:
            machine.end_serving()
            machine.links.close()
        self.engine.end()

    # -- the verdict --------------------------------------------------------------------------------------------------

    def _is_settled(self) -> bool:
        told = [machine.status() for machine in self.machines]
        if not all(told) or any(one["waiting"] or one["queued"] or one["trouble"] for one in told):
            return False
        return len({one["records"] for one in told} | {one["applied"] for one in told}) == 1

    def _failures(self) -> list[str]:
        return [f"agent {agent.id} failed: {agent.failure!r}" for agent in self.agents if agent.failure is not None]

    def _broken_promises(self) -> list[str]:
        """By what the commands said: acknowledged mail that is missing, mail that came twice or never."""
        journal, broken = self.journal, list[str]()
        there = [json.loads(line)["id"] for line in self.machines[0].lines(MAIL)]
        broken += [f"doubled: {message}" for message, times in Counter(there).items() if times > 1]
        broken += [f"acknowledged and lost: {message}" for message in sorted(journal.acknowledged - {*there})]
        for message in there:
            sender, to = journal.tried[message]
            readers = self.names if to in (ROLE, TAG, "all") else [to]
            seen = {who: journal.shown[who, message] for who in readers}
            maybe = {who: journal.perhaps[who, message] for who in readers}
            again = journal.released[message]
            if to == ROLE:
                times = sum(seen.values())
                broken += [f"role mail shown to several: {message} {seen}"] if times > 1 + again else []
                broken += [f"role mail shown to nobody: {message}"] if not times + sum(maybe.values()) else []
                continue
            for who in readers:
                if who == sender and to != sender:
                    broken += [f"one's own mail: {message} to {who}"] if seen[who] else []
                    continue
                broken += [f"shown twice: {message} to {who}"] if seen[who] > 1 + again else []
                broken += [f"never shown: {message} to {who}"] if not seen[who] + maybe[who] else []
        return broken

    def _differences(self) -> list[str]:
        """All logs against the order, and the claims by themselves."""
        order = self.engine.order(MACHINES[0])
        records = everything(order, 1000)
        order.close()
        broken = []
        wanted = {log: [unsealed(r.line) for r in records if r.log == log] for log in (MESSAGES, ROSTER, CLAIMS)}
        reads = Counter(unsealed(r.line) for r in records if r.log == CLAIMS or is_reads(r.log))
        for machine in self.machines:
            local = machine.lines(READS)
            claims = [
                [one for one in lines if json.loads(one)["event"] == "claim"] for lines in (local, wanted[CLAIMS])
            ]
            for name, found, log in ((MAIL, machine.lines(MAIL), MESSAGES), (AGENTS, machine.lines(AGENTS), ROSTER)):
                broken += [f"{machine.name}: {name} is in another order"] if found != wanted[log] else []
            broken += [f"{machine.name}: claims are in another order"] if claims[0] != claims[1] else []
            broken += [f"{machine.name}: reads differ"] if Counter(local) != reads else []
        holders: dict[str, str] = {}
        for line in wanted[CLAIMS]:
            event = json.loads(line)
            message, who = event["message_id"], event["reader_session_id"]
            if event["event"] == "release":
                holders.pop(message, None)
            elif holders.setdefault(message, who) != who:
                broken.append(f"claimed twice: {message} by {holders[message]} and {who}")
        return broken


def main(arguments: list[str]) -> int:
    """Run once; print what happened and what was broken; exit 1 if something was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=[*ENGINES], default="nats")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--agents", type=int, default=4, help="on each machine")
    chosen = parser.parse_args(arguments)
    scratch = Path(tempfile.mkdtemp(prefix="mailbox-storm-"))
    run = Run(scratch, chosen.engine, chosen.seconds, chosen.seed, chosen.agents)
    broken = run.play()
    for what, times in sorted(run.journal.events.items()):
        print(f"{times:6} {what}")
    shown = sum(run.journal.shown.values())
    print(f"{len(run.journal.acknowledged)} acknowledged, {shown} shown; seed {chosen.seed}")
    for one in broken[:50]:
        print(one)
    if broken:
        print(f"the run's files: {scratch}")
    else:
        shutil.rmtree(scratch)
    print(f"{len(broken)} broken promises")
    return int(bool(broken))


if __name__ == "__main__":
    end_all_when_terminated()
    sys.exit(main(sys.argv[1:]))
