"""Sessions watch each other: commands, and what the judge holds them to.

Belongs here: watching an agent, and the end of a watched agent's turn. The judge holds:

- The watcher of an agent that was retired gets a report.
- The guard at the end of a watched agent's turn lets its hook through.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox.control.watching import Watching
from agent_mailbox.core.control.watches import DEAD, IDLE
from agent_mailbox.errors import NotFound, Refused
from tests.simulation import guard
from tests.simulation.coordination_told import AgentWatch, is_there
from tests.simulation.hooks import hooked
from tests.simulation.places import BOX, STATE
from tests.simulation.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("watch", "unwatch", "wake")
SCENES = {
    "watches": Scene(
        2.5,
        "everyone check watch",
        "watch! wake! watch unwatch retire wake send check run_steward succeed",
        "everyone wake run_steward",
        least=3,
    )
}


def watch(stage: Stage, process: Process, me: Session) -> None:
    """Watch another agent."""
    others = [other for other in stage.registered() if other is not me and other.id not in me.line]
    if not is_there(me) or not others:
        return
    agent = others[int(process.chance.random() * len(others))]
    until = ((IDLE,), (DEAD,), (IDLE, DEAD))[int(process.chance.random() * 3)]
    begun = stage.world.calls
    same = [one for one in stage.told.watches if (one.watcher, one.agent, {*one.until}) == (me, agent, {*until})]
    for earlier in same:
        earlier.may_be_over = True
    try:
        made = Watching(stage.desk(me.id)).watch(me.id, agent.id, until)
    except (Refused, NotFound):
        return
    stage.judge.acknowledge(("message", made.message_id))
    for earlier in same:  # the new one takes its place
        earlier.over = True
    if made.proven and not process.hurt:
        told = AgentWatch(stage.world, me, agent, until, made)
        told.begun = stage.told.turned.get(agent.id, -1) >= begun  # that turn's end may have been told already
        stage.told.watches.append(told)


def unwatch(stage: Stage, process: Process, me: Session) -> None:
    """End a watch."""
    mine = [one for one in stage.told.watches if one.watcher is me and not one.over]
    if mine:
        ended = mine[int(process.chance.random() * len(mine))]
        ended.over = True
        Watching(stage.desk(me.id)).cancel(me.id, ended.id)


def wake(stage: Stage, process: Process, me: Session) -> None:
    """End a turn, as the client tells it: the shell guard, and Python behind it."""
    watched = [one for one in stage.told.watches if one.agent is me and IDLE in one.until and not one.begun]
    watched = [one for one in watched if not one.over and one.ends > stage.world.wall() // 1_000_000]
    nothing = guard.says_nothing(guard.Ask("Stop", me.id, BOX, STATE))
    sure = is_there(me) and not process.hurt and not stage.world.befell("jump", "full")
    if nothing and sure and any(is_there(one.watcher) and not one.over and not one.begun for one in watched):
        stage.judge.breach(f"the guard of {me.id} says nothing at its turn's end, and {watched[0].watcher.id} watches")
    if not nothing:
        hooked(stage, process, me, "Stop")


def finish(stage: Stage) -> None:
    """In the end, behind a steward: who watched an agent that was retired has a report."""
    wanted = [
        one
        for one in stage.told.watches
        if not one.over and one.acked < stage.told.ended.get(one.agent.id, 0) and is_there(one.watcher)
    ]
    now = stage.world.wall() // 1_000_000
    if not wanted or stage.world.befell("jump"):
        return
    reported, ended = ({*_watches_in(stage, kind)} for kind in (b"watch_report", b"watch_end"))
    for one in wanted:
        if one.id not in reported and one.ends > now and not (one.may_be_over and one.id in ended):
            stage.judge.breach(f"{one.watcher.id} watched {one.agent.id}, which was retired, and has no report")


def _watches_in(stage: Stage, kind: bytes) -> Iterator[str]:
    """Yield the ids of the watches that lines of a kind are about."""
    for path, inode in stage.world.disk.files(solid=False):
        if not path.startswith(f"{BOX}/") or not path.endswith(".jsonl"):
            continue
        for line in bytes(inode.data).split(b"\n"):
            if kind in line:
                try:
                    yield json.loads(json.loads(line)["content"]).get("requestId", "")
                except (ValueError, KeyError):
                    continue
