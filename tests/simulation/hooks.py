"""A client's hooks: the shell guard, and Python where that cannot tell.

Belongs here: running a hook, the mailbox as it opens that, what the judge learns of it, and the commands of clients
that keep no transcript. The turns of those that do are ``clients``'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_mailbox.clients import client_input
from agent_mailbox.clients.hooks import hook_events
from agent_mailbox.clients.permission.permit import Permit
from agent_mailbox.control.requests import Requests
from agent_mailbox.core import proofs
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.simulation import guard
from tests.simulation.coordination_told import ends_turn
from tests.simulation.disk import SECOND
from tests.simulation.letters import OFFERED, READ
from tests.simulation.places import BOX, STATE
from tests.simulation.reading import seen
from tests.simulation.stage import pick

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("hook", "shim", "settle", "permit")
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd")


def hook(stage: Stage, process: Process, me: Session) -> None:
    """A client's hook, in Python."""
    hooked(stage, process, me, str(pick(process, EVENTS)))


def shim(stage: Stage, process: Process, me: Session) -> None:
    """A client's hook as the client starts it: the shell guard, and Python only if that does not say "nothing"."""
    event = str(pick(process, EVENTS))
    grain = SECOND if process.chance.random() < 0.2 else 1
    watch = guard.Watch(stage.judge, me, event, grain)
    nothing = False
    try:
        nothing = guard.says_nothing(guard.Ask(event, me.id, BOX, STATE, grain))
    finally:
        watch.ends(nothing=nothing)
    stage.judge.answers.append((me.id, f"the guard says {'nothing' if nothing else 'maybe'}"))
    if not nothing:
        hooked(stage, process, me, event)


def settle(stage: Stage, process: Process, me: Session) -> None:
    """In the end, when nothing goes wrong: behind a hook the guard says nothing, and starts no Python again."""
    if stage.told.tasks:
        hooked(stage, process, me, "UserPromptSubmit")  # which alone tells of tasks
    hooked(stage, process, me, "PostToolUse")
    if not guard.says_nothing(guard.Ask("PostToolUse", me.id, BOX, STATE)):
        stage.judge.breach(f"the guard of {me.id} starts Python, and has nothing to say")


def permit(stage: Stage, process: Process, me: Session) -> None:
    """A client asks whether its session may use a tool: the shell guard, and Python where nothing binds it."""
    watch = guard.Watch(stage.judge, me, "Permit", 1)
    nothing = False
    try:
        nothing = guard.says_nothing(guard.Ask("Permit", me.id, BOX, STATE))
    finally:
        watch.permits(nothing=nothing)
    if not nothing and not me.led:
        call = client_input.ClientInput(event="Permit", session_id=me.id, cwd="/work", told=True)
        asked = Permit(call=call, requests=Requests(stage.desk(me.id)), environ={}, program="", write=lambda _: None)
        asked._spare_hooks()  # it looks again, under the locks; one that is bound would wait for its lead


def hooked(
    stage: Stage,
    process: Process,
    me: Session,
    event: str,
    transcript: str = "",
    environ: dict[str, str] | None = None,
    *,
    source: str = "startup",
    reason: str = "",
) -> tuple[list[str], list[str]]:
    """Run an event's hook; return the ids of the mail it showed, and its answers. With a transcript it offers mail."""
    shown: list[str] = []
    desk = Watched(OpenMailbox(BOX, wait=client_input.LOCK_WAIT, prove=lambda _: proofs.of_session(me.id)))
    desk.seen = lambda items: shown.extend(seen(stage, process, me, items))
    desk.recorded = lambda: stage.judge.recorded(me.id, shown, OFFERED if transcript else READ)
    client = CLAUDE_CODE if transcript else None
    if transcript:
        stage.judge.settles(me.id)
    me.may_be_frozen = me.may_be_frozen or event == "SessionEnd"
    call = client_input.ClientInput(
        event=event, session_id=me.id, cwd="/work", source=source, reason=reason, told=True, conversation=transcript,
        client=client,
    )  # fmt: skip
    written: list[str] = []
    asked = hook_events.Hook(
        call=call, delivery=desk, environ=environ or {}, program="agent-mailbox", write=written.append
    )
    try:
        hook_events.answer_event(asked)
    finally:
        if event == "Stop":
            ends_turn(stage, me)
    if event == "SessionStart":
        if me.may_be_dead:
            stage.judge.dying(me)  # it comes back; what was its own mail may be archived
        if not me.is_leaving:
            me.may_be_dead = False
        me.registered = me.registered if me.registered is not None else stage.world.calls
    me.seen = stage.world.now if event != "SessionEnd" else me.seen
    return shown, written


class Watched(Delivery):
    """The mailbox as a hook opens it, which tells what it shows."""

    seen: Callable[[Sequence[Item]], None]
    recorded: Callable[[], None]

    def deliver(self, session_id: str, show: Callable[[list[Item]], Sequence[Item]], **more: Any) -> int:
        """Show, and tell."""

        def told(items: list[Item]) -> Sequence[Item]:
            given = show(items)
            self.seen(given)
            return given

        count = super().deliver(session_id, told, **more)
        self.recorded()  # a lock that is not to be had leaves it unrecorded, which the hook passes over
        return count
