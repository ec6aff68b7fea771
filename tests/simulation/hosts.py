"""The processes of clients: they begin, are killed, and come back; their numbers are given again.

Belongs here: a client's process as the others see it in ``/proc``, and the commands that start and end one. A session
whose client was killed is *gone*: what a role brought it, and it did not see, goes to the next holder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_mailbox.store.files import system
from agent_mailbox.store.user_state.processes import Process as SeenProcess
from agent_mailbox.store.user_state.processes import ProcessRecords
from tests.simulation.places import STATE

if TYPE_CHECKING:
    from tests.simulation.clients import Turn
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage
    from tests.simulation.world import World

COMMANDS = ("launch", "join", "die", "spoil")
BOOTING = 10_000_000_000
"""The ns from a machine's start to its first command."""
FIRST = 40
"""The number of the first client's process; simulated commands have those from 100 on."""


class Seen(NamedTuple):
    """What ``/proc`` tells of a process: the tick it started at, whether it is a zombie, whether it is hidden."""

    start: str
    is_over: bool = False
    is_hidden: bool = False


class Processes:
    """The processes of a machine that run on beside the commands, since it ``started`` (ns since 1970)."""

    def __init__(self, started: int) -> None:
        self.there: dict[int, Seen] = {}
        self.boots = 0
        self.started = started
        self._next = FIRST

    def begin(self, start: int, *, is_hidden: bool) -> int:
        """Start one; its number was never a client's."""
        number = self._next
        self._next += 1
        self.there[number] = Seen(str(start), is_hidden=is_hidden)
        return number

    def end(self, number: int, start: int, drawn: float) -> None:
        """End one: it stays a zombie for a while, or another process gets its number, or neither. What is hidden, and
        stays a zombie, looks alive."""
        if drawn < 0.3 and not self.there[number].is_hidden:
            self.there[number] = self.there[number]._replace(is_over=True)
        elif drawn < 0.6:
            self.there[number] = Seen(str(start + 1))
        else:
            del self.there[number]

    def boot(self, now: int) -> None:
        """Begin again: none is left. ``/proc`` was there before any of them."""
        self.there.clear()
        self.started = now - BOOTING
        self.boots += 1

    def file(self, path: str) -> bytes | None:
        """What a file below ``/proc`` holds; None if there is none."""
        if path == "/proc/sys/kernel/random/boot_id":
            return b"boot-%d\n" % self.boots
        number = path.removeprefix("/proc/").removesuffix("/stat")
        seen = self.there.get(int(number)) if number.isdigit() else None
        if seen is None or seen.is_hidden:
            return None
        state = "Z" if seen.is_over else "S"
        return f"{number} (a client) {state} 1 1 1 0 {'0 ' * 12}1 0 {seen.start} 0 0\n".encode()


def living(stage: Stage, me: Session) -> list[int]:
    """The processes of a session's client; a power failure ended earlier ones."""
    client = stage.clients.get(me.id)
    if client is None:
        return []
    client.hosts = [number for number in client.hosts if number in stage.world.hosts.there]
    return client.hosts


def surroundings(stage: Stage, me: Session) -> dict[str, str]:
    """What the environment of a hook tells of its client's process; nothing without one."""
    there = living(stage, me)
    return {"CLAUDE_PID": str(there[-1])} if there else {}


def note(stage: Stage, me: Session, *, first: bool) -> None:
    """Record the client's process, as each of its hooks does."""
    client = stage.clients[me.id]
    if not living(stage, me):
        return
    number = client.hosts[-1]
    process = SeenProcess(number, 1, stage.world.hosts.there[number].start, 0, "a client")
    kept = ProcessRecords(stage.desk(me.id).logs.stamp_files.kept())
    try:
        kept.record(process, me.id, "socket", first=first)
    except OSError:
        client.is_recorded, me.may_seem_gone = False, True  # its next hook tries again


def launch(stage: Stage, process: Process, me: Session) -> None:
    """A client's process begins, or a second one with the same session."""
    from tests.simulation.clients import Turn

    away = [session for session in stage.judge.sessions.values() if session.is_gone]
    if away and process.chance.random() < 0.7:
        me = away[int(process.chance.random() * len(away))]
    it = Turn(stage, process, me)
    if me.may_be_dead or it.client.is_busy() or (living(stage, me) and process.chance.random() < 0.8):
        return
    _launch(stage, process, me, it)


def join(stage: Stage, process: Process, me: Session) -> None:
    """A second process of a client begins, with the same session."""
    from tests.simulation.clients import Turn

    it = Turn(stage, process, me)
    if living(stage, me) and not me.may_be_dead and not it.client.is_busy():
        _launch(stage, process, me, it)


def _launch(stage: Stage, process: Process, me: Session, it: Turn) -> None:
    it.client.process = process
    it.client.hosts.append(_begun(stage.world, process))
    it.client.is_recorded, me.is_gone = True, False
    known, me.may_seem_gone = me.may_seem_gone, True  # until its hook recorded it, which may be killed before
    left = [i for i in stage.judge.returns(me) if i not in it.client.writing]  # else the transcript may have it, or not
    it.hook("SessionStart")
    stage.judge.left(me, left, it.client.given)
    if it.client.is_recorded:
        me.may_seem_gone = known
        stage.judge.lives(me)


def _begun(world: World, process: Process) -> int:
    return world.hosts.begin(world.now // 10_000_000, is_hidden=process.chance.random() < 0.2)


def renew(stage: Stage, me: Session) -> None:
    """The client comes back in a process of its own."""
    if living(stage, me):
        for number in stage.clients[me.id].hosts:
            del stage.world.hosts.there[number]
        stage.clients[me.id].hosts = [stage.world.hosts.begin(stage.world.now // 10_000_000, is_hidden=False)]


def spoil(stage: Stage, process: Process, me: Session) -> None:
    """A sector goes bad: the record of a client's process that runs cannot be read until it is written again."""
    there = living(stage, me)
    try:
        if there:
            stage.world.disk.spoiled.add(stage.world.kernel.look_up(f"{STATE}/clients/{there[0]}"))
    except OSError:
        return


def die(stage: Stage, process: Process, me: Session) -> None:
    """A client's process is killed, with the hooks below it: rather one whose model has not spoken since its mail."""
    system.time_ns()
    there = [who for who in stage.clients if living(stage, stage.judge.sessions[who])]
    waiting = [who for who in there if stage.judge.has_unseen(who)]
    drawn = (waiting or there or [""])[int(process.chance.random() * len(waiting or there))]
    if not drawn:
        return
    me, client, world = stage.judge.sessions[drawn], stage.clients[drawn], stage.world
    number = client.hosts.pop()
    if client.process is not None and client.process is not process:
        world.doomed.append(client.process)
    if not client.hosts:
        stage.judge.gone(me, certainly=client.is_recorded and not client.has_ended)
        stage.judge.unclear(me.id, client.given)
    world.hosts.end(number, world.now // 10_000_000, process.chance.random())
