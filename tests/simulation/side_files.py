"""What is beside the logs: attachments and exports, the doorbell's lock, a lead's approvals.

Belongs here: those commands, and what the judge holds them to.

- An export holds each message once, as the logs read whole do; a file that a message brings can be read.
- No second process takes the place of one that waits for the same client. It finds the words that the last one left.
- An approval answers one question at most, within a minute.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agent_mailbox.mailbox import mail_stream
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.store.files import system
from agent_mailbox.store.locks.doorbell_lock import NOBODY, DoorbellLock
from agent_mailbox.store.user_state import bindings
from tests.simulation.places import BOX
from tests.simulation.questions import Moment, alone
from tests.simulation.scene import Scene

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

HARM = ("kill", "power", "fault", "short", "full", "slow", "stop", "long")
"""What may take a derived file's words away."""
COMMANDS = ("export", "fetch", "lock", "approve", "answered")
SCENES = {
    "exports": Scene(
        1.5,
        "send send attach everyone check",
        "export! run_steward! fetch attach send ack release foreign",
        "fetch export run_steward",
    ),
    "files that are kept": Scene(
        1,
        "send everyone check",
        "attach! run_steward! fetch",
        "attach fetch run_steward",
        ("0 power *120", "0 kill *120", "0 fault *120", "1 power *400", "1 power unlink*6", "1 kill *400"),
    ),
    "doorbells": Scene(1, "everyone check", "lock! lock! lock send check", "lock lock"),
    "approvals": Scene(0.7, "approve", "approve! answered! answered! answered", "answered approve answered"),
    "backups of everything": Scene(
        1,
        "send attach lease lead ask everyone check",
        "back_up! run_steward! attach lease ask decide ack send",
        "back_up run_steward check",
    ),
    "a steward beside whom the power fails": Scene(
        1.5,
        "send lead ask everyone check",
        "run_steward! foreign!",
        "run_steward send check",
        (
            "0 park rename*8; 0 power rename*8>pread*6",
            "0 park rename*8; 0 power rename*8>write*3",
            "0 park rename*8; 0 kill rename*8>pread*6",
            "0 power fsync*12",
            "0 kill fsync*12",
            "0 power rename*12",
            "0 power open*60",
        ),
    ),
}


class Waiting:
    """The processes that wait for sessions' mail, and the approvals, as far as the judge knows."""

    def __init__(self) -> None:
        self.standing: list[tuple[Process, str]] = []
        """Each process with its session."""
        self.clients: dict[str, set[int]] = {}
        """The clients for which anybody waited, of each session."""
        self.words: dict[str, tuple[tuple[str, ...] | None, int]] = {}
        """What the last one left, and how often the power had failed."""
        self.approved: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.when: dict[str, int] = {}
        """When a call was last approved, or was about to be: ns."""


def export(stage: Stage, process: Process, me: Session) -> None:
    """Write out the whole history, while others change it."""
    due = [letter.id for letter in stage.judge.letters.values() if letter.acked is not None]
    before = Moment(stage.world, process)
    told = list(mail_stream.stream(stage.desk(me.id)))
    often = Counter(message.id for message, _ in told)
    for message_id in due:
        if often[message_id] != 1:
            stage.judge.breach(f"an export holds {message_id} {often[message_id]} times")
    for message, _ in told:
        letter = stage.judge.letters.get(message.id)
        if letter is not None and letter.content != message.content and not letter.foreign:
            stage.judge.breach(f"an export holds {message.id} with another text")
    with alone(stage.world):
        everything = MailQueries(stage.desk(me.id)).everything()
        after = Moment(stage.world, process)
    if before.files == after.files and before.broken == after.broken:
        wanted = [(message_id, everything.reads.of(message_id)) for message_id in everything.messages]
        if [(message.id, reads.of(message.id)) for message, reads in told] != wanted:
            stage.judge.breach("an export differs from the logs")


def fetch(stage: Stage, process: Process, me: Session) -> None:
    """Read a file that a message brought."""
    brought = [letter for letter in stage.judge.letters.values() if letter.stored and letter.acked is not None]
    if not brought:
        return
    letter = brought[int(process.chance.random() * len(brought))]
    name = system.basename(letter.stored)
    if attachment_files.content(BOX, name) != letter.content.encode() or name not in attachment_files.names(BOX):
        stage.judge.breach(f"the file that {letter.id} brings cannot be read")
    if not 0 <= attachment_files.room(BOX, attachment_files.MOST_TOTAL) < attachment_files.MOST_TOTAL:
        stage.judge.breach("the files of a mailbox take no room")


def lock(stage: Stage, process: Process, me: Session) -> None:
    """Wait for a session's mail, as a doorbell does: mostly for the same client."""
    waiting, client = stage.waiting, 900 + (process.chance.random() < 0.2)
    others = stage.world.calls - process.calls
    clients = waiting.clients.setdefault(me.id, set())
    clients.add(client)  # one that waits for another client is replaced
    known, failures = waiting.words.pop(me.id, (None, 0))  # it may be killed behind its first step
    known = known if failures == stage.world.failures_of_power else None
    one = DoorbellLock(f"{BOX}/.cache", me.id, client)
    if not one.take(replace=process.chance.random() < 0.8):
        return
    with one:
        for other, session_id in waiting.standing:
            lives = not other.ended and not other.dead and not other.hurt
            if session_id == me.id and clients == {client} and lives:
                stage.judge.breach(f"{process.name} waits for the client that {other.name} waits for")
        calm = others == stage.world.calls - process.calls and not stage.world.befell(*HARM)
        if known is not None and calm and one.left != known:
            stage.judge.breach(f"{process.name} finds {one.left}, and {known} was left")
        waiting.standing.append((process, me.id))
        waiting.words.pop(me.id, None)
        system.sleep(process.chance.random() * 9)
        if one.stands():
            words = (str(stage.count), "1.5", "abc")
            one.leave(NOBODY, words)
            if one.stands() and not process.hurt and not stage.world.befell("full"):
                waiting.words[me.id] = words, stage.world.failures_of_power
        waiting.standing = [it for it in waiting.standing if it[0] is not process]


def approve(stage: Stage, process: Process, me: Session) -> None:
    """Note that a lead approved a call: the client's question about it is answered by that."""
    stage.waiting.approved[me.id] += 1
    stage.waiting.when[me.id] = max(stage.world.now, stage.waiting.when.get(me.id, 0))
    bindings.grant(stage.desk(me.id).logs.stamp_files, f"call-{me.id}")
    stage.waiting.when[me.id] = stage.world.now


def answered(stage: Stage, process: Process, me: Session) -> None:
    """Ask whether a call was approved."""
    desk, waiting = stage.desk(me.id), stage.waiting
    stamp_files, begun = desk.logs.stamp_files, stage.world.now
    if not bindings.has_grants(stamp_files) or not bindings.take(stamp_files, f"call-{me.id}", desk.now()):
        return
    waiting.answered[me.id] += 1
    if waiting.answered[me.id] > waiting.approved[me.id]:
        stage.judge.breach(f"an approval of {me.id} answers two questions")
    age = (begun - waiting.when[me.id]) // 1_000_000
    if age > bindings.GRANT_LIFE + 2000 and not stage.world.befell("jump"):
        stage.judge.breach(f"an approval of {me.id} answers after {age} ms")
