"""The steward, which cron runs: archive, sweep the roster, verify.

Belongs here: the order of a run, and its cron line. ``core.keeping.retention`` and ``core.roster_changes.swept`` have
the rules; ``store.archive.rotation`` moves the mail.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from ..control_plane import task_reports, watch_reports
from ..core import obligations, roster_changes
from ..core.findings import Problem
from ..core.keeping import retention
from ..core.proofs import STEWARD
from ..core.records import Record, RosterEvent
from ..core.roster import DEAD
from ..errors import BadData, MailboxError, Refused
from ..mailbox import absence, agents
from ..mailbox.mailbox import Mailbox
from ..mailbox.queries import MailQueries
from ..mailbox.registry import Registry
from ..store.archive import roster_compaction, rotation
from ..store.attachments import attachment_files
from ..store.files.paths import CONFIG
from ..store.files.small_files import note_time, remove_if_possible
from ..store.log import events
from . import doctor, leftovers, notices, notify, shared_steward, waker
from .doctor import clock_signs, obstacles, use_checks

if TYPE_CHECKING:
    from ..core.roster import Roster


_GOES_BY = ("steward", "ttl")
"""The tables of a mailbox's configuration by which it ends agents and archives mail."""


class Report(Record):
    """The counts of a run, and the problems that verification found."""

    archived: int
    kept: int
    pending: int
    frozen: int
    retired: int
    problems: tuple[Problem, ...]


def run_upkeep(mailbox: Mailbox, max_live: int | None = None, *, trust_clock: bool = False) -> Report:
    """Sweep, archive, compact and verify; idempotent. All machines of a shared mailbox archive the same.

    Raises ``Busy`` while another steward runs, and ``BadData`` if a setting that it goes by is wrong. Raises
    ``Refused`` if the clock is far from every sign in the mailbox, unless ``trust_clock``.
    """
    _check_settings(mailbox)
    _check_directories(mailbox)
    limit = mailbox.config.max_live if max_live is None else max_live
    copy = mailbox.replica
    alone = rotation.alone(mailbox.archive, mailbox.logs.wait)
    with alone if copy is None else copy.steward_lock:  # the machine's lock comes ahead of the archive's
        if not trust_clock:
            clock_signs.check_clock(mailbox)
        swept = _sweep_roster(mailbox)
        _tell_watchers(mailbox)
        hopeless = notices.notify_senders(mailbox, mailbox.now())
        kept = [] if copy is not None else _find_immovable(mailbox)
        if copy is None:
            moved = _move_finished(mailbox, limit, hopeless, movable=not kept)
        else:
            moved = shared_steward.move_finished(mailbox, copy, limit, hopeless)
        with nullcontext() if copy is None else alone:
            events.rotate(mailbox.logs)
            leftovers.sweep_leftovers(mailbox)
            attachment_files.sweep(mailbox.logs, mailbox.archive, mailbox.now())
        note_time(mailbox.logs.cache(rotation.LAST_RUN), mailbox.now())
        remove_if_possible(mailbox.logs.cache(clock_signs.DOUBT))  # it ran
    MailQueries(mailbox).keep_index()
    _tell_person(mailbox)
    return Report(
        archived=moved.archived,
        kept=moved.kept,
        pending=moved.pending,
        frozen=sum(event.event == "freeze" for event in swept),
        retired=sum(event.event == "retire" for event in swept),
        problems=(*kept, *doctor.problems_among(doctor.examine_mailbox(mailbox, archived=False))),
    )


def _check_directories(mailbox: Mailbox) -> None:
    """Raise ``Refused`` if a link is in the place of a directory: what the steward removes there may be anybody's."""
    for path in use_checks.own_directories(mailbox):
        if (found := obstacles.to_own(path)) is not None:
            raise Refused(f"{found.path}: {found.why}, and what is there may be another's", found.repair)


def _check_settings(mailbox: Mailbox) -> None:
    """Raise ``BadData`` if nobody can tell after how long the person wants agents and mail to end."""
    wrong = [fault.text for fault in mailbox.config.faults if fault.section in ("", *_GOES_BY)]
    if wrong:
        raise BadData(f"{mailbox.logs.path(CONFIG)}: {wrong[0]}", "correct it; until then the steward moves nothing")


def _find_immovable(mailbox: Mailbox) -> list[Problem]:
    """Return why nothing can be archived: a log that cannot be replaced keeps all its lines, in both places never.

    On a full disk archiving itself fails, and so does the run: nobody is told that it did what it could not."""
    found = dict.fromkeys(filter(None, map(obstacles.to_replace, use_checks.replaced_files(mailbox))))
    staying = [one for one in found if not one.passes]
    return [Problem(one.path, None, f"{one.why}, so nothing was archived; {one.repair}") for one in staying]


def _move_finished(mailbox: Mailbox, limit: int, hopeless: set[str], *, movable: bool) -> rotation.Rotated:
    """Archive what is finished, and compact the roster; if nothing is ``movable``, only count."""
    if not movable:
        state = mailbox.state()
        pending = retention.plan(state, mailbox.now(), limit).pending
        return rotation.Rotated(archived=0, kept=len(state.messages), pending=pending)
    moved = rotation.rotate(
        mailbox.logs,
        mailbox.archive,
        mailbox.config.ttls,
        lambda state: notices.held_back(retention.plan(state, mailbox.now(), limit), mailbox, state, hopeless),
    )
    oldest = min((m.timestamp for m in mailbox.state().messages.values()), default=mailbox.now())
    roster_compaction.compact_roster(mailbox.logs, mailbox.archive, oldest)
    return moved


def _tell_person(mailbox: Mailbox) -> None:
    """Tell the person what waits, and start whom mail waits for, where their own configuration says how."""
    with suppress(MailboxError):  # the doctor tells of a wrong configuration; mail has moved all the same
        notify.notify_if_due(mailbox)
        waker.start_waited_for(mailbox)


def _tell_watchers(mailbox: Mailbox) -> None:
    """Tell what a process that was killed could not, and forget the watches that are over. Tell of tasks whose holder
    ended or is silent."""
    if mailbox.prove(STEWARD) is not None:
        watch_reports.of_all_that_is(mailbox, STEWARD)
        task_reports.tell(mailbox, STEWARD)


def _sweep_roster(mailbox: Mailbox) -> tuple[RosterEvent, ...]:
    """Freeze the gone and the silent, retire the long frozen, and give back the mail of theirs that others can take."""
    config = mailbox.config

    def decide_sweep(roster: Roster) -> roster_changes.Decision:
        seen = agents.judged_signs(mailbox, roster.agents)
        hours, days = config.freeze_after_hours, config.retire_after_days
        return roster_changes.Decision(roster_changes.swept(roster, seen, mailbox.now(), hours, days))

    gone = absence.note(mailbox, mailbox.logs.read_roster().agents, STEWARD)
    decision = mailbox.part(Registry).change_roster(decide_sweep, STEWARD)
    state = mailbox.state()
    offered = {r.session_id for i in state.messages for r in state.reads.unseen(i) if absence.is_by_role(r)}
    if offered:
        absence.hand_back(mailbox, offered, STEWARD)
    # A process killed after it recorded a death did not give back.
    readers = {read.session_id for m in state.messages.values() if m.ack for read in state.reads.of(m.id)}
    dead = [reader for reader in sorted(readers) if state.roster.state(reader) == DEAD]
    for group in mailbox.by_machine(dict.fromkeys(who for who, _ in obligations.owed_on_death(dead, state))):
        mailbox.part(Registry).give_back(group, STEWARD)
    return (*gone, *decision.events)
