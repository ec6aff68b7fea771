"""A gateway's identity: its name, and the one key by which its swarms know it.

Belongs here: making it, holding the key to what the swarms pinned, taking a new key, backup and restore. A key is
pinned for as long as its agent is a member: so a new one begins with new memberships.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha512
from typing import TYPE_CHECKING

from pydantic import Field

from ..core import instant
from ..errors import BadData, Malformed, NotFound, Refused
from ..store.files.small_files import Storing, make_whole_file, read_file
from ..store.files.system import sync_directory
from ..store.log.log import Log
from . import home as names
from .home import Home, key_in
from .ledger import Ledger, each_event, events_of
from .protocol import signing, wire
from .protocol.envelope import Model
from .protocol.membership import ACTIVE, LEFT, Event, Memberships, Swarm, fold_events

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_BACKUP = 64 << 20
"""Most bytes of a backup: the ledger grows with every change of a member."""
_GROUPS = 6
RESTORE = "run `agent-mailbox swarm restore FILE` with its backup, or, if there is none, `agent-mailbox swarm new-key`"
"""The hint for a key that is lost."""


class GatewayBackup(Model):
    """A backup file: all that makes a gateway itself. Mail is in the mailbox, which has a backup of its own."""

    version: int = Field(1, alias="gateway_backup", ge=1, le=1)
    key: str
    ledger: list[str]


def key_fingerprint(public_key: str) -> str:
    """Return six groups of five digits (100 bits) that stand for a public key: two people compare them by voice."""
    digest = sha512(b"agent-mailbox gateway key 1\n" + wire.raw_key(public_key)).digest()
    groups = (int.from_bytes(digest[5 * n : 5 * n + 5]) % 100_000 for n in range(_GROUPS))
    return " ".join(f"{group:05}" for group in groups)


def swarms_with_other_key(known: Memberships, public_key: str | None) -> list[Swarm]:
    """Return the swarms that we are in under another key than this one (None: there is none)."""
    return [
        swarm
        for swarm in known.swarms.values()
        if swarm.state == ACTIVE
        and (me := swarm.members.get(known.agent_id)) is not None
        and me.public_key not in ("", public_key)
    ]


def key_of(ledger: Ledger) -> Ed25519PrivateKey:
    """Return the gateway's key. Raise ``Refused`` if it is missing, or is not the one that our swarms know."""
    home, known = ledger.home, ledger.identified_knowledge()
    if not os.path.lexists(home.path_of(names.KEY)):
        raise _lost_key_error("missing", home, swarms_with_other_key(known, None))
    key = home.read_key()
    if others := swarms_with_other_key(known, signing.public_of(key)):
        raise _lost_key_error("is not the one that its swarms know", home, others)
    return key


def _lost_key_error(how: str, home: Home, swarms: Sequence[Swarm]) -> Refused:
    of = f" (swarms: {_join_aliases(swarms)})" if swarms else ""
    return Refused(f"gateway key {how}: {home.path_of(names.KEY)}{of}", RESTORE, code="key_lost")


def _join_aliases(swarms: Sequence[Swarm]) -> str:
    return ", ".join(swarm.alias for swarm in swarms)


def initialise_gateway(ledger: Ledger, agent_id: str, endpoint: str) -> str:
    """Give the gateway its identity; return the public key. Idempotent.

    Raise ``Refused`` if its swarms know a key that is no longer here: peers would not recognise a new one.
    """
    if not wire.is_admissible(agent_id):
        raise Malformed(
            f"agent id invalid: {agent_id!r}",
            "use ASCII letters, digits or . _ @ + -, but no reserved word and no ending message, system, notification",
        )
    try:
        endpoint = wire.check_endpoint(endpoint)
    except ValueError as error:
        raise Malformed(
            f"endpoint invalid: {endpoint!r} ({error})", "write https://HOST/swarm, as peers reach it"
        ) from None
    before = ledger.read_knowledge()
    if before.agent_id and (swarms_with_other_key(before, None) or os.path.lexists(ledger.home.path_of(names.KEY))):
        key_of(ledger)
    key = ledger.home.make_key()

    def identity_events(known: Memberships) -> Sequence[Event]:
        if (known.agent_id, known.endpoint) == (agent_id, endpoint):
            return ()
        if known.swarms and any(swarm.state == ACTIVE for swarm in known.swarms.values()):
            raise Refused(
                f"gateway identity is in use by its swarms: {known.agent_id}",
                "run `agent-mailbox swarm leave SWARM` for each, or use another `--home DIR`",
            )
        return (ledger.make_event("identity", agent_id=agent_id, endpoint=endpoint),)

    ledger.append_decided(identity_events)
    return signing.public_of(key)


def take_new_key(ledger: Ledger) -> tuple[str, list[str]]:
    """Give the gateway a new key; return (the public key, the aliases of the swarms that it is no longer in).

    Raise ``Refused`` while a swarm knows the present key: leave it first, and it forgets the key. A leaving that is
    still on its way is signed by the old one (``Carrier``). Raise ``Busy`` while the gateway serves. Memberships under
    a key that is lost end here; their masters have to kick the old one before this agent can join again.
    """
    home = ledger.home
    present = signing.public_of(home.read_key()) if os.path.lexists(home.path_of(names.KEY)) else None

    def new_key_events(known: Memberships) -> tuple[Sequence[Event], list[str]]:
        lost = swarms_with_other_key(known, present)
        ours = [s for s in known.swarms.values() if s.state == ACTIVE and s not in lost]
        if ours:
            raise Refused(
                f"gateway key is known to its swarms: {_join_aliases(ours)}",
                "run `agent-mailbox swarm leave SWARM` for each, take the new key, and join by new invitations",
            )
        events = [ledger.make_event("ended", swarm_id=swarm.swarm_id, how=LEFT) for swarm in lost]
        return events, [swarm.alias for swarm in lost]

    new_key_events(ledger.identified_knowledge())  # refused first, whether or not it serves
    with home.hold_serving():
        _, ended = ledger.settle_decision(new_key_events)
        if present is not None:
            _put_key_aside(home, ledger.now())
        return signing.public_of(home.make_key()), ended


def _put_key_aside(home: Home, now: int) -> None:
    aside = home.path_of(f"{names.PAST}{instant.text(now)}")
    with Storing("move the key", home.path_of(names.KEY)):
        os.rename(home.path_of(names.KEY), aside)
        sync_directory(home.directory)


def make_backup(ledger: Ledger) -> bytes:
    """Return a backup's bytes: they hold the private key."""
    key_of(ledger)
    key = (read_file(ledger.home.path_of(names.KEY)) or b"").decode("ascii")
    lines = [wire.dump_json(event) for _, event in each_event(Log(ledger.home.path_of(names.LEDGER)).lines())]
    return wire.dump_json({"gateway_backup": 1, "key": key, "ledger": lines}).encode("utf-8") + b"\n"


def restore_backup(ledger: Ledger, data: bytes) -> Memberships:
    """Put a backup's key, and its ledger where there is none, into the directory; return what the gateway knows.

    Raise ``Refused`` if a key is there, or if the swarms in the ledger that is there know another; ``BadData`` for what
    is no backup. The key comes last: a process killed earlier has restored nothing that counts.
    """
    try:
        value = GatewayBackup.model_validate_json(data)
        lines = [line.encode("utf-8") for line in value.ledger]
        pem = value.key.encode("ascii")
        if (key := key_in(pem)) is None:
            raise ValueError("no key")
    except ValueError:  # pydantic's is one, too
        raise BadData("gateway backup invalid", "pass a file that `agent-mailbox swarm backup` wrote") from None
    home = ledger.home
    home.ensure_directory()
    if os.path.lexists(home.path_of(names.KEY)):
        raise Refused(f"gateway key exists: {home.path_of(names.KEY)}", "restore into another `--home DIR`")
    with Log(home.path_of(names.LEDGER)).held() as log:
        is_new = not os.fstat(log.fd).st_size
        known = fold_events(events_of(enumerate(lines))) if is_new else ledger.read_knowledge()
        if not known.agent_id:
            raise NotFound("gateway backup has no identity", "pass a file that `agent-mailbox swarm backup` wrote")
        if others := swarms_with_other_key(known, signing.public_of(key)):
            raise Refused(
                f"gateway backup holds another key than its swarms know: {_join_aliases(others)}",
                "pass a later backup of this gateway, or restore into another `--home DIR`",
            )
        if is_new:
            log.append([line + b"\n" for line in lines])
            log.sync()
    make_whole_file(home.path_of(names.KEY), pem)
    ledger.write_state()
    return known
