"""The files that the dead leave behind: heartbeat, cursor, stamps, offers, doorbell.

Belongs here: removing them. All are derived, but for the heartbeat, of which only the time counts. A session that comes
back makes them again: its cursor from the logs, which alone tell what it read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control_plane import control_log, standing
from ..core.roster import DEAD
from ..errors import MailboxError
from ..mailbox.delivery import OFFERS
from ..store.files import paths, system
from ..store.files.board import LONG, TASKS, TREES, Board, is_past
from ..store.files.edits import TOLD, Edits
from ..store.files.small_files import list_names, remove_if_possible
from ..store.locks.lock import FileLock
from ..store.log.stamps import QUIET, WOKEN
from ..store.polling.poll import CURSORS
from ..store.user_state import bindings
from ..store.user_state.processes import NOTES, ProcessRecords, find_whereabouts
from ..store.user_state.work_trees import BESIDE

if TYPE_CHECKING:
    from ..core.roster import Agent, Roster
    from ..mailbox.open_mailbox import OpenMailbox
    from ..store.log.logs import Logs

DERIVED = (QUIET, CURSORS, OFFERS, "chains", "alarms", "retired", paths.DOORBELL, TOLD)
"""Directories of ``.cache`` with a file a session; ``chains`` counts a client's turns (``clients.hooks``)."""


def sweep_leftovers(desk: OpenMailbox) -> None:
    """Remove the files of every dead session, and stamps put aside. Files that are in use wait for the next run."""
    logs = desk.logs
    logs.stamp_files.sweep()
    Edits(logs).sweep(system.time_ns() // 1_000_000)
    roster = logs.read_roster()
    _sweep_marks(logs, roster)
    _sweep_bound(logs, roster)
    _sweep_notes(desk, roster)
    directories = (logs.path(paths.HEARTBEATS), *map(logs.cache, DERIVED))
    for session_id in sorted({name for directory in directories for name in list_names(directory)}):
        if roster.state(session_id) == DEAD:
            try:
                _remove_files(logs, session_id)
            except MailboxError:
                pass  # at this moment it is shown mail, or comes back


def _sweep_marks(logs: Logs, roster: Roster) -> None:
    """Remove the marks of tasks, notes and work trees among the user's own records that nobody needs."""
    now = system.time_ns() // 1_000_000
    for kind in (TASKS, TREES):
        Board(logs.stamp_files, kind).sweep(lambda session_id: roster.state(session_id) == DEAD, now)
    place = logs.stamp_files.kept(BESIDE)  # of the sessions of all mailboxes
    for session_id in list_names(place):
        try:
            if roster.state(session_id) == DEAD or is_past(system.join(place, session_id), now):
                system.unlink(system.join(place, session_id))
        except OSError:
            pass  # the session came to be alone


def _sweep_bound(logs: Logs, roster: Roster) -> None:
    """Forget that this mailbox binds sessions that died long ago, but for those of a living client.

    Programs are refused what is the person's as long as any session is bound, wherever that is. A session that comes
    back is bound again at its first call, by its lead in the roster."""
    state, now = logs.stamp_files.kept(), system.time_ns() // 1_000_000
    past = [one for one in paths.bound_sessions(state) if _died_long_ago(roster.get(one), state, paths.BOUND, now)]
    if past:
        for session_id in sorted({*past} - _living_sessions(state)):
            with logs.roster.held():
                if logs.read_roster().state(session_id) == DEAD:
                    bindings.forget(logs.stamp_files, session_id)
            if not paths.is_bound(state, session_id):
                remove_if_possible(system.join(state, paths.CHANGED, session_id))


def _sweep_notes(desk: OpenMailbox, roster: Roster) -> None:
    """Remove the notes of this mailbox's sessions that died long ago, but for those of a living client.

    A session that comes back makes it again. One that was allowed or denied anything keeps it: by its note an agent
    that starts it cannot become it."""
    logs, now = desk.logs, system.time_ns() // 1_000_000
    state, here = logs.stamp_files.kept(), system.real_directory(desk.directory)
    names = list_names(logs.stamp_files.kept(NOTES))
    past = {one for one in names if _died_long_ago(roster.get(one), state, NOTES, now)}
    past = {one for one in past if (where := find_whereabouts(one, state)) is not None and where.mailbox == here}
    if not past:
        return
    fold = control_log.of_agents(desk, past)
    for session_id in sorted(past - _living_sessions(state)):
        is_free = not standing.policy_of(standing.of(fold, session_id)).binds and not paths.is_bound(state, session_id)
        with logs.roster.held():
            if is_free and logs.read_roster().state(session_id) == DEAD:
                remove_if_possible(logs.stamp_files.kept(NOTES, session_id))


def _living_sessions(state: str) -> set[str]:
    hosts = ProcessRecords(state)
    return {session_id for host in hosts.all() if hosts.is_living(host) for session_id in host.sessions}


def _died_long_ago(agent: Agent | None, state: str, kind: str, now: int) -> bool:
    """Return whether an agent died long ago, and its file of this kind is as old. Any program may date a death."""
    if agent is None or agent.state != DEAD or now - agent.changed < LONG:
        return False
    try:
        return is_past(system.join(state, kind, agent.session_id), now)
    except OSError:
        return False


def _remove_files(logs: Logs, session_id: str) -> None:
    """Remove a session's files.

    Its heartbeat is its delivery lock, so it goes last, and under the lock. A process that waits for the lock finds the
    file gone, and makes a new one (``FileLock.take``). Registering needs the roster's lock: no session comes back in
    between.
    """
    with FileLock(logs.heart(session_id), 0), logs.roster.held():
        if logs.read_roster().state(session_id) != DEAD:
            return
        logs.stamp_files.disturb([session_id])
        wakes = system.join(logs.stamp_files.kept_here(WOKEN), session_id)
        for path in (wakes, *(logs.cache(name, session_id) for name in DERIVED), logs.heart(session_id)):
            remove_if_possible(path)
