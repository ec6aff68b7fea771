"""The pairing of a gateway and its mailboxes: a mailbox has one gateway, and a gateway one mailbox or several.

Belongs here: the two records of it, one in each directory. They count only while they agree, so a copy of either binds
nothing. Two gateways on one mailbox would answer for each other's mail and take everything in twice. Nothing here needs
the extra: the mailbox's doctor calls it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..core import codec
from ..core.records import BadLine
from ..errors import MailboxError, Refused
from ..mailbox.reachable import IN_MAILBOX as IN_MAILBOX
from ..store import paths
from ..store.lock import is_held
from ..store.log import HeldLog, Log
from . import home as names
from .home import Home

IN_HOME = "mailbox.jsonl"
"""In the gateway's directory: ``{"mailbox": PATH}`` names its only mailbox, and takes the place of all before; with
``"attached": true`` a further one. ``{"detached": PATH}`` takes it back."""


def claim(home: Home, mailbox: str) -> None:
    """Pair a gateway that has an identity with its first mailbox; idempotent.

    Raise ``Refused`` if the mailbox has another gateway, or the gateway another mailbox, that exists and names it too.
    """
    mine, here = os.path.realpath(home.directory), os.path.realpath(mailbox)
    if _is_paired(mine, here):
        return
    _check(mine, here)
    if os.path.lexists(home.path(names.KEY)):
        _pair(home, mine, here, {"mailbox": here})


def attach(home: Home, mailbox: str) -> None:
    """Pair a gateway with a further mailbox; idempotent. Raise ``Refused`` if that has another gateway."""
    mine, here = os.path.realpath(home.directory), os.path.realpath(mailbox)
    if not _is_paired(mine, here):
        _check_home(mine, here)
        _pair(home, mine, here, {"mailbox": here, "attached": True})


def detach(home: Home, mailbox: str) -> None:
    """Take a further mailbox from its gateway. Raise ``Refused`` for the first one, and for one that is not paired."""
    mine, here = os.path.realpath(home.directory), os.path.realpath(mailbox)
    places = _places(mine)
    if here not in places:
        raise Refused(f"mailbox is not attached to gateway {mine}: {here}", "`agent-mailbox swarm status` tells them")
    if here == places[0]:
        raise Refused(
            f"mailbox is the first of gateway {mine}: {here}", "detach the others; this one has its own swarms"
        )
    with HeldLog(home.path(IN_HOME)) as ours:
        ours.append([codec.dumps({"detached": here}).encode() + b"\n"])


def mailboxes(home: Home) -> list[str]:
    """Return the mailboxes that a gateway names, the first one first; one may be away at this moment."""
    return _places(os.path.realpath(home.directory))


def is_there(home: Home, mailbox: str) -> bool:
    """Return whether a mailbox that the gateway names is there, and names the gateway, too."""
    return paths.is_mailbox(mailbox) and _home(mailbox) == os.path.realpath(home.directory)


def gateway_of(mailbox: str) -> tuple[str, bool] | None:
    """Return (the gateway directory that the mailbox names, whether that names the mailbox too); None if it names none.

    The directory may be gone. Believe only a mutual record: the mailbox's own may come from anywhere.
    """
    here = os.path.realpath(mailbox)
    home = _home(here)
    return None if home is None else (home, here in _places(home))


def elsewhere(mailbox: str, environ: Mapping[str, str]) -> str | None:
    """Return the mailbox's gateway directory, if that is not where commands look by themselves."""
    home, is_mutual = gateway_of(mailbox) or ("", False)
    return home if is_mutual and home != os.path.realpath(names.default(environ)) else None


def is_served(mailbox: str) -> bool:
    """Return whether the mailbox's gateway serves at this moment."""
    home, is_mutual = gateway_of(mailbox) or ("", False)
    return is_mutual and is_held(os.path.join(home, names.SERVING))


def _is_paired(mine: str, here: str) -> bool:
    return _home(here) == mine and here in _places(mine)


def _pair(home: Home, mine: str, here: str, said: dict[str, Any]) -> None:
    with HeldLog(home.path(IN_HOME)) as ours, HeldLog(os.path.join(here, IN_MAILBOX)) as theirs:
        if "attached" not in said:
            _check(mine, here)
        if here not in _places(mine):
            ours.append([codec.dumps(said).encode() + b"\n"])
        theirs.append([codec.dumps({"home": mine}).encode() + b"\n"])


def _check(mine: str, here: str) -> None:
    _check_home(mine, here)
    for elsewhere in _places(mine):
        if elsewhere != here and paths.is_mailbox(elsewhere) and _home(elsewhere) == mine:
            raise Refused(
                f"gateway {mine} has another mailbox than {here}: {elsewhere}",
                "the person may add this one with `agent-mailbox swarm attach`; or use `--dir` or `--home DIR`",
            )


def _check_home(mine: str, here: str) -> None:
    other = _home(here)
    if other not in (None, mine) and here in _places(str(other)) and os.path.lexists(f"{other}/{names.KEY}"):
        raise Refused(
            f"mailbox {here} has another gateway than {mine}: {other}",
            f"use `--home {other}`, or move that directory away so that this one takes its place",
        )


def _home(mailbox: str) -> str | None:
    said = [one["home"] for one in _said(os.path.join(mailbox, IN_MAILBOX), "home")]
    return str(said[-1]) if said else None


def _places(home: str) -> list[str]:
    """Return the mailboxes that a gateway's own record names."""
    places: list[str] = []
    for one in _said(os.path.join(home, IN_HOME), "mailbox", "detached"):
        if "detached" in one:
            places = [place for place in places if place != one["detached"]]
        elif one.get("attached") is not True:
            places = [one["mailbox"]]
        elif one["mailbox"] not in places:
            places.append(one["mailbox"])
    return places


def _said(path: str, *keys: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a file that hold an absolute path under one of the keys; none if it is unreadable."""
    try:
        for _, text in Log(path).lines():
            one = codec.parse(text)
            place = None if isinstance(one, BadLine) else next((one[key] for key in keys if key in one), None)
            if not isinstance(one, BadLine) and isinstance(place, str) and os.path.isabs(place) and "\0" not in place:
                yield one
    except MailboxError:
        return
