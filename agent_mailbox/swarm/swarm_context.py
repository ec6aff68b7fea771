"""The gateway's parts, opened as the commands of ``swarm`` need them.

Belongs here: finding the gateway's directory, carrying once, the joining and leaving of local agents; options. The
extra's libraries are imported when a command runs, so that nothing else pays for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ..cli.options import App, complete_session, pass_app
from ..core.records import USER
from ..core.roster_changes import Registration
from ..errors import Busy, NoMailbox, NotFound, Refused
from ..mailbox import mailbox_gateway
from ..mailbox.open_mailbox import nobody
from . import extra, pairing, swarm_settings
from .protocol.refusal import Refusal

if TYPE_CHECKING:
    from .home import Home
    from .ledger import Ledger
    from .outbox import Outbox
    from .peer_client import Peers
    from .protocol.membership import Swarm
    from .swarm_settings import GatewaySettings


class SwarmContext:
    """The gateway's parts, as a command needs them."""

    def __init__(self, app: App, directory: str | None) -> None:
        extra.require_extra()
        from . import home, ledger

        self.app = app
        if directory:
            app.given["--home"] = directory
        app.proves = nobody  # only mail passes here: it proves no writer
        self.home: Home = home.Home(directory or mailbox_gateway.default_home(app.environ))
        self.ledger: Ledger = ledger.Ledger(self.home)

    @property
    def settings(self) -> GatewaySettings:
        """Return the gateway's settings."""
        return swarm_settings.settings_of(self.app.mailbox.config, self.app.mailbox.own)

    def claim_mailbox(self) -> None:
        """Pair the gateway with the mailbox found from here (``pairing.claim_mailbox``), if any: a command that needs
        one says so itself."""
        try:
            mailbox = self.app.mailbox.directory
        except NoMailbox:
            mailbox = ""
        if mailbox:
            pairing.claim_mailbox(self.home, mailbox)
        self.look_from(mailbox)

    def look_from(self, mailbox: str) -> None:
        """See the swarms of one mailbox alone; outside every mailbox those of a gateway with one mailbox."""
        from .ledger import Ledger

        places = pairing.mailboxes_of(self.home)
        here = os.path.realpath(mailbox) if mailbox else os.sep
        is_alone = not places or places == [here] or (len(places) == 1 and not mailbox)
        self.ledger = Ledger(self.home) if is_alone else Ledger(self.home, here=here, first=places[0])

    def open_peers(self) -> Peers:
        """Return a client for peers."""
        from .peer_client import Peers

        return Peers.peers_from_settings(self.settings)

    def open_outbox(self, latest: int = 0) -> Outbox:
        """Return the outbox of this mailbox, which can list the latest parcels of each swarm."""
        from .outbox import Outbox

        return Outbox(self.home, self.app.mailbox, self.ledger, latest)

    def flush_outbox(self) -> bool:
        """Carry the outbox once; return False if a gateway is doing so."""
        from . import boxes, gateway_process, home
        from .carrier import Carrier
        from .outbox import Outbox

        self.ledger.identified_knowledge()
        outboxes = [Outbox(self.home, *one, 0) for one in boxes.open_boxes(self.home, self.app.mailbox)]

        async def flush_once() -> None:
            peers = self.open_peers()
            try:
                await Carrier(
                    self.home, boxes.ledger_of(self.home), outboxes, peers, self.settings
                ).try_everything_now()
            finally:
                await peers.aclose()

        try:
            with gateway_process.gateway_lock(self.home, home.CARRYING):
                import asyncio  # the help needs none

                asyncio.run(flush_once())
        except Busy:
            return False
        return True

    def enter_swarm(self, alias: str, session: str | None) -> str | None:
        """Let a local agent join: it carries the swarm's tag. Return its id; None for the person, who needs no tag."""
        who = self.app.session_for(session) if session or self._has_session() else USER
        if who == USER:
            return None
        self._change_tags(
            Registration(session_id=who, event="update", add_tags=(f"swarm:{alias}",)), self.app.acting_party(who)
        )
        return who

    def _change_tags(self, request: Registration, actor: str) -> None:
        """Change an agent's tags, with the proof of who calls: that is no mail from elsewhere."""
        self.app.proves, before = None, self.app.proves
        try:
            self.app.mailbox.register(request, actor)
        finally:
            self.app.proves = before

    def check_enter(self, session: str | None) -> None:
        """Raise what ``enter_swarm`` would before anything is decided: repeating a failed ``create`` would make a
        second swarm."""
        who = self.app.session_for(session) if session or self._has_session() else USER
        if who != USER and self.app.mailbox.logs.read_roster().get(who) is None:
            raise NotFound(
                f"agent not found: {who!r}", f"register it: `agent-mailbox roster register --session-id {who}`"
            )

    def exit_swarm(self, alias: str, session: str | None = None) -> list[str]:
        """Let a local agent leave, or all of them; return their ids."""
        tag = f"swarm:{alias}"
        roster = self.app.mailbox.logs.read_roster()
        agents = (
            [a.session_id for a in roster.carrying(tag, None)] if session is None else [self.app.session_for(session)]
        )
        for who in agents:
            self._change_tags(
                Registration(session_id=who, event="update", remove_tags=(tag,)), self.app.acting_party(who)
            )
        return agents

    def _has_session(self) -> bool:
        return self.app.caller.said_id(self.app.environ) not in (None, USER)


def home_option(command: Any) -> Any:
    """Add ``--home`` to a command."""
    said = "The gateway's directory (else AGENT_SWARM_HOME, else ~/.swarm)."
    return click.option("--home", metavar="DIR", help=said)(command)


def with_door(command: Callable[..., int | None]) -> Any:
    """Give the command its ``SwarmContext``; turn a refusal of the protocol into an error of the family."""

    @wraps(command)
    def run_command(app: App, /, home: str | None, **given: Any) -> int | None:
        door = SwarmContext(app, home)
        door.claim_mailbox()
        try:
            return command(door, **given)
        except Refusal as refusal:
            raise Refused(refusal.message, "", code=refusal.code.lower()) from None

    return home_option(pass_app(run_command))


def session_option(command: Any) -> Any:
    """Add ``--session``: the local agent that the command is about."""
    return click.option(
        "--session",
        metavar="ID",
        help="The local agent (default: the client's session).",
        shell_complete=complete_session,
    )(command)


def swarm_json(one: Swarm, me: str) -> dict[str, Any]:
    """Return a swarm's object in ``--json``."""
    return {
        "swarm_id": one.swarm_id,
        "name": one.name,
        "address": f"swarm:{one.alias}",
        "master": one.master,
        "state": one.state,
        "is_master": one.master == me,
        "members": [m.object for m in one.members.values()],
        "waiting": [asked.object for asked, _ in one.waiting.values()],
        "settings": dict(one.settings),
        "joined_at": one.joined_at,
    }
