"""Every interleaving may happen: worlds drawn from seeds keep the promises, and the same seed is the same world."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import address, message_reads
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import system
from agent_mailbox.upkeep import backup, steward
from tests.helpers import ROOT
from tests.simulation import commands, days, kinds, mutation, plans, real, rich, runs, shorten, succession
from tests.simulation.__main__ import main
from tests.simulation.choices import Choices
from tests.simulation.sites import BESIDE, Site, Sites
from tests.simulation.telling import BROKEN

if TYPE_CHECKING:
    from pathlib import Path

    from agent_mailbox import Mailbox
    from agent_mailbox.store.locks.lock import FileLock
    from tests.faults.mutant import Mutant

DRAWN = (
    ("long", 3),
    ("long", 6),
    ("sweep beginnings beside strangers", 5),
    ("sweep offers", 3),
    ("sweep mail that expires", 3),
    ("drill approvals", 6),
    ("drill tasks", 6),
    ("drill edits beside each other", 6),
    ("sweep lines without an end", 4),
    ("long", 4),
    ("sweep two processes of a client", 3),
    ("sweep mail that the power takes", 6),
    ("sweep a tool that is forbidden behind a stranger", 6),
    ("drill watches", 6),
    ("drill doorbells", 6),
    ("drill exports", 6),
    ("sweep a log that a stranger makes", 6),
    ("sweep debts", 15),
    ("sweep a claim that lapses", 3),
    ("sweep second lines where a writer was killed", 6),
    ("drill processes that stay", 6),
    ("sweep a reader", 4),
    ("sweep second lines for another beside a table", 6),
    ("sweep two that write", 3),
    ("sweep a holder with little room", 3),
    ("sweep leases whose notes are lost", 3),
    ("sweep a writer beside torn lines", 5),
    ("clients turns", 6),
    ("sweep a look beside mail that the power took", 6),
    ("sweep guests", 6),
    ("sweep a delivery beside a return", 3),
    ("sweep claims", 4),
    ("sweep offers", 6),
    ("sweep a database put back", 4),
    ("sweep the dead come back", 6),
    ("sweep dead letters that two ask for", 4),
    ("sweep a lead that is asked", 3),
    ("drill tasks handed over", 6),
    ("sweep a writer whose sync failed", 6),
    ("sweep second lines", 3),
    ("sweep clients that are killed", 3),
    ("drill a name is taken", 6),
    ("drill a session that is cleared", 6),
    ("sweep given back in a log that nobody noted", 6),
    ("sweep files that wait", 6),
    ("sweep debts beside a table", 6),
)
"""Worlds by kind and seed, chosen so that each command of the simulation is in one of them, or in one of the rich."""
RICH = {"words that resemble each other": 3, "several addresses": 3, "minutes and months": 1} | dict.fromkeys(
    days.SWEEPS, 2
)
"""Worlds that the second judge judges, or in which days go by: the seed of each kind."""
FOUND = mutation.found_worlds()
MENDED = [mutant for mutant in mutation.HISTORIC if mutant.without in FOUND]
"""What once was broken, of which a world is kept that breaks without its mending."""


@pytest.mark.parametrize("nth", range(6))
def test_the_promises_hold_in_worlds_of_fixed_seeds(nth: int) -> None:
    """Sends, checks, hooks, stewards, kills, power failures: nothing is lost, nothing is shown twice."""
    for kind, seed in DRAWN[nth::6]:
        assert (kind, seed, runs.run(seed, kind=kind).breaches) == (kind, seed, [])


def test_each_command_is_in_a_world_of_a_fixed_seed() -> None:
    """No command is left to the long runs alone: a change of the product that it does not follow is seen at once."""
    every = (*DRAWN, *((f"sweep {name}", seed) for name, seed in RICH.items()))
    drawn = {name for kind, seed in every for _, name, _ in plans.plan_of(seed, kind=kind).jobs}
    assert commands.ROOM_OF.keys() - drawn == {"resume", "settle"}  # the driver adds these


def test_the_promises_hold_in_a_world_that_nobody_saw_yet() -> None:
    """A fresh seed each time; a failure names it."""
    seed = secrets.randbelow(1 << 40)
    print(f"scripts/simulate --seed {seed}")
    assert (seed, runs.run(seed).breaches) == (seed, [])


@pytest.mark.parametrize("mutant", MENDED, ids=lambda mutant: mutant.without)
def test_what_the_simulation_found_stays_mended(mutant: Mutant) -> None:
    """The world that broke without it."""
    kind, seed = FOUND[mutant.without]
    beside = [mutation.function_of(mutant)]
    assert (seed, kind, kinds.run(seed, kind, beside=beside).breaches) == (seed, kind, [])


@pytest.mark.parametrize("name", sorted(file.stem for file in shorten.PLACE.iterdir()))
def test_a_world_that_broke_a_promise_breaks_none(name: str) -> None:
    """Kept with its plan and its choices, which a changed drawing of worlds would lose."""
    assert shorten.again(name).breaches == []


@pytest.mark.parametrize("name", [*rich.SWEEPS, *days.SWEEPS])
def test_mail_as_rich_as_life_is_what_the_texts_say(name: str) -> None:
    """Several addresses, words that resemble each other, borders of buffers, two and more of each thing: by a judge of
    its own."""
    assert (name, runs.run(RICH[name], kind=f"sweep {name}").breaches) == (name, [])


@pytest.mark.parametrize("kind", ["sweep minutes and months", "machines"])
def test_a_command_that_never_ends_breaks_a_world(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A steward that does the same again and again was taken for a slow one."""

    def work_for_ever(*_: object) -> None:
        while True:
            system.stat("/")

    monkeypatch.setattr(steward, "run_upkeep", work_for_ever)
    results = (kinds.run(seed, kind) for seed in range(1, 9))
    assert any("calls, and it goes on" in breach for result in results for breach in result.breaches)


def test_a_steward_that_moves_nothing_breaks_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is finished may be live at the end, on one machine and on several."""
    monkeypatch.setattr(rotation, "_split", lambda lines, *_: ({}, [*lines]))
    for kind in ("", "machines"):
        results = (kinds.run(seed, kind) for seed in range(1, 20))
        assert any("which are finished" in breach for result in results for breach in result.breaches), kind


def test_role_mail_that_comes_back_too_late_breaks_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another holder must be shown it ten minutes after somebody claimed it and was shown nothing."""
    monkeypatch.setattr(message_reads, "LAPSES", 2 * message_reads.LAPSES)
    (breach, *_) = runs.run(RICH["minutes and months"], kind="sweep minutes and months").breaches
    assert "shown told, and not by the texts" in breach


def test_a_wrong_rule_of_the_core_breaks_a_world_and_the_story_begins_with_what_it_is_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One who holds a role is shown the mail of a longer one, in the logs' order by the core and by what is derived."""
    monkeypatch.setattr(address, "role_route", _by_beginning)
    results = (runs.run(seed, kind="sweep words that resemble each other") for seed in range(1, 9))
    found = next(result for result in results if result.breaches)
    (one, *_) = found.about
    assert one in found.breaches[0]
    story = [*shorten.words(runs.run(found.seed, kind=found.kind, told=True))]
    assert any(f"agent-mailbox.jsonl, {{id {one[:8]}" in line for line in shorten.touching(found, story))
    assert story[-1] == f"{BROKEN}{found.breaches[0]}"


def test_a_story_tells_changes_in_their_order_and_how_far_others_are() -> None:
    """Looks are counted, and told where somebody else changes something. Nothing is told behind the broken promise."""
    read, write = "1 check a: stat('/m/x') = 1", "2 send b: write(4:/m/agent-mailbox.jsonl, {id 1}) = 9"
    begun = ["  1 check a starts: Look", "  2 send b starts: Send", "  3 send c starts: Send"]
    trace = [*begun, read, read, write, read, "  1 check a shows a ['1']", read, f"  {BROKEN}it", write]
    assert [*shorten.words(runs.run(1, jobs=[])._replace(story=trace))] == [
        "1 check a starts: Look",
        "2 send b starts: Send",
        "1 check a makes 2 calls, the last stat('/m/x') = 1",
        "2 send b: write(4:/m/agent-mailbox.jsonl, {id 1})",
        "1 check a shows a ['1']",
        f"{BROKEN}it",
    ]


def test_a_story_tells_syncs_where_power_matters() -> None:
    """Only there do they tell why a promise broke; those of files that nobody has a name for yet never do."""
    syncs = ["1 send a: fdatasync(4:/m/agent-mailbox.jsonl)", "1 send a: fsync(5:/home/boxes/006d9c31)"]
    trace = [*syncs, "1 send a: fsync(3:/home/boxes/006d9c31.100)", f"  {BROKEN}it is not durable"]
    assert [*shorten.words(runs.run(1, jobs=[])._replace(story=trace))] == [*syncs, trace[-1].strip()]
    trace[-1] = f"  {BROKEN}it is shown twice"
    assert [*shorten.words(runs.run(1, jobs=[])._replace(story=trace))] == [trace[-1].strip()]


def _by_beginning(recipients: tuple[str, ...], reader: address.Reader, bare: object = ()) -> str | None:
    roles = [one for one in recipients if one.startswith("role:")]
    return next((one for one in roles if any(tag.startswith(one) for tag in reader.tags)), None)


def test_a_backup_that_was_told_survives_a_power_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge asks the platter for the file, and for what was restored from it. It notices one without a sync."""
    kind = "drill backups of everything"
    assert runs.run(3, kind=kind).breaches == []

    def careless(mailbox: Mailbox, aside: FileLock) -> backup.Backup:
        system.ftruncate(aside.fd, 0)
        backup._fill_archive(backup._Unbuffered(aside.fd), mailbox)
        return backup.verify_backup(aside.path)

    monkeypatch.setattr(backup, "_write_verified", careless)
    (breach, *_) = runs.run(3, kind=kind).breaches
    assert breach.startswith("/backup-")
    assert breach.endswith(".tar was acknowledged and is not durable")


def test_what_draws_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """``--beside`` draws more at chosen places. A kind of world without places ends with an error and not with a run
    that looked nowhere."""
    with pytest.raises(SystemExit):
        main(["--plan", "long", "--beside", "log.HeldLog.append", "--worlds", "0"])
    assert "in worlds of the kind 'long': leave --plan out" in capsys.readouterr().err
    assert main(["--plan", "sweep a writer", "--beside", "log.HeldLog.append", "--worlds", "0"]) == 0


def test_a_line_that_a_failed_sync_damaged_continues_nobody_and_ends_no_judge() -> None:
    """A byte that was dropped is a zero; the lines behind it count."""
    damaged = b'{"session_id":"b","continues":"a"}\x00\n'
    assert [*succession.continued(damaged + b'{"session_id":"c","continues":"b"}\n')] == [("c", "b")]


def traced(seed: int, kind: str, hash_seed: str) -> str:
    """The whole trace of a world, from a process of its own."""
    words = [sys.executable, "-m", "tests.simulation", "--plan", kind, "--seed", str(seed), "--trace"]
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


def test_the_same_seed_is_the_same_trace_byte_for_byte() -> None:
    """Whatever order Python's sets have, also of the words by which requests that belong together are found."""
    assert traced(116, "sweep requests that move", "1") == traced(116, "sweep requests that move", "2")


def test_a_broken_promise_is_found_replayed_and_told_in_few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not sync is caught at once; the story is shorter than the run, and breaks the same promise."""
    from agent_mailbox.store.log.log import HeldLog

    monkeypatch.setattr(HeldLog, "_unlock_then_sync", lambda _: None)
    broken = (result for result in map(runs.run, range(4, 12)) if result.breaches)
    result = next(result for result in broken if len(result.jobs) > 50)  # a world of beginnings is short as it is
    assert runs.run(result.seed).breaches == result.breaches
    short = shorten.shortened(result, steps=15)
    assert {*map(runs.kind, short.breaches)} & {*map(runs.kind, result.breaches)}
    assert short.calls < result.calls
    assert any("starts" in line for line in shorten.words(short))


@pytest.mark.parametrize("seed", [31, 32, 33])
def test_the_real_system_answers_as_the_simulated_one(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same commands, one after the other: the same mail is shown, the same errors come."""
    expected = real.simulated(seed)
    assert sum(len(shown) for _, shown, _ in expected) > 3
    assert real.real(seed, tmp_path, monkeypatch) == expected


def test_places_beside_a_named_function_are_drawn_more_often() -> None:
    """Half of them are, where a command comes there."""
    sites, places = Sites(["replacement.replace"]), [("rename", n) for n in range(20)]
    sites._known["steward", False] = dict.fromkeys(places, 1)
    sites._near[BESIDE].add(places[0])
    chance = Random("beside")
    drawn = [sites.draw("steward", "stop", chance) for _ in range(200)]
    assert sum(one is not None and one[0] == places[0] for one in drawn) > 80


def test_a_fault_for_each_time_strikes_from_the_drawn_call_on() -> None:
    """A fault that is drawn to fail once strikes one call. A fault that is drawn to fail each time strikes all later
    calls, too."""
    place: Site = ("open", 1, 2)
    once, each = {place: (2, "fault")}, {place: (2, "faults")}
    assert [Choices._marked(once, place) for _ in range(2)] == [None, "fault"]
    assert not once
    assert [Choices._marked(each, place) for _ in range(4)] == [None, "fault", "fault", "fault"]
