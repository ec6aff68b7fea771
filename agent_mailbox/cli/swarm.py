"""``swarm``: this machine's gateway to agents on others. Who is in which swarm; serving.

Belongs here: parsing and answering. The libraries of the extra are imported when a command runs, so that nothing else
pays for them. Mail to and from swarms is ``swarm_mail``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ..core.enrol import Request
from ..core.frame import word
from ..core.records import USER
from ..core.text import neutral
from ..errors import Busy, MailboxError, Malformed, Refused
from . import render
from .main import Commands, cli
from .options import App, Verb, complete_session, pass_app

if TYPE_CHECKING:
    from ..swarm.client import Peers
    from ..swarm.home import Home
    from ..swarm.ledger import Ledger
    from ..swarm.outbox import Outbox
    from ..swarm.protocol.membership import Swarm
    from ..swarm.settings import Settings


@cli.group(cls=Commands)
def swarm() -> None:
    """Mail with agents on other machines, signed, peer to peer (Agent Swarm Protocol)."""


class Door:
    """The gateway's parts, as a command needs them."""

    def __init__(self, app: App, directory: str | None) -> None:
        from ..swarm import extra

        extra.need()
        from ..swarm import home, ledger

        self.app = app
        self.home: Home = home.Home(directory or home.default(app.environ))
        self.ledger: Ledger = ledger.Ledger(self.home)

    @property
    def settings(self) -> Settings:
        """What the mailbox's configuration says."""
        from ..swarm import settings

        return settings.of(self.app.mailbox.config)

    def peers(self) -> Peers:
        """A client."""
        from ..swarm.client import Peers

        return Peers(private=self.settings.private_addresses, ca_file=self.settings.ca_file)

    def outbox(self) -> Outbox:
        """The outbox of this mailbox."""
        from ..swarm.outbox import Outbox

        return Outbox(self.home, self.app.mailbox, self.ledger)

    def flush(self) -> bool:
        """Try once to carry what is to go out; False where a gateway is at it already."""
        import asyncio

        from ..swarm import home, serve
        from ..swarm.carrier import Carrier

        self.ledger.identified()

        async def once() -> None:
            peers = self.peers()
            try:
                await Carrier(self.home, self.ledger, self.outbox(), peers, self.settings).flush()
            finally:
                await peers.aclose()

        try:
            with serve.lock(self.home, home.CARRYING):
                asyncio.run(once())
        except Busy:
            return False
        return True

    def enter(self, alias: str, session: str | None) -> str | None:
        """Have an agent here join: it carries the swarm's tag. None for the person, who needs none."""
        who = self.app.who(session) if session or self._has_session() else USER
        if who == USER:
            return None
        self.app.mailbox.register(Request(session_id=who, event="update", add_tags=(f"swarm:{alias}",)), self.app.actor)
        return who

    def exit(self, alias: str, session: str | None = None) -> list[str]:
        """Have an agent here leave, or all of them; returns which."""
        tag = f"swarm:{alias}"
        roster = self.app.mailbox.logs.read_roster()
        agents = [a.session_id for a in roster.carrying(tag, None)] if session is None else [self.app.who(session)]
        for who in agents:
            self.app.mailbox.register(Request(session_id=who, event="update", remove_tags=(tag,)), USER)
        return agents

    def _has_session(self) -> bool:
        from .. import clients

        return bool(clients.session(self.app.environ) or self.app.environ.get(clients.OURS))


def home_option(command: Any) -> Any:
    """``--home`` on every command of the group."""
    said = "The gateway's directory (else AGENT_SWARM_HOME, else ~/.swarm)."
    return click.option("--home", metavar="DIR", help=said)(command)


def with_door(command: Callable[..., int | None]) -> Any:
    """The command with its ``Door``; what the protocol refuses becomes an error of the family."""

    @wraps(command)
    def run(app: App, /, home: str | None, **given: Any) -> int | None:
        door = Door(app, home)
        from ..swarm.protocol.refusal import Refusal

        try:
            return command(door, **given)
        except Refusal as refusal:
            raise Refused(refusal.message, code=refusal.code.lower()) from None

    return home_option(pass_app(run))


def session_option(command: Any) -> Any:
    """Which agent here it is about."""
    return click.option(
        "--session", metavar="ID", help="The agent here (else the client's session).", shell_complete=complete_session
    )(command)


def swarm_json(one: Swarm, me: str) -> dict[str, Any]:
    """A swarm as ``--json`` gives it."""
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


@swarm.command(cls=Verb)
@click.option("--agent", metavar="ID", required=True, help="Who this gateway is to others; stays for good.")
@click.option("--endpoint", metavar="URL", required=True, help="Where peers reach it: https://HOST/swarm.")
@with_door
def init(door: Door, agent: str, endpoint: str) -> None:
    """Give the gateway an identity: an Ed25519 key, 0600, that never leaves this machine."""
    from ..swarm import actions

    key = actions.initialise(door.home, door.ledger, agent, endpoint)
    known = door.ledger.known()
    value = {"agent_id": known.agent_id, "endpoint": known.endpoint, "public_key": key, "home": door.home.directory}
    door.app.done(f"{known.agent_id} at {known.endpoint}\nkey {key}\n", value)


@swarm.command(cls=Verb)
@click.option("--bind", metavar="HOST:PORT", default="127.0.0.1:8443", show_default=True, help="Where to listen.")
@click.option("--cert", metavar="FILE", help="The certificate chain (PEM).")
@click.option("--key", metavar="FILE", help="Its key (PEM).")
@click.option("--quic-bind", metavar="HOST:PORT", help="Where to listen for HTTP/3 (needs aioquic).")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front does TLS; listen in the clear.")
@click.option("--api", metavar="HOST:PORT", help="The local API on loopback, with a token, in place of its socket.")
@with_door
def serve(door: Door, quic_bind: str | None, **given: Any) -> None:
    """Receive and carry mail until stopped. One line says where it listens."""
    import asyncio

    from ..swarm import home, serve

    listening = serve.Listening(quic=quic_bind, **given)
    serve.check(listening)
    door.ledger.identified()
    door.home.key()

    def ready(address: str) -> None:
        door.app.out(f"listening at {address}\n", {"listening": address})

    try:
        serving = serve.lock(door.home, home.SERVING).take()
    except Busy as error:
        raise Busy(f"another gateway serves {door.home.directory}: {error.what}", "stop that one first") from None
    with serving, serve.lock(door.home, home.CARRYING, wait=30):  # a command may be carrying
        asyncio.run(serve.run(door.app.mailbox, door.home, listening, ready))


@swarm.command(cls=Verb)
@click.argument("name")
@click.option("--allow-member-invite", is_flag=True, help="Let members invite, too.")
@click.option("--require-approval", is_flag=True, help="Have each joining wait for `swarm approve`.")
@session_option
@with_door
def create(door: Door, name: str, session: str | None, **settings: bool) -> None:
    """Create a swarm; this gateway is its master, and the session its first agent here."""
    from ..swarm import actions

    made = actions.create(door.home, door.ledger, name, settings)
    who = door.enter(made.alias, session)
    text = f"created swarm:{made.alias} ({made.swarm_id})\n" + (f"{who} joined it\n" if who else "")
    door.app.done(text, {"swarm": swarm_json(made, made.master), "session": who})


@swarm.command(cls=Verb)
@click.argument("which", metavar="SWARM|URL")
@click.option("--max-uses", type=click.IntRange(1, 1 << 31), help="Agents it lets in (default: 1).")
@click.option("--unlimited", is_flag=True, help="Let in any number.")
@click.option(
    "--hours", type=click.FloatRange(0.01, 24 * 366), default=24, show_default=True, help="How long it holds."
)
@click.option("--revoke", is_flag=True, help="Let nobody else in by the invitation URL.")
@with_door
def invite(door: Door, which: str, max_uses: int | None, unlimited: bool, hours: float, revoke: bool) -> None:
    """Make an invitation. Whoever has the URL can use it: hand it on as you would a password."""
    from ..swarm import actions

    if revoke:
        revoked = actions.revoke(door.ledger, which)
        door.app.done(f"nobody else joins swarm:{revoked.alias} by it\n", {"revoked": True, "swarm": revoked.swarm_id})
        return
    if unlimited and max_uses:
        raise Malformed("--unlimited and --max-uses do not go together", "choose one")
    uses = None if unlimited else max_uses or 1
    url = actions.invite(door.home, door.ledger, which, uses, hours)
    door.app.out(f"{url}\n", {"url": url, "max_uses": uses, "hours": hours})


@swarm.command(cls=Verb)
@click.argument("which", metavar="URL|SWARM")
@click.option("--as", "alias", metavar="WORD", help="What to call the swarm here (default: from its name).")
@session_option
@with_door
def join(door: Door, which: str, alias: str | None, session: str | None) -> None:
    """Join by an invitation; with a SWARM this gateway is in, have another agent here join it."""
    import asyncio

    from ..swarm import actions, joining

    if not which.startswith("swarm://"):
        found = actions.find(door.ledger.identified(), which)
        who = door.enter(found.alias, session)
        if who is None:
            raise Malformed("which agent joins?", "pass --session ID")
        door.app.done(f"{who} joined swarm:{found.alias}\n", {"status": "accepted", "session": who})
        return
    if alias is not None and joining.alias_of(alias, "", door.ledger.identified()) != alias:
        raise Malformed(f"{alias!r} cannot be, or is, a swarm's word", "lower-case letters, digits, . _ -")
    door.ledger.identified()

    async def ask() -> tuple[str, str]:
        peers = door.peers()
        try:
            return await joining.ask(door.ledger, peers, door.home.key(), which, alias)
        finally:
            await peers.aclose()

    status, said = asyncio.run(ask())
    if status not in (joining.IN, joining.WAITING):
        raise Refused(f"not joined: {said}", "", code=status)
    from ..swarm.protocol import tokens

    found = door.ledger.known().swarms[tokens.parse_url(which).swarm_id]
    who = door.enter(found.alias, session)
    told = "joined" if status == joining.IN else "asked to join"
    door.app.done(
        f"{told} swarm:{found.alias}" + (f": {neutral(said)}" if status != joining.IN else "") + "\n",
        {"status": status, "swarm": swarm_json(found, door.ledger.known().agent_id), "session": who},
    )


def _decision(name: str, yes: bool, text: str) -> None:
    @swarm.command(name, cls=Verb, help=text)
    @click.argument("which", metavar="SWARM")
    @click.argument("agent", metavar="AGENT")
    @with_door
    def decide(door: Door, which: str, agent: str) -> None:
        from ..swarm import actions

        found = actions.approve(door.ledger, which, agent, yes)
        door.flush()
        said = "joined" if yes else "was not let into"
        door.app.done(f"{agent} {said} swarm:{found.alias}\n", {"agent_id": agent, "approved": yes})


_decision("approve", True, "Let AGENT in, who asked to join.")
_decision("deny", False, "Do not let AGENT in, who asked to join.")


@swarm.command(cls=Verb)
@click.argument("which", metavar="SWARM")
@with_door
def members(door: Door, which: str) -> None:
    """Who is in a swarm, who waits, and which agents here joined it."""
    from ..swarm import actions

    known = door.ledger.identified()
    found = actions.find(known, which)
    here = [a.session_id for a in door.app.mailbox.logs.read_roster().carrying(f"swarm:{found.alias}")]
    rows = [
        (
            "master" if m.agent_id == found.master else "member",
            f"swarm:{found.alias}/{m.agent_id}" if m.agent_id != known.agent_id else f"{m.agent_id} (this gateway)",
            m.endpoint,
            "muted" if m.agent_id in known.muted_agents else "" if m.public_key else "no key yet",
        )
        for m in found.members.values()
    ]
    rows += [("waiting", asked.agent_id, asked.endpoint, "") for asked, _ in found.waiting.values()]
    text = "".join(f"{line}\n" for line in render.table(rows)) + f"here: {', '.join(map(word, here)) or 'nobody'}\n"
    door.app.out(text, {**swarm_json(found, known.agent_id), "here": here})


@swarm.command(cls=Verb)
@click.argument("which", metavar="SWARM")
@click.option("--dissolve", is_flag=True, help="As its master: end it for everyone.")
@session_option
@with_door
def leave(door: Door, which: str, dissolve: bool, session: str | None) -> None:
    """Leave a swarm, and tell everyone; with --session only that agent here leaves, and nobody is told."""
    from ..swarm import actions

    alias = actions.find(door.ledger.identified(), which).alias
    if session is None:
        actions.leave(door.ledger, which, dissolve)
        door.flush()
    left = door.exit(alias, session)
    door.app.done(f"left swarm:{alias}\n", {"swarm": alias, "sessions": left, "dissolved": dissolve})


@swarm.command(cls=Verb)
@click.argument("which", metavar="SWARM")
@click.argument("agent", metavar="AGENT")
@click.option("--reason", metavar="TEXT", help="Told to everyone.")
@with_door
def kick(door: Door, which: str, agent: str, reason: str | None) -> None:
    """Put AGENT out of a swarm of ours, and tell everyone; it needs a new invitation to come back."""
    from ..swarm import actions

    found = actions.kick(door.ledger, which, agent, reason)
    door.flush()
    door.app.done(f"kicked {agent} from swarm:{found.alias}\n", {"agent_id": agent, "swarm": found.swarm_id})


@swarm.command(cls=Verb)
@click.argument("which", metavar="SWARM")
@click.argument("agent", metavar="AGENT")
@with_door
def transfer(door: Door, which: str, agent: str) -> None:
    """Make AGENT the master of a swarm of ours."""
    from ..swarm import actions

    found = actions.transfer(door.ledger, which, agent)
    door.flush()
    door.app.done(f"{agent} is the master of swarm:{found.alias}\n", {"master": agent, "swarm": found.swarm_id})


def _mute(door: Door, whom: str, on: bool, reason: str | None = None) -> None:
    from ..swarm import actions

    which = actions.mute(door.ledger, whom, on, reason)
    try:
        door.outbox().sweep()
    except MailboxError:
        pass  # the gateway tells who joined
    door.app.done(f"{'muted' if on else 'unmuted'} {which}\n", {"muted" if on else "unmuted": which})


@swarm.command(cls=Verb)
@click.argument("whom", metavar="AGENT|swarm:SWARM")
@click.option("--reason", metavar="TEXT", help="Kept in the notification here.")
@with_door
def mute(door: Door, whom: str, reason: str | None) -> None:
    """Drop the mail of an agent elsewhere, or of a whole swarm; they are not told."""
    _mute(door, whom, True, reason)


@swarm.command(cls=Verb)
@click.argument("whom", metavar="AGENT|swarm:SWARM")
@with_door
def unmute(door: Door, whom: str) -> None:
    """Take its mail again."""
    _mute(door, whom, False)
