"""A message's receipt in words: by exception, so that what all have seen takes no room.

Belongs here: the sign and the sentence; ``core.expected_readers`` says who is an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.expected_readers import ReaderExceptions, find_exceptions
from ..core.message_reads import Reads
from ..core.records import USER, Message, Record
from ..core.roster import Roster
from ..mailbox.open_mailbox import UNSENT

MOST_NAMED = 3
"""Names in a sentence; the opened message has all."""
NONE, SOME, ALL_OF_THEM = "○", "◐", "✓"
"""The signs: nobody has seen it, some have not, everyone has."""


class Receipt(Record):
    """A sign and the words that say who has not seen a message. ``is_quiet``: there is no exception, so the sign alone
    is shown."""

    sign: str
    text: str
    is_quiet: bool


def describe_unsent(unsent: str) -> Receipt:
    """Return the receipt of mail that no other machine can see (``OpenMailbox.unsent``)."""
    return Receipt(NONE, f"{unsent}: {UNSENT[unsent]}", False)


def describe_receipt(message: Message, reads: Reads, roster: Roster, called: Callable[[str], str]) -> Receipt:
    """Return who has not seen a message that it was for; ``called`` names a session or an address."""
    found = find_exceptions(message, reads, roster)
    if found.is_none and found.seen:
        return Receipt(ALL_OF_THEM, f"{found.least} by {_name_some(found.seen, called)}", True)
    if found.is_none:
        is_mail = message.type not in ("note", "control")  # a board has the others, or the list of requests
        return Receipt(NONE, "it reaches nobody else", False) if is_mail else Receipt("", "", True)
    return Receipt(SOME if found.seen else NONE, "; ".join(_tell_exceptions(found, called)), False)


def list_unseen(message: Message, reads: Reads, roster: Roster) -> list[tuple[str, str]]:
    """Return each session without any receipt that is to see a message, and what to say of it."""
    found = find_exceptions(message, reads, roster)
    return [
        *((who, "not seen yet") for who in found.unseen),
        *((who, "not seen yet; one holder is enough") for _, holders in found.rivals for who in holders),
        *((who, "ended without seeing it") for who in found.ended),
    ]


def _tell_exceptions(found: ReaderExceptions, called: Callable[[str], str]) -> list[str]:
    agents = [who for who in found.unseen if who != USER]
    told = []
    if not (found.seen or found.offered or found.titles) and len(agents) > MOST_NAMED:
        told.append(f"none of {len(agents)} has seen it")
    elif agents:
        told.append(f"{_name_some(agents, called)} {'has' if len(agents) == 1 else 'have'} not seen it")
    if USER in found.unseen:
        told.append("you have not marked it as read")
    for role, holders in found.rivals:
        if not holders:
            told.append(f"it waits for {called(role)}")
        elif len(holders) == 1:
            told.append(f"{called(holders[0])} has not seen it")
        else:
            told.append(f"none of {_name_some(holders, called)} has seen it; one is enough")
    if found.offered:
        told.append(f"no sign yet that {_name_some(found.offered, called)} saw it")
    if found.titles:
        told.append(f"{_name_some(found.titles, called)} saw the title alone")
    if found.ended:
        told.append(f"{_name_some(found.ended, called)} ended without seeing it")
    return told


def _name_some(sessions: Sequence[str], called: Callable[[str], str]) -> str:
    """Return the first names, and how many more there are: ``Ada, Bo and Cleo``, ``Ada, Bo, Cleo and 4 more``."""
    names = [called(who) for who in sessions[:MOST_NAMED]]
    rest = len(sessions) - len(names)
    last = f"{rest} more" if rest else names.pop() if len(names) > 1 else ""
    return f"{', '.join(names)} and {last}" if last else ", ".join(names)
