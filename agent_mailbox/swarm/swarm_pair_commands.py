"""``swarm pair``: two machines without a certificate authority.

Belongs here: parsing and answering; ``own_certificate`` says how an invitation's key takes the authority's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import Malformed
from .swarm_commands import join_by, read_invitation, swarm
from .swarm_context import SwarmCommand, SwarmContext, session_option

if TYPE_CHECKING:
    from .protocol.membership import Memberships, Swarm


PATIENCE = 10
"""Most seconds to wait for the other gateway: both may have been started just now."""


def _own_swarm(known: Memberships, word: str) -> Swarm | None:
    """Return the swarm that a word names here, if we are in it; by its name, which its master chooses, only our own."""
    here = [swarm for swarm in known.seen if swarm.state == "active"]
    named = [s for s in here if word in (s.alias, s.swarm_id)] or [
        s for s in here if s.name == word and s.master == known.agent_id
    ]
    return named[0] if named else None


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="SWARM|URL|-|@FILE")
@click.option("--as", "alias", metavar="WORD", help="With a URL: the swarm's alias here (default: from its name).")
@click.option(
    "--hours",
    metavar="N",
    type=click.FloatRange(0.01, 24),
    default=1,
    show_default=True,
    help="Hours until it expires.",
)
@session_option
def pair(door: SwarmContext, which: str, alias: str | None, hours: float, session: str | None) -> None:
    """Pair two gateways that serve with --self-signed. Print an invitation here, pass it to this command there.

    With a SWARM it makes the swarm if there is none, and an invitation for one agent. That has this gateway's key,
    and the other gateway trusts only a certificate that this key signed. Hand it on as a secret.
    """
    which = read_invitation(door, which)
    if which.startswith("swarm://"):
        from .protocol import tokens

        if tokens.parse_url(which).key is None:
            raise Malformed("invitation has no key", "join by it with `agent-mailbox swarm join URL`")
        join_by(door, which, alias, session, PATIENCE)
        return
    from . import decisions

    door.check_enter(session)
    word = which.removeprefix("swarm:")
    found = _own_swarm(door.ledger.identified_knowledge(), word) or decisions.create_swarm(door.ledger, word, {})
    url = decisions.make_invitation(door.ledger, found.swarm_id, 1, hours, keyed=True)
    who = door.enter_swarm(found.alias, session)
    door.app.print_answer(
        f"{url}\n",
        {"url": url, "hours": hours, "swarm": found.swarm_id, "address": f"swarm:{found.alias}", "session": who},
    )
