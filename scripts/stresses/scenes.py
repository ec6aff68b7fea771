"""Which real commands and hooks are run, one after the other, as the seed has it.

Belongs here: the choice alone. Ids that a command may answer or give back come from what earlier checks showed.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING

from ..benchmarks import launch
from . import cast
from .commands import FAKETIME, Command
from .evidence import MESSAGES

if TYPE_CHECKING:
    import random

    from .commands import Stage

KINDS = {
    "check": 30,
    "send": 15,
    "hook": 30,
    "deal": 12,
    "steward": 3,
    "search": 3,
    "history": 2,
    "status": 2,
    "doctor": 1,
    "roster": 3,
    "wait": 6,
}
MAX_KNOWN = 50
RECENT = 1 << 16
"""Bytes of the log in which a request to wait for is looked for."""


class Scenes:
    """The commands of a run, in order. ``pick`` alone decides."""

    def __init__(self, stage: Stage, pick: random.Random, jumps: bool) -> None:
        self._stage, self._pick = stage, pick
        self._jumps = jumps and bool(FAKETIME)
        self._shells = [*launch.shells().values()]
        self._known: list[tuple[str, str]] = []
        self._number = 0

    def next(self) -> Command:
        """The next command, started."""
        (kind,) = self._pick.choices(list(KINDS), list(KINDS.values()))
        hours = None
        if self._jumps and self._pick.random() < 0.3:
            hours = round(self._pick.uniform(-1, 1) * cast.MAX_JUMP_HOURS, 3)
        session = self._pick.choice([*cast.READERS, *cast.HOLDERS, *cast.HOOKED, *cast.WRITERS[:2]])
        return getattr(self, f"_{kind}")(session, hours)  # type: ignore[no-any-return]

    def run(self, what: str, *words: str, session: str = "", hours: float | None = None, token: str = "") -> Command:
        """A command as given, started."""
        self._number += 1
        launcher = self._pick.choice((launch.LEAN, launch.CONSOLE))
        return Command(
            self._stage, self._number, what, list(words), session, launcher=launcher, hours=hours, token=token
        )

    def learn(self, command: Command) -> None:
        """Remember what a check showed."""
        if command.what == "check" and command.code == 0 and "--json" in command.words and command.said:
            shown = json.loads(command.said)["messages"]
            self._known = [*self._known, *((command.session, m["id"]) for m in shown)][-MAX_KNOWN:]

    def _check(self, session: str, hours: float | None) -> Command:
        more = self._pick.choice((["--json"], ["--json", "--limit", "2"], []))
        return self.run("check", "check", "--session", session, *more, session=session, hours=hours)

    def _send(self, session: str, hours: float | None) -> Command:
        token = f"x.{self._number + 1}"
        words = ["--from", self._pick.choice((session, "user")), "--to", self._pick.choice(cast.ADDRESSES)]
        words += ["--body", cast.body(token, 50)]
        if self._pick.random() < 0.3:
            words += ["--id", str(uuid.UUID(int=self._pick.getrandbits(128), version=4))]
        if self._pick.random() < 0.2:
            words += ["--ack"]
        return self.run("send", "send", *words, hours=hours, token=token)

    def _hook(self, session: str, hours: float | None) -> Command:
        session = self._pick.choice(list(cast.HOOKED))
        event = self._pick.choice(("UserPromptSubmit",) * 6 + ("Stop",) * 3 + ("SessionStart", "SessionEnd"))
        return self.hook(session, event, hours)

    def hook(self, session: str, event: str, hours: float | None = None) -> Command:
        """A hook through the shim, started."""
        self._number += 1
        shell = (*self._pick.choice(self._shells), launch.shim(self._stage.scratch))
        return Command(self._stage, self._number, "hook", [event], session, launcher=shell, hours=hours)

    def permit(self) -> Command:
        """A client's question before a tool call, started: it waits for the lead."""
        self._number += 1
        pick = self._pick
        asks = f"{cast.DENIED if pick.random() < 0.1 else 'touch'} p.{self._number}"
        shell = (*pick.choice(self._shells), launch.shim(self._stage.scratch))
        event, session = pick.choice(("Permit", "Permit", "PermissionRequest")), pick.choice(list(cast.LED))
        hours = round(pick.uniform(-1, 1) * cast.MAX_JUMP_HOURS, 3) if self._jumps and pick.random() < 0.2 else None
        return Command(self._stage, self._number, "permit", [event], session, launcher=shell, hours=hours, asks=asks)

    def _wait(self, session: str, hours: float | None) -> Command:
        """Somebody else looks on; the first to do so may find nothing to wait for."""
        try:
            log = (self._stage.box / MESSAGES).read_bytes()[-RECENT:]
        except OSError:
            log = b""
        found = sorted({word.decode() for word in re.findall(rb"perm-[0-9a-f]{12}", log)})
        if not found:
            return self._check(session, hours)
        which = self._pick.choice(found)
        return self.run("wait", "control", "wait", which, "--session", session, "--timeout", "1", "--json", hours=hours)

    def _deal(self, session: str, hours: float | None) -> Command:
        if not self._known:
            return self._check(session, hours)
        who, message_id = self._known.pop(int(self._pick.random() * len(self._known)))
        verb = self._pick.choice(("ack", "release", "reply"))
        if verb != "reply":
            return self.run(verb, verb, message_id, "--session", who, hours=hours)
        token = f"x.{self._number + 1}"
        body = cast.body(token, 10)
        return self.run("reply", "reply", message_id, "--from", who, "--body", body, hours=hours, token=token)

    def _steward(self, session: str, hours: float | None) -> Command:  # noqa: ARG002 - as the others are called
        return self.run("steward", "steward", "run", "--max-live", self._pick.choice(("0", "20")), hours=hours)

    def _search(self, session: str, hours: float | None) -> Command:
        return self.run("search", "search", session, "--json", hours=hours)

    def _history(self, session: str, hours: float | None) -> Command:
        return self.run("history", "history", "--session", session, "--json", hours=hours)

    def _status(self, session: str, hours: float | None) -> Command:
        return self.run("status", "status", "--session", session, "--json", hours=hours)

    def _doctor(self, session: str, hours: float | None) -> Command:  # noqa: ARG002 - as the others are called
        return self.run("doctor", "doctor", "--json", hours=hours)

    def _roster(self, session: str, hours: float | None) -> Command:
        words = self._pick.choice((["heartbeat"], ["update", "--add-tags", f"concern:n{self._pick.randrange(5)}"]))
        return self.run("roster", "roster", *words, "--session-id", session, hours=hours)
