"""The doorbell: a process beside an idle session that waits for its mail, and ends with the code that wakes it.

Belongs here: when to ring. The client starts it in the background (``asyncRewake``) with a session and with each
prompt, also with the one that a ring brings. Exit code 2 then wakes the session, whose prompt hook shows the mail. So a
ring says one fixed line: no message's text leaves the frame.

Our writers remove a session's quiet stamp, and other programs do not. So it also looks, now and then, after a change of
the mailbox's files.

It rings for mail that is unread while the session is idle: not in a turn, which has its own hooks, nor into a dialog. A
ring reads nothing. While its mail is still unread it rings again after ever longer pauses; at once only if the inbox
was empty in between.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..core import inbox
from ..core.inbox import ALONG
from ..core.records import IDLE as IDLE_TIME
from ..core.records import NOW
from ..core.roster import ALIVE
from ..errors import MailboxError, NoMailbox
from ..mailbox import absence
from ..mailbox.delivery import WITHHELD, Delivery
from ..mailbox.open_mailbox import OpenMailbox, wall_clock
from ..mailbox.sending import Sending
from ..mailbox.session_brake import SessionBrake
from ..store.files import paths, system
from ..store.files.board import TASKS, WATCHED, Board
from ..store.files.small_files import time_of
from ..store.files.watch import Watch
from ..store.locks.doorbell_lock import NOBODY, OFF
from ..store.log import events
from ..store.log.stamps import QUIET, StampFiles
from ..store.user_state import removed_hooks, replaced_program
from .client import BUSY, IDLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.brake import BrakeVerdict
    from ..core.inbox import Item
    from ..core.records import Proof
    from ..store.locks.doorbell_lock import DoorbellLock
    from .client import Client

LINE = "agent-mailbox: new mail"
WAKE = 2
"""The exit code that wakes the session."""
TOKENS = 6
"""Tokens of our line, four characters each; ``client`` knows those of a notice around it. The mail itself comes in the
frame of the prompt's hook."""
RING = 0.0
"""A result that says: ring now. Any other number is when to look again."""
SETTLE, AT_MOST = 0.15, 2.0
"""Seconds without more mail before it rings, so that a burst rings once; seconds it waits for that at most."""
PAUSE, LONGEST = 15.0, 86_400.0
"""Seconds until it rings again for mail that a ring had shown in part. The pause grows fourfold each time none was
shown, up to the longest."""
TURN = 3.0
"""Seconds a holder of a role lets each earlier one go first: one of them is enough to take the mail."""
SILENT = 30.0
"""Seconds without a hook after which a session counts as idle, if its client does not say what it does."""
BEAT = 3600.0
"""Seconds between two heartbeats of a sleeping session: it is there, for mail wakes it."""
LOOKS = 2.0
"""Seconds between two looks if nothing wakes us."""
CALM = 1.0
"""Seconds from a change of the mailbox's files to the look for a foreign write in them: one look for all changes."""
WATCHES = 5.0
"""Seconds between two looks at the clients of the agents that the session watches."""
TELLS = 300.0
"""Seconds between two looks for tasks whose holder ended or is silent."""
TROUBLE = 60.0
"""Seconds before another look at an unreadable mailbox."""


class Doorbell:
    """One session's doorbell: ``wait_for_mail`` gives the exit code."""

    def __init__(
        self, directory: str, session_id: str, client: Client, lock: DoorbellLock, prove: Callable[[str], Proof | None]
    ) -> None:
        self._directory = directory
        self._me = session_id
        self._client = client
        self._lock = lock
        self._prove = prove
        self._quiet = system.join(directory, paths.CACHE, QUIET)
        self._trail = StampFiles(system.join(directory, paths.CACHE))
        self._watched = Board(self._trail, WATCHED)
        self._lost = self._off = 0.0
        self._known_here = self._was_alive = False
        self._alive_under: tuple[int, int, int] | None = None
        self._unread: frozenset[str] = frozenset()
        self._since = self._changed = 0.0
        self._asked: object = None
        self._started = time.monotonic()
        self._next_beat = self._started + BEAT
        self._next_tell = self._started + TELLS
        self._calm_until = 0.0
        self._rings, self._announced_at, self._announced = _parse_left(lock.left)

    def wait_for_mail(self) -> int:
        """Wait; return ``WAKE`` when it is time, else 0 (session, client or mailbox are gone, or another one waits)."""
        while True:
            quiet = self._is_quiet()
            with Watch(self._watched_places(quiet), LOOKS) as watch:
                if self._is_quiet() != quiet:
                    continue  # the watched paths depend on it
                due = self._look_for_mail()
                if due is None:
                    return 0
                if due == RING:
                    self._lock.leave(NOBODY, (str(self._rings), f"{self._announced_at:.3f}", *sorted(self._announced)))
                    return WAKE
                if self._is_quiet() == quiet:
                    self._wait_for_look(watch, due, quiet)

    def _wait_for_look(self, watch: Watch, due: float, quiet: bool) -> None:
        """Block until the next look. With a quiet stamp, others' mail causes one look in ``CALM`` seconds at most.

        ``store.files.watch`` looks now and then without inotify, and needs no such pause.
        """
        calm = self._calm_until
        if calm > time.monotonic():
            watch.wait(min(due, calm), *self._client.ends)
        elif watch.wait(due, *self._client.ends) and quiet and watch.hears:
            self._calm_until = time.monotonic() + CALM

    def _is_quiet(self) -> bool:
        return self._quiet_stamp() is not None

    def _quiet_stamp(self) -> tuple[int, int, int] | None:
        """Return the session's quiet stamp, if the guard believes it. While it is the same one, no roster event of ours
        concerned the session; a new one says nothing of its state."""
        return self._trail.believed(self._me, wall_clock())

    def _watched_places(self, quiet: bool) -> list[str]:
        """Return the paths to watch. With a quiet stamp, others' mail does not matter: the stamp goes before our
        writers bring mail for this session (``store.log.stamps``). A foreign write is found by the files' times."""
        calm = quiet and self._calm_until > time.monotonic()
        places = [self._quiet, self._lock.directory, self._client.watched_path(), None if calm else self._directory]
        places += self._client.settings
        return [place for place in places if place and system.exists(place)]

    # -- one look -----------------------------------------------------------------------------------------------------

    def _look_for_mail(self) -> float | None:
        """Return when to look again at the latest (monotonic seconds), or RING; None: it is over."""
        if not self._client.is_alive():
            return None
        try:
            if not paths.is_there(system.join(self._directory, paths.MESSAGES)):
                return None
            now = time.monotonic()
            if self._lock.stands():
                self._lost = 0.0
                return self._latest_look(now)
            return self._take_place_again(now) if self._lock.removed() else None
        except NoMailbox:
            return None
        except Exception as error:
            if replaced_program.was_replaced():
                return RING  # the hook that shows the mail starts the next doorbell, which is of the new version
            if not isinstance(error, (MailboxError, OSError)):
                raise
            return time.monotonic() + TROUBLE  # the session's next hook says what is wrong

    def _take_place_again(self, now: float) -> float | None:
        """Take the place again after the derived files were removed, but not during the removal."""
        self._lost = self._lost or now
        if now < self._lost + LOOKS:
            return self._lost + LOOKS
        return self._latest_look(now) if self._lock.take(replace=False) else None

    def _latest_look(self, now: float) -> float | None:
        session, status = self._client.session_and_status()
        here = session == self._me
        if session is not None and not here and (self._known_here or now > self._started + TROUBLE):
            return None  # cleared, or replaced by another session (at a start the client first names another id)
        self._known_here = self._known_here or here
        if not self._client.is_switched_off(system.join(self._directory, paths.HEARTBEATS, self._me)):
            self._off = 0.0
        elif self._off and now >= self._off + CALM:  # not a file that is being written
            removed_hooks.note_session(self._trail.kept(), self._me)
            return None  # it would show nothing
        else:
            self._off = self._off or now
            return self._off + CALM
        self._tell_if_due(now)
        stamp = self._quiet_stamp()
        if stamp and stamp == self._alive_under and now < self._next_beat and not self._sees_one_gone():
            self._unread = frozenset()
            return self._next_look(now)
        stamp = self._quiet_stamp()
        desk = OpenMailbox(self._directory, wait=1.0, prove=self._prove)
        desk.weigh_mail()
        if not desk.config.doorbell:
            self._lock.leave(OFF, (), desk.config.stamp[2])
            return None
        state = desk.logs.read_roster().state(self._me)
        if state != ALIVE:
            return None if self._was_alive else now + TROUBLE  # a hook is recording its start
        self._was_alive, self._alive_under = True, stamp
        if now >= self._next_beat:
            desk.logs.beat(self._me, desk.now())
            self._next_beat = now + BEAT
        if stamp or (here and status in BUSY):
            self._unread = frozenset()
            return self._next_look(now)
        if not here or status not in IDLE:
            silent = self._silent_since(desk) + SILENT
            if silent > now:
                return silent
        if self._client.may_be_left():
            return now + LOOKS
        delivery = Delivery(desk)
        due_now = inbox.due(delivery.look_for_showable(self._me), NOW, IDLE_TIME)
        items = [item for item in due_now if inbox.timing(item) != ALONG]
        due = self._rings_for_task(desk, now) if not items else self._rings_at(desk, items, now)
        return min(due, now + WITHHELD) if delivery.withheld else due

    def _rings_at(self, desk: OpenMailbox, items: Sequence[Item], now: float) -> float:
        unread = frozenset(item.message.id[:8] for item in items)
        if unread != self._unread:
            self._since = self._since if self._unread else now
            self._unread, self._changed = unread, now
        due = min(self._changed + SETTLE, self._since + AT_MOST) + self._wait_for_others(desk, items)
        left = unread & self._announced
        if left:
            shown = left != self._announced
            pause = PAUSE if shown else min(PAUSE * 4.0 ** (self._rings - 1), LONGEST)
            due = max(due, self._announced_at + pause)
        if due > now:
            return due
        found = self._brake(desk).may_ring(items)
        if not found.wakes:
            return self._after_brake(found, desk, now)
        self._rings = self._rings + 1 if left == self._announced and left else 1
        self._announced, self._announced_at = unread, now
        events.note_wake(desk.logs, self._me, desk.now(), TOKENS + self._client.notice)
        return RING

    def _brake(self, desk: OpenMailbox) -> SessionBrake:
        return SessionBrake(desk, self._me, Sending(desk).send)

    def _after_brake(self, found: BrakeVerdict, desk: OpenMailbox, now: float) -> float:
        """Return when to look again at what the brake holds up."""
        wait = LONGEST if found.again is None else max((found.again - desk.now()) / 1000, SETTLE)
        return min(now + wait, self._next_look(now))

    def _rings_for_task(self, desk: OpenMailbox, now: float) -> float:
        """Return when to ring for a task that is to wake the session. That is asked once for each state of the logs."""
        self._unread = frozenset()
        if not self._trail.is_offered(self._me) or self._asked == (ends := desk.logs.ends()):
            return self._next_look(now)
        from ..control import task_offers  # where tasks are

        found = self._brake(desk).may_ring_for_task(lambda: task_offers.wakes(desk, self._me))
        if found.held:
            return self._after_brake(found, desk, now)
        self._asked = ends
        if not found.wakes:
            return self._next_look(now)
        events.note_wake(desk.logs, self._me, desk.now(), TOKENS + self._client.notice)
        return RING

    def _wait_for_others(self, desk: OpenMailbox, items: Sequence[Item]) -> float:
        """Return the seconds to let others go first: 0, unless all of the mail is for roles that others hold too."""
        if not all(item.claims for item in items):
            return 0.0
        roster = desk.logs.read_roster()
        holders = ([agent.session_id for agent in roster.carrying(item.via)] for item in items)
        return TURN * min(ids.index(self._me) if self._me in ids else 0 for ids in holders)

    def _next_look(self, now: float) -> float:
        """Return when to look again although no mail comes: soon, if the session watches others or there are tasks."""
        looks = [self._next_beat]
        looks += [now + WATCHES] if self._watched.find_names(self._me) else []
        looks += [self._next_tell] if Board(self._trail, TASKS).is_used() else []
        return min(looks)

    def _sees_one_gone(self) -> bool:
        """Record those whom the session watches and whose client is gone; return whether there are any."""
        agents = self._watched.find_names(self._me)
        if not agents:
            return False
        desk = OpenMailbox(self._directory, wait=1.0, prove=self._prove)
        gone = desk.gone(agents)
        if gone:
            absence.note(desk, gone, self._me)
        return bool(gone)

    # -- the clock ----------------------------------------------------------------------------------------------------

    def _tell_if_due(self, now: float) -> None:
        """Tell of tasks whose holder ended or is silent, if nobody told it before."""
        if now >= self._next_tell and Board(self._trail, TASKS).is_used():
            self._next_tell = now + TELLS
            from ..control_plane import task_reports  # where tasks are

            task_reports.tell(OpenMailbox(self._directory, wait=1.0, prove=self._prove), self._me)

    def _silent_since(self, desk: OpenMailbox) -> float:
        """Return the monotonic time of the session's last hook, by its heartbeat."""
        last = time_of(desk.logs.heart(self._me))
        return time.monotonic() - (0.0 if last is None else max(time.time() - last / 1e9, 0.0))


def _parse_left(words: Sequence[str]) -> tuple[int, float, frozenset[str]]:
    """Return the state that the last doorbell left: rings in vain, time of the last (monotonic seconds), its mail."""
    try:
        rings, at = int(words[0]), float(words[1])
    except (IndexError, ValueError):
        return 0, 0.0, frozenset()
    fresh = 0.0 <= at <= time.monotonic()  # the clock restarts with the machine
    return (rings, at, frozenset(words[2:])) if fresh else (0, 0.0, frozenset())
