"""Derived tables, polls and scans: their answers must be those of the logs, read whole and judged by the core.

Belongs here: short questions to one table each, and the sweeps that meet them beside what other programs append
(``strangers``). A long question (``questions``) asks several tables at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core import dead_letters, inbox, obligations
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.errors import NotFound, Refused
from agent_mailbox.mailbox.queries import LATELY, MailQueries
from agent_mailbox.store.polling.poll import Poll
from agent_mailbox.store.projection.open_ends import read_asks
from agent_mailbox.store.projection.untaken_mail import find_untaken
from tests.simulation import reading, second_judge, sending, sessions, strangers
from tests.simulation.letters import Session
from tests.simulation.questions import Moment, _ids, _own, _same, _told, alone
from tests.simulation.scene import Sweep
from tests.simulation.stage import pick

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("owes", "loses", "looks", "pass_by", "ask_on", "read_on")
PEACE, READING, WRITING = ("in peace",), ("held as it reads what is derived",), ("held as it writes what is derived",)
"""Attacks of sweeps in which the order of the commands alone matters, or one call of a command that others overtake."""
SWEEPS = {
    "mail that expires": Sweep(
        2, "freeze? mortal mortal note|note|unclean|twin note? loses? later / loses / loses?", PEACE, small=0.8
    ),
    "mail that is given back": Sweep(
        2, "mortal mortal? everyone check loses? give_back give_back? twin? later / loses / loses?", PEACE, small=0.9
    ),
    "dead letters that move": Sweep(
        2,
        "batch mortal? loses? later / run_steward / loses loses",
        ("in peace", "is killed half way", "is killed"),
        small=0.9,
    ),
    "dead letters that two ask for": Sweep(2, "batch later loses batch / loses loses / ", READING, small=1.0),
    "debts": Sweep(
        2,
        "note_ahead|note|torn_note demand|owes demand|owes everyone check? take? owes? demand note|torn_note|demand / "
        "owes owes / "
        "owes",
        (*PEACE, *READING),
        small=0.9,
    ),
    "a database put back": Sweep(
        2,
        "mortal demand loses|owes keep_cache mortal? demand? everyone check? give_back? "
        "run_steward? later? loses|owes later put_back / "
        "loses|owes / "
        "loses owes keep_cache? later put_back? owes loses",
        (*PEACE, *READING),
        small=0.9,
    ),
    "debts beside a table": Sweep(2, "demand demand? check? forget / owes ask_on / everyone owes", WRITING, small=1.0),
    "second lines": Sweep(
        2, "start_over|unended|send everyone check start_over looks double / looks / everyone looks", PEACE, small=0.7
    ),
    "second lines beside a table": Sweep(
        2, "send? forget start_over / looks read_on / everyone check double everyone looks", WRITING, small=1.0
    ),
    "second lines for another": Sweep(
        2, "everyone check start_over|foreign send looks astray / looks / everyone looks", PEACE, small=1.0, scans=False
    ),
    "second lines for another beside a table": Sweep(
        2,
        "forget everyone looks start_over looks foreign foreign foreign start_over / "
        "looks read_on / "
        "everyone looks astray everyone looks astray everyone looks",
        ("held as it writes the table of ids",),
        small=1.0,
        scans=False,
        rounds=4,
        agents=2,
    ),
    "lines without an end": Sweep(
        2, "unended|start_over|start_over forget? / check / everyone looks check everyone looks", PEACE, small=0.7
    ),
    "claims": Sweep(2, "call call? claim? / check / everyone looks later everyone looks", ("is killed",), small=0.5),
    "records in other words": Sweep(2, "call call? note note note? / looks / everyone looks", PEACE, small=0.9),
    "who stays": Sweep(2, "everyone check mortal mortal / stand / stand?", PEACE, small=0.3),
    "guests": Sweep(2, "demand demand / pass_by / ", PEACE, small=0.3),
}
"""Derived tables, scans and polls, each asked by itself."""


def _absent(me: Session) -> bool:
    return me.registered is None or me.may_be_dead


def owes(stage: Stage, process: Process, me: Session) -> None:
    """Ask what a session owes, and what others owe it, as its hook does to remind it."""
    if _absent(me):
        return
    desk, before = stage.desk(me.id), Moment(stage.world, process)
    told = read_asks(desk.logs, me.id, desk.config.ttls)
    with alone(stage.world):
        state = stage.desk(me.id).state()
    if before.files == Moment(stage.world, process).files:
        for what in (obligations.obligations, obligations.unanswered):
            _same(stage, me, what.__name__, _ids(what(me.id, told)), _ids(what(me.id, state)))
        second_judge.hold(stage, me.id, stage.world.wall() // 1_000_000, state, None)


def loses(stage: Stage, process: Process, me: Session) -> None:
    """Ask which mail nobody took in time: all of it, or the newest; or how much of the live mail is so."""
    if _absent(me):
        return
    now = stage.world.wall() // 1_000_000
    desk, before = stage.desk(me.id, clock=lambda: now), Moment(stage.world, process)
    who, limit = pick(process, (me.id, None)), pick(process, (None, 0, 1, 2))
    shown: set[str] = set()
    is_count = process.chance.random() < 0.4
    if is_count:
        lonely = find_untaken(desk.logs, who, desk.config.ttls, now, newest=0)
        left = InboxState(lonely.messages, Reads(lonely.reads), desk.logs.read_roster(), desk.config.ttls)
        count = lonely.surely + len(dead_letters.dead_letters(left, now, who))
    else:
        letters, older = MailQueries(desk).dead_letters(who, None, limit)
        shown = {message.id for message, _ in letters}
        count = older + len(shown)
    with alone(stage.world):
        fresh = stage.desk(me.id, clock=lambda: now)
        state = fresh.state() if is_count else MailQueries(fresh).everything(now - LATELY)
    after = Moment(stage.world, process)
    if before.files == after.files and before.broken == after.broken:
        lost = {message.id for message, _ in dead_letters.dead_letters(state, now, who)}
        _same(stage, me, "dead letters", count, len(lost))
        _same(stage, me, "dead letters that are none", shown - lost, set())


def looks(stage: Stage, process: Process, me: Session) -> None:
    """Look for mail, without recording that it was shown."""
    if _absent(me):
        return
    now = stage.world.wall() // 1_000_000
    desk, before = stage.desk(me.id), Moment(stage.world, process)
    poll = Poll(desk.logs, me.id, desk.config)
    unread = poll.unread(now)
    poll.save()
    with alone(stage.world):
        wanted = inbox.unread(me.id, stage.desk(me.id).state(), now)
    after = Moment(stage.world, process)
    if before.files == after.files and before.broken == after.broken:
        if before.others != after.others or process.hurt:
            unread, wanted = _own(unread), _own(wanted)
        _same(stage, me, "unread mail", _told(unread, stage.early), _told(wanted, stage.early))


# -- several, one after the other -------------------------------------------------------------------------------------


def pass_by(stage: Stage, process: Process, me: Session) -> None:
    """A session registers; another program notes what it read; it ends, and owes nothing any more."""
    stage.count += 1
    guest = Session(f"guest-{stage.count}", me.role, me.tag)
    stage.judge.sessions[guest.id] = guest
    sessions.register(stage, process, guest)
    for letter in [letter for letter in stage.judge.letters.values() if letter.ack and letter.to == guest.role][-2:]:
        strangers.record(stage, process, guest, letter.id, pick(process, ("", strangers.ESCAPED, strangers.TURNED)))
    before = Moment(stage.world, process)
    guest.retired = True
    stage.judge.dying(guest)
    try:
        stage.desk(guest.id).end(guest.id, "retire", guest.id)
    except (NotFound, Refused):
        return
    with alone(stage.world):
        owed = list(obligations.owed_on_death([guest.id], stage.desk(guest.id).state()))
    if before.others == Moment(stage.world, process).others:
        _same(stage, guest, "what it owes though it ended", owed, [])


def ask_on(stage: Stage, process: Process, me: Session) -> None:
    """Send mail that asks for an ack, and ask what is owed, again and again."""
    for _ in range(2 + int(process.chance.random() * 2)):
        sending.demand(stage, process, me)
        owes(stage, process, me)


def read_on(stage: Stage, process: Process, me: Session) -> None:
    """Look again and again, while another program sends mail."""
    for _ in range(2 + int(process.chance.random() * 2)):
        strangers.mail(stage, process)
        reading.check(stage, process, me)
