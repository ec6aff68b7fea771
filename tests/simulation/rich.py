"""Mail as rich as life: several addresses, words that resemble each other, sizes and times at borders.

Belongs here: sessions of their own, whom only the second judge judges (``second_judge``), and the sweeps in which they
meet a steward and each other. They also ask what the other sweeps leave out: threads, histories, words, one message.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import Ambiguous, Busy, NotFound, Refused
from agent_mailbox.mailbox.queries import MailQueries
from tests.judge.mail import Judge
from tests.simulation import second_judge
from tests.simulation.places import BOX
from tests.simulation.questions import Moment, alone
from tests.simulation.scene import Sweep
from tests.simulation.stage import pick

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("meet", "post_around", "post_shared", "take", "claim_alone", "hand_back", "settle_up", "depart", "browse")
IDS = ("wren-1", "wren-10", "wren-100")
"""Each is the beginning of the next."""
CARRIED = (("role:op", "project:a"), ("role:opera", "project:ab"), ("role:OP", "role:op", "project:A", "project:a"))
SHARED = "role:op"
ADDRESSES = (*IDS, "role:op", "role:opera", "role:OP", "project:a", "project:ab", "project:A", "all")
SIZES = (1, 20, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537)
"""The line's end comes at each of these, or beside it: a sector, a page (what is read of a torn end), a pipe."""
BREAKS = "a\r\nb\x0bc\x1cd\x85e\u2028f\u2029g"
ATTACKS = ("in peace", "held", "is killed", "is killed half way", "held half way", "fails")
TURNS = (1772319600, 1774747800, 1792888200, 1803855600, 1835391600)
"""Before the end of February 2026, before clocks turn in March and October of that year, before February ends in 2027,
and before the 29th of 2028, by half an hour or an hour."""
SWEEPS = {
    "minutes and months": Sweep(
        2,
        "_meet post_shared@1 post_around? later? / "
        "claim_alone@0|claim_alone@2 take@0|take@2|run_steward / "
        "soon take@0|take@2 soon? take@0|take@2 later? run_steward? browse?",
        ATTACKS,
        outages=0.1,
        small=0.6,
        agents=3,
        live=(0, 0, 1),
        rounds=6,
        starts=TURNS,
    ),
    "words that resemble each other": Sweep(
        2,
        "_meet post_around post_around@1 settle_up? browse? later? / "
        "take@0|take@1 take@1|take@2|run_steward / "
        "take browse take",
        ATTACKS,
        outages=0.1,
        small=0.6,
        agents=3,
    ),
    "several addresses": Sweep(
        2,
        "_meet post_around post_around@2 take? hand_back? depart? / "
        "run_steward|take post_around|take|browse / "
        "_take browse later? browse",
        ATTACKS,
        outages=0.1,
        small=0.6,
        agents=3,
        live=(0, 0, 1),
    ),
}


def _self(me: Session) -> tuple[str, tuple[str, ...]]:
    number = int(me.id.rpartition("-")[2]) % len(IDS)
    return IDS[number], CARRIED[number]


def name_of(me: Session) -> str:
    """The id of the session that an agent is here."""
    return _self(me)[0]


def judge_at(stage: Stage, now: int) -> Judge:
    """The second judge with all that the logs say."""
    hours = stage.desk().config.ttls
    return Judge(second_judge.read_facts(stage.world.disk, BOX, hours), datetime.fromtimestamp(now / 1000, UTC))


def meet(stage: Stage, process: Process, me: Session) -> None:
    """Register, with roles and tags that begin those of others, or differ from them by case."""
    who, tags = _self(me)
    stage.desk(who).register(Registration(session_id=who, tags=tags), who)


def post_around(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to up to three addresses, perhaps as an answer; its line ends beside the border of a buffer."""
    _post(
        stage,
        process,
        me,
        dict.fromkeys(str(pick(process, ADDRESSES)) for _ in range(1 + int(process.chance.random() * 3))),
    )


def post_shared(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to the role that two of them have."""
    _post(stage, process, me, [SHARED])


def _post(stage: Stage, process: Process, me: Session, to: Iterable[str]) -> None:
    who = name_of(me)
    stage.desk(who).send(draft(stage, process, who, to))


def draft(stage: Stage, process: Process, who: str, to: Iterable[str]) -> Draft:
    """A message of any shape."""
    message_id = uuid_of(f"{process.chance.getrandbits(128):032x}", "4")
    size = int(pick(process, SIZES)) + int(process.chance.random() * 3) - 1
    known = sorted(stage.judge.rich)
    stage.judge.rich.add(message_id)
    return Draft(
        sender=who,
        to=tuple(to),
        content=(BREAKS + f" word{len(known)} ").ljust(max(size - 300, 0), "."),
        subject=BREAKS,
        thread=str(pick(process, known)) if known and process.chance.random() < 0.4 else None,
        ttl_hours=pick(process, (None, None, None, 1, 3)),
        ack=process.chance.random() < 0.4,
        priority=str(pick(process, ("normal", "normal", "high"))),
        id=message_id,
    )


def take(stage: Stage, process: Process, me: Session) -> None:
    """Be shown what waits; if nobody else did anything meanwhile, that is what the second judge says."""
    who, _ = _self(me)
    others, now = stage.world.calls - process.calls, stage.world.wall() // 1_000_000

    def show(items: list[Item]) -> Sequence[Item]:
        if others == stage.world.calls - process.calls and not process.hurt:
            judge = judge_at(stage, now)
            if second_judge.has_returned(judge.facts, who):
                return items
            wanted = [one for one in judge.unread(who) if one in stage.judge.rich]
            told = [item.message.id for item in items if item.message.id in stage.judge.rich]
            second_judge.compare(stage, who, "shown", told, wanted)
        return items

    stage.desk(who, clock=lambda: now).deliver(who, show)


def claim_alone(stage: Stage, process: Process, me: Session) -> None:
    """End once role mail is claimed, and before any is shown."""

    def show(items: list[Item]) -> Sequence[Item]:
        raise Busy("the reader does not read", "", code="output_blocked")

    who, _ = _self(me)
    try:
        stage.desk(who).deliver(who, show)
    except Busy:
        return


def hand_back(stage: Stage, process: Process, me: Session) -> None:
    """Give back what one read."""
    _deal(stage, process, me, give_back=True)


def settle_up(stage: Stage, process: Process, me: Session) -> None:
    """Acknowledge what one read."""
    _deal(stage, process, me, give_back=False)


def _deal(stage: Stage, process: Process, me: Session, *, give_back: bool) -> None:
    who, _ = _self(me)
    with alone(stage.world):
        judge = judge_at(stage, stage.world.wall() // 1_000_000)
    mine = [mail.id for mail in judge.mail if mail.id in stage.judge.rich and who in judge.standing(mail)]
    if mine:
        desk, one = stage.desk(who), str(pick(process, mine))
        try:
            desk.release(one, who) if give_back else desk.ack(one, who)
        except (Refused, NotFound):
            return


def depart(stage: Stage, process: Process, me: Session) -> None:
    """End for now, or for good."""
    who, _ = _self(me)
    try:
        stage.desk(who).end(who, "freeze" if process.chance.random() < 0.7 else "retire", who)
    except (Refused, NotFound):
        return


def browse(stage: Stage, process: Process, me: Session) -> None:
    """Ask for a thread, a history, a word and one message; nobody may change anything meanwhile."""
    who, _ = _self(me)
    now, before = stage.world.wall() // 1_000_000, Moment(stage.world, process)
    desk = stage.desk(who, clock=lambda: now)
    queries, one = MailQueries(desk), str(pick(process, sorted(stage.judge.rich) or [""]))
    try:
        thread = [message.id for message in queries.thread(one)[0]] if one else []
        found = desk.find(one).message.id if one else ""
    except (NotFound, Ambiguous):
        thread, found = [], ""
    history = {message.id for message in queries.history(who)[0]}
    word = f"word{int(process.chance.random() * 5)}"
    search = {message.id for message in queries.search(word, 1000)[0]}
    status = queries.status(who)
    after = Moment(stage.world, process)
    if before.files != after.files or process.hurt:
        return
    with alone(stage.world):
        judge = judge_at(stage, now)
    known = {mail.id: mail for mail in judge.mail}
    second_judge.compare(stage, who, "thread", thread, judge.conversation(known[one]) if one in known else [])
    second_judge.compare(stage, who, "the message", [found] if found else [], [one] if one in known else [])
    second_judge.compare(stage, who, "history", sorted(history), sorted(judge.history(who)))
    having = [mail.id for mail in judge.mail if f" {word} " in mail.line.get("content", "")]
    second_judge.compare(stage, who, f"found by {word}", sorted(search), sorted(having))
    if second_judge.has_returned(judge.facts, who):
        return
    second_judge.compare(stage, who, "owed", sorted(m.id for m in status.obligations), sorted(judge.owes(who)))
