"""Other machines' agents that mail can reach, as this mailbox's gateway tells them.

Belongs here: the gateway's note, and the refusal of mail that no gateway could carry. The note is derived from the
gateway's ledger, which decides; mail to a swarm that is left later still fails in the outbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import codec, misspelt
from ..core.address import swarm_of
from ..core.records import BadLine
from ..errors import NotFound
from ..store.files import system
from ..store.files.small_files import read_if_possible
from . import mailbox_gateway

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.roster import Roster

PEERS = "peers.json"
"""In the gateway's directory: ``{ALIAS: {"mailbox": PATH, "agents": [ID]}}`` of the swarms that it is in."""
_LONGEST = 1 << 22


def check(words: Iterable[str], roster: Roster, directory: str) -> None:
    """Raise ``NotFound`` for an address in a swarm that is no swarm of this mailbox, or has no such agent.

    Without a gateway the swarms are those that somebody here joined, and their agents are unknown.
    """
    home = mailbox_gateway.named_home(directory)
    known = None if home is None else _peers(home, directory)
    if home is None:
        known = {tag[6:]: None for agent in roster.agents.values() for tag in agent.tags if tag.startswith("swarm:")}
    if known is None:
        return  # its gateway is of an earlier version, or away: the outbox tells what becomes of the mail
    for word in words:
        alias, agent = swarm_of(word) or ("", "")
        if alias not in known:
            what = "this mailbox has no gateway" if home is None else "this mailbox's gateway is not in it"
            raise _nobody(
                f"no swarm {alias!r} is known: {what}", f"swarm:{alias}", [f"swarm:{one}" for one in known], home
            )
        agents = known[alias]
        if agent and agents is not None and agent not in agents:
            there = [f"swarm:{alias}/{one}" for one in agents]
            raise _nobody(f"swarm:{alias} has no other agent {agent!r}", word, there, home)


def _nobody(what: str, word: str, known: list[str], home: str | None) -> NotFound:
    meant = misspelt.nearly(word, known) or known[:8]
    hint = f"it reaches {', '.join(meant)}; " if meant else ""
    more = "`agent-mailbox swarm status` shows all"
    if home is None:  # without the extra, the command that shows all would be refused
        more = "`agent-mailbox swarm --help` lists the commands that make a gateway and join a swarm"
    return NotFound(f"{what}, and the mail was not sent", f"{hint}{more}", code="unknown_recipient")


def _peers(home: str, directory: str) -> Mapping[str, list[str] | None] | None:
    """Return the swarms of this mailbox, each with its agents elsewhere; None if the gateway tells none."""
    told = codec.parse(read_if_possible(system.join(home, PEERS), _LONGEST) or b"", _LONGEST, ours=False)
    if isinstance(told, BadLine):
        return None
    here = system.real_path(directory)
    rows = {alias: one for alias, one in told.items() if isinstance(one, dict) and one.get("mailbox") in ("", here)}
    return {alias: one["agents"] for alias, one in rows.items() if isinstance(one.get("agents"), list)}
