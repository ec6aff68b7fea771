"""``swarm``: the gateway's own state: its membership as a file, its key, its backup, and pairing by its key.

Belongs here: parsing and answering; see ``swarm_commands``. ``peer_client`` says how an invitation's key takes the
place of a certificate authority.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..cli import mail_output
from ..cli.group import CommandGroup
from ..cli.output import write_bytes
from ..core import instant
from ..core.codec import BOM
from ..errors import BadData, Malformed, Refused
from ..store.files import standard_input
from ..store.files.small_files import make_file
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
def pair(door: SwarmContext, which: str, alias: str | None, hours: float) -> None:
    """Pair two gateways that serve with --self-signed. Print an invitation here, pass it to this command there.

    With a SWARM it makes the swarm if there is none, and an invitation for one agent. That has this gateway's key,
    and the other gateway trusts only a certificate that this key signed. Hand it on as a secret.
    """
    which = read_invitation(door, which)
    if which.startswith("swarm://"):
        from .protocol import tokens

        if tokens.parse_url(which).key is None:
            raise Malformed("invitation has no key", "join by it with `agent-mailbox swarm join URL`")
        join_by(door, which, alias, PATIENCE)
        return
    from . import decisions

    door.check_enter()
    word = which.removeprefix("swarm:")
    found = _own_swarm(door.ledger.identified_knowledge(), word) or decisions.create_swarm(door.ledger, word, {})
    url = decisions.make_invitation(door.ledger, found.swarm_id, 1, hours, keyed=True)
    who = door.enter_swarm(found.alias)
    door.app.print_answer(
        f"{url}\n",
        {"url": url, "hours": hours, "swarm": found.swarm_id, "address": f"swarm:{found.alias}", "session": who},
    )


def read_file(source: str, most: int, what: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``. Raise ``BadData`` if there are more than ``most``."""
    try:
        if source == "-":
            data = standard_input.read_all(most + 1)
        else:
            with open(source, "rb") as file:
                data = file.read(most + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Malformed(f"{what} unreadable: {source} ({why})", f"pass the path of a {what}") from None
    if len(data) > most:
        raise BadData(f"{what} too large: {source} (over {most} bytes)", f"pass a real {what}", code="too_large")
    return data.removeprefix(BOM)


@swarm.command("new-key", cls=SwarmCommand)
def new_key(door: SwarmContext) -> None:
    """Take a new key, and keep the old one aside. Leave every swarm first: to peers a key is the agent. Stop `swarm
    serve`, too, which goes on with the key that it read.

    Without the old key nobody can leave: memberships under a lost key end here, and their masters kick the old agent.
    """
    from . import gateway_identity

    key, ended = gateway_identity.take_new_key(door.ledger)
    mark = gateway_identity.key_fingerprint(key)
    gone = "".join(f"no longer in swarm:{alias}; ask its master to kick the old key\n" for alias in ended)
    door.app.print_done(f"key {key}\n    {mark}\n{gone}", {"public_key": key, "fingerprint": mark, "ended": ended})


@swarm.command(cls=SwarmCommand)
@click.argument("target", metavar="FILE")
def backup(door: SwarmContext, target: str) -> None:
    """Write key and ledger into a new FILE. Its mode is 0600. `-` is standard output, for a program that encrypts.

    The file is as secret as the key. Never let two machines serve from one.
    """
    from . import gateway_identity

    data = gateway_identity.make_backup(door.ledger)
    if target != "-":
        if not make_file(target, data):
            raise Refused(f"file exists: {target}", "name a new one")
        door.app.print_done(f"wrote {target}; it holds the private key\n", {"file": target, "bytes": len(data)})
        return
    if sys.stdout.isatty():
        raise Refused("gateway backup holds the private key: a terminal would show it", "pipe it into a program")
    write_bytes(data)


@swarm.command(cls=SwarmCommand)
@click.argument("source", metavar="FILE")
def restore(door: SwarmContext, source: str) -> None:
    """Restore key and ledger from a backup; - reads standard input.

    A ledger that is there already stays. A gateway that was restored asks its masters again who is in their swarms.
    """
    from . import gateway_identity

    data = read_file(source, gateway_identity.MAX_BACKUP, "gateway backup")
    known = gateway_identity.restore_backup(door.ledger, data)
    door.claim_mailbox()
    value = {"agent_id": known.agent_id, "endpoint": known.endpoint, "home": door.home.directory}
    door.app.print_done(f"restored {known.agent_id} at {known.endpoint}\n", value)


@swarm.group(cls=CommandGroup)
def state() -> None:
    """Save or restore the membership as a file. It serves as a backup, or for another host."""


@state.command(cls=SwarmCommand, prints_json=False)
def export(door: SwarmContext) -> None:
    """Write the state file (schema 1.0.0) to standard output. It holds no private key."""
    from . import state_file

    now = instant.text(door.ledger.now())
    door.app.write_answer(mail_output.json_document(state_file.export_state(door.ledger.identified_knowledge(), now)))


@state.command("import", cls=SwarmCommand)
@click.argument("source", metavar="FILE")
@click.option(
    "--merge", "how", flag_value="merge", default="merge", help="Add the file's swarms to the known ones (default)."
)
@click.option("--replace", "how", flag_value="replace", help="Replace the known swarms by the file's.")
def take(door: SwarmContext, source: str, how: str) -> None:
    """Import a state file of this same agent. It is checked against its schema; - reads standard input."""
    from . import decisions

    count = decisions.take_state(door.ledger, read_file(source, 16 << 20, "state file"), how == "replace")
    door.app.print_done(f"imported {mail_output.count_noun(count, 'swarm')} ({how})\n", {"swarms": count, "how": how})
