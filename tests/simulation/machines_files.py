"""Attached files in a world of several machines: shipped and fetched over the network, and the liar's beside them.

Belongs here: the place of an engine for files, the commands that attach, and what the judge asks: a file that a mailbox
has is the one that its name says, and every machine has the files of the mail that somebody acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core import proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.space import space as spaces
from agent_mailbox.space.replicator import ExchangedFiles
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.store.attachments.attachment_files import digest
from agent_mailbox.store.files import system
from tests.simulation.machines import LossyOrder
from tests.simulation.machines_stage import box_of, space_of
from tests.simulation.stage import LASTING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.machines import Machine
    from tests.simulation.machines_deeds import Deed
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process


class OrderWithFiles(LossyOrder):
    """A machine's way to the space, and to its files, over the network."""

    def ship_file(self, digest: str, data: bytes) -> None:
        there = self._world.files
        self._ask(f"ship {digest[:8]}", lambda: there.setdefault(digest, {}).update({self.machine: data}))

    def take_back(self, digest: str) -> None:
        """Remove the file that this machine shipped."""
        self._ask(f"take back {digest[:8]}", lambda: self._world.files.get(digest, {}).pop(self.machine, None))

    def fetch_copies(self, digest: str) -> Iterator[bytes]:
        """Yield what machines shipped as that file, that of the liar first."""
        there = self._world.files
        yield from self._ask(f"fetch {digest[:8]}", lambda: [data for _, data in sorted(there.get(digest, {}).items())])


def attach(stage: Stage, process: Process, me: Session) -> None:
    """Send the session of another machine a file."""
    others = [other.id for other in stage.judge.sessions if other.machine is not me.machine]
    to = others[int(process.chance.random() * len(others))]
    letter = stage.judge.letter(process, me.machine, me.id, to)
    content = letter.text.encode()
    file = attachment_files.put(box_of(me.machine), "a.txt", [content])
    draft = Draft(
        sender=me.id, to=(to,), content=letter.text, ttl_hours=LASTING, id=letter.id, attachments=[file.entry()]
    )
    sent = stage.desk(me.machine, proofs.of_session(me.id)).send(draft)
    letter.acknowledged, letter.queued = True, bool(sent.queued)
    stage.judge.acknowledged += 1
    stage.judge.attached[file.stored] = content


def false_file(deed: Deed) -> None:
    """The liar ships other bytes, of the same length, as a file that a message names."""
    for stored, content in deed.judge.attached.items():
        deed.world.files.setdefault(stored[:64], {})["a-liar"] = content[::-1]


def exchange(stage: Stage, process: Process, machine: Machine) -> None:
    """In the end: a machine's replicator ships and fetches files."""
    logs = stage.desk(machine, None).logs
    order = spaces.order_of(space_of(machine))
    ExchangedFiles(logs, order, spaces.record_of(logs).path(spaces.PLACE), lambda _: None).take_turn(
        system.time_ns() // 1_000_000
    )


def look(stage: Stage, process: Process, machine: Machine) -> None:
    """Ask a machine for its files."""
    there = attachment_files.names(box_of(machine))
    for stored in there:
        data = attachment_files.content(box_of(machine), stored)
        if data is not None and digest(data) != stored[:64]:
            stage.judge.breach(f"{machine.name} has {data!r} as {stored}")
    for stored in stage.judge.attached:
        stage.judge.checks += 1
        if stored not in there:
            stage.judge.breach(f"{machine.name} has not the file {stored} of a message")
