"""Machines of a space that a test may cut off and kill: their copies, and their ways to an order in memory.

Belongs here: one such machine, whose process dies after a number of steps, and whose clock a test may set.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.core.address import ALL
from agent_mailbox.core.machine_rights import Rights
from agent_mailbox.space.copy.replica import Replica
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.space.trust.space_judge import SpaceJudge
from agent_mailbox.store.files import system
from agent_mailbox.store.log.unordered import unsealed
from agent_mailbox.store.user_state import creation
from tests.door import switches

from .memory_order import MemoryOrder, MemorySpace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.space.order.order import Ordered


class Killed(BaseException):
    """The process dies here."""


class Mortal(Replica):
    """A copy whose process dies after so many more steps; None: never."""

    left: int | None = None

    def step(self) -> None:
        """Die if it is time."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed

    def _write_verdicts(self, records: Sequence[Ordered], keys: Sequence[bytes]) -> None:
        self.step()
        super()._write_verdicts(records, keys)
        self.step()

    def _save_state(self) -> None:
        self.step()
        super()._save_state()
        self.step()

    def _follow_decision(self, records: Sequence[Ordered]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("rename", "fsync", "fdatasync"):
                patch.setattr(system, name, self._mortally(getattr(system, name)))
            super()._follow_decision(records)

    def _mortally(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            self.step()
            found = call(*given)
            self.step()
            return found

        return called


class MortalOrder(MemoryOrder):
    """A way to the space on which the process may die before and after an append."""

    copy: Mortal

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        """Append, perhaps for the last time."""
        self.copy.step()
        position = super().append_lines(log, lines, ids=ids, expect=expect)
        self.copy.step()
        return position


class Clock:
    """The clock of the machine that a step happens on."""

    ahead = 0
    real = system.time_ns

    @classmethod
    def time_ns(cls) -> int:
        """The nanoseconds since 1970, as that machine has it."""
        return cls.real() + cls.ahead * 1_000_000


class Machine:
    """One machine: a directory and its record, its clock, its copy, its way to the space."""

    def __init__(self, root: str, name: str, space: MemorySpace) -> None:
        records = os.path.join(root, f"{name}.records")
        directory = creation.create(os.path.join(root, name), {switches.STATE: records})
        self.ahead = 0
        """The ms that its clock is ahead."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(switches.STATE, records)
            self._box = Mailbox(directory, wait=2)
            assert self._box.logs.custody is not None
            place = self._box.logs.custody.path("engine")
            system.make_directory(place)
            machine_keys.make_key(place)
            self.judge = SpaceJudge("team", name, place)
        self.order = MortalOrder(space, name)
        self.copy = self.order.copy = Mortal(self._box.logs, self.order, place, self.judge)
        self._box.share(self.copy)

    @property
    def box(self) -> Mailbox:
        """The mailbox, as a process there opens it: with that machine's clock."""
        Clock.ahead = self.ahead
        return self._box

    def trust(self, others: Sequence[Machine]) -> None:
        """The person says here that these may speak for the sessions that live there."""
        keys = {one.order.machine: one.judge.key for one in others}
        rights = {
            name: Rights(machine_keys.key_fingerprint(key.public), user=True, sessions=(ALL,))
            for name, key in keys.items()
            if key is not None
        }
        machine_keys.save_rights(self.copy.directory, rights, applied=True)

    def catch_up(self, *, closer: bool = False) -> None:
        """Do what the replicator does; ``closer``: as it does once its connection broke."""
        Clock.ahead = self.ahead
        with self.copy.machine_lock():
            if closer:
                self.copy.check_order_again()
            self.copy.catch_up()
            if closer and self.copy.look_closer():
                self.copy.catch_up()

    def lines(self, name: str) -> list[bytes]:
        """The whole lines of one log, without seals."""
        path = Path(self.box.directory, name)
        return [unsealed(line) for line in path.read_bytes().split(b"\n") if line] if path.exists() else []

    def archived(self, *ends: str) -> list[bytes]:
        """The lines of the archive's files with these ends."""
        names = [name for name in self.box.archive.files() if name[7:] in ends]
        return [line for name in names for line in self.lines(f"agent-mailbox-archive/{name}")]
