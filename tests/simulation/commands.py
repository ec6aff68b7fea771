"""Every command of simulated processes by its name, how often a mixed world draws it, and how it may end.

Belongs here: one door to the rooms of commands. A command is a function of the stage, its process and its session,
called in a process of its own. It tells the judge what it was about to do, calls the product, and tells what came of
it. None knows how calls are scheduled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.errors import Busy, MailboxError, NotFound, Refused, StorageFailed
from tests.simulation import (
    clients,
    coordination,
    days,
    durability,
    hooks,
    hosts,
    meetings,
    policies,
    questions,
    reading,
    rich,
    sending,
    sessions,
    side_files,
    strangers,
    succession,
    tables,
    tasks,
    upkeep,
    watches,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

ROOMS = (
    *(sending, reading, hooks, sessions, upkeep, strangers, clients, questions, hosts, succession),
    *(meetings, policies, durability, tables, coordination, watches, tasks, side_files, rich, days),
)
"""The modules of commands."""
ROOM_OF = {name: room for room in ROOMS for name in room.COMMANDS}
"""The module of each command."""
WEIGHTS: tuple[tuple[str, float], ...] = (
    ("send", 10), ("send_many", 2), ("resend", 1), ("check", 9), ("peek", 1), ("ack", 3), ("release", 2), ("reply", 2),
    ("freeze", 0.7), ("retire", 0.3), ("register", 1.5), ("run_steward", 4.0), ("foreign", 1),
    ("damage", 1), ("wait", 0.5), ("hook", 5),
    ("lead", 1), ("ask", 1), ("decide", 1), ("back_up", 0.3), ("repair", 0.3), ("shim", 5), ("permit", 3),
)  # fmt: skip


def named(name: str) -> Callable[[Stage, Process, Session], object]:
    """The command of that name."""
    command: Callable[[Stage, Process, Session], object] = getattr(ROOM_OF[name], name)
    return command


def expected(error: BaseException, command: str, process: Process) -> bool:
    """May the command end with this error? A busy lock always; a failed call if one was made to fail."""
    if isinstance(error, Busy):
        return True
    if isinstance(error, StorageFailed):
        return process.hurt or process.world.disk.full or process.world.profile.lockless
    if isinstance(error, Refused) and command == "run_steward" and "the clock is" in str(error):
        return True  # nobody wrote anything for a day
    if isinstance(error, Refused | NotFound):
        return command in (
            "send",
            "send_many",
            "resend",
            "send_lost",
            "call",
            "attach",
            "launch",
            "reply",
            "register",
            "hook",
            "turn",
            *("join", "begin", "prompt", "lose", "answer", "use", "stop", "back"),
            "shim",
            "permit",
            "ask",
            "decide",
            "lead",
            "clear",
            "wake",
            "unwatch",
            "forbid",
            "relent",
            "meet",
            "post_around",
            "take",
            "browse",
            *("lead_anew", "end_turn", "post_many", "page_through", "add_note", "edit_noted"),
        )
    if isinstance(error, OSError):
        return (
            process.hurt
            or process.world.disk.full
            or command
            in ("foreign", "foreign_again", "foreign_note", "damage", "forget", "configure", "stand", "lose_notes")
        )
    return isinstance(error, MailboxError) and process.hurt
