"""The pairing of a gateway and its mailboxes: a mailbox has one gateway, and a gateway one mailbox or several.

Belongs here: the two records of it, one in each directory. They count only while they agree, so a copy of either binds
nothing. Two gateways on one mailbox would answer for each other's mail and take everything in twice.
``mailbox.mailbox_gateway`` reads them.
"""

from __future__ import annotations

import os
from typing import Any

from ..core import codec
from ..errors import Refused
from ..mailbox import mailbox_gateway
from ..store.files import paths
from ..store.log.log import Log
from . import home as names
from .home import Home


def claim_mailbox(home: Home, mailbox: str) -> None:
    """Pair a gateway that has an identity with its first mailbox; idempotent.

    Raise ``Refused`` if the mailbox has another gateway, or the gateway another mailbox, that exists and names it too.
    """
    mine, here = os.path.realpath(home.directory), os.path.realpath(mailbox)
    if _is_paired(mine, here):
        return
    _check_unpaired(mine, here)
    if os.path.lexists(home.path_of(names.KEY)):
        _write_pairing(home, mine, here, {"mailbox": here})


def attach_mailbox(home: Home, mailbox: str) -> None:
    """Pair a gateway with a further mailbox; idempotent. Raise ``Refused`` if that has another gateway."""
    mine, here = os.path.realpath(home.directory), os.path.realpath(mailbox)
    if not _is_paired(mine, here):
        _check_home(mine, here)
        _write_pairing(home, mine, here, {"mailbox": here, "attached": True})


def detach_mailbox(home: Home, mailbox: str) -> None:
    """Take a further mailbox from its gateway. Raise ``Refused`` for the first one, and for one that is not paired."""
    mine, here = os.path.realpath(home.directory), os.path.realpath(mailbox)
    places = mailbox_gateway.places_of(mine)
    if here not in places:
        raise Refused(f"mailbox is not attached to gateway {mine}: {here}", "`agent-mailbox swarm status` tells them")
    if here == places[0]:
        raise Refused(
            f"mailbox is the first of gateway {mine}: {here}", "detach the others; this one has its own swarms"
        )
    with Log(home.path_of(mailbox_gateway.IN_HOME)).held() as ours:
        ours.append([codec.dumps({"detached": here}).encode() + b"\n"])


def mailboxes_of(home: Home) -> list[str]:
    """Return the mailboxes that a gateway names, the first one first; one may be away at this moment."""
    return mailbox_gateway.places_of(os.path.realpath(home.directory))


def is_there(home: Home, mailbox: str) -> bool:
    """Return whether a mailbox that the gateway names is there, and names the gateway, too."""
    return paths.is_mailbox(mailbox) and mailbox_gateway.named_home(mailbox) == os.path.realpath(home.directory)


def _is_paired(mine: str, here: str) -> bool:
    return mailbox_gateway.named_home(here) == mine and here in mailbox_gateway.places_of(mine)


def _write_pairing(home: Home, mine: str, here: str, said: dict[str, Any]) -> None:
    with (
        Log(home.path_of(mailbox_gateway.IN_HOME)).held() as ours,
        Log(os.path.join(here, mailbox_gateway.IN_MAILBOX)).held() as theirs,
    ):
        if "attached" not in said:
            _check_unpaired(mine, here)
        if here not in mailbox_gateway.places_of(mine):
            ours.append([codec.dumps(said).encode() + b"\n"])
        theirs.append([codec.dumps({"home": mine}).encode() + b"\n"])


def _check_unpaired(mine: str, here: str) -> None:
    _check_home(mine, here)
    for elsewhere in mailbox_gateway.places_of(mine):
        if elsewhere != here and paths.is_mailbox(elsewhere) and mailbox_gateway.named_home(elsewhere) == mine:
            raise Refused(
                f"gateway {mine} has another mailbox than {here}: {elsewhere}",
                "the person may add this one with `agent-mailbox swarm attach`; or use `--dir` or `--home DIR`",
            )


def _check_home(mine: str, here: str) -> None:
    other = mailbox_gateway.named_home(here)
    if (
        other not in (None, mine)
        and here in mailbox_gateway.places_of(str(other))
        and os.path.lexists(f"{other}/{names.KEY}")
    ):
        raise Refused(
            f"mailbox {here} has another gateway than {mine}: {other}",
            f"use `--home {other}`, or move that directory away so that this one takes its place",
        )
