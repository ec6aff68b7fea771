"""The swarm gateway of a mailbox, as far as both records of their pairing tell: which it is, and whether it serves.

Belongs here: reading the two records, one in each directory. They count only while they agree, so a copy of either
binds nothing. ``swarm.pairing`` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import codec
from ..core.records import BadLine
from ..errors import MailboxError
from ..store.files import paths, system
from ..store.locks.lock import is_held
from ..store.log.log import Log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IN_MAILBOX = paths.GATEWAY
"""In the mailbox: ``{"home": PATH}``, its gateway's directory; the last line counts."""
IN_HOME = "mailbox.jsonl"
"""In the gateway's directory: ``{"mailbox": PATH}`` names its only mailbox, and takes the place of all before; with
``"attached": true`` a further one. ``{"detached": PATH}`` takes it back."""
SERVING = "serving.lock"
"""The file in the gateway's directory that is locked while it serves."""


def default_home(environ: Mapping[str, str]) -> str:
    """Return ``AGENT_SWARM_HOME``, else the founding text's place, ``~/.swarm``."""
    named = environ.get("AGENT_SWARM_HOME")
    return system.absolute(named) if named else system.join(environ.get("HOME") or system.home(), ".swarm")


def gateway_of(mailbox: str) -> tuple[str, bool] | None:
    """Return (the gateway directory that the mailbox names, whether that names the mailbox too); None if it names none.

    The directory may be gone. Believe only a mutual record: the mailbox's own may come from anywhere.
    """
    here = system.real_path(mailbox)
    home = named_home(here)
    return None if home is None else (home, here in places_of(home))


def elsewhere(mailbox: str, environ: Mapping[str, str]) -> str | None:
    """Return the mailbox's gateway directory, if that is not where commands look by themselves."""
    home, is_mutual = gateway_of(mailbox) or ("", False)
    return home if is_mutual and home != system.real_path(default_home(environ)) else None


def is_served(mailbox: str) -> bool:
    """Return whether the mailbox's gateway serves at this moment."""
    home, is_mutual = gateway_of(mailbox) or ("", False)
    return is_mutual and is_held(system.join(home, SERVING))


def named_home(mailbox: str) -> str | None:
    """Return the gateway directory that a mailbox names, mutual or not."""
    said = [one["home"] for one in _said(system.join(mailbox, IN_MAILBOX), "home")]
    return str(said[-1]) if said else None


def places_of(home: str) -> list[str]:
    """Return the mailboxes that a gateway's own record names."""
    places: list[str] = []
    for one in _said(system.join(home, IN_HOME), "mailbox", "detached"):
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
            if not isinstance(one, BadLine) and isinstance(place, str) and place.startswith("/") and "\0" not in place:
                yield one
    except MailboxError:
        return
