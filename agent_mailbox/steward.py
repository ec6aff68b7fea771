"""The steward: archive, roster sweep, verification; run by cron.

Belongs here: what a run does, and the cron line that starts one. The rules are ``core.retention`` and
``core.enrol.swept``; the moving is ``store.rotation``.
"""

from __future__ import annotations

import os
import subprocess
import sys

import portalocker

from . import doctor
from .core import enrol, retention
from .core.claims import Reads
from .core.records import Record, RosterEvent
from .errors import Refused
from .mailbox import Mailbox
from .store import rotation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.inbox import State
    from .core.roster import Roster
    from .doctor import Problem


class Report(Record):
    """What a run did; counts, and the problems that verification found."""

    archived: int
    kept: int
    pending: int
    frozen: int
    retired: int
    problems: tuple[Problem, ...]


def run(mailbox: Mailbox, max_live: int | None = None) -> Report:
    """One run: sweep, archive, compact, verify. Running again at once changes nothing. ``Busy`` beside another."""
    limit = mailbox.config.max_live if max_live is None else max_live
    try:
        with rotation.exclusively(mailbox.archive, mailbox.logs.wait):
            swept = _sweep(mailbox)
            moved = rotation.rotate(
                mailbox.logs,
                mailbox.archive,
                mailbox.config.ttls,
                lambda state: retention.plan(state, mailbox.now(), limit),
            )
            oldest = min((m.timestamp for m in mailbox.state().messages.values()), default=mailbox.now())
            rotation.compact_roster(mailbox.logs, mailbox.archive, oldest)
    except portalocker.LockException:
        raise rotation.busy(mailbox.archive) from None
    return Report(
        archived=moved.archived,
        kept=moved.kept,
        pending=moved.pending,
        frozen=sum(event.event == "freeze" for event in swept),
        retired=sum(event.event == "retire" for event in swept),
        problems=tuple(doctor.examine(mailbox)),
    )


def _sweep(mailbox: Mailbox) -> tuple[RosterEvent, ...]:
    """Freeze the silent, retire the long frozen; give back what any dead agent still held unanswered."""
    config = mailbox.config

    def decide(roster: Roster) -> enrol.Decision:
        seen = mailbox.logs.last_seen()
        return enrol.Decision(
            events=enrol.swept(roster, seen, mailbox.now(), config.freeze_after_hours, config.retire_after_days)
        )

    decision = mailbox.change_roster(decide)
    state = mailbox.state()
    # A process killed between recording a death and giving back leaves this to us.
    for agent in state.roster.agents.values():
        if agent.state == "dead" and _reads_of(state, agent.session_id):
            mailbox.give_back(agent.session_id, state)
    return decision.events


def _reads_of(state: State, session_id: str) -> bool:
    reads: Reads = state.reads
    return any(m.ack and reads.by(m.id, (session_id,)) for m in state.messages.values())


def command() -> list[str]:
    """How to start this installation's program from anywhere: an absolute interpreter and the module."""
    return [sys.executable, "-m", "agent_mailbox"]


def crontab_line(mailbox: Mailbox) -> str:
    """A crontab(5) line that runs the steward hourly, from any directory, in cron's bare environment.

    Raises ``Refused`` for a path that a crontab cannot hold.
    """
    words = [*command(), "--dir", mailbox.directory, "steward", "run"]
    package_root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if any("\n" in word or "%" in word for word in (*words, package_root)):
        raise Refused("a path with % or a line break cannot stand in a crontab", "move the mailbox or the installation")
    quoted = " ".join(_quoted(word) for word in words)
    return f"17 * * * * cd {_quoted(package_root)} && {quoted} >/dev/null 2>&1 # agent-mailbox steward"


def _quoted(word: str) -> str:
    safe = word and all(c.isalnum() or c in "/._-+=:@," for c in word)
    return word if safe else "'" + word.replace("'", "'\\''") + "'"


def install_crontab(line: str) -> bool:
    """Put the line into the user's crontab in the place of an earlier one; False if it stood there already.

    Raises ``Refused`` where there is no ``crontab`` program or it says no.
    """
    try:
        present = subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=False)
        lines = present.stdout.splitlines() if present.returncode == 0 else []
        if line in lines:
            return False
        same_mailbox = line.split(" --dir ")[1]
        kept = [other for other in lines if not other.endswith(" --dir " + same_mailbox)]
        wanted = "\n".join([*kept, line]) + "\n"
        done = subprocess.run(["crontab", "-"], input=wanted, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Refused("there is no crontab program here", "install cron, or run the line by another timer") from None
    if done.returncode != 0:
        raise Refused(
            f"crontab refused the line: {done.stderr.strip()}", "put it in by hand: `steward crontab` prints it"
        )
    return True
