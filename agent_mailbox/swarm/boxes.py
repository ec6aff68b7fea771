"""The mailboxes of a gateway, opened: each with the ledger as it sees it.

Belongs here: finding and opening them, and keeping one that fails from the others. The ledger says to which of them a
swarm belongs (``protocol.membership``).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import MailboxError, NoMailbox
from ..mailbox.mailbox import Mailbox
from ..store.files import paths
from ..store.files.small_files import Storing, open_file
from . import pairing
from .gateway_log import log_event
from .home import Home
from .ledger import Ledger

Box = tuple[Mailbox, Ledger]


def ledger_of(home: Home) -> Ledger:
    """Return the ledger as the gateway itself sees it."""
    return Ledger(home, first=next(iter(pairing.mailboxes_of(home)), ""))


def places_there(home: Home, here: str) -> list[str]:
    """Return the gateway's mailboxes that are there, ``here`` first."""
    mine = os.path.realpath(here)
    return [here, *(place for place in pairing.mailboxes_of(home) if place != mine and not why_away(home, place))]


def why_away(home: Home, place: str) -> str:
    """Return the code of why a mailbox counts as away; empty if it names the gateway, too, and can be read."""
    try:
        paths.check(place)
        os.close(open_file(os.path.join(place, paths.MESSAGES), os.O_RDONLY))
    except MailboxError as error:
        return error.code
    except FileNotFoundError:
        return NoMailbox.code
    return "" if pairing.is_there(home, place) else NoMailbox.code


def open_boxes(home: Home, places: list[str]) -> list[Box]:
    """Return the mailboxes at ``places_there``, each opened again with its own view, less those that are gone again.

    Raise what keeps the first one from being opened.
    """
    named = pairing.mailboxes_of(home)
    if named in ([], [os.path.realpath(places[0])]):
        return [(Mailbox(places[0]), Ledger(home))]
    found: list[Box] = []
    for place in map(os.path.realpath, places):
        try:
            found.append((Mailbox(place), Ledger(home, here=place, first=named[0])))
        except MailboxError as error:
            if not found:
                raise
            log_event(logging.WARNING, "mailbox_not_there", mailbox=place, code=error.code)
    return found


def place_of(mailbox: Mailbox) -> str:
    """Return the name by which the ledger knows a mailbox."""
    return os.path.realpath(mailbox.directory)


def told_of(mailbox: Mailbox) -> Storing:
    """Tell what the system refuses in the block as a failure of that mailbox: a gateway goes on with the others."""
    return Storing("use the mailbox", mailbox.directory)


@contextmanager
def apart(mailbox: Mailbox, event: str) -> Iterator[None]:
    """Log what fails below under a mailbox's name; the gateway goes on with the others, and tries it again."""
    try:
        with told_of(mailbox):
            yield
    except MailboxError as error:
        log_event(logging.WARNING, event, mailbox=mailbox.directory, code=error.code)
