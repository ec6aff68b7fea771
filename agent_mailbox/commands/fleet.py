"""The members of a team: started or brought back, awaited, ended.

Belongs here: which member is missing, and the steps in their order. A member's entry in the roster is there before its
first turn, by the person's proof; ``clients.starting`` has the words for each client.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from typing import TYPE_CHECKING, Any

from ..clients import starting
from ..clients.starting import tmux
from ..clients.starting.start import STOPS, Begun, Start, run_client, wait_while
from ..control.orders import Orders
from ..control.requests import Requests
from ..core import roster_changes
from ..core.control import messages
from ..core.records import USER
from ..core.roster import ALIVE, DEAD
from ..core.roster_changes import Registration
from ..core.text import neutral, typed
from ..errors import MailboxError, Refused
from ..identity import session_registry
from ..known_clients.every_client import STARTED
from ..mailbox import absence
from ..mailbox.registry import Registry
from ..mailbox.session_brake import SessionBrake
from ..store.files import paths, system
from ..store.user_state import processes, team_records
from ..store.user_state.team_records import Started

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ..cli.context import Context
    from ..core.roster import Roster
    from ..core.team_file import PlannedMember, Team
    from ..mailbox.open_mailbox import OpenMailbox
    from ..store.user_state.team_records import TeamRecord

LEFT, SHARED, UNTOLD = "still runs", "still runs in a server that others use", "may still run"
"""It is told of a member that ``down`` could not end; of one of which nothing tells whether it runs. ``SHARED``: its
server was left alone, since that runs sessions that ``up`` did not start."""
LAST = 5.0
"""Seconds that what was told to end has for it, before the next step."""
AS_ASKED = "ended as asked"
AGAIN = "You were started again. `agent-mailbox status` shows what you owe and hold; go on with it."
OURS = ("AGENT_MAILBOX_DIR", "AGENT_MAILBOX_NAME", "AGENT_MAILBOX_ROLE", "AGENT_MAILBOX_TAGS", "AGENT_MAILBOX_LEAD")
"""Variables that no member has from the terminal."""


def session_of(member: PlannedMember, record: TeamRecord, roster: Roster) -> str:
    """Return a member's session; empty if it has none yet. One that told nobody its id is found by its name, and a
    cleared one by the session that has its place."""
    known = record.members.get(member.name)
    if known is not None and known.session_id:
        return present_session(known.session_id, roster)
    bearer = roster.bearer(member.name) if known is not None else None
    return bearer.session_id if bearer is not None and bearer.state != DEAD else ""


def present_session(session_id: str, roster: Roster) -> str:
    """Return the session that has the place of this one, if it was cleared; else this one."""
    if roster.state(session_id) != DEAD:
        return session_id
    return next((heir for heir in roster.heirs(session_id) if session_id in roster.estate(heir)), session_id)


class Fleet:
    """A team's sessions, as its record has them."""

    def __init__(
        self,
        app: Context,
        box: OpenMailbox,
        path: str,
        record: TeamRecord,
        programs: Mapping[str, tuple[str, ...]],
        *,
        in_tmux: bool = False,
    ) -> None:
        self._app = app
        self._box = box
        self._path = path
        self._programs = programs
        self._in_tmux = in_tmux
        self._environ = {name: value for name, value in app.environ.items() if name not in OURS}
        self._hosts = app.hosts
        self.record = record

    def keep(self, **changes: Any) -> None:
        """Change the record, and write it down."""
        record = self.record.replace(**changes)
        team_records.save_record(self._path, record, self._app.environ)
        self.record = record

    def check_members(self, team: Team) -> None:
        """Raise ``Refused`` for a member that cannot be started as the file says, before any is started.

        A client that was started, and then was refused its name, would run on."""
        for member in team.behind_leads():
            roster, known = self._box.logs.read_roster(), self.record.members.get(member.name)
            if known is not None and known.client != member.client and self._is_left(known):
                raise Refused(
                    f"{member.name} still runs with {STARTED[known.client].title}",
                    f"`agent-mailbox down {typed(self._path)}` ends the team",
                )
            me = self._session_to_bring_back(member, roster) or str(uuid.uuid4())
            absence.note_bearer(self._box, member.name, me)
            lead = member.lead if member.lead == USER else None  # another member is not there yet
            wish, roster, now = self._registration(member, me, lead), self._box.logs.read_roster(), self._box.now()
            roster_changes.enrolled(wish, roster, USER, now, self._box.config.namespaces)

    def _session_to_bring_back(self, member: PlannedMember, roster: Roster) -> str:
        """Return a member's session, if the client that the file names now can bring it back; else empty."""
        known, me = self.record.members.get(member.name, Started()), session_of(member, self.record, roster)
        is_served = _is_in_service(known.client) and not known.window
        is_forgotten = is_served and not self._is_left(known) and not starting.has_talk(me, self._environ)
        return me if known.client == member.client and not is_forgotten else ""

    def bring_all_up(self, team: Team) -> dict[str, MailboxError]:
        """Start whoever is missing, each behind its lead. Return by name why one was not started: the others are.

        One whose lead is not there waits for the next time: without it the person would lead that one."""
        failed = dict[str, MailboxError]()
        for member in team.behind_leads():
            try:
                if member.lead in failed:
                    raise Refused(f"it is led by {member.lead}", "run `up` again once that one starts")
                self._bring_up(member, team)
            except MailboxError as error:
                error.what = f"{member.name} was not started: {error.what}"
                failed[member.name] = error
        return failed

    def _bring_up(self, member: PlannedMember, team: Team) -> None:
        """Start a member, or bring it back. One that runs is left alone, and so is one that did not call a hook yet."""
        roster, known = self._box.logs.read_roster(), self.record.members.get(member.name, Started())
        me = self._session_to_bring_back(member, roster)
        if (me and self._runs(me)) or self._is_begun(known):
            if known.prompt:  # its `up` was killed
                self._keep_member(member, known.replace(prompt="", before=()))
                self._register(member, me)
            self.give_rules(member, team)
            return
        unsent = "" if _is_in_service(known.client) else known.prompt
        if unsent and not (_is_in_server(known) and starting.is_listening(self._environ)):
            self._end(known)  # it may run the session, and its password is lost, or it does not listen yet
        logs = system.join(paths.state_directory(self._app.environ), "teams", "logs")
        system.make_directory(logs)
        start = Start(
            name=member.name, client=member.client, model=member.model, worktree=member.worktree, session_id=me,
            words=self._programs[member.client], prompt=(unsent or AGAIN) if me else member.prompt,
            directory=os.path.dirname(self._path), wishes=self._wishes(member),
            log=system.join(logs, f"{member.name}.log"),
            note_server=lambda pid: self._keep_member(member, self._at(self.record.members[member.name], pid)),
        )  # fmt: skip
        begins = Started(client=member.client, denied=known.denied if me else ())
        begins = self._at(begins, self._server_of(member))

        def register(session_id: str) -> None:
            # first, so that one whose `up` is killed now is found again
            known = begins if self._in_tmux or _is_in_service(member.client) else self.record.members[member.name]
            self._keep_member(member, known.replace(session_id=session_id))
            self._register(member, session_id)
            self.give_rules(member, team)

        with self._found_again(start, begins):
            begun = self._begin(start, register)
        # one whose client tells no id is known from here on: by its name, so not before it began
        one = self.record.members[member.name] if begun.session_id else begins
        one = self._at(one.replace(prompt="", window=begun.window), begun.server)
        try:
            self._keep_member(member, one)
            if begun.window:
                tmux.let_begin(start)
        except BaseException:  # as on a full disk: nothing else would know of it
            self._end(one.replace(pid=begun.server))
            raise

    @contextlib.contextmanager
    def _found_again(self, start: Start, begins: Started) -> Iterator[None]:
        """Have a session that begins in a ``with`` block be found again, or its server, if we are killed there."""
        members, is_served = self.record.members, _is_in_service(start.client)
        if not self._in_tmux and not (is_served and start.session_id):
            jobs = tuple(job.session_id for job in session_registry.list_jobs(self._environ)) if is_served else ()
            begins = begins.replace(session_id=start.session_id, prompt=start.prompt, before=jobs)
            self.keep(members={**members, start.name: begins})
        try:
            yield
        except BaseException:
            left = self.record.members.get(start.name, begins)
            if left.prompt and not left.session_id:
                self.keep(members=members)
            raise

    def _server_of(self, member: PlannedMember) -> int:
        """Return the process that ``up`` started for a member before, and that runs this one, too; 0 without one."""
        started = () if self._in_tmux else self.record.members.values()
        mine = (one for one in started if one.client == member.client and _is_in_server(one))
        return next((one.pid for one in mine if self._has_process(one)), 0)

    def _begin(self, start: Start, register: Any) -> Begun:
        if self._in_tmux:
            return tmux.start_in_tmux(start, register, self._environ, self.tmux_session)
        return starting.WAYS[start.client](start, register, self._environ)

    def _at(self, one: Started, server: int) -> Started:
        """Return a member with the process that runs it; 0: the same as before."""
        found = processes.read(server) if server else None
        return one if found is None else one.replace(pid=server, start=found.start, here=self._hosts.here)

    def _keep_member(self, member: PlannedMember, known: Started) -> None:
        self.keep(members={**self.record.members, member.name: known})

    @property
    def tmux_session(self) -> str:
        """Return the name of the tmux session in which the members have their windows; empty without tmux."""
        return tmux.session_name(self._box.directory) if self._in_tmux else ""

    def _lead_of(self, member: PlannedMember) -> str | None:
        if member.lead in ("", USER):
            return member.lead or None
        known = self.record.members.get(member.lead)
        return known.session_id if known is not None and known.session_id else None

    def _wishes(self, member: PlannedMember) -> dict[str, str]:
        said = {
            "AGENT_MAILBOX_NAME": member.name,
            "AGENT_MAILBOX_ROLE": ",".join(member.roles),
            "AGENT_MAILBOX_TAGS": ",".join(member.tags),
            "AGENT_MAILBOX_LEAD": self._lead_of(member) or "",
        }
        return {name: value for name, value in said.items() if value}

    def _register(self, member: PlannedMember, session_id: str) -> None:
        """Register a session in the person's name, as soon as its id is known."""
        absence.note_bearer(self._box, member.name, session_id)
        request = self._registration(member, session_id, self._lead_of(member))
        _, decision = Registry(self._box).register(request, USER)
        for warning in decision.warnings:
            self._app.give_warning(warning)
        SessionBrake(self._box, session_id).set_most(member.wakes_per_day)

    def _registration(self, member: PlannedMember, session_id: str, lead: str | None) -> Registration:
        return Registration(
            session_id=session_id, name=member.name, roles=member.roles or None, add_tags=member.tags, lead=lead
        )

    def _runs(self, session_id: str) -> bool:
        """Return whether a session is there: its client called a hook, and its process lives."""
        agent = self._box.logs.read_roster().get(session_id)
        is_alive = agent is not None and agent.state == ALIVE and self._is_hosted(session_id)
        return is_alive and not self._box.gone([session_id])

    def _is_hosted(self, session_id: str) -> bool:
        return any(self._hosts.is_living(host) for host in self._hosts.hosting(session_id))

    def wait_for_all(self, members: Sequence[PlannedMember], seconds: float) -> list[PlannedMember]:
        """Wait until each member's client called a hook; return those that did not."""
        left = [*members]

        def are_missing() -> bool:
            roster = self._box.logs.read_roster()
            left[:] = [one for one in left if not self._runs(session_of(one, self.record, roster))]
            return bool(left)

        wait_while(are_missing, seconds)
        self._note_processes(members)
        return left

    def _note_processes(self, members: Sequence[PlannedMember]) -> None:
        """Note which process runs each session, for ``down``."""
        roster, changed = self._box.logs.read_roster(), dict(self.record.members)
        for one in members:
            known = changed[one.name].replace(session_id=session_of(one, self.record, roster))
            hosts = [host for host in self._hosts.hosting(known.session_id) if self._hosts.is_living(host)]
            if hosts and _is_in_service(one.client) and not known.window:
                known = known.replace(pid=hosts[0].pid, start=hosts[0].start, here=hosts[0].here)
            changed[one.name] = known
            if known.session_id:  # one that runs has the limit of the file as it is now
                SessionBrake(self._box, known.session_id).set_most(one.wakes_per_day)
        self.keep(members=changed)

    def former_members(self, team: Team) -> list[str]:
        """Return those who run, and whom the file does not name any more."""
        now = {one.name for one in team.members}
        return [name for name, one in self.record.members.items() if name not in now and self._is_left(one)]

    # -- rules ------------------------------------------------------------------------------------------------------

    def give_rules(self, member: PlannedMember, team: Team) -> None:
        """Put a member under those rules of its roles that it was not given yet; later, if its session is unknown."""
        known = self.record.members[member.name]
        rules = dict.fromkeys(rule for role in member.roles for rule in team.denied.get(role, ()))
        new = [rule for rule in rules if rule not in known.denied]
        if new and known.session_id:
            Orders(self._box).set_policy(USER, [known.session_id], deny=new, adds=True)
            self._keep_member(member, known.replace(denied=(*known.denied, *new)))

    # -- the end ------------------------------------------------------------------------------------------------------

    def bring_down(self, wait: float) -> dict[str, str]:
        """Ask each member to end, wait, and end what is left; return by name how each ended."""
        roster = self._box.logs.read_roster()
        members = {
            name: one.replace(session_id=present_session(one.session_id, roster))
            for name, one in self.record.members.items()
        }
        left = {name for name, one in members.items() if self._is_left(one)}
        asked = {name: members[name] for name in left if self._runs(members[name].session_id)}
        for one in asked.values():
            try:
                Requests(self._box).request(USER, messages.ShutdownRequest(reason="the team ends"), to=one.session_id)
            except MailboxError as error:
                self._app.give_warning(f"{neutral(one.session_id)} was not asked to end: {error.what}")
        wait_while(lambda: any(map(self._is_there, asked.values())), wait)
        ended = {name: "was ended" if name in left else "was not running" for name in members}
        ended.update((name, UNTOLD) for name, one in members.items() if self._is_untold(one))
        ended.update((name, AS_ASKED) for name, one in asked.items() if not self._is_there(one))
        shared = self._shared_servers(members.values())
        for one in members.values():
            if one.pid not in shared:
                self._end(one)
        for name, one in members.items():  # behind all: one member's server may have run another
            if one.pid in shared and ended[name] != AS_ASKED:
                ended[name] = SHARED
            elif one.pid not in shared and self._is_left(one):
                ended[name] = LEFT
            else:
                self._freeze(one)
        return ended

    def _is_left(self, one: Started) -> bool:
        """Return whether anything runs a member: its client, what ``up`` started, or the client's own service."""
        return (
            self._is_hosted(one.session_id)
            or self._has_process(one)
            or (_is_in_service(one.client) and session_registry.is_served(one.session_id, self._environ))
        )

    def _shared_servers(self, members: Collection[Started]) -> set[int]:
        """Return the processes of servers that ``up`` started, and that run sessions of others, too."""
        found = {one.pid for one in members if _is_in_server(one) and self._has_process(one)}
        ours = {one.session_id for one in members}
        return found if found and starting.serves_others(ours, self._environ) else set()

    def _is_untold(self, one: Started) -> bool:
        """Return whether a server that ``up`` did not start may run a member, which never called a hook."""
        return (
            _is_in_server(one)
            and not one.pid
            and not self._hosts.hosting(one.session_id)
            and starting.is_listening(self._environ)
        )

    def _is_begun(self, one: Started) -> bool:
        """Return whether a member was begun and runs, though perhaps without our hooks. A server that has the sessions
        of all terminals tells nothing of one."""
        is_its_own = not _is_in_server(one) and not one.prompt and self._has_process(one)
        return is_its_own or session_registry.is_served(one.session_id, self._environ)

    def _is_there(self, one: Started) -> bool:
        return self._box.logs.read_roster().state(one.session_id) == ALIVE

    def _end(self, one: Started) -> None:
        """End a member's process: the one that ``up`` started, and no other with its number."""
        if _is_in_service(one.client) and not one.window and self._is_left(one):
            with contextlib.suppress(MailboxError):  # its process is ended below
                program = self._box.own.up.get(one.client) or (STARTED[one.client].program,)
                run_client([*program, "stop", one.session_id[:8]], "/", self._environ, STOPS)
                wait_while(lambda: self._is_left(one), LAST)  # brought back before that, the client makes a copy
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._has_process(one):
                with contextlib.suppress(ProcessLookupError):  # a launcher's program is in its group
                    (os.killpg if os.getpgid(one.pid) == one.pid else os.kill)(one.pid, number)
                wait_while(lambda: self._has_process(one), LAST)

    def _freeze(self, one: Started) -> None:
        agent = self._box.logs.read_roster().get(one.session_id)
        if agent is not None and agent.state == ALIVE:
            Registry(self._box).end(one.session_id, "freeze", USER, "its team ended")

    def _has_process(self, one: Started) -> bool:
        """Return whether the process that ``up`` started for a member lives."""
        return bool(one.pid and one.here == self._hosts.here and processes.lives(one.pid, one.start))


def _is_in_service(client: str) -> bool:
    """Return whether the client of that word runs in the background by a service of its own, beside tmux."""
    return client in STARTED and bool(STARTED[client].services)


def _is_in_server(one: Started) -> bool:
    """Return whether a member runs in the one server that runs the sessions of all its client's terminals."""
    return not one.window and one.client in STARTED and bool(STARTED[one.client].server)
