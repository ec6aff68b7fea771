"""The readers of a message that is sent: whom it reaches now, and the signs of when each will see it.

Belongs here: gathering them, for the agents that a message reaches alone, and without the network. ``core.reach``
has the rule, ``store.locks.doorbell_lock`` the waiting process's side.
"""

from __future__ import annotations

from ..core import proofs, reach
from ..core.records import USER, Message
from ..errors import StorageFailed
from ..store.files import system
from ..store.files.paths import DOORBELL
from ..store.files.small_files import OpenFile
from ..store.locks.lock import is_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.reach import Arrival, Reach
    from ..core.roster import Roster
    from .open_mailbox import OpenMailbox

WAITS = "it waits until the session comes back"
"""Why a session that is not there sees no mail now, if nothing more is known."""
CUT_OFF = "on another machine, where nobody brings mail: this mailbox is in no space"
"""Why a session of another machine sees no mail, once this one left the space."""
LEFT = "its machine left the space, or was given up"
"""Why one does not in a space."""
_FEW = 8
"""Sessions up to which each one's file is tried: listing a directory costs as much."""
_TURNS = 10
"""Tries while a process is about to wait: it holds the directory's lock for some 0.1 ms."""


def judge_reach(box: OpenMailbox, message: Message, roster: Roster) -> Reach:
    """Return whom a message reaches at this moment. A teammate of a team without a bridge counts as waiting.

    So does a session of another machine, if that one or this left their space."""
    found = reach.find_reach(message, roster)
    reached = [agent for agent in map(roster.get, (*found.agents, *found.waiting_for)) if agent is not None]
    gone, running = box.judge_clients(reached)
    if gone:
        found = reach.find_reach(message, roster, gone)
    if running:
        found = found.replace(running=tuple(running))
    mates = [who for who in found.agents if "@" in who and reach.is_mate(roster.get(who))]
    far = [agent.session_id for agent in reached if agent.home is not None]
    if not mates and not far:
        return found
    idle = [who for who in box.cut_off(far) if who in found.agents]
    if mates:
        from ..store.locks import team_lock  # what most mail is spared

        idle += [mate for mate in mates if not team_lock.runs(box.logs, f"team:{mate.partition('@')[2]}")]
    agents = tuple(agent for agent in found.agents if agent not in idle)
    holders = tuple(who for who in found.one_of if who in agents)
    return found.replace(
        agents=agents, waiting_for=(*found.waiting_for, *idle), one_of=holders if len(holders) > 1 else ()
    )


def find_arrival(
    box: OpenMailbox, message: Message, reached: Reach, roster: Roster, *, queued: bool = False
) -> Arrival:
    """Return when the agents that a message reaches will see it; ``queued``: it waits here for an engine."""
    readers, running = reached.agents, reached.running
    waking = find_armed(box.logs.derived, readers)
    others = [who for who in readers if who not in running]  # a client that runs was seen here
    found = reach.sort_arrival(
        message,
        reached,
        roster,
        waking=waking,
        braked={who: why for who in waking if (why := _find_brake(box, who, message))[0]},
        hooked=running,
        silent=_find_silent(box, {*waking, *running}) if box.has_unhooked else (),
        elsewhere=box.elsewhere(others) if others else (),
        queued=queued,
    )
    waiting = [who for who in reached.waiting_for if roster.get(who) is not None]
    return _with_why_they_wait(box, found, waiting) if waiting else found


def _with_why_they_wait(box: OpenMailbox, found: Arrival, waiting: Collection[str]) -> Arrival:
    """Return the arrival with a reason for those who wait though they run: here without hooks, or elsewhere."""
    from ..identity import session_registry  # most mail reaches sessions that are there

    words = session_registry.find_unhooked(waiting)
    why = {who: f"its client runs with {word}, and calls no hook of ours" for who, word in words.items()}
    why |= dict.fromkeys(box.cut_off(waiting), LEFT if box.logs.is_shared else CUT_OFF)
    return found.replace(reasons={**found.reasons, **why}) if why else found


def foresee_arrival(box: OpenMailbox, session_id: str) -> tuple[str, str]:
    """Return when a session would see mail that the person sent it now (a field of ``Arrival``), and why."""
    roster = box.logs.read_roster()
    mail = Message("", USER, (session_id,), box.now(), "", proof=proofs.TERMINAL)
    found = find_arrival(box, mail, judge_reach(box, mail, roster), roster)
    words = ("now", "at_next_turn", "when_it_looks")
    word = next((word for word in words if session_id in getattr(found, word)), words[-1])
    return word, found.reasons.get(session_id, WAITS)


def _find_brake(box: OpenMailbox, session_id: str, message: Message) -> tuple[str, str]:
    """Return why a message does not wake a session at once, and what its sender can do. The reason is empty if it does.
    Else the session was woken often lately, or this is a last word."""
    is_bare_reply = message.thread is not None and not message.ack
    if not is_bare_reply and not box.logs.stamp_files.was_woken(session_id):
        return "", ""
    from .session_brake import SessionBrake  # beside a doorbell that rang before, or for an answer

    box.weigh_mail()
    return SessionBrake(box, session_id).find_hold(box.weigh_own(message))


def _find_silent(box: OpenMailbox, sessions: Collection[str]) -> set[str]:
    """Return those sessions whose hooks were taken out or switched off while they run."""
    from ..store.user_state import removed_hooks  # beside clients that run

    return removed_hooks.find_silent(box.logs.stamp_files.kept(), sessions, box.logs.heart)


def find_armed(cache: str, sessions: Collection[str]) -> set[str]:
    """Return those sessions beside which a process waits at this moment: it holds its lock, which a dead one cannot.

    Asking takes each lock as a reader, for a moment. The directory's lock keeps those out that are about to wait: they
    would find their lock taken, and end.
    """
    try:
        directory = system.open(
            f"{cache}/{DOORBELL}", system.O_RDONLY | system.O_DIRECTORY | system.O_CLOEXEC | system.O_NOFOLLOW
        )
    except OSError:
        return set()  # nobody ever waited here
    with OpenFile(directory):
        if not sessions or not _is_shared(directory):
            return set()
        names = sessions if len(sessions) <= _FEW else {*system.listdir(f"{cache}/{DOORBELL}")} & {*sessions}
        return {who for who in names if "/" not in who and _is_taken(f"{cache}/{DOORBELL}/{who}")}


def _is_taken(path: str) -> bool:
    """Return whether a process holds the lock of the file."""
    try:
        return is_held(path)
    except StorageFailed:
        return False


def _is_shared(fd: int) -> bool:
    """Return whether the directory gave a reader's lock, which closing it gives back."""
    for _ in range(_TURNS):
        try:
            system.flock(fd, system.LOCK_SH | system.LOCK_NB)
            return True
        except OSError:
            system.sched_yield()
    return False
