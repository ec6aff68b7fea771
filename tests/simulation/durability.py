"""Durability of one machine: a process is killed or its sync fails, another goes on, and then the power may fail.

Belongs here: sweeps and attacks of that subject, few calls each, and the commands that they alone need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.control.requests import Requests
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import messages
from agent_mailbox.errors import Refused
from agent_mailbox.store.files import system
from tests.simulation import strangers
from tests.simulation.disk import PAGE, SECOND
from tests.simulation.letters import READ
from tests.simulation.places import BOX, LIVE
from tests.simulation.scene import Sweep
from tests.simulation.stage import LASTING, ROLES, pick

if TYPE_CHECKING:
    from tests.simulation.letters import Letter, Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = (
    *("torn", "ask_at_length", "send_at_length", "charge", "hand_back", "keep_cache", "put_back"),
    *("send_lost", "append_lost"),
)
ATTACKS = {
    "is killed before a sync": (0, "0 kill syncing"),
    "is killed before a sync, and the next one is in doubt": (0, "0 kill syncing; 2 doubt"),
    "nothing befalls it": (0, ""),
    "is killed behind a name": (0, "0 kill rename*6>*3"),
    "is killed behind the log's name": (0, "0 kill rename*2>*3"),
    "is killed behind the name of the reads": (0, "0 kill rename=5>*3"),
    "is killed behind a name, and the next one is in doubt": (0, "0 kill rename*6>*3; 2 doubt"),
    "is killed behind a name, and the third is in doubt": (0, "0 kill rename*6>fsync*1; 4 doubt"),
    "is killed as it notes a new log, and the third is in doubt": (0, "0 kill rename=3>fsync=1; 4 doubt"),
    "is killed before it writes through": (0, "0 kill fdatasync*6"),
    "is killed behind a new directory, and the next one is in doubt": (0, "0 kill mkdir*1>fsync*1; 2 doubt"),
    "is killed, and the second is in doubt": (0, "0 kill; 3 doubt"),
    "faints, and the next one is in doubt": (0, "0 faint; 2 doubt"),
    "fails in a sync": (0, "0 fault syncing"),
    "fails in a sync, and the next one is in doubt": (0, "0 fault syncing; 2 doubt"),
    "held, and fails behind a name": (0, "0 park rename*3; 0 fault rename*3>fsync*1"),
    "fails in an early sync": (0, "0 fault fsync*4"),
    "is killed behind a record's name": (0, "0 kill rename=5>*2"),
    "falls short": (0, "0 short"),
    "fails to note": (0, "0 fault noting"),
    "falls short twice": (0, "0 short write*6; 0 short write*6>write=1"),
    "falls short at first": (0, "0 short write*8"),
    "is killed before it writes": (0, "0 kill write*6"),
    "fills the disk": (0, "0 brim"),
    "faints at its first sync": (0, "0 faint fdatasync=1"),
    "held behind the logs, and the second faints": (0, "0 park open=5>open*5; 3 faint fdatasync=1"),
}
SWEEPS = {
    "a writer beside torn lines": Sweep(1, " / send|send|ack torn / everyone check", ("held",)),
    "second lines where a writer was killed": Sweep(
        1, "send everyone check / send_at_length / foreign_again everyone check", ("is killed before it writes",)
    ),
    "a writer whose sync failed": Sweep(
        1,
        "lead send everyone check / ask_at_length|send_at_length|register / send|ask|ack",
        ("faints, and the next one is in doubt", "fails in a sync, and the next one is in doubt"),
        outages=0.2,
    ),
    "a decision that is not noted": Sweep(0.5, "lead / register|ask / register|ask run_steward?", ("fails to note",)),
    "a writer who is killed": Sweep(
        0.5,
        "lead / register|ask|ask_at_length / register|ask run_steward",
        ("is killed before a sync", "is killed"),
        outages=0.1,
    ),
    "behind a killed steward": Sweep(
        2,
        "send everyone check / run_steward / run_steward|send|check|ack|release",
        ("is killed behind a name, and the next one is in doubt",),
        outages=0.1,
        small=0.2,
        live=(0,),
        loose=0.9,
    ),
    "behind a steward and another": Sweep(
        2,
        "send send everyone check / run_steward / send|call everyone check run_steward",
        (
            "is killed behind a name, and the third is in doubt",
            "is killed as it notes a new log, and the third is in doubt",
        ),
        small=0.0,
        live=(0,),
        loose=0.9,
    ),
    "stamps of before a power failure": Sweep(
        0.5,
        "everyone shim everyone permit everyone check everyone permit / send|send_many|call|lead / ",
        ("in peace",),
        outages=0.9,
        rounds=8,
        loose=0.9,
    ),
    "an archive that is not durable": Sweep(
        1, "send everyone check / run_steward / run_steward", ("is killed before it writes through",), live=(0,)
    ),
    "the first file": Sweep(
        2,
        "send / attach / attach",
        ("is killed behind a new directory, and the next one is in doubt",),
        outages=0.1,
        rounds=1,
        loose=0.9,
    ),
    "beginnings beside strangers": Sweep(
        3,
        " / found / foreign found send",
        ("is killed, and the second is in doubt",),
        outages=0.3,
        rounds=1,
        found=False,
    ),
    "beginnings that fall short": Sweep(3, " / found / send check", ("falls short at first",), rounds=1, found=False),
    "a log that a stranger makes": Sweep(
        2, "send / foreign_note / check|hook everyone check send check", rounds=1, loose=0.9
    ),
    "a disk that is full": Sweep(
        0.5, "send? everyone check / send|ack|send_many / foreign everyone check", ("fills the disk",)
    ),
    "a line that falls short twice": Sweep(0.5, " / send|send|register / send everyone check", ("falls short twice",)),
    "a rollbook that falls short": Sweep(1, "freeze / register|register|send|check / send check", ("falls short",)),
    "decided requests": Sweep(
        1,
        "lead ask? ask decide decide check? check? send / run_steward / decide decide decide",
        ("is killed behind a name", "is killed before a sync"),
        live=(0,),
    ),
    "an empty log": Sweep(
        2,
        "lead foreign foreign? everyone check / run_steward / ask ask? run_steward ask run_steward",
        ("is killed behind the log's name",),
        rounds=1,
        live=(0,),
    ),
    "given back in a log that nobody noted": Sweep(
        1,
        "charge call everyone check run_steward call everyone check hand_back / run_steward / everyone check",
        ("is killed behind the name of the reads",),
        small=0.0,
        live=(0,),
    ),
    "derived files of yesterday": Sweep(
        1,
        "send send everyone check everyone check send keep_cache later everyone check release release? / "
        "put_back / "
        "check everyone shim",
        ("nothing befalls it",),
        agents=3,
    ),
    "mail that is archived": Sweep(
        0.7, "send send everyone check run_steward / ack|ack|resend / everyone check", ("fails to read",), live=(0,)
    ),
    "mail that the power takes": Sweep(
        1,
        "send_lost|append_lost everyone check / send|call|foreign / everyone check",
        ("faints at its first sync",),
        outages=0.9,
        agents=2,
    ),
    "a look beside mail that the power took": Sweep(
        1,
        "send@0 / glimpse@1 send_lost|append_lost send? glimpse@1? / everyone check send@0|foreign everyone check",
        ("held behind the logs, and the second faints",),
        outages=0.95,
        agents=2,
    ),
    "repeated": Sweep(
        0.5, "send everyone check / ack / ack ack", ("is killed before a sync", "fails in a sync", "faints")
    ),
}


def torn(stage: Stage, process: Process, me: Session) -> None:
    """A program that knows no lock dies as it appends a line."""
    stage.judge.torn = stage.judge.strange = True
    stage.judge.appended.clear()
    fd = system.open(LIVE[0], system.O_WRONLY | system.O_APPEND)
    system.write(fd, b'{"id":"torn","sender":"cron","content":"'[: 1 + int(process.chance.random() * 39)])
    system.close(fd)


def ask_at_length(stage: Stage, process: Process, me: Session) -> None:
    """Ask one's lead about a plan of some pages."""
    if not me.led:
        return
    goal = f"plan {stage.count} ".ljust(1500 + int(process.chance.random() * 3000), ".")
    asked = Requests(stage.desk(me.id)).request(me.id, messages.PlanRequest(goal=goal))
    stage.requests.append(asked.id)
    stage.judge.acknowledge(("message", asked.message_id))


EDGE, ABOUT = 300, 330
"""Bytes behind a page of the log at most, where a long message ends; those of a line beside its text, about."""


def send_at_length(stage: Stage, process: Process, me: Session) -> None:
    """Send some pages, which end not far behind a page of the log."""
    letter = stage.letter(me.id, str(pick(process, ROLES)), process)
    there = len(stage.world.kernel.look_up(LIVE[0]).data) + ABOUT + len(letter.content.encode())
    length = PAGE - there % PAGE + int(process.chance.random() * EDGE)
    letter.content += "." * length
    stage.desk(me.id).send(
        Draft(sender=me.id, to=(letter.to,), content=letter.content, ttl_hours=LASTING, id=letter.id)
    )
    stage.judge.sent(letter)


def charge(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to one of those who hold a role, who is to ack it: it stays until then."""
    letter = stage.letter(me.id, str(pick(process, ROLES)), process)
    letter.ack = True
    draft = Draft(sender=me.id, to=(letter.to,), content=letter.content, ack=True, ttl_hours=LASTING, id=letter.id)
    stage.desk(me.id).send(draft)
    stage.judge.sent(letter)


def hand_back(stage: Stage, process: Process, me: Session) -> None:
    """Whoever was charged with a message gives it back."""
    judge = stage.judge
    given = [key for key, (state, _) in judge.given.items() if state == READ]
    charged = [(who, i) for who, i in given if judge.letters[i].ack and judge.letters[i].is_role]
    if not charged:
        return
    who, message_id = charged[-1]
    judge.releasing(who, message_id)
    try:
        stage.desk(who).release(message_id, who)
    except Refused:
        return
    judge.recorded_by(judge.sessions[who], message_id, "release")
    judge.released(who, message_id)


def _lost(stage: Stage, *, foreign: bool) -> Letter | None:
    """A message of late whose line is nowhere, and whose sender was told nothing."""
    there = stage.judge.found(BOX)
    letters = [letter for letter in stage.judge.letters.values() if letter.foreign == foreign and letter.acked is None]
    return next((letter for letter in reversed(letters) if ("message", letter.id) not in there), None)


def send_lost(stage: Stage, process: Process, me: Session) -> None:
    """Send a message under its id whose line the power took."""
    letter = _lost(stage, foreign=False)
    if letter is not None and letter.id in stage.drafts:
        stage.desk(letter.sender).send(stage.drafts[letter.id])
        stage.judge.sent(letter)


def append_lost(stage: Stage, process: Process, me: Session) -> None:
    """Another program appends its message whose line the power took."""
    letter = _lost(stage, foreign=True)
    if letter is not None:
        line = strangers.spelt(letter)
        stage.judge.doubled.update(line.split(b"\n"))  # it may only now append it the first time, too
        strangers.append(stage, LIVE[0], line)


CACHE = f"{BOX}/.cache"


def keep_cache(stage: Stage, process: Process, me: Session) -> None:
    """A program keeps a copy of the derived files, with their times."""
    stage.cache, stage.cached = {}, stage.world.now
    for below, names in system.tree(CACHE):
        for name in names:
            path = system.join(below, name)
            fd = system.open(path, system.O_RDONLY)
            there = system.fstat(fd)
            stage.cache[path] = system.pread(fd, there.st_size, 0), there.st_mtime_ns
            system.close(fd)


def put_back(stage: Stage, process: Process, me: Session) -> None:
    """A program puts the copy back into its place, as whoever restores a directory does. It tells nobody."""
    world = stage.world
    if world.now - stage.cached < 60 * SECOND:
        return  # what is written in the second of the copy escapes some shells, and file systems of coarse times
    told, world.on_appeared = world.on_appeared, lambda _: None  # the stamps are those of older logs
    try:
        for below, names in [*system.tree(CACHE)]:
            for name in names:
                system.unlink(system.join(below, name))
        for path, (data, time) in stage.cache.items():
            system.make_directory(system.dirname(path))
            fd = system.open(path, system.O_WRONLY | system.O_CREAT, 0o600)
            system.write_whole(fd, data)
            system.utime(fd, ns=(time, time))
            system.close(fd)
    finally:
        world.on_appeared = told
