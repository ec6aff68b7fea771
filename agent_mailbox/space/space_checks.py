"""The troubles of a space: its server, its stream, its records, and this machine's copy.

Belongs here: the checks of ``engine doctor``. Records that the engine lost come back from this machine's files.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from ..core import space_seals
from ..core.text import term
from ..errors import MailboxError
from . import joining_space, replicator, space_words
from . import space as spaces
from .copy import bundled_lines, space_troubles
from .nats import server_settings
from .nats.nats_order import NatsOrder
from .order.order import JOINED
from .postgres.postgres_order import PostgresOrder, database_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..store.log.logs import Logs
    from .joining_space import SpaceStanding
    from .order.order import TotalOrder
    from .space import Space


def space_problems(logs: Logs, found: SpaceStanding, system: str | None = None) -> Iterator[str]:
    """Yield the troubles, each as a sentence without a full stop; ``found`` is what ``read_standing`` says.

    ``system`` is the credential of a user who may ask each server for its settings."""
    space = spaces.require_space(logs)
    copy, mine = spaces.open_replica(logs, space), spaces.owner_of(logs)
    if not found.trouble:
        yield from space_troubles.standing_troubles(copy.directory, logs.messages)
    if ended := found.trouble or space_troubles.noted_trouble(copy.directory, space_troubles.TAKEN):
        yield ended  # nobody answers what follows, or it does not concern a machine that has no name
        yield from space_troubles.waiting_sends(copy.directory)
        return
    try:
        order = spaces.order_in(copy)
        yield from _of_engine(order, space, system)
        if order.take_name(mine) != mine:  # an engine that lost its records lost the names, too
            yield replicator.name_warning(space.machine)
        with copy.machine_lock():
            copy.catch_up()
            if copy.look_closer(at_all=True):
                copy.catch_up()
            strange = bundled_lines.compare_with_order(copy)
        yield from _of_others(strange)
    except MailboxError as error:
        yield error.what
    yield from space_troubles.waiting_sends(copy.directory)
    if copy.restored:
        yield replicator.lost_warning(copy.restored)
    if found.unsent:
        yield f"messages were never sent, since their ids are other messages': {found.unsent}"
    yield from space_words.describe_wrong_seals(joining_space.read_standing(logs))
    if not found.serving:
        yield "replicator does not run: `agent-mailbox engine serve --install` keeps this machine's copy up"


def space_notes(logs: Logs, command: Callable[[str], str], system: str | None = None) -> Iterator[str]:
    """Yield what is in order, and yet for the person to know: whose lines count for nothing, and who may do all."""
    yield from space_words.describe_unheard(joining_space.read_standing(logs), command)
    yield from _ignored_lines(logs, command)
    space = spaces.require_space(logs)
    if space.is_postgres:  # which tells everybody how it syncs
        return
    order = cast(NatsOrder, spaces.order_of(space))
    if order.connection.is_open():
        yield (
            "any machine may write as another here, and remove mail:"
            " `agent-mailbox engine config` writes servers with a credential for each"
        )
    elif system is None:  # a server without accounts has no such user
        yield "not looked at: syncing, room and clock of the servers (--system FILE)"
    order.close()


def _ignored_lines(logs: Logs, command: Callable[[str], str]) -> Iterator[str]:
    """Yield how many lines of each machine tell of sessions that are not its own."""
    lines = (line for log in (logs.roster, logs.reads) for _, line in log.lines() if space_seals.is_ignored(line))
    for machine, count in sorted(Counter(term(space_seals.ignored_of(line), 40) for line in lines).items()):
        more = f"if one moved there: {command(f'engine join --speaks {machine}=all,ID')}"
        tell, are = ("line of {} tells", "is") if count == 1 else ("lines of {} tell", "are")
        yield f"{count} {tell.format(machine)} of sessions that are not its own, and {are} ignored; {more}"


def _of_others(passed: Mapping[str, int]) -> Iterator[str]:
    """Yield what the copy passed over; nothing of it is lost in the space."""
    if strange := passed.get(""):
        yield f"messages of other programs are among the space's records, and were passed over: {strange}"
    if damaged := passed.get(bundled_lines.DAMAGED):
        yield f"records of the engine are damaged: {damaged}; `engine purge` removes them"
    if later := sum(many for log, many in passed.items() if log not in ("", JOINED, bundled_lines.DAMAGED)):
        yield f"records of a later version were passed over: {later}; bring agent-mailbox up, leave, and join again"


def _of_engine(order: TotalOrder, space: Space, system: str | None) -> Iterator[str]:
    if space.is_postgres:
        yield from database_problems(cast(PostgresOrder, order))
        return
    info = cast(NatsOrder, order).stream_info()
    yield from server_settings.of_stream(info)
    yield from server_settings.of_copies(info)
    if system is not None:
        asked = cast(NatsOrder, spaces.order_of(space.replace(credential=system)))
        yield from server_settings.of_servers(asked.connection, info)
