"""Sweeps: short worlds that search one place after the other.

Belongs here: drawing. A sweep repeats a round, as a drill does: little that prepares it, a few commands beside each
other, and what comes behind them. Its first round is left alone and teaches where these commands ask the system
(``sites``). In each other round an *attack* befalls commands at places drawn from those: one or two are held, one is
killed or made to fail, or both; and then the power may fail.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.simulation import days, durability, meetings, policies, rich, tables
from tests.simulation.choices import Profile
from tests.simulation.plans import CALM, OUTAGE, PAUSE, REST, STORM, Plan, is_numbered, numbered
from tests.simulation.scene import PARTED, Sweep

if TYPE_CHECKING:
    from collections.abc import Iterator


ATTACKS = {
    "held": (4, "0 park"),
    "held twice": (1, "0 park; 0 park"),
    "both held": (2, "0 park; 1 park"),
    "held, and fails": (2, "0 park; 0 fault"),
    "held, and is killed": (1, "0 park; 0 kill"),
    "held, and another fails": (1, "0 park; 1 fault"),
    "held, and another is killed": (1, "0 park; 1 kill"),
    "fails": (2, "0 fault"),
    "faints": (0.7, "0 faint"),
    "faints in the next one": (0, "2 faint"),
    "falls short, and fails": (0.7, "0 short; 0 fault"),
    "falls short, and is killed": (0.7, "0 short; 0 kill"),
    "is killed": (3, "0 kill"),
    "is killed, as is the next one": (1.5, "0 kill; 2 kill"),
    "is killed, and the next one is held": (1, "0 kill; 2 park"),
    "is killed soon behind a write": (0, "0 kill write*4>*16"),
    "the power fails": (1, "0 power"),
    "is killed half way": (2, "0 kill behind"),
    "fails half way": (2, "0 fault behind"),
    "held, and fails half way": (1, "0 park; 0 fault behind"),
    "held half way": (2, "0 park behind"),
    "held before a lock": (1, "0 park locking"),
    "held behind what is not there": (2, "0 park missed"),
    "held behind a log that is not there": (0, "0 park unmade"),
    "held between two files": (2, "0 park between"),
    "is killed half way, as is the next one": (1, "0 kill behind; 2 kill behind"),
    "is killed half way, and the power fails in the next one": (1, "0 kill behind; 2 power"),
    "is killed half way, and the power fails in the third": (0, "0 kill behind; 4 power behind"),
    "is killed half way, and the power fails half way in the next one": (0, "0 kill behind; 2 power behind"),
    "late": (0, "0 long; 1 long"),
    "late at first": (0, "0 long"),
    "fails to read": (0, "0 fault reading"),
    "is killed before it seals": (0, "0 kill dating"),
    "held as it reads what is derived": (0, "0 park derived"),
    "held as it writes what is derived": (0, "0 park deriving"),
    "held as it writes the table of ids": (0, "0 park write=3"),
    "in peace": (0, ""),
    "held before it asks": (0, "0 park asking"),
    "both held before they ask": (0, "0 park asking; 1 park asking"),
    "is killed before it asks": (0, "0 kill asking"),
    "held before it publishes": (0, "0 park publishing"),
    "held before a lock, and another before it publishes": (0, "0 park locking; 1 park publishing"),
    "is killed, and two are held before a lock": (0, "0 kill publish=1>time_ns*2; 1 park locking; 2 park locking"),
}
ATTACKS |= durability.ATTACKS | meetings.ATTACKS
"""What befalls a round: 0 is the first command, 1 the one beside it, 2 the first one behind them, 4 the third one."""
SWEEPS = {
    "a steward": Sweep(
        3,
        "send foreign? everyone check send? / "
        "run_steward foreign|send|check|ack|release|resend|run_steward|foreign|register? foreign|send? / "
        "send|run_steward|check|foreign|resend run_steward|send|check?",
        outages=0.3,
    ),
    "a steward killed half way": Sweep(
        3,
        "send ask? everyone check send? / run_steward / send|send|run_steward|check|take|register|decide run_steward?",
        (
            "is killed half way",
            "is killed half way",
            "is killed half way, as is the next one",
            "is killed half way, and the power fails half way in the next one",
            "is killed half way, and the power fails half way in the next one",
            "fails half way",
        ),
        outages=0.6,
    ),
    "a steward killed, and another one": Sweep(
        1,
        "send everyone check / run_steward / send everyone check run_steward",
        ("is killed half way, and the power fails in the third",),
        outages=0.5,
    ),
    "requests that move": Sweep(
        0.7,
        "lead decide decide run_steward foreign everyone check / run_steward / ask run_steward ask",
        ("is killed half way",),
        outages=0.1,
        live=(0,),
    ),
    "a steward beside strangers": Sweep(
        4,
        "send everyone check / run_steward foreign foreign? / run_steward|send|check",
        ("held, and fails half way", "held, and fails behind a name", "held, and fails behind a name", "held"),
    ),
    "a writer": Sweep(
        2,
        "send? check? / "
        "send|ack|reply|register|send_many|check|send foreign|send|run_steward|foreign|check|register foreign|send? / "
        "everyone check",
        outages=0.3,
    ),
    "a writer beside strangers": Sweep(
        1.5, " / send|send|ack foreign foreign? / everyone check", ("held", "held half way", "both held")
    ),
    "a reader": Sweep(
        2,
        "send send? foreign? check? forget? / "
        "check|check|hook|question|peek run_steward|send|foreign|ack|release|check|question send|run_steward? / "
        "everyone check",
        outages=0.3,
    ),
    "a reader beside a steward": Sweep(
        4,
        "send send everyone check forget / check run_steward / everyone check",
        ("held between two files", "held between two files", "held"),
        live=(0,),
    ),
    "a release beside a steward": Sweep(
        3,
        "send everyone check / release run_steward / everyone check",
        ("held", "held half way", "held between two files"),
        live=(0,),
    ),
    "what was not told": Sweep(
        1,
        "send? check / send|send|ack|send_many / foreign? resend|send|resend everyone check",
        ("falls short, and fails", "falls short, and is killed", "fails", "faints", "is killed"),
        outages=0.3,
    ),
    "sent again": Sweep(
        0.7,
        "send everyone check / resend|run_steward run_steward|check? / run_steward resend everyone check",
        outages=0.1,
    ),
    "questions": Sweep(
        1.5,
        "send foreign_note? send_many? question? / "
        "question|send|check|ack question|foreign_note|send|foreign|run_steward question? / "
        "everyone question",
        small=0.85,
        outages=0.3,
    ),
    "questions beside each other": Sweep(
        2.5,
        "demand demand? everyone check question demand take? foreign_note? / "
        "question question question|demand? / "
        "everyone question",
        ("held", "held", "held between two files", "both held"),
        small=0.9,
    ),
    "twins": Sweep(
        2,
        "send|foreign everyone check send|foreign foreign_again? check / "
        "foreign_again|check foreign_again|check|foreign check? / "
        "everyone check",
        outages=0.1,
        small=0.9,
    ),
    "records of mail to come": Sweep(
        2,
        "foreign_note foreign_note foreign_note? question demand demand? / "
        "question|check question|foreign_note / "
        "everyone question",
        ("held", "is killed"),
        outages=0.05,
        small=0.9,
    ),
    "dead letters": Sweep(
        4,
        "register? freeze? mortal mortal? everyone check? later? question? / "
        "give_back|take|check|foreign_note|foreign_note|foreign_again|mortal|freeze question|foreign_note? question? / "
        "later? everyone question",
        ("held", "held", "held", "is killed", "falls short, and is killed"),
        outages=0.05,
        small=0.9,
    ),
    "dead letters beside stewards": Sweep(
        1.5,
        "mortal mortal? everyone check? later? question / "
        "question|question|run_steward run_steward|question question|give_back? / "
        "everyone question",
        ("held", "held", "both held"),
        outages=0.05,
        small=0.9,
    ),
    "clients that come back": Sweep(
        1,
        "everyone launch call call everyone turn die / "
        "run_steward|check|turn|run_steward launch|launch|turn|send launch? / "
        "turn check",
        ("held", "held", "held, and is killed", "is killed", "both held"),
        outages=0.05,
        rounds=4,
        clients=True,
    ),
    "clients": Sweep(
        0.8,
        "everyone launch call send? / "
        "turn|turn|launch die|turn|ack|reply|run_steward|register launch|check? / "
        "die? check|run_steward turn",
        outages=0.1,
        rounds=6,
        clients=True,
    ),
    "who leaves and comes back": Sweep(
        0.7,
        "register send? everyone check retire / "
        "run_steward|run_steward|check register|register|check check|register? / "
        "send everyone check",
        ("held", "held", "both held"),
    ),
    "files": Sweep(
        1.2, "attach? check / attach run_steward / run_steward check", ("held", "late", "late"), outages=0.1
    ),
    "beginnings": Sweep(
        25,
        " / found / found|found|register send",
        ("is killed", "is killed", "is killed", "is killed", "is killed", "falls short, and is killed"),
        rounds=1,
        found=False,
        outages=0.3,
    ),
    "the first agent": Sweep(
        5,
        "send / send|send|peek register register? / everyone register send check",
        ("held behind what is not there", "held behind a log that is not there", "held behind a log that is not there"),
        rounds=1,
        registered=False,
        outages=0.3,
    ),
    "the first read": Sweep(
        1,
        "everyone check send send / check|check|hook check check|ack / everyone check",
        ("held behind what is not there", "held behind what is not there", "held"),
        rounds=1,
        outages=0.3,
    ),
}
SWEEPS |= meetings.SWEEPS | policies.SWEEPS | durability.SWEEPS | tables.SWEEPS | rich.SWEEPS | days.SWEEPS


PAUSES = {"later": (150,), "soon": (9, 10, 11), "night": (9 * 60, 25 * 60, 74 * 60, 9 * 24 * 60, 20 * 24 * 60)}
"""Minutes that go by, if nobody is at work: one of these."""
SPANS = (11, 11, 9 * 60, 25 * 60, 74 * 60, 9 * 24 * 60, 32 * 24 * 60)
"""The same between two rounds: a claim lapses, mail of each mode expires, sessions freeze and die, a month ends."""


def sweep_of(seed: int, profile: Profile, name: str) -> Plan:
    """What a seed means that means that sweep, in a world with names and times like ``profile``'s."""
    chance = Random(f"sweep {seed}")
    sweep = SWEEPS[name]
    agents = sweep.agents or (4 if sweep.clients else 2 + (chance.random() < 0.3))
    profile = Profile(
        ordered=chance.random() >= sweep.loose,
        grain=1 if sweep.clients else profile.grain,  # a client starts long after its machine
        watchless=profile.watchless,
        switch=(0.0, 0.0, 0.0, 0.02)[int(chance.random() * 4)],
        strict=True,
    )
    jobs: list[tuple[str, int]] = (
        [(CALM, 0), *(("register", who) for who in range(agents))] if sweep.found and sweep.registered else []
    )
    sited: list[tuple[int, str]] = []
    directed: list[tuple[int, str]] = []
    spans = Random(f"spans {seed}")
    rounds = sweep.rounds // 2 + int(chance.random() * (sweep.rounds // 2)) + 1
    for number in range(rounds):
        places: dict[str, int] = {}
        for role, word in _round(chance, sweep):
            if word in PAUSES:
                minutes = PAUSES[word]
                jobs.append((PAUSE, minutes[0] if len(minutes) == 1 else chance.choice(minutes)))
                continue
            word, _, number_of = word.partition("@")
            each = range(agents) if word.startswith("_") else [int(number_of or chance.random() * agents)]
            places.setdefault(role, len(jobs))
            jobs += [(word.lstrip("_"), who) for who in each]
        if number or rounds == 1:
            for place, what in _attack(chance, sweep, places):
                (directed if is_numbered(what) else sited).append((place, what))
            if chance.random() < sweep.outages:
                jobs += [(REST, 0), (OUTAGE, 0)]
        if chance.random() < 0.05:
            jobs.append((PAUSE, spans.choice(SPANS)))
    return Plan(
        profile,
        [(place, command, who) for place, (command, who) in enumerate(jobs)],
        max_live=sweep.live[int(chance.random() * len(sweep.live))],
        width=8,
        found=sweep.found,
        power_at_end=sweep.outages > 0 and chance.random() < 0.5,
        pauses=0.0,
        sited=tuple(sited),
        directed=tuple(directed),
        small=chance.random() < sweep.small,
        scans=sweep.scans,
        start=Random(f"start {seed}").choice(sweep.starts or (0,)),
    )


def _round(chance: Random, sweep: Sweep) -> Iterator[tuple[str, str]]:
    """The words of a round, each with its part in the attack."""
    yield "", CALM
    prepared, met, since = sweep.words.split(PARTED)
    for word in drawn_words(chance, prepared):
        if word in PAUSES:
            yield "", REST
        yield "", word
    yield "", STORM
    for number, word in enumerate(drawn_words(chance, met)):
        yield str(number), word
    for number, word in enumerate(drawn_words(chance, since), 2):
        yield "", REST
        yield str(number), word


def drawn_words(chance: Random, words: str) -> Iterator[str]:
    """Draw the words of a part of a round, which ``Sweep`` explains."""
    for word in words.replace("everyone ", "_").split():
        if word.endswith("?") and chance.random() < 0.5:
            continue
        options = word.rstrip("?").split("|")
        yield options[int(chance.random() * len(options))]


def _attack(chance: Random, sweep: Sweep, places: dict[str, int]) -> Iterator[tuple[int, str]]:
    if sweep.attacks:
        name = sweep.attacks[int(chance.random() * len(sweep.attacks))]
    else:
        name = chance.choices([*ATTACKS], [weight for weight, _ in ATTACKS.values()])[0]
    return attack(chance, name, places)


def attack(chance: Random, name: str, places: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Draw what an attack of that name does to the commands of a round, whose ``places`` are known by their parts."""
    drawn: dict[str, str] = {}
    for one in ATTACKS[name][1].split("; "):
        who, _, what = one.partition(" ")
        if what and who in places:
            yield places[who], numbered(chance, what, drawn)
