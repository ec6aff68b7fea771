"""How long an idle session sleeps on after its mail was sent: two ways to wake it, measured at the real client.

Belongs here: the way that was not taken, in its simplest form, beside the doorbell as it is installed. From the
return of ``send`` until the request with the mail is at the model's stand-in; the prompt hook shows it in both.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from scripts.benchmarks.arguments import given as arguments_given
from tests.e2e import figures
from tests.e2e.client import Client
from tests.e2e.shown import version
from tests.e2e.standin import StandIn
from tests.e2e.terminal import Terminal
from tests.helpers import MAIN, ROOT, Post

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ready = Callable[[str], bool]

ROUNDS = 20
DOCUMENT = ROOT / "docs/internals/client-observations.md"
BEGIN = "<!-- scripts/bench-doorbell writes this -->\n"
PROGRAM = f"{sys.executable} -I -S -X utf8 {MAIN}"


class Way:
    """A session that one of the ways wakes."""

    def __init__(self, client: Client, terminal: Terminal) -> None:
        self.client = client
        self.terminal = terminal
        self.session = ""

    def quiet(self) -> bool:
        """Has the session nothing to read?"""
        return self.client.post.file(".cache", "quiet", self.session).exists()

    def settle(self, ready: Ready) -> None:
        """Wait until it is idle, has nothing to read, and something waits to wake it."""
        self.terminal.wait(self.terminal.idle)
        self.session = str(self.terminal.wait(self.terminal.session))
        self.terminal.wait(lambda: self.quiet() and ready(self.session))

    def once(self, number: int) -> float:
        """Seconds from sent to seen, of one message."""
        word = f"MAIL_{number:04}_"
        self.terminal.mark()
        self.client.post.send("bob", self.session, word)
        sent = time.monotonic()
        self.terminal.wait(lambda: self.client.model.asked(word))
        return time.monotonic() - sent


@contextmanager
def session(
    *words: object, doorbell: bool = False, prepare: Callable[[Client], list[object]] | None = None
) -> Iterator[Way]:
    """A session at a terminal; ``prepare`` gives further words of its command line."""
    binary = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-mailbox-tests"
    with tempfile.TemporaryDirectory() as scratch, StandIn() as model:
        client = Client(
            Post(Path(scratch)), binary / f"claude-code-{version(CLAUDE_CODE)}/node_modules/.bin/claude", model
        )
        client.post.configure("[wake]\ngap_seconds = 0\n")
        if not doorbell:
            client.post.file("config.toml").write_text("[hook]\ndoorbell = false\n")
        more = prepare(client) if prepare else []
        with Terminal(client, *words, *more) as terminal:
            yield Way(client, terminal)


def by_doorbell(rounds: int) -> tuple[list[float], str]:
    """The doorbell as it is installed."""
    with session(doorbell=True) as way:
        file = way.client.post.file(".cache", "doorbell")

        def ready(me: str) -> bool:
            who = (file / me).read_text().partition(" ")[0] if (file / me).exists() else "-"
            return who.isdigit() and Path(f"/proc/{who}").exists()

        figures = []
        for number in range(rounds):
            way.settle(ready)
            figures.append(way.once(number))
        way.settle(ready)
        pid = (file / way.session).read_text().partition(" ")[0]
        pss = next(line for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line[:4] == "Pss:")
        rss = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line[:6] == "VmRSS:")
        return (
            figures,
            f"{int(rss.split()[1]) / 1024:.1f} MiB resident, {int(pss.split()[1]) / 1024:.1f} of them its own",
        )


def by_socket(rounds: int) -> tuple[list[float], str]:
    """A process outside that waits for mail and writes a line to the session's inbox socket."""
    with session() as way:
        figures = []
        for number in range(rounds):
            way.settle(lambda _: True)
            words = [*PROGRAM.split(), "wait", "--session", way.session]
            with subprocess.Popen(words, env=way.client.post.environ(), stdout=subprocess.DEVNULL) as waits:
                way.terminal.wait(lambda pid=waits.pid: _asleep(pid))
                figures.append(_with_post(way, number, waits))
        return figures, ""


def _with_post(way: Way, number: int, waits: subprocess.Popen[bytes]) -> float:
    import threading

    def post() -> None:
        waits.wait()
        registry = way.client.post.home / ".claude/sessions"
        entry = json.loads((registry / f"{way.terminal.pid}.json").read_text())
        token = json.loads(next(registry.glob(f"{way.terminal.pid}.*.key")).read_text())["peerToken"]
        line = {"type": "user", "message": {"role": "user", "content": f"agent-mailbox: mail is waiting ({number})"}}
        with socket.socket(socket.AF_UNIX) as out:
            out.connect(entry["messagingSocketPath"])
            out.sendall(b"".join(json.dumps(o).encode() + b"\n" for o in ({"type": "auth", "token": token}, line)))
            out.settimeout(1)
            try:
                out.recv(4096)
            except TimeoutError:
                pass

    poster = threading.Thread(target=post)
    poster.start()
    figure = way.once(number)
    poster.join()
    return figure


def _asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


WAYS: dict[str, Callable[[int], tuple[list[float], str]]] = {
    "the doorbell (`asyncRewake`)": by_doorbell,
    "the inbox socket": by_socket,
}


def main(arguments: list[str]) -> int:
    """Measure and write the table."""
    given = arguments_given(arguments, "How long a session sleeps on after mail came.", rounds=ROUNDS)
    rounds = given.rounds
    lines = ["| way | median | fastest | slowest | the one who waits |", "| --- | --- | --- | --- | --- |"]
    for name, measure in WAYS.items():
        seconds, memory = measure(rounds)
        spread = " | ".join(f"{value:.2f} s" for value in (statistics.median(seconds), min(seconds), max(seconds)))
        lines.append(f"| {name} | {spread} | {memory} |")
        print(lines[-1], flush=True)
    table = figures.table(lines, rounds)
    if not given.print:
        figures.write(DOCUMENT, BEGIN, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
