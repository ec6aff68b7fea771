"""Which gateway is which mailbox's: one directory of a gateway, one mailbox.

Belongs here: the two records that say so, one in each, which count while they agree; a copy of either is bound to
nothing. Two gateways on one mailbox would each answer for mail that is the other's to carry, and take in everything
twice; one gateway for two mailboxes would leave the mail of one lying. Needs nothing of the extra, for the mailbox's
own doctor asks here.
"""

from __future__ import annotations

import os

from ..core import codec
from ..core.records import BadLine
from ..errors import MailboxError, Refused
from ..store import paths
from ..store.log import HeldLog, Log
from . import home as names
from .home import Home

IN_MAILBOX = "agent-swarm.jsonl"
"""In the mailbox: ``{"home": PATH}``; the last line counts."""
IN_HOME = "mailbox.jsonl"
"""In the gateway's directory: ``{"mailbox": PATH}``; likewise."""


def claim(home: Home, mailbox: str) -> None:
    """Make them each other's, if the gateway has an identity; again is no change.

    Raises ``Refused`` where either is another's: of a mailbox, or a gateway, that is still there and says so too.
    """
    mine, here = os.path.realpath(home.directory), os.path.realpath(mailbox)
    if _home(here) == mine and _mailbox(mine) == here:
        return
    _check(mine, here)
    if not os.path.lexists(home.path(names.KEY)):
        return
    with HeldLog(home.path(IN_HOME)) as ours, HeldLog(os.path.join(here, IN_MAILBOX)) as theirs:
        _check(mine, here)
        ours.append([codec.dumps({"mailbox": here}).encode() + b"\n"])
        theirs.append([codec.dumps({"home": mine}).encode() + b"\n"])


def gateway_of(mailbox: str) -> tuple[str, bool] | None:
    """The directory of the mailbox's gateway, as the mailbox says; it may be gone. And does that say so, too? What a
    mailbox says alone, which may have come from anywhere, is not to be believed."""
    here = os.path.realpath(mailbox)
    home = _home(here)
    return None if home is None else (home, _mailbox(home) == here)


def _check(mine: str, here: str) -> None:
    other = _home(here)
    if other not in (None, mine) and _mailbox(str(other)) == here and os.path.lexists(f"{other}/{names.KEY}"):
        raise Refused(
            f"the gateway of the mailbox {here} is {other}, not {mine}",
            f"--home {other}; or move that directory away, and this one takes its place",
        )
    elsewhere = _mailbox(mine)
    if elsewhere not in (None, here) and paths.is_mailbox(str(elsewhere)) and _home(str(elsewhere)) == mine:
        raise Refused(
            f"{mine} is the gateway of the mailbox {elsewhere}, not of {here}",
            f"--dir {elsewhere}; or --home DIR (AGENT_SWARM_HOME) for a gateway of this one's own",
        )


def _home(mailbox: str) -> str | None:
    return _last(os.path.join(mailbox, IN_MAILBOX), "home")


def _mailbox(home: str) -> str | None:
    return _last(os.path.join(home, IN_HOME), "mailbox")


def _last(path: str, key: str) -> str | None:
    """What the last line of a record says; None: nothing that could be read, or no path that one of ours could be."""
    said = None
    try:
        for _, text in Log(path).lines():
            one = codec.parse(text)
            place = None if isinstance(one, BadLine) else one.get(key)
            if isinstance(place, str) and os.path.isabs(place) and "\0" not in place:
                said = place
    except MailboxError:
        return None
    return said
