"""The pairing of a gateway and a mailbox: each has exactly one of the other.

Belongs here: the two records of it, one in each directory. They count only while they agree, so a copy of either binds
nothing. Two gateways on one mailbox would answer for each other's mail and take everything in twice. A gateway with two
mailboxes would carry the mail of one only. Nothing here needs the extra: the mailbox's doctor calls it.
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
"""In the gateway's directory: ``{"mailbox": PATH}``; the last line counts, too."""


def claim(home: Home, mailbox: str) -> None:
    """Pair them, if the gateway has an identity; idempotent.

    Raise ``Refused`` if either is paired with another mailbox or gateway that still exists and names it too.
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
    """Return (the gateway directory that the mailbox names, whether that names the mailbox too); None if it names none.

    The directory may be gone. Believe only a mutual record: the mailbox's own may come from anywhere.
    """
    here = os.path.realpath(mailbox)
    home = _home(here)
    return None if home is None else (home, _mailbox(home) == here)


def _check(mine: str, here: str) -> None:
    other = _home(here)
    if other not in (None, mine) and _mailbox(str(other)) == here and os.path.lexists(f"{other}/{names.KEY}"):
        raise Refused(
            f"mailbox {here} has another gateway than {mine}: {other}",
            f"use `--home {other}`, or move that directory away so that this one takes its place",
        )
    elsewhere = _mailbox(mine)
    if elsewhere not in (None, here) and paths.is_mailbox(str(elsewhere)) and _home(str(elsewhere)) == mine:
        raise Refused(
            f"gateway {mine} has another mailbox than {here}: {elsewhere}",
            f"use `--dir {elsewhere}`, or `--home DIR` (AGENT_SWARM_HOME) to give this mailbox its own gateway",
        )


def _home(mailbox: str) -> str | None:
    return _last(os.path.join(mailbox, IN_MAILBOX), "home")


def _mailbox(home: str) -> str | None:
    return _last(os.path.join(home, IN_HOME), "mailbox")


def _last(path: str, key: str) -> str | None:
    """Return the last absolute path under ``key`` in a record file; None if it is unreadable or has none."""
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
