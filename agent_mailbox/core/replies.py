"""The recipients of an answer to everyone.

Belongs here: ``reply --all`` (semantics, "Conversations"). ``compose`` resolves and checks the addresses like others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Refused
from .address import DIRECT, role_of
from .proofs import OURS

if TYPE_CHECKING:
    from .records import Message
    from .roster import Roster


def program_error(sender: str) -> Refused:
    """Return the error of an answer to a program of ours: nobody would read it."""
    return Refused(
        f"{sender} is a program of agent-mailbox, and reads no mail",
        "name who should have it with --to; `agent-mailbox roster list` shows the agents",
    )


def recipients(parent: Message, me: str, roster: Roster) -> tuple[list[str], list[str]]:
    """Return everyone the parent was for, its sender among them, once each; and the dead, who are left out.

    Oneself is left out, as is a role that one holds: the message has its holder. Raises ``Refused`` if nobody is left.
    """
    reader = roster.reader(me)
    found: dict[str, None] = {}
    dead: dict[str, None] = {}
    for stored in (parent.sender, *parent.recipients):
        if stored in OURS:
            continue
        word = stored.removeprefix("role:")
        address = word if word in parent.bare and roster.mode(word) == DIRECT else stored
        if address in reader.lineage or address == reader.name:
            continue
        mode = roster.mode(address)
        if mode == DIRECT:
            (found if roster.heirs_of(address) else dead)[address] = None
        elif role_of(address) not in reader.tags or not address.startswith("role:"):
            found[address] = None
    if not found and dead:
        names = ", ".join(agent.name or who for who in dead if (agent := roster.meant(who)) is not None)
        raise Refused(
            f"nobody is left to answer, for they are dead: {names}",
            "`agent-mailbox roster list` shows the living agents",
            code="dead_recipient",
        )
    if not found and parent.sender in OURS:
        raise program_error(parent.sender)
    if not found:
        raise Refused(
            "nobody is left to answer: the message is yours alone", "write to somebody else, as a new message"
        )
    return list(found), list(dead)
