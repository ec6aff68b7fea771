"""Sweeps of worlds of several machines: short rounds, each of a few commands that meet at one order.

Belongs here: drawing. As on one machine (``sweeps``) a round prepares little in peace; then commands meet, and others
come behind them. An attack befalls them at places that earlier rounds taught. Between them may happen what befalls an
engine, a machine's own record, or a mailbox beside programs of others (``machines_deeds``).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.choices import Profile
from tests.simulation.disk import SECOND
from tests.simulation.machines_plans import LONG, SWEPT, MachinePlan, Network
from tests.simulation.plans import CALM, NIGHT, REST, STORM
from tests.simulation.scene import PARTED
from tests.simulation.sweeps import attack, drawn_words

if TYPE_CHECKING:
    from collections.abc import Iterator


THEN = "then"
"""What comes behind it begins once those before it are held, or have ended."""
SPANS = (3, 5, 23, 25, 73)
"""Hours of a night that a sweep names: beside the times of mail to all, to one and to a tag."""
TALLY = "tally"
"""All machines are asked who has each message; they had time to hear of everything."""


class MachineSweep(NamedTuple):
    """What the rounds consist of.

    A word is a command, or a deed of ``machines_deeds``. ``?`` behind it: in half of the rounds. ``a|b``: one of them.
    Before these, ``.a`` and ``.b``: a session of one machine, and one of another, drawn for the round; ``.each``: one
    of each machine; ``.all``.
    """

    weight: float
    words: str
    """As of ``scene.Sweep``: what prepares a round, what meets in it, and what comes behind."""
    attacks: tuple[str, ...] = ("", "", "held", "is killed")
    """Those of ``sweeps.ATTACKS`` that suit it; an empty word is none."""
    trusted: tuple[str, ...] = ("all", "all", "user", "")
    rounds: int = 4
    machines: int = 2
    sessions: int = 1
    found: int = 9
    network: float = 0.0
    """How often the ways to the engine are bad."""
    live: tuple[int, ...] = (0, 0, 1)
    """How many live messages a steward leaves: one of these."""
    first: str = ""
    """What happens once, before the rounds."""


SWEEPS: dict[str, MachineSweep] = {
    "role mail": MachineSweep(
        2,
        "post.a post? mend.each / "
        "check.a|hook.a|release.a then? check.b|hook.b|release.b / "
        "check.all release? mend.each check.all",
        ("held before it publishes", "held before it asks", "held", "both held before they ask", "is killed"),
        network=0.15,
    ),
    "a steward beside others": MachineSweep(
        2,
        "post.a send.b? mend.b check.b mend.b mend.a / "
        "run_steward.a then? return.b|release.b|run_steward.b|send.b|check.b / "
        "mend.each check.all",
        ("held before it publishes", "held before it publishes", "held before it asks", "held", "is killed"),
        live=(0,),
        trusted=("all", ""),
    ),
    "a steward beside one who gives back": MachineSweep(
        1,
        "post.a mend.b check.b mend.b mend.a / run_steward.a then return.b / mend.b check.a",
        ("held before it publishes",),
        live=(0,),
        rounds=6,
    ),
    "who gives back beside a steward": MachineSweep(
        1,
        "post.a mend.b check.b mend.b mend.a / return.b then run_steward.a / mend.b check.a",
        ("held before it publishes",),
        live=(0,),
        rounds=5,
    ),
    "acks that are not shipped": MachineSweep(
        1,
        "send.a send.b mend.each check.all mend.each / ack.b then? run_steward.a / mend.each",
        ("", "", "held"),
        live=(0,),
        rounds=3,
    ),
    "copies": MachineSweep(
        2,
        "send.a|post.a send.b? check.b? / "
        "mend.b|replicate.b|check.b|send.b send.a|foreign.b? / "
        "outage.b? lose_state.b? mend.each check.all",
        ("is killed", "is killed", "faints", "faints", "fails", "falls short, and is killed", "the power fails"),
        network=0.15,
    ),
    "copies of a process that died": MachineSweep(
        1.5, " / send.a / mend.b|check.b mend.b outage.b mend.each check.all", ("faints in the next one",), rounds=3
    ),
    "copies that lost their record": MachineSweep(
        2,
        "send.a send.b mend.each check.all mend.each run_steward.a? mend.each / "
        "lose_state.b check.b|mend.b|send.b|run_steward.b / "
        "check.b lose_state.a? mend.each check.all",
        ("is killed", "is killed", "is killed half way", "", "held"),
        live=(0,),
        network=0.15,
    ),
    "joining": MachineSweep(
        2,
        " / join.b send.a? / outage.b? join.b send.b? mend.each check.all",
        ("is killed", "is killed", "the power fails", "fails", ""),
        rounds=1,
        found=1,
        network=0.15,
    ),
    "joining, and the power fails": MachineSweep(
        0.5,
        " / join.b / outage.b? join.b outage.b join.b mend.each check.all",
        ("fails in an early sync", "is killed behind a record's name"),
        rounds=1,
        found=1,
    ),
    "joining with an archive": MachineSweep(
        1,
        "alone.b / join.b send.a? send.a? send.a? send.a? / join.b mend.each send.b check.all mend.each",
        ("is killed", "is killed", "is killed, as is the next one", ""),
        rounds=1,
        found=1,
        network=0.8,
        live=(0,),
    ),
    "joining once more": MachineSweep(
        0.5, " / join.b then send.a|post.a / mend.each check.all", ("held before it asks",)
    ),
    "an engine that lost its end": MachineSweep(
        2,
        "send.a post.b check.a? mend.each send.a? send.b? / "
        "lose_end strangers? send.a|check.b|mend.b|mend.a|run_steward.a send.b? / "
        "mend.each mend.each check.all",
        ("", "", "is killed", "held"),
        rounds=2,
    ),
    "an engine that was put back": MachineSweep(
        1,
        "send.a send.b mend.each check.all mend.each mend.each mark / "
        "send.a run_steward.a / "
        "rewind send.b run_steward.b mend.each mend.each mend.each check.all",
        ("",),
        live=(0,),
        rounds=1,
    ),
    "an engine that lost its middle": MachineSweep(
        2,
        "send.a|post.a check.all? mend.each send.a send.b? / "
        "lose_middle mend.a|check.a|send.a|run_steward.a / "
        "mend.each mend.each check.all",
        ("", "", "is killed"),
        rounds=2,
    ),
    "damaged records": MachineSweep(
        1.5,
        "mend.each send.a send.a? / damage mend.b|check.b mend.a? / mend.each mend.each mend.each check.all",
        ("", "", "is killed"),
        rounds=2,
    ),
    "mail that nobody answered for": MachineSweep(
        1.5,
        "mend.each unheard.a send_to.a / "
        "mend.b check.b / "
        "mend.b run_steward.b lose_middle|purge|mend.b back.a mend.a send.a? mend.each check.all",
        ("", "", "is killed"),
        rounds=2,
        live=(0,),
    ),
    "purges": MachineSweep(
        1.5,
        "send.a send.b mend.each check.all mend.each run_steward.a mend.each send.a / "
        "purge / "
        "foreign_archived.b mend.each send.a check.all mend.each",
        ("",),
        rounds=2,
        live=(0,),
    ),
    "the dead": MachineSweep(
        3,
        "mortals.a mend.each / "
        "retell.a|retell.b send.b? / "
        "lose_state.b|lose_state.a|lose_end|lose_end|lose_end mend.each newcomer mend.each mend.each check.all",
        ("", "", "is killed"),
        machines=3,
        found=2,
        rounds=1,
    ),
    "liars": MachineSweep(
        3,
        "send.a order.a? rename.a? forbid.a? mend.each / "
        "lie lie.b lie? mend.b|check.b|replicate.b / "
        "lie lose_state.b? replay? mend.each lie replay? mend.each",
        ("", "", "is killed"),
        rounds=2,
    ),
    "keys that the person confirms later": MachineSweep(
        2,
        "send.a order.a rename.a? foreign_seal.b? foreign_copy.b? foreign_event.b? mend.each foreign_copy.b? edit.b? / "
        "trust.b|trust.b|blind.b / "
        "foreign_copy.b? replay? mend.each trust.b mend.each",
        ("", "", "is killed", "held"),
        rounds=1,
        trusted=("",),
    ),
    "who cannot verify": MachineSweep(
        1, "send.a order.a / blind.b / mend.each send.a mend.each", ("", "is killed"), ("all",), rounds=2
    ),
    "kills and proofs": MachineSweep(
        2,
        "send.b? / send.a|order.a|rename.a|check.a / lose_state.a? mend.each",
        ("is killed", "is killed", "is killed half way"),
        trusted=("all",),
    ),
    "twins": MachineSweep(
        0.5,
        "mend.each rename.a rename.a? / mend.b|check.b then twin.b twin.b? / mend.each",
        ("held", "held", "held half way", "is killed"),
        rounds=3,
    ),
    "orders": MachineSweep(
        1, "forbid.a / mend.b|check.b|replicate.b bundle_orders? / mend.each", ("", "is killed"), rounds=2
    ),
    "given back at once": MachineSweep(
        1,
        "post.a mend.each / check.a then return.a / mend.each mend.each tally",
        ("held", "both held", "both held before they ask", "held before a lock, and another before it publishes"),
        rounds=4,
        trusted=("all", ""),
    ),
    "given back beside one who decides": MachineSweep(
        0.7,
        "post.a mend.each / check.a then unclaim.a then check.a / mend.each mend.each tally check.all",
        ("is killed, and two are held before a lock",),
        rounds=5,
        trusted=("all",),
    ),
    "a machine that was given up": MachineSweep(
        0.7,
        "post.a mend.each offer.a mend.each / "
        "ack.a|check.a then forget.b / "
        "mend.each slip? mend.each mend.each tally check.all mend.each mend.each",
        ("", "", "held"),
        rounds=1,
        trusted=("user",),
    ),
    "files": MachineSweep(
        0.7,
        " / attach.a mend.b? / false_file? replicate.b false_file? replicate.a replicate.b",
        ("", "", "is killed"),
        rounds=3,
        network=0.15,
    ),
    "clocks": MachineSweep(
        0.5, "send.a check.all clock.a? / replicate.a / replicate.b replicate.a look_elsewhere.all", ("",), rounds=2
    ),
}


def kinds() -> dict[str, float]:
    """The kinds of worlds of several machines, and how often each is."""
    whole = sum(one.weight for one in SWEEPS.values())
    return {name: SWEPT * one.weight / whole for name, one in SWEEPS.items()} | {LONG: 1 - SWEPT}


def sweep_of(seed: int, kind: str = "") -> MachinePlan:
    """What a seed means that means a sweep; ``kind``: this one."""
    chance = Random(f"sweep of machines {seed}")
    drawn = chance.choices(list(SWEEPS.values()), [one.weight for one in SWEEPS.values()])[0]
    sweep = SWEEPS[kind] if kind else drawn
    profile = Profile(
        ordered=chance.random() < 0.4,
        grain=(1, 1_000_000, 10_000_000, SECOND)[int(chance.random() * 4)],
        watchless=chance.random() < 0.3,
        switch=(0.0, 0.0, 0.02)[int(chance.random() * 3)],
        strict=True,
    )
    count = sweep.machines * sweep.sessions
    jobs: list[tuple[str, int]] = [(CALM, 0), *((word, 0) for word in sweep.first.split())]
    sited: list[tuple[int, str]] = []
    rounds = (sweep.rounds + 1) // 2 + int(chance.random() * (sweep.rounds // 2 + 1))
    for number in range(rounds):
        places: dict[str, int] = {}
        a = int(chance.random() * count)
        others = [who for who in range(count) if who // sweep.sessions != a // sweep.sessions]
        if sweep.found < sweep.machines:
            a, others = 0, [sweep.sessions]
        b = others[int(chance.random() * len(others))]
        for role, word in _round(chance, sweep):
            command, _, who = word.partition(".")
            if command == NIGHT:
                jobs.append((NIGHT, chance.choice(SPANS)))
                continue
            each = {
                "a": [a], "b": [b], "all": range(count), "each": range(0, count, sweep.sessions),
                "": [int(chance.random() * count)],
            }[who]  # fmt: skip
            places.setdefault(role, len(jobs))
            jobs += [(command, one) for one in each]
        if number or rounds == 1 or chance.random() < 0.5:
            name = sweep.attacks[int(chance.random() * len(sweep.attacks))]
            sited += attack(chance, name, places) if name else ()
    return MachinePlan(
        profile,
        Network.of(seed) if chance.random() < sweep.network else Network(),
        [(place, command, who) for place, (command, who) in enumerate(jobs)],
        machines=sweep.machines,
        sessions=sweep.sessions,
        trusted=sweep.trusted[int(chance.random() * len(sweep.trusted))],
        max_live=sweep.live[int(chance.random() * len(sweep.live))],
        width=8,
        sited=tuple(sited),
        small=chance.random() < 0.5,
        found=sweep.found,
    )


def _round(chance: Random, sweep: MachineSweep) -> Iterator[tuple[str, str]]:
    """The words of a round, each with its part in the attack."""
    yield "", CALM
    prepared, met, since = sweep.words.split(PARTED)
    for word in drawn_words(chance, prepared):
        yield "", word
    yield "", STORM
    number = 0
    for word in drawn_words(chance, met):
        yield ("", word) if word == THEN else (str(number), word)
        number += word != THEN
    for number, word in enumerate(drawn_words(chance, since), 2):
        yield "", REST
        yield str(number), word
