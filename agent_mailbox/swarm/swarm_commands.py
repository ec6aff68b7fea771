"""``swarm``: this machine's gateway to agents on others; membership and serving.

Belongs here: parsing and answering. ``swarm_mail_commands`` has the mail to and from swarms.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from ..cli import loading_ahead, render, values
from ..cli.group import CommandGroup, cli
from ..core.frame import word
from ..core.text import neutral
from ..errors import MailboxError, Malformed, Refused
from ..mailbox.mailbox_gateway import SERVED
from ..store.files.small_files import write_if_possible
from ..store.locks.lock import FileLock
from . import pairing
from .swarm_context import COPY_WHOLE, SwarmCommand, SwarmContext, session_option, swarm_json

if TYPE_CHECKING:
    from .peer_client import Peers


@cli.group(cls=CommandGroup)
def swarm() -> None:
    """Exchange signed mail with agents on other machines. It goes from peer to peer (Agent Swarm Protocol)."""


@swarm.command(cls=SwarmCommand)
@click.option("--agent", metavar="ID", required=True, help="The gateway's id among its peers, for good.")
@click.option("--endpoint", metavar="URL", required=True, help="The URL where peers reach it: https://HOST/swarm.")
def init(door: SwarmContext, agent: str, endpoint: str) -> None:
    """Give the gateway an identity. It is an Ed25519 key, mode 0600, that never leaves this machine."""
    from . import gateway_identity

    key = gateway_identity.initialise_gateway(door.ledger, agent, endpoint)
    door.claim_mailbox()  # the identity exists now
    known, mark = door.ledger.read_knowledge(), gateway_identity.key_fingerprint(key)
    value = {"agent_id": known.agent_id, "endpoint": known.endpoint, "public_key": key, "home": door.home.directory}
    door.app.print_done(
        f"{known.agent_id} at {known.endpoint}\nkey {key}\n    {mark}\n", {**value, "fingerprint": mark}
    )


@swarm.command(cls=SwarmCommand, claims=False)
def attach(door: SwarmContext) -> None:
    """Let a gateway that has a mailbox serve this one, too.

    Swarms that are made or joined here are this mailbox's alone. The gateway's key, endpoint and process stay one.
    """
    door.ledger.identified_knowledge()
    here = door.app.mailbox.directory
    pairing.attach_mailbox(door.home, here)
    door.app.print_done(f"{door.home.directory} serves {here}, too\n", {"home": door.home.directory})


@swarm.command(cls=SwarmCommand)
def detach(door: SwarmContext) -> None:
    """Have the gateway serve this mailbox no more. Leave its swarms first."""
    active = [one.alias for one in door.ledger.identified_knowledge().seen if one.state in ("active", "joining")]
    if active:
        raise Refused(
            f"mailbox is in swarms: {', '.join(active)}", f"leave them: `agent-mailbox swarm leave {active[0]}`"
        )
    pairing.detach_mailbox(door.home, door.app.mailbox.directory)
    door.app.print_done(f"{door.home.directory} serves this mailbox no more\n", {"home": door.home.directory})


@swarm.command(cls=SwarmCommand)
@click.option(
    "--bind", metavar="HOST:PORT", default="127.0.0.1:8443", show_default=True, help="Listen at this address."
)
@click.option("--cert", metavar="FILE", help="The certificate chain (PEM).")
@click.option("--key", metavar="FILE", help="Its key (PEM).")
@click.option("--self-signed", is_flag=True, help="Make the certificate here, for peers that know this gateway's key.")
@click.option("--quic-bind", metavar="HOST:PORT", help="Listen here for HTTP/3 (needs aioquic).")
@click.option("--behind-proxy", is_flag=True, help="Listen unencrypted: a proxy in front does TLS.")
@click.option("--api", metavar="HOST:PORT", help="Serve the local API on loopback with a token, not on its socket.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Log from this level on, to standard error.",
)
def serve(door: SwarmContext, self_signed: bool, **given: Any) -> None:
    """Receive and carry mail until stopped. It prints one line with the listening address."""
    import asyncio

    from . import gateway_identity, gateway_process, home, peer_client

    own, listening = gateway_identity.key_of(door.ledger), gateway_process.Listening(**given)
    files = {f"--{name}": os.path.abspath(given[name]) for name in ("cert", "key") if given[name]}
    options = {"--bind": listening.bind, **files, "--quic-bind": listening.quic_bind, "--api": listening.api}
    words = [word for name, value in options.items() if value for word in (name, value)]
    words += [name for name, on in (("--self-signed", self_signed), ("--behind-proxy", listening.behind_proxy)) if on]
    if self_signed:
        if listening.cert or listening.key or listening.behind_proxy:
            raise Malformed("options exclude each other: --self-signed, --cert, --key, --behind-proxy", "pass one way")
        endpoint = door.ledger.read_knowledge().endpoint
        made = peer_client.ready_certificate(door.home, own, endpoint, door.ledger.now())
        listening = listening.replace(cert=made, key=made)
    loading_ahead.load_rooms("swarm")
    gateway_process.check_listening(listening)

    def report_listening(address: str) -> None:
        write_if_possible(door.home.path_of(SERVED), f"swarm serve {shlex.join(words)}".encode())
        door.app.print_answer(f"listening at {address}\n", {"listening": address})

    with door.home.hold_serving(), FileLock(door.home.path_of(home.CARRYING), 30):  # a command may be carrying
        asyncio.run(gateway_process.run_gateway(door.app.mailbox, door.home, listening, report_listening))


@swarm.command(cls=SwarmCommand)
@click.argument("name")
@click.option("--allow-member-invite", is_flag=True, help="Let members invite, too.")
@click.option("--require-approval", is_flag=True, help="Let each joiner wait for `swarm approve`.")
@session_option
def create(door: SwarmContext, name: str, allow_member_invite: bool, require_approval: bool) -> None:
    """Create a swarm with this gateway as its master. The session joins it."""
    from . import decisions

    door.check_enter()
    settings = {"allow_member_invite": allow_member_invite, "require_approval": require_approval}
    made = decisions.create_swarm(door.ledger, name, settings)
    who = door.enter_swarm(made.alias)
    text = f"created swarm:{made.alias} ({made.swarm_id})\n" + (f"{who} joined it\n" if who else "")
    door.app.print_done(text, {"swarm": swarm_json(made, made.master), "session": who})


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="SWARM|URL")
@click.option("--max-uses", metavar="N", type=click.IntRange(1, 1 << 31), help="Agents it lets in (default: 1).")
@click.option("--unlimited", is_flag=True, help="Let in any number.")
@click.option(
    "--hours",
    metavar="N",
    type=click.FloatRange(0.01, 24 * 366),
    default=24,
    show_default=True,
    help="Hours until it expires.",
)
@click.option("--revoke", is_flag=True, help="Revoke the invitation URL: it lets nobody else in.")
def invite(door: SwarmContext, which: str, max_uses: int | None, unlimited: bool, hours: float, revoke: bool) -> None:
    """Make an invitation. Anybody who has the URL can use it: keep it like a password."""
    from . import decisions

    if revoke:
        revoked = decisions.revoke_invitation(door.ledger, which)
        door.app.print_done(
            f"revoked an invitation to swarm:{revoked.alias}\n", {"revoked": True, "swarm": revoked.swarm_id}
        )
        return
    uses = None if unlimited else max_uses or 1
    url = decisions.make_invitation(door.ledger, which, uses, hours)
    door.app.print_answer(f"{url}\n", {"url": url, "max_uses": uses, "hours": hours})


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="URL|-|@FILE|SWARM")
@click.option("--as", "alias", metavar="WORD", help="The swarm's alias here (default: from its name).")
@session_option
def join(door: SwarmContext, which: str, alias: str | None) -> None:
    """Join a swarm by its invitation. With a SWARM this gateway is in, it adds a local agent to it.

    Others on this machine see a command's arguments: - reads the URL from standard input, @FILE from a file.
    """
    from . import decisions

    which = read_invitation(door, which)
    if not which.startswith("swarm://"):
        found = decisions.find_swarm(door.ledger.identified_knowledge(), which)
        _warn_of_alias(door, found.alias, alias)
        who = door.enter_swarm(found.alias)
        if who is None:
            raise Malformed("joining agent missing", "name it with `--session ID`")
        door.app.print_done(f"{who} joined swarm:{found.alias}\n", {"status": "accepted", "session": who})
        return
    join_by(door, which, alias)


def read_invitation(door: SwarmContext, which: str) -> str:
    """Return an invitation as it was handed over: - by standard input, @FILE in a file; else the word, perhaps a
    swarm's. Raise ``Malformed`` for a wrong paste, which would name a swarm to make."""
    is_read = which == "-" or which.startswith("@")
    said = values.read_body(door.app, which).strip() if is_read else which
    if not said.startswith("swarm://") and (is_read or "://" in said):
        raise Malformed(f"invitation invalid: {said[:80]!r}", COPY_WHOLE)
    return said


def join_by(door: SwarmContext, which: str, alias: str | None, patience: int = 0) -> None:
    """Join by an invitation's URL, and answer; raise ``Refused`` if that failed. ``patience``: seconds to wait for a
    gateway that does not listen yet."""
    import asyncio

    from . import gateway_identity, joining
    from .protocol import tokens

    known, swarm_id = door.ledger.identified_knowledge(), tokens.parse_url(which).swarm_id
    if alias is not None and joining.alias_of(alias, swarm_id, known) != alias:
        raise Malformed(
            f"swarm alias invalid or taken: {alias!r}", "choose another, of lower-case letters, digits, . _ -"
        )
    key = gateway_identity.key_of(door.ledger)
    door.check_enter()

    async def ask_until_answered(peers: Peers) -> tuple[str, str]:
        for _ in range(patience):
            answer = await joining.ask_to_join(door.ledger, peers, key, which, alias)
            if not answer[1].startswith("ConnectError"):
                return answer
            await asyncio.sleep(1)
        return await joining.ask_to_join(door.ledger, peers, key, which, alias)

    status, said = door.ask_peers(ask_until_answered)
    if status not in (joining.IN, joining.WAITING):
        raise Refused(f"swarm not joined: {neutral(said)}", _remedy_for(said), code=status)
    found = door.ledger.read_knowledge().swarms[swarm_id]
    _warn_of_alias(door, found.alias, alias)
    who = door.enter_swarm(found.alias)
    told = "joined" if status == joining.IN else "asked to join"
    door.app.print_done(
        f"{told} swarm:{found.alias}" + (f": {neutral(said)}" if status != joining.IN else "") + "\n",
        {"status": status, "swarm": swarm_json(found, door.ledger.read_knowledge().agent_id), "session": who},
    )


def _warn_of_alias(door: SwarmContext, had: str, alias: str | None) -> None:
    if alias not in (None, had):
        door.app.give_warning(f"--as {alias} is ignored: the swarm was joined before, and its alias stays {had}")


def _remedy_for(said: str) -> str:
    """Return the hint for a joining that failed."""
    if "no public address" in said:
        return 'if that network is yours, name it in your own configuration: [swarm] networks = ["100.64.0.0/10"]'
    if "not by the invitation's key" in said:
        return "serve with `--self-signed` on the other machine; if it does so already, somebody is between you"
    if "certificate does not verify" in said:
        return (
            "if it serves with `--self-signed`, ask for an invitation by `swarm pair`; else name the"
            " authority's file as ca_file under [swarm] in your own configuration"
        )
    if "with another key" in said:
        return "your key changed: ask its master to run `swarm kick SWARM AGENT`, then to invite you"
    if said.startswith("ConnectError"):
        return "have `swarm serve` run there, and the way to its port open; then repeat this command"
    return "try again, or ask the swarm's master for another invitation"


def _decision_command(name: str, yes: bool, text: str) -> None:
    @swarm.command(name, cls=SwarmCommand, help=text)
    @click.argument("which", metavar="SWARM")
    @click.argument("agent", metavar="AGENT")
    def decide(door: SwarmContext, which: str, agent: str) -> None:
        from . import decisions

        found = decisions.answer_join_request(door.ledger, which, agent, yes)
        door.flush_outbox()
        said = "joined" if yes else "was rejected by"
        door.app.print_done(f"{agent} {said} swarm:{found.alias}\n", {"agent_id": agent, "approved": yes})


_decision_command("approve", True, "Approve AGENT's request to join.")
_decision_command("deny", False, "Reject AGENT's request to join.")


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="SWARM")
def members(door: SwarmContext, which: str) -> None:
    """List a swarm's members. Those who wait to join are shown, too, and the local agents in it.

    Two people who compare the digits of a key by voice know that nobody is between them.
    """
    from . import decisions
    from .gateway_identity import key_fingerprint

    known = door.ledger.identified_knowledge()
    found = decisions.find_swarm(known, which)
    here = [a.session_id for a in door.app.mailbox.logs.read_roster().carrying(f"swarm:{found.alias}")]
    rows = [
        (
            "master" if m.agent_id == found.master else "member",
            f"swarm:{found.alias}/{m.agent_id}" if m.agent_id != known.agent_id else f"{m.agent_id} (this gateway)",
            m.endpoint,
            key_fingerprint(m.public_key) if m.public_key else "no key yet",
            "muted" if m.agent_id in known.muted_agents else "",
        )
        for m in found.members.values()
    ]
    rows += [
        ("waiting", asked.agent_id, asked.endpoint, key_fingerprint(asked.public_key), "")
        for asked, _ in found.waiting.values()
    ]
    joined = ", ".join(map(word, here)) or "nobody joined, so its mail goes to the person (user)"
    text = render.table_text(rows) + f"here: {joined}\n"
    marks = {m.agent_id: key_fingerprint(m.public_key) for m in found.members.values() if m.public_key}
    door.app.print_answer(text, {**swarm_json(found, known.agent_id), "fingerprints": marks, "here": here})


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="SWARM")
@click.option("--dissolve", is_flag=True, help="End the swarm for everyone (its master only).")
@session_option
def leave(door: SwarmContext, which: str, dissolve: bool) -> None:
    """Leave a swarm and tell everyone. With --session only that local agent leaves, silently.

    A request to join that its master has not approved is withdrawn.
    """
    from . import decisions, joining

    is_whole = door.app.named is None
    waited = joining.give_up(door.ledger, which) if is_whole else None
    alias = (waited or decisions.find_swarm(door.ledger.identified_knowledge(), which)).alias
    if is_whole and waited is None:
        decisions.leave_swarm(door.ledger, which, dissolve)
        door.flush_outbox()
    left = door.exit_swarm(alias)
    door.app.print_done(f"left swarm:{alias}\n", {"swarm": alias, "sessions": left, "dissolved": dissolve})


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="SWARM")
@click.argument("agent", metavar="AGENT")
@click.option("--reason", metavar="TEXT", help="The reason, told to everyone.")
def kick(door: SwarmContext, which: str, agent: str, reason: str | None) -> None:
    """Remove AGENT from a swarm of ours and tell everyone. It needs a new invitation to come back."""
    from . import decisions

    found = decisions.kick_member(door.ledger, which, agent, reason)
    door.flush_outbox()
    door.app.print_done(f"kicked {agent} from swarm:{found.alias}\n", {"agent_id": agent, "swarm": found.swarm_id})


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="SWARM")
@click.argument("agent", metavar="AGENT")
def transfer(door: SwarmContext, which: str, agent: str) -> None:
    """Make AGENT the master of a swarm of ours."""
    from . import decisions

    found = decisions.transfer_swarm(door.ledger, which, agent)
    door.flush_outbox()
    door.app.print_done(f"{agent} is the master of swarm:{found.alias}\n", {"master": agent, "swarm": found.swarm_id})


def _mute_or_unmute(door: SwarmContext, whom: str, on: bool, reason: str | None = None) -> None:
    from . import decisions

    which = decisions.mute_sender(door.ledger, whom, on, reason)
    swarms = door.ledger.read_knowledge().swarms
    if on and which not in swarms and not any(which in one.members for one in swarms.values()):
        door.app.give_warning(f"no swarm of yours has a member {which}: nothing is dropped until one is called so")
    try:
        door.open_outbox().queue_outgoing()
    except MailboxError:
        pass  # the gateway tells those who joined
    door.app.print_done(f"{'muted' if on else 'unmuted'} {which}\n", {"muted" if on else "unmuted": which})


@swarm.command(cls=SwarmCommand)
@click.argument("whom", metavar="AGENT|swarm:SWARM")
@click.option("--reason", metavar="TEXT", help="The reason, kept in the local notification.")
def mute(door: SwarmContext, whom: str, reason: str | None) -> None:
    """Drop the mail of a remote agent, or of a whole swarm, silently."""
    _mute_or_unmute(door, whom, True, reason)


@swarm.command(cls=SwarmCommand)
@click.argument("whom", metavar="AGENT|swarm:SWARM")
def unmute(door: SwarmContext, whom: str) -> None:
    """Accept the mail of a muted agent or swarm again."""
    _mute_or_unmute(door, whom, False)
