"""Short sweeps of clients, deliveries, claims, leases and files: two or three agents, a hook, an event, an attack.

Belongs here: these sweeps, and the commands that they alone have: mail for everyone, a look with little room, a
delivery that is killed, a session that ends and comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.store.files import system
from tests.simulation import clients, reading, sending, sessions, upkeep
from tests.simulation.scene import Sweep
from tests.simulation.stage import ROLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("tell", "ring", "glance", "linger", "perish", "restart", "back", "steward_later")
HELD = ("held", "held", "both held")
ATTACKS = {"fails to look": (0, "0 fault looking"), "cannot look": (0, "0 faults looking")}
SWEEPS = {
    "two holders": Sweep(2, "ring@1 ring@1? / check@0|hook@0 check@2|hook@2 / check@0 check@2", HELD, agents=3),
    "a holder that is killed": Sweep(
        2,
        "ring@1 / check@0|hook@0 / check@2|hook@2 later? check@0 check@2",
        ("is killed soon behind a write",),
        agents=3,
    ),
    "a claim that lapses": Sweep(
        2, "ring@1 perish@0 later / check@2 linger@0 / check@0 check@2", ("held before a lock",), agents=3
    ),
    "a claimer that cannot be looked at": Sweep(
        1, "ring@1 perish@0 later / check@2 linger@0 / check@0 check@2", ("cannot look",), agents=3
    ),
    "a holder with little room": Sweep(
        1, "ring@1 ring@1 ring@1? / glance@0 / check@2 check@0", ("held",), rounds=4, agents=3
    ),
    "offers": Sweep(
        1,
        "tell@1 prompt@0|lose@0 / check@0|use@0|stop@0|begin@0 tell@1? / speak@0? stop@0|use@0 stop@0",
        ("held", "fails", "is killed"),
        rounds=4,
        clients=True,
        agents=2,
    ),
    "offers of one turn": Sweep(
        1,
        "tell@1 lose@0|lose@0|prompt@0 tell@1 / use@0 / use@0? speak@0 stop@0 use@0",
        ("is killed before it seals", "is killed before it seals", "is killed", "held"),
        rounds=6,
        clients=True,
        agents=2,
    ),
    "offers that are forgotten": Sweep(
        1,
        "tell@2 tell@2? lose@0|prompt@0 forget / check@1 begin@0 / use@0 speak@0? stop@0",
        ("late at first", "late at first", "held"),
        rounds=6,
        clients=True,
        agents=3,
    ),
    "hooks of one start": Sweep(
        0.7,
        "launch@0 tell@1 begin@0 / begin@0 tell@1? / use@0 speak@0? stop@0",
        ("held", "fails"),
        rounds=4,
        clients=True,
        agents=2,
    ),
    "clients that are killed": Sweep(
        1,
        "launch@0 ring@1 ring@1? prompt@0|lose@0|answer@0 / die / check@2 check@2",
        ("held",),
        rounds=6,
        clients=True,
        agents=3,
    ),
    "answers of a client that is killed": Sweep(
        0.5,
        "launch@0 ring@1 ring@1? answer@0 check@1 / run_steward die / check@2 run_steward check@2 launch@0",
        ("held", "held half way", "is killed half way"),
        rounds=4,
        clients=True,
        live=(0,),
        agents=3,
    ),
    "a client that comes back": Sweep(
        1,
        "launch@0 ring@1 prompt@0 die / check@2|check@2|run_steward launch@0 / check@2",
        ("held", "held", "held half way"),
        rounds=6,
        clients=True,
        agents=3,
    ),
    "two processes of a client": Sweep(
        1,
        "launch@0 join@0 ring@1 prompt@0? die spoil@0 / check@2|run_steward check@2? / use@0? check@2 launch@0",
        ("held", "fails to read"),
        rounds=6,
        clients=True,
        agents=3,
    ),
    "the dead come back": Sweep(
        1,
        "retire@0 ring@1 / run_steward back@0 / use@0 stop@0",
        ("held before a lock",),
        rounds=4,
        clients=True,
        agents=3,
    ),
    "a delivery beside a return": Sweep(
        1, "tell@1 / check@0|check@0|hook@0 restart@0 / check@0", ("held",), rounds=6, agents=3
    ),
    "a writer whose log is replaced": Sweep(
        0.5, "send everyone check / send|ack run_steward / everyone check", ("held before a lock",), live=(0,)
    ),
    "files that wait": Sweep(
        1.2, "attach? check / attach steward_later / run_steward check", ("held", "late at first"), outages=0.1
    ),
    "files beside a steward": Sweep(1, "attach? check / attach run_steward / run_steward check", ("held",)),
    "everyone is quiet": Sweep(
        1,
        "tell everyone check tell everyone check tell / everyone check tell / tell everyone check",
        small=1.0,
        outages=0.3,
    ),
    "leases and commands": Sweep(
        1,
        "lease@0 shell@1? / shell@1|shell@2|edit@2 lease@2|unlease@0|edit@1 / shell@1 edit@2",
        HELD,
        agents=3,
        outages=0.3,
    ),
    "leases whose notes are lost": Sweep(
        1,
        "lease@0 edit@1 edit@2 lose_notes? / edit@1 edit@2|lease@2 / edit@1 edit@2 shell@1",
        HELD,
        agents=3,
        outages=0.3,
    ),
    "leases of who comes back": Sweep(
        1,
        "lease@0 retire@0 register@0 / edit@1|shell@1|lease@1 lease@2|lease@0|retire@0 / edit@1 edit@2 lease@2",
        HELD,
        outages=0.1,
        agents=3,
    ),
    "two that write": Sweep(1, "lease@2 page / write@0 write@1 / write@2 edit@0", ("held", "both held"), agents=3),
    "a turn's end that is watched": Sweep(
        1, "watch@1 watch@2? / check@0|hook@0|shim@0 / wake@0 check@1", ("held", "is killed"), agents=3
    ),
    "a watched one who is killed": Sweep(0.5, "watch@1 / check@0 / wake@0", ("is killed before it writes",), agents=2),
}


def tell(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to everyone."""

    sending.post(stage, process, me, "all")


def glance(stage: Stage, process: Process, me: Session) -> None:
    """Show a session one message, for want of room."""

    reading.deliver(stage, process, me, 1)


def ring(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to a role that others hold."""

    sending.post(stage, process, me, next(role for role in ROLES if role != me.role))


def linger(stage: Stage, process: Process, me: Session) -> None:
    """Show a session its mail on a terminal that takes it slowly."""

    reading.deliver(stage, process, me, pause=1.0)


def perish(stage: Stage, process: Process, me: Session) -> None:
    """A check is killed before it shows anything, behind its claims."""

    def show(items: list[Item]) -> Sequence[Item]:
        stage.world.kill(process)
        system.time_ns()  # a call, which it does not live to make
        return items

    stage.desk(me.id).deliver(me.id, show)


def restart(stage: Stage, process: Process, me: Session) -> None:
    """A session ends for good, the steward runs, and it comes back and looks for mail."""

    sessions.retire(stage, process, me)
    upkeep.run_steward(stage, process, me)
    me.retirer = None  # that is done, though its process goes on
    sessions.register(stage, process, me)
    reading.check(stage, process, me)


def back(stage: Stage, process: Process, me: Session) -> None:
    """A session that was retired comes back, in a client that drops what its hook shows."""
    sessions.register(stage, process, me)
    clients.lose(stage, process, me)


def steward_later(stage: Stage, process: Process, me: Session) -> None:
    """The steward, nine minutes later."""

    system.sleep(540)
    upkeep.run_steward(stage, process, me)
