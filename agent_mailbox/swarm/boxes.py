"""The mailboxes of a gateway, opened: each with the ledger as it sees it.

Belongs here: finding and opening them. The ledger says to which of them a swarm belongs
(``protocol.membership``).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

from ..errors import MailboxError
from ..mailbox.mailbox import Mailbox
from ..store.files import paths
from ..store.files.small_files import open_file
from . import pairing
from .gateway_log import log_event
from .home import Home
from .ledger import Ledger

Box = tuple[Mailbox, Ledger]


def state_of_places(home: Home) -> list[tuple[str, bool]]:
    """Return what changes when a mailbox is attached or detached, or goes or comes."""
    return [(place, _has_log(place)) for place in pairing.mailboxes_of(home)]


def _has_log(place: str) -> bool:
    """Return whether a mailbox's log can be read: it tells which mail was taken in."""
    try:
        os.close(open_file(os.path.join(place, paths.MESSAGES), os.O_RDONLY))
    except (MailboxError, OSError):
        return False
    return True


def ledger_of(home: Home) -> Ledger:
    """Return the ledger as the gateway itself sees it."""
    return Ledger(home, first=next(iter(pairing.mailboxes_of(home)), ""))


def open_boxes(home: Home, here: Mailbox) -> list[Box]:
    """Return the gateway's mailboxes that are there, ``here`` first, each opened again with its own view."""
    places, mine = pairing.mailboxes_of(home), place_of(here)
    if places in ([], [mine]):
        return [(Mailbox(here.directory), Ledger(home))]
    return [_open_box(home, mine, places[0]), *_open_other_boxes(home, mine, places)]


def _open_other_boxes(home: Home, mine: str, places: list[str]) -> Iterator[Box]:
    for place in places:
        if place == mine:
            continue
        try:
            if pairing.is_there(home, place) and _has_log(place):
                yield _open_box(home, place, places[0])
                continue
            code = "no_mailbox"
        except MailboxError as error:
            code = error.code
        log_event(logging.WARNING, "mailbox_not_there", mailbox=place, code=code)


def _open_box(home: Home, place: str, first: str) -> Box:
    return Mailbox(place), Ledger(home, here=place, first=first)


def place_of(mailbox: Mailbox) -> str:
    """Return the name by which the ledger knows a mailbox."""
    return os.path.realpath(mailbox.directory)
