"""A mailbox directory, found and opened: its parts act on it.

Belongs here: the search for it (callers check who made it), its logs and configuration, the clock. ``mailbox.sending``,
``mailbox.delivery`` and ``mailbox.registry`` each take it; ``mailbox.mailbox`` holds all of them.
"""

from __future__ import annotations

from ..config import config as configuration
from ..core.address import uuid_of
from ..core.records import USER
from ..core.roster import ALIVE, DEAD
from ..core.text import typed
from ..errors import Malformed, NoMailbox
from ..identity.client_variables import SERVICES
from ..store.files import paths, system
from ..store.locks.lock import WAIT
from ..store.log import logs
from ..store.user_state.processes import ProcessRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Any, Self, TypeVar

    from ..config.own_config import OwnConfig
    from ..core.inbox import InboxState
    from ..core.records import Message, Proof
    from ..core.roster import Agent
    from ..space.copy.replica import Replica
    from ..space.order.ordered_log import SharedLog
    from ..store.archive.archive import Archive
    from ..store.log.log import Log

    T = TypeVar("T")


MANY_HOLDERS = 8
"""Holders of a session's roles above which the records of ended clients are read before the holders."""


QUEUED, NEVER_SENT = "queued", "never sent"
UNSENT = {
    QUEUED: "it waits here for the engine",
    NEVER_SENT: "it is in this mailbox alone, and goes to other machines if that joins again",
}
"""The ways in which mail may be here alone, each with what that means."""


def nobody(_: str) -> Proof | None:
    """Prove nothing: a program that imports the package cannot say for whom it writes."""
    return None


def unheard(_: str) -> None:
    """Tell nobody of what is wrong in a configuration: a command that a person reads tells it (``cli.context``)."""


def wall_clock() -> int:
    """Return the milliseconds since 1970 UTC."""
    return system.time_ns() // 1_000_000


def random_id() -> str:
    """Return a random UUID (version 4)."""
    return uuid_of(system.urandom(16).hex(), "4")


class OpenMailbox:
    """A mailbox directory, opened.

    ``clock`` gives ms since 1970, ``new_id`` message ids (default: random UUIDs); ``wait`` is the seconds to wait for a
    lock. ``prove`` gives the proof for a record in an agent's name (``core.proofs``; None: nothing is proven).
    ``environ``: this process's environment, ``hosts`` the user's records of clients, if the caller has them. Raises
    ``NoMailbox``, or ``Refused`` if the directory is another user's.
    """

    def __init__(
        self,
        directory: str,
        *,
        clock: Callable[[], int] = wall_clock,
        new_id: Callable[[], str] | None = None,
        wait: float | None = None,
        prove: Callable[[str], Proof | None] | None = None,
        environ: Mapping[str, str] | None = None,
        hosts: ProcessRecords | None = None,
    ) -> None:
        self.directory = paths.check(directory)
        environ = system.environment() if environ is None else environ
        state = None if hosts is None else hosts.state
        self.logs = logs.of_mailbox(self.directory, WAIT if wait is None else wait, environ, state)
        self.config = configuration.load_config(self.directory)
        self.hosts = hosts
        self.now = clock
        self.prove = prove or nobody
        self.complain: Callable[[str], None] = unheard
        self.has_unhooked = False
        """Whether hooks were taken out of any place, as far as a client was judged."""
        self._told: set[str] = set()
        self._parts: dict[Callable[[OpenMailbox], Any], Any] = {}
        self.new_id = new_id or random_id
        self._replica: Replica | None = None

    def read_only(self) -> Self:
        """Return the same mailbox for a reader who leaves no trace: nothing derived is written down."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = {**self.__dict__, "logs": self.logs.read_only(), "_parts": {}}
        return twin

    def weigh_mail(self) -> None:
        """Have each message that is read from now on tell what is proven of its writer, for programs."""
        if self.logs.custody is not None:
            self.logs.custody.weighs_mail = True

    def weigh_own(self, message: Message) -> Message:
        """Return a message that this process writes with what its seal will prove of its writer (``weigh_mail``)."""
        record = self.logs.custody
        if record is None or not record.key or record.broken() is not None:
            return message
        return message.replace(written_by=self.prove(message.sender))

    def part(self, kind: Callable[[OpenMailbox], T]) -> T:
        """Return what acts on this mailbox, such as ``Sending``: one of each kind, made when it is first asked for."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        found: T = self._parts[kind]
        return found

    @property
    def archive(self) -> Archive:
        """Return the archive, to which the steward moves mail."""
        from ..store.archive.archive import Archive  # whoever sends or looks at unread mail needs none

        return Archive(self.logs.path(paths.ARCHIVE), self.logs.custody)

    @property
    def replica(self) -> Replica | None:
        """Return this machine's copy of a mailbox that several machines share; None if it is one machine's."""
        if not self.logs.is_shared:
            return None
        if self._replica is None:
            from ..space import space as spaces  # a mailbox of one machine is spared it

            space = spaces.space_of(self.logs)
            self._replica = None if space is None else spaces.open_replica(self.logs, space, relayed=True)
        return self._replica

    def last_seen(self, sessions: Iterable[str] | None = None) -> dict[str, int]:
        """Return the ms of the last sign of life of these sessions, or of all: for showing, for others' machines tell
        theirs without a proof."""
        wanted = None if sessions is None else list(sessions)
        found = self.logs.last_seen(wanted)
        if (replica := self.replica) is not None:
            from ..space.copy import space_troubles  # likewise

            told = {who: at for one in space_troubles.load_peers(replica.directory) for who, at in one.seen.items()}
            found = {**(told if wanted is None else {who: told[who] for who in wanted if who in told}), **found}
        return found

    def queued(self) -> list[Message]:
        """Return the mail that waits here for the engine of several machines, oldest first."""
        return [] if (replica := self.replica) is None else replica.queue.read_messages()

    def unsent(self) -> dict[str, str]:
        """Return by its id the mail that other machines have not got, as one of ``UNSENT``."""
        if self.logs.is_shared:
            return {one.id: QUEUED for one in self.queued()}
        if not self.logs.has_kept_mail:
            return {}
        from ..space import space as spaces  # hardly a mailbox left one

        return dict.fromkeys(spaces.read_note(self.logs, spaces.KEPT).splitlines(), NEVER_SENT)

    def catch_up(self) -> None:
        """Take in what other machines decided, before a look that a decision follows; nothing to do for one machine."""
        if (replica := self.replica) is not None:
            with replica.machine_lock():
                replica.catch_up()

    def in_order(self, log: Log, *, is_caught_up: bool = False, hurried: bool = False) -> Log | SharedLog:
        """Return a log as decisions are taken in it: in the order of the machines that share the mailbox, if any do.

        ``is_caught_up``: with what those machines decided so far. ``hurried``: see ``SharedLog``."""
        if not self.logs.is_shared or (replica := self.replica) is None:
            return log
        from ..space.order.ordered_log import SharedLog  # likewise

        shared = SharedLog(replica, log, hurried=hurried)
        if is_caught_up:
            shared.catch_up()
        return shared

    def giving_back(self, sessions: Collection[str]) -> Log | SharedLog:
        """Return the reads' log as mail of sessions of one machine is given back in it.

        A release by their own machine is its record, as the reads are that it ends, and is behind them everywhere.
        Another machine's is a decision, as one about anybody else is."""
        if (replica := self.replica) is None:
            return self.logs.reads
        from ..space.order.ordered_log import SharedLog  # likewise

        return SharedLog(replica, self.logs.reads, is_own=any(map(self._lives_here, sessions)))

    def by_machine(self, sessions: Iterable[str]) -> Iterator[list[str]]:
        """Yield those of the sessions that live here, and then the others, as ``giving_back`` takes them."""
        everybody = list(sessions)
        ours = everybody if not everybody or self.replica is None else [*filter(self._lives_here, everybody)]
        known = {*ours}
        yield from filter(None, (ours, [who for who in everybody if who not in known]))

    def _lives_here(self, session_id: str) -> bool:
        """Return whether a session is of this machine, of several that share the mailbox: its sign of life is here."""
        return bool(self.logs.last_seen([session_id]))

    def elsewhere(self, sessions: Collection[str]) -> list[str]:
        """Return those of the sessions that live on another machine, of several that share the mailbox."""
        if not self.logs.is_shared:
            return []
        return [who for who in sessions if who != USER and not self._lives_here(who)]

    def cut_off(self, sessions: Iterable[str]) -> list[str]:
        """Return those of the sessions that live on another machine, if that one or this left the space of both."""
        roster = self.logs.read_roster()
        agents = (agent for agent in map(roster.get, sessions) if agent is not None and agent.state != DEAD)
        far = [one for one in agents if one.home is not None and not self._lives_here(one.session_id)]
        if not far or (replica := self.replica) is None:
            return [one.session_id for one in far]
        if not (gone := replica.machines_gone()):
            return []
        from ..space.copy import space_troubles  # hardly a machine left

        peers = (one for one in space_troubles.load_peers(replica.directory) if one.machine not in gone)
        moved = {who for one in peers for who in one.seen}  # the mailbox joined again under another name
        return [one.session_id for one in far if one.home in gone and one.session_id not in moved]

    def here(self, message: Message) -> Message:
        """Return a message for showing: files that are still on their way from another machine are marked."""
        if message.attachments is None or not self.logs.is_shared:
            return message
        from ..core import attachments  # rare in mail
        from ..store.attachments import attachment_files

        return attachments.awaited(message, lambda file: attachment_files.is_there(self.directory, file))

    def share(self, replica: Replica) -> None:
        """Decide in the order of several machines from now on."""
        self._replica, self.logs.shared = replica, True

    @property
    def own(self) -> OwnConfig:
        """Return the person's own configuration for the mailbox, as it is now."""
        from ..config import own_config  # where a setting of it counts

        found = own_config.load_own_config(self.directory)
        for fault in found.faults:
            said = f"{own_config.own_config_path()}: {fault.text}"
            if said not in self._told:
                self._told.add(said)
                self.complain(said)
        return found

    def gone(self, sessions: Iterable[str]) -> set[str]:
        """Return those sessions that are gone: they did not end by themselves, and their client's process did.

        The user's own records tell which process that was, and no line of the mailbox.
        """
        roster = self.logs.read_roster()
        return self.gone_of(agent for agent in map(roster.get, sessions) if agent is not None)

    def gone_of(self, agents: Iterable[Agent]) -> set[str]:
        """Return those of the agents that are gone."""
        return self.judge_clients(agents)[0]

    def judge_clients(self, agents: Iterable[Agent]) -> tuple[set[str], set[str]]:
        """Return those of the agents that are gone, and those whose client certainly runs and called our hooks."""
        clients = {agent.session_id: agent.client for agent in agents if agent.may_be_gone}
        if not clients:
            return set(), set()
        hosts = self.hosts or ProcessRecords(self.logs.stamp_files.kept())
        try:
            system.stat(f"{hosts.state}/{paths.UNHOOKED}")
            self.has_unhooked = True
        except OSError:
            pass  # mostly
        return hosts.judge(clients)

    def gone_holders(self, roles: Iterable[str]) -> set[str]:
        """Return those sessions that hold one of the role tags, live by the roster, and are gone.

        If many hold them, the clients that ended are asked first: they are few, and no holder need be decoded.
        """
        roster, wanted = self.logs.read_roster(), set(roles)
        if sum(map(roster.crowd, wanted)) <= MANY_HOLDERS:
            return self.gone_of(agent for role in wanted for agent in roster.carrying(role))
        ended = map(roster.get, (self.hosts or ProcessRecords(self.logs.stamp_files.kept())).ended())
        return self.gone_of(a for a in ended if a is not None and a.state == ALIVE and not wanted.isdisjoint(a.tags))

    def look_up(self, message_id: str) -> Message | None:
        """Return the message of a whole id, by the index if there is one, else among the live ones."""
        from ..store.projection import lookup  # as a thread is shown, or weighed

        found = lookup.ask_index(self.logs, self.archive, lambda index: (index.message(message_id),))
        return self.state().messages.get(message_id) if found is None else found[0]

    def state(self) -> InboxState:
        """Return the live logs, folded."""
        return self.logs.state(self.config.ttls)


def locate_mailbox(given: str | None, environ: Mapping[str, str], start: str | None = None) -> tuple[str, bool]:
    """Return the mailbox to use, and whether it is vouched for: ``--dir`` or ``AGENT_MAILBOX_DIR`` named it, or the
    user's ``init`` made it. It is the one named, else the nearest from ``start`` (default: the working directory)
    upwards. Raises ``NoMailbox``, also if the user's own nearer one is gone: its mail would go to another's readers.
    Raises ``StorageFailed`` if only its messages log was removed. Raises ``Malformed`` for an empty name, as a script's
    unset variable is: the nearest mailbox may be another.

    A variable with a relative path names a mailbox of each directory: it is found there, as without the variable. In a
    client's background service the variable is another terminal's, and does not count.
    """
    if given == "":
        raise Malformed("--dir is empty", "name the mailbox's directory, or leave --dir out")
    variable = environ.get("AGENT_MAILBOX_DIR") if environ.keys().isdisjoint(SERVICES) else None
    if given or (variable and variable.startswith("/")):
        return given or variable or "", True
    begin, known = system.real_directory(start) if start else working_directory(), paths.trusted(environ)
    found = system.absolute(system.join(working_directory(), variable)) if variable else paths.find(begin)
    if found is not None and (real := paths.strays(found, known)) is not None:
        raise NoMailbox(
            f"{found} is {real}, through a link that your `agent-mailbox init` did not record",
            f"if it is to be this project's, too, the person runs `agent-mailbox init {typed(found)}`",
        )
    if (found is None or len(known) > 1) and (gone := paths.nearer_gone(begin, found, known)) is not None:
        raise paths.lost(gone) if paths.is_remnant(gone) else paths.vanished(gone, found)
    if found is None:
        raise NoMailbox(
            "no mailbox here or above",
            "run `agent-mailbox setup` in the project, or name a mailbox with --dir or AGENT_MAILBOX_DIR",
        )
    return found, system.real_directory(found) in known


def working_directory() -> str:
    """Return the working directory; raises ``NoMailbox`` if it is gone."""
    try:
        return system.getcwd()
    except OSError:  # such as that of a worktree that was removed
        hint = "change to a directory that is there, or name the mailbox with --dir or AGENT_MAILBOX_DIR"
        raise NoMailbox("the working directory is gone", hint) from None
