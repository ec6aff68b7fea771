"""Mail of a session that nobody hears of, or that was killed: offered, acked, and given back by others or by itself.

Belongs here: a client's hook that offers mail, whose fate a transcript tells; the person who gives up a machine; a
session that gives back what its killed command had claimed; and an engine that loses what every machine has.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients import client_input
from agent_mailbox.clients.hooks import hook_events
from agent_mailbox.core import instant, proofs
from agent_mailbox.core.records import USER
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.mailbox import absence
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.space import joining_space
from agent_mailbox.space.order.order import MESSAGES
from agent_mailbox.store.files import system
from tests.simulation.hooks import Watched
from tests.simulation.machines_mail import return_of
from tests.simulation.machines_stage import box_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.machines_deeds import Deed
    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process


def offer(stage: Stage, process: Process, me: Session) -> None:
    """A client's turn begins: a hook offers mail, the client writes that down, and its model speaks.

    Nothing is recorded of that before the next hook."""
    path = f"/{me.machine.name}/home/{me.id}.jsonl"
    shown: list[str] = []

    def show(items: Sequence[Item]) -> None:
        stage.judge.show(me, items, process)
        shown.extend(item.message.id for item in items)

    desk = Watched(
        OpenMailbox(box_of(me.machine), wait=client_input.LOCK_WAIT, prove=lambda _: proofs.of_session(me.id))
    )
    desk.seen, desk.recorded = show, lambda: stage.judge.recorded(me, process)
    event, written = "UserPromptSubmit", list[str]()
    call = client_input.ClientInput(
        event=event, session_id=me.id, cwd="/work", told=True, conversation=path, client=CLAUDE_CODE
    )  # fmt: skip
    _write(stage, path, {"type": "user", "message": {"role": "user", "content": "go on"}})
    hook_events.answer_event(
        hook_events.Hook(call=call, delivery=desk, environ={}, program="agent-mailbox", write=written.append)
    )
    if shown:
        told = [json.loads(answer)["hookSpecificOutput"]["additionalContext"] for answer in written]
        given = {"type": "hook_additional_context", "hookEvent": event, "content": told}
        _write(stage, path, {"type": "attachment", "attachment": given})
        said = {"id": f"msg_{stage.count}", "model": "a-model", "role": "assistant", "content": []}
        _write(stage, path, {"type": "assistant", "message": said})


def _write(stage: Stage, path: str, said: dict[str, Any]) -> None:
    now = instant.text(stage.world.wall() // 1_000_000)
    fd = system.open(path, system.O_WRONLY | system.O_APPEND | system.O_CREAT)
    system.write_whole(fd, json.dumps({**said, "timestamp": now}, separators=(",", ":")).encode() + b"\n")
    system.close(fd)


def forget(stage: Stage, process: Process, me: Session) -> None:
    """The person gives up another machine, whose sessions live on."""
    others = [machine for machine in stage.world.machines if machine is not me.machine and machine.joined]
    other = others[int(process.chance.random() * len(others))]
    stage.judge.gives_up(other)
    desk = stage.desk(me.machine, proofs.TERMINAL)
    sessions, _ = joining_space.forget_machine(desk, other.name)
    absence.give_up(desk, sessions, USER)


def unclaim(stage: Stage, process: Process, me: Session) -> None:
    """A session gives back the last mail that it was shown, though the command that showed it was killed."""
    if seen := [message_id for who, message_id in stage.judge.given if who == me.id]:
        return_of(stage, me, seen[-1])


def slip(deed: Deed) -> None:
    """The engine loses a message, which every machine has: nothing is lost by that."""
    there = [record.position for record in deed.space.records[:-1] if record.log == MESSAGES]
    if there:
        deed.space.remove([there[int(deed.chance.random() * len(there))]])


COMMANDS = {"offer": offer, "forget": forget, "unclaim": unclaim}
