"""The steward: archive, roster sweep, verification; run by cron.

Belongs here: what a run does, and the cron line that starts one. The rules are ``core.retention`` and
``core.roster_changes.swept``; the moving is ``store.rotation``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..core import obligations, retention, roster_changes
from ..core.proofs import STEWARD
from ..core.records import Record, RosterEvent
from ..core.roster import DEAD
from ..core.text import shell_quoted
from ..errors import Refused
from ..mailbox.facade import Mailbox
from ..store import events, rotation
from . import doctor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.roster import Roster
    from .doctor.findings import Problem


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
    with rotation.alone(mailbox.archive, mailbox.logs.wait):
        swept = _sweep(mailbox)
        moved = rotation.rotate(
            mailbox.logs,
            mailbox.archive,
            mailbox.config.ttls,
            lambda state: retention.plan(state, mailbox.now(), limit),
        )
        oldest = min((m.timestamp for m in mailbox.state().messages.values()), default=mailbox.now())
        rotation.compact_roster(mailbox.logs, mailbox.archive, oldest)
        events.rotate(mailbox.logs)
        rotation.note_run(mailbox.logs, mailbox.now())
    return Report(
        archived=moved.archived,
        kept=moved.kept,
        pending=moved.pending,
        frozen=sum(event.event == "freeze" for event in swept),
        retired=sum(event.event == "retire" for event in swept),
        problems=tuple(doctor.problems(doctor.examine(mailbox, archived=False))),
    )


def _sweep(mailbox: Mailbox) -> tuple[RosterEvent, ...]:
    """Freeze the silent, retire the long frozen; give back what any dead agent still held unanswered."""
    config = mailbox.config

    def decide(roster: Roster) -> roster_changes.Decision:
        seen = mailbox.logs.last_seen()
        return roster_changes.Decision(
            events=roster_changes.swept(
                roster, seen, mailbox.now(), config.freeze_after_hours, config.retire_after_days
            )
        )

    decision = mailbox.change_roster(decide, STEWARD)
    # A process killed between recording a death and giving back leaves this to us.
    state = mailbox.state()
    readers = {read.session_id for m in state.messages.values() if m.ack for read in state.reads.of(m.id)}
    debtors = [r for r in readers if state.roster.state(r) == DEAD and obligations.owed_on_death(r, state)]
    if debtors:
        mailbox.give_back(debtors, STEWARD)
    return decision.events


def command() -> list[str]:
    """How to start this installation's program from anywhere: an absolute interpreter and the module."""
    return [sys.executable, "-m", "agent_mailbox"]


def crontab_line(mailbox: Mailbox) -> str:
    """A crontab(5) line that runs the steward hourly, from any directory, in cron's bare environment.

    Raises ``Refused`` for a path that a crontab cannot hold.
    """
    words = [*command(), "--dir", mailbox.directory, "steward", "run"]
    package_root = str(Path(__file__).absolute().parents[2])
    if any("\n" in word or "%" in word for word in (*words, package_root)):
        raise Refused("a path with % or a line break cannot stand in a crontab", "move the mailbox or the installation")
    quoted = " ".join(shell_quoted(word) for word in words)
    return f"17 * * * * cd {shell_quoted(package_root)} && {quoted} >/dev/null 2>&1 # agent-mailbox steward"


def install_crontab(line: str) -> bool:
    """Put the line into the user's crontab in the place of an earlier one; False if it stood there already.

    Raises ``Refused`` where there is no ``crontab`` program or it says no.
    """
    try:
        present = subprocess.run(["crontab", "-l"], capture_output=True, check=False)
        said = present.stderr.decode("utf-8", "replace").strip()
        if present.returncode != 0 and "no crontab" not in said:
            raise Refused(f"cannot read your crontab: {said}", "nothing was changed; `steward crontab` prints the line")
        table = present.stdout.decode("utf-8", "surrogateescape") if present.returncode == 0 else ""
        lines = table.removesuffix("\n").split("\n") if table else []
        if line in lines:
            return False
        same_mailbox = line.split(" --dir ")[1]
        kept = [other for other in lines if not other.endswith(" --dir " + same_mailbox)]
        wanted = "\n".join([*kept, line]) + "\n"
        text = wanted.encode("utf-8", "surrogateescape")
        done = subprocess.run(["crontab", "-"], input=text, capture_output=True, check=False)
    except FileNotFoundError:
        raise Refused("there is no crontab program here", "install cron, or run the line by another timer") from None
    if done.returncode != 0:
        raise Refused(
            f"crontab refused the line: {done.stderr.decode('utf-8', 'replace').strip()}",
            "put it in by hand: `steward crontab` prints it",
        )
    return True
