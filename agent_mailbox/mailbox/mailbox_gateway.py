"""The swarm gateway of a mailbox, by the files that tell of it: which it is, whether it serves, and whom it reaches.

Belongs here: reading the two records of their pairing, one in each directory. They count only while they agree, so a
copy of either binds nothing. ``swarm.pairing`` writes them. And the refusal of mail that no gateway could carry, by the
gateway's note. That is derived from its ledger, which decides; mail to a swarm that is left later fails in the outbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import codec, misspelt
from ..core.address import swarm_of
from ..core.records import BadLine
from ..core.text import neutral, typed
from ..errors import MailboxError, NotFound
from ..store.files import paths, system
from ..store.files.small_files import read_if_possible
from ..store.locks.lock import is_held
from ..store.log.log import Log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..core.roster import Roster

IN_MAILBOX = paths.GATEWAY
"""In the mailbox: ``{"home": PATH}``, its gateway's directory; the last line counts."""
IN_HOME = "mailbox.jsonl"
"""In the gateway's directory: ``{"mailbox": PATH}`` names its only mailbox, and takes the place of all before; with
``"attached": true`` a further one. ``{"detached": PATH}`` takes it back."""
SERVING = "serving.lock"
"""The file in the gateway's directory that is locked while it serves."""
SERVED = "served"
"""In the gateway's directory: the words of the command that served last."""
PEERS = "peers.json"
"""In the gateway's directory: ``{ALIAS: {"mailbox": PATH, "agents": [ID]}}`` of the swarms that it is in. One that it
asks to join has no agents."""
_MOST_PEERS = 1 << 22


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


def serve_words(home: str) -> str:
    """Return the words that serve a gateway as it served last: with other options peers would not reach it.

    Somebody pastes them: ``home`` names the mailbox itself, or is empty.
    """
    said = (read_if_possible(system.join(home, SERVED), 4096) if home else None) or b"swarm serve"
    return neutral(said.decode("utf-8", "replace"))


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


def check_reachable(words: Iterable[str], roster: Roster, directory: str) -> None:
    """Raise ``NotFound`` for an address in a swarm that is no swarm of this mailbox, or has no such agent.

    Without a gateway the swarms are those that somebody here joined, and their agents are unknown.
    """
    home = named_home(directory)
    rows = None if home is None else swarms_at(home, directory)
    known: dict[str, list[str] | None] | None = None
    if rows is not None:
        known = {alias: one["agents"] for alias, one in rows.items() if isinstance(one.get("agents"), list)}
    if home is None:
        known = {tag[6:]: None for agent in roster.agents.values() for tag in agent.tags if tag.startswith("swarm:")}
    if known is None:
        return  # its gateway is of an earlier version, or away: the outbox tells what becomes of the mail
    for word in words:
        alias, agent = swarm_of(word) or ("", "")
        if alias not in known:
            what = "this mailbox has no gateway" if home is None else "this mailbox's gateway is not in it"
            raise _nobody(
                f"no swarm {alias!r} is known: {what}", f"swarm:{alias}", [f"swarm:{one}" for one in known], directory
            )
        agents = known[alias]
        if agent and agents is not None and agent not in agents:
            there = [f"swarm:{alias}/{one}" for one in agents]
            raise _nobody(f"swarm:{alias} has no other agent {agent!r}", word, there, directory)


def is_left(tag: str, directory: str) -> bool:
    """Return whether a tag is of a swarm that this mailbox's gateway is not in, and does not ask to join."""
    home = named_home(directory)
    rows = None if home is None else swarms_at(home, directory)
    return rows is not None and tag.removeprefix("swarm:") not in rows


def _nobody(what: str, word: str, known: list[str], directory: str) -> NotFound:
    meant = misspelt.nearly(word, known) or known[:8]
    hint = f"it reaches {', '.join(meant)}; " if meant else ""
    home, is_mutual = gateway_of(directory) or ("", False)
    if not home:  # without the extra, the command that shows all would be refused
        more = "`agent-mailbox swarm --help` lists the commands that make a gateway and join a swarm"
    else:
        place = f" --home {typed(home)}" if is_mutual else ""
        more = f"`agent-mailbox swarm status{place}` shows all"
    return NotFound(f"{what}, and the mail was not sent", f"{hint}{more}", code="unknown_recipient")


def swarms_at(home: str, directory: str) -> dict[str, dict[str, Any]] | None:
    """Return the gateway's note of each swarm of this mailbox; None if it tells none."""
    told = codec.parse(read_if_possible(system.join(home, PEERS), _MOST_PEERS) or b"", _MOST_PEERS, ours=False)
    if isinstance(told, BadLine):
        return None
    here = system.real_path(directory)
    return {alias: one for alias, one in told.items() if isinstance(one, dict) and one.get("mailbox") in ("", here)}
