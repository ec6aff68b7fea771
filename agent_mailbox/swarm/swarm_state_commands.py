"""``swarm``: the gateway's own state: its membership as a file, its key, its backup.

Belongs here: parsing and answering; see ``swarm_commands``.
"""

from __future__ import annotations

import sys

import click

from ..cli import mail_output
from ..cli.group import CommandGroup
from ..cli.output import write_bytes
from ..core import instant
from ..core.codec import BOM
from ..errors import BadData, Malformed, Refused
from ..store.files import standard_input
from ..store.files.small_files import make_file
from .swarm_commands import swarm
from .swarm_context import SwarmCommand, SwarmContext


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
    """Take a new key, and keep the old one aside. Leave every swarm first: to peers a key is the agent.

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
    from . import importing

    count = importing.take_state(door.ledger, read_file(source, 16 << 20, "state file"), how == "replace")
    door.app.print_done(f"imported {mail_output.count_noun(count, 'swarm')} ({how})\n", {"swarms": count, "how": how})
