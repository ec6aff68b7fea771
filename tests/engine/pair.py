"""Two mailboxes of one person, which are two machines of a space."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.space.order.order import MESSAGES as MAIL
from agent_mailbox.store.log.unordered import unsealed
from tests.helpers import PATIENCE, Program, until

from .conformance import lines_of
from .opened_orders import open_nats

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.helpers import Program


MACHINES = ("north", "south")

LOG = "agent-mailbox.jsonl"

_spaces = itertools.count()


class Pair:
    """Two mailboxes, and a space that they may join."""

    def __init__(self, program: Program, url: str, credential: str) -> None:
        self.program = program
        program.forks = True
        self.url = url
        self.credential = credential
        self.space = f"pair-{next(_spaces)}"
        for machine in MACHINES:
            assert program.run("init", program.scratch / machine).rc == 0

    @classmethod
    def joined(cls, program: Program, url: str, credential: str) -> Pair:
        """Two that joined, with an agent on each."""
        pair = cls(program, url, credential)
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
            pair.join(machine)
            pair.ok(machine, "roster", "register", "--session-id", who)
        return pair

    def ok(self, machine: str, *words: object) -> Any:
        """The JSON answer of a command on a machine."""
        result = self.program.run(*words, "--json", "--dir", self.program.scratch / machine)
        assert result.rc == 0, result
        return result.json

    def fails(self, machine: str, rc: int, text: str, *words: object) -> None:
        """A command on a machine fails, and says why."""
        result = self.program.run(*words, "--dir", self.program.scratch / machine)
        assert result.rc == rc, result
        assert text in result.stderr

    def join(self, machine: str, **other: str) -> Any:
        options = {"space": self.space, "machine": machine, "credential": self.credential, **other}
        words = itertools.chain.from_iterable((f"--{key}", value) for key, value in options.items())
        return self.ok(machine, "engine", "join", self.url, *words)

    @contextmanager
    def serving(self, machine: str, name: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
        with self.program.start("engine", "serve", "--dir", self.program.scratch / machine) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == f"serving {self.space} as {name or machine}\n".encode()
            try:
                yield child
            finally:
                child.terminate()
                child.communicate(timeout=PATIENCE)

    def record(self, machine: str) -> Path:
        """Where a machine keeps what it has of the space."""
        files = self.program.user_state.glob("**/engine/space")
        return next(path.parent for path in files if f'"{machine}"' in path.read_text())

    def lines(self, machine: str, name: str = LOG) -> list[bytes]:
        """The lines of a machine's log without seals."""
        return [unsealed(line) for line in (self.program.scratch / machine / name).read_bytes().splitlines()]

    def ordered(self) -> list[bytes]:
        """The lines of the messages in the order."""
        order = open_nats(self.url, self.space, "reader", self.credential)
        found = [*map(unsealed, lines_of(order, MAIL))]
        order.close()
        return found

    def remove_stream(self) -> None:
        """Remove the space from its server."""
        order = open_nats(self.url, self.space, "stranger", self.credential)
        order.call_api(f"STREAM.DELETE.{order.stream}", None)
        order.close()

    def send(self, machine: str, *words: str) -> str:
        """Send from a machine; the id."""
        return str(self.ok(machine, "send", *words)["message"]["id"])

    def claim_at_once(self) -> None:
        """A task of the north for a role is claimed on both machines at once: one has it, and both say who."""
        self.ok("north", "task", "add", "--to", "role:dev", "--title", "T", "--task-id", "task-a", "--session", "ann")
        whose = dict(zip(MACHINES, ("ann", "ben"), strict=True))
        until(lambda: self.ok("south", "task", "list")["tasks"])
        words = ("task", "claim", "task-a", "--json")
        claims = {
            who: self.program.start(*words, "--session", who, "--dir", self.program.scratch / machine)
            for machine, who in whose.items()
        }
        codes = {who: (child.communicate(timeout=PATIENCE), child.returncode)[1] for who, child in claims.items()}
        assert sorted(codes.values()) == [0, 1]
        (holder,) = (who for who, code in codes.items() if code == 0)
        for machine in MACHINES:
            until(lambda machine=machine: self.ok(machine, "task", "list")["tasks"][0]["holder"] == holder)  # type: ignore[misc]

    def shows_queued(self, machine: str, message_id: str) -> None:
        """A message that waits for the engine is shown, listed and found, each time as one that waits."""
        place = "--dir", self.program.scratch / machine
        assert "queued: it waits here for the engine since" in self.program.run("show", message_id[:8], *place).stdout
        assert self.ok(machine, "show", message_id)["queued"]
        for words in (("history", "--all"), ("search", "late")):
            (line,) = {one for one in self.program.run(*words, *place).stdout.splitlines() if message_id[:8] in one}
            assert line.endswith("queued")
        assert next(m["id"] for m in self.ok(machine, "history", "--all")["messages"] if "queued" in m) == message_id
        assert [m["id"] for m in self.ok(machine, "thread", message_id)["messages"]] == [message_id]
        assert "waiting for the engine since" in self.program.run("status", "--session", "ann", *place).stdout
        self.fails(machine, 1, "ann has not read", "ack", message_id, "--session", "ann")

    def seen(self, machine: str, who: str) -> list[str]:
        """What a session is shown."""
        return [m["content"] for m in self.ok(machine, "check", "--session", who, "--limit", "0")["messages"]]


def is_of(path: Path, machine: str) -> bool:
    """Is the file beside a machine's record of its space?"""
    return f'"machine":"{machine}"' in (path.parent / "space").read_text().replace(" ", "")
