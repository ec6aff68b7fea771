"""A gateway killed before each system call that one message costs it: kept before it is answered, kept once.

Which calls those are a run without faults tells; a fault is given by name, file and number of the call (strace). The
suite kills at the calls that matter most, ``scripts/swarm-calls`` at every one, of who receives and of who sends.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from agent_mailbox.swarm.protocol import tokens
from tests.helpers import PATIENCE, begin_again, until
from tests.swarm.machine import Authority, Machine, meet
from tests.swarm.wirework import Line, Person

FILES = (
    *("flock", "write", "pwrite64", "writev", "ftruncate", "fsync", "fdatasync", "openat", "close"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat"),
    *("chmod", "fchmod", "fchmodat", "utimensat"),
)
NETWORK = ("sendto", "recvfrom", "connect", "accept4")
Call = tuple[str, str, int]
"""Name, file (empty: any), and the how manieth of that name on that file it is."""


class Traced:
    """A machine whose gateway is traced: its calls, or its death at one of them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._trace = machine.scratch / "trace"
        self._kept = machine.scratch / "kept"
        for place in (machine.box, machine.swarm_home):
            shutil.copytree(place, self._kept / place.name, ignore=shutil.ignore_patterns("*.sock"))

    def fresh(self) -> None:
        """The machine as it was when this was made."""
        for place in (self.machine.box, self.machine.swarm_home):
            shutil.rmtree(place)
            shutil.copytree(self._kept / place.name, place)
        begin_again(self.machine.box, self.machine.env)

    def serve(self, *options: str) -> None:
        """Start the gateway under strace."""
        self.machine.serve(under=("strace", "-f", "-qq", "-y", "-s", "0", *options, "-o", str(self._trace)))

    def end(self) -> None:
        """End the gateway, and with it strace, which would leave it behind."""
        tracer = self.machine.gateway
        if tracer is not None and tracer.poll() is None:
            children = Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text().split()
            for pid in map(int, children):
                with suppress(ProcessLookupError):  # it died of its fault meanwhile, and is reaped only now
                    os.kill(pid, signal.SIGKILL)
            tracer.wait(PATIENCE)
        self.machine.kill()

    def counted(self) -> Counter[tuple[str, str]]:
        """The calls so far, by name and file."""
        found: Counter[tuple[str, str]] = Counter()
        ours = "|".join(re.escape(f"{place}/") for place in (self.machine.box, self.machine.swarm_home))
        for text in self._trace.read_text(errors="replace").splitlines():
            name = re.match(r"\d+ +(\w+)\(", text)
            place = re.search(rf'[<"]((?:{ours})[^>"]*)[>"]', text)
            if name and (place or name[1] in NETWORK):
                found[name[1], place[1] if place and name[1] not in NETWORK else ""] += 1
        return found

    def calls(self, work: Callable[[], None]) -> list[Call]:
        """The calls of some work."""
        self.fresh()
        self.serve("-e", "signal=none", "-e", f"trace={','.join((*FILES, *NETWORK))}")
        before = self.counted()
        work()
        after = self.counted()
        self.end()
        return [(*key, n) for key, last in sorted(after.items()) for n in range(before[key] + 1, last + 1)]

    @contextmanager
    def dying(self, call: Call) -> Iterator[None]:
        """The gateway runs, and dies when it is about to make the call."""
        name, path, number = call
        self.fresh()
        where = ("-P", path) if path else ()
        self.serve(*where, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}")
        try:
            yield
        finally:
            self.end()


def receiver(directory: Path, authority: Authority, wanted: Callable[[Call], bool]) -> Counter[str]:
    """Kill who receives a message at every call that is wanted. Asserts that what was answered with 200 is in the
    mailbox, and that, sent until it is answered, it is there once. Returns how often it was killed where."""
    alpha = Machine(directory, "alpha", authority).serve()
    alpha.register("ann")
    swarm = alpha.ok("swarm", "create", "demo", "--session", "ann")["swarm"]["swarm_id"]
    bob = Person("bob")
    token = tokens.parse_url(alpha.ok("swarm", "invite", "demo")["url"]).token
    assert Line(alpha).post("join", bob.joining(token)).status_code == 200
    until(lambda: len(alpha.remote()) == 1)
    outbox = alpha.swarm_home / "outbox.jsonl"  # or each start would look for what was told, and sync it
    until(lambda: outbox.exists() and outbox.read_bytes().endswith(b"\n"))
    alpha.kill()
    traced = Traced(alpha)
    first = bob.envelope(swarm, "alpha", "once")

    def said() -> bool:
        """Was it answered? Signed afresh, as every try is."""
        message = bob.envelope(swarm, "alpha", "once", message_id=first["message_id"])
        try:
            answer = Line(alpha).post("message", message)
        except httpx.HTTPError:
            return False
        assert answer.status_code == 200, answer.text
        return True

    def work() -> None:
        assert said()

    killed: Counter[str] = Counter()
    for call in filter(wanted, traced.calls(work)):
        with traced.dying(call):
            answered = said()
        killed[call[0]] += not answered
        assert alpha.received() == ["once"] or (not answered and alpha.received() == []), call
        alpha.serve()
        until(said)
        alpha.kill()
        assert alpha.received() == ["once"], call
        assert alpha.doctor() == [], call
    return killed


def sender(directory: Path, authority: Authority, wanted: Callable[[Call], bool]) -> Counter[str]:
    """Kill who sends a message at every call that is wanted; started again it sends it, and it arrives once."""
    alpha, beta = (Machine(directory, name, authority).serve() for name in ("alpha", "beta"))
    meet(alpha, beta)
    alpha.kill()
    traced = Traced(alpha)
    killed: Counter[str] = Counter()
    number = 0

    def work() -> None:
        nonlocal number
        number += 1
        sent = alpha.send("ann", "swarm:demo/beta", f"number {number}")
        until(lambda: alpha.outbox().get(sent) == {"beta": "delivered"} or dead())

    def dead() -> bool:
        return alpha.gateway is None or alpha.gateway.poll() is not None

    for call in filter(wanted, traced.calls(work)):
        with traced.dying(call):
            work()
            killed[call[0]] += dead()
        alpha.serve()
        until(lambda: set(alpha.outbox().popitem()[1].values()) == {"delivered"})
        alpha.kill()
        assert Counter(beta.received())[f"number {number}"] == 1, call
        assert alpha.doctor() == [], call
    beta.kill()
    return killed


def main() -> None:
    """``scripts/swarm-calls``."""
    parser = argparse.ArgumentParser(prog="scripts/swarm-calls", description=__doc__)
    parser.add_argument("who", choices=("receiver", "sender"), help="whom to kill")
    who = parser.parse_args().who
    with tempfile.TemporaryDirectory() as scratch:
        killed = {"receiver": receiver, "sender": sender}[who](
            Path(scratch), Authority(Path(scratch) / "ca"), lambda _: True
        )
        print(f"{who}: killed {sum(killed.values())} times; {dict(killed)}", flush=True)


if __name__ == "__main__":
    main()
