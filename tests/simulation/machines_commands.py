"""Every command of a world of several machines by its name, and how it may end.

Belongs here: one door to the rooms of these commands, as ``commands`` is for one machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.errors import BadData, Busy, MailboxError, NotFound, Refused, StorageFailed
from tests.simulation import machines_joining, machines_mail, machines_sessions, machines_upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.machines_judge import Session
    from tests.simulation.machines_stage import Stage
    from tests.simulation.process import Process

COMMANDS: dict[str, Callable[[Stage, Process, Session], object]] = {
    "send": machines_mail.send,
    "call": machines_mail.call,
    "check": machines_mail.check,
    "hook": machines_mail.hook,
    "ack": machines_mail.ack,
    "release": machines_mail.release,
    "freeze": machines_sessions.freeze,
    "replicate": machines_upkeep.replicate,
    "run_steward": machines_upkeep.run_steward,
    "register": machines_sessions.register,
    "look": machines_mail.look,
    "mend": machines_upkeep.mend,
    "blind": machines_upkeep.blind,
    "join": machines_joining.join,
    "alone": machines_joining.alone,
    "rename": machines_sessions.rename,
    "order": machines_sessions.order,
    "forbid": machines_sessions.forbid,
    "mortals": machines_sessions.mortals,
    "retell": machines_upkeep.run_steward,
    "newcomer": machines_joining.newcomer,
    "trust": machines_joining.trust,
    "send_to": machines_mail.send_to,
    "post": machines_mail.post,
    "twin": machines_sessions.twin,
    "return": machines_mail.give_back,
    "foreign": machines_mail.foreign,
    "look_elsewhere": machines_sessions.look_elsewhere,
}


def expected(error: BaseException, command: str, process: Process, *, edited: bool = False) -> bool:
    """May the command end with this error?"""
    if isinstance(error, Busy):
        return not process.in_peace  # the engine out of reach is one
    if edited and isinstance(error, Refused | BadData):
        return command in ("trust", "run_steward")
    if isinstance(error, StorageFailed):
        return process.hurt or process.world.profile.lockless or process.world.profile.full > 0
    if isinstance(error, Refused | NotFound):
        return command in ("ack", "release", "return", "unclaim", "freeze", "run_steward")
    return isinstance(error, OSError | MailboxError) and process.hurt
