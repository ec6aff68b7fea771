"""The commands ``engine``: one mailbox on many machines."""

from __future__ import annotations

import os
import signal
import socket
import threading
from typing import TYPE_CHECKING

import click

from ..cli import loading_ahead, mail_output, render, widening
from ..cli.group import cli
from ..cli.options import App, pass_app
from ..core.records import USER
from ..core.text import neutral
from ..errors import MailboxError, Malformed
from ..mailbox import absence
from ..space import joining_space, replicator, space_checks, space_words
from ..space import space as spaces
from ..space.joining_space import SpaceStanding
from ..space.postgres import postgres_order
from ..space.relay.relay import Relay
from ..space.servers.cluster_record import LAST_PORT, ClusterChange
from ..space.servers.first_server import split_address
from ..space.space import Space
from ..space.trust import machine_keys
from ..upkeep import extras, replicator_service
from . import engine_output

if TYPE_CHECKING:
    from ..store.log.logs import Logs

_FILE = click.Path(exists=True, dir_okay=False)


@cli.group()
def engine() -> None:
    """Share one mailbox among many machines. A NATS server, or PostgreSQL, orders the records; the files stay."""


@engine.command()
@click.argument("url", metavar="URL", required=False)
@click.option("--space", metavar="NAME", help="The space that the machines share; made if it is new.")
@click.option("--machine", metavar="NAME", help="This machine's name in it, as no other has it (default: its host's).")
@click.option(
    "--credential",
    type=_FILE,
    metavar="FILE",
    help="A file (mode 0600) with a token, a user and a password, or in .pgpass's form.",
)
@click.option("--authority", type=_FILE, metavar="FILE", help="The CA certificate that signed the server's.")
@click.option("--key", "keys", multiple=True, metavar="MACHINE=FINGERPRINT", help="Confirm another machine's key.")
@click.option(
    "--speaks",
    multiple=True,
    metavar="MACHINE=WHO,…",
    help="Let it speak for these: user, all (the sessions that live there), session ids; or nobody.",
)
@pass_app
def join(app: App, /, keys: tuple[str, ...], speaks: tuple[str, ...], **given: str | None) -> None:
    """Put this mailbox into a space. It publishes what is here, and takes in what is there.

    URL is nats://HOST:PORT or tls://HOST:PORT; commas separate several servers of one cluster. It may be
    postgresql://USER@HOST/DATABASE, too, with all that libpq reads there; its credential is a password file. To join
    twice changes nothing. Without --credential mail is as open as the server is.

    Lines that another machine seals deny and bind here. They allow and decide only if you say for whom that machine may
    speak. Compare its key with what `engine status` shows there. To change that later, leave URL and --space out.

    \b
    Example: agent-mailbox engine join nats://127.0.0.1:4222 --machine laptop
    Example: agent-mailbox engine join --speaks server=user,all
    """
    changes = machine_keys.read_changes(keys, speaks)
    logs = app.mailbox.logs
    place = _space_from_options(logs, **given)
    if place.is_postgres:
        extras.refuse_missing("postgresql", "PostgreSQL", ["psycopg2"])
    if changes:
        extras.refuse_missing("engine", "signatures", ["cryptography"])
    widening.check_widening(app, lambda: _believed_words(keys, speaks))
    with engine_output.saying_whom(place):
        found = joining_space.join_space(logs, place, changes)
    text = f"joined {found.space} as {found.machine}: {mail_output.count_noun(found.applied, 'record')}\n"
    lines = space_words.describe_trust(found, app.complete_command, _command_for_key(app))
    app.print_done(text + "".join(f"{line}\n" for line in lines), _value_of(found))


def _believed_words(keys: tuple[str, ...], speaks: tuple[str, ...]) -> str:
    """Return whose word comes to count."""
    told = [f"the key {key} counts" for key in keys]
    return "; ".join(told + [f"{word} speaks here" for word in speaks if not word.endswith("=nobody")])


def _space_from_options(
    logs: Logs, url: str | None, space: str | None, machine: str | None, credential: str | None, authority: str | None
) -> Space:
    """Return the space that the options name; what they leave out is as it was."""
    credential, authority = (None if path is None else os.path.abspath(path) for path in (credential, authority))
    present = spaces.space_of(logs)
    if url is None and present is not None:
        given = {"space": space, "machine": machine, "credential": credential, "authority": authority}
        return present.replace(**{name: value for name, value in given.items() if value is not None})
    if url is None or space is None:
        raise Malformed("space to join is missing", "name it: `agent-mailbox engine join URL --space NAME`")
    parts = [split_address(one) for one in url.split(",")]
    if any((who and scheme in ("nats", "tls")) or "password=" in more for scheme, who, _, more in parts):
        hint = "write it into a file of mode 0600: `engine join … --credential FILE`"
        raise Malformed("engine's address has a secret in it, which others would see", hint)
    return Space(url, space, machine or socket.gethostname().partition(".")[0].lower(), credential, authority)


@engine.command()
@click.option("--nodes", type=click.Choice(["1", "3", "5"]), help="How many servers (default: 3, or as there are).")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="The host of each, in order (default: this one).")
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, LAST_PORT),
    help="The first server's port (default: 4222, or as it is).",
)
@click.option(
    "--space", metavar="NAME", help="The space that the machines share (default: team, or the one that there is)."
)
@click.option("--machine", "machines", multiple=True, metavar="NAME", help="A machine that may join; several times.")
@click.option("--remove", multiple=True, metavar="NAME", help="A machine that may no longer; several times.")
@click.option("--into", default="engine", show_default=True, metavar="DIR", help="Where to write the files.")
@click.option("--postgresql", metavar="URL", help="Make the space in this database instead, as its owner.")
@click.option(
    "--credential", type=_FILE, metavar="FILE", help="With --postgresql: the owner's password file (mode 0600)."
)
@click.option(
    "--authority", type=_FILE, metavar="FILE", help="With --postgresql: the CA certificate that signed the server's."
)
@pass_app
def config(
    app: App,
    /,
    nodes: str | None,
    hosts: tuple[str, ...],
    port: int | None,
    space: str | None,
    machines: tuple[str, ...],
    remove: tuple[str, ...],
    into: str,
    postgresql: str | None,
    credential: str | None,
    authority: str | None,
) -> None:
    """Write the files of a cluster of NATS servers. They have TLS, sync before they answer, and a credential for each
    machine.

    Prints the commands that start it, and those with which the machines join. Copy each server's directory to its host.
    To add a machine, name them all again: secrets that are there are kept. To take one away, --remove it. Another
    --space may have the same servers. Without a machine it writes the same again. Then restart the servers one by one.

    With --postgresql it makes the space in a database, with a role for each machine, and writes their password files.

    \b
    Example: agent-mailbox engine config --machine laptop --machine server
    """
    into = os.path.abspath(into)
    if postgresql is not None:
        extras.refuse_missing("postgresql", "PostgreSQL", ["psycopg2"])
        space = space or "team"
        word, proof = (None if path is None else os.path.abspath(path) for path in (credential, authority))
        made = postgres_order.write_roles(into, postgresql, space, machines, remove, word, proof)
        joins = [space_words.join_command(Space(at, space, one, path, proof)) for one, at, path in made]
        text = "".join(f"{machine} may no longer write to {space}\n" for machine in remove)
        value: dict[str, object] = {"directory": into, "join": joins, "removed": list(remove)}
    else:
        extras.refuse_missing("engine", "certificates", ["cryptography"])
        from ..space.servers import cluster  # it needs the extra, which a machine that joins does not

        many = None if nodes is None else int(nodes)
        found = cluster.write_cluster(ClusterChange(into, space, machines, remove, hosts, many, port))
        joins = [space_words.join_command(Space(found.url, *one, found.authority)) for one in found.machines]
        text = "".join(f"{command} &\n" for command in found.start)
        value = {"directory": into, "url": found.url, "start": found.start, "join": joins}
    app.print_answer(text + "".join(f"{command}\n" for command in joins), value)


@engine.command()
@pass_app
def leave(app: App, /) -> None:
    """Leave the space. The files stay as they are: a mailbox of this machine alone.

    The engine may be out of reach. Mail that waits for it is listed, and goes out if the mailbox joins again.
    """
    with engine_output.saying_whom(spaces.space_of(app.mailbox.logs)):
        found, kept = joining_space.leave_space(app.mailbox.logs)
    replicator_service.remove_service(replicator_service.service_of(app.mailbox.directory, app.environ))
    rest = f"; {found.waiting} lines were never published: {neutral(found.trouble)}" if found.waiting else ""
    roster = app.mailbox.logs.read_roster()
    cut_off = app.mailbox.cut_off(roster.agents)
    told = render.leaving_text(kept, cut_off, app.mailbox.now(), roster, app.painter)
    forget = f"if it does not join again, run on another machine: agent-mailbox engine forget {found.machine}\n"
    text = f"left {found.space}{rest}\n{told}{forget}"
    app.print_done(text, {**_value_of(found), "kept": [one.id for one in kept], "cut_off": cut_off})


@engine.command()
@click.argument("machine", metavar="MACHINE")
@pass_app
def forget(app: App, /, machine: str) -> None:
    """Give up a machine that does not come back. Its agents count as frozen, and role mail that they held goes back.

    Nothing is removed, and `engine purge` no longer waits for it. A machine that comes back goes on, and its agents are
    alive again as they act. Until then a new mailbox may join under its name.
    """
    with engine_output.saying_whom(spaces.space_of(app.mailbox.logs)):
        sessions, is_gone = joining_space.forget_machine(app.mailbox, machine)
        found = [event.session_id for event in absence.give_up(app.mailbox, sessions, USER)]
    are = "is" if len(found) == 1 else "are"
    said = f"{machine} had left, or was given up already" if is_gone else f"gave up {machine}"
    text = f"{said}: {mail_output.count_noun(len(found), 'agent')} {are} frozen now\n"
    app.print_done(text, {"machine": machine, "frozen": found, **({"already": True} if is_gone else {})})


@engine.command()
@click.option(
    "--credential", type=_FILE, metavar="FILE", help="A credential that may remove records (default: this machine's)."
)
@click.option("--url", metavar="URL", help="The engine's address with a user that may (default: this machine's).")
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@pass_app
def purge(app: App, /, credential: str | None, url: str | None, dry_run: bool) -> None:
    """Remove from the engine what every machine has archived. No machine loses anything.

    The steward of any machine decides what is archived, and puts it into the order once more, compressed. From there a
    machine that joins later has it. A machine that is away holds this back until it comes, or `engine forget` gives it
    up. It reads all records.

    \b
    Example: agent-mailbox engine purge --credential cluster/keeper
    """
    path = None if credential is None else os.path.abspath(credential)
    with engine_output.saying_whom(spaces.space_of(app.mailbox.logs)):
        found = joining_space.purge_archived(app.mailbox.logs, url, path, dry_run=dry_run)
    count = len(found.positions)
    value = {"removed": 0 if dry_run else count, "removable": count, "records": found.records, "floor": found.floor}
    lines = [f"{count} of {found.records} records {'may go' if dry_run else 'are removed'}\n"]
    lines += [
        f"{machine:<10} has archived what is decided up to {at}\n" for machine, at in sorted(found.machines.items())
    ]
    behind = [one for one, at in sorted(found.machines.items()) if at < found.decided]
    if behind:
        lines.append(
            f"the rest waits for {', '.join(behind)}: `agent-mailbox engine forget NAME` gives up a lost one\n"
        )
    app.print_answer("".join(lines), {**value, "machines": found.machines})


@engine.command()
@pass_app
def status(app: App, /) -> None:
    """Show the space and this machine's copy. It says how far the copy is, and what waits here."""
    logs = app.mailbox.logs
    with engine_output.saying_whom(spaces.space_of(logs)):
        found = joining_space.read_standing(logs)
    text = space_words.describe_standing(found, app.complete_command, _command_for_key(app))
    app.print_answer(text, _value_of(found))


@engine.command()
@click.option("--install", is_flag=True, help="Have it run from now on: a service of systemd's or launchd's for you.")
@click.option("--remove", is_flag=True, help="Take that service away.")
@pass_app
def serve(app: App, /, install: bool, remove: bool) -> None:
    """Keep this machine's copy up with the space until ended. One process a machine is enough.

    A kill loses nothing: it goes on where it was.

    \b
    Example: agent-mailbox engine serve --install
    """
    if install or remove:
        _change_service(app, install=install)
        return
    logs = app.mailbox.logs
    found = joining_space.read_standing(logs)
    record = spaces.record_of(logs)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    space = spaces.require_space(logs)
    loading_ahead.load_rooms("space")
    with replicator.take_lock(record.path(spaces.PLACE)):
        relay = _start_relay(space, record.path(spaces.PLACE))
        app.print_answer(f"serving {found.space} as {found.machine}\n", _value_of(found))
        copy = spaces.open_replica(logs, space)

        def says_away(why: MailboxError | None) -> None:
            if relay is not None:
                relay.away = why

        def told(said: str) -> None:
            engine_output.print_logged(app.complete_hint(said))

        def is_over() -> bool:
            if is_left := spaces.space_of(logs) != space:
                told(f"{space.space} as {space.machine} was left, or is reached in another way: its replicator ends")
            return is_left or ended.is_set()

        replicator.Replicator(copy, told, says_away).run(is_over, ended.wait)
        if relay is not None:
            relay.close()


def _change_service(app: App, *, install: bool) -> None:
    """Install the replicator as a service of the person's, or remove it."""
    spaces.require_space(app.mailbox.logs)
    service = replicator_service.service_of(app.mailbox.directory, app.environ)
    if install:
        replicator_service.install_service(service)
        app.print_done(f"runs from now on: {service.path}\n", {"service": service.path, "runs": True})
        return
    was_there = replicator_service.remove_service(service)
    said = f"removed: {service.path}" if was_there else f"there is none: {service.path}"
    app.print_done(f"{said}\n", {"service": service.path, "runs": False})


def _start_relay(space: Space, directory: str) -> Relay | None:
    """Serve this machine's commands over the replicator's connections; without a socket they connect by themselves."""
    try:
        return Relay(directory, lambda: spaces.order_of(space))
    except OSError as error:
        engine_output.print_logged(f"commands connect by themselves: {error}")
        return None


@engine.command()
@click.option("--system", type=_FILE, metavar="FILE", help="The credential that may ask each server for its settings.")
@pass_app
def doctor(app: App, /, system: str | None) -> int | None:
    """Check the space and this machine's copy of it. It looks at the servers, the stream, and each record by its
    checksum.

    With --system it looks at each server's version, syncing, room and clock, too. Exits with 3 if it finds problems. It
    reads all records.
    """
    logs = app.mailbox.logs
    with engine_output.saying_whom(spaces.space_of(logs)):
        found = joining_space.read_standing(logs)
        problems = list(space_checks.space_problems(logs, found, system))
        notes = [] if found.trouble else list(space_checks.space_notes(logs, app.complete_command, system))
    text = "".join(f"{neutral(problem)}\n" for problem in problems) or "no problems found\n"
    app.print_answer(
        text + "".join(f"note: {note}\n" for note in notes), {"ok": not problems, "problems": problems, "notes": notes}
    )
    return 3 if problems else None


def _command_for_key(app: App) -> str:
    """Return the command that gives this machine a key of its own: it lacks a package, or the file."""
    is_missing = extras.find_missing(["cryptography"])
    return extras.command_to_add("engine") if is_missing else app.complete_command("engine join")


def _value_of(found: SpaceStanding) -> dict[str, object]:
    return dict(found.__dict__)
