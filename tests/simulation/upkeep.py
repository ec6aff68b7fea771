"""What keeps a mailbox up, and what it must bear: the steward, backups, the doctor, derived files that are lost.

Belongs here: these commands, and what the judge learns of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core import proofs
from agent_mailbox.core.keeping import retention
from agent_mailbox.errors import Refused
from agent_mailbox.store.files import system
from agent_mailbox.store.projection import index_keys
from agent_mailbox.store.user_state import creation
from agent_mailbox.upkeep import backup, doctor, notices, restoring, steward
from tests.simulation.places import BOX
from tests.simulation.stage import pick

if TYPE_CHECKING:
    from agent_mailbox.mailbox.mailbox import Mailbox
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("found", "run_steward", "back_up", "repair", "forget", "damage")
UNTIDY = ("kill", "faint", "power", "fault", "stop", "slow", "jump")
"""What may leave something that the steward reports: a torn line, a lock that it did not get, mail that came back."""


def found(stage: Stage, process: Process, me: Session | None = None) -> None:
    """Make the mailbox."""
    creation.create(BOX, system.environment())
    if stage.judge.founded is None:
        stage.judge.founded = stage.world.calls


def run_steward(stage: Stage, process: Process, me: Session) -> None:
    """The steward, from cron."""
    cutoff = stage.world.now - 23 * 3600 * 10**9
    for session in stage.judge.sessions.values():
        if session.seen < cutoff:
            stage.judge.dying(session)
    mailbox = stage.desk(proof=proofs.STEWARD)
    report = steward.run_upkeep(mailbox, stage.max_live)
    for problem in report.problems:
        if not stage.judge.has_strangers() and not stage.world.befell(*UNTIDY):
            stage.judge.breach(f"the steward reports {problem.file} {problem.line}: {problem.what}")


def find_left(desk: Mailbox, max_live: int) -> list[str]:
    """Have the steward run; return the finished messages that it leaves without a word: there must be none."""
    try:
        if steward.run_upkeep(desk, max_live).problems:
            return []
    except Refused:
        return []  # it doubts the clock, or the logs
    state = desk.state()
    plan = retention.plan(state, desk.now(), max_live)
    return sorted(notices.held_back(plan, desk, state, set()).move)


def look_tidy(stage: Stage) -> None:
    """In the end the steward leaves nothing that is finished."""
    if left := find_left(stage.desk(proof=proofs.STEWARD), stage.max_live):
        stage.judge.breach(f"the steward leaves {left}, which are finished")


def back_up(stage: Stage, process: Process, me: Session) -> None:
    """Make a backup and restore it elsewhere: everything acknowledged before is there, and survives a power failure."""
    stage.count += 1
    facts = set(stage.judge.facts)
    brought = [letter for letter in stage.judge.letters.values() if letter.stored and letter.acked is not None]
    file, place = f"/backup-{stage.count}.tar", f"/restored-{stage.count}"
    backup.write_backup(stage.desk(me.id), file)
    _ask_platter(stage, file)
    restoring.restore_backup(file, place, {}, alone=True)
    _ask_platter(stage, place)
    lost = facts - stage.judge.found(place)
    if lost:
        stage.judge.breach(f"a backup lacks {min(lost)}")
    for letter in brought:
        if not stage.judge.has_file(letter, place + letter.stored.removeprefix(BOX)):
            stage.judge.breach(f"a backup lacks the file that {letter.id} brings")


def _ask_platter(stage: Stage, place: str) -> None:
    """Nothing of what is acknowledged there is lost if the power fails now: a file, or the logs of a directory."""
    disk = stage.world.disk
    solid = dict(disk.files(solid=True))
    made = {path: inode for path, inode in disk.files(solid=False) if path == place or path.startswith(f"{place}/")}
    for path, inode in made.items():
        is_told = path == place or path.endswith(".jsonl")
        if is_told and (solid.get(path) is not inode or bytes(inode.solid) != bytes(inode.data)):
            stage.judge.breach(f"{path} was acknowledged and is not durable")
    if not made:
        stage.judge.breach(f"{place} was acknowledged and is not there")


def repair(stage: Stage, process: Process, me: Session) -> None:
    """The doctor repairs, and looks again."""
    desk = stage.desk(me.id)
    doctor.repair_safely(desk)
    list(doctor.examine_mailbox(desk))


def forget(stage: Stage, process: Process, me: Session) -> None:
    """All that is derived for readers goes: they look at everything again."""
    for session in stage.judge.sessions.values():
        session.lost_list = True
    try:
        _remove_derived()
    finally:
        for session in stage.judge.sessions.values():  # one may have started again meanwhile
            session.lost_list = True
            session.forgotten += 1


def _remove_derived() -> None:
    for name in ("cursors", "offers", index_keys.FILE):
        where = f"{BOX}/.cache/{name}"
        try:
            each = name in ("cursors", "offers")
            for path in [f"{where}/{one}" for one in sorted(system.listdir(where))] if each else [where]:
                system.unlink(path)
        except OSError:
            continue


def damage(stage: Stage, process: Process, me: Session) -> None:
    """Something cuts, empties or removes a derived file."""
    places = ("cursors", "ends", "quiet", "roster", index_keys.FILE)
    where = f"{BOX}/.cache/{pick(process, places)}"
    try:
        names = (
            [where]
            if where.endswith(("roster", index_keys.FILE))
            else [f"{where}/{name}" for name in sorted(system.listdir(where))]
        )
    except OSError:
        return
    if not names:
        return
    path = pick(process, names)
    drawn = process.chance.random()
    try:
        if drawn < 0.5 or "quiet" in path:
            system.unlink(path)
            return
        fd = system.open(path, system.O_RDWR)
        if drawn < 0.75:
            system.ftruncate(fd, int(process.chance.random() * system.fstat(fd).st_size))
        else:
            system.write(fd, b"?" * 8)
        system.close(fd)
    except OSError:
        return
