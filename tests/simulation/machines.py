"""Several simulated machines that share one mailbox: each its disk, clock and processes, one order, a bad network.

Belongs here: such a world, and its way to the engine. The commands and the judge are ``machines_run``'s. The product
reaches the engine at one place, ``space.space.order_of``; there is ``LossyOrder``, an order in memory
(``tests.engine.memory_order``) behind a network. Every question is a call of the world, at which its process may be
killed or overtaken. The network loses questions and answers, delays, doubles, lets them come after their sender has
died, and cuts machines off.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from agent_mailbox.core import space_seals
from agent_mailbox.errors import MailboxError, Unavailable
from agent_mailbox.space.relay.relayed_order import AWAY
from agent_mailbox.store.log.unordered import unsealed
from tests.engine.memory_order import MemoryOrder, MemorySpace
from tests.simulation.choices import Profile
from tests.simulation.disk import SECOND, Disk
from tests.simulation.hosts import Processes
from tests.simulation.kernel import Kernel
from tests.simulation.process import Process
from tests.simulation.telling import told_record
from tests.simulation.world import START, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_mailbox.core.records import Proof
    from agent_mailbox.space.order.order import Ordered
    from tests.simulation.machines_plans import Network

NAMES = ("north", "south", "west")
SILENCE = 3600 * SECOND
"""For how long the link of a machine is cut whose append was not answered."""
PATIENCE = 5.0
"""Seconds after which a question without an answer is given up."""


class Machine:
    """One machine. ``away_until``: the instant until which its link is cut; ``offset`` is its clock's; ``is_unheard``:
    the next append arrives, its answer does not, and the link is cut; ``joined``: it was told to join. Its commands
    may do without the engine until ``doubted_until``, since one waited for it in vain. ``heard``: the position up to
    which its replicator has taken in all."""

    def __init__(self, name: str, world: Machines, profile: Profile, start: int) -> None:
        self.name = name
        self.disk = Disk(ordered=profile.ordered, grain=profile.grain)
        self.hosts = Processes(start)
        self.foremost = self.offset = start
        self.started = 0
        self.away_until = self.doubted_until = 0
        self.is_unheard = self.joined = False
        self.failures = self.heard = 0
        self.kernel = MachineKernel(world, self)

    @property
    def offset(self) -> int:
        """Return what its clock is ahead of the world's."""
        return self._offset

    @offset.setter
    def offset(self, value: int) -> None:
        """Set its clock; ``foremost`` is the most that it was ahead."""
        self._offset, self.foremost = value, max(self.foremost, value)


class MachineKernel(Kernel):
    """The calls of one machine's processes, and their questions to the engine."""

    def __init__(self, world: Machines, machine: Machine) -> None:
        super().__init__(world, machine.disk)
        self.machines = world
        self.machine = machine

    def home(self, process: Process) -> str:
        """Each machine has paths of its own: what the product keeps by path within a process is then its own, too."""
        return f"/{self.machine.name}/home"

    def ask(self, process: Process, about: str, question: Callable[[], Any]) -> Any:
        """Ask the engine over the network; raises ``Unavailable`` if no answer comes, and what the engine raises."""
        world, net = self.machines, self.machines.network
        if world.now < self.machine.away_until:
            world.wait(process, 0.05)
            raise Unavailable("engine is out of reach: cut off", "try again")
        if self.machine.is_unheard and about.startswith("append"):
            self.machine.is_unheard = False
            self.machine.away_until = world.now + SILENCE
            again(question)
            self._give_up(process)
        if world.quiet or not any(net):
            return question()  # at once: who is held is so until nobody else can go on
        chance = Random(f"question {world.seed} {process.name} {process.calls}")
        drawn = chance.random()
        world.wait(process, chance.random() if chance.random() < net.slow else chance.random() / 200)
        if drawn < net.lost:
            self._give_up(process)
        if (drawn := drawn - net.lost) < net.late:
            world.late.append((world.now + int((1 + chance.random() * 30) * SECOND), question))
            self._give_up(process)
        if net.late <= drawn < net.late + net.doubled:
            again(question)
        answer = question()
        if net.late + net.doubled <= drawn < net.late + net.doubled + net.mute:
            self._give_up(process)
        return answer

    publish = ask
    """The same of an append: it is another call, for what befalls processes before such."""

    def _give_up(self, process: Process) -> None:
        self.machines.wait(process, PATIENCE)
        self.machine.doubted_until = self.machines.now + AWAY * SECOND // 1000
        raise Unavailable("engine did not answer: lost", "try again")

    def rest(self, process: Process, about: str, seconds: float, is_new: Callable[[], bool]) -> bool:
        """Wait for news of the order, as long as the link is."""
        world, machine = self.machines, self.machine
        world.wait(process, seconds, lambda: is_new() and world.now >= machine.away_until)
        return is_new() and world.now >= machine.away_until


class Question:
    """What is asked, as a word of a call: every story tells it alike, by the ``lines`` that it brings."""

    __slots__ = ("ask", "lines")

    def __init__(self, ask: Callable[[], Any], lines: Sequence[bytes] = ()) -> None:
        self.ask = ask
        self.lines = lines

    def __call__(self) -> Any:
        return self.ask()

    def __repr__(self) -> str:
        return "; ".join(told_record(line) or f"{len(line)} bytes" for line in self.lines) or "?"


def again(question: Callable[[], Any]) -> None:
    """Ask, and tell nobody the answer."""
    try:
        question()
    except MailboxError:
        pass


class Calls:
    """The kernel of whichever machine's process makes a call."""

    def __init__(self, world: Machines) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        world = self._world
        return lambda *words, **more: getattr(world.here.kernel, name)(*words, **more)


class Machines(World):
    """A world of several machines: whatever ``World`` says of one disk or clock is that of the machine at work."""

    def __init__(
        self,
        seed: int,
        profile: Profile,
        count: int,
        network: Network,
        only: dict[tuple[str, int], str] | None = None,
        start: int = 0,
    ) -> None:
        self.place: dict[Process, Machine] = {}
        self.running = None
        self.machines = [Machine(name, self, profile, start or START) for name in NAMES[:count]]
        self.at = self.machines[0]
        self.off: Machine | None = None
        self.network = network
        self.space = MemorySpace()
        self.owners: dict[str, str] = {}
        self.words: dict[str, bytes] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        """What machines shipped as a file, by its digest."""
        self.said: dict[bytes, set[tuple[str, Proof | None]]] = {}
        """What our machines published: by the line, without seals, which machine did, and what its seal says."""
        self.overtaken: set[bytes] = set()
        """Those that came late, behind what their machine sealed after them for the same log."""
        self._numbers: dict[tuple[str, str], int] = {}
        self.late: list[tuple[int, Callable[[], Any]]] = []
        self.told_of_power: Callable[[Machine], None] = lambda _: None
        super().__init__(seed, profile, only)
        for name in ("ask", "rest", "publish"):
            self.doors[name] = self._door(name)

    @property
    def here(self) -> Machine:
        """The machine whose process is at work."""
        return self.at if self.running is None else self.place.get(self.running, self.at)

    @property
    def disk(self) -> Disk:
        return self.here.disk

    @disk.setter
    def disk(self, _: Disk) -> None:
        """Each machine has its own."""

    @property
    def hosts(self) -> Processes:
        """What runs there beside the commands."""
        return self.here.hosts

    @hosts.setter
    def hosts(self, _: Processes) -> None:
        """Each machine has its own."""

    @property
    def kernel(self) -> Any:
        """That machine's calls."""
        return Calls(self)

    @kernel.setter
    def kernel(self, _: Kernel) -> None:
        """Each machine has its own."""

    @property
    def offset(self) -> int:
        """That machine's clock."""
        return self.here.offset

    @offset.setter
    def offset(self, value: int) -> None:
        self.here.offset = value

    @property
    def started(self) -> int:
        return self.here.started

    @started.setter
    def started(self, value: int) -> None:
        self.here.started = value

    def note(self, machine: str, log: str, line: bytes) -> None:
        """A line is published in a log of the order."""
        seal, content = space_seals.of(line), unsealed(line)
        self.said.setdefault(content, set()).add((machine, None if seal is None else seal.proof))
        if seal is not None:
            last = self._numbers.get((machine, log), 0)
            if seal.number < last:
                self.overtaken.add(content)
            self._numbers[machine, log] = max(last, seal.number)

    def begin(self, machine: Machine, name: str, work: Callable[[Process], object]) -> Process:
        self.at = machine
        process = self.spawn(name, work)
        self.place[process] = machine
        return process

    def turn(self) -> bool:
        """Let one process go on, once what was on its way has arrived."""
        due = [one for one in self.late if one[0] <= self.now or self.quiet]
        self.late = [one for one in self.late if one not in due]
        for _, question in due:
            again(question)
        return super().turn()

    def _bury(self, process: Process) -> None:
        before, self.running = self.running, process
        super()._bury(process)
        self.running = before

    def lose_power(self, process: Process) -> None:
        """Have the power of that process's machine fail."""
        self.off = self.place[process]
        super().lose_power(process)

    def power_off(self) -> None:
        """One machine loses its power, and starts again from what was durable there."""
        self.is_off = False
        machine = self.off or self.here
        for process in self.living():
            if self.place[process] is machine:
                process.dead = True
                self._unwind(process)
        machine.failures, machine.heard = machine.failures + 1, 0
        machine.disk.crash(Random(f"power {self.seed} {machine.name} {machine.failures}"))
        machine.offset += 60 * SECOND  # it was off for a minute, while the others went on
        machine.started = self.now
        machine.hosts.boot(self.now + machine.offset)
        self.tell(f"the power of {machine.name} fails; it starts again")
        self.told_of_power(machine)


class LossyOrder(MemoryOrder):
    """A machine's way to the space, over the network: what the product gets for a connection to an engine."""

    def __init__(self, world: Machines, machine: str) -> None:
        super().__init__(world.space, machine)
        self._world = world
        self._heard = dict[str, bytes]()

    def _ask(self, about: str, question: Callable[[], Any], call: str = "ask", lines: Sequence[bytes] = ()) -> Any:
        return self._world.doors[call](about, Question(question, lines))

    def last_position(self) -> int:
        found: int = self._ask("end", super().last_position)
        return found

    def append_lines(
        self, log: str, lines: Sequence[bytes], *, ids: Sequence[str] = (), expect: int | None = None
    ) -> int:
        append = super().append_lines

        def question() -> int:
            position = append(log, lines, ids=ids, expect=expect)
            for line in lines:
                self._world.note(self.machine, log, line)
            return position

        found: int = self._ask(f"append {len(lines)} to {log}, expect {expect}", question, "publish", lines)
        return found

    def read_after(self, after: int, most: int) -> Sequence[Ordered]:
        read = super().read_after
        found: Sequence[Ordered] = self._ask(f"read behind {after}", lambda: read(after, most))
        return found

    def count_holes(self) -> int:
        """Ask for the number of positions without a record."""
        found: int = self._ask("holes", super().count_holes)
        return found

    def wait_for_record(self, after: int, seconds: float) -> bool:
        is_new = Question(lambda: self.space.end() > after)
        found: bool = self._world.doors["rest"](f"behind {after}", seconds, is_new)
        return found

    def make_unless_there(self) -> None:
        pass

    def take_name(self, owner: str) -> str:
        found: str = self._ask("named", lambda: self._world.owners.setdefault(self.machine, owner))
        return found

    def joined_machines(self) -> list[str]:
        found: list[str] = self._ask("machines", super().joined_machines)
        return found

    def of_log(self, log: str, after: int = 0) -> Iterator[Ordered]:
        of_log = super().of_log
        yield from self._ask(f"all of {log}", lambda: [*of_log(log, after)])

    def tell_machines(self, word: bytes) -> None:
        """Tell the others something; nobody keeps it."""
        self._ask("tell", lambda: self._world.words.update({self.machine: word}))

    def latest_words(self) -> dict[str, bytes]:
        """What came from the others since."""
        words = {name: word for name, word in self._world.words.items() if name != self.machine}
        fresh = {name: word for name, word in words.items() if self._heard.get(name) != word}
        self._heard = words
        return fresh

    def close(self) -> None:
        """End the connection."""
