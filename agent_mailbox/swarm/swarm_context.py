"""The gateway's parts, opened as the commands of ``swarm`` need them.

Belongs here: finding the gateway's directory, asking peers, carrying once, the joining and leaving of local agents;
what all commands share. The extra's libraries are imported when a command runs, so that nothing else pays for them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..cli.options import App, CommandWithOptions, option_of_session, pass_app
from ..core.records import USER
from ..core.roster_changes import Registration
from ..errors import Busy, NoMailbox, NotFound, Refused
from ..mailbox import mailbox_gateway
from ..mailbox.open_mailbox import nobody
from ..store.locks.lock import FileLock
from ..upkeep import extras
from . import EXTRA, pairing, swarm_settings
from .protocol.refusal import Refusal

if TYPE_CHECKING:
    from .home import Home
    from .ledger import Ledger
    from .outbox import Outbox
    from .peer_client import Peers
    from .protocol.membership import Swarm
    from .swarm_settings import GatewaySettings

T = TypeVar("T")
COPY_WHOLE = "copy the whole line that `swarm pair` or `swarm invite` printed: swarm://…"


class SwarmContext:
    """The gateway's parts, as a command needs them."""

    def __init__(self, app: App, directory: str | None) -> None:
        extras.refuse_missing("swarm", "the swarm", EXTRA)
        from . import home, ledger

        self.app = app
        if directory:
            app.given["--home"] = directory
        app.proves = nobody  # only mail passes here: it proves no writer
        self.home: Home = home.Home(directory or mailbox_gateway.default_home(app.environ))
        self.ledger: Ledger = ledger.Ledger(self.home)

    @property
    def settings(self) -> GatewaySettings:
        return swarm_settings.settings_of(self.app.mailbox.config, self.app.mailbox.own)

    def claim_mailbox(self) -> None:
        """Pair the gateway with the mailbox found from here (``pairing.claim_mailbox``), if any: a command that needs
        one says so itself. See its swarms alone; outside every mailbox those of a gateway with one mailbox."""
        from .ledger import Ledger

        try:
            mailbox = self.app.mailbox.directory
        except NoMailbox:
            mailbox = ""
        else:
            pairing.claim_mailbox(self.home, mailbox)
        places = pairing.mailboxes_of(self.home)
        here = os.path.realpath(mailbox) if mailbox else os.sep
        is_alone = not places or places == [here] or (len(places) == 1 and not mailbox)
        self.ledger = Ledger(self.home) if is_alone else Ledger(self.home, here=here, first=places[0])

    def ask_peers(self, ask: Callable[[Peers], Awaitable[T]]) -> T:
        """Return what is learnt by a client for peers, whose connections end with that."""
        import asyncio  # the help needs none

        from .peer_client import Peers

        async def ask_and_close() -> T:
            peers = Peers(self.settings)
            try:
                return await ask(peers)
            finally:
                await peers.aclose()

        return asyncio.run(ask_and_close())

    def open_outbox(self, latest: int = 0) -> Outbox:
        """Return the outbox of this mailbox, which can list the latest parcels of each swarm."""
        from .outbox import Outbox

        return Outbox(self.app.mailbox, self.ledger, latest)

    def flush_outbox(self) -> bool:
        """Carry the outbox once; return False if a gateway is doing so."""
        from . import boxes, home
        from .carrier import Carrier
        from .outbox import Outbox

        self.ledger.identified_knowledge()
        places = boxes.places_there(self.home, self.app.mailbox.directory)
        outboxes = [Outbox(*one, 0) for one in boxes.open_boxes(self.home, places)]
        ledger, settings = boxes.ledger_of(self.home), self.settings
        try:
            with FileLock(self.home.path_of(home.CARRYING), 0):
                self.ask_peers(lambda peers: Carrier(ledger, outboxes, peers, settings).try_everything_now())
        except Busy:
            return False
        return True

    def enter_swarm(self, alias: str) -> str | None:
        """Let a local agent join: it carries the swarm's tag. Return its id; None for the person, who needs no tag."""
        who = self._entering_agent()
        if who is not None:
            self._change_tags(who, add=(f"swarm:{alias}",))
        return who

    def _change_tags(self, who: str, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> None:
        """Change an agent's tags, with the proof of who calls: that is no mail from elsewhere."""
        actor = self.app.acting_party(who)
        self.app.proves, before = None, self.app.proves
        try:
            request = Registration(session_id=who, event="update", add_tags=add, remove_tags=remove)
            self.app.mailbox.register(request, actor)
        finally:
            self.app.proves = before

    def check_enter(self) -> None:
        """Raise what ``enter_swarm`` would before anything is decided: repeating a failed ``create`` would make a
        second swarm."""
        who = self._entering_agent()
        if who is not None and self.app.mailbox.logs.read_roster().get(who) is None:
            raise NotFound(
                f"agent not found: {who!r}", f"register it: `agent-mailbox roster register --session-id {who}`"
            )

    def exit_swarm(self, alias: str) -> list[str]:
        """Let the local agent that is named leave, or all that are not dead; return their ids."""
        tag, box = f"swarm:{alias}", self.app.mailbox
        carriers = [agent.session_id for agent in box.logs.read_roster().carriers(tag)]
        agents = carriers if self.app.named is None else [self.app.acting_session(box)]
        for who in agents:
            self._change_tags(who, remove=(tag,))
        return agents

    def _entering_agent(self) -> str | None:
        """Return the local agent that would join; None for the person."""
        is_agent = self.app.named or self.app.caller.said_id(self.app.environ) not in (None, USER)
        who = self.app.acting_session(self.app.mailbox) if is_agent else USER
        return None if who == USER else who


class SwarmCommand(CommandWithOptions):
    """A command of the gateway: it takes ``--home``, and its function a ``SwarmContext``.

    ``claims``: pair the gateway with the mailbox here first. A refusal of the protocol becomes an error of the family.
    """

    def __init__(
        self,
        *args: Any,
        callback: Callable[..., int | None],
        params: list[click.Parameter],
        claims: bool = True,
        **given: Any,
    ) -> None:
        @pass_app
        def run_command(app: App, /, home: str | None, **values: Any) -> int | None:
            door = SwarmContext(app, home)
            if claims:
                door.claim_mailbox()
            try:
                return callback(door, **values)
            except Refusal as refusal:
                hint = COPY_WHOLE if refusal.code in ("INVALID_TOKEN", "INVALID_SIGNATURE") else ""
                raise Refused(refusal.message, hint, code=refusal.code.lower()) from None

        said = "The gateway's directory (else AGENT_SWARM_HOME, else ~/.swarm)."
        params = [*params, click.Option(["--home"], metavar="DIR", help=said)]
        super().__init__(*args, callback=run_command, params=params, **given)


session_option = option_of_session("The local agent (default: the client's session).", "--session")


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
